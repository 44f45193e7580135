"""Structures: how one task combines the components. One short class each.

A structure is a frozen description; a task's own structure parameters are a tree. `visible`
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
from piaget.method.trees import Tree

Keep = Sequence[Tensor | None]  # per depth: dropout multipliers (B, k, *shape), or None


def drop(outputs: Tensor, keep: Tensor | None) -> Tensor:
    return outputs if keep is None else keep * outputs  # in this order: it lies in memory as `keep` does


class Structure(ABC):
    """A way of combining components. `axes` names the component axis of each parameter."""

    name: str
    axes: dict[str, int]
    output_axes: dict[str, int] = {}  # noqa: RUF012  (the axis of outputs, where there is one)
    expandable: bool = True  # can a component be added?
    shares: bool = False  # do the weights of a depth sum to 1?
    component_axis: int = -1  # of what `weights` returns
    fixed_initially: bool = True  # initial tasks keep random structures, encoders, decoders

    @abstractmethod
    def draw(
        self,
        generator: torch.Generator,
        kind: Components,
        shapes: Sequence[Shape],
        k: int,
        outputs: int,
        dtype: torch.dtype,
    ) -> Tree:
        """Parameters for a new task. shapes: what enters depth 0, 1, ..., and what leaves."""

    def draw_initial(self, generator: torch.Generator, drawn: list[Tree], k: int) -> list[Tree]:
        """The fixed random structures of the initial tasks, from what `draw` gave them."""
        return drawn

    def prepare(self, own: Tree, visible: Tensor) -> Tree:
        """What can be computed of the structure before any input is seen."""
        return own

    @abstractmethod
    def weights(self, kind: Components, own: Tree, depth: int, h: Tensor, visible: Tensor) -> Tensor:
        """The weights of components at one depth: (k,), or (B, k) if they depend on its input h.

        `own` is what `prepare` returned.
        """

    def mix(self, kind: Components, outputs: Tensor, weights: Tensor) -> Tensor:
        """All component outputs (B, k, *shape) of one depth and their weights -> its output."""
        return kind.mix(outputs, weights)

    def combine(
        self, kind: Components, own: Tree, depth: int, h: Tensor, outputs: Tensor, visible: Tensor
    ) -> Tensor:
        """One depth: its input h and all component outputs -> its output."""
        return self.mix(kind, outputs, self.weights(kind, own, depth, h, visible))

    def body(
        self,
        kind: Components,
        params: Tree,
        own: Tree,
        h: Tensor,
        keep: Keep,
        visible: Tensor,
        first: Tensor | None = None,
        mixed: bool = False,
    ) -> Tensor:
        """All depths: h (B, *shape) -> (B, *last shape). `first`: depth 0's outputs if known.

        mixed: the samples are of different tasks; `own` and `visible` have a sample axis first.
        Components are the same for all, so only how they are combined is done sample by sample.
        """
        own = torch.func.vmap(self.prepare)(own, visible) if mixed else self.prepare(own, visible)
        for depth, kept in enumerate(keep):
            outputs = first if first is not None and depth == 0 else kind.apply(params, h)
            outputs = drop(outputs, kept)
            if mixed:
                h = torch.func.vmap(partial(self._combine_one, kind, depth))(own, h, outputs, visible)
            else:
                h = self.combine(kind, own, depth, h, outputs, visible)
        return h

    def _combine_one(
        self, kind: Components, depth: int, own: Tree, h: Tensor, outputs: Tensor, visible: Tensor
    ) -> Tensor:
        return self.combine(kind, own, depth, h[None], outputs[None], visible)[0]

    def first_outputs(self, kind: Components, params: Tree, h: Tensor) -> Tensor:
        """The outputs of depth 0 before dropout, (n, k, *shape), to be computed once."""
        return kind.apply(params, h)

    def noise_slots(self, k: int) -> int:
        """How many components' outputs are dropped out at each depth."""
        return k

    def usage(self, kind: Components, own: Tree, visible: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        """How the task weighs components: (k, depths). inputs: what entered each depth."""
        own = self.prepare(own, visible)
        found = [self.weights(kind, own, depth, h, visible) for depth, h in enumerate(inputs)]
        return torch.stack([weights.mean(0) if weights.ndim > 1 else weights for weights in found], 1)


@dataclass(frozen=True)
class SoftOrdering(Structure):
    """Soft layer ordering: at each depth, a softmax over components. logits (k, depth)."""

    name = "soft-ordering"
    axes = {"logits": 0}  # noqa: RUF012
    shares = True

    def draw(
        self,
        generator: torch.Generator,
        kind: Components,
        shapes: Sequence[Shape],
        k: int,
        outputs: int,
        dtype: torch.dtype,
    ) -> Tree:
        return {"logits": torch.ones(k, len(shapes) - 1, dtype=dtype)}

    def draw_initial(self, generator: torch.Generator, drawn: list[Tree], k: int) -> list[Tree]:
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
            {"logits": own["logits"].masked_fill(~one, float("-inf"))}
            for own, one in zip(drawn, one_hot, strict=True)
        ]

    def prepare(self, own: Tree, visible: Tensor) -> Tree:
        masked = own["logits"].masked_fill(~visible[:, None], float("-inf"))
        return {"weights": masked.softmax(0)}

    def weights(self, kind: Components, own: Tree, depth: int, h: Tensor, visible: Tensor) -> Tensor:
        return own["weights"][:, depth]


@dataclass(frozen=True)
class SoftGating(Structure):
    """Soft gating: at each depth, a softmax over components that depends on the input.

    Dense components: a linear gate on the depth's input. Convolutional ones: a gating network
    with the main network's layers; the input of depth j passes through layers j .. last and a
    linear head of that depth. weight (depth, k, features), bias (depth, k).
    """

    name = "soft-gating"
    axes = {"weight": 1, "bias": 1}  # noqa: RUF012
    shares = True

    def draw(
        self,
        generator: torch.Generator,
        kind: Components,
        shapes: Sequence[Shape],
        k: int,
        outputs: int,
        dtype: torch.dtype,
    ) -> Tree:
        depth = len(shapes) - 1
        own: Tree = {}
        if kind.gated_by_network:
            layers = [kind.draw(generator, shapes[0], dtype) for _ in range(depth)]
            own["layers"] = {name: torch.stack([p[name] for p in layers]) for name in layers[0]}
        features = math.prod(shapes[-1] if kind.gated_by_network else max(shapes[:-1], key=math.prod))
        own["weight"] = uniform(generator, (depth, k, features), features, dtype)
        own["bias"] = uniform(generator, (depth, k), features, dtype)
        return own

    def weights(self, kind: Components, own: Tree, depth: int, h: Tensor, visible: Tensor) -> Tensor:
        if kind.gated_by_network:
            for layer in range(depth, len(own["bias"])):
                h = kind.apply_one({name: p[layer] for name, p in own["layers"].items()}, h)
        h = h.flatten(1)
        logits = torch.nn.functional.linear(h, own["weight"][depth, :, : h.shape[1]], own["bias"][depth])
        return logits.masked_fill(~visible, float("-inf")).softmax(1)


@dataclass(frozen=True)
class LinearCombination(Structure):
    """f(x) = psi^T (Phi^T x): psi (k, outputs), one column for a value or a binary logit."""

    name = "linear"
    axes = {"psi": 0}  # noqa: RUF012
    output_axes = {"psi": 1}  # noqa: RUF012
    component_axis = 0

    def draw(
        self,
        generator: torch.Generator,
        kind: Components,
        shapes: Sequence[Shape],
        k: int,
        outputs: int,
        dtype: torch.dtype,
    ) -> Tree:
        return {"psi": torch.rand(k, outputs, dtype=dtype, generator=generator)}

    def draw_initial(self, generator: torch.Generator, drawn: list[Tree], k: int) -> list[Tree]:
        """Task t uses component t alone; with several outputs, output c uses t + c."""
        initial = []
        for t, own in enumerate(drawn):
            psi = torch.zeros_like(own["psi"])
            columns = torch.arange(psi.shape[1])
            psi[(t + columns) % k, columns] = 1
            initial.append({"psi": psi})
        return initial

    def weights(self, kind: Components, own: Tree, depth: int, h: Tensor, visible: Tensor) -> Tensor:
        """One column an output: (k, outputs)."""
        return own["psi"].masked_fill(~visible[:, None], 0.0)

    def mix(self, kind: Components, outputs: Tensor, weights: Tensor) -> Tensor:
        return outputs @ weights

    def usage(self, kind: Components, own: Tree, visible: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        return own["psi"]


@dataclass(frozen=True)
class Monolithic(Structure):
    """No components: depth j is component j, for every task. The baseline's structure."""

    name = "monolithic"
    axes = {}  # noqa: RUF012
    expandable = False
    fixed_initially = False  # there is no structure to protect: everything learns

    def draw(
        self,
        generator: torch.Generator,
        kind: Components,
        shapes: Sequence[Shape],
        k: int,
        outputs: int,
        dtype: torch.dtype,
    ) -> Tree:
        if kind.whole_model and outputs > 1:
            raise SettingError(
                f"a single linear model has one output, but the task has {outputs} classes; "
                "expected binary or regression tasks, or dense components"
            )
        return {}

    def body(
        self,
        kind: Components,
        params: Tree,
        own: Tree,
        h: Tensor,
        keep: Keep,
        visible: Tensor,
        first: Tensor | None = None,
        mixed: bool = False,
    ) -> Tensor:
        for depth, kept in enumerate(keep):
            known = first if depth == 0 else None
            outputs = self._outputs(kind, params, depth, h) if known is None else known
            h = drop(outputs, kept)[:, 0]
        return h

    def weights(self, kind: Components, own: Tree, depth: int, h: Tensor, visible: Tensor) -> Tensor:
        return torch.arange(len(visible), device=visible.device).eq(depth).to(h.dtype)

    def first_outputs(self, kind: Components, params: Tree, h: Tensor) -> Tensor:
        return self._outputs(kind, params, 0, h)

    def _outputs(self, kind: Components, params: Tree, depth: int, h: Tensor) -> Tensor:
        """The one component of a depth: (B, 1, *shape)."""
        return kind.apply_one({name: p[depth] for name, p in params.items()}, h)[:, None]

    def noise_slots(self, k: int) -> int:
        return 1


STRUCTURES: dict[str, Structure] = {
    s.name: s for s in (LinearCombination(), SoftOrdering(), SoftGating(), Monolithic())
}


def named_structure(name: str) -> Structure:
    if name not in STRUCTURES:
        raise SettingError(f"structure={name!r}; expected one of {', '.join(STRUCTURES)}, or an object")
    return STRUCTURES[name]
