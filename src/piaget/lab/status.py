"""How far runs are, by what is on disk."""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from piaget.errors import LoadError
from piaget.lab import expected_times, folder as folders
from piaget.lab.folder import DIVERGED, DONE, RunFolder, seed_folders
from piaget.lab.jobs import FILE, Job, read_cohorts

DAMAGED = "damaged"  # it cannot be read
ENDED = (DONE, DIVERGED, DAMAGED)  # nothing is left to wait for


@dataclass
class RunStatus:
    """How far a run is. `done`: the share of its work; `last`: when something was last kept."""

    folder: Path
    status: str  # see docs/lab.md
    done: float = 0.0
    last: str | None = None
    error: str | None = None
    together: int = 1  # so many runs are trained as one
    seconds: float = 0.0  # worked so far, on all of them
    to_go: float | None = None  # seconds of work on all of them, as it was expected when last kept
    left: float | None = None  # seconds of work for this run, as far as that can be known
    seed: int | None = None
    cost: float = 0.0  # seconds, as expected beforehand: relative to other runs of a sweep
    alike: Any = None  # stream and options

    @property
    def whole(self) -> float | None:
        """Seconds of work for the whole of this run."""
        if self.to_go is not None:
            return (self.seconds + self.to_go) / self.together
        return self.seconds / self.done / self.together if self.seconds and self.done else None


def statuses(out: Path) -> list[RunStatus]:
    """Of all runs in a folder and below, and of those that sweeps there still have to begin."""
    runs = {run.path: _status(run) for run in folders.runs_below(out)}
    planned: dict[Path, Job] = {}
    for file in sorted(out.rglob(FILE)):
        try:
            jobs = read_cohorts(file.parent)
        except LoadError as error:
            runs[file] = RunStatus(file, DAMAGED, error=str(error))
            continue
        planned |= {path: job for job in jobs for path in seed_folders(job.folder(file.parent), job.seeds)}
    for path, job in planned.items():
        runs.setdefault(path, RunStatus(path, "planned", seed=int(path.name.removeprefix("seed-"))))
        runs[path].cost = expected_times.seconds(job) / len(job.seeds)
        runs[path].alike = (job.stream, job.options)
    expect(runs.values())
    return list(runs.values())


def expect(runs: Collection[RunStatus]) -> None:
    """What is left of each: by what was measured of it, or else of others."""
    rates = _Rates(runs)
    for run in runs:
        if run.status not in ENDED:
            whole = run.whole
            run.left = whole - run.seconds / run.together if whole is not None else rates.guess(run)


class _Rates:
    """What runs took relative to what was expected: to guess how long others will take."""

    def __init__(self, runs: Iterable[RunStatus]) -> None:
        self.all: list[float] = []
        self.alike: dict[Any, list[float]] = {}
        for run in runs:
            if run.whole is not None and run.cost:
                self.all.append(run.whole / run.cost)
                self.alike.setdefault(run.alike, []).append(run.whole / run.cost)

    def guess(self, run: RunStatus) -> float | None:
        """By runs on the same stream, or else by all."""
        rates = self.alike.get(run.alike, self.all)
        return statistics.fmean(rates) * run.cost if rates and run.cost else None


def time_left(runs: Collection[RunStatus], at_once: float | None = None) -> float | None:
    """Seconds, with so many cohorts at work (default: as there are now; one, if none is). None: not known."""
    to_do = [run for run in runs if run.status not in ENDED]
    known = [run.left for run in to_do if run.left is not None]
    if not known:
        return None
    if at_once is None:
        at_once = sum(1 / run.together for run in to_do if run.status == "running")
    longest = max((run.left or 0.0) * run.together for run in to_do)
    # What is not known takes as long as the others, at a guess.
    return max(longest, statistics.fmean(known) * len(to_do) / max(1.0, at_once))


def _status(run: RunFolder) -> RunStatus:
    try:
        status, trace = run.status, run.description.get("error")
        done, seconds, to_go = _how_far(run)
    except LoadError as error:
        return RunStatus(run.path, DAMAGED, error=str(error))
    return RunStatus(
        run.path,
        status,
        done,
        _last_change(run.rows_file),
        error=str(trace).strip().splitlines()[-1] if trace else None,
        together=len(run.together),
        seconds=seconds,
        to_go=to_go,
        seed=run.seed,
    )


def _last_change(path: Path) -> str | None:
    if not path.is_file():
        return None
    changed = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
    return changed.isoformat(timespec="seconds")


def _how_far(run: RunFolder) -> tuple[float, float, float | None]:
    """The share that is done, its seconds, and those that are left, if they were kept."""
    if run.description["status"] == DONE:
        return 1.0, float(run.description.get("seconds") or 0.0), None
    far = run.how_far
    return (far.done, far.seconds, far.left) if far is not None else (0.0, 0.0, None)
