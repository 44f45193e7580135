"""What is kept of a task: sums from which all else follows, and rows as far as they are wanted.

A regression's sums are sufficient: rows are added to them, and nothing is lost. Labels have no such sums.
Their rows are kept up to a limit; those beyond it are settled: their likelihood is replaced by what they were
taken to say then (sites.py), which is Gaussian.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from piaget.prior.features import Frame, Moments, Standard
from piaget.prior.gaussian import Quadratic
from piaget.prior.sites import Sites, said


@dataclass(frozen=True, eq=False)
class Record:
    """One task. Sums are of the frame's features (d of them); rows are as they came, the newest last."""

    n: int  # rows in all
    x: Tensor  # (m, inputs) float32: those that are kept
    y: Tensor  # (m,) float64 values or int64 class numbers
    moments: Moments


@dataclass(frozen=True, eq=False)
class Values(Record):
    """Of a regression."""

    gram: Tensor  # (d, d): features'features
    cross: Tensor  # (d,): features'values


@dataclass(frozen=True, eq=False)
class Labels(Record):
    """Of a classification. `settled`: the log-likelihood of rows that are gone, in weights (C, d); None if
    there are none."""

    counts: Tensor  # (at most the number of classes,): rows of each class, in all
    settled: Quadratic | None


def record_of(frame: Frame, x: Tensor, y: Tensor) -> Record:
    """Of a task's rows x (n, inputs), with values (floating point) or class numbers y (n,)."""
    features, n = frame.features(x), torch.tensor(float(len(x)), dtype=torch.float64)
    first, second = features.sum(0), features.square().sum(0)
    if not y.is_floating_point():
        nothing = torch.zeros(2, dtype=torch.float64)
        return Labels(len(x), x.float(), y, Moments(n, first, second, nothing), torch.bincount(y), None)
    values = frame.targets(y.double())
    sums = Moments(n, first, second, torch.stack([values.sum(), values @ values]))
    return Values(len(x), x.float(), y.double(), sums, features.mT @ features, features.mT @ values)


def together(old: Record, new: Record) -> Record:
    """Both tasks' rows as one task's, the new ones last; what was settled stays so."""
    both: Any = replace(
        old,
        n=old.n + new.n,
        x=torch.cat([old.x, new.x]),
        y=torch.cat([old.y, new.y]),
        moments=Moments(*(a + b for a, b in zip(old.moments, new.moments, strict=True))),
    )
    if isinstance(old, Values) and isinstance(new, Values):
        return replace(both, gram=old.gram + new.gram, cross=old.cross + new.cross)
    counts = [record.counts for record in (old, new) if isinstance(record, Labels)]
    return replace(both, counts=added(counts))


def added(counts: Sequence[Tensor], classes: int = 0) -> Tensor:
    """Counts of classes, some of which know fewer classes than others, together."""
    total = torch.zeros(max([classes, *map(len, counts)]), dtype=torch.int64)
    for one in counts:
        total[: len(one)] += one
    return total


def within(record: Record, frame: Frame, limit: int, sites: Sites | None) -> tuple[Record, Sites | None]:
    """With no more rows than `limit`. sites: what all rows of labels are taken to say; those that stay are
    returned, too.

    Which rows stay is drawn, always alike: trees learn from them, and rows may come sorted by class or value.
    Those with the smallest and the largest value stay, between which answers lie.
    """
    extra = len(record.y) - limit
    if extra <= 0:
        return record, sites
    order = torch.randperm(len(record.y), generator=torch.Generator().manual_seed(record.n))
    if isinstance(record, Values):
        ends = torch.stack([record.y.argmin(), record.y.argmax()]).unique()
        order = torch.cat([order[~torch.isin(order, ends)], ends])
    gone, stay = order[:extra], order[extra:].sort().values
    kept = replace(record, x=record.x[stay], y=record.y[stay])
    if not isinstance(kept, Labels):
        return kept, None
    assert sites is not None
    found = said(frame.features(record.x[gone])[None], Sites(*(part[None, gone] for part in sites)))
    settled = Quadratic(*(part[0] for part in found))
    if kept.settled is not None:
        settled = Quadratic(*(a + b for a, b in zip(kept.settled, settled, strict=True)))
    return replace(kept, settled=settled), sites.rows(stay)


def standardised(record: Record, standard: Standard) -> Record:
    """The same rows in the standard's frame: exactly, from sums."""
    M, (n, first, second, (total, square)) = standard.map, record.moments
    origin, unit = standard.origin, standard.unit
    mean, spread = standard.mean, standard.spread
    sums = Moments(
        n,
        (first - n * mean) / spread,
        (second - 2 * mean * first + n * mean.square()) / spread.square(),
        torch.stack([(total - n * origin) / unit, (square - 2 * origin * total + n * origin**2) / unit**2]),
    )
    if isinstance(record, Values):
        gram = M.mT @ record.gram @ M
        cross = M.mT @ (record.cross - origin * record.gram[0]) / unit
        return replace(record, moments=sums, gram=(gram + gram.mT) / 2, cross=cross)
    settled = getattr(record, "settled", None)
    if settled is not None:
        settled = Quadratic(M.mT @ settled.precision @ M, settled.linear @ M, settled.constant)
        return replace(record, moments=sums, settled=settled)  # type: ignore[call-arg]
    return replace(record, moments=sums)
