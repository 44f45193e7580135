"""The network around the components: encoder, structure, decoder."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from piaget.method.components import Components, Shape
from piaget.method.encoders import Decoder, Encoder
from piaget.method.parameters import Params, SharedParams, TaskParams
from piaget.method.structures import Frame, Keep, Structure, chain
from piaget.method.trees import Tensors, resize

BLOCK = 2**26  # numbers held at once when many rows are evaluated


@dataclass(frozen=True)
class Model:
    """How an input becomes an output, without any parameters."""

    components: Components
    structure: Structure
    depth: int
    encoder: Encoder
    decoder: Decoder

    def shapes(self, input_shape: Shape) -> list[Shape]:
        """What enters depth 0, 1, ..., and what leaves the last one."""
        shapes = [self.encoder.output_shape(input_shape, self.components)]
        for _ in range(self.depth):
            shapes.append(self.components.output_shape(shapes[-1]))
        return shapes

    # --- parameters -------------------------------------------------------------------------------

    def draw_task(
        self, generator: torch.Generator, input_shape: Shape, k: int, outputs: int, dtype: torch.dtype
    ) -> TaskParams:
        """A new task's parameters; what all tasks share is left empty."""
        shapes = self.shapes(input_shape)
        encoder = {} if self.encoder.shared else self._draw_encoder(generator, input_shape, dtype)
        structure = self.structure.draw(generator, Frame(self.components, shapes, k, outputs, dtype))
        decoder = {} if self.decoder.shared else self.decoder.draw(generator, shapes[-1], outputs, dtype)
        return TaskParams(encoder, structure, decoder)

    def draw_shared(
        self, generator: torch.Generator, input_shape: Shape, outputs: int, dtype: torch.dtype
    ) -> SharedParams:
        """The encoder and decoder that all tasks share, if they do."""
        encoder = self._draw_encoder(generator, input_shape, dtype) if self.encoder.shared else {}
        leaving = self.shapes(input_shape)[-1]
        decoder = self.decoder.draw(generator, leaving, outputs, dtype) if self.decoder.shared else {}
        return SharedParams(encoder, decoder)

    def _draw_encoder(self, generator: torch.Generator, input_shape: Shape, dtype: torch.dtype) -> Tensors:
        return self.encoder.draw(generator, input_shape, self.components, dtype)

    def resized(self, params: TaskParams, k: int, outputs: int) -> TaskParams:
        """A task's parameters (or moments of them) for k components and so many outputs."""
        sizes = [(self.structure.axes, k), (self.structure.output_axes, outputs)]
        structure = dict(params.structure)
        for axes, size in sizes:
            structure |= {n: resize(structure[n], axis, size) for n, axis in axes.items() if n in structure}
        axes = self.decoder.axes
        decoder = {n: resize(p, axes[n], outputs) if n in axes else p for n, p in params.decoder.items()}
        return TaskParams(params.encoder, structure, decoder)

    def columns(self, decoder: Tensors) -> int | None:
        """How many columns a shared decoder has; None: there is none."""
        return next((decoder[n].shape[axis] for n, axis in self.decoder.axes.items() if n in decoder), None)

    # --- from inputs to outputs -------------------------------------------------------------------

    def encode(self, encoder: Tensors, x: Tensor) -> Tensor:
        """x (n, *input shape) -> what enters depth 0, (n, *shape)."""
        h, hidden = self.encoder.apply(encoder, x), self.components.hidden
        flat = h.ndim == 2 and hidden is not None and len(hidden) > 1
        return h.unflatten(1, hidden) if flat and hidden is not None else h

    def forward(
        self,
        params: Params,
        h: Tensor,
        keep: Keep,
        visible: Tensor,
        first: Tensor | None = None,
        mixed: bool = False,
        chosen: Tensor | None = None,
    ) -> Tensor:
        """From what enters depth 0 to the outputs (n, columns).

        mixed: the samples are of different tasks; `params.task` and `visible` have a sample axis first.
        chosen: (depth, k), 1 for the one component of each depth, and 0; `keep` is of that one alone.
        """
        if chosen is None:
            features = self.structure.body(
                self.components, params.components, params.task.structure, h, keep, visible, first, mixed
            )
        else:
            # Chosen by a product, since the gradient of indexing, one for each run of a cohort, is slow.
            stacks = {name: torch.tensordot(chosen, p, 1) for name, p in params.components.items()}
            features = chain(self.components, stacks, h, keep)
        if mixed and not params.shared.decoder:
            one = torch.func.vmap(lambda decoder, f: self.decoder.apply(decoder, f[None])[0])
            return one(params.task.decoder, features)
        return self.decoder.apply(params.decoder, features)

    @torch.no_grad()
    def outputs(self, params: Params, x: Tensor, visible: Tensor) -> Tensor:
        """Outputs for any number of inputs, without dropout."""
        return self.outputs_of_encoded(params, self.encode(params.encoder, x), visible)

    @torch.no_grad()
    def outputs_of_encoded(self, params: Params, h: Tensor, visible: Tensor) -> Tensor:
        """The same from what enters depth 0, a block of rows at a time."""
        keep: Keep = [None] * self.depth
        rows = self.block(tuple(h.shape[1:]), len(visible))
        return torch.cat([self.forward(params, part, keep, visible) for part in h.split(rows)])

    @torch.no_grad()
    def features_of_encoded(self, params: Params, h: Tensor, visible: Tensor) -> Tensor:
        """What leaves the last depth, (n, *shape), without dropout, a block of rows at a time."""
        keep: Keep = [None] * self.depth
        structure, own = self.structure, params.task.structure
        parts = h.split(self.block(tuple(h.shape[1:]), len(visible)))
        return torch.cat(
            [structure.body(self.components, params.components, own, part, keep, visible) for part in parts]
        )

    def block(self, entering: Shape, k: int) -> int:
        """How many rows to evaluate at once, so that k components' outputs take little memory."""
        widest, shape = math.prod(entering), entering
        for _ in range(self.depth):
            shape = self.components.output_shape(shape)
            widest = max(widest, math.prod(shape))
        before_pooling = 4
        return max(1, min(4096, BLOCK // (before_pooling * k * max(widest, 1))))

    def depth_inputs(self, params: Params, x: Tensor, visible: Tensor) -> Iterator[Tensor]:
        """What enters each depth, without dropout."""
        return self.depth_inputs_of_encoded(params, self.encode(params.encoder, x), visible)

    def depth_inputs_of_encoded(self, params: Params, h: Tensor, visible: Tensor) -> Iterator[Tensor]:
        """The same from what enters depth 0."""
        structure = self.structure
        prepared = structure.prepare(params.task.structure, visible)
        for depth in range(self.depth):
            yield h
            outputs = self.components.apply(params.components, h)
            h = structure.combine(self.components, prepared, depth, h, outputs, visible)
