"""How far runs are, by what is on disk."""

from __future__ import annotations

import contextlib
import datetime
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from piaget.errors import LoadError
from piaget.lab import checkpoint
from piaget.lab.folder import at_work, read_description
from piaget.lab.jobs import FILE, read_cohorts
from piaget.lab.runs import run_folders


@dataclass
class Found:
    """A run. `done`: the share of its work; `last`: when something was last kept."""

    folder: Path
    status: str  # see docs/lab.md
    done: float = 0.0
    last: str | None = None
    error: str | None = None
    together: int = 1  # so many runs are trained as one
    seconds: float = 0.0  # worked so far, on all of them
    left: float | None = None  # seconds of work for this run, as far as that can be known
    seed: int | None = None
    cost: float = 0.0  # expected, relative to other runs of a sweep
    alike: Any = None  # stream and options

    @property
    def whole(self) -> float | None:
        """Seconds of work for the whole of this run."""
        return self.seconds / self.done / self.together if self.seconds and self.done else None


def runs_below(out: Path) -> list[Found]:
    """All runs in a folder and below, and those that sweeps there still have to begin."""
    found = {path.parent: _found(path.parent) for path in sorted(out.rglob("run.json"))}
    planned = {
        path: job
        for file in sorted(out.rglob(FILE))
        for job in read_cohorts(file.parent)
        for path in run_folders(job.folder(file.parent), job.seeds)
    }
    for path, job in planned.items():
        found.setdefault(path, Found(path, "planned", seed=int(path.name.removeprefix("seed-"))))
        found[path].cost = job.cost / len(job.seeds)
        found[path].alike = (job.stream, job.options)
    rates = _Rates(found.values())
    for run in found.values():
        if run.status != "done":
            run.left = run.whole * (1 - run.done) if run.whole is not None else rates.guess(run)
    return list(found.values())


class _Rates:
    """What runs took relative to what was expected: to guess how long others will take."""

    def __init__(self, runs: Iterable[Found]) -> None:
        self.all: list[float] = []
        self.alike: dict[Any, list[float]] = {}
        for run in runs:
            if run.whole is not None and run.cost:
                self.all.append(run.whole / run.cost)
                self.alike.setdefault(run.alike, []).append(run.whole / run.cost)

    def guess(self, run: Found) -> float | None:
        """By runs on the same stream, or else by all."""
        rates = self.alike.get(run.alike, self.all)
        return statistics.fmean(rates) * run.cost if rates and run.cost else None


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
    try:
        described = read_description(folder)
    except LoadError as error:
        return Found(folder, "unreadable", error=str(error))
    status, trace = str(described["status"]), described.get("error")
    if status == "running" and not at_work(folder):
        status = "interrupted"
    together = described.get("together") or [described["configuration"].get("seed")]
    far = _how_far(folder, described, together)
    rows, last = folder / "rows.csv", None
    if rows.is_file():
        changed = datetime.datetime.fromtimestamp(rows.stat().st_mtime, datetime.UTC)
        last = changed.isoformat(timespec="seconds")
    shown = None if trace is None else str(trace).strip().splitlines()[-1]
    seed = described["configuration"].get("seed")
    return Found(folder, status, far[0], last, shown, len(together), far[1], seed=seed)


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
