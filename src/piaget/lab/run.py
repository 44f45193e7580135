"""Runs: learners of one method over streams, kept on disk so that nothing is lost.

A run is one stream, method and seed. It has a folder of its own:

    run.json     configuration, versions, machine, times, status
    rows.csv     all scores, one a line; it only grows
    learner/     the learner, when the run is done

The runs of one call are trained together as a cohort, and have one checkpoint, beside their folders.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import platform
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock
import torch

import piaget
from piaget.checks import check_task
from piaget.cohort import Cohort
from piaget.errors import SettingError
from piaget.evaluation import EpochReport, Row
from piaget.lab import checkpoint
from piaget.lab.rows import RowFile
from piaget.lab.status import read_description
from piaget.learner import Learner
from piaget.state import State
from piaget.storage import write_atomically
from piaget.tasks import Stream, Task


@dataclass(frozen=True)
class Progress:
    """What a display is told of after each epoch of the first run."""

    task: int  # counted from 1
    tasks: int
    epoch: EpochReport


def run(
    learners: Sequence[Learner],
    streams: Sequence[Stream],
    out: Path,
    configuration: dict[str, Any],
    on_progress: Callable[[Progress], None] | None = None,
    every: int | None = None,
) -> list[Path]:
    """Learns all tasks of each stream with its learner; the folders of the runs.

    Called again with the same configuration after any interruption, it goes on from the last checkpoint
    and ends with the same rows and learners. Finished, it does nothing.
    """
    runs = {l.settings.seed: _Run(out, l, stream) for l, stream in zip(learners, streams, strict=True)}
    out.mkdir(parents=True, exist_ok=True)
    with _only_one(out):
        for one in runs.values():
            _begin(one.folder, configuration, one.learner.settings.seed)
        # What was interrupted goes on first, in the same company: then the same numbers come out.
        begun = checkpoint.seeds(out / "checkpoint")
        if not set(begun) <= set(runs):
            raise SettingError(
                f"{out}: seeds {begun} were interrupted, and must be among those to go on with"
            )
        _train([runs[seed] for seed in begun], out / "checkpoint", on_progress, every)
        rest = [one for one in runs.values() if read_description(one.folder)["status"] != "done"]
        _train(rest, out / "checkpoint", on_progress, every)
        checkpoint.remove(out / "checkpoint")  # what a crash at the very end may have left
    return [one.folder for one in runs.values()]


@dataclass
class _Run:
    out: Path
    learner: Learner
    stream: Stream

    @property
    def folder(self) -> Path:
        return self.out / f"seed-{self.learner.settings.seed}"


def _train(
    runs: Sequence[_Run], keep: Path, on_progress: Callable[[Progress], None] | None, every: int | None
) -> None:
    """Runs that are trained together, from their checkpoint, if there is one, to their end."""
    if not runs:
        return
    learners, streams = [one.learner for one in runs], [one.stream for one in runs]
    kept = checkpoint.load(keep, learners, streams)
    sizes: Sequence[int | None] = [None] * len(runs) if kept is None else kept
    files = [RowFile(one.folder / "rows.csv", size) for one, size in zip(runs, sizes, strict=True)]
    for one in runs:
        _note(one.folder, status="running", error=None)
    try:
        _learn(learners, streams, Keeper(keep, learners, files), on_progress, every)
    except BaseException as error:
        stopped = not isinstance(error, Exception) or isinstance(error, OSError)
        changes = {"status": "stopped" if stopped else "failed", "error": traceback.format_exc()}
        with contextlib.suppress(OSError):  # the disk may be full
            for one in runs:
                _note(one.folder, **changes)
        raise
    for one in runs:
        one.learner.save(one.folder / "learner")
        _note(one.folder, status="done", finished=_now())
    checkpoint.remove(keep)


def _learn(
    learners: Sequence[Learner],
    streams: Sequence[Stream],
    keeper: Keeper,
    on_progress: Callable[[Progress], None] | None,
    every: int | None,
) -> None:
    past: list[list[Task]] = [[] for _ in streams]  # without most of their training data
    total = len(streams[0])
    for i in range(total):
        tasks = [stream[i] for stream in streams]
        # Learners that went on alone may have finished a task that others are still at.
        todo = [r for r, task in enumerate(tasks) if not _has(learners[r], task)]

        def on_epoch(report: EpochReport, i: int = i) -> None:
            if on_progress is not None and report.seed == learners[0].settings.seed:
                on_progress(Progress(i + 1, total, report))

        if todo:
            Cohort([learners[r] for r in todo]).learn(
                [tasks[r] for r in todo],
                evaluate_on=[[*past[r], tasks[r]] for r in todo],
                every=every,
                on_epoch=on_epoch,
                on_row=keeper.row,
                keeper=keeper,
            )
            keeper.keep()
        past = [[*earlier, task.lean()] for earlier, task in zip(past, tasks, strict=True)]


def _has(learner: Learner, task: Task) -> bool:
    """Learned, or waiting for the other initial tasks, and not the one being learned."""
    progress = learner._state.progress
    if progress is not None and progress.tasks[-1] == task.name:
        return False
    return task.name in learner.tasks or task.name in learner.pending


class Keeper:
    """Keeps learners and rows together: rows are on disk before the checkpoint that counts them."""

    SHARE = 0.03  # of the time may be spent on keeping: of very short epochs, not every one is kept

    def __init__(self, folder: Path, learners: Sequence[Learner], files: Sequence[RowFile]) -> None:
        self.folder, self.learners, self.files = folder, learners, files
        self.rows: dict[int, list[Row]] = {learner.settings.seed: [] for learner in learners}
        self.cost, self.last = 0.0, time.monotonic()
        self.began: float | None = None  # bringing the states up to date is part of the cost

    def row(self, row: Row) -> None:
        self.rows[row["seed"]].append(row)

    def due(self) -> bool:
        now = time.monotonic()
        due = now - self.last >= self.cost / self.SHARE
        self.began = now if due else None
        return due

    def keep(self) -> None:
        start = time.monotonic() if self.began is None else self.began
        for learner, file in zip(self.learners, self.files, strict=True):
            rows = self.rows[learner.settings.seed]
            file.append(rows)
            rows.clear()
        checkpoint.save(self.folder, self.learners, [file.size for file in self.files])
        self.last = time.monotonic()
        self.cost, self.began = self.last - start, None


# --- folders --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _only_one(out: Path) -> Iterator[None]:
    """One process at a time works in a folder."""
    lock = filelock.FileLock(out / ".lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise SettingError(
            f"{out}: another process is working there; wait for it, or give another folder"
        ) from None
    try:
        yield
    finally:
        lock.release()


def _begin(folder: Path, configuration: dict[str, Any], seed: int) -> None:
    """Describes a new run; an old one must be of the same configuration."""
    path = folder / "run.json"
    wanted = json.loads(json.dumps(configuration | {"seed": seed}))
    if path.is_file():
        found = read_description(folder)
        differing = {
            key
            for key in {*wanted, *found["configuration"]}
            if wanted.get(key) != found["configuration"].get(key)
        }
        if differing:
            shown = ", ".join(
                f"{key}: {found['configuration'].get(key)!r} there, {wanted.get(key)!r} now"
                for key in sorted(differing)
            )
            raise SettingError(
                f"{folder} holds a run with another configuration ({shown}); give another folder"
            )
        return
    folder.mkdir(parents=True, exist_ok=True)
    description = {
        "configuration": wanted,
        "status": "new",
        "started": _now(),
        "finished": None,
        "error": None,
        "versions": {
            "piaget": piaget.__version__, "torch": torch.__version__, "python": platform.python_version(),
        },
        "machine": {"system": platform.platform(), "processor": platform.machine(), "cores": os.cpu_count()},
        "commit": _commit(),
    }  # fmt: skip
    write_atomically(path, json.dumps(description, indent=1).encode())


def _note(folder: Path, **changes: Any) -> None:
    description = read_description(folder) | changes
    write_atomically(folder / "run.json", json.dumps(description, indent=1).encode())


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _commit() -> str | None:
    """The commit of the code, if it runs from a checkout."""
    here = Path(piaget.__file__).parent
    try:
        done = subprocess.run(
            ["git", "-C", str(here), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def check_stream(learner: Learner, stream: Stream) -> None:
    """Raises an error if a task could not be learned, before any of them is. The learner is new."""
    settings = learner.settings
    proposes = settings.algorithm.expansion.proposes
    for i in range(len(stream)):
        check_task(settings, State(torch.Generator()), stream[i], proposes and i >= settings.initial_tasks)
