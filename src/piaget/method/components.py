"""Components: kinds of small networks of which k copies are stored stacked and run together.

A kind is a frozen description without parameters. Parameters are dictionaries of tensors that have the
component axis first: weight (k, out, in), bias (k, out). All k components of a depth are
evaluated by one matrix product or one convolution.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from piaget.errors import SettingError, TaskError
from piaget.method.trees import Tensors, map_tree
from piaget.method.values import COUNT, SHARE, WHOLE, check_fields

Shape = tuple[int, ...]


def uniform(generator: torch.Generator, shape: Shape, fan_in: int, dtype: torch.dtype) -> Tensor:
    """PyTorch's default initialization of linear and convolutional layers."""
    bound = 1 / math.sqrt(fan_in)
    return torch.empty(shape, dtype=dtype).uniform_(-bound, bound, generator=generator)


def channels_last(images: Tensor) -> Tensor:
    """The same images (n, c, h, w), with their channels together in memory."""
    return images.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)


class Components(ABC):
    """A kind of component. `dropout` is applied to every component's output, by the model.

    >>> isinstance(piaget.Dense(32), piaget.Components)
    True
    """

    dropout: float
    gated_by_network: bool = False  # soft gating: a gating network instead of a linear gate
    whole_model: bool = False  # maps raw inputs to outputs: no encoder, no decoder
    compiles_well: bool = True  # is a step faster as machine code?
    together: int = 10  # runs in one cohort, at most: more do not make a step of one run any faster

    @property
    def hidden(self) -> Shape | None:
        """What an encoder must produce; None: components take the raw inputs."""
        return None

    @abstractmethod
    def draw(self, generator: torch.Generator, input_shape: Shape, dtype: torch.dtype) -> Tensors:
        """The parameters of one fresh component, without the component axis."""

    @abstractmethod
    def apply(self, params: Tensors, h: Tensor) -> Tensor:
        """All components at once: h (B, *shape) -> (B, k, *output shape), before dropout."""

    @abstractmethod
    def output_shape(self, shape: Shape) -> Shape:
        """The shape that leaves a component when `shape` enters it (without the batch axis)."""

    def apply_one(self, params: Tensors, h: Tensor) -> Tensor:
        """One component (no component axis in `params`): (B, *shape) -> (B, *output shape)."""
        return self.apply(map_tree(lambda p: p[None], params), h)[:, 0]

    def mix(self, outputs: Tensor, weights: Tensor) -> Tensor:
        """outputs (B, k, *shape), weights (k,) or (B, k) -> the weighted sum (B, *shape)."""
        ones = (1,) * (outputs.ndim - 2)
        return (outputs * weights.view(*weights.shape, *ones)).sum(1)

    def check_input(self, shape: Shape) -> None:  # noqa: B027  (nothing to check is a fine answer)
        """Raises TaskError if what enters the first depth cannot have `shape`."""

    def in_memory(self, outputs: Tensor) -> Tensor:
        """Outputs (..., *shape) with their axes in the order of memory, to be kept, or met by noise."""
        return outputs

    def from_memory(self, outputs: Tensor) -> Tensor:
        """The inverse."""
        return outputs


@dataclass(frozen=True)
class Dense(Components):
    """A fully connected layer of `width` units with ReLU: (width,) -> (width,).

    >>> kind = piaget.Dense(16)
    >>> one = kind.draw(torch.Generator(), (16,), torch.float32)
    >>> stacked = {name: torch.stack([p, p, p]) for name, p in one.items()}
    >>> kind.apply(stacked, torch.zeros(5, 16)).shape  # inputs (B, units) -> (B, k, units)
    torch.Size([5, 3, 16])
    """

    width: int = 64
    dropout: float = 0.5

    def __post_init__(self) -> None:
        check_fields(self, width=WHOLE, dropout=SHARE)

    @property
    def hidden(self) -> Shape | None:
        return (self.width,)

    def draw(self, generator: torch.Generator, input_shape: Shape, dtype: torch.dtype) -> Tensors:
        d = self.width
        return {
            "weight": uniform(generator, (d, d), d, dtype),
            "bias": uniform(generator, (d,), d, dtype),
        }

    def apply(self, params: Tensors, h: Tensor) -> Tensor:
        # Fewer features than `width` stand for features padded with zeros, which are not multiplied.
        weight = params["weight"][..., : h.shape[1]]  # (k, width, in)
        out = F.linear(h, weight.flatten(0, 1), params["bias"].flatten()).relu()
        return out.unflatten(1, (-1, self.width))

    def output_shape(self, shape: Shape) -> Shape:
        return (self.width,)

    def check_input(self, shape: Shape) -> None:
        if len(shape) != 1 or shape[0] > self.width:
            raise TaskError(
                f"inputs of shape {shape} enter dense components of width {self.width} directly; "
                "expected a vector that is no longer, or an encoder ('learned' or 'fixed')"
            )


@dataclass(frozen=True)
class Conv(Components):
    """A 3x3 convolution with 2x2 max-pooling and ReLU: (c, h, w) -> (channels, h', w').

    >>> piaget.Learner(components=piaget.Conv(channels=8, padding=1)).settings.components.channels
    8
    """

    channels: int = 50
    padding: int = 1
    kernel: int = 3
    pool: int = 2
    dropout: float = 0.5
    gated_by_network = True
    compiles_well = False  # the convolutions are the library's in any case; what is around them gets slower
    together = 1  # in a cohort of 4, a run takes 1.4 times as long as alone

    def __post_init__(self) -> None:
        check_fields(self, channels=WHOLE, padding=COUNT, kernel=WHOLE, pool=WHOLE, dropout=SHARE)

    def draw(self, generator: torch.Generator, input_shape: Shape, dtype: torch.dtype) -> Tensors:
        c, fan_in = self.channels, self.channels * self.kernel**2
        return {
            "weight": uniform(generator, (c, c, self.kernel, self.kernel), fan_in, dtype),
            "bias": uniform(generator, (c,), fan_in, dtype),
        }

    def apply(self, params: Tensors, h: Tensor) -> Tensor:
        # Images have fewer channels than components: the missing ones are zero, so their weights
        # are left out of the product instead of padding the image.
        weight = params["weight"][:, :, : h.shape[1]].flatten(0, 1)  # (k * channels, c, 3, 3)
        # With channels last in memory, the convolutions of a CPU take half the time.
        h, weight = channels_last(h), channels_last(weight)
        out = F.conv2d(h, weight, params["bias"].flatten(), padding=self.padding)
        # Pooling first: ReLU commutes with it and then has a quarter of the work.
        return F.max_pool2d(out, self.pool).relu().unflatten(1, (-1, self.channels))

    def mix(self, outputs: Tensor, weights: Tensor) -> Tensor:
        # As a product of matrices, so that the weighted outputs need not be written and read again.
        rows = self.in_memory(outputs)  # (B, k, h, w, c)
        weights = weights.expand(rows.shape[0], -1)[:, None]  # (B, 1, k); len() would fix B in an export
        return self.from_memory((weights @ rows.flatten(2))[:, 0].unflatten(1, rows.shape[2:]))

    def in_memory(self, outputs: Tensor) -> Tensor:
        return outputs.movedim(-3, -1)

    def from_memory(self, outputs: Tensor) -> Tensor:
        return outputs.movedim(-1, -3)

    def output_shape(self, shape: Shape) -> Shape:
        sides = tuple((s + 2 * self.padding - self.kernel + 1) // self.pool for s in shape[1:])
        return (self.channels, *sides)

    def check_input(self, shape: Shape) -> None:
        if len(shape) != 3 or shape[0] > self.channels:
            raise TaskError(
                f"inputs of shape {shape} enter convolutional components; expected images "
                f"(channels, height, width) with at most {self.channels} channels"
            )


@dataclass(frozen=True)
class Linear(Components):
    """A linear model phi^T x + b with one output: (d,) -> (). Used by linear combinations.

    >>> piaget.Learner(structure="linear").settings.components
    Linear(dropout=0.0)
    """

    dropout: float = 0.0
    whole_model = True

    def __post_init__(self) -> None:
        check_fields(self, dropout=SHARE)

    def draw(self, generator: torch.Generator, input_shape: Shape, dtype: torch.dtype) -> Tensors:
        d = math.prod(input_shape)
        return {
            "weight": uniform(generator, (1, d), d, dtype),
            "bias": uniform(generator, (1,), d, dtype),
        }

    def apply(self, params: Tensors, h: Tensor) -> Tensor:
        features, expected = h.flatten(1), params["weight"].shape[-1]
        if features.shape[1] != expected:
            raise TaskError(
                f"{features.shape[1]} features enter linear components that have {expected}; "
                "linear models need the same features in every task"
            )
        # Few components, many samples: with these as columns, the products (and those of the gradient) are
        # two to five times as fast.
        return (params["weight"][:, 0] @ features.mT).mT + params["bias"][:, 0]

    def output_shape(self, shape: Shape) -> Shape:
        return ()


@dataclass(frozen=True)
class Module(Components):
    """Components made of any shape-preserving `nn.Module`: `factory()` returns a fresh one.

    The module must be a pure function of its parameters and input: no buffers, no randomness of
    its own (give `dropout` here instead). `shape` is what enters and leaves it; without it, the
    components take the raw inputs, and there is no encoder.

    >>> kind = piaget.Module(lambda: torch.nn.Linear(16, 16), shape=(16,))
    >>> piaget.Learner(components=kind).settings.components is kind
    True
    """

    factory: Callable[[], nn.Module]
    shape: Shape | None = None
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self, dropout=SHARE)
        if not callable(self.factory):
            raise SettingError(f"factory={self.factory!r}; expected a function that returns an nn.Module")
        if self.shape is not None and not (
            isinstance(self.shape, tuple) and self.shape and all(map(WHOLE.allows, self.shape))
        ):
            raise SettingError(f"shape={self.shape!r}; expected a tuple of whole numbers, as (64,)")

    @property
    def hidden(self) -> Shape | None:
        return self.shape

    def _fresh(self) -> nn.Module:
        module = self.factory()
        if not isinstance(module, nn.Module):
            raise SettingError(f"the factory returned {type(module).__name__}; expected an nn.Module")
        stateful = [name for name, _ in module.named_buffers()]
        noisy = [name for name, m in module.named_modules() if isinstance(m, nn.modules.dropout._DropoutNd)]
        if stateful or noisy:
            raise SettingError(
                f"component module {type(module).__name__} has buffers {stateful} and dropout "
                f"layers {noisy}; expected neither (use Module(..., dropout=p) for dropout)"
            )
        return module

    def draw(self, generator: torch.Generator, input_shape: Shape, dtype: torch.dtype) -> Tensors:
        # A module's own initialization uses the global generator: seed it from the run's
        # generator, and put the global state back.
        seed = int(torch.randint(2**62, (), generator=generator))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module = self._fresh()
        shape = tuple(module.to(dtype)(torch.zeros(2, *input_shape, dtype=dtype)).shape[1:])
        if shape != tuple(input_shape):
            raise SettingError(
                f"component module {type(module).__name__} turns shape {tuple(input_shape)} into "
                f"{shape}; expected a module that preserves the shape"
            )
        return {name.replace(".", ":"): p.detach() for name, p in module.named_parameters()}

    def check_input(self, shape: Shape) -> None:
        try:
            self.draw(torch.Generator(), shape, torch.float32)
        except RuntimeError as error:
            raise TaskError(f"inputs of shape {shape} do not go through the component: {error}") from error

    def apply(self, params: Tensors, h: Tensor) -> Tensor:
        _skeleton(self.factory)  # made outside of vmap, in which nothing random may be called
        return torch.func.vmap(lambda own: self.call(own, h), out_dims=1)(params)

    def call(self, own: Tensors, h: Tensor) -> Tensor:
        """One module, with parameters of its own: (B, *shape) -> (B, *shape)."""
        named = {name.replace(":", "."): p for name, p in own.items()}
        return torch.func.functional_call(_skeleton(self.factory), named, (h,))

    def output_shape(self, shape: Shape) -> Shape:
        return shape


@functools.cache
def _skeleton(factory: Callable[[], nn.Module]) -> nn.Module:
    """A module without storage: only its forward pass is wanted."""
    with torch.device("meta"):
        return factory()


KINDS: dict[str, Components] = {"dense": Dense(), "conv": Conv(), "linear": Linear()}
