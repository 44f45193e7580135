"""Optimizers, rate schedules, stop rules, kept epochs: how parameters move, how fast, for how long, and what
is kept of it.

An optimizer is elementwise, so it takes tensors of one run or of many as they are. It writes into the tensors
it is given: at a few hundred kilobytes a tensor, allocating new ones costs more than the arithmetic.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from piaget.method.values import NOT_NEGATIVE, SHARE, WHOLE, check_fields, one_of


class Optimizer(ABC):
    """How a parameter moves along its gradient.

    A parameter that a step does not touch (`live` 0) keeps its value and its slots: an update must multiply
    all that it changes by `live`, or by factors that are 0 then.

    >>> piaget.Learner(optimizer=piaget.SGD(momentum=0.9)).settings.optimizer
    SGD(momentum=0.9, weight_decay=0.0)
    """

    slots: tuple[str, ...] = ()  # tensors kept for each parameter, zeros at first

    @property
    def moves_without_gradient(self) -> bool:
        """May a parameter move whose gradient was always 0? Then none can be left out of a step."""
        return True

    @abstractmethod
    def factors(self, live: Tensor, count: Tensor, rate: Tensor) -> list[Tensor]:
        """What depends on the number of updates alone, for all groups of parameters at once, in float64.

        live: (..., n) 1 or 0; count: (..., n) the number of updates with this one, at least 1; rate: (..., 1)
        """

    @abstractmethod
    def update_(
        self, p: Tensor, gradient: Tensor, slots: Sequence[Tensor], factors: Sequence[Tensor]
    ) -> None:
        """One step for one parameter, in place. The factors have p's dtype, and broadcast to its shape."""


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam with PyTorch's defaults; with `weight_decay`, AdamW.

    Raises `SettingError` for numbers that make no sense.

    >>> piaget.Adam(weight_decay=0.01).moves_without_gradient
    True
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    slots = ("mean", "square")

    def __post_init__(self) -> None:
        check_fields(self, beta1=SHARE, beta2=SHARE, epsilon=SHARE, weight_decay=NOT_NEGATIVE)

    @property
    def moves_without_gradient(self) -> bool:
        return self.weight_decay > 0

    def factors(self, live: Tensor, count: Tensor, rate: Tensor) -> list[Tensor]:
        scale = rate * live / (1 - self.beta1**count)
        correction = (1 - self.beta2**count).rsqrt()
        factors = [live * (1 - self.beta1), live * (1 - self.beta2), scale, correction]
        return [*factors, 1 - rate * live * self.weight_decay] if self.weight_decay > 0 else factors

    def update_(
        self, p: Tensor, gradient: Tensor, slots: Sequence[Tensor], factors: Sequence[Tensor]
    ) -> None:
        mean, square = slots
        first, second, scale, correction = factors[:4]
        mean.lerp_(gradient, first)
        square.lerp_(gradient.square(), second)
        # sqrt(v) as v / sqrt(v): the library's sqrt takes seven times longer over zeros, and most
        # weights of an image's dark pixels have v = 0. `tiny` only keeps 0 / 0 away.
        root = (square + torch.finfo(p.dtype).tiny).rsqrt_().mul_(square)
        denominator = root.mul_(correction).add_(self.epsilon)
        if self.weight_decay > 0:
            p.mul_(factors[4])
        p.addcdiv_(mean * scale, denominator, value=-1)


@dataclass(frozen=True)
class SGD(Optimizer):
    """Gradient descent, with momentum if it is above 0.

    Raises `SettingError` for numbers that make no sense.

    >>> piaget.SGD().slots
    ('velocity',)
    """

    momentum: float = 0.0
    weight_decay: float = 0.0
    slots = ("velocity",)

    def __post_init__(self) -> None:
        check_fields(self, momentum=SHARE, weight_decay=NOT_NEGATIVE)

    @property
    def moves_without_gradient(self) -> bool:
        return self.weight_decay > 0

    def factors(self, live: Tensor, count: Tensor, rate: Tensor) -> list[Tensor]:
        # velocity <- momentum x velocity + gradient, where it is live; else it stays.
        keep = 1 - live * (1 - self.momentum)
        return [keep, live, rate * live, 1 - rate * live * self.weight_decay]

    def update_(
        self, p: Tensor, gradient: Tensor, slots: Sequence[Tensor], factors: Sequence[Tensor]
    ) -> None:
        (velocity,) = slots
        keep, live, scale, decay = factors
        velocity.mul_(keep).add_(live * gradient)
        p.mul_(decay).sub_(scale * velocity)


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


class StopRule(ABC):
    """When a stage on a task ends before its last epoch, by scores on validation data.

    >>> class Enough(piaget.StopRule):
    ...     def stops(self, gains):
    ...         return gains[-1] > 0.99
    >>> Enough().stops([0.8, 0.995])
    True
    """

    watches: bool = True  # does it need scores? They cost an evaluation after every epoch

    @abstractmethod
    def stops(self, gains: Sequence[float]) -> bool:
        """Asked after every epoch of a stage. gains: the validation score of each of its epochs so far, more
        being better (of a regression, minus the error)."""


@dataclass(frozen=True)
class NeverStop(StopRule):
    """Every stage has all its epochs.

    >>> piaget.NeverStop().stops([0.9, 0.1])
    False
    """

    watches = False

    def stops(self, gains: Sequence[float]) -> bool:
        return False


@dataclass(frozen=True)
class Patience(StopRule):
    """Stops when the best score of a stage is `epochs` epochs old.

    Raises `SettingError` if `epochs` is not a whole number from 1 on.

    >>> piaget.Patience(2).stops([0.7, 0.9, 0.8]), piaget.Patience(2).stops([0.7, 0.9, 0.8, 0.8])
    (False, True)
    """

    epochs: int = 10

    def __post_init__(self) -> None:
        check_fields(self, epochs=WHOLE)

    def stops(self, gains: Sequence[float]) -> bool:
        best = max(range(len(gains)), key=gains.__getitem__)
        return len(gains) - 1 - best >= self.epochs


class ValidationScores(NamedTuple):
    """What validation data says of a task after an epoch.

    >>> piaget.ValidationScores(gain=0.9, loss=0.3)
    ValidationScores(gain=0.9, loss=0.3)
    """

    gain: float  # its score, more being better (of a regression, minus the error)
    loss: float


class KeptEpoch(ABC):
    """Which epoch's parameters a stage ends with, if nothing learns in it but what is a task's own, and the
    candidate component: then one can go back to an epoch, and nothing changes for other tasks.

    >>> class FirstGood(piaget.KeptEpoch):
    ...     def prefers(self, seen):
    ...         return all(scores.gain < 0.9 for scores in seen[:-1])
    >>> seen = [piaget.ValidationScores(gain, 0.0) for gain in (0.8, 0.92, 0.95)]
    >>> [FirstGood().prefers(seen[:epochs]) for epochs in (1, 2, 3)]  # the second epoch stays
    [True, True, False]
    """

    watches: bool = True  # does it need validation data? An evaluation costs
    every: int = 1  # it is looked at after each so many epochs of a stage, and after the last

    @abstractmethod
    def prefers(self, seen: Sequence[ValidationScores]) -> bool:
        """Is the last one of these epochs, of one task in one stage, the one to keep so far?"""


@dataclass(frozen=True)
class LastEpoch(KeptEpoch):
    """A stage ends with what its last epoch left. This is the default, and what the paper does.

    >>> piaget.Learner(kept_epoch="last").settings.kept_epoch
    LastEpoch()
    """

    watches = False

    def prefers(self, seen: Sequence[ValidationScores]) -> bool:
        return True


@dataclass(frozen=True)
class BestEpoch(KeptEpoch):
    """A stage ends with what its best epoch on validation data left: parameters, and the optimizer's numbers.
    Of equals, the first is the best.

    by: "loss", which tells epochs apart that classify the same samples rightly; or "score", which is what is
    reported in the end, and then the loss.

    Raises `SettingError` if `every` is not a whole number from 1 on, or `by` is another word.

    >>> seen = [piaget.ValidationScores(gain=0.9, loss=0.5), piaget.ValidationScores(gain=0.8, loss=0.4)]
    >>> piaget.BestEpoch().prefers(seen), piaget.BestEpoch(by="score").prefers(seen)
    (True, False)
    """

    every: int = 1
    by: str = "loss"

    def __post_init__(self) -> None:
        check_fields(self, every=WHOLE, by=one_of("loss", "score"))

    def prefers(self, seen: Sequence[ValidationScores]) -> bool:
        *before, last = ((one.gain * (self.by == "score"), -one.loss) for one in seen)
        return not before or last > max(before)


OPTIMIZERS: dict[str, Optimizer] = {"adam": Adam(), "sgd": SGD()}
RATE_SCHEDULES: dict[str, RateSchedule] = {
    "constant": ConstantRate(),
    "cosine": CosineRate(),
    "adaptation-cosine": AdaptationCosine(),
}
STOP_RULES: dict[str, StopRule] = {"never": NeverStop(), "patience": Patience()}
KEPT_EPOCHS: dict[str, KeptEpoch] = {"last": LastEpoch(), "best": BestEpoch()}
