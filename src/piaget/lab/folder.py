"""A run's folder: its description, its log, its lock."""

from __future__ import annotations

import contextlib
import datetime
import functools
import json
import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import filelock

from piaget.errors import LoadError, SettingError
from piaget.knowledge.storage import write_atomically

LOOK = 0.5  # seconds: `piaget status` holds a lock for a moment, to see whether it is free


def read_description(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / "run.json").read_text())
    except (OSError, ValueError) as error:
        raise LoadError(f"{folder / 'run.json'} cannot be read: {error}") from error
    if not isinstance(found, dict) or not {"configuration", "status"} <= set(found):
        raise LoadError(f"{folder / 'run.json'} does not describe a run")
    return found


def begin(
    folder: Path, configuration: dict[str, Any], seed: int, learner: dict[str, Any] | None = None, **more: Any
) -> None:
    """Describes a new run; an old one must be of the same configuration.

    `learner`: all its settings, also those that nobody chose.
    """
    wanted = json.loads(json.dumps(configuration | {"seed": seed}))
    if (folder / "run.json").is_file():
        _check_same(folder, wanted, learner)
        return
    folder.mkdir(parents=True, exist_ok=True)
    description = {
        "configuration": wanted,
        "learner": learner,
        "status": "new",
        "started": now(),
        "finished": None,
        "error": None,
        "machine": {"system": platform.platform(), "processor": platform.machine(), "cores": os.cpu_count()},
    }
    _write(folder, description | more | software())


def _check_same(folder: Path, wanted: dict[str, Any], learner: dict[str, Any] | None) -> None:
    """A setting that is given now, and was the default then, is no difference."""
    description = read_description(folder)
    found, used = description["configuration"], description.get("learner")
    differing = sorted(key for key in {*wanted, *found} if wanted.get(key) != found.get(key))
    if differing == ["settings"] and learner is not None and used is not None:
        found, wanted = used, json.loads(json.dumps(learner))
        differing = sorted(key for key in {*wanted, *found} if wanted.get(key) != found.get(key))
    if differing:
        shown = ", ".join(f"{key}: {found.get(key)!r} there, {wanted.get(key)!r} now" for key in differing)
        raise SettingError(f"{folder} holds a run with another configuration ({shown}); give another folder")


@functools.cache
def software() -> dict[str, Any]:
    import torch

    import piaget

    versions = {"piaget": piaget.__version__, "torch": torch.__version__}
    return {"versions": versions | {"python": platform.python_version()}, "commit": _commit()}


def note(folder: Path, **changes: Any) -> None:
    """Changes the description."""
    _write(folder, read_description(folder) | changes)


def _write(folder: Path, description: dict[str, Any]) -> None:
    write_atomically(folder / "run.json", json.dumps(description, indent=1).encode())


def log(folder: Path, text: str) -> None:
    """A line with the time. It is for people: nothing is read back from it."""
    with open(folder / "log.txt", "a", encoding="utf-8") as handle:
        handle.write(f"{now()} {text}\n")


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _commit() -> str | None:
    """The commit of the code, if it runs from a checkout."""
    here = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", "-C", str(here), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


@contextlib.contextmanager
def only_one(folders: Sequence[Path]) -> Iterator[None]:
    """One process at a time works in a folder."""
    with contextlib.ExitStack() as locks:
        for folder in folders:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise SettingError(f"the output folder {folder} cannot be made: {error.strerror}") from error
            try:
                locks.enter_context(filelock.FileLock(folder / ".lock", timeout=LOOK))
            except filelock.Timeout:
                raise SettingError(
                    f"{folder}: another process is working there; wait for it, or give another folder"
                ) from None
        yield


def at_work(folder: Path) -> bool:
    """Does a process hold the folder's lock?"""
    if not (folder / ".lock").exists():
        return False
    lock = filelock.FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        return True
    lock.release()
    return False
