"""How inputs become features: a constant, and the inputs, standardised.

The frame is fixed by the first rows that are met, so that sums stay small. Later rows may lie elsewhere:
sums are standardised anew, exactly, by the moments of all tasks (`Standard`) whenever components adapt.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

CONSTANT, LINEAR = range(2)  # blocks of features, each with scales of its own


class Frame(NamedTuple):
    """features = [1, (x - center) / scale]; values of a regression are (y - origin) / unit."""

    center: Tensor  # (inputs,)
    scale: Tensor  # (inputs,)
    origin: Tensor  # ()
    unit: Tensor  # ()

    def features(self, x: Tensor) -> Tensor:
        """(n, inputs) -> (n, d), in 64 bits."""
        inputs = (x.double() - self.center) / self.scale
        return torch.cat([torch.ones_like(inputs[:, :1]), inputs], 1)

    def targets(self, y: Tensor) -> Tensor:
        """Class numbers (whole) stay as they are."""
        return (y - self.origin) / self.unit if y.is_floating_point() else y

    @property
    def width(self) -> int:
        """d, the number of features."""
        return 1 + len(self.center)

    @property
    def blocks(self) -> Tensor:
        """(d,) int64: to which block a feature belongs."""
        return torch.tensor([CONSTANT] + [LINEAR] * len(self.center))


def frame_of(x: Tensor, y: Tensor) -> Frame:
    """By rows x (n, inputs), y (n,). Columns of zeros and ones stay as they are."""
    x = x.double()
    as_is = ((x == 0) | (x == 1)).all(0)
    center, scale = x.mean(0), x.std(0, correction=0)
    center = torch.where(as_is, torch.zeros_like(center), center)
    scale = torch.where(as_is, torch.ones_like(scale), _unit(scale, center))
    origin, unit = torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64)
    if y.is_floating_point():
        origin = y.double().mean()
        unit = _unit(y.double().std(correction=0), origin)
    return Frame(center, scale, origin, unit)


def _unit(spread: Tensor, mean: Tensor) -> Tensor:
    """The spread; of what is constant but for rounding, its size: whatever units numbers have, the same."""
    size = torch.where(mean == 0, torch.ones_like(mean), mean.abs())
    return torch.where(spread > 1e-14 * mean.abs(), spread, size)


class Bend(NamedTuple):
    """Along which input tasks bend: in what they say (None), or in how much another input counts."""

    column: int
    other: int | None


class Bumps(NamedTuple):
    """Triangles over some inputs, B in all, each 1 at its middle and 0 from its sides on; some of them times
    another input. Weights of them bend, piece by piece, what is said along an input, or how much another one
    counts there."""

    column: Tensor  # (B,) int64: of which input
    left: Tensor  # (B,)
    middle: Tensor  # (B,)
    right: Tensor  # (B,)
    other: Tensor  # (B,) int64: an input o that it is multiplied by, as slope o + start
    slope: Tensor  # (B,); 0: by none
    start: Tensor  # (B,)

    @property
    def bends(self) -> list[Bend]:
        """Of each of the B bumps, what it bends."""
        parts = zip(self.column.tolist(), self.other.tolist(), self.slope.tolist(), strict=True)
        return [Bend(column, other if slope else None) for column, other, slope in parts]

    def beside(self, x: Tensor) -> Tensor:
        """Inputs (n, inputs), and the triangles beside them: (n, inputs + B), in 64 bits."""
        x = x.float().double()  # as rows are kept
        at = x[:, self.column]
        rise = (at - self.left) / (self.middle - self.left)
        fall = (self.right - at) / (self.right - self.middle)
        times = self.slope * x[:, self.other] + self.start
        return torch.cat([x, torch.minimum(rise, fall).clamp(min=0) * times], 1)


class Standard(NamedTuple):
    """Of the frame's features and values: (feature - mean) / spread, (value - origin) / unit."""

    mean: Tensor  # (d,); of the constant: 0
    spread: Tensor  # (d,); of the constant: 1
    origin: Tensor  # ()
    unit: Tensor  # ()

    @property
    def map(self) -> Tensor:
        """(d, d) M: standardised features are features @ M, and so weights of features are M @ weights."""
        M = torch.diag(1 / self.spread)
        M[0] = -self.mean / self.spread
        M[0, 0] = 1
        return M

    def frame(self, frame: Frame) -> Frame:
        """The frame whose features and values are the standardised ones."""
        center = frame.center + frame.scale * self.mean[1:]
        origin, unit = frame.origin + frame.unit * self.origin, frame.unit * self.unit
        return Frame(center, frame.scale * self.spread[1:], origin, unit)


class Moments(NamedTuple):
    """Sums over rows."""

    n: Tensor  # ()
    first: Tensor  # (d,): of features
    second: Tensor  # (d,): of their squares
    values: Tensor  # (2,): of a regression's values and of their squares


def standard_of(sums: Moments, flags: bool = True) -> Standard:
    """By all tasks' rows. A feature of zeros and ones, which equals its square, keeps its scale: else a rare
    category's weight would be expected to be huge. It is centred, unless `flags` are to stay as they are."""
    mean = sums.first / sums.n
    spread = (sums.second / sums.n - mean.square()).clamp(min=0).sqrt()
    same = (sums.first - sums.second).abs() <= 1e-9 * sums.n
    spread = torch.where(same | (spread < 1e-6), torch.ones_like(spread), spread)
    mean = torch.where(same & (not flags), torch.zeros_like(mean), mean)
    mean[0], spread[0] = 0.0, 1.0
    origin = sums.values[0] / sums.n
    unit = (sums.values[1] / sums.n - origin.square()).clamp(min=0).sqrt()
    return Standard(mean, spread, origin, unit if unit > 1e-9 else torch.ones_like(unit))
