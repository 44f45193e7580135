"""The average of parameters over the last steps of an epoch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


class Tail:
    """Over some of the last turns of an epoch, of each run its own number. What learned becomes the average.

    It is of one epoch, since states are kept between epochs: so a run that goes on needs nothing else. With a
    share of 0 (a run that is in another epoch than its last one), it is what the last turn left.
    """

    def __init__(
        self, params: Sequence[Tensor], turns: Sequence[int], shares: Sequence[float], cohort: bool
    ) -> None:
        """params: ([R,] ...), which learn. turns, shares: of each run."""
        self.params, self.turns, self.cohort = params, turns, cohort
        self.averages = [p.clone() for p in params]
        self.lengths = [max(1, math.ceil(share * n)) for share, n in zip(shares, turns, strict=True)]

    def add(self, turn: int) -> None:
        """After a turn, counted from 0: 1/n of what is there now, if it is the n-th of the tail."""
        weights = [
            0.0 if turn >= n else 1 / max(1, turn + 1 - (n - length))  # a run may have had all its turns
            for n, length in zip(self.turns, self.lengths, strict=True)
        ]
        for average, p in zip(self.averages, self.params, strict=True):
            weight = torch.tensor(weights, dtype=p.dtype, device=p.device)  # (R,)
            average.lerp_(p, weight.view(-1, *(1,) * (p.ndim - 1)) if self.cohort else weight[0])

    def put(self) -> None:
        """What learned becomes its average."""
        for average, p in zip(self.averages, self.params, strict=True):
            p.copy_(average)
