"""Runs of one method on one stream, over seeds: what tables and figures are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from piaget.lab.final_table import DIGITS, mean_and_error
from piaget.paper.names import ALGORITHMS, UNITS, base_name
from piaget.report import metrics
from piaget.report.reading import Results
from piaget.report.reported_run import ReportedRun
from piaget.report.statistics import verdict
from piaget.scoring.rows import LOWER_IS_BETTER

Key = tuple[str, str, str, str]  # stream, method, what is not the paper's, data
RunsBySeed = dict[int, ReportedRun]


@dataclass(frozen=True)
class Group:
    """One method (with what is not the paper's in it) on one stream; one run a seed."""

    position: int  # in the report's list of groups
    stream: str
    method: str
    variant: str
    metric: str
    label: str
    runs: tuple[ReportedRun, ...]
    counted: tuple[ReportedRun, ...]  # in means: the finished ones, unless none of the stream's is finished

    @property
    def higher_is_better(self) -> bool:
        return self.metric not in LOWER_IS_BETTER

    @property
    def unit(self) -> float:
        """Accuracies are shown in percent."""
        return 100.0 if self.metric == "accuracy" else 1.0

    @property
    def unit_name(self) -> str:
        return UNITS[self.metric]

    @property
    def digits(self) -> int:
        return DIGITS[self.metric]

    @property
    def first(self) -> ReportedRun:
        """The run that is shown where only one can be."""
        return (self.counted or self.runs)[0]

    @property
    def names(self) -> list[str]:
        """Of the runs that count."""
        return [run.name for run in self.counted]

    def of(self, values: pd.Series, unit: float = 1.0) -> dict[int, float]:
        """{seed: value}, from a number for each run; a run without one is left out."""
        return {run.seed: float(values[run.name]) * unit for run in self.counted if run.name in values.index}

    def judged(
        self,
        values: Sequence[float],
        known: tuple[float, float] | None,
        trials: int,
        higher_is_better: bool,
        digits: int = 1,
    ) -> str:
        """`verdict` beside the paper's number, unless runs are unfinished or lost."""
        if lost := sum(run.diverged for run in self.runs):  # the others are a choice of the lucky ones
            return f"{lost} of {len(self.runs)} diverged"
        if not all(run.done for run in self.counted):
            return "unfinished"
        return verdict(values, known, trials, higher_is_better, digits)

    def summary(self, values: pd.Series, unit: float = 1.0) -> tuple[float, float]:
        """Mean and standard error over seeds."""
        return mean_and_error(list(self.of(values, unit).values()))


def same_data(one: ReportedRun, other: ReportedRun) -> bool:
    """Also in the data itself, as far as it is known of both? A table may have been edited since."""
    return None in (one.data_mark, other.data_mark) or one.data_mark == other.data_mark


def other_data(ours: Group, theirs: Group) -> set[int]:
    """The seeds with which two methods have not learned from the same data, though it is called the same."""
    by_seed = {run.seed: run for run in theirs.counted}
    return {run.seed for run in ours.counted if run.seed in by_seed and not same_data(run, by_seed[run.seed])}


def group(results: Results) -> list[Group]:
    """In the order of the paper's tables. A run that is there twice counts once."""
    metric = metrics.scores(results.rows).drop_duplicates("run").set_index("run")["metric"]
    runs_of = _by_method(results)
    labels = _labels({key: next(iter(runs.values())) for key, runs in runs_of.items()})
    finished = {run.stream for run in results.runs if run.done}
    groups: list[Group] = []
    for key, by_seed in runs_of.items():
        runs = tuple(by_seed.values())
        counted = tuple(run for run in runs if run.done or (run.stream not in finished and not run.diverged))
        score = str(metric.get(runs[0].name, "accuracy"))
        groups.append(Group(len(groups), *key[:3], score, labels[key], runs, counted))
    results.notes.extend(_notes(groups, finished))
    return groups


def _by_method(results: Results) -> dict[Key, RunsBySeed]:
    runs_of: dict[Key, RunsBySeed] = {}
    for run in results.runs:
        by_seed = runs_of.setdefault((run.stream, run.method, run.variant, run.data), {})
        other = by_seed.setdefault(run.seed, run)
        if other is not run:
            kept, left_out = (run, other) if run.done and not other.done else (other, run)
            by_seed[run.seed] = kept
            results.notes.append(f"left out: {left_out.name} is the same as {kept.name}")
    return runs_of


def _notes(groups: list[Group], finished: set[str]) -> list[str]:
    """What a reader should know of how runs were counted, and of what they have in common."""
    notes = []
    left_out = [
        run for group in groups for run in group.runs if run not in group.counted and not run.diverged
    ]
    if failed := sum(run.failed for run in left_out):
        notes.append(f"runs that failed, left out of means: {failed}; piaget status says why")
    if unfinished := len(left_out) - failed:
        notes.append(f"unfinished runs left out of means: {unfinished}; piaget resume goes on with them")
    for stream in dict.fromkeys(group.stream for group in groups if group.stream not in finished):
        notes.append(f"no run on {stream} is finished: its numbers are of the tasks learned so far")
    changes = [{f"{name}={value}" for name, value in group.first.changes.items()} for group in groups]
    if changes and (common := sorted(set.intersection(*changes))):
        notes.append(f"all runs: {', '.join(common)}, which is not the paper's setting")
    return notes


def _labels(first: Mapping[Key, ReportedRun]) -> dict[Key, str]:
    """As short as methods can be told apart: structures, and settings, in which those of some stream
    differ."""
    structures = {run.parts[0] for run in first.values() if run.has_components}
    distinctions = {key: run.distinctions for key, run in first.items()}
    names = {name for values in distinctions.values() for name in values}
    values: dict[tuple[str, str], set[str]] = {}  # of each stream and setting
    for (stream, *_), chosen in distinctions.items():
        for name in names:
            values.setdefault((stream, name), set()).add(str(chosen.get(name)))
    differing = {name for (_, name), seen in values.items() if len(seen) > 1}
    labels = {}
    for key, run in first.items():
        structure, base, algorithm = run.parts
        words = [base_name(base, algorithm), ALGORITHMS.get(algorithm, algorithm)]
        words += [f"({structure})"] if len(structures) > 1 and structure in structures else []
        settings = [f"{name}={value}" for name, value in distinctions[key].items() if name in differing]
        words += [f"[{' '.join(settings)}]"] if settings else []
        labels[key] = " ".join(filter(None, words))
    return labels
