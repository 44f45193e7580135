"""Bends of tasks' own: the same prior over structures, over inputs that have bumps beside them.

Trees bend answers alike in all tasks that answer alike. Where each task bends its own way (a sine of another
phase, a step at another place), residuals show it: along an input, those of a task's other rows tell a row's
own. Such inputs get bumps, whose weights are mu + Phi psi + own like all others, so that tasks share their
bends as far as they are alike. All is learned anew with them, trees included, and answers only if the rows
that each fold did not see are surely predicted better so.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from piaget.prior.adapting import anew, standard_all
from piaget.prior.boosting import FOLDS, SURE, ClassLoss
from piaget.prior.correcting import Corrected, corrected
from piaget.prior.evidence import first_scales
from piaget.prior.features import Bumps, frame_of
from piaget.prior.knowledge import USUAL, Bent, Knowledge, Structure
from piaget.prior.records import record_of

KNOTS, EDGE = 10, 0.01  # of an input: by quantiles, from this one to as far from the other end
FEW = 3  # knots: with fewer, there is no bump between them
LOOK = 3.0  # standard errors by which a task's residuals must tell others, along an input
WORTH = 0.005  # of the loss: what must be gained by that at least
PULL = 4.0  # rows without any residual that each bump's mean is drawn to zero by, to look for bends
MOST = 6  # inputs with bumps


def correct(known: Knowledge) -> Knowledge:
    """With trees learned from all rows that are kept, and bends of tasks' own, each as far as it helps."""
    now = corrected(known)
    if now is None:
        return replace(known, correction=None, corrected=known.rows, ratio=1.0, bent=None)
    columns = telling(now)
    if not len(columns):
        return now.known
    bumps = bumps_over(now.x, columns)
    bent = corrected(_with(bumps, known), now.x.shape[1])
    if bent is None or not _surely_better(bent, now):
        return now.known
    return replace(now.known, correction=None, ratio=1.0, bent=Bent(bumps, bent.known))


def bumps_over(x: np.ndarray, columns: np.ndarray) -> Bumps:
    """Between knots at quantiles of rows x (n, inputs)."""
    parts = []
    for column in columns:
        knots = knots_of(x[:, column])
        parts.append((np.full(len(knots) - 2, column), knots[:-2], knots[1:-1], knots[2:]))
    return Bumps(*(torch.from_numpy(np.concatenate(part)) for part in zip(*parts, strict=True)))


def knots_of(column: np.ndarray) -> np.ndarray:
    """At most KNOTS, all different."""
    places = np.linspace(EDGE, 1 - EDGE, KNOTS)
    return np.unique(np.quantile(column, places, method="lower").astype(np.float64))


def telling(now: Corrected) -> np.ndarray:
    """Inputs along which residuals of a task's other rows tell a row's own: at most MOST, the surest first.

    For each task and bump, the mean residual of the other folds' rows, drawn to zero. So much is needed to
    see whether it is worth the time to learn all anew."""
    if now.task.max() == 0:
        return np.zeros(0, np.int64)
    slope, curve = now.loss.slopes(now.added)
    curve = np.broadcast_to(curve, slope.shape)
    # What the task's residuals have in common is no bend.
    common = np.stack([_of_others(now, *part, 0.0) for part in zip(slope.T, curve.T, strict=True)], 1)
    slope = slope - curve * common
    sure = np.array([_sureness(now, column, slope, curve) for column in now.x.T])
    best = np.argsort(-sure, kind="stable")[:MOST]
    return np.sort(best[sure[best] > LOOK])


def _of_others(now: Corrected, slope: np.ndarray, curve: np.ndarray, pull: float) -> np.ndarray:
    """(n,): for each row, the mean residual, slope over curve, of its task's rows in other folds."""
    cell, shape = now.task * FOLDS + now.fold, (int(now.task.max()) + 1, FOLDS)
    sums = (np.bincount(cell, part, shape[0] * FOLDS).reshape(shape) for part in (slope, curve))
    total, weight = (part.sum(1, keepdims=True) - part for part in sums)
    mean = np.divide(total, weight + pull, out=np.zeros_like(total), where=weight + pull > 0)
    return mean.ravel()[cell]


def _sureness(now: Corrected, column: np.ndarray, slope: np.ndarray, curve: np.ndarray) -> float:
    """How many standard errors rows gain by the means of others' residuals along an input."""
    if len(knots_of(column)) < FEW:
        return 0.0
    bumps = bumps_over(column[:, None], np.zeros(1, np.int64))
    pull = PULL * (0.25 if isinstance(now.loss, ClassLoss) else 1.0)
    said = np.zeros_like(slope)
    for height in bumps.beside(torch.from_numpy(column[:, None])).numpy()[:, 1:].T:
        for c in range(slope.shape[1]):
            said[:, c] += height * _of_others(now, height * slope[:, c], height * curve[:, c], pull)
    gain = (slope * said - curve * said**2 / 2).sum(1)
    if gain.mean() <= WORTH * now.loss.value(now.added).mean():
        return 0.0
    return float(gain.mean() / gain.std() * np.sqrt(len(gain)))


def _with(bumps: Bumps, known: Knowledge) -> Knowledge:
    """The tasks learned anew from their rows that are kept, with bumps beside their inputs."""
    rows = {name: (bumps.beside(record.x), record.y) for name, record in known.records.items()}
    frame = frame_of(*(torch.cat([pair[i] for pair in rows.values()]) for i in range(2)))
    records = {name: record_of(frame, *pair) for name, pair in rows.items()}
    nothing = Structure(torch.zeros(known.form.outputs, frame.width, dtype=torch.float64), USUAL.level)
    structures, scales = dict.fromkeys(records, nothing), first_scales(frame.blocks)
    return anew(Knowledge(known.form, frame, records, structures, standard_all(records), scales))


def _surely_better(bent: Corrected, now: Corrected) -> bool:
    """For rows that each fold did not see, by the same losses."""
    said = torch.from_numpy(bent.loss.start + bent.added)
    if not now.known.form.classes:
        said = _between(bent.known, now.known, said)
    gain = now.loss.value(now.added) - now.loss.value(said.numpy() - now.loss.start)
    return bool(gain.mean() > SURE * gain.std() / np.sqrt(len(gain)))


def _between(one: Knowledge, other: Knowledge, values: Tensor) -> Tensor:
    """Standardised values of one as those of the other."""
    a, b = one.standard_frame, other.standard_frame
    return (a.origin + a.unit * values - b.origin) / b.unit
