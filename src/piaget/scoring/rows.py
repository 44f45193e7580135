"""Record rows: one number each, with all it depends on beside it. No heavy imports.

This is the contract between learners, files, tables and pages. A number that is about one component, or about
one component at one depth, has it in the columns `component` and `depth`; all others leave them empty.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypedDict


class Row(TypedDict):
    """One number about a learner.

    >>> task = piaget.stream("digits", seed=0, tasks=1)[0]
    >>> rows = piaget.Learner(initial_tasks=1, epochs=2, width=8).learn(task)
    >>> sorted({row["metric"] for row in rows})
    ['accuracy', 'auc', 'components', 'loss', 'majority']
    """

    stream: str
    method: str  # structure/adaptation/algorithm
    seed: int
    trained: str  # the task being learned, or just learned
    epoch: int
    stage: str  # what was going on: a stage of learning, or one of the words below
    evaluated: str  # the task the number is about; empty: all of them
    split: str
    metric: str  # see METRICS
    component: int | None
    depth: int | None
    value: float


COLUMNS = tuple(Row.__annotations__)

# Stages of rows that are not written while a task is learned.
EXPANSION, REDUCTION, EVALUATION = "expansion", "reduction", "evaluation"
REMOVAL, STRUCTURE, CONSISTENCY = "removal", "structure", "consistency"
TRIAL, ARRIVAL = "trial", "arrival"  # a task that is not learned; rows before they are learned

# The method that tables with groups get (piaget.PriorLearner).
PRIOR_METHOD = "prior/evidence/dynamic"

# The score of a task: how good its predictions are. What is said of performance is said of these.
SCORES = ("accuracy", "rmse")
# Further scores of classification tasks, and what tables call them. AUC is the area under the ROC curve of a
# binary task; there is no row where the data has one class only. Of three classes or more, only prior
# learners and what they are compared with have it: each class against all others, in the mean.
FURTHER = {"auc": "AUC", "loss": "log-loss"}
LOWER_IS_BETTER = ("rmse", "loss", "calibration error")
R2_ROWS = 6  # of fewer, R2 is not given: with so many, chance lets it have a mean and a deviation
# Accuracy on test data of always answering the most frequent training class: once, when the task was learned.
MAJORITY = "majority"

# Which epoch of the task a stage went back to when it ended.
BEST_EPOCH = "best epoch"
# How much of an adaptation was taken over, from 0 to 1, where that is judged.
ADAPTED = "adapted share"

# A component went, whose number is in its column, and those after it moved up by one place. The value is the
# largest rise of a task's loss on stored samples, since the task was learned; or into which it was merged.
REMOVED, MERGED, RISE = "component removed", "component merged", "rise by merging"

# Of a new task's rows: log-density of a row by what other tasks have taught, what is usual among these, and
# the standard deviation among them.
EXPLAINED, USUALLY, USUAL_SPREAD = "explained", "usually explained", "usual spread"
# Models that a score is compared with, and what they are called. "alone" and the next ones are linear.
SIMPLE = {
    "majority": "most frequent class",  # of a regression: the mean
    "alone": "a linear model for each group",
    "pooled": "one linear model, with the group as a feature",
    "interactions": "one linear model, with all features by group",
    "boosting": "boosted trees, with the group as a feature",
}

# Answers without inputs, but for the group, in the best way: shares of classes (of a regression, means) that
# are a group's own or those of all groups, or between. Better than that is better than chance.
SHARES = "shares"

# Of a learner that is not told the tasks of inputs (scoring/inferring.py); first, the stage of such rows in a
# run. In tens: from ten inputs of one task at once. Shares of inputs, or of tens, that are inferred right:
INFERENCE = "inference"
TASK_INFERRED, IN_TENS = "task inferred", "task inferred in tens"
FALSE_ALARMS = "false alarms"  # the share of a known task's inputs that are taken for those of an unknown one
UNKNOWN_AUC = "unknown auc"  # of telling the inputs of an unknown task from those of all known ones
UNKNOWN_NOTICED = "unknown noticed"  # the share of an unknown task's inputs that are noticed to be
# The share of a task's inputs that are taken for those of the task `{}`: one row for each that any are taken
# for. With false alarms, or unknown noticed, these are all of the task's inputs.
TAKEN_FOR = "taken for {}"
INFERRED = (
    TASK_INFERRED,
    IN_TENS,
    f"{{}} with {TASK_INFERRED}",  # a score of answers by the network of the inferred task
    f"{{}} with {IN_TENS}",
    FALSE_ALARMS,
    UNKNOWN_AUC,
    UNKNOWN_NOTICED,
    TAKEN_FOR,
)

# Scores of one class against all others: "recall of yes".
BY_CLASS = ("precision", "recall", "f1", "auc")

# All metrics but those that an adaptation of one's own counts. `{}` stands for a score.
METRICS = (
    *SCORES,
    "auc",
    "loss",  # mean cross-entropy (natural logarithm), or squared error of scaled targets
    MAJORITY,
    "stopped",  # a stage ended early: how many of its epochs were left out
    BEST_EPOCH,
    ADAPTED,
    "components",  # how many there are
    "{} with candidate",  # a component on trial: validation scores with it ...
    "{} without candidate",  # ... and without it
    "kept",  # 1: it was kept
    REMOVED,
    MERGED,
    RISE,
    "weight",  # of a component at a depth, in a task's structure
    "{} without component",  # the task's score with a component's weight set to 0
    "samples",  # it is of so many test samples, where not of all ...
    "{} with all components",  # ... and this is their score with nothing set to 0
    "consistency",  # of a component's effect (scoring/probing.py)
    "r2",  # the share of a regression's variance that is explained
    "calibration error",  # expected, over all tasks: how far probabilities are from what happens
    "coverage",  # the share of a regression's values that lie in their intervals of 90 %
    EXPLAINED,
    USUALLY,
    USUAL_SPREAD,
    *INFERRED,
    *(f"{{}} by {model}" for model in (*SIMPLE, SHARES)),  # the score of a simple model, beside a learner's
    *(f"{score} of {{}}" for score in BY_CLASS),  # here, it stands for a class
)


def is_score(row: Row) -> bool:
    """Is it a test score of a task, as it stood when the row was written?"""
    return row["split"] == "test" and row["metric"] in SCORES


def final_scores(rows: Iterable[Row]) -> dict[str, tuple[str, float]]:
    """The last test score of each task of one run: {task: (metric, value)}, in the order of the stream."""
    return {row["evaluated"]: (row["metric"], row["value"]) for row in rows if is_score(row)}


def final_performance(scores: dict[str, tuple[str, float]]) -> tuple[str, float] | None:
    """The mean of final scores over tasks, with its metric.

    Where tasks have different metrics, the first task's counts: no mean of both makes sense. A score that is
    not a number makes the mean none. None: nothing was scored yet.
    """
    if not scores:
        return None
    metric = next(iter(scores.values()))[0]
    values = [value for name, value in scores.values() if name == metric]
    return metric, math.fsum(values) / len(values)


def further_performance(rows: Sequence[Row]) -> dict[str, tuple[float, int]]:
    """Means of the last further scores over those of one run's tasks that have them: {metric: (mean, tasks)}.

    Of runs whose final performance is an accuracy, and the tasks that it is the mean of. The majority's
    accuracy is told of all of these or not at all, since it is compared with theirs.
    """
    scores = final_scores(rows)
    if not scores or next(iter(scores.values()))[0] != "accuracy":
        return {}
    tasks = {task for task, (metric, _) in scores.items() if metric == "accuracy"}
    values: dict[str, dict[str, float]] = {}
    for row in rows:
        metric, task = row["metric"], row["evaluated"]
        if row["split"] == "test" and (metric in FURTHER or metric == MAJORITY) and task in tasks:
            values.setdefault(metric, {})[task] = row["value"]
    if len(values.get(MAJORITY, tasks)) < len(tasks):
        del values[MAJORITY]
    return {metric: (math.fsum(of.values()) / len(of), len(of)) for metric, of in values.items()}


def taken_for(metric: str) -> str | None:
    """The task that inputs were taken for, of a metric that tells so; None: it is another one."""
    before = TAKEN_FOR.format("")
    return metric.removeprefix(before) if metric.startswith(before) else None


def inferred_performance(rows: Iterable[Row]) -> dict[str, float]:
    """Of a run whose tasks can be inferred: the means over tasks of what is told of each of them."""
    values: dict[str, list[float]] = {}
    for row in rows:
        if row["stage"] == INFERENCE and taken_for(row["metric"]) is None:
            values.setdefault(row["metric"], []).append(row["value"])
    return {metric: math.fsum(of_tasks) / len(of_tasks) for metric, of_tasks in values.items()}


# --- as text ------------------------------------------------------------------------------------------


def _whole_or_none(text: str) -> int | None:
    return int(text) if text else None


NUMBERS: dict[str, Callable[[str], Any]] = {
    "seed": int,
    "epoch": int,
    "component": _whole_or_none,
    "depth": _whole_or_none,
    "value": float,
}


def read_rows(lines: Iterable[str]) -> Iterator[Row]:
    """Rows from the lines of a CSV file with a header, also of one that an older version wrote."""
    for text in csv.DictReader(lines):
        texts = text if "component" in text else upgrade(text)
        row: Any = {name: NUMBERS[name](texts[name]) if name in NUMBERS else texts[name] for name in COLUMNS}
        yield row


# --- as version 0.1 wrote them ----------------------------------------------------------------------

OLD_COLUMNS = tuple(name for name in COLUMNS if name not in ("component", "depth"))
# Version 0.1 wrote component and depth into the metric's name. What each looked like, and its metric now.
OLD_METRICS = (
    (re.compile(r"^component (?P<component>\d+) depth (?P<depth>\d+)$"), "weight"),
    (re.compile(r"^component (?P<component>\d+)$"), "consistency"),
    (re.compile(r"^(?P<score>\w+) without component (?P<component>\d+)$"), "{} without component"),
)


def upgrade(text: dict[str, str]) -> dict[str, str]:
    """A line of an old file, with the current columns."""
    for pattern, metric in OLD_METRICS:
        if match := pattern.match(text["metric"]):
            parts = match.groupdict()
            return text | {
                "metric": metric.format(parts.get("score")),
                "component": parts["component"],
                "depth": parts.get("depth") or "",
            }
    return text | {"component": "", "depth": ""}


def downgrade(row: Row) -> dict[str, Any]:
    """A row as version 0.1 wrote it: a run that an older version began keeps the form of its file."""
    old: dict[str, Any] = {name: value for name, value in row.items() if name in OLD_COLUMNS}
    component, depth, metric = row["component"], row["depth"], row["metric"]
    if metric == "weight":
        old["metric"] = f"component {component} depth {depth}"
    elif metric == "consistency":
        old["metric"] = f"component {component}"
    elif metric.endswith(" without component"):
        old["metric"] = f"{metric} {component}"
    return old
