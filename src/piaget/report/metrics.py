"""Numbers about runs: pure functions of the tidy table.

The table is a pandas.DataFrame with one score a line: the columns of a row file (stream, method, seed,
trained, epoch, stage, evaluated, split, metric, value), in the order in which they were written, and `run`,
which tells runs apart. All functions give one line a run, or one a run and task.

Notation: a[i, j] is the score of task j on its test data right after task i was learned, T the number of
tasks, i(j) the first i at which task j has a score (initial tasks are learned together). Scores are
accuracies, or errors (rmse), of which lower ones are better: `gain` is the difference that is positive if it
got better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from piaget.scoring.rows import CONSISTENCY, LOWER_IS_BETTER, REMOVAL, SCORES, STRUCTURE

DROP = 0.05  # a task reuses a component if its score is worse by more than this share without it


def gain(metric: pd.Series, new: pd.Series, old: pd.Series) -> pd.Series:
    """How much better `new` is than `old`, in the score's own unit."""
    return (new - old) * np.where(metric.isin(LOWER_IS_BETTER), -1.0, 1.0)


def scores(table: pd.DataFrame) -> pd.DataFrame:
    """The lines that hold test scores of tasks while and after they are learned."""
    found = table[(table["split"] == "test") & table["metric"].isin(SCORES)]
    # A run whose tasks are of different kinds has the score of its first ones; no mean of both makes sense.
    main = found.drop_duplicates("run").set_index("run")["metric"]
    found = found[found["metric"] == found["run"].map(main)]
    return found[["run", "trained", "epoch", "stage", "evaluated", "metric", "value"]]


def after(table: pd.DataFrame) -> pd.DataFrame:
    """a[i, j]: run, trained (i), evaluated (j), metric, value, and the positions `i` and `j`, from 0.

    While a task is learned it may be evaluated many times: the last one counts.
    """
    found = scores(table).drop_duplicates(["run", "trained", "evaluated", "metric"], keep="last")
    order = found.drop_duplicates(["run", "trained"])[["run", "trained"]].copy()
    seen = found.drop_duplicates(["run", "evaluated"])[["run", "evaluated"]].copy()
    seen["j"] = seen.groupby("run").cumcount()
    # The tasks that are trained come in order; initial ones appear as one, the last of them.
    order = order.merge(seen, left_on=["run", "trained"], right_on=["run", "evaluated"])[
        ["run", "trained", "j"]
    ]
    found = found.merge(order.rename(columns={"j": "i"}), on=["run", "trained"])
    return found.merge(seen, on=["run", "evaluated"])[
        ["run", "trained", "evaluated", "metric", "value", "i", "j"]
    ]


def by_task(table: pd.DataFrame) -> pd.DataFrame:
    """One line a run and task: metric, `first` a[i(j), j], `final` a[T, j], `best` over all i, and `j`."""
    found = after(table).sort_values(["run", "j", "i"])
    key = ["run", "evaluated"]
    first = found.drop_duplicates(key).rename(columns={"value": "first"})
    final = found.drop_duplicates(key, keep="last").rename(columns={"value": "final"})
    extreme = found.groupby(key)["value"].agg(low="min", high="max").reset_index()
    lines = first[[*key, "j", "metric", "first"]].merge(final[[*key, "final"]], on=key).merge(extreme, on=key)
    lines["best"] = np.where(lines["metric"].isin(LOWER_IS_BETTER), lines["low"], lines["high"])
    return lines.drop(columns=["low", "high"])


def _mean_by_run(lines: pd.DataFrame, values: pd.Series) -> pd.Series:
    groups = values.groupby(lines["run"])
    return groups.mean().where(groups.count() == groups.size())  # what is not a number counts


def final_performance(table: pd.DataFrame) -> pd.Series:
    """1/T sum_j a[T, j]"""
    lines = by_task(table)
    return _mean_by_run(lines, lines["final"])


def final_by_subset(table: pd.DataFrame) -> pd.DataFrame:
    """Final performance on the tasks of each kind, by what stands before the last "-" of their names
    ("mnist-03"):
    run, subset, value."""
    lines = by_task(table)
    lines = lines[lines["evaluated"].str.contains(r"-\d+$")]
    subset = lines["evaluated"].str.replace(r"-\d+$", "", regex=True).rename("subset")
    return lines.groupby([lines["run"], subset])["final"].mean().rename("value").reset_index()


def forward_performance(table: pd.DataFrame) -> pd.Series:
    """1/T sum_j a[i(j), j]: right after each task was learned."""
    lines = by_task(table)
    return _mean_by_run(lines, lines["first"])


def forgetting(table: pd.DataFrame) -> pd.Series:
    """1/(T-1) sum over all tasks but the last of (max_i a[i, j] - a[T, j]); for errors, of a[T, j] - min_i.

    Never negative. (Chaudhry et al., 2018, with the last evaluation among those the best is taken of.)
    """
    lines = _but_last(by_task(table))
    return _mean_by_run(lines, gain(lines["metric"], lines["best"], lines["final"]))


def backward_transfer(table: pd.DataFrame) -> pd.Series:
    """1/(T-1) sum over all tasks but the last of a[T, j] - a[i(j), j]; for errors, the other way round.

    Negative: later tasks did harm. (Lopez-Paz and Ranzato, 2017.)
    """
    lines = _but_last(by_task(table))
    return _mean_by_run(lines, gain(lines["metric"], lines["final"], lines["first"]))


def _but_last(lines: pd.DataFrame) -> pd.DataFrame:
    return lines[lines["j"] < lines.groupby("run")["j"].transform("max")]


def forgetting_ratio(table: pd.DataFrame) -> pd.DataFrame:
    """The paper's, for each task: a[i(j), j] / a[T, j]. 1: nothing is forgotten; above 1: something is.

    For errors, a[T, j] / a[i(j), j], so that more than 1 is worse, too. Columns: run, evaluated, j, ratio.
    """
    lines = by_task(table)
    lower = lines["metric"].isin(LOWER_IS_BETTER)
    above, below = lines["first"].where(~lower, lines["final"]), lines["final"].where(~lower, lines["first"])
    ratio = (above / below.where(below != 0)).where(~((above == 0) & (below == 0)), 1.0)
    return lines[["run", "evaluated", "j"]].assign(ratio=ratio)


def forward_transfer(table: pd.DataFrame, baseline: pd.DataFrame, pairs: Mapping[str, str]) -> pd.Series:
    """How much better tasks are right after they were learned than with a baseline: mean over tasks of
    a[i(j), j] - b[i(j), j]; for errors, the other way round. pairs: {run: the baseline's run, same seed}.

    Tasks that only one of the two has learned do not count.
    """
    ours, theirs = by_task(table), by_task(baseline)
    ours = ours[ours["run"].isin(list(pairs))]
    ours = ours.assign(other=pd.Series([pairs[run] for run in ours["run"]], index=ours.index, dtype=str))
    both = ours.merge(
        theirs[["run", "evaluated", "first"]], left_on=["other", "evaluated"], right_on=["run", "evaluated"],
        suffixes=("", "_baseline"),
    )  # fmt: skip
    return gain(both["metric"], both["first"], both["first_baseline"]).groupby(both["run"]).mean()


def relative_gain(
    values: pd.Series, reference: pd.Series, metric: pd.Series, pairs: Mapping[str, str]
) -> pd.Series:
    """By how many percent a run's number is better than a reference's: 100 (v / r - 1); for errors,
    100 (1 - v / r). pairs: {run: the reference's run, same seed}."""
    runs = [run for run in values.index if pairs.get(run) in reference.index]
    base = pd.Series([float(reference[pairs[run]]) for run in runs], index=runs, dtype=float)
    return 100 * gain(metric[runs], values[runs], base) / base


def area_under_curve(table: pd.DataFrame) -> pd.Series:
    """How fast tasks are learned: for each task, the mean of its own score over the epochs of its training
    (trapezoids between evaluations, from the first one on), then the mean over tasks.

    Needs `--every`: tasks that were evaluated only once do not count; without any, there is no number.
    """
    own = scores(table)
    own = own[own["trained"] == own["evaluated"]]

    def area(lines: pd.DataFrame) -> float:
        lines = lines.drop_duplicates("epoch", keep="last")
        if len(lines) < 2:
            return math.nan
        epochs, values = lines["epoch"].to_numpy(float), lines["value"].to_numpy()
        trapezoids = np.diff(epochs) * (values[1:] + values[:-1]) / 2
        return float(trapezoids.sum() / (epochs[-1] - epochs[0]))

    areas = own.groupby(["run", "evaluated"], sort=False)[["epoch", "value"]].apply(area)
    return areas.groupby("run").mean() if len(areas) else pd.Series(dtype=float)


def components(table: pd.DataFrame) -> pd.Series:
    """How many components there are in the end (without components to choose from: layers)."""
    return table[table["metric"] == "components"].groupby("run")["value"].last()


def candidates(table: pd.DataFrame) -> pd.DataFrame:
    """Every new component that was tried: run, trained, `with_it`, `without` (validation scores), `kept`."""
    found = table[table["stage"] == "expansion"]
    names = found["metric"].str.replace(r"^\w+ (with|without) candidate$", r"\1", regex=True)
    wide = (
        found.assign(name=names)
        .pivot_table(index=["run", "trained"], columns="name", values="value", aggfunc="last", sort=False)
        .reindex(columns=["with", "without", "kept"])
        .reset_index()
    )
    wide.columns.name = None
    wide["kept"] = wide["kept"] == 1
    return wide.rename(columns={"with": "with_it"})


def removals(table: pd.DataFrame) -> pd.DataFrame:
    """Final scores without each component: run, evaluated, metric, component, value, `final`, and `reused`:
    is it worse by more than 5 % of what it is with all of them?
    """
    found = table[table["stage"] == REMOVAL].copy()
    found["metric"] = found["metric"].str.removesuffix(" without component")
    found["component"] = found["component"].astype(int)
    lines = found[["run", "evaluated", "metric", "component", "value"]]
    lines = lines.merge(by_task(table)[["run", "evaluated", "final"]], on=["run", "evaluated"])
    worse = gain(lines["metric"], lines["final"], lines["value"])
    lines["reused"] = worse > DROP * lines["final"] + 1e-9  # exactly 5 % is not more
    return lines


def reuse(table: pd.DataFrame) -> pd.DataFrame:
    """How many tasks reuse each component, the most reused first, as in the paper's table: run, rank,
    tasks."""
    lines = removals(table)
    counts = lines.groupby(["run", "component"])["reused"].sum().rename("tasks").reset_index()
    counts = counts.sort_values(["run", "tasks"], ascending=[True, False])
    counts["rank"] = counts.groupby("run").cumcount()
    return counts[["run", "rank", "tasks"]].astype({"tasks": int})


def structures(table: pd.DataFrame) -> pd.DataFrame:
    """How much each task uses each component: run, evaluated, component, depth, value."""
    found = table[table["stage"] == STRUCTURE]
    return found[["run", "evaluated", "component", "depth", "value"]].astype({"component": int, "depth": int})


# --- compositionality -------------------------------------------------------------------------------------


def concentration(table: pd.DataFrame) -> pd.Series:
    """How concentrated structures are: 1 - H / log k, where H is the entropy of a task's weights at one depth
    (as shares of their absolute values), mean over depths and tasks. k: the components that the task may use.

    1: one component at each depth; 0: all of them equally. One component only: 0, there is nothing to choose.
    """
    lines = structures(table)
    shares = lines["value"].abs()
    groups = [lines["run"], lines["evaluated"], lines["depth"]]
    total = shares.groupby(groups).transform("sum")
    shares = (shares / total.where(total > 0)).fillna(0.0)
    entropy = (-shares * np.log(shares.where(shares > 0, 1.0))).groupby(groups).sum()
    count = lines.groupby(["run", "evaluated", "depth"])["component"].count()
    found = 1 - entropy / np.log(count.where(count > 1, np.e))
    return found.where(count > 1, 0.0).groupby("run").mean().clip(0, 1)


def reuse_share(table: pd.DataFrame) -> pd.Series:
    """How much is reused: the share of components that at least two tasks need (`removals`), weighted by how
    often: mean over components of max(tasks - 1, 0) / (T - 1). 1: every task needs every component."""
    lines = removals(table)
    counts = lines.groupby(["run", "component"])["reused"].sum()
    tasks = lines.groupby("run")["evaluated"].nunique()
    others = (counts - 1).clip(lower=0).groupby("run").mean()
    return (others / (tasks - 1).where(tasks > 1)).fillna(0.0)


def consistency(table: pd.DataFrame) -> pd.Series:
    """How consistent a component's effect is across tasks and depths, as measured at the end of a run
    (`scoring.probing.consistency`): 1: the same everywhere, and different from the other components'."""
    found = table[table["stage"] == CONSISTENCY]
    return found.groupby("run")["value"].mean().clip(0, 1)


def compositionality(table: pd.DataFrame) -> pd.DataFrame:
    """The parts, and the score: (consistency x concentration x reuse) ^ (1/3), from 0 to 1.

    It is 0 as soon as one of them is: one component for everything, components that are all alike, every task
    with components of its own, or every task with all components equally. docs/report.md says what it does
    not tell.
    """
    parts = pd.DataFrame(
        {
            "consistency": consistency(table),
            "concentration": concentration(table),
            "reuse": reuse_share(table),
        }
    ).dropna()
    return parts.assign(score=parts.prod(axis=1) ** (1 / 3))


# --- curves -------------------------------------------------------------------------------------------------


def epochs_of_stream(table: pd.DataFrame, lengths: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """Scores against the epochs of the whole stream: run, evaluated, j, at, value.

    lengths: {run: the number of epochs of each trained task, in order; the initial ones are one}.
    """
    lines = scores(table)
    position = lines.drop_duplicates(["run", "trained"])[["run", "trained"]].copy()
    position["number"] = position.groupby("run").cumcount()
    starts = {run: np.concatenate([[0], np.cumsum(given)]) for run, given in lengths.items()}
    position["start"] = [
        int(starts[run][number]) for run, number in zip(position["run"], position["number"], strict=True)
    ]
    seen = lines.drop_duplicates(["run", "evaluated"])[["run", "evaluated"]].copy()
    seen["j"] = seen.groupby("run").cumcount()
    lines = lines.merge(position, on=["run", "trained"]).merge(seen, on=["run", "evaluated"])
    return lines.assign(at=lines["start"] + lines["epoch"])[["run", "evaluated", "j", "at", "value"]]
