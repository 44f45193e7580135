"""How far runs are: what a display, a log and `piaget status` are told. No heavy imports."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from piaget.scoring.rows import Row, is_score

if TYPE_CHECKING:
    from piaget.scoring.watch import EpochReport

SECONDS = 0.1  # between two reports, at least


@dataclass(frozen=True)
class Standing:
    """Where a cohort stands after an epoch. Scores are means over its runs of the latest on test data."""

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
    """Follows the epochs and rows of a cohort, and says where it stands."""

    def __init__(self, tasks: int, done: float = 0.0, seconds: float = 0.0) -> None:
        """`done`, `seconds`: where an interrupted cohort goes on."""
        self.tasks, self.done = tasks, done
        self._done_before, self._seconds_before, self._began = done, seconds, time.monotonic()
        self._scores: dict[str, dict[tuple[int, str], float]] = {}  # {metric: {(seed, task): value}}
        self.current: dict[int, str] = {}  # {seed: task}: runs may learn tasks in different orders
        self._last: tuple[int, EpochReport] | None = None
        self._told = -SECONDS

    def rows(self, rows: Iterable[Row]) -> None:
        """Takes note of new scores."""
        for row in rows:
            if is_score(row):
                self._scores.setdefault(row["metric"], {})[row["seed"], row["evaluated"]] = row["value"]

    @property
    def seconds(self) -> float:
        """Worked so far, also before an interruption."""
        return self._seconds_before + time.monotonic() - self._began

    def epoch(self, task: int, report: EpochReport) -> None:
        """Takes note of an epoch, which may be very short."""
        share = report.epoch / report.epochs
        # The initial tasks are learned together: as much work as one after the other.
        self.done = (task * share if report.stage == "initialization" else task - 1 + share) / self.tasks
        self._last = task, report

    def due(self) -> bool:
        """Is it time to report again?"""
        return time.monotonic() - self._told >= SECONDS

    def began(self, task: int) -> bool:
        """Is the last epoch one of this task? (An initial task may only wait for the others.)"""
        return self._last is not None and self._last[0] == task

    def standing(self) -> Standing:
        """After the last epoch that it was told of."""
        assert self._last is not None
        self._told = time.monotonic()
        task, report = self._last
        metric, current, past = self.latest(self.current)
        return Standing(
            task=task,
            tasks=self.tasks,
            name=report.task,
            stage=report.stage,
            epoch=report.epoch,
            epochs=report.epochs,
            components=report.components,
            metric=metric,
            current=current,
            past=past,
            begun_at=self._done_before,
            done=self.done,
            seconds=self.seconds,
            left=self._left(),
        )

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
        scores = [(name == tasks[seed], value) for (seed, name), value in every.items() if seed in tasks]
        current = [value for is_current, value in scores if is_current]
        past = [value for is_current, value in scores if not is_current]
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
