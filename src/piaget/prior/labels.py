"""The likelihood of labels, and Laplace's approximation of it: for one logit (two classes) or softmax.

With several classes, each has weights of its own, and the curvature between classes is left out; what is
left is scaled so that it is right where all classes are equally likely. The mode does not depend on that.

Batches: features (T, n, d), labels y (T, n), mask (T, n) or None, weights w (T, C, d).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from piaget.prior.gaussian import Quadratic


def log_likelihood(features: Tensor, y: Tensor, mask: Tensor | None, w: Tensor) -> Tensor:
    """(T,)"""
    logits = features @ w.mT  # (T, n, C)
    if w.shape[1] == 1:
        rows = functional.logsigmoid(torch.where(y == 1, logits[..., 0], -logits[..., 0]))
    else:
        rows = logits.log_softmax(-1).gather(-1, y.unsqueeze(-1))[..., 0]
    return (rows if mask is None else rows * mask).sum(-1)


def chances(logits: Tensor) -> Tensor:
    """(..., C) logits -> (..., C) probabilities; with one output, of class 1."""
    return logits.sigmoid() if logits.shape[-1] == 1 else logits.softmax(-1)


def misses(logits: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """What is right minus what is expected, and the curvature, of each row and output: (..., n, C)."""
    p = chances(logits)
    classes = p.shape[-1]
    right = y.unsqueeze(-1) == (1 if classes == 1 else torch.arange(classes))
    between = 1.0 if classes == 1 else classes / (classes - 1)
    return right.to(p) - p, between * p * (1 - p)


def expand(features: Tensor, y: Tensor, mask: Tensor | None, w: Tensor) -> Quadratic:
    """The quadratic that agrees with the log-likelihood at w in value and slope: (T, C, ...)."""
    miss, curve = misses(features @ w.mT, y)
    if mask is not None:
        miss, curve = miss * mask.unsqueeze(-1), curve * mask.unsqueeze(-1)
    precision = torch.stack([features.mT @ (c.unsqueeze(-1) * features) for c in curve.unbind(-1)], 1)
    slope = (features.mT @ miss).mT  # (T, C, d)
    bent = (precision @ w.unsqueeze(-1))[..., 0]
    constant = torch.zeros(w.shape[:2], dtype=w.dtype)
    constant[:, 0] = log_likelihood(features, y, mask, w)
    constant -= (slope * w).sum(-1) + (bent * w).sum(-1) / 2
    return Quadratic(precision, slope + bent, constant)
