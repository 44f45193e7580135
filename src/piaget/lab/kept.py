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

from piaget.errors import LoadError
from piaget.files import read_described
from piaget.lab.row_file import Extent

FORMAT, VERSIONS = "piaget checkpoint", (3, 2)
LAST, BEFORE = "checkpoint", "checkpoint-old"  # what the files are called


@dataclass(frozen=True)
class Kept:
    """Beside the learners: how much of their row files, the share of the work done, its time, who diverged
    (seed -> what was said of it), the time that is left, and by what that is told (progress.Measured)."""

    rows: list[Extent]
    done: float
    seconds: float
    diverged: dict[int, str] = field(default_factory=dict)
    left: float | None = None
    measured: dict[str, dict[int, list[float]]] = field(default_factory=dict)


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


def kept_of(folder: Path, header: dict[str, Any]) -> Kept:
    """What a checkpoint's description says beside the learners. Version 2 has sizes of row files only."""
    try:
        kept = dict(header["kept"])
        rows = [Extent(*one) for one in kept.pop("rows", None) or [[size] for size in kept.pop("sizes")]]
        diverged = {int(seed): str(text) for seed, text in kept.pop("diverged", {}).items()}
        measured = {
            str(kind): {int(task): [float(units), float(took)] for task, (units, took) in of_tasks.items()}
            for kind, of_tasks in kept.pop("measured", {}).items()
        }
        left = None if kept.get("left") is None else float(kept["left"])
        return Kept(rows, float(kept["done"]), float(kept["seconds"]), diverged, left, measured)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise LoadError(f"{folder} is damaged: it does not say what was kept ({error})") from error


def remove(folder: Path) -> None:
    """The descriptions first: without them, nothing is kept there."""
    for name in (BEFORE, LAST):
        (folder / f"{name}.json").unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
