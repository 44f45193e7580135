"""How much whole answers depend on each column, trees included: by rows whose values are exchanged."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from piaget.prior_learner import PriorLearner

GROUPS, ROWS = 50, 20  # that are asked about, at most: groups, and rows of each
SMALLEST = 1e-6  # probability whose log-odds are counted


def moved_by(learner: PriorLearner) -> list[dict[str, Any]]:
    """Of each column, how far answers move if its values are exchanged among rows at random, in log-odds or
    in deviations of the target: the root mean square, over the square root of two. So it is the change by a
    standard deviation, if answers are linear in a number. Of rows that are kept, the same ones always. None
    without trees and bends: then, weights tell all."""
    known = learner.known
    if known.correction is None and known.bent is None:
        return []
    rows = {task: _spaced(record.x.double(), ROWS) for task, record in known.records.items()}
    tasks = _spaced_names([task for task, x in rows.items() if len(x)])
    x = torch.cat([rows[task] for task in tasks])
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    sizes = [len(rows[task]) for task in tasks]
    columns = _columns(learner, x.shape[1])
    squares = torch.zeros(len(columns), dtype=torch.float64)
    for task, own, other in zip(tasks, x.split(sizes), x[order].split(sizes), strict=True):
        changed = own.repeat(len(columns), 1, 1)  # (columns, n, inputs)
        for i, inputs in enumerate(columns.values()):
            changed[i, :, inputs] = other[:, inputs]
        said = _answers(learner, torch.cat([own[None], changed]).flatten(0, 1), task)
        said = said.unflatten(0, (len(columns) + 1, len(own)))  # (1 + columns, n, outputs)
        squares += (said[1:] - said[:1]).square().mean(2).sum(1)
    moved = (squares / len(x) / 2).sqrt().tolist()
    return [{"column": name, "moves": value} for name, value in zip(columns, moved, strict=True)]


def _columns(learner: PriorLearner, inputs: int) -> dict[str, slice]:
    """The inputs of each column."""
    encoding = learner.encoding()
    if encoding is None:
        return {f"input {i}": slice(i, i + 1) for i in range(inputs)}
    found, start = {}, 0
    for column in encoding.columns:
        found[column.name] = slice(start, start + len(column.inputs))
        start += len(column.inputs)
    return found


def _answers(learner: PriorLearner, x: Tensor, task: str) -> Tensor:
    """(n, outputs): log-odds of classes (of two, of the second), or values in deviations of the target."""
    said = learner.answered(x, task)
    if said.probabilities is None:
        return said.values[:, None] / learner.known.standard_frame.unit
    p = said.probabilities.double().clamp(SMALLEST, 1 - SMALLEST)
    if p.shape[1] == 2:
        return (p[:, 1:] / p[:, :1]).log()
    return p.log() - p.log().mean(1, keepdim=True)


def _spaced(x: Tensor, most: int) -> Tensor:
    """At most so many rows, evenly spaced."""
    return x[:: max(1, math.ceil(len(x) / most))]


def _spaced_names(names: list[str]) -> list[str]:
    return names[:: max(1, math.ceil(len(names) / GROUPS))]
