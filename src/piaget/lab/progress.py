"""How far runs are: what a display, a log and `piaget status` are told. No heavy imports."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from piaget.scoring.rows import Row
    from piaget.scoring.watch import EpochReport

SCORES = ("accuracy", "rmse")
SECONDS = 0.1  # between two reports of progress, at least


@dataclass(frozen=True)
class Progress:
    """A cohort after an epoch. Scores are means over its runs of the latest ones on test data."""

    task: int  # counted from 1
    tasks: int
    name: str  # of the task
    stage: str
    epoch: int
    epochs: int
    components: int  # of the first run
    metric: str | None  # of the scores; None: nothing was evaluated yet
    current: float | None  # the task being learned; known when it is done, or evaluated on the way
    past: float | None  # the mean over all other tasks
    begun_at: float  # the share of the work that was done when it began, or went on
    done: float  # the share that is done, 0 to 1
    seconds: float  # worked so far, also before an interruption
    left: float | None  # seconds


class Tracker:
    """Turns epochs and rows of a cohort into its progress."""

    def __init__(self, tasks: int, done: float = 0.0, seconds: float = 0.0) -> None:
        """`done`, `seconds`: where an interrupted cohort goes on."""
        self.tasks, self.done = tasks, done
        self._done_before, self._seconds_before, self._began = done, seconds, time.monotonic()
        self._scores: dict[str, dict[tuple[int, str], float]] = {}  # {metric: {(seed, task): value}}
        self.current: dict[int, str] = {}  # {seed: task}: runs may learn tasks in different orders
        self._last: tuple[int, EpochReport] | None = None
        self._told = -SECONDS

    def rows(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if row["split"] == "test" and row["metric"] in SCORES:
                self._scores.setdefault(row["metric"], {})[row["seed"], row["evaluated"]] = row["value"]

    @property
    def seconds(self) -> float:
        return self._seconds_before + time.monotonic() - self._began

    def epoch(self, task: int, report: EpochReport) -> None:
        """After every epoch, which may be very short."""
        share = report.epoch / report.epochs
        # The initial tasks are learned together: as much work as one after the other.
        self.done = (task * share if report.stage == "initialization" else task - 1 + share) / self.tasks
        self._last = task, report

    def due(self) -> bool:
        """Is it time to tell of the progress again?"""
        return time.monotonic() - self._told >= SECONDS

    def began(self, task: int) -> bool:
        """Is the last epoch one of this task? (An initial task may only wait for the others.)"""
        return self._last is not None and self._last[0] == task

    def progress(self) -> Progress:
        assert self._last is not None
        self._told = time.monotonic()
        task, report = self._last
        metric, current, past = self.latest(self.current)
        return Progress(
            task, self.tasks, report.task, report.stage, report.epoch, report.epochs, report.components,
            metric, current, past, self._done_before, self.done, self.seconds, self._left(),
        )  # fmt: skip

    def _left(self) -> float | None:
        new = self.done - self._done_before
        return (time.monotonic() - self._began) * (1 - self.done) / new if new > 0 else None

    def latest(self, tasks: Mapping[int, str]) -> tuple[str | None, float | None, float | None]:
        """The metric, and these runs' scores on a task each, and on all others.

        Where tasks have different metrics, that of most of them.
        """
        if not self._scores:
            return None, None, None
        metric, every = max(self._scores.items(), key=lambda item: len(item[1]))
        found = {(seed, name): value for (seed, name), value in every.items() if seed in tasks}
        current = [value for (seed, name), value in found.items() if name == tasks[seed]]
        past = [value for (seed, name), value in found.items() if name != tasks[seed]]
        return metric, _mean(current), _mean(past)


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def duration(seconds: float) -> str:
    """ "45 s", "12 min", "3.2 h", "2.1 days" """
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def score(metric: str | None, value: float | None) -> str:
    """ "accuracy 97.1 %", "rmse 10.2" """
    if metric is None or value is None:
        return ""
    return f"accuracy {100 * value:.1f} %" if metric == "accuracy" else f"{metric} {value:.3g}"
