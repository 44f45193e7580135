"""Results with everything that several tables and figures need, computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from piaget.report import metrics
from piaget.report.groups import Group, group
from piaget.report.reading import Results, Run

SMOOTH = 5  # evaluations that a point of a learning curve is the mean of
REFERENCE = "monolithic/nft/no-components"  # what the paper's gains are relative to


Lookup = Callable[[str], pd.DataFrame]


def _by_run(table: pd.DataFrame) -> Lookup:
    found = dict(tuple(table.groupby("run", sort=False)))
    return lambda run: found.get(run, table.iloc[:0])


@dataclass(frozen=True)
class Contents:
    results: Results

    @cached_property
    def table(self) -> pd.DataFrame:
        kept = {run.name for one in self.groups for run in one.runs}
        return self.results.table[self.results.table["run"].isin(kept)]

    @cached_property
    def groups(self) -> list[Group]:
        scores = metrics.scores(self.results.table)
        for run in dict.fromkeys(scores[~np.isfinite(scores["value"])]["run"]):
            self.results.notes.append(f"{run} has scores that are not numbers: it diverged")
        return group(self.results)

    @cached_property
    def streams(self) -> list[str]:
        return list(dict.fromkeys(one.stream for one in self.groups))

    def on(self, stream: str) -> list[tuple[int, Group]]:
        """The groups of a stream that have runs to be counted, with their positions."""
        return [(i, one) for i, one in enumerate(self.groups) if one.stream == stream and one.counted]

    @cached_property
    def final(self) -> pd.Series:
        return metrics.final_performance(self.table)

    @cached_property
    def forward(self) -> pd.Series:
        return metrics.forward_performance(self.table)

    @cached_property
    def candidates(self) -> pd.DataFrame:
        return metrics.candidates(self.table)

    @cached_property
    def removals(self) -> pd.DataFrame:
        return metrics.removals(self.table)

    # Lines of one run: looked up, since there may be hundreds of them.

    @cached_property
    def rows_of(self) -> Lookup:
        return _by_run(self.table)

    @cached_property
    def structures_of(self) -> Lookup:
        return _by_run(metrics.structures(self.table))

    @cached_property
    def candidates_of(self) -> Lookup:
        return _by_run(self.candidates)

    @cached_property
    def removals_of(self) -> Lookup:
        return _by_run(self.removals)

    @cached_property
    def forward_transfer(self) -> pd.Series:
        return metrics.forward_transfer(self.table, self.table, self.references)

    @cached_property
    def references(self) -> dict[str, str]:
        """{run: the run of no-components NFT on the same data, with the same seed and epochs}, where there
        is one."""
        counted = [run for one in self.groups for run in one.counted]
        work = {run.name: (*run.work, run.seed) for run in counted}
        known = {work[run.name]: run.name for run in counted if run.method == REFERENCE}
        return {name: known[same] for name, same in work.items() if same in known}

    def gains(self, values: pd.Series) -> pd.Series:
        """Relative to the final performance of the reference, in percent."""
        metric = pd.Series({run.name: one.metric for one in self.groups for run in one.runs})
        return metrics.relative_gain(values, self.final, metric, self.references)

    def mean_curves(self, one: Group) -> pd.DataFrame:
        """Scores of the j-th task (columns) against epochs of the stream (index), mean of seeds, smoothed."""
        lengths = {run.name: self.epochs_of(run) for run in one.counted}
        own = pd.concat([self.rows_of(name) for name in lengths])
        lines = metrics.epochs_of_stream(own, lengths)
        return (
            _smoothed(lines.pivot_table(index="at", columns="j", values="value", aggfunc="mean")) * one.unit
        )

    def epochs_of(self, run: Run) -> list[int]:
        """How many epochs each trained task took, as far as its rows tell; the last one may be unfinished."""
        lines = metrics.scores(self.rows_of(run.name))
        longest = [int(epoch) for epoch in lines.groupby("trained", sort=False)["epoch"].max()]
        return [max(epoch, run.configuration["epochs"]) for epoch in longest[:-1]] + longest[-1:]

    def mean_after(self, one: Group) -> np.ndarray:
        """a[i, j], mean over seeds: (tasks, tasks); nan where a task is not known yet."""
        lines = metrics.after(pd.concat([self.rows_of(name) for name in one.names]))
        size = int(lines["j"].max()) + 1
        wide = lines.pivot_table(index="i", columns="j", values="value", aggfunc="mean")
        return wide.reindex(index=range(size), columns=range(size)).to_numpy() * one.unit

    def weights(self, run: str) -> list[tuple[str, np.ndarray]]:
        """Each task's structure (components, depths), in the order of the stream."""
        found = []
        for task, own in self.structures_of(run).groupby("evaluated", sort=False):
            wide = own.pivot(index="component", columns="depth", values="value").to_numpy()
            if np.isfinite(wide).all():  # else it diverged
                found.append((str(task), wide))
        return found

    def births(self, run: str, tasks: Sequence[str], components: int) -> list[int]:
        """The place of the task with which each component came; 0 for the initial ones."""
        tried = self.candidates_of(run)
        kept = [task for task in tried[tried["kept"]]["trained"] if task in tasks]
        return [0] * (components - len(kept)) + [list(tasks).index(task) for task in kept]


def _smoothed(curves: pd.DataFrame) -> pd.DataFrame:
    """A centred moving average, where there are enough points for it to leave the shape as it is."""
    if len(curves) < 4 * SMOOTH:
        return curves
    mean = curves.rolling(SMOOTH, center=True, min_periods=1).mean()
    return mean.where(curves.notna())
