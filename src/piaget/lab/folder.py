"""A run's folder: its description, its rows, its log, its lock. Whoever reads or writes one does it here."""

from __future__ import annotations

import contextlib
import datetime
import functools
import json
import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import filelock

from piaget.data.plain import whole_from
from piaget.errors import LoadError, SettingError
from piaget.files import write_atomically
from piaget.lab.row_file import read_rows
from piaget.scoring.rows import Row

LOOK = 0.5  # seconds: `piaget status` holds a lock for a moment, to see whether it is free
ACTIVE = ("new", "running")


# --- reading ------------------------------------------------------------------------------------------


class RunFolder:
    """A run as it is on disk, at the moment when each thing is first asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows_file, self.learner = path / "rows.csv", path / "learner"

    @cached_property
    def description(self) -> dict[str, Any]:
        """What run.json says."""
        return read_description(self.path)

    @property
    def configuration(self) -> dict[str, Any]:
        """What was asked for, and the seed."""
        return self.description["configuration"]

    @property
    def seed(self) -> int | None:
        """Its seed, if it says so."""
        return self.configuration.get("seed")

    @property
    def together(self) -> list[int]:
        """The seeds that are trained as one cohort with it."""
        return self.description.get("together") or [self.configuration.get("seed")]

    @cached_property
    def status(self) -> str:
        """As in run.json; but a run that nobody works on any more is `interrupted`."""
        status = str(self.description["status"])
        return "interrupted" if status == "running" and not at_work(self.path) else status

    def rows(self) -> Iterator[Row]:
        """All its rows so far."""
        return read_rows([self.rows_file])


def runs_below(root: Path) -> list[RunFolder]:
    """All runs in a folder and below it."""
    return [RunFolder(path.parent) for path in sorted(root.rglob("run.json"))]


def runs_in(out: Path) -> list[RunFolder]:
    """The runs of one command into a folder, by their seeds."""
    found = {path.parent: whole_from(path.parent.name[5:]) for path in out.glob("seed-*/run.json")}
    seeds = {path: seed for path, seed in found.items() if seed is not None}
    return [RunFolder(path) for path in sorted(seeds, key=lambda path: seeds[path])]


def seed_folders(out: Path, seeds: Sequence[int]) -> list[Path]:
    """Where the runs of one command are."""
    return [out / f"seed-{seed}" for seed in seeds]


def no_runs(out: Path) -> LoadError:
    """The error about a folder that holds no runs: why it does not."""
    if not out.is_dir():
        return LoadError(f"{out} does not exist, or is no folder")
    return LoadError(f"{out} holds no runs: there is no run.json in it or below it")


def read_description(folder: Path) -> dict[str, Any]:
    """What run.json says, checked."""
    path = folder / "run.json"
    try:
        description = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise LoadError(f"{path} cannot be read: {error}") from error
    if not isinstance(description, dict) or not {"configuration", "status"} <= set(description):
        raise LoadError(f"{path} does not describe a run")
    return description


def is_done(folder: Path) -> bool:
    """A description that cannot be read is not done: whoever runs it will say so."""
    with contextlib.suppress(LoadError):
        return read_description(folder)["status"] == "done"
    return False


# --- writing ------------------------------------------------------------------------------------------


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
    there, used = description["configuration"], description.get("learner")
    differing = _differing(there, wanted)
    if differing == ["settings"] and learner is not None and used is not None:
        there, wanted = used, json.loads(json.dumps(learner))
        differing = _differing(there, wanted)
    if differing:
        shown = ", ".join(f"{key}: {there.get(key)!r} there, {wanted.get(key)!r} now" for key in differing)
        raise SettingError(f"{folder} holds a run with another configuration ({shown}); give another folder")


def _differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return sorted(key for key in {*one, *other} if one.get(key) != other.get(key))


@functools.cache
def software() -> dict[str, Any]:
    """Versions, and the commit of the code."""
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
    """The time, as run.json has it."""
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
