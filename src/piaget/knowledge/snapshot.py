"""A state as plain data and named tensors, and back; also as older versions wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from piaget.data import encoding
from piaget.data.encoding import Encoding, Scaling
from piaget.data.tasks import Kind, Split, Task
from piaget.data.typed_data import read, read_fields
from piaget.knowledge.state import Attempt, Best, Common, Origin, Progress, State, TaskRecord
from piaget.method.parameters import SHARED_ROLES, TASK_ROLES, Moments, Role, SharedParams, TaskParams
from piaget.method.settings import Settings
from piaget.method.stopping import ValidationScores
from piaget.method.trees import Tensors, flatten, map_tree, ordered

Branch = dict[str, Any]  # texts -> tensors or branches: what a tensor file holds

# What is plain data of a task that was learned, of one that is pending, and of one that is being learned.
_TASK_FIELDS: dict[str, Any] = {
    "name": str,
    "kind": Kind,
    "classes": int,
    "labels": tuple[str | int | float | bool, ...] | None,
    "stream": str,
}
_RECORD_FIELDS = _TASK_FIELDS | {"input_shape": tuple[int, ...], "k": int, "temperature": float}
_PROGRESS_FIELDS: dict[str, Any] = {
    "tasks": list[str],
    "epoch": int,
    "candidate": bool,
    "fingerprints": dict[str, str],
    "gains": list[float],
    "stopped": bool,
    "counts": dict[str, float],
    "reduced": bool,
    "validated": dict[str, list[tuple[float, ...]]],
}
_SCALED = {"scaling": Scaling, "encoding": int | None}  # how its data is encoded: by number
# Not in files of older versions.
_LATER = frozenset(["gains", "stopped", "counts", "reduced", "validated", "temperature"])


def describe(state: State, with_data: bool = True) -> tuple[dict[str, Any], Branch]:
    """Plain data, and tensors. `with_data`: with the data of pending tasks."""
    pending = list(state.pending.values()) if with_data else []
    records = list(state.records.values())
    tree: Branch = {
        "components": state.components,
        "moments": _of_moments(state.moments),
        "shared": state.shared._asdict(),
        "shared_moments": _of_roles(state.shared_moments),
        "memory": state.memory,
        "generator": state.generator.get_state(),
        "tasks": {str(i): record.params._asdict() for i, record in enumerate(records)},
        "usage": {str(i): record.usage for i, record in enumerate(records) if record.usage is not None},
        "pending": {str(i): _task_tensors(task) for i, task in enumerate(pending)},
        "notes": {str(i): record.note for i, record in enumerate(records) if record.note is not None},
    }
    places = {name: str(i) for i, name in enumerate(state.records)}
    if state.past_moments:
        tree["past_moments"] = {places[name]: _of_roles(m) for name, m in state.past_moments.items()}
    described: list[TaskRecord | Task] = [*records, *pending]
    encodings = list(dict.fromkeys(d.encoding for d in described if d.encoding is not None))
    description: dict[str, Any] = {
        "records": [_fields(record, _RECORD_FIELDS, encodings) for record in records],
        "pending": [_fields(task, _TASK_FIELDS, encodings) for task in pending],
        "encodings": [encoding.to_json(e) for e in encodings],
        "progress": None,
        "steps": state.steps,
    }
    if state.merged:
        description["merged"] = [asdict(origin) for origin in state.merged]
    if state.progress is not None:
        progress = state.progress
        tree["progress"] = {str(i): _of_roles(m) for i, m in enumerate(progress.moments.values())}
        tree["best"] = {str(progress.tasks.index(name)): _of_best(b) for name, b in progress.best.items()}
        tree["generator"] = progress.generator
        if progress.before is not None:
            tree["before"] = _of_common(progress.before, places)
        if progress.origin is not None:
            tree["origin"] = _of_common(progress.origin, places)
        if progress.first is not None:
            tree["first"] = _of_attempt(progress.first, places)
        description["progress"] = {name: getattr(progress, name) for name in _PROGRESS_FIELDS}
    return description, tree


def _of_moments(moments: Moments) -> Branch:
    return {**moments.slots, "count": moments.updates}


def _of_roles(moments: Mapping[Role, Moments]) -> Branch:
    return {role: _of_moments(kept) for role, kept in moments.items()}


def _of_best(best: Best) -> Branch:
    branch: Branch = {"epoch": torch.tensor(best.epoch), "params": best.params._asdict()}
    branch["moments"] = _of_roles(best.moments)
    if best.candidate is not None:
        params, moments = best.candidate
        branch |= {"candidate": params, "candidate_moments": _of_moments(moments)}
    return branch


def _of_common(common: Common, places: Mapping[str, str]) -> Branch:
    return {
        "components": common.components,
        "moments": _of_moments(common.moments),
        "shared": common.shared._asdict(),
        "shared_moments": _of_roles(common.shared_moments),
        "past": {places[name]: params._asdict() for name, params in common.past.items()},
        "past_moments": {places[name]: _of_roles(m) for name, m in common.past_moments.items()},
    }


def _of_attempt(attempt: Attempt, places: Mapping[str, str]) -> Branch:
    return {
        "params": attempt.params._asdict(),
        "moments": _of_roles(attempt.moments),
        "common": _of_common(attempt.common, places),
        "generator": attempt.generator,
    }


def _fields(described: TaskRecord | Task, names: Iterable[str], encodings: list[Encoding]) -> dict[str, Any]:
    """What describes a task; its encoding by its number, since tasks share one."""
    number = None if described.encoding is None else encodings.index(described.encoding)
    fields = {name: getattr(described, name) for name in names}
    return fields | {"scaling": described.scaling.to_json(), "encoding": number}


def _task_tensors(task: Task) -> Branch:
    return {name: {"x": split.x, "y": split.y} for name, split in task.splits()}


# --- back -------------------------------------------------------------------------------------------------


def restore(data: dict[str, Any], tree: Branch, settings: Settings) -> State:
    """The state that was described, on the device of the settings. ValueError: it is none."""
    slots = settings.optimizer.slots
    tree = ordered(upgraded(tree))
    names = flatten(tree).keys()
    generator, usages = tree.pop("generator"), tree.pop("usage", {})
    notes = tree.pop("notes", {})
    pending = tree.pop("pending", {})
    tree = map_tree(lambda t: t.to(settings.device), tree)  # all but what stays on the CPU
    state = State(torch.Generator(), steps=read(int, data.get("steps", 0), "steps"))
    state.generator.set_state(generator)
    state.merged = read(tuple[Origin, ...], data.get("merged", []), "merged")
    if "components" in tree:
        state.put(_common(tree, {}, slots))
    state.memory = {name: _flat(branch) for name, branch in tree.get("memory", {}).items()}
    encodings = read(tuple[Encoding, ...], data["encodings"], "encodings")
    for i, described in enumerate(read(list[dict[str, Any]], data["records"], "records")):
        fields = _from_fields(_RECORD_FIELDS, described, encodings, f"records[{i}]")
        params = _task_params(tree.get("tasks", {}).get(str(i), {}))
        note = _flat(notes[str(i)]) if str(i) in notes else None
        record = TaskRecord(**fields, params=params, usage=usages.get(str(i)), note=note)
        state.records[_new(record.name, state.records)] = record
        if str(i) in tree.get("past_moments", {}):
            state.past_moments[record.name] = _by_role(tree["past_moments"][str(i)], TASK_ROLES, slots)
    for i, described in enumerate(read(list[dict[str, Any]], data["pending"], "pending")):
        fields = _from_fields(_TASK_FIELDS, described, encodings, f"pending[{i}]")
        splits: dict[str, Any] = {name: Split(**split) for name, split in pending[str(i)].items()}
        state.pending[_new(fields["name"], state.pending)] = Task(**fields, **splits)
    used = [record.encoding for record in state.records.values()]
    used += [task.encoding for task in state.pending.values()]
    if not all(one in used for one in encodings):
        raise ValueError("there are encodings that no task has")
    if data["progress"] is not None:
        state.progress = _progress(data["progress"], tree, state, generator, slots)
    unread = names - flatten(describe(state)[1]).keys()
    if unread:
        raise ValueError(f"tensors that belong to nothing: {', '.join(sorted(unread)[:5])}")
    return state


def _progress(data: Any, tree: Branch, state: State, generator: Tensor, slots: Sequence[str]) -> Progress:
    """How far a task is that is being learned."""
    fields = read_fields(_PROGRESS_FIELDS, data, "progress", optional=_LATER)
    moments = {
        name: _by_role(tree.get("progress", {}).get(str(i), {}), TASK_ROLES, slots)
        for i, name in enumerate(fields["tasks"])
    }
    seen = {n: [ValidationScores(*one) for one in some] for n, some in fields.pop("validated", {}).items()}
    branches = tree.get("best", {})
    best = {
        name: _best(branches[str(i)], slots) for i, name in enumerate(fields["tasks"]) if str(i) in branches
    }
    before, origin = (
        _common(tree[name], state.records, slots) if name in tree else None for name in ("before", "origin")
    )
    return Progress(
        moments=moments,
        generator=generator.clone(),
        validated=seen,
        best=best,
        before=before,
        origin=origin,
        first=_attempt(tree["first"], state.records, slots) if "first" in tree else None,
        **fields,
    )


def _common(tree: Branch, records: Mapping[str, TaskRecord], slots: Sequence[str]) -> Common:
    """What several tasks depend on. records: of the tasks whose own parameters may be among it."""
    shared, past, moments = (tree.get(name, {}) for name in ("shared", "past", "past_moments"))
    places = {name: str(i) for i, name in enumerate(records)}
    return Common(
        components=_flat(tree["components"]),
        moments=_moments(tree["moments"], slots),
        shared=SharedParams(_flat(shared.get("encoder", {})), _flat(shared.get("decoder", {}))),
        shared_moments=_by_role(tree.get("shared_moments", {}), SHARED_ROLES, slots),
        past={name: _task_params(past[i]) for name, i in places.items() if i in past},
        past_moments={
            name: _by_role(moments[i], TASK_ROLES, slots) for name, i in places.items() if i in moments
        },
    )


def _new(name: str, known: Mapping[str, Any]) -> str:
    if not name or name in known:
        raise ValueError(f"a task is called {name!r}; expected names that differ")
    return name


def _moments(branch: Branch, slots: Sequence[str]) -> Moments:
    """Groups without parameters have no tensors in the file."""
    count = branch.get("count")
    kept = {slot: _flat(branch.get(slot, {})) for slot in slots}
    return Moments(kept, torch.zeros((), dtype=torch.float64) if count is None else count)


def _best(branch: Branch, slots: Sequence[str]) -> Best:
    candidate = None
    if "candidate" in branch:
        candidate = _flat(branch["candidate"]), _moments(branch["candidate_moments"], slots)
    moments = _by_role(branch["moments"], TASK_ROLES, slots)
    return Best(int(branch["epoch"]), _task_params(branch["params"]), moments, candidate)


def _attempt(branch: Branch, records: Mapping[str, TaskRecord], slots: Sequence[str]) -> Attempt:
    moments = _by_role(branch["moments"], TASK_ROLES, slots)
    common, generator = _common(branch["common"], records, slots), branch["generator"].cpu()
    torch.Generator().set_state(generator)  # is it one?
    return Attempt(_task_params(branch["params"]), moments, common, generator)


def _by_role(branch: Branch, roles: Sequence[Role], slots: Sequence[str]) -> dict[Role, Moments]:
    return {role: _moments(branch.get(role, {}), slots) for role in roles}


def _task_params(branch: Branch) -> TaskParams:
    return TaskParams(*(_flat(branch.get(role, {})) for role in TASK_ROLES))


def _flat(branch: Branch, prefix: str = "") -> Tensors:
    """Parameters are a flat dictionary, also where their names have slashes in them."""
    flat: Tensors = {}
    for name, value in branch.items():
        flat |= {prefix + name: value} if isinstance(value, Tensor) else _flat(value, f"{prefix}{name}/")
    return flat


def _from_fields(
    hints: dict[str, Any], described: dict[str, Any], encodings: Sequence[Encoding], where: str
) -> dict[str, Any]:
    """The inverse of `_fields`."""
    fields = read_fields(hints | _SCALED, described, where, optional=_LATER)
    number = fields["encoding"]
    if number is not None and not 0 <= number < len(encodings):
        raise ValueError(f"{where}.encoding is {number}; there are {len(encodings)}")
    return fields | {"encoding": None if number is None else encodings[number]}


# --- as version 0.1 wrote it ------------------------------------------------------------------------------


def upgraded(tree: Branch) -> Branch:
    """Tensors of version 0.1 by the current names: what tasks share was `io`, their own parameters `own`, and
    the moments of all parts of a task were counted together."""
    if "own" not in tree and "io" not in tree:
        return tree
    new = {
        name: branch for name, branch in tree.items() if name not in ("own", "io", "io_moments", "progress")
    }
    new["tasks"] = tree.get("own", {})
    new["shared"] = tree.get("io", {})
    of_shared = _split_moments(tree.get("io_moments", {}), ("encoder", "decoder"))
    new["shared_moments"] = {f"shared {part}": branch for part, branch in of_shared.items()}
    if "progress" in tree:
        new["progress"] = {i: _split_moments(branch, TASK_ROLES) for i, branch in tree["progress"].items()}
    return new


def _split_moments(branch: Branch, parts: Sequence[str]) -> Branch:
    """{slot: {part: tensors}, count} -> {part: {slot: tensors, count}}"""
    return {
        part: {slot: of_parts.get(part, {}) for slot, of_parts in branch.items() if slot != "count"}
        | {"count": branch["count"]}
        for part in parts
        if branch
    }
