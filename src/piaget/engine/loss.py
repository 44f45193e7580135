"""The loss of one batch of one run: a pure function of tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from piaget.errors import SettingError
from piaget.method.adaptation import Adaptation, Replayed
from piaget.method.components import Shape
from piaget.method.model import Model
from piaget.method.objective import OutputForm, Targets, sample_losses
from piaget.method.parameters import Params, Role, SharedParams, TaskParams
from piaget.method.trees import Tensors, map_tree

Groups = dict[Role, Tensors]  # all parameters of a network, by role; `candidate` only while one is tried
Noise = tuple[Tensor, ...]  # per depth the dropout multipliers (B, k, *shape); empty: no dropout


class Rows(NamedTuple):
    """Samples: all that a stage may draw (n, ...), or those of a batch (B, ...)."""

    targets: Targets
    x: Tensor | None = None  # inputs, where the encoder learns
    h: Tensor | None = None  # what enters depth 0, where it is known
    first: Tensor | None = None  # (n, k, ...): the outputs of depth 0, where they are constant
    task: Tensor | None = None  # with stored samples: 0 for the current task, 1 + t for past task t
    fields: Tensors = {}  # noqa: RUF012  (what was stored with samples; never written to)


class Fixed(NamedTuple):
    """What the loss only reads. With stored samples, a leading axis of 1 + T tasks, the current one first."""

    slot: Tensor  # (k,) bool: the candidate's place
    visible: Tensor  # ([1 + T,] k) bool
    form: OutputForm  # ([1 + T,] ...)
    past: TaskParams | None = None  # (T, ...): the past tasks' own parameters
    chosen: Tensor | None = None  # (depth, k): 1 for a depth's one component, where no other is needed


@dataclass(frozen=True)
class BatchLoss:
    """How a batch becomes a loss. All that is not a tensor, and the same for all runs that train together."""

    model: Model
    adaptation: Adaptation
    shapes: tuple[Shape, ...]  # what enters each depth, and what leaves the last one
    hide: bool = False  # the candidate

    def __call__(self, groups: Groups, fixed: Fixed, rows: Rows, weight: Tensor, noise: Noise) -> Tensor:
        """weight: (B,) 1, or 0 for padding. noise: of the components that are computed."""
        out, form = self.outputs(groups, fixed, rows, noise)
        losses = sample_losses(out, rows.targets, form)
        if rows.task is not None and self.adaptation.has_losses:
            known = torch.arange(len(fixed.visible), device=weight.device)
            present = (rows.task[:, None] == known) & (weight[:, None] > 0)  # (B, 1 + T)
            replayed = Replayed(rows.task > 0, rows.fields, rows.targets, form, present.any(0).sum())
            # A shared decoder has columns of other tasks, too: those are not the sample's outputs.
            first = torch.arange(out.shape[1], device=out.device) == 0
            columns = form.allowed[:, :-1] | (form.regression[:, None] & first)
            changed = self.adaptation.losses(losses, torch.where(columns, out, 0.0), replayed)
            check_hook(self.adaptation, "losses", {"losses": changed}, {"losses": losses})
            losses = changed
        return (losses * weight).sum() / weight.sum().clamp(min=1)

    def outputs(self, groups: Groups, fixed: Fixed, rows: Rows, noise: Noise) -> tuple[Tensor, OutputForm]:
        """The outputs (B, columns) of a batch, and their form."""
        model = self.model
        if self.hide:
            groups, fixed, rows = self._without_last(groups, fixed, rows)
        slot = fixed.slot
        visible = fixed.visible & ~slot if self.hide else fixed.visible
        keep = noise or [None] * model.depth
        params = Params(
            groups["components"],
            TaskParams(groups["encoder"], groups["structure"], groups["decoder"]),
            SharedParams(groups["shared encoder"], groups["shared decoder"]),
        )
        h = self._entering(params, rows, groups.get("past encoder") or None)
        first = None if rows.first is None else model.components.from_memory(rows.first)
        if "candidate" in groups and not self.hide:
            candidate = groups["candidate"]
            params = params._replace(components=put(params.components, candidate, slot))
            if first is not None:
                fresh = model.components.apply_one(candidate, h)[:, None]
                first = torch.where(slot.view(-1, *(1,) * (first.ndim - 2)), fresh, first)
        if rows.task is None:
            return model.forward(params, h, keep, visible, first, chosen=fixed.chosen), fixed.form
        whose = rows.task
        assert fixed.past is not None
        params = params._replace(
            task=_of_each(params.task, fixed.past, groups.get("past decoder") or None, whose)
        )
        form = map_tree(lambda t: t[whose], fixed.form)
        return model.forward(params, h, keep, visible[whose], mixed=True), form

    def _without_last(self, groups: Groups, fixed: Fixed, rows: Rows) -> tuple[Groups, Fixed, Rows]:
        """The last slot is the candidate's, or nobody's: hidden, it need not be computed."""
        structure, k = self.model.structure, fixed.visible.shape[-1] - 1

        def cut(params: Tensors, before: int) -> Tensors:
            axes = {name: axis for name, axis in structure.axes.items() if name in params}
            return params | {name: params[name].narrow(axis + before, 0, k) for name, axis in axes.items()}

        components = {name: p[:k] for name, p in groups["components"].items()}
        groups = groups | {"components": components, "structure": cut(groups["structure"], 0)}
        fixed = fixed._replace(visible=fixed.visible[..., :k], slot=fixed.slot[:k])
        if fixed.past is not None:
            fixed = fixed._replace(past=fixed.past._replace(structure=cut(fixed.past.structure, 1)))
        if rows.first is not None:
            rows = rows._replace(first=rows.first[:, :k])
        return groups, fixed, rows

    def _entering(self, params: Params, rows: Rows, past: Tensors | None) -> Tensor:
        """What enters depth 0. past: the encoders of past tasks (T, ...), if they go on learning."""
        if rows.x is None:
            assert rows.h is not None
            return rows.h
        h, then = self.model.encode(params.encoder, rows.x), rows.h
        if past is not None and rows.task is not None:
            every = torch.func.vmap(self.model.encode, (0, None))(past, self._seen(past, rows.x))
            own = own_rows(rows.task, every).T  # (T, B)
            then = (every * own.view(*own.shape, *(1,) * (every.ndim - 2))).sum(0)
        # Else samples of past tasks are stored encoded, or all tasks share one encoder.
        if then is None or rows.task is None:
            return h
        current = (rows.task == 0).view(-1, *(1,) * (h.ndim - 1))
        return torch.where(current, h, then)

    def _seen(self, past: Tensors, x: Tensor) -> Tensor:
        """Those features of inputs (B, ...) that the encoders of past tasks learn from come first."""
        weight = self.model.encoder.feature_weight
        return x if weight is None else x.flatten(1)[:, : past[weight].shape[1]]


def check_hook(part: object, hook: str, given: object, expected: Tensors) -> None:
    """Raises an error if a hook of a user's own part did not return tensors of these shapes."""
    where = f"{type(part).__name__}.{hook}"
    if not isinstance(given, dict) or given.keys() != expected.keys():
        names = list(given) if isinstance(given, dict) else type(given).__name__
        raise SettingError(f"{where} returned {names}; expected tensors {list(expected)}")
    for name, tensor in given.items():
        if not isinstance(tensor, Tensor) or tensor.shape != expected[name].shape:
            found = tuple(tensor.shape) if isinstance(tensor, Tensor) else type(tensor).__name__
            raise SettingError(
                f"{where} returned {found} for {name!r}; expected a tensor of shape "
                f"{tuple(expected[name].shape)}"
            )


def _of_each(
    current: TaskParams, past: TaskParams, past_decoder: Tensors | None, whose: Tensor
) -> TaskParams:
    """Each sample's own task's structure and decoder, with a sample axis first. past_decoder: those of past
    tasks, where they learn."""
    past_row = (whose - 1).clamp(min=0)

    def choose(now: Tensor, then: Tensor) -> Tensor:
        """By a mask, which spares the slow gradient of an indexed table: `then` (B, ...) does not learn."""
        return torch.where((whose == 0).view(-1, *(1,) * now.ndim), now, then)

    def stored(now: Tensor, table: Tensor) -> Tensor:
        return choose(now, table[past_row])

    def learned(now: Tensor, table: Tensor) -> Tensor:
        """By a product, for the same reason."""
        return choose(now, (own_rows(whose, table) @ table.flatten(1)).view(-1, *now.shape))

    decoder = past.decoder if past_decoder is None else past_decoder
    return TaskParams(
        encoder={},
        structure=map_tree(stored, current.structure, past.structure),
        decoder=map_tree(stored if past_decoder is None else learned, current.decoder, decoder),
    )


def own_rows(whose: Tensor, table: Tensor) -> Tensor:
    """Which row of a table of past tasks (T, ...) is each sample's (B,) own: (B, T), 1 or 0."""
    return (whose[:, None] == torch.arange(1, len(table) + 1, device=whose.device)).to(table.dtype)


def put(components: Tensors, candidate: Tensors, slot: Tensor) -> Tensors:
    """The stacked components with the candidate's parameters in its slot (k,) bool."""
    return {
        name: torch.where(slot.view(-1, *(1,) * (stack.ndim - 1)), candidate[name], stack)
        for name, stack in components.items()
    }
