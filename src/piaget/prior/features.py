"""How inputs become features: a constant, the inputs, and (if wanted) bends at fixed places.

The frame is fixed by the first rows that are met. Later ones may lie elsewhere: statistics are in the frame's
coordinates, and are standardised anew, exactly, from all tasks' moments (`Standard`), whenever components adapt.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

CONSTANT, LINEAR, BENT = range(3)  # blocks of features, each with scales of its own


class Frame(NamedTuple):
    """features = [1, (x - center) / scale, max(that - knot, 0), ...]"""

    center: Tensor  # (inputs,)
    scale: Tensor  # (inputs,)
    bent: Tensor  # (bends,) int64: the input that is bent,
    knots: Tensor  # (bends,): and where

    def features(self, x: Tensor) -> Tensor:
        """(n, inputs) -> (n, d), in 64 bits."""
        inputs = (x.double() - self.center) / self.scale
        bends = (inputs[:, self.bent] - self.knots).clamp(min=0)
        return torch.cat([torch.ones(len(x), 1, dtype=torch.float64), inputs, bends], 1)

    @property
    def width(self) -> int:
        """d, the number of features."""
        return 1 + len(self.center) + len(self.knots)

    @property
    def blocks(self) -> Tensor:
        """(d,) int64: to which block a feature belongs."""
        sizes = ((CONSTANT, 1), (LINEAR, len(self.center)), (BENT, len(self.knots)))
        return torch.cat([torch.full((n,), block) for block, n in sizes])


def frame_of(x: Tensor, bends: int = 0) -> Frame:
    """From rows (n, inputs). Columns of zeros and ones stay as they are; others are standardised, and bent
    at `bends` quantiles."""
    x = x.double()
    as_is = ((x == 0) | (x == 1)).all(0)
    center, scale = x.mean(0), x.std(0, correction=0)
    center = torch.where(as_is, torch.zeros_like(center), center)
    scale = torch.where(as_is | ~(scale > 1e-12 * (1 + center.abs())), torch.ones_like(scale), scale)
    places = torch.arange(1, bends + 1, dtype=torch.float64) / (bends + 1)
    bent, knots = [], []
    for j in torch.nonzero(~as_is).flatten().tolist() if bends else []:
        inputs = (x[:, j] - center[j]) / scale[j]
        found = torch.unique(torch.quantile(inputs, places))
        for knot in found[(found > inputs.min()) & (found < inputs.max())].tolist():
            bent.append(j)
            knots.append(knot)
    return Frame(center, scale, torch.tensor(bent, dtype=torch.int64), torch.tensor(knots, dtype=torch.float64))


class Standard(NamedTuple):
    """Features standardised: (feature - mean) / spread. The constant is as it is."""

    mean: Tensor  # (d,)
    spread: Tensor  # (d,)

    @property
    def map(self) -> Tensor:
        """(d, d) M: standardised features are features @ M, and so weights of features are M @ weights."""
        M = torch.diag(1 / self.spread)
        M[0] = -self.mean / self.spread
        M[0, 0] = 1
        return M


def standard_of(n: Tensor, first: Tensor, second: Tensor) -> Standard:
    """From all rows: their number (), the sums (d,) of features and of their squares.

    A feature of zeros and ones, which equals its square, is centred but keeps its scale: else a rare
    category's weight would be expected to be huge.
    """
    mean = first / n
    spread = (second / n - mean.square()).clamp(min=0).sqrt()
    same = (first - second).abs() <= 1e-9 * n
    ones = torch.ones_like(mean)
    spread = torch.where(same | (spread < 1e-6), ones, spread)
    mean, spread = mean.clone(), spread.clone()
    mean[0], spread[0] = 0.0, 1.0
    return Standard(mean, spread)
