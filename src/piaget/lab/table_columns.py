"""What columns do: to whole answers, trees and bends included, by rows whose values are exchanged; and as far
as that is linear, by weights."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from piaget import prior
from piaget.prior_learner import PriorLearner

GROUPS, ROWS = 50, 20  # that are asked about, at most: groups, and rows of each
LINE_ROWS = 5_000  # that a line is drawn through, at most
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
    tasks = spaced_names([task for task, x in rows.items() if len(x)], GROUPS)
    x = torch.cat([rows[task] for task in tasks])
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    sizes = [len(rows[task]) for task in tasks]
    columns = inputs_of_columns(learner, x.shape[1])
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


def straight_weights(known: prior.Knowledge) -> Tensor:
    """Weights of standardised inputs: (T, outputs, inputs). Where tasks bend, those of the line that comes
    nearest to what a task's weights say, over rows of all tasks that are kept."""
    if known.bent is None:
        return known.posteriors.mean[..., 1:]
    bumps, bent = known.bent
    x = _spaced(torch.cat([record.x.double() for record in known.records.values()]), LINE_ROWS)
    here, there, n = known.standard_frame, bent.standard_frame, x.shape[1]
    own, bending = bent.posteriors.mean[..., 1:].split([n, len(bumps.column)], -1)
    shapes = there.features(bumps.beside(x))[:, 1 + n :]
    line = torch.linalg.lstsq(here.features(x), shapes, driver="gelsd").solution[1:]  # (inputs, B)
    return (own * here.scale / there.scale[:n] + bending @ line.mT) * there.unit / here.unit


def inputs_of_columns(learner: PriorLearner, inputs: int) -> dict[str, slice]:
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


def spaced_names(names: list[str], most: int) -> list[str]:
    """At most so many, evenly spaced."""
    return names[:: max(1, math.ceil(len(names) / most))]
