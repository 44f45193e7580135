"""Which tables a report has, and what is in them: one function each, from `Contents`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from piaget.lab.final_table import DIGITS, mean_and_error
from piaget.lab.progress import duration
from piaget.method.choices import EXPANDING
from piaget.paper.cells import TRIALS
from piaget.paper.results import component_numbers
from piaget.report import metrics
from piaget.report.ablation import ablation
from piaget.report.claim_table import claims
from piaget.report.contents import Contents
from piaget.report.forms import Cell, Table, mark_best, number, share_of
from piaget.report.inferred import confusion_table, inference_table
from piaget.report.statistics import LEVEL, spread
from piaget.scoring.rows import FURTHER, MAJORITY

MOST_KINDS, RATIOS = 5, 10  # kinds of tasks that have a table of their own; tasks in that of forgetting
AGAINST_THE_PAPER = (
    " The verdict is Welch's two-sided test at 5 % against the paper's mean and standard error (10 trials; "
    "Objects: 50); with fewer than 5 seeds there is none. Only runs with the paper's settings are compared."
)


def _reported(numbers: Sequence[float] | None, digits: int = 1) -> Cell:
    """The paper's mean and standard error, if it has them."""
    return number(numbers[0], numbers[1], digits) if numbers else Cell()


def _mark_best(table: Table, contents: Contents, columns: Mapping[int, bool | None], by: int = 1) -> None:
    """The best of each stream (`by`: of all rows with the same first cells), in these columns: is a higher
    number better? None: if a higher score is."""
    blocks: dict[tuple[str, ...], list[int]] = {}
    for row, cells in enumerate(table.rows):
        blocks.setdefault(tuple(cell.text for cell in cells[:by]), []).append(row)
    for (stream, *_), rows in blocks.items():
        for column, higher in columns.items():
            better = contents.first_on(stream).higher_is_better if higher is None else higher
            mark_best(table, column, better, rows)


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
    if len(contents.streams) < 2:
        return table
    for label in dict.fromkeys(group.label for group in contents.groups):
        cells = []
        for stream in contents.streams:
            group = next((group for group in contents.on(stream) if group.label == label), None)
            cells.append(
                number(*group.summary(contents.final, group.unit), group.digits) if group else Cell()
            )
        table.add(None, label, *cells)
    for column, stream in enumerate(contents.streams, 1):
        mark_best(table, column, contents.first_on(stream).higher_is_better, range(len(table.rows)))
    return table


def performance(contents: Contents) -> Table:
    """Final performance of all methods, beside the paper's, as far as it has numbers for them."""
    compared = any(group.first.paper for group in contents.counted)
    table = Table(
        "final",
        "Final performance beside the paper's" if compared else "Final performance",
        "Score after all tasks were learned: mean over tasks, then mean and standard error over seeds."
        f"{AGAINST_THE_PAPER if compared else ''}",
        ["stream", "method", "seeds", "score", "final", "paper", "verdict"],
    )
    for group in contents.counted:
        values, run = list(group.of(contents.final, group.unit).values()), group.first
        judgement = group.judged(values, run.paper, run.trials, group.higher_is_better, group.digits)
        final, theirs = number(*mean_and_error(values), group.digits), _reported(run.paper, group.digits)
        cells = number(len(values), digits=0), group.metric, final, theirs, judgement
        table.add(group.position, group.stream, group.label, *cells)
    _mark_best(table, contents, {4: None})
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
    lines = metrics.final_by_subset(contents.rows)
    for stream in contents.streams:
        runs = [run.name for group in contents.on(stream) for run in group.runs]
        kinds = list(dict.fromkeys(lines[lines["run"].isin(runs)]["subset"]))
        for kind in kinds if 1 < len(kinds) <= MOST_KINDS else []:
            first = len(table.rows)
            of_kind = lines[lines["subset"] == kind].set_index("run")["value"]
            for group in contents.on(stream):
                _, base, algorithm = group.first.parts
                usual = stream == "combined" and not group.variant
                known = (
                    component_numbers()["combined"].get(base, {}).get(algorithm, {}).get(kind)
                    if usual
                    else None
                )
                values = list(group.of(of_kind, group.unit).values())
                judgement = group.judged(values, known, TRIALS, group.higher_is_better) if known else ""
                final, theirs = number(*mean_and_error(values), group.digits), _reported(known, group.digits)
                table.add(group.position, stream, group.label, kind, final, theirs, judgement)
            mark_best(table, 3, contents.first_on(stream).higher_is_better, range(first, len(table.rows)))
    return table


def further(contents: Contents) -> Table:
    """Accuracies beside what the most frequent class alone gives, areas under ROC curves and log-losses."""
    table = Table(
        "scores",
        "Final performance by further scores",
        "Of classification tasks, after all tasks were learned: mean over tasks, then mean and standard "
        "error over seeds. Majority: accuracy of always answering the most frequent training class, in %. "
        "AUC: area under the ROC curve of binary tasks; a task whose test data has one class only has none. "
        "Log-loss: mean cross-entropy (natural logarithm); lower is better.",
        ["stream", "method", "seeds", "accuracy", MAJORITY, *FURTHER.values(), "AUC of"],
    )
    lines = contents.compute(metrics.further_performance)
    by_metric = {metric: lines[lines["metric"] == metric].set_index("run") for metric in (MAJORITY, *FURTHER)}
    tasks = contents.compute(metrics.by_task).groupby("run").size()
    for group in contents.counted:
        if not any(group.of(of["final"]) for of in by_metric.values()):
            continue
        cells = [number(*group.summary(contents.final, group.unit), group.digits)]
        for metric, of in by_metric.items():
            unit, digits = (group.unit, group.digits) if metric == MAJORITY else (1.0, DIGITS[metric])
            cells.append(number(*group.summary(of["final"], unit), digits))
        seeds = number(len(group.of(contents.final)), digits=0)
        share = share_of(group.of(by_metric["auc"]["tasks"]), group.of(tasks))
        table.add(group.position, group.stream, group.label, seeds, *cells, share)
    _mark_best(table, contents, {3: True, 5: True, 6: False})
    return table


def transfer(contents: Contents) -> Table:
    """What is gained and lost along the stream."""
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
        metrics.forgetting(contents.rows),
        metrics.backward_transfer(contents.rows),
        metrics.forward_transfer(contents.rows, contents.references),
        metrics.area_under_curve(contents.rows),
    ]
    for group in contents.counted:
        cells = [number(*group.summary(values, group.unit), group.digits) for values in numbers]
        table.add(group.position, group.stream, group.label, *cells)
    _mark_best(table, contents, {2: None, 3: None, 4: False, 5: True, 6: True, 7: None})
    return table


def components(contents: Contents) -> Table:
    """How many components there are in the end."""
    events = contents.compute(metrics.component_events)
    gone = events[events["event"] != metrics.BORN].groupby("run").size()
    table = Table(
        "components",
        "Number of learned components",
        "At the end, mean and standard error over seeds; learners that add components start with 4 by "
        "default." + ("" if gone.empty else " Gone: removed, or merged into others."),
        [
            *("stream", "method", "components", "paper", "verdict", "tried", "kept"),
            *([] if gone.empty else ["gone"]),
        ],
    )
    by_run = contents.compute(metrics.candidates).groupby("run")["kept"]
    counted = [by_run.size(), by_run.sum(), *([] if gone.empty else [gone])]
    for group in contents.groups:
        structure, base, algorithm = group.first.parts
        if algorithm not in EXPANDING and not any(run.name in by_run.groups for run in group.runs):
            continue
        # A run may have had no reason to try one.
        counts = [each.reindex(group.names, fill_value=0) for each in counted]
        known = component_numbers()["components"].get(structure, {}).get(group.stream, {}).get(base)
        known = known if algorithm == "dynamic" and not group.variant else None
        values = list(group.of(contents.compute(metrics.components)).values())
        judgement = group.judged(values, known, TRIALS, True) if known else ""
        judgement = judgement.replace("better", "more").replace("worse", "fewer")
        cells = [number(*group.summary(each)) for each in counts]
        learned = number(*mean_and_error(values))
        table.add(group.position, group.stream, group.label, learned, _reported(known), judgement, *cells)
    return table


def reuse(contents: Contents) -> Table:
    """How many tasks need each component."""
    table = Table(
        "reuse",
        "Component reuse",
        "Number of tasks whose final score gets worse by more than 5 % (relative) when a component is "
        "removed; components sorted by it within each run, then mean and standard error over seeds. "
        "Removed: its weight is 0 at all depths, and the others' are scaled to sum to what they did.",
        ["stream", "method", "component", "tasks", "paper"],
    )
    counts = contents.compute(metrics.reuse)
    for group in contents.groups:
        structure, base, algorithm = group.first.parts
        usual = structure == "soft-ordering" and base == "er" and not group.variant
        known = component_numbers()["reuse"].get(algorithm, {}).get(group.stream, []) if usual else []
        lines = counts[counts["run"].isin(group.names)]
        for rank, tasks in lines.groupby("rank")["tasks"]:
            theirs = _reported(known[rank] if rank < len(known) else None, 2)
            ours = number(*mean_and_error(list(tasks)), 2)
            table.add(group.position, group.stream, group.label, number(rank, digits=0), ours, theirs)
    return table


def compositionality(contents: Contents) -> Table:
    """The compositionality score, and what it is made of."""
    table = Table(
        "compositionality",
        "Compositionality",
        "From 0 to 1. Consistency: does a component have the same effect in all tasks and depths, and "
        "another one than the others have? Concentration: does a task choose few components at each "
        "depth? Reuse: do many tasks need a component? Score: their geometric mean.",
        ["stream", "method", "consistency", "concentration", "reuse", "score"],
    )
    parts = metrics.compositionality(contents.rows)
    for group in contents.counted:
        cells = [number(*group.summary(parts[name]), 2) for name in parts.columns]
        if any(cell.value is not None for cell in cells):
            table.add(group.position, group.stream, group.label, *cells)
    _mark_best(table, contents, {5: True})
    return table


def ratios(contents: Contents) -> Table:
    """The forgetting ratio of each task."""
    table = Table(
        "ratios",
        "Forgetting ratio of tasks",
        "Score right after the task was learned, divided by its final one (for errors, the inverse), "
        "mean over seeds: 1 means that nothing was forgotten, more than 1 that something was. Of longer "
        "streams, ten tasks from the first to the last, as in the paper.",
        ["stream", "method", *(str(i) for i in range(1, RATIOS + 1))],
    )
    ratios = contents.compute(metrics.forgetting_ratio)
    for group in contents.groups:
        lines = ratios[ratios["run"].isin(group.names)]
        means = lines.groupby("j")["ratio"].mean()
        cells = [number(ratio, digits=2) for ratio in means.iloc[spread(len(means), RATIOS)]]
        table.add(group.position, group.stream, group.label, *cells, *[Cell()] * (RATIOS - len(cells)))
    return table


def differences(contents: Contents) -> Table:
    """Paired tests between methods."""
    table = Table(
        "differences",
        "Differences between methods",
        "Final performance of the first minus the second method on the same seeds, data and epochs, with "
        "its standard error; two-sided p-values of the paired t-test (by Holm's method for all pairs of a "
        f"stream; below {LEVEL}: in bold) and of Wilcoxon's signed-rank test (not corrected).",
        ["stream", "method", "other method", "seeds", "difference", "t-test", "Wilcoxon"],
    )
    for ours, theirs, test in contents.differences:
        cells = [
            number(test.seeds, digits=0),
            number(test.mean, test.error, ours.digits),
            replace(number(test.p, digits=4), best=test.p < LEVEL),
            number(test.wilcoxon, digits=4),
        ]
        table.add(ours.position, ours.stream, ours.label, theirs.label, *cells)
    return table


def cost(contents: Contents) -> Table:
    """Time, steps and memory of each method."""
    table = Table(
        "cost",
        "Time, steps and memory of a run",
        "Means over seeds. Time is of the whole cohort that a run was trained in, divided by its runs; "
        "steps are batches times passes; memory is the peak of the process, which may have trained "
        "other runs before.",
        ["stream", "method", "runs", "done", "time", "steps", "memory"],
    )
    for group in contents.groups:
        runs = number(len(group.runs), digits=0), number(sum(run.done for run in group.runs), digits=0)
        cells = cost_cells(*(_mean(run.costs[i] for run in group.counted) for i in range(3)))
        table.add(group.position, group.stream, group.label, *runs, *cells)
    return table


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value]
    return math.fsum(known) / len(known) if known else None


def cost_cells(seconds: float | None, steps: float | None, memory: float | None) -> list[Cell]:
    """Time, steps, and memory in bytes, as they are shown; nothing for what is not known."""
    return [
        Cell(duration(seconds), seconds) if seconds else Cell(),
        number(steps, digits=0) if steps else Cell(),
        Cell(f"{memory / 1e6:,.0f} MB", memory / 1e6) if memory else Cell(),
    ]


TABLES: tuple[Callable[[Contents], Table], ...] = (
    summary,
    performance,
    further,
    subsets,
    transfer,
    components,
    reuse,
    compositionality,
    ratios,
    differences,
    ablation,
    inference_table,
    confusion_table,
    claims,
    cost,
)


def tables(contents: Contents) -> list[Table]:
    """All that the runs allow."""
    return [table for make in TABLES if (table := make(contents)).rows]
