"""How far runs are: what a display, a log and `piaget status` are told. No heavy imports."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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


PROBING = "probing"  # after the last task, like a stage: its parts are counted as epochs
FIRST, EVALUATED = ", first", ", evaluated"  # added to a stage: other kinds of epochs
BETWEEN = "between tasks"  # a kind of work, too: evaluation on all tasks, and what is remembered
GROWTH = 0.5  # the share of EWC's first steps that is in proportion to tasks, about (docs/performance.md)


@dataclass(frozen=True)
class Plan:
    """All epochs of a cohort, as far as they are known beforehand."""

    sizes: Sequence[int]  # training samples of each task
    stages: Sequence[str] = ()  # of each epoch on a task
    initial: int = 0  # tasks, which are learned together
    every: int | None = None  # so many epochs it is evaluated, too
    passes: int = 1  # through the samples of a later task in an epoch
    grows: frozenset[str] = frozenset()  # stages in which past tasks make steps longer

    def kinds(self, task: int) -> list[str]:
        """What each epoch on a task, counted from 1, is like: those of one kind take equally long."""
        return [] if task <= self.initial else self._kinds

    @cached_property
    def _kinds(self) -> list[str]:  # kept: a task of a linear model has 10,000 epochs
        return [self.kind(stage, epoch) for epoch, stage in enumerate(self.stages, 1)]

    def kind(self, stage: str, epoch: int) -> str:
        """Of one epoch. The first one of a stage prepares it, and some are followed by an evaluation."""
        later = stage != "initialization"
        first = later and (epoch == 1 or self.stages[epoch - 2 : epoch - 1] != self.stages[epoch - 1 : epoch])
        evaluated = self.every is not None and epoch % self.every == 0 and epoch != len(self.stages)
        return stage + FIRST * first + EVALUATED * evaluated


# {kind of work: {task: [units, seconds]}}; units: samples of all epochs, or 1 between tasks
Measured = dict[str, dict[int, list[float]]]


class Rates:
    """What each kind of work took, and what it will take."""

    def __init__(self, plan: Plan, measured: Measured | None = None) -> None:
        self.plan, self.measured = plan, measured or {}

    def add(self, kind: str, task: int, units: float, seconds: float) -> None:
        """Work that was done at a task. The first epoch of a kind may have been one of compilation."""
        if FIRST in kind and kind not in self.measured:
            self.measured[kind] = {}
            return
        done = self.measured.setdefault(kind, {}).setdefault(task, [0.0, 0.0])
        done[0] += units
        done[1] += seconds

    def line(self, kind: str) -> Callable[[int], float]:
        """Expected seconds a unit, at a task: a line through what was measured at tasks before.

        It may rise with tasks, at most in proportion to their number. As long as little is known of how it
        rises, as such work usually does.
        """
        work = self._work(kind)
        if not work:
            guess = self._guess(kind)
            return lambda task: guess
        # Now and then something is prepared, such as a new compilation: that is not usual.
        most = 3 * statistics.median_low(seconds / units for units, seconds in work.values())
        points = [(at, units, min(seconds / units, most)) for at, (units, seconds) in work.items()]
        whole = sum(units for _, units, _ in points)
        at = sum(units * i for i, units, _ in points) / whole
        mean = sum(units * y for _, units, y in points) / whole
        share = len(points) / whole  # a task counts as one point, on average
        usual = self._usual(kind, mean) * mean / at
        spread = sum(share * units * (i - at) ** 2 for i, units, _ in points)
        rise = sum(share * units * (i - at) * (y - mean) for i, units, y in points)
        # Noise of 15 % a task must not look like a rise: one by half in the whole run is usual.
        doubt = 0.1 * len(self.plan.sizes) ** 2
        slope = min(max((doubt * usual + rise) / (doubt + spread), 0.0), mean / at)
        return lambda task: mean + slope * (task - at)

    def _work(self, kind: str) -> dict[int, list[float]]:
        """What was measured: of initial tasks, which are learned together, if there is nothing else."""
        work = self.measured.get(kind, {})
        return {at: done for at, done in work.items() if at > self.plan.initial} or work

    def _usual(self, kind: str, mean: float) -> float:
        """The share of such work that is in proportion to the number of tasks, before that is measured."""
        plain = self.measured.get(kind.removesuffix(EVALUATED), {}).values()
        if kind == BETWEEN:
            return 0.75
        if kind.endswith(EVALUATED) and plain:
            return max(0.0, 1 - sum(s for _, s in plain) / sum(u for u, _ in plain) / mean)
        return GROWTH if kind.endswith(EVALUATED) or kind.split(",")[0] in self.plan.grows else 0.0

    def _guess(self, kind: str) -> float:
        """Of a kind that was not met yet: as long as the others, pass by pass."""
        if kind == BETWEEN:
            return 0.0
        epochs = {known: self._work(known).values() for known in self.measured if known != BETWEEN}
        units = sum(self._passes(known) * u for known, work in epochs.items() for u, _ in work)
        seconds = sum(s for work in epochs.values() for _, s in work)
        return self._passes(kind) * seconds / units if units else 0.0

    def _passes(self, kind: str) -> int:
        return 1 if kind.startswith("initialization") else self.plan.passes

    def left(self, task: int, stage: str, epoch: int, epochs: int, ended: bool) -> float | None:
        """Seconds until all tasks are learned, after an epoch. None: nothing was measured yet.

        ended: the task was evaluated after its last epoch, and all was kept.
        """
        if not any(work for kind, work in self.measured.items() if kind != BETWEEN):
            return None
        sizes, last = self.plan.sizes, len(self.plan.sizes)
        between = self.line(BETWEEN)
        seconds = sum(between(j) for j in range(task + ended, last + 1))
        if stage == "initialization":
            seconds += (epochs - epoch) * sum(sizes[:task]) * self.line(stage)(task)
        rest, whole = Counter(self.plan.kinds(task)[epoch:]), Counter(self.plan.kinds(last))
        share = self._needed(task)
        for kind in {**rest, **whole}:
            line = self.line(kind)
            seconds += rest[kind] * sizes[task - 1] * line(task)
            seconds += share * whole[kind] * sum(sizes[j - 1] * line(j) for j in range(task + 1, last + 1))
        return seconds

    def _needed(self, task: int) -> float:
        """The share of the epochs planned for tasks before that they needed: stages may stop early, and few
        tasks need a second attempt."""
        plan = self.plan
        # The first epochs of stages are not all measured.
        planned = sum(FIRST not in kind for kind in plan.kinds(len(plan.sizes)))
        counted = [done for kind, done in self.measured.items() if kind != BETWEEN and FIRST not in kind]
        shares = []
        for j in range(plan.initial + 1, task):
            epochs = sum(done[j][0] for done in counted if j in done) / plan.sizes[j - 1]
            shares += [min(1.0, epochs / planned)] if epochs and planned else []
        return statistics.fmean(shares) if shares else 1.0


class Tracker:
    """Follows the epochs and rows of a cohort, and says where it stands."""

    def __init__(
        self, plan: Plan, done: float = 0.0, seconds: float = 0.0, measured: Measured | None = None
    ) -> None:
        """`done`, `seconds`, `measured`: where an interrupted cohort goes on."""
        self.tasks, self.done, self.rates = len(plan.sizes), done, Rates(plan, measured)
        self._done_before, self._seconds_before, self._began = done, seconds, time.monotonic()
        self._scores: dict[str, dict[tuple[int, str], float]] = {}  # {metric: {(seed, task): value}}
        self.current: dict[int, str] = {}  # {seed: task}: runs may learn tasks in different orders
        self._last: tuple[int, EpochReport] | None = None
        self._ended = False  # the task of the last epoch
        self._evaluated = self._began  # the last row came then
        self._told = -SECONDS
        self._since: float | None = None  # the work that is being done began; None: with preparations
        self.probing = 0.0  # takes this share of the time for all the rest, about

    def rows(self, rows: Iterable[Row]) -> None:
        """Takes note of new scores."""
        self._evaluated = time.monotonic()
        for row in rows:
            if is_score(row):
                self._scores.setdefault(row["metric"], {})[row["seed"], row["evaluated"]] = row["value"]

    @property
    def seconds(self) -> float:
        """Worked so far, also before an interruption."""
        return self._seconds_before + time.monotonic() - self._began

    def is_new(self, task: int, report: EpochReport) -> bool:
        """Is the epoch one that it was not told of yet, by another run?"""
        return self._last is None or (self._last[0], self._last[1].epoch) < (task, report.epoch)

    def epoch(self, task: int, report: EpochReport) -> None:
        """Takes note of an epoch, which may be very short."""
        share = report.epoch / report.epochs
        # The initial tasks are learned together: as much work as one after the other.
        self.done = (task * share if report.stage == "initialization" else task - 1 + share) / self.tasks
        plan, size = self.rates.plan, self.rates.plan.sizes[task - 1]
        if report.stage == "initialization":
            size = sum(plan.sizes[:task])
        self._measure(plan.kind(report.stage, report.epoch), task, size, time.monotonic())
        self._last, self._ended = (task, report), False

    @property
    def left(self) -> float | None:
        """Seconds of work that is left after the last epoch. None: nothing is known of it."""
        if self._last is None:
            return None
        task, report = self._last
        if report.stage == PROBING:
            begun = time.monotonic() - (self._since or 0.0)
            return begun * (report.epochs - report.epoch) / report.epoch if report.epoch else None
        left = self.rates.left(task, report.stage, report.epoch, report.epochs, self._ended)
        return None if left is None else left + self.probing * (self.seconds + left)

    def ended(self) -> None:
        """All that comes after the last epoch of a task is done."""
        if self._last is None:  # an initial task that waits for the others
            return
        # After the initial tasks, much is done for the first time, and for all of them: evaluation counts.
        initial = self._last[0] <= self.rates.plan.initial
        self._measure(BETWEEN, self._last[0], 1, self._evaluated if initial else time.monotonic())
        self._since, self._ended = time.monotonic(), True

    def probe(self, report: EpochReport) -> bool:
        """Takes note of a part of probing (0: it begins). True: it takes long, or ends: it is to be told."""
        if report.epoch == 0:
            self._since = time.monotonic()
        self._last = self.tasks, report
        long = time.monotonic() - (self._since or 0.0) > 1
        return report.epoch == report.epochs or (long and self.due())

    def _measure(self, kind: str, task: int, units: float, now: float) -> None:
        if self._since is not None:
            self.rates.add(kind, task, units, max(now - self._since, 0.0))
        self._since = now

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
            left=self.left,
        )

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
