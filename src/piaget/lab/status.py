"""How far runs are, by what is on disk."""

from __future__ import annotations

import csv
import datetime
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from piaget.errors import LoadError


def read_description(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / "run.json").read_text())
    except (OSError, ValueError) as error:
        raise LoadError(f"{folder / 'run.json'} cannot be read: {error}") from error
    if not isinstance(found, dict) or not {"configuration", "status"} <= set(found):
        raise LoadError(f"{folder / 'run.json'} does not describe a run")
    return found


@dataclass
class Found:
    """A run folder. `tasks`: how many tasks have rows; `last`: when something was last kept."""

    folder: Path
    status: str  # new, running, stopped, failed, done; "interrupted": it says running, but nobody works there
    tasks: int
    last: str | None
    error: str | None


def runs_below(out: Path) -> list[Found]:
    return [_found(path.parent) for path in sorted(out.rglob("run.json"))]


def _found(folder: Path) -> Found:
    described = read_description(folder)
    status, error = str(described["status"]), described.get("error")
    rows = folder / "rows.csv"
    if status == "running" and not _at_work(folder.parent):
        status = "interrupted"
    last = None
    if rows.is_file():
        changed = datetime.datetime.fromtimestamp(rows.stat().st_mtime, datetime.UTC)
        last = changed.isoformat(timespec="seconds")
    return Found(folder, status, _tasks(rows), last, None if error is None else str(error).splitlines()[-1])


def _tasks(rows: Path) -> int:
    """Tasks that have test scores; a torn last line does no harm."""
    if not rows.is_file():
        return 0
    with open(rows, newline="", encoding="utf-8", errors="replace") as handle:
        return len({row["evaluated"] for row in csv.DictReader(handle) if row.get("split") == "test"})


def _at_work(out: Path) -> bool:
    """Does a process hold the folder's lock?"""
    lock = filelock.FileLock(out / ".lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        return True
    lock.release()
    return False
