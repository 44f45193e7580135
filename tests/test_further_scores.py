"""Area under the ROC curve, log-loss and majority: numbers, rows, and what becomes of them in tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import piaget
from piaget.lab import final_table
from piaget.method import objective
from piaget.report import metrics
from piaget.report.contents import Contents
from piaget.report.forms import share_of
from piaget.report.reading import read
from piaget.report.tables import further
from piaget.scoring.rows import COLUMNS, MAJORITY, Row, further_performance
from tests.exported import make_run
from tests.small import binary_tasks, make_row, make_task, mixed_tasks
from tests.test_learner import SMALL

# --- numbers ------------------------------------------------------------------------------------------------


def plain_auc(scores, y) -> float:
    """Over all pairs, one by one, in float64."""
    positive = [float(s) for s, c in zip(scores, y, strict=True) if c == 1]
    negative = [float(s) for s, c in zip(scores, y, strict=True) if c == 0]
    wins = sum(1.0 if p > n else 0.5 if p == n else 0.0 for p in positive for n in negative)
    return wins / (len(positive) * len(negative))


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_auc_is_that_of_all_pairs(seed, dtype):
    """With no ties, some, and almost only ties; with few of one class."""
    g = torch.Generator().manual_seed(seed)
    n = int(torch.randint(2, 60, (), generator=g))
    logits = torch.randn(n, generator=g, dtype=dtype)
    logits = [logits, (logits * 2).round(), logits.sign().clamp(min=0)][seed % 3]
    y = (torch.rand(n, generator=g) < (0.5, 0.1)[seed % 2]).long()
    y[:2] = torch.tensor([0, 1])
    assert objective.auc(logits, y) == plain_auc(logits, y)


def test_auc_of_what_is_known():
    y = torch.tensor([0, 0, 1, 1])
    assert objective.auc(torch.tensor([1.0, 2.0, 3.0, 4.0]), y) == 1.0
    assert objective.auc(torch.tensor([4.0, 3.0, 2.0, 1.0]), y) == 0.0
    assert objective.auc(torch.zeros(4), y) == 0.5
    assert objective.auc(torch.tensor([-0.0, 0.0, 0.0, -0.0]), y) == 0.5
    assert objective.auc(torch.tensor([1.0, 3.0, 2.0, 4.0]), y) == 0.75


def test_auc_by_ranks():
    """Mid-ranks, as statistics has it: (sum of the positives' ranks - p (p + 1) / 2) / (p n)."""
    stats = pytest.importorskip("scipy.stats")
    g = torch.Generator().manual_seed(0)
    logits = (torch.randn(3000, generator=g) * 20).round()
    y = (torch.rand(3000, generator=g) < 0.06).long()
    p = int(y.sum())
    ranks = stats.rankdata(logits.double().numpy())[y.numpy() == 1].sum()
    assert objective.auc(logits, y) == pytest.approx((ranks - p * (p + 1) / 2) / (p * (3000 - p)), abs=1e-12)


def test_auc_tells_apart_what_probabilities_do_not():
    logits = torch.tensor([40.0, 41.0])
    assert float(logits[0].sigmoid()) == float(logits[1].sigmoid())
    assert objective.auc(logits, torch.tensor([0, 1])) == 1.0


@pytest.mark.parametrize("y", [[0, 0, 0], [1, 1, 1]])
def test_there_is_no_auc_of_one_class(y):
    assert objective.auc(torch.tensor([0.1, 0.2, 0.3]), torch.tensor(y)) is None


def test_the_majority_is_that_of_the_training_data():
    assert objective.majority(torch.tensor([2, 2, 1, 0]), torch.tensor([0, 1, 2, 2, 2])) == 0.6
    assert (
        objective.majority(torch.tensor([1, 0, 0, 1]), torch.tensor([1, 1, 1, 0])) == 0.25
    )  # the first of two


# --- rows ---------------------------------------------------------------------------------------------------


def values(rows, metric, split="test"):
    return {r["evaluated"]: r["value"] for r in rows if r["metric"] == metric and r["split"] == split}


def learned(tasks, **more):
    learner, rows = piaget.Learner(**SMALL, **more), []
    for i, task in enumerate(tasks):
        rows += learner.learn(task, evaluate_on=tasks[: i + 1])
    return learner, rows


def test_scores_are_those_of_probabilities():
    """The rows' loss is the log-loss of the probabilities that users get, and AUC is by their order."""
    tasks = mixed_tasks(6)
    learner, _ = learned(tasks)
    rows = learner.evaluate(tasks)
    loss, auc = values(rows, "loss"), values(rows, "auc")
    assert set(auc) == {task.name for task in tasks if task.kind == "binary"}
    for task in tasks:
        if task.kind == "regression":
            continue
        chances = learner.predict_proba(task.test.x.numpy(), task.name).astype(np.float64)
        y = task.test.y.numpy()
        assert loss[task.name] == pytest.approx(-np.log(chances[np.arange(len(y)), y]).mean(), rel=1e-4)
        if task.kind == "binary":
            assert auc[task.name] == pytest.approx(plain_auc(chances[:, 1], y), abs=1e-12)


def test_every_evaluation_has_an_auc_and_every_task_one_majority():
    tasks = [*binary_tasks(3), *mixed_tasks(7)[4:]]  # the last: multiclass, binary, regression
    tasks = [make_task(f"t{i}", t.kind, t.classes, t.input_shape, seed=i) for i, t in enumerate(tasks)]
    _, rows = learned(tasks)
    of = {metric: [(r["trained"], r["evaluated"]) for r in rows if r["metric"] == metric] for metric in
          ("accuracy", "auc", MAJORITY)}  # fmt: skip
    binary = {task.name for task in tasks if task.kind == "binary"}
    assert len(binary) == 4
    assert of["auc"] == [pair for pair in of["accuracy"] if pair[1] in binary]
    assert [task for _, task in of[MAJORITY]] == [task.name for task in tasks if task.kind != "regression"]
    for task in tasks:
        if task.kind != "regression":
            counts = np.bincount(task.train.y.numpy())
            expected = float((task.test.y.numpy() == counts.argmax()).mean())
            assert values(rows, MAJORITY)[task.name] == pytest.approx(expected)


def test_test_data_of_one_class_has_no_auc():
    tasks = binary_tasks(3)
    tasks[1].test.y[:] = 1
    learner, rows = learned(tasks)
    assert set(values(rows, "auc")) == {"task 0", "task 2"}
    assert set(values(rows, "accuracy")) == set(values(rows, "loss")) == set(learner.tasks)
    assert set(values(learner.evaluate(tasks, "train"), "auc", "train")) == set(learner.tasks)


# --- tables -------------------------------------------------------------------------------------------------


def of_run(seed=0, tasks=3, auc=(0.7, 0.8, 0.9), majority=(0.9, 0.9, 0.6), **more) -> list[Row]:
    """What three evaluations of binary tasks write; the last one counts. None: no such row."""
    more = {"stream": "mines", "method": "linear/er/joint", "seed": seed} | more
    rows = []
    for last in range(tasks):
        task = f"t{last}"
        if majority[last] is not None:
            rows.append(make_row(**more, trained=task, evaluated=task, metric=MAJORITY, value=majority[last]))
        for j in range(last + 1):
            early = 0.1 * (tasks - 1 - last)
            found = {"accuracy": 0.95 - early, "loss": 0.2 + 0.1 * j + early}
            found |= {} if auc[j] is None else {"auc": auc[j] - early}
            for metric, value in found.items():
                rows.append(make_row(**more, trained=task, evaluated=f"t{j}", metric=metric, value=value))
        rows.append(make_row(**more, trained=task, evaluated="", split="", metric="components", value=4))
    return rows


def frame(*runs: list[Row]) -> pd.DataFrame:
    lines = [row | {"run": f"r{i}"} for i, rows in enumerate(runs) for row in rows]
    return pd.DataFrame(lines, columns=[*COLUMNS, "run"])


CASES: dict[str, dict[str, Any]] = {
    "all": {},
    "one class only": {"auc": (0.7, None, 0.9)},
    "no binary task": {"auc": (None,) * 3},
    "majority of some": {"majority": (None, None, 0.6)},
    "an older version's": {"auc": (None,) * 3, "majority": (None,) * 3},
}


def test_means_are_over_the_tasks_that_have_a_score():
    found = further_performance(of_run(auc=(0.7, None, 0.9)))
    assert found["auc"] == pytest.approx((0.8, 2))
    assert found["loss"] == pytest.approx((0.3, 3))
    assert found[MAJORITY] == pytest.approx((0.8, 3))
    assert MAJORITY not in further_performance(of_run(majority=(None, 0.9, 0.6)))


@pytest.mark.parametrize("case", CASES)
def test_reports_and_the_lab_have_the_same_numbers(case):
    rows = of_run(**CASES[case])
    lines = metrics.further_performance(frame(rows))
    found = {line.metric: (line.final, line.tasks) for line in lines.itertuples()}
    expected = further_performance(rows)
    assert found.keys() == expected.keys()
    for metric, (mean, tasks) in expected.items():
        assert found[metric] == (pytest.approx(mean), tasks)


def test_only_tasks_with_accuracies_have_further_scores():
    """A regression's loss is a squared error, and never in a mean of log-losses."""
    error = make_row(
        stream="mines", method="linear/er/joint", trained="t2", evaluated="t3", metric="rmse", value=9.0
    )
    loss: Row = {**error, "metric": "loss", "value": 99.0}
    rows = [*of_run(), error, loss]
    assert further_performance(rows)["loss"] == pytest.approx((0.3, 3))
    lines = metrics.further_performance(frame(rows)).set_index("metric")
    assert lines.loc["loss", "final"] == pytest.approx(0.3)
    assert lines.loc[MAJORITY, "tasks"] == 3
    first = [error, loss, *of_run()]  # its performance is an error
    assert further_performance(first) == {}
    assert metrics.further_performance(frame(first)).empty


def test_first_and_final_further_scores():
    lines = metrics.further_scores(frame(of_run())).set_index(["evaluated", "metric"])
    assert lines.loc[("t0", "auc"), "first"] == pytest.approx(0.5)
    assert lines.loc[("t0", "auc"), "final"] == pytest.approx(0.7)
    assert lines.loc[("t2", "loss"), "first"] == lines.loc[("t2", "loss"), "final"] == pytest.approx(0.4)


def test_what_is_not_a_number_is_not_passed_over():
    rows = of_run()
    rows[-2]["value"] = math.nan
    assert rows[-2]["metric"] == "auc"
    lines = metrics.further_performance(frame(rows)).set_index("metric")
    assert math.isnan(lines.loc["auc", "final"])
    assert math.isnan(further_performance(rows)["auc"][0])


def test_the_labs_second_table():
    rows = [*of_run(0), *of_run(1, auc=(0.9, None, 0.9))]
    (line,) = final_table.lines(rows)
    assert line.further["auc"].mean == pytest.approx((0.8 + 0.9) / 2)
    assert line.further["auc"].error == pytest.approx(0.05)
    text = final_table.markdown([line])
    assert "| stream | base | algorithm | seeds | accuracy | majority | AUC | log-loss |" in text
    expected = (
        "| mines | ER | Joint | 2 | 95.0 ± 0.0 | 80.0 ± 0.0 | 0.850 ± 0.050 (2 of 3 tasks) | 0.300 ± 0.000 |"
    )
    assert expected in text
    some = [*of_run(0), *of_run(1, **CASES["an older version's"])]
    assert "| 80.0 (1 of 2 seeds) | 0.800 (1 of 2 seeds) | 0.300 ± 0.000 |" in final_table.markdown(
        final_table.lines(some)
    )


@pytest.mark.parametrize("case", ["no binary task", "an older version's"])
def test_without_binary_tasks_the_labs_table_is_as_before(case):
    text = final_table.markdown(final_table.lines(of_run(**CASES[case])))
    assert "AUC" not in text
    assert len(text.splitlines()) == 3


def test_the_reports_table(tmp_path):
    configuration = {"structure": "linear", "adaptation": "er", "algorithm": "joint", "stream": "landmine"}
    base: dict[str, Any] = {"table": None, "options": {}, "epochs": 5, "every": None, "settings": {}}
    runs = [of_run(0), of_run(1, auc=(0.9, None, 0.9)), of_run(2, **CASES["an older version's"])]
    for seed, rows in enumerate(runs):
        described = configuration | base | {"seed": seed}
        make_run(tmp_path / f"seed-{seed}", rows, configuration=described)
    (cells,) = further(Contents(read([tmp_path]))).rows
    assert [cell.text for cell in cells][2:] == [
        "3",
        "95.0 ± 0.0",
        "80.0 ± 0.0",
        "0.850 ± 0.050",
        "0.300 ± 0.000",
        "2 to 3 of 3 tasks, 2 of 3 seeds",
    ]


def test_of_how_many_tasks_a_mean_is():
    assert share_of({}, {0: 3}) == ""
    assert share_of({0: 3, 1: 3}, {0: 3, 1: 3}) == "3 tasks"
    assert share_of({0: 2, 1: 2}, {0: 3, 1: 3}) == "2 of 3 tasks"
    assert share_of({0: 2, 1: 3}, {0: 3, 1: 3, 2: 3}) == "2 to 3 of 3 tasks, 2 of 3 seeds"
