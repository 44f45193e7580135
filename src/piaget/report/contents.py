"""Results with everything that several tables and figures need, computed once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from piaget.report import metrics
from piaget.report.groups import Group, group, other_data, same_data
from piaget.report.lives import Life, lives
from piaget.report.reading import Results
from piaget.report.reported_run import ReportedRun
from piaget.report.statistics import Tested, holm, paired

SMOOTH = 5  # evaluations that a point of a learning curve is the mean of
REFERENCE = "monolithic/nft/no-components"  # what the paper's gains are relative to

T = TypeVar("T")


@dataclass(frozen=True)
class Contents:
    """Groups of runs, and numbers about each of their runs, by the run's name."""

    results: Results
    _computed: dict[Any, Any] = field(default_factory=dict, repr=False)
    _by_run: dict[Any, dict[str, pd.DataFrame]] = field(default_factory=dict, repr=False)

    @cached_property
    def rows(self) -> pd.DataFrame:
        kept = {run.name for group in self.groups for run in group.runs}
        return self.results.rows[self.results.rows["run"].isin(kept)]

    @cached_property
    def groups(self) -> list[Group]:
        scores = metrics.scores(self.results.rows)
        for run in dict.fromkeys(scores[~np.isfinite(scores["value"])]["run"]):
            self.results.notes.append(f"{run} has scores that are not numbers: it diverged")
        return group(self.results)

    @cached_property
    def positions(self) -> dict[str, int]:
        """Of runs, in the order in which the page has them."""
        runs = [run.name for group in self.groups for run in group.runs]
        return {name: i for i, name in enumerate(runs)}

    @cached_property
    def streams(self) -> list[str]:
        return list(dict.fromkeys(group.stream for group in self.groups))

    @cached_property
    def counted(self) -> list[Group]:
        """The groups that have runs to be counted."""
        return [group for group in self.groups if group.counted]

    def first_on(self, stream: str) -> Group:
        """One of the groups on a stream, counted or not, to tell what its scores are."""
        return next(group for group in self.groups if group.stream == stream)

    @cached_property
    def counted_streams(self) -> list[str]:
        """Those with runs to be counted."""
        return list(dict.fromkeys(group.stream for group in self.counted))

    def on(self, stream: str) -> list[Group]:
        """Those of them on a stream."""
        return [group for group in self.counted if group.stream == stream]

    @property
    def final(self) -> pd.Series:
        return self.compute(metrics.final_performance)

    @property
    def forward(self) -> pd.Series:
        return self.compute(metrics.forward_performance)

    def compute(self, metric: Callable[[pd.DataFrame], T]) -> T:
        """What a function of metrics.py gives for the rows of all runs, computed once."""
        if metric not in self._computed:
            self._computed[metric] = metric(self.rows)
        return self._computed[metric]

    def of(self, run: str, metric: Callable[[pd.DataFrame], pd.DataFrame] | None = None) -> pd.DataFrame:
        """The lines about one run of what `compute` gives, or its rows: looked up, as runs may be many."""
        lines = self.rows if metric is None else self.compute(metric)
        if metric not in self._by_run:
            self._by_run[metric] = dict(tuple(lines.groupby("run", sort=False)))
        return self._by_run[metric].get(run, lines.iloc[:0])

    @cached_property
    def references(self) -> dict[str, str]:
        """{run: the run of no-components NFT on the same data, with the same seed and epochs}, where there
        is one: that with most of the run's own settings, and no other ones."""
        counted = [run for group in self.groups for run in group.counted]
        known: dict[Any, list[ReportedRun]] = {}
        for run in counted:
            if run.method == REFERENCE:
                known.setdefault((*run.work, run.seed), []).append(run)
        found = {}
        for run in counted:
            there = known.get((*run.work, run.seed), [])
            alike = [
                one for one in there if one.changes.items() <= run.changes.items() and same_data(one, run)
            ]
            most = max((len(one.changes) for one in alike), default=0)
            nearest = [one.name for one in alike if len(one.changes) == most]
            if len(nearest) == 1:  # else nobody knows which
                found[run.name] = nearest[0]
        return found

    def gains(self, values: pd.Series) -> pd.Series:
        """Relative to the final performance of the reference, in percent."""
        metric = pd.Series({run.name: group.metric for group in self.groups for run in group.runs})
        return metrics.relative_gain(values, self.final, metric, self.references)

    @cached_property
    def differences(self) -> list[tuple[Group, Group, Tested]]:
        """All pairs of methods of a stream that can be compared: on the same data, with the same epochs."""
        pairs: list[tuple[Group, Group, Tested]] = []
        for stream in self.streams:
            tests = []
            for ours, theirs in itertools.combinations(self.on(stream), 2):
                if ours.first.work == theirs.first.work:
                    apart = other_data(ours, theirs)
                    if apart:
                        seeds = ", ".join(map(str, sorted(apart)))
                        pair = f"{stream}: {ours.label} and {theirs.label}"
                        told = f"{pair} learned from different data with seeds {seeds}: not compared"
                        self.results.notes.append(told)
                    mine = ours.of(self.final, ours.unit)
                    mine = {seed: value for seed, value in mine.items() if seed not in apart}
                    test = paired(mine, theirs.of(self.final, theirs.unit))
                    tests += [(ours, theirs, test)] if test else []
            corrected = holm([test.t_test for _, _, test in tests])
            for (ours, theirs, test), p in zip(tests, corrected, strict=True):
                pairs.append((ours, theirs, replace(test, p=p)))
        return pairs

    def mean_curves(self, group: Group, smooth: bool = True) -> pd.DataFrame:
        """Scores of the j-th task (columns) against epochs of the stream (index), mean over seeds."""
        lengths = {run.name: self.epochs_of(run) for run in group.counted}
        lines = metrics.epochs_of_stream(pd.concat([self.of(name) for name in lengths]), lengths)
        curves = lines.pivot_table(index="at", columns="j", values="value", aggfunc="mean")
        return (_smoothed(curves) if smooth else curves) * group.unit

    def epochs_of(self, run: ReportedRun) -> list[int]:
        """How many epochs each trained task took, as far as its rows tell; the last one may be unfinished."""
        lines = self.of(run.name, metrics.scores)
        longest = [int(epoch) for epoch in lines.groupby("trained", sort=False)["epoch"].max()]
        return [max(epoch, run.configuration["epochs"] or 0) for epoch in longest[:-1]] + longest[-1:]

    def mean_after(self, group: Group) -> np.ndarray:
        """a[i, j], mean over seeds: (tasks, tasks); nan where a task is not known yet."""
        lines = pd.concat([self.of(name, metrics.after) for name in group.names])
        size = int(lines["j"].max()) + 1
        wide = lines.pivot_table(index="i", columns="j", values="value", aggfunc="mean")
        return wide.reindex(index=range(size), columns=range(size)).to_numpy() * group.unit

    def weights(self, run: str) -> dict[str, np.ndarray]:
        """Each task's structure (components, depths), in the order of the stream."""
        structures, lines = {}, self.of(run, metrics.structures)
        codes, tasks = pd.factorize(lines["evaluated"])
        component, depth = lines["component"].to_numpy(), lines["depth"].to_numpy()
        values = lines["value"].to_numpy()
        for code, task in enumerate(tasks):
            own = codes == code
            weights = filled(component[own], depth[own], values[own])
            if np.isfinite(weights).all():  # else it diverged
                structures[str(task)] = weights
        return structures

    def lives(self, run: str, tasks: Sequence[str], components: int) -> list[Life]:
        """When each component came and went, of a run that has so many in the end."""
        return lives(self.of(run, metrics.component_events), tasks, components)


def filled(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, shape: tuple[int, int] | None = None
) -> np.ndarray:
    """A matrix with these values at these places, and nan elsewhere: much faster than pivot tables of pandas,
    of which a report of thousands of runs would need hundreds of thousands."""
    size = shape or (int(rows.max(initial=-1)) + 1, int(columns.max(initial=-1)) + 1)
    matrix = np.full(size, np.nan)
    matrix[rows, columns] = values
    return matrix


def mean_use(weights: np.ndarray) -> np.ndarray:
    """How much a task uses each component, whatever the sign: the mean over depths."""
    return np.abs(weights).mean(1)


def _smoothed(curves: pd.DataFrame) -> pd.DataFrame:
    """A centred moving average, where there are enough points for it to leave the shape as it is."""
    if len(curves) < 4 * SMOOTH:
        return curves
    mean = curves.rolling(SMOOTH, center=True, min_periods=1).mean()
    return mean.where(curves.notna())
