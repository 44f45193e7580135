"""Which tables a report has, and what is in them."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import pandas as pd

from piaget.lab.progress import duration
from piaget.report import metrics
from piaget.report.groups import Group, group
from piaget.report.reading import Results
from piaget.report.statistics import LEVEL, Paired, holm, mean_and_error, paired, verdict
from piaget.report.tables import Cell, Table, mark_best, number

MOST_KINDS = 5  # of tasks in a stream, that have a table of their own
RATIOS = 10  # tasks in the table of forgetting ratios
REFERENCE = "monolithic/nft/no-components"  # what the paper's gains are relative to


@cache
def paper() -> dict[str, Any]:
    """The paper's numbers of components, and of tasks that reuse them."""
    return json.loads(files("piaget.report").joinpath("paper.json").read_text())


@dataclass(frozen=True)
class Contents:
    """Results with everything that several tables and figures need, computed once."""

    results: Results

    @cached_property
    def table(self) -> pd.DataFrame:
        kept = {run.name for one in self.groups for run in one.runs}
        return self.results.table[self.results.table["run"].isin(kept)]

    @cached_property
    def groups(self) -> list[Group]:
        return group(self.results)

    @cached_property
    def streams(self) -> list[str]:
        return list(dict.fromkeys(one.stream for one in self.groups))

    def on(self, stream: str) -> list[tuple[int, Group]]:
        """The groups of a stream, with their positions."""
        return [(i, one) for i, one in enumerate(self.groups) if one.stream == stream]

    @cached_property
    def final(self) -> pd.Series:
        return metrics.final_performance(self.table)

    @cached_property
    def forward(self) -> pd.Series:
        return metrics.forward_performance(self.table)

    @cached_property
    def structures(self) -> pd.DataFrame:
        return metrics.structures(self.table)

    @cached_property
    def candidates(self) -> pd.DataFrame:
        return metrics.candidates(self.table)

    @cached_property
    def removals(self) -> pd.DataFrame:
        return metrics.removals(self.table)

    @cached_property
    def forward_transfer(self) -> pd.Series:
        return metrics.forward_transfer(self.table, self.table, self.references)

    @cached_property
    def references(self) -> dict[str, str]:
        """{run: the run of no-components NFT with the same seed, stream and settings}, where there is one."""
        known = {
            (one.stream, one.variant, run.seed): run.name
            for one in self.groups
            if one.method == REFERENCE
            for run in one.runs
        }
        keys = {run.name: (one.stream, one.variant, run.seed) for one in self.groups for run in one.runs}
        return {name: known[key] for name, key in keys.items() if key in known}

    def gains(self, values: pd.Series) -> pd.Series:
        """Relative to the final performance of the reference, in percent."""
        metric = pd.Series({run.name: one.metric for one in self.groups for run in one.runs})
        return metrics.relative_gain(values, self.final, metric, self.references)

    def tables(self) -> list[Table]:
        made = [
            self.summary(),
            self.performance(),
            self.subsets(),
            self.transfer(),
            self.components(),
            self.reuse(),
            self.compositionality(),
            self.ratios(),
            self.differences(),
            self.cost(),
        ]
        return [table for table in made if table.rows]

    def summary(self) -> Table:
        """As in the paper: methods x streams."""
        table = Table(
            "summary",
            "Final performance of all methods",
            "Mean over tasks and seeds of the score after all tasks were learned, with standard errors over "
            "seeds. Accuracy in %; for streams of regressions, root mean squared error. The best of each "
            "stream in bold.",
            ["method", *self.streams],
        )
        labels = dict.fromkeys(one.label for one in self.groups)
        for label in labels:
            cells = []
            for stream in self.streams:
                found = [one for _, one in self.on(stream) if one.label == label]
                cells.append(
                    number(*found[0].summary(self.final, found[0].unit), found[0].digits) if found else Cell()
                )
            table.add(None, label, *cells)
        for column, stream in enumerate(self.streams, 1):
            higher = self.on(stream)[0][1].higher_is_better
            mark_best(table, column, higher, range(len(table.rows)))
        return table if len(self.streams) > 1 else replace(table, rows=[])

    def performance(self) -> Table:
        table = Table(
            "final",
            "Final performance beside the paper's",
            "Score after all tasks were learned: mean over tasks, then mean and standard error over seeds. "
            "The verdict is Welch's two-sided test at 5 % against the paper's mean and standard error (10 "
            "trials; Objects: 50); with fewer than 5 seeds there is none. Only runs with the paper's "
            "settings are compared.",
            ["stream", "method", "seeds", "score", "final", "paper", "verdict"],
        )
        for stream in self.streams:
            first = len(table.rows)
            for i, one in self.on(stream):
                values = list(one.of(self.final, one.unit).values())
                run = one.runs[0]
                theirs = number(*run.paper, one.digits) if run.paper else Cell()
                said = verdict(values, run.paper, run.trials, one.higher_is_better)
                table.add(
                    i,
                    stream,
                    one.label,
                    Cell(str(len(values)), len(values)),
                    one.metric,
                    number(*mean_and_error(values), one.digits),
                    theirs,
                    said,
                )
            mark_best(table, 4, self.on(stream)[0][1].higher_is_better, range(first, len(table.rows)))
        return table

    def subsets(self) -> Table:
        """As in the paper's table of its Combined data set."""
        table = Table(
            "subsets",
            "Final performance by kinds of tasks",
            "Of streams that mix several kinds of tasks: mean over the tasks of one kind, then mean and "
            "standard error over seeds, with the paper's numbers and verdicts as above.",
            ["stream", "method", "tasks", "final", "paper", "verdict"],
        )
        lines = metrics.final_by_subset(self.table)
        for stream in self.streams:
            runs = [run.name for _, one in self.on(stream) for run in one.runs]
            kinds = list(dict.fromkeys(lines[lines["run"].isin(runs)]["subset"]))
            for kind in kinds if 1 < len(kinds) <= MOST_KINDS else []:
                first = len(table.rows)
                of_kind = lines[lines["subset"] == kind].set_index("run")["value"]
                for i, one in self.on(stream):
                    _, base, algorithm = one.runs[0].parts
                    known = paper()["combined"].get(base, {}).get(algorithm, {}).get(kind)
                    known = (
                        (known[0], known[1]) if known and stream == "combined" and not one.variant else None
                    )
                    values = list(one.of(of_kind, one.unit).values())
                    said = verdict(values, known, 10, one.higher_is_better)
                    theirs = number(*known, digits=one.digits) if known else Cell()
                    table.add(
                        i, stream, one.label, kind, number(*mean_and_error(values), one.digits), theirs, said
                    )
                mark_best(table, 3, self.on(stream)[0][1].higher_is_better, range(first, len(table.rows)))
        return table

    def transfer(self) -> Table:
        table = Table(
            "transfer",
            "Forward and final performance, forgetting, transfer",
            "Forward: right after each task was learned. Forgetting: from a task's best score to its final "
            "one. Backward transfer: from forward to final (negative: later tasks did harm). Forward "
            "transfer: forward minus that of NFT without components on the same seeds. Area: mean score "
            "while a task is learned (needs --every).",
            [
                "stream",
                "method",
                "forward",
                "final",
                "forgetting",
                "backward transfer",
                "forward transfer",
                "area",
            ],
        )
        numbers = [
            self.forward,
            self.final,
            metrics.forgetting(self.table),
            metrics.backward_transfer(self.table),
            self.forward_transfer,
            metrics.area_under_curve(self.table),
        ]
        for stream in self.streams:
            first = len(table.rows)
            for i, one in self.on(stream):
                cells = [number(*one.summary(values, one.unit), one.digits) for values in numbers]
                table.add(i, stream, one.label, *cells)
            higher = self.on(stream)[0][1].higher_is_better
            for column, best in enumerate((higher, higher, False, True, True, higher), 2):
                mark_best(table, column, best, range(first, len(table.rows)))
        return table

    def components(self) -> Table:
        table = Table(
            "components",
            "Number of learned components",
            "At the end, mean and standard error over seeds; learners that add components start with 4 by "
            "default.",
            ["stream", "method", "components", "paper", "verdict", "tried", "kept"],
        )
        counts = metrics.components(self.table)
        by_run = self.candidates.groupby("run")["kept"]
        for i, one in enumerate(self.groups):
            structure, base, algorithm = one.runs[0].parts
            if algorithm == "dynamic":
                known = paper()["components"].get(structure, {}).get(one.stream, {}).get(base)
                known = None if one.variant or known is None else (known[0], known[1])
                values = list(one.of(counts).values())
                tries = number(*one.summary(by_run.size()))
                said = verdict(values, known, 10, True).replace("better", "more").replace("worse", "fewer")
                table.add(
                    i,
                    one.stream,
                    one.label,
                    number(*mean_and_error(values)),
                    number(*known) if known else Cell(),
                    said,
                    tries,
                    number(*one.summary(by_run.sum())),
                )
        return table

    def reuse(self) -> Table:
        table = Table(
            "reuse",
            "Component reuse",
            "Number of tasks whose final score gets worse by more than 5 % (relative) when a component is "
            "removed; components sorted by it within each run, then mean and standard error over seeds. "
            "Removed: its weight is 0 at all depths, and the others' are scaled to sum to what they did.",
            ["stream", "method", "component", "tasks", "paper"],
        )
        lines = metrics.reuse(self.table)
        for i, one in enumerate(self.groups):
            structure, base, algorithm = one.runs[0].parts
            usual = structure == "soft-ordering" and base == "er" and not one.variant
            known = paper()["reuse"].get(algorithm, {}).get(one.stream, []) if usual else []
            own = lines[lines["run"].isin([run.name for run in one.runs])]
            for rank, values in own.groupby("rank")["tasks"]:
                theirs = number(known[rank][0], known[rank][1], 2) if rank < len(known) else Cell()
                table.add(
                    i,
                    one.stream,
                    one.label,
                    Cell(str(rank), rank),
                    number(*mean_and_error(list(values)), 2),
                    theirs,
                )
        return table

    def compositionality(self) -> Table:
        table = Table(
            "compositionality",
            "Compositionality",
            "From 0 to 1. Consistency: does a component have the same effect in all tasks and depths, and "
            "another one than the others have? Concentration: does a task choose few components at each "
            "depth? Reuse: do many tasks need a component? Score: their geometric mean.",
            ["stream", "method", "consistency", "concentration", "reuse", "score"],
        )
        found = metrics.compositionality(self.table)
        for stream in self.streams:
            first = len(table.rows)
            for i, one in self.on(stream):
                cells = [number(*one.summary(found[name]), 2) for name in found.columns]
                if any(cell.value is not None for cell in cells):
                    table.add(i, stream, one.label, *cells)
            mark_best(table, 5, True, range(first, len(table.rows)))
        return table

    def ratios(self) -> Table:
        table = Table(
            "ratios",
            "Forgetting ratio of tasks",
            "Score right after the task was learned, divided by its final one (for errors, the inverse), "
            "mean over seeds: 1 means that nothing was forgotten, more than 1 that something was. Of longer "
            "streams, ten tasks from the first to the last, as in the paper.",
            ["stream", "method", *(str(i) for i in range(1, RATIOS + 1))],
        )
        lines = metrics.forgetting_ratio(self.table)
        for i, one in enumerate(self.groups):
            own = lines[lines["run"].isin([run.name for run in one.runs])]
            means = own.groupby("j")["ratio"].mean()
            shown = means.iloc[spread(len(means), RATIOS)].to_list()
            cells = [number(ratio, digits=2) for ratio in shown]
            table.add(i, one.stream, one.label, *cells, *[Cell()] * (RATIOS - len(cells)))
        return table

    def differences(self) -> Table:
        table = Table(
            "differences",
            "Differences between methods",
            "Final performance of the first minus the second method on the same seeds, with its standard "
            "error; two-sided p-values of the paired t-test (by Holm's method for all pairs of a stream; "
            f"below {LEVEL}: in bold) and of Wilcoxon's signed-rank test (not corrected).",
            ["stream", "method", "other method", "seeds", "difference", "t-test", "Wilcoxon"],
        )
        for stream in self.streams:
            for i, one, other, test in self.pairs(stream):
                p = number(test.p, digits=4)
                table.add(
                    i,
                    stream,
                    one.label,
                    other.label,
                    Cell(str(test.seeds), test.seeds),
                    number(test.difference, test.error, one.digits),
                    replace(p, best=test.p < LEVEL),
                    number(test.wilcoxon, digits=4),
                )
        return table

    def pairs(self, stream: str) -> list[tuple[int, Group, Group, Paired]]:
        found = []
        for (i, one), (_, other) in itertools.combinations(self.on(stream), 2):
            test = paired(one.of(self.final, one.unit), other.of(self.final, other.unit))
            if test is not None:
                found.append((i, one, other, test))
        corrected = holm([test.t_test for *_, test in found])
        return [
            (i, one, other, replace(test, p=p))
            for (i, one, other, test), p in zip(found, corrected, strict=True)
        ]

    def cost(self) -> Table:
        table = Table(
            "cost",
            "Time, steps and memory of a run",
            "Means over seeds. Time is of the whole cohort that a run was trained in, divided by its runs; "
            "steps are batches times passes; memory is the peak of the process, which may have trained "
            "other runs before.",
            ["stream", "method", "runs", "done", "time", "steps", "memory"],
        )
        for i, one in enumerate(self.groups):
            told = [run.description for run in one.runs]
            times = [d["seconds"] / len(d.get("together") or [0]) for d in told if d.get("seconds")]
            steps = [d["steps"] for d in told if d.get("steps")]
            memory = [d["peak_memory"] / 2**20 for d in told if d.get("peak_memory")]
            time, count, space = (_mean(values) for values in (times, steps, memory))
            done = sum(run.status == "done" for run in one.runs)
            table.add(
                i,
                one.stream,
                one.label,
                Cell(str(len(one.runs)), len(one.runs)),
                Cell(str(done), done),
                Cell(duration(time), time) if times else Cell(),
                Cell(f"{count:,.0f}", count) if steps else Cell(),
                Cell(f"{space:,.0f} MB", space) if memory else Cell(),
            )
        return table


def spread(count: int, most: int) -> list[int]:
    """So many positions of `count` at most, from the first to the last."""
    return (
        sorted({round(i * (count - 1) / max(most - 1, 1)) for i in range(most)})
        if count > most
        else list(range(count))
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
