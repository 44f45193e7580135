"""Bends of groups' own, as their page shows them: what groups are answered along a column."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from piaget.lab.table_columns import inputs_of_columns, spaced_names
from piaget.prior.features import Bend
from piaget.prior_learner import PriorLearner
from piaget.report.table_data import BendData, BendLinesData
from piaget.report.table_inputs import NUMBER, Input, inputs_of
from piaget.report.table_map import subjects_of

PLACES, ENDS = 41, (0.01, 0.99)  # along a column: how many, between which quantiles
LOW_AND_HIGH = (0.1, 0.9)  # quantiles of another number, if its weight bends
GROUPS, CLASSES = 200, 4  # that are told, at most
UNLIKE = 6  # groups that are drawn first
EXACT = 6  # digits that count


def bends_of(learner: PriorLearner, target: str, group: str) -> list[BendData]:
    """Of each bend that answers have, the surest first. target, group: the columns' names."""
    bent = learner.known.bent
    if bent is None:
        return []
    x = torch.cat([record.x.double() for record in learner.known.records.values()])
    return [_bend(learner, x, bend, target, group) for bend in dict.fromkeys(bent.bumps.bends)]


def bending_columns(learner: PriorLearner) -> list[str]:
    """The names of the columns along which groups bend."""
    known = learner.known
    inputs = inputs_of(learner, len(known.standard_frame.center))
    bends = [] if known.bent is None else known.bent.bumps.bends
    return list(dict.fromkeys(inputs[bend.column].name for bend in bends))


def _bend(learner: PriorLearner, x: Tensor, bend: Bend, target: str, group: str) -> BendData:
    """By whole answers, trees included, for a row at the middle of rows x."""
    inputs, middle = inputs_of(learner, x.shape[1]), _middle(learner, x)
    column, other = inputs[bend.column], None if bend.other is None else inputs[bend.other]
    at = torch.linspace(*_quantiles(x[:, bend.column], ENDS), PLACES, dtype=torch.float64)
    change = None if bend.other is None else _change(learner, x, middle, bend.other, inputs)
    rows = torch.stack([middle] if change is None else [change.before, change.after])
    asked = rows[:, None].repeat(1, PLACES, 1)  # (1 or 2, places, inputs)
    asked[..., bend.column] = at
    tasks, subjects = spaced_names(learner.known.tasks, GROUPS), subjects_of(learner, target)
    curves = torch.stack([_said(learner, asked, task) for task in tasks])  # (T, C, places)
    most = curves.std(0).mean(-1).argsort(descending=True, stable=True)[:CLASSES].sort().values
    several, what = len(subjects) > 1, target
    if learner.labels:
        what = f"the probability of {target if several else f'{target}={subjects[0]}'}"
    return BendData(
        words=_words(column.name, other, target, group),
        title=f"Along {column.name}" if other is None else f"{other.name}, along {column.name}",
        axis=column.axis,
        drawn=what if change is None else f"change of {what}, {change.words}",
        places=[_exact(column.value(place)) for place in at.tolist()],
        groups=tasks,
        unlike=_unlike(curves),
        curves=[
            BendLinesData(
                subject=subjects[c] if several else "",
                lines=[[_exact(value) for value in line] for line in curves[:, c].tolist()],
            )
            for c in most.tolist()
        ],
        note=_note(len(learner.known.tasks), len(tasks), len(subjects)),
    )


def _words(column: str, other: Input | None, target: str, group: str) -> str:
    if other is None:
        return f"Each {group} bends along {column} in its own way: no line tells how {target} depends on it."
    what = other.name if other.kind == NUMBER else f"whether {other.name}"
    return f"How much {what} counts changes along {column}, for each {group} in its own way."


def _note(groups: int, told: int, classes: int) -> str:
    notes = []
    if classes > CLASSES:
        notes.append(f"Of {classes} classes, the {CLASSES} in which groups differ most are drawn.")
    if groups > told:
        notes.append(f"Of {groups:,} groups, {told:,} can be chosen.")
    return " ".join(notes)


def _quantiles(values: Tensor, shares: tuple[float, float]) -> tuple[float, float]:
    low, high = np.quantile(values.numpy(), shares).tolist()
    return low, high


def _middle(learner: PriorLearner, x: Tensor) -> Tensor:
    """(inputs,): the median of numbers, the most frequent level of categories."""
    middle = torch.from_numpy(np.median(x.numpy(), 0))
    for own in _categories(learner, x.shape[1]):
        middle[own] = _only(x[:, own], int(x[:, own].sum(0).argmax()))
    return middle


def _categories(learner: PriorLearner, n: int) -> list[slice]:
    """The inputs of each category."""
    encoding = learner.encoding()
    names = [] if encoding is None else encoding.categories
    return [own for name, own in inputs_of_columns(learner, n).items() if name in names]


def _only(levels: Tensor, number: int) -> Tensor:
    return torch.eye(levels.shape[1], dtype=levels.dtype)[number]


class Change(NamedTuple):
    """Of an input, from one row (inputs,) to another."""

    before: Tensor
    after: Tensor
    words: str


def _change(learner: PriorLearner, x: Tensor, middle: Tensor, number: int, inputs: list[Input]) -> Change:
    """Of a number: from a low one to a high one; of a level: from the most frequent of the others to it."""
    before, after, what = middle.clone(), middle.clone(), inputs[number]
    if what.kind == NUMBER:
        low, high = _quantiles(x[:, number], LOW_AND_HIGH)
        before[number], after[number] = low, high
        return Change(before, after, f"from {what.name} = {what.told(low)} to {what.told(high)}")
    before[number], after[number], told = 0, 1, ""
    for own in _categories(learner, x.shape[1]):
        if own.start <= number < own.stop:
            counts = x[:, own].sum(0)
            counts[number - own.start] = -1
            usual = int(counts.argmax())
            before[own], after[own] = _only(x[:, own], usual), _only(x[:, own], number - own.start)
            told = f"from {inputs[own.start + usual].name} "
    return Change(before, after, f"{told}to {what.name}")


def _said(learner: PriorLearner, x: Tensor, task: str) -> Tensor:
    """(C, places), for x (1 or 2, places, inputs): answers, or how they change from the first to the second.
    Of two classes, the probability of the second."""
    said = learner.answered(x.flatten(0, 1), task)
    if said.probabilities is None:
        out = said.values[:, None]
    else:
        out = said.probabilities[:, 1:] if said.probabilities.shape[1] == 2 else said.probabilities
    out = out.double().unflatten(0, x.shape[:2])
    return (out[-1] - out[0] if len(out) == 2 else out[0]).mT


def _unlike(curves: Tensor) -> list[int]:
    """Some groups, evenly spaced along the direction in which curves (T, C, places) differ most."""
    flat = curves.flatten(1)
    left, size, _ = torch.linalg.svd(flat - flat.mean(0), full_matrices=False)
    order = (left[:, 0] * size[0]).argsort(stable=True)
    places = torch.linspace(0, len(order) - 1, min(UNLIKE, len(order))).round().long()
    return sorted(order[places].tolist())


def _exact(value: float) -> float:
    return float(f"{value:.{EXACT}g}")
