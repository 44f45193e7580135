"""Encoders and decoders: what lies between a task's inputs and the components, and behind them.

An encoder or decoder is a frozen description; its parameters are a flat dictionary. One's own needs `draw`
and `apply`, and says whether all tasks share it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from piaget.errors import SettingError
from piaget.method.components import Components, Shape, uniform
from piaget.method.trees import Tensors
from piaget.method.values import FLAG, check_fields


def draw_affine(generator: torch.Generator, inputs: int, outputs: int, dtype: torch.dtype) -> Tensors:
    """weight (inputs, outputs): in this order its gradient x^T g needs no transposed copy."""
    return {
        "weight": uniform(generator, (inputs, outputs), inputs, dtype),
        "bias": uniform(generator, (outputs,), inputs, dtype),
    }


def affine(params: Tensors, x: Tensor) -> Tensor:
    """x (n, inputs) -> (n, outputs)."""
    return torch.addmm(params["bias"], x, params["weight"])


class Encoder(ABC):
    """How a task's inputs become what enters the first depth.

    >>> isinstance(piaget.LinearEncoder(), piaget.Encoder)
    True
    """

    shared: bool = False  # by all tasks; else each has its own
    learns: bool = True  # else it keeps the values that were drawn
    # The parameter (features, ...) by which alone inputs enter, as a matrix product, if there is one: then
    # features that are zero in all samples of a task need no work.
    feature_weight: str | None = None

    @abstractmethod
    def output_shape(self, input_shape: Shape, components: Components) -> Shape:
        """What enters the first depth, without the batch axis."""

    @abstractmethod
    def draw(
        self, generator: torch.Generator, input_shape: Shape, components: Components, dtype: torch.dtype
    ) -> Tensors:
        """The parameters of a fresh encoder."""

    @abstractmethod
    def apply(self, params: Tensors, x: Tensor) -> Tensor:
        """x (n, *input shape) -> (n, *output shape), or the same numbers in a flat (n, features)."""


@dataclass(frozen=True)
class LinearEncoder(Encoder):
    """An affine map to what components take: one a task, or one for all; learned, or random and fixed.

    >>> encoder = piaget.LinearEncoder(learns=False)
    >>> params = encoder.draw(torch.Generator(), (1, 8, 8), piaget.Dense(16), torch.float32)
    >>> encoder.apply(params, torch.zeros(5, 1, 8, 8)).shape  # (n, *input shape) -> (n, width)
    torch.Size([5, 16])
    """

    learns: bool = True
    shared: bool = False
    feature_weight = "weight"

    def __post_init__(self) -> None:
        check_fields(self, learns=FLAG, shared=FLAG)

    def output_shape(self, input_shape: Shape, components: Components) -> Shape:
        if components.hidden is None:
            raise SettingError(
                f"{type(components).__name__} components take raw inputs; expected encoder='none', or an "
                "encoder of one's own"
            )
        return components.hidden

    def draw(
        self, generator: torch.Generator, input_shape: Shape, components: Components, dtype: torch.dtype
    ) -> Tensors:
        hidden = math.prod(self.output_shape(input_shape, components))
        return draw_affine(generator, math.prod(input_shape), hidden, dtype)

    def apply(self, params: Tensors, x: Tensor) -> Tensor:
        return affine(params, x.flatten(1))


@dataclass(frozen=True)
class NoEncoder(Encoder):
    """Components take the raw inputs.

    >>> piaget.NoEncoder().output_shape((3, 8, 8), piaget.Conv(8))
    (3, 8, 8)
    """

    learns = False

    def output_shape(self, input_shape: Shape, components: Components) -> Shape:
        return input_shape

    def draw(
        self, generator: torch.Generator, input_shape: Shape, components: Components, dtype: torch.dtype
    ) -> Tensors:
        return {}

    def apply(self, params: Tensors, x: Tensor) -> Tensor:
        return x


class Decoder(ABC):
    """How what leaves the last depth becomes outputs: one column a class, or one in all.

    >>> isinstance(piaget.LinearDecoder(), piaget.Decoder)
    True
    """

    shared: bool = False
    axes: dict[str, int] = {}  # noqa: RUF012  (the axis of outputs, of each parameter that has one)

    @abstractmethod
    def draw(self, generator: torch.Generator, shape: Shape, outputs: int, dtype: torch.dtype) -> Tensors:
        """The parameters of a fresh decoder. shape: what leaves the last depth, without the batch axis."""

    @abstractmethod
    def apply(self, params: Tensors, features: Tensor) -> Tensor:
        """features (n, *shape) -> (n, outputs)."""


@dataclass(frozen=True)
class LinearDecoder(Decoder):
    """An affine map: one a task, or one for all.

    >>> piaget.Learner(decoder="shared").settings.decoder.shared
    True
    """

    shared: bool = False
    axes = {"weight": -1, "bias": -1}  # noqa: RUF012

    def __post_init__(self) -> None:
        check_fields(self, shared=FLAG)

    def draw(self, generator: torch.Generator, shape: Shape, outputs: int, dtype: torch.dtype) -> Tensors:
        return draw_affine(generator, math.prod(shape), outputs, dtype)

    def apply(self, params: Tensors, features: Tensor) -> Tensor:
        return affine(params, features.flatten(1))


@dataclass(frozen=True)
class NoDecoder(Decoder):
    """What leaves the last depth are the outputs: (n, outputs), or (n,) for one.

    >>> piaget.Learner(structure="linear").settings.decoder
    NoDecoder()
    """

    def draw(self, generator: torch.Generator, shape: Shape, outputs: int, dtype: torch.dtype) -> Tensors:
        return {}

    def apply(self, params: Tensors, features: Tensor) -> Tensor:
        return features.flatten(1) if features.ndim > 1 else features[:, None]


ENCODERS: dict[str, Encoder] = {
    "learned": LinearEncoder(),
    "fixed": LinearEncoder(learns=False),
    "shared": LinearEncoder(shared=True),
    "none": NoEncoder(),
}
DECODERS: dict[str, Decoder] = {"learned": LinearDecoder(), "shared": LinearDecoder(shared=True)}
