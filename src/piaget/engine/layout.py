"""A stage laid out as tensors, and read back.

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
from piaget.knowledge.state import TaskRecord, Update
from piaget.method.adaptation import Memory, Stored
from piaget.method.parameters import SHARED_ROLES, TASK_ROLES, Moments, Role, TaskParams
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
    """One stage of one run: what it needs, its tensors in a given size, and its results."""

    stage: Stage

    # --- how much room it needs -------------------------------------------------------------------

    @cached_property
    def features(self) -> list[Tensor | None]:
        """For each task whose encoder learns: the features that are not zero in all its samples.

        The weights of the others have no gradient, so they stay as they are and need no work.
        """
        settings = self.stage.settings
        whole = settings.encoder.feature_weight is None or settings.optimizer.moves_without_gradient
        if "encoder" not in self.stage.trained or whole:
            return [None] * len(self.stage.data)
        inputs = (data.tensors(settings)[0] for data in self.stage.data)
        return [torch.nonzero(x.flatten(1).any(0)).flatten() for x in inputs]

    @cached_property
    def size(self) -> Size:
        """What this run needs."""
        stage, state = self.stage, self.stage.state
        records = state.records.values() if stage.samples else [data.record for data in stage.data]
        widths = [record.outputs for record in records]
        columns = stage.settings.model.columns(state.shared.decoder)
        features = max(0 if f is None else len(f) for f in self.features)
        return Size(state.k, max([*widths, columns or 0]), features)

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
            parts += self._parts(i, data, groups, size)
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
        for role, params in zip(TASK_ROLES, self._sized(i, record.params, size), strict=True):
            groups[Key(role, i)] = params
        if progress is None or not set(TASK_ROLES) & set(self.stage.trained):
            return
        of_roles = progress.moments[record.name]
        slots = {
            slot: self._sized(i, TaskParams(*(of_roles[role].slots[slot] for role in TASK_ROLES)), size)
            for slot in self.stage.settings.optimizer.slots
        }
        for place, role in enumerate(TASK_ROLES):
            moments[Key(role, i)] = Moments({s: p[place] for s, p in slots.items()}, of_roles[role].updates)

    def _sized(self, i: int, params: TaskParams, size: Size) -> TaskParams:
        """A task's parameters, or moments of them, in this size."""
        params = self.stage.settings.model.resized(params, size.slots, size.outputs)
        features, name = self.features[i], self.stage.settings.encoder.feature_weight
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

    def _parts(self, i: int, data: TaskData, groups: dict[Key, Tensors], size: Size) -> list[Part]:
        """The current task's part, joined by the stored samples that have its form.

        Stored samples of another form (images of another size) make parts of their own.
        """
        stage, model, record = self.stage, self.stage.settings.model, data.record
        banks = Banks(stage, size)
        keys: dict[Role, Key] = {role: Key(role, i) for role in TASK_ROLES}
        keys |= {role: Key(role) for role in ("components", *SHARED_ROLES)}
        if "candidate" in stage.trained:
            keys["candidate"] = Key("candidate")
        shape = self._entering(record)
        by_shape: dict[tuple[int, ...], list[Stored]] = {shape: []}
        for stored in stage.replay:
            by_shape.setdefault(self._entering(banks.past(stored)), []).append(stored)
        encoder = groups[keys["shared encoder"]] or groups[keys["encoder"]]
        current = banks.current(data, self.features[i], encoder, groups[Key("components")])
        learning = tuple(role for role in stage.trained if groups[keys[role]])  # what has parameters
        parts = [self._part(keys, learning, record, current, by_shape.pop(shape), banks)]
        trained = tuple(role for role in learning if role not in TASK_ROLES)
        for number, others in enumerate(by_shape.values(), len(stage.data)):
            # No row is the current task's: any past task of this form stands in its place.
            stand_in = banks.past(others[0])
            for role, params in zip(
                TASK_ROLES, model.resized(stand_in.params, size.slots, size.outputs), strict=True
            ):
                groups[Key(role, number)] = params
            own = {role: Key(role, number) for role in TASK_ROLES}
            parts.append(self._part(keys | own, trained, stand_in, None, others, banks))
        return parts

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
        banks: Banks,
    ) -> Part:
        stage, model = self.stage, self.stage.settings.model
        adaptation = stage.settings.adaptation
        if stored:
            bank, fixed = banks.union(current, stored), banks.fixed(record, stored)
        else:
            assert current is not None
            bank, fixed = current, banks.fixed(record, [])
        corrects = stage.kind.adapts and "components" in trained and adaptation.corrects
        memory = adaptation.constants(stage.state.memory, banks.size.slots) if corrects else {}
        shape = self._entering(record)
        fitting = [s for s in stage.references if self._entering(banks.past(s)) == shape]
        reference = None
        if corrects and fitting:
            reference = Reference((banks.union(None, fitting),), banks.fixed(record, fitting))
        loss = BatchLoss(model, adaptation, tuple(model.shapes(tuple(record.input_shape))))
        return Part(loss, keys, trained, fixed, (bank,), memory, reference)

    # --- back -------------------------------------------------------------------------------------

    def update(self, work: Work, steps: int) -> Update:
        """One run's results, in the sizes of its state."""
        groups: dict[Role, tuple[Tensors, Moments]] = {}
        tasks: dict[str, dict[Role, tuple[Tensors, Moments]]] = {}
        for key in work.slots:
            if key.task is None:
                groups[key.role] = self._shared_results(key, work)
        for i, data in enumerate(self.stage.data):
            roles = [key.role for key in work.slots if key.task == i]
            if roles:
                tasks[data.record.name] = self._task_results(i, data.record, roles, work)
        counts = {name: float(total) for name, total in work.totals.items()}
        return Update(groups, tasks, steps, counts)

    def _shared_results(self, key: Key, work: Work) -> tuple[Tensors, Moments]:
        k = self.stage.state.k
        count = work.counts[work.places[key]]
        if key.role != "components":
            copied = map_tree(torch.clone, (work.groups[key], work.slots[key]))
            return copied[0], Moments(copied[1], count[0].clone())
        cut = map_tree(lambda p: resize(p, 0, k).clone(), (work.groups[key], work.slots[key]))
        return cut[0], Moments(cut[1], count[:k].clone())

    def _task_results(
        self, i: int, record: TaskRecord, roles: list[Role], work: Work
    ) -> dict[Role, tuple[Tensors, Moments]]:
        progress = self.stage.state.progress
        assert progress is not None
        old = progress.moments[record.name]
        params = self._own_size(i, record, record.params, _by_role(work.groups, i))
        slots = {
            slot: self._own_size(
                i,
                record,
                TaskParams(*(old[role].slots[slot] for role in TASK_ROLES)),
                _by_role({key: tensors[slot] for key, tensors in work.slots.items()}, i),
            )
            for slot in self.stage.settings.optimizer.slots
        }
        results = {}
        for role in roles:
            count = work.counts[work.places[Key(role, i)]][0].clone()
            moments = Moments({slot: getattr(kept, role) for slot, kept in slots.items()}, count)
            results[role] = (getattr(params, role), moments)
        return results

    def _own_size(self, i: int, record: TaskRecord, old: TaskParams, trained: TaskParams) -> TaskParams:
        """A task's own parameters (or moments) in their own size, from those of a stage."""
        params = self.stage.settings.model.resized(trained, record.k, record.outputs)
        features, name = self.features[i], self.stage.settings.encoder.feature_weight
        if features is not None and name is not None:
            rows = params.encoder[name][: len(features)]
            weight = old.encoder[name].index_copy(0, features, rows)
            params = params._replace(encoder=params.encoder | {name: weight})
        return map_tree(torch.clone, params)


def _by_role(groups: dict[Key, Tensors], i: int) -> TaskParams:
    return TaskParams(*(groups.get(Key(role, i), {}) for role in TASK_ROLES))


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
