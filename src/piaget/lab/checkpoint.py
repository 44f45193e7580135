"""A cohort's checkpoint: all its learners at one moment, and how much of their row files was kept then.

Learners that are trained together go on together: after a crash all of them start from the same
checkpoint, so that the same batches are formed, and the same numbers come out. The checkpoint before the
last one is there, too: if one is damaged, or rows that it counts, they go on from the other.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from piaget.data.tasks import Stream
from piaget.errors import LoadError, SettingError, note
from piaget.knowledge.snapshot import describe, restore
from piaget.knowledge.storage import read_files, write_files
from piaget.lab.kept import BEFORE, FORMAT, LAST, VERSIONS, Kept, kept_of, lost, names
from piaget.lab.row_file import kept_bytes
from piaget.learner import Learner

Effects = list[list[Tensor]]  # of each learner, of the tasks that were probed (scoring/probing.py)


def save(folder: Path, learners: Sequence[Learner], kept: Kept, effects: Effects) -> None:
    """Replaces the checkpoint in one move; the last one is then the one before."""
    described = [describe(learner.state, with_data=False) for learner in learners]
    seeds = [learner.settings.seed for learner in learners]
    header = {"format": FORMAT, "version": VERSIONS[0], "seeds": seeds, "kept": vars(kept)}
    members = [
        description | {"waiting": list(learner.state.pending)}
        for learner, (description, _) in zip(learners, described, strict=True)
    ]
    tree: dict[str, Any] = {str(i): tree for i, (_, tree) in enumerate(described)}
    tree["effects"] = {i: dict(enumerate(of_tasks)) for i, of_tasks in enumerate(effects)}
    write_files(folder, LAST, header | {"members": members}, tree, before=BEFORE)


def load(
    folder: Path, learners: Sequence[Learner], streams: Sequence[Stream], row_files: Sequence[Path]
) -> tuple[Kept, Effects] | None:
    """Brings new learners to where they were. None: nothing was kept.

    Rows are verified with the learners; pending tasks are taken from the streams.
    """
    errors: list[LoadError] = []
    for name in names(folder):
        try:
            kept = _load(folder, name, learners, streams, row_files)
        except LoadError as error:
            errors.append(error)
            continue
        if errors:
            note(f"{errors[0]}. It goes on from the state kept before that.")
        if name == BEFORE:  # the next one that is saved must not take the place of the good one
            os.replace(folder / f"{BEFORE}.json", folder / f"{LAST}.json")
        return kept
    if errors:
        also = f" The state kept before that is no better: {errors[1]}." if errors[1:] else ""
        raise LoadError(f"{errors[0]}.{also} {lost(folder)}") from errors[0]
    return None


def _load(
    folder: Path, name: str, learners: Sequence[Learner], streams: Sequence[Stream], row_files: Sequence[Path]
) -> tuple[Kept, Effects]:
    data, tree = read_files(folder, name, FORMAT, VERSIONS)
    kept, expected = kept_of(folder, data), [learner.settings.seed for learner in learners]
    if data.get("seeds") != expected:
        raise SettingError(f"{folder} keeps the learners of seeds {data.get('seeds')}; expected {expected}")
    try:
        for path, extent in zip(row_files, kept.rows, strict=True):
            kept_bytes(path, extent)
        states = [
            restore(member, tree[str(i)], learner.settings)
            for i, (learner, member) in enumerate(zip(learners, data["members"], strict=True))
        ]
        waiting = [list(member["waiting"]) for member in data["members"]]
        probed = [tree.get("effects", {}).get(str(i), {}) for i in range(len(learners))]
        effects = [[of_tasks[str(j)] for j in range(len(of_tasks))] for of_tasks in probed]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise LoadError(f"{folder} is damaged: {type(error).__name__}: {error}") from error
    for learner, stream, state, initial in zip(learners, streams, states, waiting, strict=True):
        first = {task.name: task for task in stream[: len(initial)]}
        if list(first) != initial:
            raise SettingError(f"{folder}: {initial} were waiting, but the stream begins with {list(first)}")
        state.pending = first
        learner.state = state
    return kept, effects
