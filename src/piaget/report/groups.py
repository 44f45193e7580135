"""Runs of one method on one stream, over seeds: what tables and figures are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from piaget.lab.table import ALGORITHMS, BASES, UNITS
from piaget.report.reading import Results, Run
from piaget.report.statistics import mean_and_error
from piaget.scoring.rows import LOWER_IS_BETTER, SCORES

Key = tuple[str, str, str, str]  # stream, method, what is not the paper's, data


@dataclass(frozen=True)
class Group:
    """One method (with what is not the paper's in it) on one stream; one run a seed."""

    stream: str
    method: str
    variant: str
    metric: str
    label: str
    runs: tuple[Run, ...]
    counted: tuple[Run, ...]  # in means: the finished ones, unless none of the stream's is finished

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
        return 1 if self.metric == "accuracy" else 2

    @property
    def first(self) -> Run:
        """The run that is shown where only one can be."""
        return (self.counted or self.runs)[0]

    @property
    def names(self) -> list[str]:
        """Of the runs that count."""
        return [run.name for run in self.counted]

    def of(self, values: pd.Series, unit: float = 1.0) -> dict[int, float]:
        """{seed: value}, from a number for each run; a run without one is left out."""
        return {run.seed: float(values[run.name]) * unit for run in self.counted if run.name in values.index}

    def summary(self, values: pd.Series, unit: float = 1.0) -> tuple[float, float]:
        return mean_and_error(list(self.of(values, unit).values()))


def group(results: Results) -> list[Group]:
    """In the order of the paper's tables. A run that is there twice counts once."""
    metrics = _metrics(results)
    found: dict[Key, dict[int, Run]] = {}
    for run in results.runs:
        seeds = found.setdefault((run.stream, run.method, run.variant, run.data), {})
        other = seeds.setdefault(run.seed, run)
        if other is not run:
            left_out = run
            if run.status == "done" and other.status != "done":
                seeds[run.seed], left_out = run, other
            results.notes.append(f"left out: {left_out.name} is the same as {seeds[run.seed].name}")
    labels = _labels(found)
    finished = {run.stream for run in results.runs if run.status == "done"}
    groups = []
    for key, seeds in found.items():
        runs = tuple(seeds.values())
        counted = tuple(run for run in runs if run.status == "done" or run.stream not in finished)
        groups.append(Group(*key[:3], metrics[runs[0].name], labels[key], runs, counted))
    unfinished = sum(len(one.runs) - len(one.counted) for one in groups)
    if unfinished:
        results.notes.append(
            f"unfinished runs left out of means: {unfinished}; piaget resume goes on with them"
        )
    for stream in dict.fromkeys(run.stream for run in results.runs if run.stream not in finished):
        results.notes.append(f"no run on {stream} is finished: its numbers are of the tasks learned so far")
    changes = [{f"{name}={value}" for name, value in one.first.changes.items()} for one in groups]
    if common := sorted(set.intersection(*changes)):
        results.notes.append(f"all runs: {', '.join(common)}, which is not the paper's setting")
    return groups


def _metrics(results: Results) -> dict[str, str]:
    table = results.table[results.table["metric"].isin(SCORES)]
    found = table.drop_duplicates("run").set_index("run")["metric"]
    return {run.name: str(found.get(run.name, "accuracy")) for run in results.runs}


def _labels(found: Mapping[Key, Mapping[int, Run]]) -> dict[Key, str]:
    """As short as methods can be told apart: structures, and settings, in which those of some stream
    differ."""
    first = {key: next(iter(seeds.values())) for key, seeds in found.items()}
    structures = {run.parts[0] for run in first.values() if run.has_components}
    changes = {key: run.told_apart_by for key, run in first.items()}
    values: dict[tuple[str, str], set[str]] = {}  # of each stream and setting
    names = {name for changed in changes.values() for name in changed}
    for (stream, *_), changed in changes.items():
        for name in names:
            values.setdefault((stream, name), set()).add(str(changed.get(name)))
    differing = {name for (_, name), seen in values.items() if len(seen) > 1}
    labels = {}
    for key, changed in changes.items():
        structure, base, algorithm = first[key].parts
        words = [BASES.get(base, base), ALGORITHMS.get(algorithm, algorithm)]
        words += [f"({structure})"] if len(structures) > 1 and structure in structures else []
        own = [f"{name}={value}" for name, value in changed.items() if name in differing]
        words += [f"[{' '.join(own)}]"] if own else []
        labels[key] = " ".join(words)
    return labels
