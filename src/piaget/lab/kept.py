"""What a cohort's checkpoint says beside its learners, and where it is. No heavy imports.

It is two files in a folder: the last checkpoint, and the one before it, which is there in case that the last
one is damaged.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from piaget.data.typed_data import read
from piaget.errors import LoadError
from piaget.files import read_described
from piaget.lab.row_file import Extent

FORMAT, VERSIONS = "piaget checkpoint", (3, 2)
LAST, BEFORE = "checkpoint", "checkpoint-old"  # what the files are called


@dataclass(frozen=True)
class Kept:
    """Beside the learners: how much of their row files, the share of the work done, its time, who diverged
    (seed -> what was said of it), the data, the time that is left, and by what that is told."""

    rows: list[Extent]
    done: float
    seconds: float
    diverged: dict[int, str] = field(default_factory=dict)
    data: list[dict[str, str]] = field(default_factory=list)  # of each run: the fingerprint of each task
    left: float | None = None
    measured: dict[str, dict[int, list[float]]] = field(default_factory=dict)  # progress.Measured


def seeds(folder: Path) -> list[int]:
    """Whose learners are kept there."""
    seeds = _header(folder).get("seeds", [])
    if not isinstance(seeds, list) or not all(isinstance(seed, int) for seed in seeds):
        raise LoadError(f"{folder} is damaged: it does not say whose learners are kept there")
    return seeds


def how_far(folder: Path) -> Kept | None:
    """What is kept beside the learners. None: nothing is kept there."""
    header = _header(folder)
    return kept_of(folder, header) if header else None


def _header(folder: Path) -> dict[str, Any]:
    """Of the newest checkpoint that is readable. Empty: nothing is kept there."""
    errors = []
    for name in names(folder):
        try:
            return read_described(folder / f"{name}.json", FORMAT, VERSIONS)
        except LoadError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return {}


def names(folder: Path) -> Iterator[str]:
    """Of the checkpoints that are there, the last one first."""
    return (name for name in (LAST, BEFORE) if (folder / f"{name}.json").is_file())


# What is kept beside the learners. Older versions kept less; version 2 sizes of row files only.
_KEPT: dict[str, Any] = {
    "rows": list[list[int | str | None]],
    "sizes": list[int],
    "done": float,
    "seconds": float,
    "diverged": dict[str, str],
    "data": list[dict[str, str]],
    "left": float | None,
    "measured": dict[str, dict[str, list[float]]],
}


def kept_of(folder: Path, header: dict[str, Any]) -> Kept:
    """What a checkpoint's description says beside the learners."""
    try:
        there = dict(header["kept"])
        kept = {name: read(_KEPT[name], there[name], name) for name in _KEPT.keys() & there.keys()}
        rows = kept["rows"] if "rows" in kept else [[size] for size in kept["sizes"]]
        return Kept(
            [Extent(*one) for one in rows],
            kept["done"],
            kept["seconds"],
            {int(seed): text for seed, text in kept.get("diverged", {}).items()},
            kept.get("data", []),
            kept.get("left"),
            {kind: dict(map(_work, of.items())) for kind, of in kept.get("measured", {}).items()},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise LoadError(f"{folder} is damaged: it does not say what was kept ({error})") from error


def _work(item: tuple[str, list[float]]) -> tuple[int, list[float]]:
    """A task and [units, seconds] of work at it: neither tasks nor units may be 0."""
    task, (units, seconds) = int(item[0]), item[1]
    if task < 1 or units <= 0 or seconds < 0:
        raise ValueError(f"{units} units of work at task {task} in {seconds} s")
    return task, [units, seconds]


def lost(folder: Path) -> str:
    """What to do if a checkpoint cannot be used, and what that means."""
    return (
        f"What was learned is lost: remove {folder} and give the same command again, and the runs that were "
        "trained together begin anew"
    )


def remove(folder: Path) -> None:
    """The descriptions first: without them, nothing is kept there."""
    for name in (BEFORE, LAST):
        (folder / f"{name}.json").unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
