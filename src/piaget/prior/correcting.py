"""The correction of linear answers by boosted trees: from rows that are kept, and only as far as it helps.

Trees see a row's inputs, what its task's weights say of it, and of the middle of all inputs, both without
the row's fold. So they learn what is the same beyond the linear in all tasks, may bend a task's own answer,
tell tasks of high level from those of low, and serve tasks that come later.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from piaget.prior.boosting import FOLDS, ClassLoss, Loss, boost
from piaget.prior.gaussian import Posterior, Quadratic, infer, task_posterior
from piaget.prior.knowledge import Knowledge
from piaget.prior.label_terms import LabelTerms
from piaget.prior.labels import by_class
from piaget.prior.sites import Sites, said

LEAST_ROWS, MOST_ROWS = 200, 20_000  # that trees are learned from
# Trees are learned anew when there are so many times as many rows, as long as there are fewer than that: it
# takes a second or so. With more, only when knowledge is settled.
GROWTH, SOON = 2.0, 4000
FAR = 6.0  # deviations by which an answer misses a row of long tails, or a slip of the pen


def spread_of(features: Tensor, covariance: Tensor) -> Tensor:
    """Variance of the outputs (n, C) of rows (n, d), by the covariance (C, d, d) of weights."""
    return torch.stack([((features @ V) * features).sum(-1) for V in covariance], -1).clamp(min=0)


def moderated(logits: Tensor, variance: Tensor) -> Tensor:
    """Logits (n, C) whose probabilities are those expected under the variance. Of two classes by sums over
    the normal distribution; of more, nearly (MacKay 1992), which makes rare classes too probable."""
    if logits.shape[1] > 1:
        return logits / (1 + math.pi * variance / 8).sqrt()
    z = torch.linspace(-6, 6, 41, dtype=logits.dtype, device=logits.device)
    weight = torch.softmax(-z.square() / 2, 0)
    at = logits + variance.sqrt() * z  # (n, 41)
    yes, no = (torch.sigmoid(part) @ weight for part in (at, -at))
    return (yes.clamp(min=1e-300).log() - no.clamp(min=1e-300).log())[:, None]


class Told(NamedTuple):
    """Rows of all tasks that are kept, and what the linear model says of each without its fold."""

    x: Tensor  # (n, inputs)
    y: Tensor  # (n,) as standardised
    out: Tensor  # (n, C)
    level: Tensor  # (n, C): and of the middle of all inputs, in the row's task
    weight: Tensor  # (n,): one over a regression's noise
    fold: Tensor  # (n,)
    task: Tensor  # (n,): its number


def folds_of(number: int, rows: int) -> Tensor:
    """(rows,): in which fold each row of a task is, by the task's number."""
    return (torch.arange(rows) + number) % FOLDS


def told(known: Knowledge) -> Told:
    """By the posterior without the fold: for a regression, exactly what would be said if these rows of all
    tasks had not been there (components and noise as they are).

    Leaving out single rows would not do: among rows with the same inputs, what is said without a row tells
    that row's own value, and trees find out.
    """
    frame, terms = known.standard_frame, known.likelihoods.terms
    records, noises = list(known.records.values()), [known.structures[n].log_noise for n in known.records]
    features = [frame.features(record.x) for record in records]
    y = [frame.targets(record.y) for record in records]
    folds = [folds_of(number, len(one)) for number, one in enumerate(y)]
    tasks = [torch.full((len(one),), number) for number, one in enumerate(y)]
    out = [torch.zeros(len(one), known.form.columns, dtype=torch.float64) for one in y]
    level = [torch.zeros_like(one) for one in out]
    for k in range(FOLDS):
        left = [part.clone() for part in terms]
        for t, (rows, own) in enumerate(zip(folds, y, strict=True)):
            gone = _term(known, features[t], own, rows == k, noises[t], t)
            for part, less in zip(left, gone, strict=True):
                part[t] -= less
        root = known.components.root
        found = infer(Quadratic(*left), root, known.components.width)
        belief = task_posterior(Quadratic(*left), root, found.mu)
        for t, rows in enumerate(folds):
            some, task = features[t][rows == k], by_class(Posterior(*(part[t] for part in belief)))
            said = some @ task.mean.mT
            if known.form.classes:
                said = moderated(said, spread_of(some, task.covariance))
            out[t][rows == k] = said.clamp(*known.reach)
            level[t][rows == k] = task.mean[:, 0]
    weight = [torch.full((len(one),), math.exp(-noise)) for one, noise in zip(y, noises, strict=True)]
    return Told(
        torch.cat([record.x for record in records]).double(),
        *map(torch.cat, (y, out, level, weight, folds, tasks)),
    )


def _term(
    known: Knowledge, features: Tensor, y: Tensor, rows: Tensor, log_noise: float, task: int
) -> Quadratic:
    """What some of a task's rows say of its weights: (C, ...)."""
    likelihoods = known.likelihoods
    if isinstance(likelihoods, LabelTerms):
        sites = likelihoods.sites_of(task, len(y)).rows(rows)
        found = said(features[None, rows], Sites(*(part[None] for part in sites)))
        return Quadratic(*(part[0] for part in found))
    features, y, precision = features[rows], y[rows], math.exp(-log_noise)
    nothing = torch.zeros(1, dtype=torch.float64)  # constants do not matter here
    return Quadratic((precision * features.mT @ features)[None], (precision * features.mT @ y)[None], nothing)


class Corrected(NamedTuple):
    """Knowledge with trees, and the rows that these were learned from."""

    known: Knowledge
    x: np.ndarray  # (n, inputs)
    task: np.ndarray  # (n,): numbers
    fold: np.ndarray  # (n,)
    loss: Loss  # of what is added to the linear answers
    added: np.ndarray  # (n, C): by trees that did not see the row

    def some(self, rows: np.ndarray) -> Corrected:
        """With some of the rows."""
        x, task, fold, added = (part[rows] for part in (self.x, self.task, self.fold, self.added))
        return Corrected(self.known, x, task, fold, self.loss.some(rows), added)


def corrected(known: Knowledge, inputs: int | None = None) -> Corrected | None:
    """With trees learned from all rows that are kept; None, if these are too few. inputs: the first so many
    are what trees see."""
    kept = sum(len(record.y) for record in known.records.values())
    none = replace(known, correction=None, corrected=known.rows, ratio=1.0, bent=None)
    if kept < LEAST_ROWS:
        return None
    rows = [part.numpy() for part in told(known)]
    if kept > MOST_ROWS:
        some = np.random.default_rng(0).permutation(kept)[:MOST_ROWS]
        rows = [part[some] for part in rows]
    x, y, start, level, weight, fold, task = rows
    x = x[:, :inputs]
    if not known.form.classes:
        weight = weight * tempered((y - start[:, 0]) * np.sqrt(weight))
    weight = np.clip(weight / weight.mean(), 0.1, 10)
    weight = weight / weight.mean()
    loss = (ClassLoss if known.form.classes else Loss)(y, start, weight)
    found, said = boost(np.concatenate([x, start, level], 1), loss, fold)
    if not found.rounds:
        return Corrected(none, x, task, fold, loss, said)
    ratio = 1.0
    if not known.form.classes:
        before, after = (weight * (y - start[:, 0] - add) ** 2 for add in (0.0, said[:, 0]))
        ratio = float(after.mean() / before.mean())
    return Corrected(replace(none, correction=found, ratio=ratio), x, task, fold, loss, said)


def seen(edges: Tensor | np.ndarray, x: Tensor, out: Tensor, level: Tensor) -> Tensor:
    """What trees with these bins' edges (F, ...) see of rows x (n, inputs) with answers (n, C) and levels
    (C,) or (n, C): (n, F). Of bumps beside the inputs, they see nothing."""
    inputs = len(edges) - 2 * out.shape[1]
    return torch.cat([x[:, :inputs].float().double(), out, level.expand_as(out)], 1)  # x as rows are kept


def tempered(miss: np.ndarray) -> np.ndarray:
    """(n,): the weight of rows that are missed by so much; less than 1 for those far beyond the usual."""
    usual = 1.4826 * np.median(np.abs(miss))
    return np.minimum(1, FAR * usual / np.maximum(np.abs(miss), 1e-300)) if usual > 0 else np.ones_like(miss)


def wants_trees(known: Knowledge) -> bool:
    """Whether there are to be trees, and rows to learn them from."""
    return known.form.trees and known.form.rows > 0
