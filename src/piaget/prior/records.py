"""What is kept of a task: sums from which all else follows, and rows as far as they are wanted.

A regression's sums are sufficient: rows are added to them, and nothing is lost. Labels have no such sums. Their
rows are kept up to a limit; those beyond it are settled: their likelihood is replaced by its Gaussian
approximation at the weights that were believed then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from piaget.prior.features import Frame
from piaget.prior.gaussian import Quadratic
from piaget.prior.labels import expand


@dataclass(frozen=True, eq=False)
class Record:
    """One task. Sums are of the frame's features (d of them); rows are as they came, the newest last."""

    n: int  # rows in all
    x: Tensor  # (m, inputs) float32: those that are kept
    y: Tensor  # (m,) float64 values or int64 class numbers
    first: Tensor  # (d,): sums of features
    second: Tensor  # (d,): sums of their squares


@dataclass(frozen=True, eq=False)
class Values(Record):
    """Of a regression."""

    gram: Tensor  # (d, d): features'features
    cross: Tensor  # (d,): features'y
    square: Tensor  # (): y'y


@dataclass(frozen=True, eq=False)
class Labels(Record):
    """Of a classification. `settled`: the likelihood of rows that are gone, as a function of weights
    (C, d); None if there are none."""

    settled: Quadratic | None


def values_record(frame: Frame, x: Tensor, y: Tensor) -> Values:
    """Of a task's rows x (n, inputs) with values y (n,)."""
    features, y = frame.features(x), y.double()
    gram = features.mT @ features
    return Values(len(x), x.float(), y, gram[0], gram.diagonal(), gram, features.mT @ y, y @ y)


def labels_record(frame: Frame, x: Tensor, y: Tensor) -> Labels:
    """Of a task's rows x (n, inputs) with class numbers y (n,)."""
    features = frame.features(x)
    return Labels(len(x), x.float(), y, features.sum(0), features.square().sum(0), None)


def together(old: Values, new: Values) -> Values:
    """Both tasks' rows as one task's."""
    return Values(
        old.n + new.n,
        *(torch.cat(pair) for pair in ((old.x, new.x), (old.y, new.y))),
        old.first + new.first,
        old.second + new.second,
        old.gram + new.gram,
        old.cross + new.cross,
        old.square + new.square,
    )


def joined(old: Labels, new: Labels) -> Labels:
    """Both tasks' rows as one task's; what was settled stays so."""
    x, y = torch.cat([old.x, new.x]), torch.cat([old.y, new.y])
    return Labels(old.n + new.n, x, y, old.first + new.first, old.second + new.second, old.settled)


def within(record: Record, frame: Frame, limit: int, weights: Tensor) -> Record:
    """With no more rows than `limit`. weights: (C, d) what is believed, where labels are settled."""
    extra = len(record.y) - limit
    if extra <= 0:
        return record
    kept = replace(record, x=record.x[extra:].clone(), y=record.y[extra:].clone())
    if not isinstance(kept, Labels):
        return kept
    features = frame.features(record.x[:extra])
    settled = expand(features[None], record.y[None, :extra], None, weights[None])
    settled = Quadratic(*(part[0] for part in settled))
    if kept.settled is not None:
        settled = Quadratic(*(a + b for a, b in zip(kept.settled, settled, strict=True)))
    return replace(kept, settled=settled)
