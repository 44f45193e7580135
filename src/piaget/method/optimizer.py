"""Optimizers: how parameters move.

An optimizer is elementwise, so it takes tensors of one run or of many as they are. It writes into the tensors
it is given: at a few hundred kilobytes a tensor, allocating new ones costs more than the arithmetic.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from piaget.method.values import NOT_NEGATIVE, SHARE, check_fields


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


OPTIMIZERS: dict[str, Optimizer] = {"adam": Adam(), "sgd": SGD()}
