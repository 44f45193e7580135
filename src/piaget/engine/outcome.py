"""What training changed, read back from the tensors of a stage: each in the size that the state has it."""

from __future__ import annotations

import torch
from torch import Tensor

from piaget.engine.layout import Key, Layout, Work
from piaget.knowledge.state import TaskRecord, Update
from piaget.method.adaptation import Stored
from piaget.method.parameters import PAST_ROLES, TASK_ROLES, Moments, Role, TaskParams
from piaget.method.trees import Tensors, map_tree, resize

Results = dict[Role, tuple[Tensors, Moments]]


def outcome(layout: Layout, work: Work, steps: int) -> Update:
    """One run's results, as copies."""
    stage = layout.stage
    groups = {key.role: _shared(layout, key, work) for key in work.slots if key.task is None}
    tasks: dict[str, Results] = {}
    for i, data in enumerate(stage.data):
        roles = [key.role for key in work.slots if key.task == i and key.role in TASK_ROLES]
        if roles:
            own = {role: Key(role, i) for role in TASK_ROLES}
            tasks[data.record.name] = _of_task(layout, data.record, layout.features[i], roles, own, work)
    # The parts of stored samples of other forms come after those of the tasks.
    for number, stored in enumerate(layout.joined, len(stage.data) - 1):
        for row, samples in enumerate(stored):
            if changed := _of_past(layout, samples, number, row, work):
                tasks[stage.past(samples).name] = changed
    counts = {name: float(total) for name, total in work.totals.items()}
    return Update(groups, tasks, steps, counts)


def _shared(layout: Layout, key: Key, work: Work) -> tuple[Tensors, Moments]:
    """Components, or what all tasks share."""
    k, count = layout.stage.state.k, work.counts[work.places[key]]
    if key.role != "components":
        copied = map_tree(torch.clone, (work.groups[key], work.slots[key]))
        return copied[0], Moments(copied[1], count[0].clone())
    cut = map_tree(lambda p: resize(p, 0, k).clone(), (work.groups[key], work.slots[key]))
    return cut[0], Moments(cut[1], count[:k].clone())


def _of_past(layout: Layout, stored: Stored, number: int, row: int, work: Work) -> Results:
    """A past task that goes on learning: its row of the part's tables."""
    keys = {own: Key(past, number) for past, own in PAST_ROLES.items() if Key(past, number) in work.slots}
    tables = {key: work.groups[key] for key in keys.values()}
    mine = Work(
        groups={key: _row(table, row) for key, table in tables.items()},
        slots={key: {slot: _row(t, row) for slot, t in work.slots[key].items()} for key in tables},
        counts=work.counts,
        places={key: slice(work.places[key].start + row, work.places[key].start + row + 1) for key in tables},
        totals={},
        parts=[],
    )
    record, features = layout.stage.past(stored), None
    if "past encoder" in layout.stage.trained:
        features = layout.stage.past_features(stored)
    return _of_task(layout, record, features, list(keys), keys, mine) if keys else {}


def _row(table: Tensors, row: int) -> Tensors:
    return {name: tensor[row] for name, tensor in table.items()}


def _of_task(
    layout: Layout,
    record: TaskRecord,
    features: Tensor | None,
    roles: list[Role],
    keys: dict[Role, Key],
    work: Work,
) -> Results:
    """A task's own parameters and moments of these roles. features: those that its encoder learned from."""
    state, settings = layout.stage.state, layout.stage.settings
    progress = state.progress
    assert progress is not None
    old = progress.moments[record.name] if record.name in progress.tasks else state.past_moments[record.name]

    def own_size(before: TaskParams, trained: dict[Key, Tensors]) -> TaskParams:
        own = TaskParams(*(trained.get(keys[role], {}) if role in keys else {} for role in TASK_ROLES))
        params = settings.model.resized(own, record.k, record.outputs)
        name = settings.encoder.feature_weight
        if features is not None and name is not None and name in params.encoder:
            rows = params.encoder[name][: len(features)]
            weight = before.encoder[name].index_copy(0, features, rows)
            params = params._replace(encoder=params.encoder | {name: weight})
        return map_tree(torch.clone, params)

    params = own_size(record.params, work.groups)
    slots = {
        slot: own_size(
            TaskParams(*(old[role].slots[slot] for role in TASK_ROLES)),
            {key: tensors[slot] for key, tensors in work.slots.items()},
        )
        for slot in settings.optimizer.slots
    }
    changed: Results = {}
    for role in roles:
        count = work.counts[work.places[keys[role]]][0].clone()
        moments = Moments({slot: getattr(kept, role) for slot, kept in slots.items()}, count)
        changed[role] = (getattr(params, role), moments)
    return changed
