"""A stage laid out as tensors. (Read back by outcome.py.)

Runs with different numbers of components, outputs, used features and samples can be stacked: all are padded
to a common `Size`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from piaget.engine.banks import Banks, Size
from piaget.engine.loss import BatchLoss, Fixed, Rows
from piaget.engine.stage import Stage, TaskData
from piaget.knowledge.state import TaskRecord
from piaget.method.adaptation import Memory, Stored
from piaget.method.parameters import PAST_ROLES, SHARED_ROLES, TASK_ROLES, Moments, Role, TaskParams
from piaget.method.trees import T, Tensors, map_tree, resize


class Key(NamedTuple):
    """A group of parameters in a stage: its role and, of a task's own, the task's place in the stage."""

    role: Role
    task: int | None = None


class Reference(NamedTuple):
    """Stored samples that are drawn beside each batch."""

    banks: tuple[Rows, ...]  # of each run
    fixed: Fixed


@dataclass(frozen=True, eq=False)
class Part:
    """The data of one group of samples, and how its loss is computed."""

    loss: BatchLoss
    keys: dict[Role, Key]  # which group of parameters plays each role
    trained: tuple[Role, ...]
    fixed: Fixed
    banks: tuple[Rows, ...]  # of each run, (n, ...): a batch takes rows of it by index
    memory: Memory  # what the adaptation corrects gradients with
    reference: Reference | None = None


@dataclass(frozen=True, eq=False)
class Work:
    """A stage as tensors. With several runs stacked, every tensor has a leading run axis, except for the rows
    that batches are drawn from: a second copy of them would take most of the memory."""

    groups: dict[Key, Tensors]
    slots: dict[Key, dict[str, Tensors]]  # the optimizer's, of the groups that learn
    counts: Tensor  # (n,): how often each of them was updated, one after the other
    places: dict[Key, slice]  # where they are among counts
    totals: Tensors  # (): what the adaptation counts
    parts: list[Part]


@dataclass(frozen=True, eq=False)
class Layout:
    """One stage of one run: what it needs, and its tensors in a given size."""

    stage: Stage

    # --- how much room it needs -------------------------------------------------------------------

    @cached_property
    def features(self) -> list[Tensor | None]:
        """For each task: the features that its encoder learns from, if not all."""
        return [self.stage.features(data) for data in self.stage.data]

    @cached_property
    def joined(self) -> list[list[Stored]]:
        """The stored samples of each part: first of the form of the current task's, which they join, then of
        each other form (images of another size, say), which make parts of their own."""
        stage = self.stage
        by_form: dict[Any, list[Stored]] = {self._form(stage.data[-1].record): []}
        for stored in stage.replay:
            by_form.setdefault(self._form(stage.past(stored)), []).append(stored)
        return list(by_form.values())

    @cached_property
    def size(self) -> Size:
        """What this run needs."""
        stage, state = self.stage, self.stage.state
        records = state.records.values() if stage.samples else [data.record for data in stage.data]
        widths = [record.outputs for record in records]
        columns = stage.settings.model.columns(state.shared.decoder)
        features = max(0 if f is None else len(f) for f in self.features)
        past = 0
        if "past encoder" in stage.trained:
            learned = (stage.past_features(stored) for stored in stage.replay)
            past = max(0 if f is None else len(f) for f in learned)
        return Size(state.k, max([*widths, columns or 0]), max(features, past), past)

    # --- as tensors -------------------------------------------------------------------------------

    def work(self, size: Size) -> Work:
        """All that training reads and writes, as copies where it writes."""
        stage, state = self.stage, self.stage.state

        def padded(stack: T) -> T:
            return map_tree(lambda t: resize(t, 0, size.slots), stack)

        groups: dict[Key, Tensors] = {Key("components"): padded(state.components)}
        moments = {Key("components"): padded(state.moments)}
        for role, params in zip(SHARED_ROLES, state.shared, strict=True):
            groups[Key(role)] = params
            moments[Key(role)] = state.shared_moments[role]
        if stage.candidate:
            groups[Key("candidate")] = {name: p[-1] for name, p in state.components.items()}
            moments[Key("candidate")] = map_tree(lambda t: t[-1], state.moments)
        parts: list[Part] = []
        for i, data in enumerate(stage.data):
            self._add_task(i, data, size, groups, moments)
            parts.append(self._current_part(i, data, groups, moments, size))
        for number, others in enumerate(self.joined[1:], len(stage.data)):
            parts.append(self._stored_part(number, others, groups, moments, size))
        learned = {part.keys[role]: None for part in parts for role in part.trained}
        return self._gathered(groups, {key: moments[key] for key in learned}, parts)

    def _add_task(
        self,
        i: int,
        data: TaskData,
        size: Size,
        groups: dict[Key, Tensors],
        moments: dict[Key, Moments],
    ) -> None:
        """A task's own groups, in this size."""
        record, progress = data.record, self.stage.state.progress
        features = self.features[i]
        for role, params in zip(TASK_ROLES, self._sized(record.params, features, size), strict=True):
            groups[Key(role, i)] = params
        if progress is None or not set(TASK_ROLES) & set(self.stage.trained):
            return
        of_roles = progress.moments[record.name]
        slots = {
            slot: self._sized(_slot(of_roles, slot), features, size)
            for slot in self.stage.settings.optimizer.slots
        }
        for place, role in enumerate(TASK_ROLES):
            moments[Key(role, i)] = Moments({s: p[place] for s, p in slots.items()}, of_roles[role].updates)

    def _sized(self, params: TaskParams, features: Tensor | None, size: Size) -> TaskParams:
        """A task's parameters, or moments of them, in this size."""
        params = self.stage.settings.model.resized(params, size.slots, size.outputs)
        name = self.stage.settings.encoder.feature_weight
        if features is None or name is None:
            return params
        weight = resize(params.encoder[name][features], 0, size.features)
        return params._replace(encoder=params.encoder | {name: weight})

    def _gathered(self, groups: dict[Key, Tensors], moments: dict[Key, Moments], parts: list[Part]) -> Work:
        """Copies of what learns; all counts in one tensor, so that they are counted at once."""
        counts, places, start = [], {}, 0
        device = next(iter(groups[Key("components")].values())).device
        for key, kept in moments.items():
            counts.append(kept.updates.reshape(-1).to(device))
            places[key] = slice(start, start + kept.updates.numel())
            start += kept.updates.numel()
        names = self.stage.settings.adaptation.counts if self.stage.kind.adapts else ()
        return Work(
            groups={k: map_tree(torch.clone, g) if k in moments else g for k, g in groups.items()},
            slots={key: map_tree(torch.clone, kept.slots) for key, kept in moments.items()},
            counts=torch.cat(counts) if counts else torch.zeros(0, dtype=torch.float64, device=device),
            places=places,
            totals={name: torch.zeros((), dtype=torch.float64, device=device) for name in names},
            parts=parts,
        )

    # --- its data ---------------------------------------------------------------------------------

    def _current_part(
        self,
        i: int,
        data: TaskData,
        groups: dict[Key, Tensors],
        moments: dict[Key, Moments],
        size: Size,
    ) -> Part:
        """The current task's part, with the stored samples that join its batches."""
        stage, banks = self.stage, Banks(self.stage, size)
        keys = self._keys(i)
        self._add_past(i, self.joined[0], groups, moments, banks)
        encoder = groups[keys["shared encoder"]] or groups[keys["encoder"]]
        current = banks.current(data, self.features[i], encoder, groups[Key("components")])
        return self._part(keys, stage.trained, data.record, current, self.joined[0], groups, banks)

    def _stored_part(
        self,
        number: int,
        stored: list[Stored],
        groups: dict[Key, Tensors],
        moments: dict[Key, Moments],
        size: Size,
    ) -> Part:
        """A part of stored samples alone: any past task of their form stands in the current one's place."""
        stage, banks = self.stage, Banks(self.stage, size)
        stand_in = stage.past(stored[0])
        features = stage.past_features(stored[0]) if "past encoder" in stage.trained else None
        for role, params in zip(TASK_ROLES, self._sized(stand_in.params, features, size), strict=True):
            groups[Key(role, number)] = params
        self._add_past(number, stored, groups, moments, banks)
        trained = tuple(role for role in stage.trained if role not in TASK_ROLES)
        return self._part(self._keys(number), trained, stand_in, None, stored, groups, banks)

    def _keys(self, number: int) -> dict[Role, Key]:
        """The groups that play each role in a part."""
        own = {role: Key(role, number) for role in (*TASK_ROLES, *PAST_ROLES)}
        keys = own | {role: Key(role) for role in ("components", *SHARED_ROLES)}
        return keys | ({"candidate": Key("candidate")} if "candidate" in self.stage.trained else {})

    def _add_past(
        self,
        number: int,
        stored: list[Stored],
        groups: dict[Key, Tensors],
        moments: dict[Key, Moments],
        banks: Banks,
    ) -> None:
        """The encoders and decoders of past tasks that learn in a part, as tables (T, ...)."""
        stage, rows = self.stage, banks.past_rows(stored)
        slots = stage.settings.optimizer.slots

        def table(of_tasks: list[Tensors]) -> Tensors:
            return map_tree(lambda *t: resize(torch.stack(t), 0, rows), *of_tasks)

        for role in PAST_ROLES:
            groups[Key(role, number)] = {}
        learning = [role for role in PAST_ROLES if role in stage.trained and stored]
        for role in learning:
            own = PAST_ROLES[role]
            kept = [stage.state.past_moments[stage.past(s).name] for s in stored]
            sized = [self._sized_past(s, stage.past(s).params, banks.size) for s in stored]
            groups[Key(role, number)] = table([getattr(params, own) for params in sized])
            of_slots = {
                slot: table(
                    [
                        getattr(self._sized_past(s, _slot(of_task, slot), banks.size), own)
                        for s, of_task in zip(stored, kept, strict=True)
                    ]
                )
                for slot in slots
            }
            updates = torch.stack([of_task[own].updates for of_task in kept])
            moments[Key(role, number)] = Moments(of_slots, resize(updates, 0, rows))

    def _sized_past(self, stored: Stored, params: TaskParams, size: Size) -> TaskParams:
        """A past task's parameters, or moments of them, in this size."""
        features = self.stage.past_features(stored) if "past encoder" in self.stage.trained else None
        return self._sized(params, features, size._replace(features=size.past))

    def _form(self, record: TaskRecord) -> tuple[Any, ...]:
        """What samples of one part have in common."""
        encoded = "past encoder" in self.stage.trained and self.stage.whole_inputs
        return self._entering(record), tuple(record.input_shape) if encoded else None

    def _entering(self, record: TaskRecord) -> tuple[int, ...]:
        """The shape of what enters depth 0."""
        return tuple(self.stage.settings.model.shapes(tuple(record.input_shape))[0])

    def _part(
        self,
        keys: dict[Role, Key],
        trained: tuple[Role, ...],
        record: TaskRecord,
        current: Rows | None,
        stored: list[Stored],
        groups: dict[Key, Tensors],
        banks: Banks,
    ) -> Part:
        stage, model = self.stage, self.stage.settings.model
        adaptation = stage.settings.adaptation
        if stored:
            bank, fixed = banks.union(current, stored), banks.fixed(record, stored)
        else:
            assert current is not None
            bank, fixed = current, banks.fixed(record, [])
        trained = tuple(role for role in trained if groups[keys[role]])  # what has parameters
        corrects = stage.kind.adapts and "components" in trained and adaptation.corrects
        memory = adaptation.constants(stage.state.memory, banks.size.slots) if corrects else {}
        shape = self._entering(record)
        fitting = [s for s in stage.references if self._entering(stage.past(s)) == shape]
        reference = None
        if corrects and fitting:
            beside = banks.union(None, fitting, joins=False)
            reference = Reference((beside,), banks.fixed(record, fitting))
        loss = BatchLoss(model, adaptation, tuple(model.shapes(tuple(record.input_shape))))
        return Part(loss, keys, trained, fixed, (bank,), memory, reference)


def _slot(moments: dict[Role, Moments], slot: str) -> TaskParams:
    """One of the optimizer's slots, of all of a task's own parameters."""
    return TaskParams(*(moments[role].slots[slot] for role in TASK_ROLES))


# --- many runs --------------------------------------------------------------------------------------------


def stacked(works: Sequence[Work]) -> Work:
    """The works of several runs in one, with a leading run axis."""

    def stack(*trees: Any) -> Any:
        return map_tree(lambda *t: torch.stack(t), *trees)

    first = works[0]
    parts = []
    for part, *others in zip(*(work.parts for work in works), strict=True):
        together = [part, *others]
        reference = None
        if part.reference is not None:
            references = [p.reference for p in together if p.reference is not None]
            reference = Reference(
                tuple(bank for r in references for bank in r.banks), stack(*(r.fixed for r in references))
            )
        parts.append(
            replace(
                part,
                fixed=stack(*(p.fixed for p in together)),
                memory=stack(*(p.memory for p in together)),
                banks=_alike([bank for p in together for bank in p.banks]),
                reference=reference,
            )
        )
    return Work(
        groups={key: stack(*(w.groups[key] for w in works)) for key in first.groups},
        slots={key: stack(*(w.slots[key] for w in works)) for key in first.slots},
        counts=torch.stack([work.counts for work in works]),
        places=first.places,
        totals=stack(*(work.totals for work in works)),
        parts=parts,
    )


def _alike(banks: Sequence[Rows]) -> tuple[Rows, ...]:
    """One run's bank may be too large for `first`, which can be done without."""
    every = all(bank.first is not None for bank in banks)
    return tuple(bank if every else bank._replace(first=None) for bank in banks)


def of_run(work: Work, run: int) -> Work:
    """One run's tensors out of a stack."""
    groups, slots, counts, totals = map_tree(
        lambda t: t[run], (work.groups, work.slots, work.counts, work.totals)
    )
    return replace(work, groups=groups, slots=slots, counts=counts, totals=totals)
