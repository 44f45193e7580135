"""The network around the components: encoder, structure, decoder; and the loss of a batch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from piaget.engine.noise import unpack
from piaget.errors import SettingError
from piaget.method.components import Components, Shape, uniform
from piaget.method.objective import sample_losses
from piaget.method.structures import Keep, Structure
from piaget.method.trees import Tree, map_tree

EncoderMode = Literal["learned", "fixed", "shared", "none"]
DecoderMode = Literal["learned", "shared"]
BLOCK = 2**26  # numbers held at once when many rows are evaluated


def draw_affine(generator: torch.Generator, inputs: int, outputs: int, dtype: torch.dtype) -> Tree:
    """weight (inputs, outputs): in this order its gradient x^T g needs no transposed copy."""
    return {
        "weight": uniform(generator, (inputs, outputs), inputs, dtype),
        "bias": uniform(generator, (outputs,), inputs, dtype),
    }


def affine(params: Tree, x: Tensor) -> Tensor:
    return torch.addmm(params["bias"], x, params["weight"])


@dataclass(frozen=True)
class Model:
    """How an input becomes an output, without any parameters.

    Parameters come in groups: `components` (shared, stacked), `own` (one task's encoder,
    structure and decoder) and `io` (an encoder or decoder that all tasks share).
    """

    components: Components
    structure: Structure
    depth: int
    encoder: EncoderMode
    decoder: DecoderMode

    def shapes(self, input_shape: Shape) -> list[Shape]:
        """What enters depth 0, 1, ..., and what leaves the last one."""
        shapes = [input_shape if self.encoder == "none" else self._hidden()]
        for _ in range(self.depth):
            shapes.append(self.components.output_shape(shapes[-1]))
        return shapes

    def draw_own(
        self, generator: torch.Generator, input_shape: Shape, k: int, outputs: int, dtype: torch.dtype
    ) -> Tree:
        """A new task's parameters; for a shared part, the tree is left empty."""
        shapes = self.shapes(input_shape)
        structure = self.structure
        own: Tree = {"encoder": {}, "decoder": {}}
        if self.encoder in ("learned", "fixed"):
            own["encoder"] = self._draw_encoder(generator, input_shape, dtype)
        own["structure"] = structure.draw(generator, self.components, shapes, k, outputs, dtype)
        if self.decoder == "learned" and not self.components.whole_model:
            own["decoder"] = draw_affine(generator, math.prod(shapes[-1]), outputs, dtype)
        return own

    def draw_io(
        self, generator: torch.Generator, input_shape: Shape, outputs: int, dtype: torch.dtype
    ) -> Tree:
        """The encoder and decoder that all tasks share, if they do."""
        io: Tree = {}
        if self.encoder == "shared":
            io["encoder"] = self._draw_encoder(generator, input_shape, dtype)
        if self.decoder == "shared":
            io["decoder"] = draw_affine(generator, math.prod(self.shapes(input_shape)[-1]), outputs, dtype)
        return io

    def _draw_encoder(self, generator: torch.Generator, input_shape: Shape, dtype: torch.dtype) -> Tree:
        return draw_affine(generator, math.prod(input_shape), math.prod(self._hidden()), dtype)

    def _hidden(self) -> Shape:
        hidden = self.components.hidden
        if hidden is None:
            raise SettingError(
                f"encoder={self.encoder!r}, but {type(self.components).__name__} components take "
                "raw inputs; expected encoder='none'"
            )
        return hidden

    def encode(self, encoder: Tree, x: Tensor) -> Tensor:
        """x (B, *input shape) -> what enters depth 0."""
        if self.encoder == "none":
            return x
        return affine(encoder, x.flatten(1)).unflatten(1, self._hidden())

    def decode(self, decoder: Tree, features: Tensor) -> Tensor:
        """What leaves the last depth -> outputs (B, columns)."""
        features = features.flatten(1) if features.ndim > 1 else features[:, None]
        if self.components.whole_model:
            return features
        return affine(decoder, features)

    def forward(
        self,
        params: Tree,
        h: Tensor,
        keep: Keep,
        visible: Tensor,
        first: Tensor | None = None,
        mixed: bool = False,
    ) -> Tensor:
        """From what enters depth 0 to the outputs (B, columns).

        mixed: the samples are of different tasks; `own` and `visible` have a sample axis first.
        """
        own, io = params["own"], params["io"]
        features = self.structure.body(
            self.components, params["components"], own["structure"], h, keep, visible, first, mixed
        )
        if mixed and not io.get("decoder"):
            return torch.func.vmap(lambda d, f: self.decode(d, f[None])[0])(own["decoder"], features)
        return self.decode(io.get("decoder", own["decoder"]), features)

    def encoder_of(self, params: Tree) -> Tree:
        return params["io"].get("encoder", params["own"]["encoder"])

    @torch.no_grad()
    def outputs(self, params: Tree, x: Tensor, visible: Tensor) -> Tensor:
        """Outputs for any number of inputs, without dropout."""
        return self.outputs_of_encoded(params, self.encode(self.encoder_of(params), x), visible)

    @torch.no_grad()
    def outputs_of_encoded(self, params: Tree, h: Tensor, visible: Tensor) -> Tensor:
        """The same from what enters depth 0, a block of rows at a time."""
        keep: Keep = [None] * self.depth
        rows = self.block(tuple(h.shape[1:]), len(visible))
        return torch.cat([self.forward(params, part, keep, visible) for part in h.split(rows)])

    def block(self, input_shape: Shape, k: int) -> int:
        """How many rows to evaluate at once, so that k components' outputs take little memory."""
        widest = max(math.prod(shape) for shape in self.shapes(input_shape))
        before_pooling = 4
        return max(1, min(4096, BLOCK // (before_pooling * k * max(widest, 1))))

    def depth_inputs(self, params: Tree, x: Tensor, visible: Tensor) -> Iterator[Tensor]:
        """What enters each depth, without dropout."""
        h = self.encode(self.encoder_of(params), x)
        structure, own = self.structure, params["own"]["structure"]
        for depth in range(self.depth):
            yield h
            prepared = structure.prepare(own, visible)
            outputs = self.components.apply(params["components"], h)
            h = structure.combine(self.components, prepared, depth, h, outputs, visible)


@dataclass(frozen=True)
class BatchLoss:
    """The loss of one batch of one run: a pure function of tensors.

    params: the groups `components`, `own`, `io`, and `candidate` while a new component is tried.
    fixed:  visible (k,) or (1+T, k); slot (k,), the candidate's place; task, the objective's
            description; with replay also table, the T past tasks' own parameters.
    rows:   the batch: column (B,), value (B,); x (B, ...) if the encoder learns, else
            h (B, ...), which enters depth 0; first (B, k, ...) if depth 0's outputs are constant;
            with replay, task (B,): 0 for the current task, 1 + t for past task t.
    weight: (B,) 1, or 0 for padding.  noise: packed dropout bits.
    """

    model: Model
    shapes: tuple[Shape, ...]
    replay: bool
    hide: bool = False  # the candidate

    def __call__(self, params: Tree, fixed: Tree, rows: Tree, weight: Tensor, noise: Tensor) -> Tensor:
        model = self.model
        if self.hide:
            params, fixed, rows, noise = self._without_last(params, fixed, rows, noise)
        slot = fixed["slot"]
        visible = fixed["visible"] & ~slot if self.hide else fixed["visible"]
        keep = self._keep(noise, weight.dtype)
        h, first = self._depth_zero(params, rows), None
        if "first" in rows:
            first = model.components.from_memory(rows["first"])
        if "candidate" in params and not self.hide:
            candidate = params["candidate"]
            params = params | {"components": put(params["components"], candidate, slot)}
            if first is not None:
                fresh = model.components.apply_one(candidate, h)[:, None]
                first = torch.where(slot.view(-1, *(1,) * (first.ndim - 2)), fresh, first)
        if self.replay:
            whose = rows["task"]
            params = params | {"own": self._own_of_each(params, fixed, whose)}
            out = model.forward(params, h, keep, visible[whose], mixed=True)
            task = map_tree(lambda t: t[whose], fixed["task"])
        else:
            out, task = model.forward(params, h, keep, visible, first), fixed["task"]
        losses = sample_losses(out, rows["column"], rows["value"], task)
        return (losses * weight).sum() / weight.sum().clamp(min=1)

    def _without_last(
        self, params: Tree, fixed: Tree, rows: Tree, noise: Tensor
    ) -> tuple[Tree, Tree, Tree, Tensor]:
        """The last slot is the candidate's, or nobody's: hidden, it need not be computed."""
        structure, k = self.model.structure, fixed["visible"].shape[-1] - 1

        def cut(own: Tree, before: int) -> Tree:
            parts = {n: p.narrow(structure.axes[n] + before, 0, k) for n, p in own["structure"].items()
                     if n in structure.axes}  # fmt: skip
            return own | {"structure": own["structure"] | parts}

        components = map_tree(lambda p: p[:k], params["components"])
        params = params | {"components": components, "own": cut(params["own"], 0)}
        fixed = fixed | {"visible": fixed["visible"][..., :k], "slot": fixed["slot"][:k]}
        if "table" in fixed:
            fixed |= {"table": cut(fixed["table"], 1)}
        if "first" in rows:
            rows = rows | {"first": rows["first"][:, :k]}
        return params, fixed, rows, noise[:, : structure.noise_slots(k)]

    def _keep(self, noise: Tensor, dtype: torch.dtype) -> list[Any]:
        if self.model.components.dropout == 0:
            return [None] * self.model.depth
        return unpack(noise, self.shapes[1:], self.model.components, dtype)

    def _depth_zero(self, params: Tree, rows: Tree) -> Tensor:
        if "x" not in rows:
            return rows["h"]
        h = self.model.encode(self.model.encoder_of(params), rows["x"])
        # Past tasks' samples are stored encoded: only the current task's encoder still learns.
        if "h" not in rows:
            return h
        current = (rows["task"] == 0).view(-1, *(1,) * (h.ndim - 1))
        return torch.where(current, h, rows["h"])

    def _own_of_each(self, params: Tree, fixed: Tree, whose: Tensor) -> Tree:
        """Each sample's own task's structure and decoder: trees with a sample axis first."""
        current, past_row = whose == 0, (whose - 1).clamp(min=0)

        def choose(now: Tensor, past: Tensor) -> Tensor:
            # Only `now` may learn: choosing by a mask spares the slow gradient of an indexed table.
            return torch.where(current.view(-1, *(1,) * now.ndim), now, past[past_row])

        own = {name: params["own"][name] for name in ("structure", "decoder")}
        return map_tree(choose, own, fixed["table"])


def put(components: Tree, candidate: Tree, slot: Tensor) -> Tree:
    """The stacked components with the candidate's parameters in its slot (k,) bool."""
    return map_tree(
        lambda stack, new: torch.where(slot.view(-1, *(1,) * (stack.ndim - 1)), new, stack),
        components,
        candidate,
    )
