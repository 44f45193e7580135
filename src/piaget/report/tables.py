"""Which tables a report has, and what is in them: one function each, from `Contents`."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from piaget.lab.progress import duration
from piaget.report import metrics
from piaget.report.contents import Contents
from piaget.report.forms import Cell, Table, mark_best, number
from piaget.report.groups import Group
from piaget.report.statistics import LEVEL, Paired, holm, mean_and_error, paired, spread, verdict

MOST_KINDS = 5  # of tasks in a stream, that have a table of their own
RATIOS = 10  # tasks in the table of forgetting ratios


@cache
def paper() -> dict[str, Any]:
    """The paper's numbers of components, of tasks that reuse them, and by kinds of tasks."""
    return json.loads(files("piaget.report").joinpath("paper.json").read_text())


def summary(contents: Contents) -> Table:
    """As in the paper: methods x streams."""
    table = Table(
        "summary",
        "Final performance of all methods",
        "Mean over tasks and seeds of the score after all tasks were learned, with standard errors over "
        "seeds. Accuracy in %; for streams of regressions, root mean squared error. The best of each "
        "stream in bold.",
        ["method", *contents.streams],
    )
    labels = dict.fromkeys(one.label for one in contents.groups)
    for label in labels:
        cells = []
        for stream in contents.streams:
            found = [one for _, one in contents.on(stream) if one.label == label]
            cells.append(
                number(*found[0].summary(contents.final, found[0].unit), found[0].digits) if found else Cell()
            )
        table.add(None, label, *cells)
    for column, stream in enumerate(contents.streams, 1):
        higher = contents.on(stream)[0][1].higher_is_better
        mark_best(table, column, higher, range(len(table.rows)))
    return table if len(contents.streams) > 1 else replace(table, rows=[])


def performance(contents: Contents) -> Table:
    table = Table(
        "final",
        "Final performance beside the paper's",
        "Score after all tasks were learned: mean over tasks, then mean and standard error over seeds. "
        "The verdict is Welch's two-sided test at 5 % against the paper's mean and standard error (10 "
        "trials; Objects: 50); with fewer than 5 seeds there is none. Only runs with the paper's "
        "settings are compared.",
        ["stream", "method", "seeds", "score", "final", "paper", "verdict"],
    )
    for stream in contents.streams:
        first = len(table.rows)
        for i, one in contents.on(stream):
            values = list(one.of(contents.final, one.unit).values())
            run = one.first
            theirs = number(*run.paper, one.digits) if run.paper else Cell()
            said = verdict(values, run.paper, run.trials, one.higher_is_better, one.digits)
            said = said if all(each.status == "done" for each in one.counted) else "unfinished"
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
        mark_best(table, 4, contents.on(stream)[0][1].higher_is_better, range(first, len(table.rows)))
    return table


def subsets(contents: Contents) -> Table:
    """As in the paper's table of its Combined data set."""
    table = Table(
        "subsets",
        "Final performance by kinds of tasks",
        "Of streams that mix several kinds of tasks: mean over the tasks of one kind, then mean and "
        "standard error over seeds, with the paper's numbers and verdicts as above.",
        ["stream", "method", "tasks", "final", "paper", "verdict"],
    )
    lines = metrics.final_by_subset(contents.table)
    for stream in contents.streams:
        runs = [run.name for _, one in contents.on(stream) for run in one.runs]
        kinds = list(dict.fromkeys(lines[lines["run"].isin(runs)]["subset"]))
        for kind in kinds if 1 < len(kinds) <= MOST_KINDS else []:
            first = len(table.rows)
            of_kind = lines[lines["subset"] == kind].set_index("run")["value"]
            for i, one in contents.on(stream):
                _, base, algorithm = one.first.parts
                known = paper()["combined"].get(base, {}).get(algorithm, {}).get(kind)
                known = (known[0], known[1]) if known and stream == "combined" and not one.variant else None
                values = list(one.of(of_kind, one.unit).values())
                said = verdict(values, known, 10, one.higher_is_better)
                theirs = number(*known, digits=one.digits) if known else Cell()
                table.add(
                    i, stream, one.label, kind, number(*mean_and_error(values), one.digits), theirs, said
                )
            mark_best(table, 3, contents.on(stream)[0][1].higher_is_better, range(first, len(table.rows)))
    return table


def transfer(contents: Contents) -> Table:
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
        contents.forward,
        contents.final,
        metrics.forgetting(contents.table),
        metrics.backward_transfer(contents.table),
        contents.forward_transfer,
        metrics.area_under_curve(contents.table),
    ]
    for stream in contents.streams:
        first = len(table.rows)
        for i, one in contents.on(stream):
            cells = [number(*one.summary(values, one.unit), one.digits) for values in numbers]
            table.add(i, stream, one.label, *cells)
        higher = contents.on(stream)[0][1].higher_is_better
        for column, best in enumerate((higher, higher, False, True, True, higher), 2):
            mark_best(table, column, best, range(first, len(table.rows)))
    return table


def components(contents: Contents) -> Table:
    table = Table(
        "components",
        "Number of learned components",
        "At the end, mean and standard error over seeds; learners that add components start with 4 by "
        "default.",
        ["stream", "method", "components", "paper", "verdict", "tried", "kept"],
    )
    counts = metrics.components(contents.table)
    by_run = contents.candidates.groupby("run")["kept"]
    for i, one in enumerate(contents.groups):
        structure, base, algorithm = one.first.parts
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


def reuse(contents: Contents) -> Table:
    table = Table(
        "reuse",
        "Component reuse",
        "Number of tasks whose final score gets worse by more than 5 % (relative) when a component is "
        "removed; components sorted by it within each run, then mean and standard error over seeds. "
        "Removed: its weight is 0 at all depths, and the others' are scaled to sum to what they did.",
        ["stream", "method", "component", "tasks", "paper"],
    )
    lines = metrics.reuse(contents.table)
    for i, one in enumerate(contents.groups):
        structure, base, algorithm = one.first.parts
        usual = structure == "soft-ordering" and base == "er" and not one.variant
        known = paper()["reuse"].get(algorithm, {}).get(one.stream, []) if usual else []
        own = lines[lines["run"].isin(one.names)]
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


def compositionality(contents: Contents) -> Table:
    table = Table(
        "compositionality",
        "Compositionality",
        "From 0 to 1. Consistency: does a component have the same effect in all tasks and depths, and "
        "another one than the others have? Concentration: does a task choose few components at each "
        "depth? Reuse: do many tasks need a component? Score: their geometric mean.",
        ["stream", "method", "consistency", "concentration", "reuse", "score"],
    )
    found = metrics.compositionality(contents.table)
    for stream in contents.streams:
        first = len(table.rows)
        for i, one in contents.on(stream):
            cells = [number(*one.summary(found[name]), 2) for name in found.columns]
            if any(cell.value is not None for cell in cells):
                table.add(i, stream, one.label, *cells)
        mark_best(table, 5, True, range(first, len(table.rows)))
    return table


def ratios(contents: Contents) -> Table:
    table = Table(
        "ratios",
        "Forgetting ratio of tasks",
        "Score right after the task was learned, divided by its final one (for errors, the inverse), "
        "mean over seeds: 1 means that nothing was forgotten, more than 1 that something was. Of longer "
        "streams, ten tasks from the first to the last, as in the paper.",
        ["stream", "method", *(str(i) for i in range(1, RATIOS + 1))],
    )
    lines = metrics.forgetting_ratio(contents.table)
    for i, one in enumerate(contents.groups):
        own = lines[lines["run"].isin(one.names)]
        means = own.groupby("j")["ratio"].mean()
        shown = means.iloc[spread(len(means), RATIOS)].to_list()
        cells = [number(ratio, digits=2) for ratio in shown]
        table.add(i, one.stream, one.label, *cells, *[Cell()] * (RATIOS - len(cells)))
    return table


def differences(contents: Contents) -> Table:
    table = Table(
        "differences",
        "Differences between methods",
        "Final performance of the first minus the second method on the same seeds, data and epochs, with "
        "its standard error; two-sided p-values of the paired t-test (by Holm's method for all pairs of a "
        f"stream; below {LEVEL}: in bold) and of Wilcoxon's signed-rank test (not corrected).",
        ["stream", "method", "other method", "seeds", "difference", "t-test", "Wilcoxon"],
    )
    for stream in contents.streams:
        for i, one, other, test in pairs(contents, stream):
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


def pairs(contents: Contents, stream: str) -> list[tuple[int, Group, Group, Paired]]:
    found = []
    for (i, one), (_, other) in itertools.combinations(contents.on(stream), 2):
        if one.first.work != other.first.work:
            continue  # no fair comparison
        test = paired(one.of(contents.final, one.unit), other.of(contents.final, other.unit))
        if test is not None:
            found.append((i, one, other, test))
    corrected = holm([test.t_test for *_, test in found])
    return [
        (i, one, other, replace(test, p=p)) for (i, one, other, test), p in zip(found, corrected, strict=True)
    ]


def cost(contents: Contents) -> Table:
    table = Table(
        "cost",
        "Time, steps and memory of a run",
        "Means over seeds. Time is of the whole cohort that a run was trained in, divided by its runs; "
        "steps are batches times passes; memory is the peak of the process, which may have trained "
        "other runs before.",
        ["stream", "method", "runs", "done", "time", "steps", "memory"],
    )
    for i, one in enumerate(contents.groups):
        told = [run.description for run in one.counted]
        times = [d["seconds"] / len(d.get("together") or [0]) for d in told if d.get("seconds")]
        steps = [d["steps"] for d in told if d.get("steps")]
        memory = [d["peak_memory"] / 1e6 for d in told if d.get("peak_memory")]
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


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


TABLES: tuple[Callable[[Contents], Table], ...] = (
    summary,
    performance,
    subsets,
    transfer,
    components,
    reuse,
    compositionality,
    ratios,
    differences,
    cost,
)


def tables(contents: Contents) -> list[Table]:
    """All that the runs allow."""
    return [table for make in TABLES if (table := make(contents)).rows]
