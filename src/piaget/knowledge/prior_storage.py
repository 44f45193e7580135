"""What a prior learner knows, and how it is saved: safetensors and JSON, as `storage.py` does it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from piaget import prior
from piaget.data.class_weight import ClassWeight, check_class_weight, check_classes
from piaget.data.typed_data import read
from piaget.errors import LoadError, SettingError
from piaget.knowledge.common import Common, Label, restored
from piaget.knowledge.storage import PRIOR_FORMAT, as_folder, damaged, no_learner, read_files, write_files

VERSIONS = (1,)


@dataclass(frozen=True, eq=False)
class Lessons:
    """What was learned of one task: the marks of its rows, a batch each time."""

    stream: str
    batches: tuple[Tensor, ...]

    @property
    def rows(self) -> int:
        return sum(map(len, self.batches))


@dataclass(frozen=True, eq=False)
class PriorState:
    """All that a save keeps. It never changes: something new makes another one."""

    labels: tuple[Label, ...] | None  # as they were given
    rows: int
    trees: bool
    seed: int
    common: Common | None
    known: prior.Knowledge | None
    lessons: Mapping[str, Lessons]
    class_weight: ClassWeight | None = None


def save(folder: str | os.PathLike[str], state: PriorState) -> None:
    """Writes it into a folder."""
    plain, tree = (None, {}) if state.known is None else prior.describe(state.known)
    description = {
        "format": PRIOR_FORMAT,
        "version": VERSIONS[0],
        "settings": settings_of(state),
        "common": None if state.common is None else state.common.describe(),
        "lessons": [
            {"task": task, "stream": one.stream, "batches": [len(batch) for batch in one.batches]}
            for task, one in state.lessons.items()
        ],
        "knowledge": plain,
    }
    marks = {str(i): torch.cat(one.batches) for i, one in enumerate(state.lessons.values())}
    write_files(as_folder(folder, SettingError), "learner", description, {"knowledge": tree, "marks": marks})


def settings_of(state: PriorState) -> dict[str, Any]:
    """As plain data."""
    labels = None if state.labels is None else list(state.labels)
    weight = state.class_weight  # JSON has texts as keys only
    pairs = [list(pair) for pair in weight.items()] if isinstance(weight, dict) else weight
    settings = {"labels": labels, "rows": state.rows, "trees": state.trees, "seed": state.seed}
    return settings if weight is None else settings | {"class_weight": pairs}


_PLAIN: dict[str, Any] = {
    "settings": dict[str, Any],
    "common": dict[str, Any] | None,
    "lessons": list[dict[str, Any]],
    "knowledge": dict[str, Any] | None,
}


def load(folder: str | os.PathLike[str]) -> PriorState:
    """What `save` wrote, checked."""
    path = as_folder(folder, LoadError)
    if not (path / "learner.json").is_file():
        raise no_learner(path)
    try:
        data, tree = read_files(path, "learner", PRIOR_FORMAT, VERSIONS)
        return _state(data, tree)
    except LoadError:
        raise
    except Exception as error:  # whatever is in a file: it is no bug of the reader's
        raise damaged(path, error) from error


def _state(data: dict[str, Any], tree: dict[str, Any]) -> PriorState:
    plain = {name: read(hint, data.get(name), name) for name, hint in _PLAIN.items()}
    settings = plain["settings"]
    common = None if plain["common"] is None else restored(plain["common"])
    known = None
    if plain["knowledge"] is not None:
        known = prior.restore(plain["knowledge"], tree.get("knowledge", {}))
    lessons = {}
    for i, one in enumerate(plain["lessons"]):
        sizes = read(list[int], one.get("batches"), "batches")
        marks = tree["marks"][str(i)]
        if marks.dtype != torch.int64 or marks.shape != (sum(sizes),) or min(sizes, default=0) < 0:
            raise ValueError(f"marks of {one.get('task')!r} are not of {sum(sizes)} rows")
        stream = read(str, one.get("stream"), "stream")
        lessons[read(str, one.get("task"), "task")] = Lessons(stream, tuple(marks.split(sizes)))
    state = PriorState(
        read(tuple[Label, ...] | None, settings.get("labels"), "labels"),
        read(int, settings.get("rows"), "rows"),
        read(bool, settings.get("trees"), "trees"),
        read(int, settings.get("seed"), "seed"),
        common,
        known,
        lessons,
        _class_weight(settings.get("class_weight")),
    )
    _check(state)
    return state


def _class_weight(stored: Any) -> ClassWeight | None:
    if isinstance(stored, list):
        stored = dict(read(list[tuple[Label, float]], stored, "class_weight"))
    return check_class_weight(stored)


def _check(state: PriorState) -> None:
    """Raises ValueError if parts do not belong together."""
    known, common = state.known, state.common
    if known is None or common is None:
        if known is not None or common is not None or state.lessons:
            raise ValueError("there is knowledge without what tasks have in common, or the reverse")
        return
    if list(known.records) != list(state.lessons):
        raise ValueError("the tasks that are known are not those that were learned")
    if known.form.kind != common.kind or known.form.classes != len(common.labels):
        raise ValueError(f"knowledge is of {known.form.kind} tasks; expected {common.kind}")
    check_classes(state.class_weight, common.labels)
    inputs = torch.Size(common.input_shape).numel()
    if known.frame is not None and len(known.frame.center) != inputs:
        raise ValueError(f"knowledge is of {len(known.frame.center)} inputs; expected {inputs}")
    rows = {task: record.n for task, record in known.records.items()}
    if rows != {task: one.rows for task, one in state.lessons.items()}:
        raise ValueError("numbers of rows differ")
