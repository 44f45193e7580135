"""Bends of tasks' own: the same prior over structures, over inputs that have bumps beside them.

Trees bend answers alike in all tasks that answer alike. Where each task bends its own way (a sine of another
phase, a step at another place, another input that counts from there on), residuals show it: along an input,
those of a task's other rows tell a row's own. Such inputs get bumps, whose weights are mu + Phi psi + own
like all others, so that tasks share their bends as far as they are alike. All is learned anew with them,
trees included, and answers only if the rows that each fold did not see are surely predicted better so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from piaget.prior.adapting import anew, standard_all
from piaget.prior.boosting import FOLDS, SURE, ClassLoss
from piaget.prior.correcting import Corrected, corrected, folds_of, moderated, spread_of
from piaget.prior.evidence import first_scales
from piaget.prior.features import Bend, Bumps, frame_of
from piaget.prior.knowledge import USUAL, Bent, Knowledge, Structure
from piaget.prior.records import record_of

KNOTS, EDGE = 10, 0.01  # of an input: by quantiles, from this one to as far from the other end
FEW = 3  # knots: with fewer, there is nothing to bend
LOOK = 2.0  # standard errors by which a task's residuals must tell others, along an input
HELD = 0  # the fold that is not looked at
HINT, WORTH = 0.005, 0.05  # of the loss: what must be gained by that, and in the end, at least
PULL = 10.0  # rows without any residual that each knot's mean is drawn to zero by, to look for bends
MOST, WIDEST = 4, 30  # bends that are tried at once; inputs: with more, none is looked for that needs two


def correct(known: Knowledge, bends: bool = True) -> Knowledge:
    """With trees learned from all rows that are kept, and bends of tasks' own (unless none are to be looked
    for), each as far as it helps."""
    known = replace(known, looked=known.rows if bends else 0)
    now = corrected(known)
    if now is None:
        return replace(known, correction=None, corrected=known.rows, ratio=1.0, bent=None)
    found = telling(now) if bends else []
    if not found:
        return now.known
    bumps = bumps_over(now.x, found)
    if not _hold(bumps, now):
        return now.known
    bent = corrected(_with(bumps, known), now.x.shape[1])
    assert bent is not None  # it has as many rows
    said = torch.from_numpy(bent.loss.start + bent.added)
    if not _surely_better(_between(bent.known, now.known, said), now, slice(None)):
        return now.known
    return replace(now.known, bent=Bent(bumps, bent.known))


def bumps_over(x: np.ndarray, bends: Sequence[Bend]) -> Bumps:
    """At knots of rows x (n, inputs); those at the ends fall as far out as all knots reach."""
    parts = []
    for column, other in bends:
        knots = knots_of(x[:, column])
        far = knots[-1] - knots[0]
        wide, ones = np.r_[knots[0] - far, knots, knots[-1] + far], np.ones(len(knots))
        slope, start = (0.0, 1.0) if other is None else _standard(x[:, other])
        which = np.full(len(knots), column), np.full(len(knots), other or 0)
        parts.append((which[0], wide[:-2], knots, wide[2:], which[1], slope * ones, start * ones))
    return Bumps(*(torch.from_numpy(np.concatenate(part)) for part in zip(*parts, strict=True)))


def knots_of(column: np.ndarray) -> np.ndarray:
    """At most KNOTS, all different."""
    places = np.linspace(EDGE, 1 - EDGE, KNOTS)
    return np.unique(np.quantile(column, places, method="lower").astype(np.float64))


def _standard(column: np.ndarray) -> tuple[float, float]:
    """What a column is multiplied by, and what is added, to have mean 0 and deviation 1."""
    spread = float(column.std()) or 1.0
    return 1 / spread, -float(column.mean()) / spread


def telling(now: Corrected) -> list[Bend]:
    """Bends that residuals of a task's other rows tell of a row's own: at most MOST, the surest first.

    For each task and knot of an input, the mean residual of the other folds' rows near it, drawn to zero; or
    their slope along another input. So much is needed to see whether it is worth the time to learn all
    anew."""
    if now.task.max() == 0:
        return []
    now = now.some(now.fold != HELD)  # which tells whether what is found here holds
    looking, inputs = _Looking(now), now.x.shape[1]
    others = range(inputs if inputs <= WIDEST else 0)
    found = [
        (looking.sureness(place, other), Bend(column, other))
        for column, place in enumerate(map(place_of, now.x.T))
        if place is not None
        for other in (None, *others)
        if other != column
    ]
    best = sorted((one for one in found if one[0] > LOOK), key=lambda one: -one[0])
    return [bend for _, bend in best[:MOST]]


class Place(NamedTuple):
    """Of rows between knots."""

    knot: np.ndarray  # (n,): the one to the left
    share: np.ndarray  # (n,): of the way to the next


def place_of(column: np.ndarray) -> Place | None:
    """None: too few values to bend."""
    knots = knots_of(column)
    if len(knots) < FEW:
        return None
    left = np.clip(np.searchsorted(knots, column, side="right") - 1, 0, len(knots) - 2)
    return Place(left, np.clip((column - knots[left]) / (knots[left + 1] - knots[left]), 0, 1))


class _Looking:
    """Residuals, without what a task's have in common, which is no bend."""

    def __init__(self, now: Corrected) -> None:
        self.slope, curve = now.loss.slopes(now.added)
        self.curve = np.broadcast_to(curve, self.slope.shape)
        self.x = (now.x - now.x.mean(0)) / np.maximum(now.x.std(0), 1e-12)
        self.cells, self.cell = (int(now.task.max()) + 1, FOLDS, KNOTS), now.task * FOLDS + now.fold
        self.least = HINT * now.loss.value(now.added).mean()
        self.pull = PULL * (0.25 if isinstance(now.loss, ClassLoss) else 1.0)
        nowhere = Place(np.zeros(len(now.x), np.int64), np.zeros(len(now.x)))
        for c in range(self.slope.shape[1]):
            self.slope[:, c] -= self.curve[:, c] * self._of_others(c, nowhere, 1.0, 1e-9)

    def sureness(self, place: Place, other: int | None) -> float:
        """How many standard errors rows gain by what others' residuals say of their place."""
        times: Any = 1.0 if other is None else self.x[:, other]
        gain = np.zeros(len(self.x))
        for c in range(self.slope.shape[1]):
            said = times * self._of_others(c, place, times, self.pull)
            gain += self.slope[:, c] * said - self.curve[:, c] * said**2 / 2
        if gain.mean() <= self.least:
            return 0.0
        return float(gain.mean() / gain.std() * np.sqrt(len(gain)))

    def _of_others(self, c: int, place: Place, times: Any, pull: float) -> np.ndarray:
        """(n,): the slope of residuals along `times`, by rows of the same task and place in other folds."""
        at, share = self.cell * KNOTS + place.knot, place.share
        size = self.cells[0] * FOLDS * KNOTS
        sums = (
            np.bincount(at, (1 - share) * part, size) + np.bincount(at + 1, share * part, size)
            for part in (times * self.slope[:, c], times * times * self.curve[:, c])
        )
        folds = (part.reshape(self.cells) for part in sums)
        total, weight = (part.sum(1, keepdims=True) - part for part in folds)
        mean = (total / (weight + pull)).ravel()
        return (1 - share) * mean[at] + share * mean[at + 1]


def _with(bumps: Bumps, known: Knowledge, held: int | None = None) -> Knowledge:
    """The tasks learned anew from their rows that are kept, with bumps beside their inputs; without the rows
    of one fold, and tasks that have no others, if one is held out."""
    rows = {}
    for number, (name, record) in enumerate(known.records.items()):
        some = folds_of(number, len(record.y)) != (-1 if held is None else held)
        if bool(some.any()):
            rows[name] = (bumps.beside(record.x[some]), record.y[some])
    frame = frame_of(*(torch.cat([pair[i] for pair in rows.values()]) for i in range(2)))
    records = {name: record_of(frame, *pair) for name, pair in rows.items()}
    nothing = Structure(torch.zeros(known.form.outputs, frame.width, dtype=torch.float64), USUAL.level)
    structures, scales = dict.fromkeys(records, nothing), first_scales(frame.blocks)
    return anew(Knowledge(known.form, frame, records, structures, standard_all(records), scales))


def _hold(bumps: Bumps, now: Corrected) -> bool:
    """Whether bends that were found and learned without one fold's rows, directions included, are better for
    them. Of many pairs of inputs, some seem to bend by chance, in all rows that one looks at."""
    known, names = _with(bumps, now.known, HELD), now.known.tasks
    said = torch.from_numpy(now.loss.start + now.added)
    rows = np.flatnonzero(now.fold == HELD)
    for number in np.unique(now.task[rows]):
        own = rows[now.task[rows] == number]
        belief = known.posterior(names[number] if names[number] in known.records else None)
        features = known.standard_frame.features(bumps.beside(torch.from_numpy(now.x[own])))
        out = features @ belief.mean.mT
        if known.form.classes:
            out = moderated(out, spread_of(features, belief.covariance))
        said[torch.from_numpy(own)] = _between(known, now.known, out.clamp(*known.reach))
    return _surely_better(said, now, rows)


def _surely_better(said: Tensor, now: Corrected, rows: np.ndarray | slice) -> bool:
    """Than what is said now, for some rows; and by so much that it is worth it."""
    before, after = now.loss.value(now.added), now.loss.value(said.numpy() - now.loss.start)
    gain = (before - after)[rows]
    least = max(SURE * gain.std() / np.sqrt(len(gain)), WORTH * before[rows].mean())
    return bool(gain.mean() > least)


def _between(one: Knowledge, other: Knowledge, out: Tensor) -> Tensor:
    """Standardised values of one as those of the other; logits are what they are."""
    if one.form.classes:
        return out
    a, b = one.standard_frame, other.standard_frame
    return (a.origin + a.unit * out - b.origin) / b.unit
