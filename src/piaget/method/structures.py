"""Structures: how one task combines the components. One short class each.

A structure is a frozen description; a task's own parameters of it are a dictionary of tensors. `visible`
(k,) says which components the task may use: a component that is not visible has weight 0.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from piaget.errors import SettingError
from piaget.method.components import Components, Shape, uniform
from piaget.method.trees import Tensors

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


@dataclass(frozen=True)
class SoftOrdering(Structure):
    """Soft layer ordering: at each depth, a softmax over components. logits (k, depth).

    >>> frame = piaget.Frame(piaget.Dense(16), [(16,), (16,), (16,)], k=4, outputs=1, dtype=torch.float32)
    >>> params = piaget.SoftOrdering().draw(torch.Generator(), frame)
    >>> visible = torch.tensor([True, True, True, False])
    >>> piaget.SoftOrdering().prepare(params, visible)["weights"][:, 0]
    tensor([0.3333, 0.3333, 0.3333, 0.0000])
    """

    name = "soft-ordering"
    axes = {"logits": 0}  # noqa: RUF012
    shares = True

    def draw(self, generator: torch.Generator, frame: Frame) -> Tensors:
        return {"logits": torch.ones(frame.k, frame.depth, dtype=frame.dtype)}

    def draw_initial(self, generator: torch.Generator, drawn: list[Tensors], k: int) -> list[Tensors]:
        """Random one-hot at each depth, drawn again until every component occurs."""
        shape = (len(drawn), drawn[0]["logits"].shape[1])  # (tasks, depth)
        for _ in range(1000):
            chosen = torch.randint(k, shape, generator=generator)
            if len(chosen.unique()) == k:
                break
        else:  # hardly more places than components: give each component a place, if there is one
            places = torch.randperm(chosen.numel(), generator=generator)[:k]
            chosen.view(-1)[places] = torch.randperm(k, generator=generator)[: len(places)]
        one_hot = torch.nn.functional.one_hot(chosen, k).transpose(1, 2).bool()  # (tasks, k, depth)
        return [
            {"logits": params["logits"].masked_fill(~one, float("-inf"))}
            for params, one in zip(drawn, one_hot, strict=True)
        ]

    def prepare(self, params: Tensors, visible: Tensor) -> Tensors:
        masked = params["logits"].masked_fill(~visible[:, None], float("-inf"))
        return {"weights": masked.softmax(0)}

    def weights(
        self, components: Components, params: Tensors, depth: int, h: Tensor, visible: Tensor
    ) -> Tensor:
        return params["weights"][:, depth]

    def path(self, params: Tensors) -> Tensor | None:
        used = params["logits"] > float("-inf")  # (k, depth)
        # A class derived from this one may do more with its components than to weigh them.
        alone = type(self) is SoftOrdering and bool((used.sum(0) == 1).all())
        return used.int().argmax(0) if alone else None


@dataclass(frozen=True)
class SoftGating(Structure):
    """Soft gating: at each depth, a softmax over components that depends on the input.

    Dense components: a linear gate on the depth's input. Convolutional ones: a gating network
    with the main network's layers; the input of depth j passes through layers j .. last and a
    linear head of that depth. weight (depth, k, features), bias (depth, k).

    >>> frame = piaget.Frame(piaget.Dense(16), [(16,), (16,), (16,)], k=4, outputs=1, dtype=torch.float32)
    >>> piaget.SoftGating().draw(torch.Generator(), frame)["weight"].shape  # (depth, k, features)
    torch.Size([2, 4, 16])
    """

    name = "soft-gating"
    axes = {"weight": 1, "bias": 1}  # noqa: RUF012
    shares = True

    def draw(self, generator: torch.Generator, frame: Frame) -> Tensors:
        components, shapes, depth, k = frame.components, frame.shapes, frame.depth, frame.k
        params: Tensors = {}
        if components.gated_by_network:
            layers = [components.draw(generator, shapes[0], frame.dtype) for _ in range(depth)]
            params = {f"layers/{name}": torch.stack([p[name] for p in layers]) for name in layers[0]}
        features = math.prod(shapes[-1] if components.gated_by_network else max(shapes[:-1], key=math.prod))
        params["weight"] = uniform(generator, (depth, k, features), features, frame.dtype)
        params["bias"] = uniform(generator, (depth, k), features, frame.dtype)
        return params

    def weights(
        self, components: Components, params: Tensors, depth: int, h: Tensor, visible: Tensor
    ) -> Tensor:
        if components.gated_by_network:
            layers = {n.removeprefix("layers/"): p for n, p in params.items() if n.startswith("layers/")}
            for layer in range(depth, len(params["bias"])):
                h = components.apply_one({name: p[layer] for name, p in layers.items()}, h)
        h = h.flatten(1)
        logits = torch.nn.functional.linear(
            h, params["weight"][depth, :, : h.shape[1]], params["bias"][depth]
        )
        return logits.masked_fill(~visible, float("-inf")).softmax(1)


@dataclass(frozen=True)
class LinearCombination(Structure):
    """f(x) = psi^T (Phi^T x): psi (k, outputs), one column for a value or a binary logit.

    >>> frame = piaget.Frame(piaget.Linear(), [(9,), (1,)], k=4, outputs=1, dtype=torch.float32)
    >>> piaget.LinearCombination().draw(torch.Generator(), frame)["psi"].shape
    torch.Size([4, 1])
    """

    name = "linear"
    axes = {"psi": 0}  # noqa: RUF012
    output_axes = {"psi": 1}  # noqa: RUF012
    component_axis = 0

    def draw(self, generator: torch.Generator, frame: Frame) -> Tensors:
        return {"psi": torch.rand(frame.k, frame.outputs, dtype=frame.dtype, generator=generator)}

    def draw_initial(self, generator: torch.Generator, drawn: list[Tensors], k: int) -> list[Tensors]:
        """Task t uses component t alone; with several outputs, output c uses t + c."""
        initial = []
        for t, params in enumerate(drawn):
            psi = torch.zeros_like(params["psi"])
            columns = torch.arange(psi.shape[1])
            psi[(t + columns) % k, columns] = 1
            initial.append({"psi": psi})
        return initial

    def weights(
        self, components: Components, params: Tensors, depth: int, h: Tensor, visible: Tensor
    ) -> Tensor:
        """One column an output: (k, outputs)."""
        return params["psi"].masked_fill(~visible[:, None], 0.0)

    def mix(self, components: Components, outputs: Tensor, weights: Tensor) -> Tensor:
        return outputs @ weights

    def usage(
        self, components: Components, params: Tensors, visible: Tensor, inputs: Sequence[Tensor]
    ) -> Tensor:
        return params["psi"]


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


STRUCTURES: dict[str, Structure] = {
    s.name: s for s in (LinearCombination(), SoftOrdering(), SoftGating(), Monolithic(), Alone())
}
