"""Tasks that nobody named: how well runs inferred them, and which they took for which."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from piaget.lab.final_table import mean_and_error
from piaget.report.contents import Contents, filled
from piaget.report.forms import Cell, Table, number
from piaget.report.groups import Group
from piaget.report.metrics import TASK
from piaget.scoring.rows import FALSE_ALARMS, IN_TENS, INFERENCE, TASK_INFERRED, taken_for

PAIRS = 10  # of tasks that are confused most, in a table


def inference(rows: pd.DataFrame) -> pd.DataFrame:
    """What is told of each task: run, evaluated, metric, value."""
    lines = rows[rows["stage"] == INFERENCE]
    return lines[lines["metric"].map(taken_for).isna()][[*TASK, "metric", "value"]]


def taken(rows: pd.DataFrame) -> pd.DataFrame:
    """The share of a task's inputs that are taken for those of each task: run, evaluated, `other`, value. No
    line: none are."""
    lines = rows[rows["stage"] == INFERENCE]
    others = lines["metric"].map(taken_for)
    return lines[[*TASK, "value"]].assign(other=others)[others.notna()]


def by_task(contents: Contents, run: str, metric: str, tasks: Sequence[str]) -> pd.Series:
    """Of each of these tasks, what a run tells of it; nan: nothing."""
    lines = contents.of(run, inference)
    return lines[lines["metric"] == metric].set_index("evaluated")["value"].reindex(list(tasks))


def confusion(contents: Contents, run: str, tasks: Sequence[str]) -> np.ndarray:
    """(tasks, tasks + 1): the share of each task's inputs that are taken for those of each, and for those of
    none. A line is nan where that is not known. (0, 1): it is known of no task."""
    lines, places = contents.of(run, taken), {task: j for j, task in enumerate(tasks)}
    lines = lines[lines["evaluated"].isin(places) & lines["other"].isin(places)]
    rows, columns = (lines[name].map(places).to_numpy(int) for name in ("evaluated", "other"))
    if not len(lines):
        return np.zeros((0, 1))
    shares = np.nan_to_num(filled(rows, columns, lines["value"].to_numpy(), (len(tasks), len(tasks))))
    none = by_task(contents, run, FALSE_ALARMS, tasks).to_numpy(float)
    whole = np.column_stack([shares, none])
    whole[np.isnan(none)] = np.nan
    return whole


# --- tables -----------------------------------------------------------------------------------------------


def _known(contents: Contents, has: Callable[[pd.DataFrame], pd.DataFrame]) -> list[Group]:
    return [group for group in contents.counted if any(len(contents.of(name, has)) for name in group.names)]


def inference_table(contents: Contents) -> Table:
    """How well tasks are inferred, and what that costs."""
    table = Table(
        "inference",
        "Tasks that are not named",
        "Inferred: the share of inputs whose task is told rightly, if one must be named; in tens: the same "
        "from ten inputs of one task at once. None: the share that is taken for none of the tasks, wrongly. "
        "Then the score of the answers, if the task is named, inferred, or inferred in tens. Means over "
        "tasks, then mean and standard error over seeds; shares in %.",
        ["stream", "method", "seeds", "inferred", "in tens", "none", "task named", "by inferred", "by tens"],
    )
    lines = contents.compute(inference).groupby(["metric", "run"])["value"].mean()
    of_metrics = {metric: lines.xs(metric) for metric in lines.index.unique("metric")}

    def mean(group: Group, metric: str, unit: float, digits: int) -> Cell:
        return number(*group.summary(of_metrics[metric], unit), digits) if metric in of_metrics else Cell()

    for group in _known(contents, inference):
        seeds = number(len(group.of(of_metrics[TASK_INFERRED])), digits=0)
        shares = [mean(group, metric, 100.0, 1) for metric in (TASK_INFERRED, IN_TENS, FALSE_ALARMS)]
        named = number(*group.summary(contents.final, group.unit), group.digits)
        scores = [
            mean(group, f"{group.metric} with {how}", group.unit, group.digits)
            for how in (TASK_INFERRED, IN_TENS)
        ]
        table.add(group.position, group.stream, group.label, seeds, *shares, named, *scores)
    return table


def confusion_table(contents: Contents) -> Table:
    """The pairs of tasks that are confused most."""
    table = Table(
        "confusions",
        "Tasks that are confused most",
        f"Of each method, the {PAIRS} pairs with the largest share of a task's inputs, in %, that are taken "
        "for those of another one; mean and standard error over seeds.",
        ["stream", "method", "task", "taken for", "share", "seeds"],
    )
    for group in _known(contents, taken):
        shares = _shares(pd.concat([contents.of(name, taken) for name in group.names]))
        most = shares.mean(axis=1).sort_values(ascending=False, kind="stable")[:PAIRS]
        for task, other in most.index:
            of_seeds = [100 * share for share in shares.loc[(task, other)].dropna()]
            share, seeds = number(*mean_and_error(of_seeds), 1), number(len(of_seeds), digits=0)
            table.add(group.position, group.stream, group.label, task, other, share, seeds)
    return table


def _shares(lines: pd.DataFrame) -> pd.DataFrame:
    """Of each pair of tasks (evaluated, other) that some run confuses, the share in each run (columns): nan
    in one that does not tell of the task, and 0 in one that does, but has none of the pair."""
    wide = lines.pivot(index=["evaluated", "other"], columns="run", values="value")
    tells = lines.groupby(["evaluated", "run"]).size().unstack()[wide.columns].notna()
    wide = wide.fillna(0.0).where(tells.loc[wide.index.get_level_values("evaluated")].to_numpy())
    return wide[wide.index.get_level_values("evaluated") != wide.index.get_level_values("other")]
