"""A cohort's checkpoint: all its learners at one moment, and how long their row files were then.

Learners that are trained together go on together: after a crash all of them start from the same
checkpoint, so that the same batches are formed, and the same numbers come out.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from piaget.data.tasks import Stream
from piaget.errors import LoadError
from piaget.knowledge.snapshot import describe, restore
from piaget.knowledge.storage import read_files, read_header, write_files
from piaget.learner import Learner

FORMAT, VERSIONS, NAME = "piaget checkpoint", (3, 2), "checkpoint"


@dataclass(frozen=True)
class Kept:
    """Beside the learners: the sizes of their row files, the share of the work done, and its time."""

    sizes: list[int]
    done: float
    seconds: float


def save(folder: Path, learners: Sequence[Learner], kept: Kept) -> None:
    """Replaces the checkpoint in one move."""
    described = [describe(learner.state, with_data=False) for learner in learners]
    seeds = [learner.settings.seed for learner in learners]
    header = {"format": FORMAT, "version": VERSIONS[0], "seeds": seeds, "kept": vars(kept)}
    members = [
        description | {"waiting": list(learner.state.pending)}
        for learner, (description, _) in zip(learners, described, strict=True)
    ]
    tree = {str(i): tree for i, (_, tree) in enumerate(described)}
    write_files(folder, NAME, header | {"members": members}, tree)


def seeds(folder: Path) -> list[int]:
    """Whose learners are kept there."""
    return list(_header(folder).get("seeds", []))


def how_far(folder: Path) -> Kept | None:
    """What is kept beside the learners. None: nothing is kept there."""
    header = _header(folder)
    return Kept(**header["kept"]) if header else None


def _header(folder: Path) -> dict[str, Any]:
    """Empty: nothing is kept there."""
    if not (folder / f"{NAME}.json").is_file():
        return {}
    return read_header(folder, NAME, FORMAT, VERSIONS)


def remove(folder: Path) -> None:
    """The description first: without it, nothing is kept there."""
    (folder / f"{NAME}.json").unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def load(folder: Path, learners: Sequence[Learner], streams: Sequence[Stream]) -> Kept | None:
    """Brings new learners to where they were. None: nothing was kept.

    Pending tasks are taken from the streams.
    """
    if not (folder / f"{NAME}.json").is_file():
        return None
    data, tree = read_files(folder, NAME, FORMAT, VERSIONS)
    expected = [learner.settings.seed for learner in learners]
    if data["seeds"] != expected:
        raise LoadError(f"{folder} keeps the learners of seeds {data['seeds']}; expected {expected}")
    for i, (learner, stream, member) in enumerate(zip(learners, streams, data["members"], strict=True)):
        state = restore(member, tree[str(i)], learner.settings)
        first = {task.name: task for task in stream[: len(member["waiting"])]}
        if list(first) != member["waiting"]:
            raise LoadError(
                f"{folder}: {member['waiting']} were waiting, but the stream begins with {list(first)}"
            )
        state.pending = first
        learner.state = state
    return Kept(**data["kept"])
