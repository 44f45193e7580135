"""Rate schedules: how the learning rate changes within a stage."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from piaget.method.values import NOT_NEGATIVE, SHARE, check_fields


class Moment(NamedTuple):
    """A point of a stage on a task. Epochs and steps are counted from 0.

    >>> piaget.Moment("adaptation", adapts=True, epoch=1, epochs=4, step=5, steps=10).share
    0.375
    """

    stage: str
    adapts: bool  # does the stage adapt?
    epoch: int
    epochs: int  # of this kind of stage, on the task
    step: int = 0
    steps: int = 1  # of the epoch

    @property
    def share(self) -> float:
        """How much of the stage has passed, from 0 to just below 1."""
        return (self.epoch + self.step / max(self.steps, 1)) / max(self.epochs, 1)


class RateSchedule(ABC):
    """How the learning rate changes over the epochs of one stage on one task.

    >>> class Halving(piaget.RateSchedule):
    ...     def factor(self, epoch, epochs):
    ...         return 0.5**epoch
    >>> Halving().factor(2, 10)
    0.25
    """

    by_step: bool = False  # is `at` to be asked before each step? Else before each epoch

    @abstractmethod
    def factor(self, epoch: int, epochs: int) -> float:
        """What the rate is multiplied by in this epoch, counted from 0, out of `epochs` of the same stage."""

    def at(self, moment: Moment) -> float:
        """The same, for those that tell stages apart, or change within an epoch."""
        return self.factor(moment.epoch, moment.epochs)


@dataclass(frozen=True)
class ConstantRate(RateSchedule):
    """The rate stays as it is.

    >>> piaget.ConstantRate().factor(7, 10)
    1.0
    """

    def factor(self, epoch: int, epochs: int) -> float:
        return 1.0


@dataclass(frozen=True)
class CosineRate(RateSchedule):
    """From the whole rate down to `least` of it, along half a cosine.

    >>> [round(piaget.CosineRate(least=0.1).factor(epoch, 4), 2) for epoch in range(4)]
    [1.0, 0.87, 0.55, 0.23]
    """

    least: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self, least=SHARE)

    def factor(self, epoch: int, epochs: int) -> float:
        share = epoch / max(epochs, 1)
        return self.least + (1 - self.least) * (1 + math.cos(math.pi * share)) / 2


@dataclass(frozen=True)
class AdaptationCosine(RateSchedule):
    """In stages that adapt, from `start` of the rate down to `least` of it along half a cosine, step by step,
    since adaptation may be a single epoch; in all other stages, the rate stays as it is.

    Raises `SettingError` if `start` or `least` is negative.

    >>> schedule = piaget.AdaptationCosine(start=0.5, least=0.1)
    >>> moments = [piaget.Moment("adaptation", True, 0, 1, step, 4) for step in range(4)]
    >>> [round(schedule.at(moment), 2) for moment in moments]
    [0.5, 0.44, 0.3, 0.16]
    >>> schedule.at(piaget.Moment("assimilation", False, 3, 99))
    1.0
    """

    start: float = 1.0
    least: float = 0.0
    by_step = True

    def __post_init__(self) -> None:
        check_fields(self, start=NOT_NEGATIVE, least=NOT_NEGATIVE)

    def factor(self, epoch: int, epochs: int) -> float:
        return self.at(Moment("adaptation", True, epoch, epochs))

    def at(self, moment: Moment) -> float:
        if not moment.adapts:
            return 1.0
        return self.least + (self.start - self.least) * (1 + math.cos(math.pi * moment.share)) / 2


RATE_SCHEDULES: dict[str, RateSchedule] = {
    "constant": ConstantRate(),
    "cosine": CosineRate(),
    "adaptation-cosine": AdaptationCosine(),
}
