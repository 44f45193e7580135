"""Numbers about runs: pure functions of the tidy rows.

Rows are a pandas.DataFrame with one number a line: the columns of `piaget.scoring.rows`, in the order in
which they were written, and `run`, which tells runs apart. All functions give one line a run, or one a run
and task.

Notation: a[i, j] is the score of task j on its test data right after task i was learned, T the number of
tasks, i(j) the first i at which task j has a score (initial tasks are learned together). Scores are
accuracies, or errors (rmse), of which lower ones are better: `gain` is the difference that is positive if it
got better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from piaget.scoring.rows import (
    CONSISTENCY,
    EXPANSION,
    FURTHER,
    LOWER_IS_BETTER,
    MAJORITY,
    MERGED,
    REMOVAL,
    REMOVED,
    SCORES,
    STRUCTURE,
)

DROP = 0.05  # a task reuses a component if its score is worse by more than this share without it
BORN = "born"  # a component; others are removed or merged
TASK = ["run", "evaluated"]  # what tells one task of one run from all others


def gain(metric: pd.Series, new: pd.Series, old: pd.Series) -> pd.Series:
    """How much better `new` is than `old`, in the score's own unit."""
    return (new - old) * np.where(metric.isin(LOWER_IS_BETTER), -1.0, 1.0)


def scores(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that hold test scores of tasks while and after they are learned.

    A run whose tasks are of different kinds has the score of its first task: no mean of both makes sense.
    """
    tests = rows[(rows["split"] == "test") & rows["metric"].isin(SCORES)]
    metric = tests.drop_duplicates("run").set_index("run")["metric"]
    tests = tests[tests["metric"] == tests["run"].map(metric)]
    return tests[["run", "trained", "epoch", "evaluated", "metric", "value"]]


def _last_scores(rows: pd.DataFrame) -> pd.DataFrame:
    """While a task is learned it may be evaluated many times: the last one counts."""
    return scores(rows).drop_duplicates(["run", "trained", "evaluated"], keep="last")


def _places(lines: pd.DataFrame, column: str, place: str) -> pd.DataFrame:
    """The position, from 0, of each of a run's tasks in a column, by first appearance."""
    tasks = lines.drop_duplicates(["run", column])[["run", column]]
    return tasks.assign(**{place: tasks.groupby("run").cumcount()})


def after(rows: pd.DataFrame) -> pd.DataFrame:
    """a[i, j]: run, trained (i), evaluated (j), metric, value, and the positions `i` and `j`, from 0."""
    lines = _last_scores(rows)
    places = _places(lines, "evaluated", "j")
    # The tasks that are trained come in order; initial ones appear as one, the last of them.
    trained = places.rename(columns={"evaluated": "trained", "j": "i"})
    lines = lines.merge(trained, on=["run", "trained"]).merge(places, on=TASK)
    return lines.drop(columns="epoch")


def by_task(rows: pd.DataFrame) -> pd.DataFrame:
    """One line a run and task: metric, `first` a[i(j), j], `final` a[T, j], `best` over all i, and `j`."""
    lines = _last_scores(rows)
    first = lines.drop_duplicates(TASK).rename(columns={"value": "first"})
    final = lines.drop_duplicates(TASK, keep="last").rename(columns={"value": "final"})
    extremes = lines.groupby(TASK)["value"].agg(low="min", high="max").reset_index()
    tasks = first[[*TASK, "metric", "first"]].merge(final[[*TASK, "final"]], on=TASK).merge(extremes, on=TASK)
    best = tasks["low"].where(tasks["metric"].isin(LOWER_IS_BETTER), tasks["high"])
    return tasks.drop(columns=["low", "high"]).assign(best=best, j=tasks.groupby("run").cumcount())


def _mean_by_run(lines: pd.DataFrame, values: pd.Series) -> pd.Series:
    groups = values.groupby(lines["run"])
    return groups.mean().where(groups.count() == groups.size())  # what is not a number counts


def final_performance(rows: pd.DataFrame) -> pd.Series:
    """1/T sum_j a[T, j]"""
    tasks = by_task(rows)
    return _mean_by_run(tasks, tasks["final"])


def final_by_subset(rows: pd.DataFrame) -> pd.DataFrame:
    """Final performance on the tasks of each kind, by what stands before the last "-" of their names
    ("mnist-03"): run, subset, value."""
    lines = by_task(rows)
    lines = lines[lines["evaluated"].str.contains(r"-\d+$")]
    subset = lines["evaluated"].str.replace(r"-\d+$", "", regex=True).rename("subset")
    groups = lines.groupby([lines["run"], subset])["final"]
    return groups.agg(lambda finals: finals.mean(skipna=False)).rename("value").reset_index()


def further_scores(rows: pd.DataFrame) -> pd.DataFrame:
    """Further scores of the tasks that have accuracies, and the accuracy of their majority: run, evaluated,
    metric, and `first` and `final` as in `by_task`. There is no line for what a task does not have."""
    counted = by_task(rows)
    counted = counted[counted["metric"] == "accuracy"][TASK]
    tests = rows[(rows["split"] == "test") & rows["metric"].isin([*FURTHER, MAJORITY])]
    one = [*TASK, "metric"]
    lines = counted.merge(tests[["trained", *one, "value"]], on=TASK)
    lines = lines.drop_duplicates(["trained", *one], keep="last")
    first = lines.drop_duplicates(one).rename(columns={"value": "first"})
    final = lines.drop_duplicates(one, keep="last").rename(columns={"value": "final"})
    return first[[*one, "first"]].merge(final[[*one, "final"]], on=one)


def further_performance(rows: pd.DataFrame) -> pd.DataFrame:
    """The mean of each further score over the tasks that have it, and how many have: run, metric, `final`,
    `tasks`.

    The majority's accuracy is told of all tasks of a run or not at all, since it is compared with theirs.
    """
    lines = further_scores(rows)
    groups = lines.groupby(["run", "metric"])["final"]
    found = pd.DataFrame(
        {"final": groups.agg(lambda finals: finals.mean(skipna=False)), "tasks": groups.size()}
    )
    found = found.reset_index()
    tasks = by_task(rows).groupby("run").size()
    return found[(found["metric"] != MAJORITY) | (found["tasks"] == found["run"].map(tasks))]


def forward_performance(rows: pd.DataFrame) -> pd.Series:
    """1/T sum_j a[i(j), j]: right after each task was learned."""
    tasks = by_task(rows)
    return _mean_by_run(tasks, tasks["first"])


def forgetting(rows: pd.DataFrame) -> pd.Series:
    """1/(T-1) sum over all tasks but the last of (max_i a[i, j] - a[T, j]); for errors, of a[T, j] - min_i.

    Never negative. (Chaudhry et al., 2018, with the last evaluation among those the best is taken of.)
    """
    return _mean_gain(rows, "final", "best")


def backward_transfer(rows: pd.DataFrame) -> pd.Series:
    """1/(T-1) sum over all tasks but the last of a[T, j] - a[i(j), j]; for errors, the other way round.

    Negative: later tasks did harm. (Lopez-Paz and Ranzato, 2017.)
    """
    return _mean_gain(rows, "first", "final")


def _mean_gain(rows: pd.DataFrame, old: str, new: str) -> pd.Series:
    """Over all tasks but the last."""
    tasks = by_task(rows)
    tasks = tasks[tasks["j"] < tasks.groupby("run")["j"].transform("max")]
    return _mean_by_run(tasks, gain(tasks["metric"], tasks[new], tasks[old]))


def forgetting_ratio(rows: pd.DataFrame) -> pd.DataFrame:
    """The paper's, for each task: a[i(j), j] / a[T, j]. 1: nothing is forgotten; above 1: something is.

    For errors, a[T, j] / a[i(j), j], so that more than 1 is worse, too. Where both are 0, it is 1; infinite,
    if a task is forgotten completely. Columns: those of `by_task`, and `ratio`.
    """
    lines = by_task(rows)
    lower = lines["metric"].isin(LOWER_IS_BETTER)
    above, below = lines["first"].where(~lower, lines["final"]), lines["final"].where(~lower, lines["first"])
    ratio = (above / below).where(~((above == 0) & (below == 0)), 1.0)
    return lines.assign(ratio=ratio)


def forward_transfer(rows: pd.DataFrame, pairs: Mapping[str, str]) -> pd.Series:
    """How much better tasks are right after they were learned than with a baseline: mean over tasks of
    a[i(j), j] - b[i(j), j]; for errors, the other way round. pairs: {run: the baseline's run, same seed}.

    Tasks that only one of the two has learned do not count.
    """
    tasks = by_task(rows)
    baseline = tasks[["run", "evaluated", "first"]].rename(columns={"run": "other", "first": "other_first"})
    both = tasks.assign(other=[pairs.get(run, "") for run in tasks["run"]]).merge(
        baseline, on=["other", "evaluated"]
    )
    return gain(both["metric"], both["first"], both["other_first"]).groupby(both["run"]).mean()


def relative_gain(
    values: pd.Series, reference: pd.Series, metric: pd.Series, pairs: Mapping[str, str]
) -> pd.Series:
    """By how many percent a run's number is better than a reference's: 100 (v / r - 1); for errors,
    100 (1 - v / r). No number where r is 0. pairs: {run: the reference's run, same seed}."""
    runs = [run for run in values.index if pairs.get(run) in reference.index]
    base = pd.Series([float(reference[pairs[run]]) for run in runs], index=runs, dtype=float)
    return 100 * gain(metric[runs], values[runs], base) / base.where(base != 0)


def area_under_curve(rows: pd.DataFrame) -> pd.Series:
    """How fast tasks are learned: for each task, the mean of its own score over the epochs of its training
    (trapezoids between evaluations, from the first one on), then the mean over tasks.

    Needs `--every`: tasks that were evaluated only once do not count; without any, there is no number.
    """
    lines = scores(rows)
    lines = lines[lines["trained"] == lines["evaluated"]].drop_duplicates([*TASK, "epoch"], keep="last")
    before = lines.groupby(TASK, sort=False)[["epoch", "value"]].shift()
    width = lines["epoch"] - before["epoch"]  # of a trapezoid, from the evaluation before to this one
    lines = lines.assign(width=width, area=width * (lines["value"] + before["value"]) / 2)
    trapezoids = lines[width.notna()].groupby(TASK)
    sums, known = trapezoids[["area", "width"]].sum(), trapezoids["area"].count() == trapezoids.size()
    areas = (sums["area"] / sums["width"]).where(known)
    return areas.groupby("run").mean().reindex(lines["run"].unique())


def components(rows: pd.DataFrame) -> pd.Series:
    """How many components there are in the end (without components to choose from: layers)."""
    return rows[rows["metric"] == "components"].groupby("run")["value"].last()


def candidates(rows: pd.DataFrame) -> pd.DataFrame:
    """Every new component that was tried: run, trained, `with_it`, `without` (validation scores), `kept`, and
    `gain`: by how many percent it is better with it."""
    tried = rows[rows["stage"] == EXPANSION]
    names = {"kept": "kept"}
    for score in SCORES:
        names |= {f"{score} with candidate": "with_it", f"{score} without candidate": "without"}
    wide = (
        tried.assign(name=tried["metric"].map(names))
        .pivot_table(index=["run", "trained"], columns="name", values="value", aggfunc="last", sort=False)
        .reindex(columns=["with_it", "without", "kept"])
    )
    lower = tried[tried["metric"].isin([f"{score} with candidate" for score in LOWER_IS_BETTER])]
    sign = np.where(wide.index.isin(pd.MultiIndex.from_frame(lower[["run", "trained"]])), -100.0, 100.0)
    wide["gain"] = sign * (wide["with_it"] - wide["without"]) / wide["without"].where(wide["without"] != 0)
    return wide.assign(kept=wide["kept"] == 1).rename_axis(columns=None).reset_index()


def component_events(rows: pd.DataFrame) -> pd.DataFrame:
    """What became of components, in the order in which it happened: run, trained, event (born, removed or
    merged), and of those that went, `component`, the number that it had then, and `into`, that of the one
    into which it was merged. Those after it have moved up by one place since."""
    kept = (rows["stage"] == EXPANSION) & (rows["metric"] == "kept") & (rows["value"] == 1)
    went = rows["metric"].isin([REMOVED, MERGED])
    lines = rows[kept | (went & rows["component"].notna())]
    event = lines["metric"].where(lines["metric"] != "kept", BORN)
    into = lines["value"].where(lines["metric"] == MERGED)
    return lines[["run", "trained", "component"]].assign(event=event, into=into)


def removals(rows: pd.DataFrame) -> pd.DataFrame:
    """Final scores without each component: run, evaluated, component, value, metric, `final`, and `reused`:
    is it worse by more than 5 % of what it is with all of them, on the same samples?
    """
    rows_of = rows[rows["stage"] == REMOVAL]
    removed = rows_of[rows_of["component"].notna()][[*TASK, "component", "value"]].astype({"component": int})
    lines = removed.merge(by_task(rows)[[*TASK, "metric", "final"]], on=TASK)
    # Where they are of some test samples only (scoring/probing.py), so is what they are compared with.
    some = rows_of[rows_of["metric"].str.endswith(" with all components")].set_index(TASK)["value"]
    whole = lines.join(some.rename("whole"), on=TASK)["whole"]
    lines["final"] = whole.fillna(lines["final"])
    worse = gain(lines["metric"], lines["final"], lines["value"])
    return lines.assign(reused=worse > DROP * (1 + 1e-5) * lines["final"])  # exactly 5 % is not more


def needs(rows: pd.DataFrame) -> pd.DataFrame:
    """How many tasks need each component: run, component, tasks."""
    counts = removals(rows).groupby(["run", "component"])["reused"].sum()
    return counts.rename("tasks").reset_index()


def reuse(rows: pd.DataFrame) -> pd.DataFrame:
    """How many tasks reuse each component, the most reused first, as in the paper's table: run, rank,
    tasks."""
    counts = needs(rows).sort_values(["run", "tasks"], ascending=[True, False])
    counts["rank"] = counts.groupby("run").cumcount()
    return counts[["run", "rank", "tasks"]].astype({"tasks": int})


def structures(rows: pd.DataFrame) -> pd.DataFrame:
    """How much each task uses each component: run, evaluated, component, depth, value."""
    weights = rows[rows["stage"] == STRUCTURE][[*TASK, "component", "depth", "value"]]
    return weights.astype({"component": int, "depth": int})


# --- compositionality -------------------------------------------------------------------------------------


def concentration(rows: pd.DataFrame) -> pd.Series:
    """How concentrated structures are: 1 - H / log k, where H is the entropy of a task's weights at one depth
    (as shares of their absolute values), mean over depths and tasks. k: the components that the task may use.

    1: one component at each depth; 0: all of them equally. One component only: 0, there is nothing to choose.
    """
    lines = structures(rows)
    shares = lines["value"].abs()
    groups = [lines["run"], lines["evaluated"], lines["depth"]]
    total = shares.groupby(groups).transform("sum")
    shares = (shares / total.where(total > 0)).fillna(0.0)
    entropy = (-shares * np.log(shares.where(shares > 0, 1.0))).groupby(groups).sum()
    count = lines.groupby(["run", "evaluated", "depth"])["component"].count()
    concentrated = 1 - entropy / np.log(count.where(count > 1, np.e))
    return concentrated.where(count > 1, 0.0).groupby("run").mean().clip(0, 1)


def reuse_share(rows: pd.DataFrame) -> pd.Series:
    """How much is reused: the share of components that at least two tasks need (`removals`), weighted by how
    often: mean over components of max(tasks - 1, 0) / (T - 1). 1: every task needs every component."""
    lines = removals(rows)
    counts = lines.groupby(["run", "component"])["reused"].sum()
    tasks = lines.groupby("run")["evaluated"].nunique()
    others = (counts - 1).clip(lower=0).groupby("run").mean()
    return (others / (tasks - 1).where(tasks > 1)).fillna(0.0)


def consistency(rows: pd.DataFrame) -> pd.Series:
    """How consistent a component's effect is across tasks and depths, as measured at the end of a run
    (`scoring.probing.consistency`): 1: the same everywhere, and different from the other components'."""
    return rows[rows["stage"] == CONSISTENCY].groupby("run")["value"].mean().clip(0, 1)


def compositionality(rows: pd.DataFrame) -> pd.DataFrame:
    """The parts, and the score: (consistency x concentration x reuse) ^ (1/3), from 0 to 1.

    It is 0 as soon as one of them is: one component for everything, components that are all alike, every task
    with components of its own, or every task with all components equally. docs/report.md says what it does
    not tell.
    """
    parts = pd.DataFrame(
        {"consistency": consistency(rows), "concentration": concentration(rows), "reuse": reuse_share(rows)}
    ).dropna()
    return parts.assign(score=parts.prod(axis=1) ** (1 / 3))


# --- curves -------------------------------------------------------------------------------------------------


def epochs_of_stream(rows: pd.DataFrame, lengths: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """Scores against the epochs of the whole stream: run, evaluated, j, at, value.

    lengths: {run: the number of epochs of each trained task, in order; the initial ones are one}.
    """
    lines = scores(rows)
    trained = _places(lines, "trained", "number")
    starts = {run: np.concatenate([[0], np.cumsum(epochs)]) for run, epochs in lengths.items()}
    trained["start"] = [
        int(starts[run][number]) for run, number in zip(trained["run"], trained["number"], strict=True)
    ]
    lines = lines.merge(trained, on=["run", "trained"]).merge(_places(lines, "evaluated", "j"), on=TASK)
    return lines.assign(at=lines["start"] + lines["epoch"])[["run", "evaluated", "j", "at", "value"]]
