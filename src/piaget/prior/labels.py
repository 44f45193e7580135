"""The likelihood of labels: of one logit (two classes) or softmax.

Of K > 2 classes, only differences between logits matter. So weights are those of C = K - 1 contrasts
between classes, orthogonal and of length 1: as weights of all classes have one prior, so have theirs. Where
all classes are equally likely, contrasts have no curvature in common; elsewhere, what they have is left
out. The mode does not depend on that. (With weights of K classes, the one combination of which labels say
nothing would be counted as if it were known: a task's own weights would seem too dear, and shrink.)

Batches: features (T, n, d), labels y (T, n), mask (T, n) or None, weights w (T, C, d); two classes: C = 1.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor
from torch.nn import functional

from piaget.prior.gaussian import Posterior


@functools.cache
def contrasts(outputs: int) -> Tensor:
    """(C, K): each class against the mean of those before it. One output is the only class's own."""
    if outputs == 1:
        return torch.ones(1, 1, dtype=torch.float64)
    number = torch.arange(1, outputs + 1, dtype=torch.float64)[:, None]
    class_number = torch.arange(outputs + 1)
    rows = torch.where(class_number < number, 1.0, torch.where(class_number == number, -number, 0.0))
    return rows / (number * (number + 1)).sqrt()


def by_class(belief: Posterior) -> Posterior:
    """Of classes' weights (K, d), (K, d, d), from that of contrasts' (C, d), (C, d, d)."""
    V = contrasts(len(belief.mean))
    return Posterior(V.mT @ belief.mean, torch.einsum("ck,cij->kij", V.square(), belief.covariance))


def log_likelihood(features: Tensor, y: Tensor, mask: Tensor | None, w: Tensor) -> Tensor:
    """(T,)"""
    rows = row_likelihood(features @ w.mT, y)
    return (rows if mask is None else rows * mask).sum(-1)


def row_likelihood(outputs: Tensor, y: Tensor) -> Tensor:
    """The logarithm of each row's likelihood (..., n), by its outputs (..., n, C)."""
    if outputs.shape[-1] == 1:
        return functional.logsigmoid(torch.where(y == 1, outputs[..., 0], -outputs[..., 0]))
    logits = outputs @ contrasts(outputs.shape[-1])
    return logits.log_softmax(-1).gather(-1, y.unsqueeze(-1))[..., 0]


def chances(logits: Tensor) -> Tensor:
    """(..., K) logits -> (..., K) probabilities; with one logit, of class 1."""
    return logits.sigmoid() if logits.shape[-1] == 1 else logits.softmax(-1)


def misses(outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The slope and the curvature of each row's log-likelihood with its outputs (..., n, C), both alike."""
    V = contrasts(outputs.shape[-1])
    p = chances(outputs @ V)
    classes = p.shape[-1]
    right = y.unsqueeze(-1) == (1 if classes == 1 else torch.arange(classes))
    curve = p @ V.square().mT - (p @ V.mT).square()
    return (right.to(p) - p) @ V.mT, curve.clamp(min=0)  # it is never negative, but for rounding
