"""The correction of linear answers by boosted trees: from rows that are kept, honest, and only as far as it helps.

Trees see a row's inputs and what its task's weights say of it, had they not seen it (leave-one-out, which
follows from the posterior). So they learn what is the same beyond the linear in all tasks, and may bend a task's
own answer; and they serve tasks that come later.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from piaget.prior.boosting import FOLDS, ClassLoss, Correction, Loss, boost
from piaget.prior.gaussian import Posterior
from piaget.prior.knowledge import Knowledge
from piaget.prior.labels import misses

LEAST_ROWS, MOST_ROWS = 200, 20_000  # that trees are learned from
GROWTH = 2.0  # trees are learned anew when there are that many times as many rows


def spread_of(features: Tensor, covariance: Tensor) -> Tensor:
    """Variance of the outputs (n, C) of rows (n, d), by the covariance (C, d, d) of weights."""
    return torch.stack([((features @ V) * features).sum(-1) for V in covariance], -1).clamp(min=0)


def moderated(logits: Tensor, variance: Tensor) -> Tensor:
    """Logits whose probabilities are those expected under the variance, nearly (MacKay 1992)."""
    return logits / (1 + math.pi * variance / 8).sqrt()


def without_itself(
    known: Knowledge, features: Tensor, y: Tensor, belief: Posterior, log_noise: float
) -> Tensor:
    """What each of a task's rows would be told if it had not been learned from: (n, C)."""
    out, variance = features @ belief.mean.mT, spread_of(features, belief.covariance)
    if known.form.kind == "regression":
        used = (variance / math.exp(log_noise)).clamp(max=0.95)
        return y[:, None] - (y[:, None] - out) / (1 - used)
    miss, curve = misses(out, y)
    left = 1 - (variance * curve).clamp(max=0.95)
    return moderated(out - variance * miss / left, variance / left)


def correct(known: Knowledge) -> Knowledge:
    """With trees learned from all rows that are kept."""
    rows = gathered(known)
    if rows is None:
        return replace(known, correction=None, corrected=known.rows, ratio=1.0)
    x, y, start, weight, fold = rows
    make = Loss if known.form.kind == "regression" else ClassLoss
    found, said = boost(np.concatenate([x, start], 1), make(y, start, weight), fold)
    ratio = 1.0
    if known.form.kind == "regression" and found.rounds:
        before, after = (weight * (y - start[:, 0] - add) ** 2 for add in (0.0, said[:, 0]))
        ratio = float(after.mean() / max(before.mean(), 1e-300))
    useful: Correction | None = found if found.rounds else None
    return replace(known, correction=useful, corrected=known.rows, ratio=ratio)


def gathered(known: Knowledge) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """Inputs, targets, what rows are told without themselves, weights, folds; None if they are too few."""
    frame = known.standard_frame
    parts: list[tuple[Any, ...]] = []
    for number, (name, record) in enumerate(known.records.items()):
        if not len(record.y):
            continue
        features, y = frame.features(record.x), frame.targets(record.y)
        belief = Posterior(*(part[number] for part in known.posteriors))
        told = without_itself(known, features, y, belief, known.structures[name].log_noise)
        count = len(record.y)
        weight = torch.full((count,), math.exp(-known.structures[name].log_noise))
        fold = (torch.arange(count) + number) % FOLDS
        parts.append((record.x.double(), y, told, weight, fold))
    if sum(len(part[1]) for part in parts) < LEAST_ROWS:
        return None
    x, y, told, weight, fold = (torch.cat(part).numpy() for part in zip(*parts, strict=True))
    weight = np.clip(weight / weight.mean(), 0.1, 10)
    if len(y) > MOST_ROWS:
        chosen = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
        x, y, told, weight, fold = (part[chosen] for part in (x, y, told, weight, fold))
    return x, y, told, weight / weight.mean(), fold


def wants_trees(known: Knowledge) -> bool:
    """Whether there are to be trees, and rows to learn them from."""
    return known.form.trees and known.form.rows > 0
