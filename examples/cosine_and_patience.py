"""A rate that falls along half a cosine within each stage, with a warm-up; and stages that end when the
validation score has not risen for some epochs."""

from collections.abc import Sequence
from dataclasses import dataclass

import piaget


@dataclass(frozen=True)
class WarmCosine(piaget.RateSchedule):
    warmup: int = 2
    least: float = 0.01

    def factor(self, epoch: int, epochs: int) -> float:
        cosine = piaget.CosineRate(self.least)
        return min(1.0, (epoch + 1) / (self.warmup + 1)) * cosine.factor(epoch, epochs)


@dataclass(frozen=True)
class NoProgress(piaget.StopRule):
    epochs: int = 5
    least: float = 0.002  # what counts as progress

    def stops(self, gains: Sequence[float]) -> bool:
        before = gains[: -self.epochs]
        return bool(before) and max(gains[-self.epochs :]) < max(before) + self.least
