"""What a task's outputs mean: losses, predictions and scores of the three kinds.

A network ends in `width` output columns. A multiclass task uses one a class. A binary task
uses column 0 as its logit; a constant zero column behind the outputs stands for class 0, since
binary cross-entropy of a logit z is cross-entropy of (0, z). Regression uses column 0. So
samples of tasks of different kinds, padded to one width, can share a batch.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from piaget.data.arrays import Kind


class OutputForm(NamedTuple):
    """What the loss must know of a task. With samples of several tasks, a sample axis comes first."""

    allowed: Tensor  # (width + 1,) bool: the columns among which the task's classes are
    regression: Tensor  # () bool


class Targets(NamedTuple):
    """Targets as the loss takes them."""

    column: Tensor  # (n,) int64: the right one
    value: Tensor  # (n,): of a regression


def output_width(kind: Kind, classes: int) -> int:
    """How many output columns a task needs."""
    return classes if kind == "multiclass" else 1


def output_form(kind: Kind, classes: int, width: int) -> OutputForm:
    """A task's form among outputs of `width` columns."""
    allowed = torch.zeros(width + 1, dtype=torch.bool)
    if kind == "multiclass":
        allowed[:classes] = True
    else:
        allowed[0] = kind == "binary"
        allowed[width] = True
    return OutputForm(allowed, torch.tensor(kind == "regression"))


def targets(kind: Kind, y: Tensor, width: int, dtype: torch.dtype) -> Targets:
    """A task's targets y (n,) for outputs of `width` columns."""
    if kind == "multiclass":
        column = y
    elif kind == "binary":
        column = torch.where(y == 1, 0, width)
    else:
        column = torch.full_like(y, width, dtype=torch.int64)
    value = y.to(dtype) if kind == "regression" else torch.zeros_like(y, dtype=dtype)
    return Targets(column, value)


def sample_losses(out: Tensor, targets: Targets, form: OutputForm) -> Tensor:
    """(B, width) outputs -> (B,) losses: cross-entropy, or squared error for regression.

    The form may have a leading sample axis on its tensors.
    """
    logits = torch.cat([out, torch.zeros_like(out[:, :1])], 1)
    logits = logits.masked_fill(~form.allowed, float("-inf"))
    chosen = logits.gather(1, targets.column[:, None])[:, 0]
    cross_entropy = logits.logsumexp(1) - chosen
    return torch.where(form.regression, (out[:, 0] - targets.value).square(), cross_entropy)


def predict(kind: Kind, out: Tensor) -> Tensor:
    """(n, width) outputs -> (n,) class numbers or values."""
    if kind == "multiclass":
        return out.argmax(1)
    return (out[:, 0] > 0).long() if kind == "binary" else out[:, 0]


def probabilities(kind: Kind, out: Tensor) -> Tensor:
    """(n, width) outputs of a classification task -> (n, classes) probabilities."""
    if kind == "multiclass":
        return out.softmax(1)
    positive = out[:, 0].sigmoid()
    return torch.stack([1 - positive, positive], 1)


def perfect(kind: Kind, y: Tensor, width: int) -> Tensor:
    """Outputs (n, width) that predict all targets y (n,) rightly."""
    if kind == "multiclass":
        return torch.nn.functional.one_hot(y, width).to(torch.get_default_dtype())
    return torch.where(y == 1, 1.0, -1.0)[:, None] if kind == "binary" else y[:, None]


def metric_name(kind: Kind) -> str:
    """What a task of this kind is scored by."""
    return "rmse" if kind == "regression" else "accuracy"


def score(kind: Kind, out: Tensor, y: Tensor) -> float:
    """Accuracy (more is better), or root mean squared error (less is better)."""
    if kind == "regression":
        return float((out[:, 0] - y).square().mean().sqrt())
    return float((predict(kind, out) == y).double().mean())


def auc(logits: Tensor, y: Tensor) -> float | None:
    """The area under the ROC curve, from a binary task's logits (n,) and classes y (n,); None if all samples
    are of one class.

    It is the share of pairs, a sample of each class, in which that of class 1 has the higher logit; equal
    ones count half. Pairs are counted in whole numbers, so it is exact. Logits, because probabilities near 1
    round to the same number.
    """
    negative, positive = logits[y != 1].sort().values, logits[y == 1]
    pairs = len(negative) * len(positive)
    if not pairs:
        return None
    below, not_above = (torch.searchsorted(negative, positive, right=right).sum() for right in (False, True))
    return int(below + not_above) / (2 * pairs)


def majority(trained_on: Tensor, y: Tensor) -> float:
    """The accuracy on classes y (n,) of always answering the most frequent class of the training data (of
    several, the first)."""
    return float((y == trained_on.bincount().argmax()).double().mean())


def improvement(kind: Kind, new: float, old: float) -> float:
    """By how much, relative to `old`, the score `new` is better. If `old` is 0: infinitely; of a regression,
    whose error cannot be less, not at all."""
    if old == 0:
        return 0.0 if kind == "regression" else math.inf
    return ((old - new) if kind == "regression" else (new - old)) / old
