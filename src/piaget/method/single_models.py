"""Structures that combine nothing: the baselines without components."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from piaget.errors import SettingError
from piaget.method.combining import Frame, Keep, Structure, chain
from piaget.method.components import Components
from piaget.method.trees import Tensors


@dataclass(frozen=True)
class Monolithic(Structure):
    """No components: depth j is component j, for every task. The baseline's structure.

    >>> piaget.Learner(structure="monolithic", algorithm="joint").settings.structure
    Monolithic()
    """

    name = "monolithic"
    axes = {}  # noqa: RUF012
    expandable = False
    fixed_initially = False  # there is no structure to protect: everything learns

    def draw(self, generator: torch.Generator, frame: Frame) -> Tensors:
        check_single_model(frame)
        return {}

    def body(
        self,
        components: Components,
        stacked: Tensors,
        params: Tensors,
        h: Tensor,
        keep: Keep,
        visible: Tensor,
        first: Tensor | None = None,
        mixed: bool = False,
    ) -> Tensor:
        return chain(components, stacked, h, keep, first)

    def weights(
        self, components: Components, params: Tensors, depth: int, h: Tensor, visible: Tensor
    ) -> Tensor:
        return torch.arange(len(visible), device=visible.device).eq(depth).to(h.dtype)

    def first_outputs(self, components: Components, stacked: Tensors, h: Tensor) -> Tensor:
        return components.apply({name: p[:1] for name, p in stacked.items()}, h)

    def noise_slots(self, k: int) -> int:
        return 1


@dataclass(frozen=True)
class Alone(Structure):
    """A network of its own for each task, and nothing shared: layers (depth, ...), each drawn as a component
    is. The baseline that tells whether sharing helps.

    >>> piaget.Learner(algorithm="alone", adaptation="fm").settings.structure
    Alone()
    """

    name = "alone"
    axes = {}  # noqa: RUF012
    expandable = False
    fixed_initially = False
    uses_components = False

    def draw(self, generator: torch.Generator, frame: Frame) -> Tensors:
        check_single_model(frame)
        layers = [frame.components.draw(generator, frame.shapes[0], frame.dtype) for _ in range(frame.depth)]
        return {name: torch.stack([layer[name] for layer in layers]) for name in layers[0]}

    def body(
        self,
        components: Components,
        stacked: Tensors,
        params: Tensors,
        h: Tensor,
        keep: Keep,
        visible: Tensor,
        first: Tensor | None = None,
        mixed: bool = False,
    ) -> Tensor:
        if not mixed:
            return chain(components, params, h, keep)

        def one(params: Tensors, h: Tensor, *kept: Tensor) -> Tensor:
            noise: Keep = [k[None] for k in kept] if kept else [None] * len(keep)
            return chain(components, params, h[None], noise)[0]

        return torch.func.vmap(one)(params, h, *(kept for kept in keep if kept is not None))

    def weights(
        self, components: Components, params: Tensors, depth: int, h: Tensor, visible: Tensor
    ) -> Tensor:
        return torch.zeros(len(visible), dtype=h.dtype, device=h.device)

    def combine(
        self, components: Components, params: Tensors, depth: int, h: Tensor, outputs: Tensor, visible: Tensor
    ) -> Tensor:
        return components.apply_one({name: p[depth] for name, p in params.items()}, h)

    def noise_slots(self, k: int) -> int:
        return 1


def check_single_model(frame: Frame) -> None:
    """Raises an error if the task needs more outputs than a single linear model has."""
    if frame.components.whole_model and frame.outputs > 1:
        raise SettingError(
            f"a single linear model has one output, but the task has {frame.outputs} classes; "
            "expected binary or regression tasks, or dense components"
        )
