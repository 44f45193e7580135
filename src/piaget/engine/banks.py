"""What a stage draws its batches from, as tensors of a common size.

What is constant during the stage is computed here, once: encoded inputs when the encoder does not learn,
depth 0's component outputs when components do not learn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from piaget.engine.loss import Fixed, Rows
from piaget.engine.stage import Stage, TaskData
from piaget.knowledge.state import TaskRecord
from piaget.method.adaptation import Stored
from piaget.method.objective import Targets, output_form, targets
from piaget.method.trees import Tensors, map_tree, resize, rounded

FIRST_OUTPUTS = 2**30  # bytes up to which depth 0's outputs are kept for a whole stage


class Size(NamedTuple):
    """What a stage needs, or what several stages need together."""

    slots: int  # for components
    outputs: int  # columns
    features: int  # of inputs whose encoder learns
    past: int  # the same of past tasks: those of few stored samples are fewer

    @classmethod
    def of(cls, sizes: Sequence[Size]) -> Size:
        """For all of them, and a little more: so that few different forms occur, and are compiled."""
        slots, outputs, features, past = (max(needed) for needed in zip(*sizes, strict=True))
        return cls(rounded(slots, 4), outputs, rounded(features, 4), rounded(past, 4))


def used_features(x: Tensor, features: Tensor | None, size: int) -> Tensor:
    """Inputs (n, *shape), or only those features that an encoder learns from, (n, size)."""
    return x if features is None else resize(x.flatten(1)[:, features], 1, size)


@dataclass(frozen=True, eq=False)
class Banks:
    """The rows of one run's stage, and what its loss only reads, in a given size."""

    stage: Stage
    size: Size

    def current(self, data: TaskData, features: Tensor | None, encoder: Tensors, stacked: Tensors) -> Rows:
        """The current task's rows, as far as they can be computed before training.

        features: those that its encoder learns from, if not all. stacked: the components, (k, ...).
        """
        stage, model = self.stage, self.stage.settings.model
        x, y = data.tensors(stage.settings)
        x = used_features(x, features, self.size.features)
        rows = Rows(targets(data.record.kind, y, self.size.outputs, x.dtype))
        if stage.encoder_learns:
            return rows._replace(x=x)
        with torch.no_grad():
            h = model.encode(encoder, x)
            known = "components" not in stage.trained and model.structure.uses_components
            first = self._first(h, stacked) if known else None
        return rows._replace(h=h, first=first)

    def _first(self, h: Tensor, stacked: Tensors) -> Tensor | None:
        """The outputs of depth 0 for all samples, if they fit."""
        model = self.stage.settings.model
        shape = model.components.output_shape(tuple(h.shape[1:]))
        slots = next(iter(stacked.values())).shape[0]
        if len(h) * slots * math.prod(shape) * h.element_size() > FIRST_OUTPUTS:
            return None
        blocks = [
            model.components.in_memory(
                model.structure.first_outputs(model.components, stacked, block)
            ).contiguous()
            for block in h.split(model.block(tuple(h.shape[1:]), slots))
        ]
        return torch.cat(blocks)

    def past_rows(self, stored: list[Stored]) -> int:
        """How many rows the table of past tasks has. Those that are added are never asked for; where they
        cost, as encoders that learn do, they are fewer."""
        least = 8 if "past encoder" in self.stage.trained else 32
        return max(least, rounded(len(stored), 1))

    def fixed(self, record: TaskRecord, stored: list[Stored]) -> Fixed:
        """What the loss reads of the current task and, with stored samples, of theirs."""
        state, model = self.stage.state, self.stage.settings.model
        device = next(iter(state.components.values())).device
        slot = torch.zeros(self.size.slots, dtype=torch.bool)
        slot[state.k - 1] = self.stage.candidate
        if not stored:
            form = output_form(record.kind, record.classes, self.size.outputs)
            chosen = self.stage.chosen(record)
            if chosen is not None:
                chosen = one_hot(chosen, self.size.slots).to(self.stage.settings.torch_dtype)
            fixed = Fixed(slot, record.visible(self.size.slots), form, chosen=chosen)
            return map_tree(lambda t: t.to(device), fixed)
        past = [self.stage.past(s) for s in stored]
        records = [record, *past]
        visible = torch.stack([r.visible(self.size.slots) for r in records])
        forms = [output_form(r.kind, r.classes, self.size.outputs) for r in records]
        form = map_tree(lambda *t: torch.stack(t), *forms)
        table = [
            model.resized(r.params, self.size.slots, self.size.outputs)._replace(encoder={}) for r in past
        ]
        params = map_tree(lambda *t: torch.stack(t), *table)
        rows = self.past_rows(stored)
        fixed = Fixed(
            slot,
            resize(visible, 0, 1 + rows),
            map_tree(lambda t: resize(t, 0, 1 + rows), form),
            map_tree(lambda t: resize(t, 0, rows), params),
        )
        return map_tree(lambda t: t.to(device), fixed)

    def union(self, current: Rows | None, stored: list[Stored], joins: bool = True) -> Rows:
        """The task's rows and stored samples in one bank; `task` tells whose a row is. joins: they join the
        batches, else they are drawn beside them."""
        pieces = [self._stored_rows(i, s, joins) for i, s in enumerate(stored)]
        if current is not None:
            whose = torch.zeros_like(current.targets.column)
            pieces.insert(0, current._replace(first=None, task=whose))
        lengths = [len(piece.targets.column) for piece in pieces]

        def joined(tensors: Sequence[Tensor | None]) -> Tensor | None:
            """One after the other; where a piece has none, zeros."""
            like = next((t for t in tensors if t is not None), None)
            if like is None:
                return None
            shape = like.shape[1:]
            return torch.cat(
                [like.new_zeros(n, *shape) if t is None else t for n, t in zip(lengths, tensors, strict=True)]
            )

        names = dict.fromkeys(name for piece in pieces for name in piece.fields)
        columns: Any = {n: joined([getattr(p, n) for p in pieces]) for n in ("x", "h", "task")}
        fields: Any = {name: joined([piece.fields.get(name) for piece in pieces]) for name in names}
        column = torch.cat([piece.targets.column for piece in pieces])
        value = torch.cat([piece.targets.value for piece in pieces])
        return Rows(Targets(column, value), **columns, fields=fields)

    def _stored_rows(self, i: int, stored: Stored, joins: bool) -> Rows:
        """The stored samples of the i-th of some past tasks. joins: they join the batches."""
        stage, record = self.stage, self.stage.past(stored)
        model, adaptation = stage.settings.model, stage.settings.adaptation
        rows = Rows(targets(record.kind, stored.y, self.size.outputs, stored.h.dtype))
        fields = {
            name: resize(t, 1, self.size.outputs) if name in adaptation.output_fields else t
            for name, t in stored.fields.items()
        }
        rows = rows._replace(task=torch.full_like(rows.targets.column, i + 1), fields=fields)
        if not stage.settings.stores_inputs:
            return rows._replace(h=stored.h)
        if "shared encoder" in stage.trained:
            return rows._replace(x=stored.h)
        if joins and "past encoder" in stage.trained:
            features = stage.past_features(stored)
            return rows._replace(x=used_features(stored.h, features, self.size.features))
        return rows._replace(h=model.encode(stage.state.shared.encoder or record.params.encoder, stored.h))
