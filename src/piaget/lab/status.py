"""How far runs are, by what is on disk."""

from __future__ import annotations

import contextlib
import datetime
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from piaget.lab import checkpoint
from piaget.lab.folder import at_work, read_description
from piaget.lab.jobs import Job, read_jobs
from piaget.lab.run import run_folders


@dataclass
class Found:
    """A run. `done`: the share of its work; `last`: when something was last kept."""

    folder: Path
    status: str  # planned, new, running, stopped, failed, done; "interrupted": nobody works there any more
    done: float = 0.0
    last: str | None = None
    error: str | None = None
    together: int = 1  # so many runs are trained as one
    seconds: float = 0.0  # worked so far, on all of them
    left: float | None = None  # seconds of work for this run, as far as that can be known

    @property
    def whole(self) -> float | None:
        """Seconds of work for the whole of this run."""
        return self.seconds / self.done / self.together if self.seconds and self.done else None


def runs_below(out: Path) -> list[Found]:
    """All runs in a folder and below, and those that a sweep there still has to begin."""
    found = {path.parent: _found(path.parent) for path in sorted(out.rglob("run.json"))}
    planned = {
        path: job for job in read_jobs(out) for path in run_folders(job.folder(out), job.seeds)
    }  # fmt: skip
    for path in planned:
        found.setdefault(path, Found(path, "planned"))
    for run in found.values():
        if run.status != "done" and run.whole is not None:
            run.left = run.whole * (1 - run.done)
        elif run.status != "done" and run.folder in planned:
            run.left = _guess(planned[run.folder], [(found[p], job) for p, job in planned.items()])
    return list(found.values())


def _guess(job: Job, known: Sequence[tuple[Found, Job]]) -> float | None:
    """By runs on the same stream, or else by all, and what they cost relative to this one."""
    same = [(run, other) for run, other in known if other.stream == job.stream and run.whole is not None]
    rates = [run.whole / _cost(o) for run, o in same or known if run.whole is not None]
    return statistics.fmean(rates) * _cost(job) if rates else None


def _cost(job: Job) -> float:
    return job.cost / len(job.seeds)


def time_left(runs: Sequence[Found]) -> float | None:
    """Seconds, with as many cohorts at work as there are now (one, if none is). None: not known."""
    left = [run.left for run in runs if run.status != "done"]
    known = [seconds for seconds in left if seconds is not None]
    if not known:
        return None
    at_once = sum(1 / run.together for run in runs if run.status == "running")
    # What is not known takes as long as the others, at a guess.
    return statistics.fmean(known) * len(left) / max(1.0, at_once)


def _found(folder: Path) -> Found:
    described = read_description(folder)
    status, error = str(described["status"]), described.get("error")
    if status == "running" and not at_work(folder):
        status = "interrupted"
    together = described.get("together") or [described["configuration"].get("seed")]
    far = _how_far(folder, described, together)
    rows, last = folder / "rows.csv", None
    if rows.is_file():
        changed = datetime.datetime.fromtimestamp(rows.stat().st_mtime, datetime.UTC)
        last = changed.isoformat(timespec="seconds")
    shown = None if error is None else str(error).strip().splitlines()[-1]
    return Found(folder, status, far[0], last, shown, len(together), far[1])


def _how_far(folder: Path, described: dict[str, Any], together: Sequence[int]) -> tuple[float, float]:
    """The share that is done, and its seconds."""
    if described["status"] == "done":
        return 1.0, float(described.get("seconds") or 0.0)
    (first,) = run_folders(folder.parent, together[:1])
    with contextlib.suppress(FileNotFoundError):  # it was finished just now
        kept = checkpoint.how_far(first / "checkpoint")
        if kept is not None:
            return kept.done, kept.seconds
    return 0.0, 0.0
