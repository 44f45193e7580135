"""What a structure is: a way in which one task combines the components. (The library's own: structures.py)

A structure is a frozen description; a task's own parameters of it are a dictionary of tensors. `visible`
(k,) says which components the task may use: a component that is not visible has weight 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from piaget.method.components import Components, Shape
from piaget.method.trees import Tensors, without_place

Keep = Sequence[Tensor | None]  # per depth: dropout multipliers (B, k, *shape), or None


def drop(outputs: Tensor, keep: Tensor | None) -> Tensor:
    """Component outputs (B, k, *shape) with dropout."""
    return outputs if keep is None else keep * outputs  # in this order: it lies in memory as `keep` does


@dataclass(frozen=True)
class Frame:
    """What a new task's structure is drawn for.

    >>> frame = piaget.Frame(piaget.Dense(16), [(16,), (16,), (16,)], k=4, outputs=1, dtype=torch.float32)
    >>> frame.depth
    2
    """

    components: Components
    shapes: Sequence[Shape]  # what enters depth 0, 1, ..., and what leaves the last one
    k: int  # how many components there are
    outputs: int  # columns that the task needs
    dtype: torch.dtype

    @property
    def depth(self) -> int:
        """How many components are applied one after the other."""
        return len(self.shapes) - 1


class Structure(ABC):
    """A way of combining components. `axes` names the component axis of each parameter.

    >>> issubclass(piaget.SoftOrdering, piaget.Structure)
    True
    """

    name: str
    axes: dict[str, int]
    output_axes: dict[str, int] = {}  # noqa: RUF012  (the axis of outputs, where there is one)
    # What each parameter is, along that axis, for a component that a task does not use.
    absent: dict[str, float] = {}  # noqa: RUF012
    expandable: bool = True  # can a component be added?
    shares: bool = False  # do the weights of a depth sum to 1?
    component_axis: int = -1  # of what `weights` returns
    fixed_initially: bool = True  # initial tasks keep random structures, encoders, decoders
    uses_components: bool = True

    @abstractmethod
    def draw(self, generator: torch.Generator, frame: Frame) -> Tensors:
        """Parameters for a new task."""

    def draw_initial(self, generator: torch.Generator, drawn: list[Tensors], k: int) -> list[Tensors]:
        """The fixed random structures of the initial tasks, from what `draw` gave them."""
        return drawn

    def like(self, drawn: Tensors, past: Tensors, share: float) -> Tensors:
        """Parameters for a new task between those that were drawn for it (share 0) and a past task's (towards
        share 1). past: for the components that the past task may use, which are the first ones."""
        between = {}
        for name, p in drawn.items():
            axis, then = self.axes.get(name), past[name]
            known = p if axis is None else p.narrow(axis, 0, then.shape[axis])
            blend = torch.lerp(known, then, share)
            if axis is not None:  # the others stay as they were drawn
                later = p.narrow(axis, then.shape[axis], p.shape[axis] - then.shape[axis])
                blend = torch.cat([blend, later], axis)
            between[name] = blend
        return between

    def removed(self, params: Tensors, component: int) -> Tensors:
        """A task's parameters (or moments of them) without a component that it may use."""
        axes = self.axes
        return {n: without_place(p, axes[n], component) if n in axes else p for n, p in params.items()}

    def merged(self, params: Tensors, component: int, into: int, usage: Tensor) -> Tensors:
        """The same when the component has been merged into another one, which comes before it and gets its
        weight, if the structure can say so. usage: how the task weighs components, (k, depths)."""
        return self.removed(params, component)

    def prepare(self, params: Tensors, visible: Tensor) -> Tensors:
        """What can be computed of the structure before any input is seen."""
        return params

    @abstractmethod
    def weights(
        self, components: Components, params: Tensors, depth: int, h: Tensor, visible: Tensor
    ) -> Tensor:
        """The weights of components at one depth: (k,), or (B, k) if they depend on its input h.

        `params` is what `prepare` returned.
        """

    def mix(self, components: Components, outputs: Tensor, weights: Tensor) -> Tensor:
        """All component outputs (B, k, *shape) of one depth and their weights -> their mixture."""
        return components.mix(outputs, weights)

    def transform(self, params: Tensors, depth: int, mixture: Tensor) -> Tensor:
        """What a task does to the mixture (B, *shape) of one depth before it enters the next one."""
        return mixture

    def combine(
        self, components: Components, params: Tensors, depth: int, h: Tensor, outputs: Tensor, visible: Tensor
    ) -> Tensor:
        """One depth: its input h and all component outputs -> its output."""
        weights = self.weights(components, params, depth, h, visible)
        return self.transform(params, depth, self.mix(components, outputs, weights))

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
        """All depths: h (B, *shape) -> (B, *last shape). `first`: depth 0's outputs if known.

        stacked: the components' parameters, (k, ...).
        mixed: the samples are of different tasks; `params` and `visible` have a sample axis first.
        Components are the same for all, so only how they are combined is done sample by sample.
        """
        prepared = torch.func.vmap(self.prepare)(params, visible) if mixed else self.prepare(params, visible)
        for depth, kept in enumerate(keep):
            outputs = first if first is not None and depth == 0 else components.apply(stacked, h)
            outputs = drop(outputs, kept)
            if mixed:
                one = partial(self._combine_one, components, depth)
                h = torch.func.vmap(one)(prepared, h, outputs, visible)
            else:
                h = self.combine(components, prepared, depth, h, outputs, visible)
        return h

    def _combine_one(
        self,
        components: Components,
        depth: int,
        params: Tensors,
        h: Tensor,
        outputs: Tensor,
        visible: Tensor,
    ) -> Tensor:
        return self.combine(components, params, depth, h[None], outputs[None], visible)[0]

    def first_outputs(self, components: Components, stacked: Tensors, h: Tensor) -> Tensor:
        """The outputs of depth 0 before dropout, (n, k, *shape), to be computed once."""
        return components.apply(stacked, h)

    def noise_slots(self, k: int) -> int:
        """How many components' outputs are dropped out at each depth."""
        return k

    def path(self, params: Tensors) -> Tensor | None:
        """The component of each depth, (depth,), if the structure only applies one after the other: then no
        others are computed in initialization. None: it does more, or it is not known."""
        return None

    def usage(
        self, components: Components, params: Tensors, visible: Tensor, inputs: Sequence[Tensor]
    ) -> Tensor:
        """How the task weighs components: (k, depths). inputs: what entered each depth."""
        prepared = self.prepare(params, visible)
        by_depth = [self.weights(components, prepared, depth, h, visible) for depth, h in enumerate(inputs)]
        return torch.stack([weights.mean(0) if weights.ndim > 1 else weights for weights in by_depth], 1)


def chain(
    components: Components, stacks: Tensors, h: Tensor, keep: Keep, first: Tensor | None = None
) -> Tensor:
    """One component a depth, in the order of `stacks` (depth, ...): h (B, *shape) -> (B, *last shape).

    keep, first: of that one component, as in `Structure.body`.
    """
    singles = {name: p.split(1) for name, p in stacks.items()}
    for depth, kept in enumerate(keep):
        outputs = first if depth == 0 else None
        if outputs is None:
            outputs = components.apply({name: p[depth] for name, p in singles.items()}, h)  # (B, 1, *shape)
        h = drop(outputs, kept)[:, 0]
    return h
