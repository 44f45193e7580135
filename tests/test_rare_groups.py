"""Groups of a table that lack a class, different values, or rows: learned with the others, and scored."""

import json
import warnings

import numpy as np
import pandas
import pytest

import piaget
from piaget.errors import DataError, DataNote, SettingError, TaskError
from piaget.files import write_json
from piaget.lab.folder import RunFolder
from piaget.scoring.rows import MAJORITY
from piaget.scoring.simple_models import GroupRows, Part, compared
from piaget.scoring.worth import scores_of
from piaget.streams import from_table
from tests.commands import said
from tests.tables import frame, only, visits


def rare(groups=20, rows=20, share=0.06, seed=0):
    """Groups of which many have no row with the rare class."""
    rng = np.random.default_rng(seed)
    y = rng.random(groups * rows) < share
    x = rng.normal(size=(groups * rows, 2)) + 2 * y[:, None]
    names = np.repeat([f"s{i}" for i in range(groups)], rows)
    return pandas.DataFrame({"g": names, "a": x[:, 0], "b": x[:, 1], "y": np.where(y, "yes", "no")})


def run(capsys, table, place, *flags):
    table.to_csv(place / "table.csv", index=False)
    arguments = (
        "run",
        "--table",
        place / "table.csv",
        "--group",
        "g",
        "--target",
        "y",
        "--out",
        place / "out",
    )
    return said(capsys, *arguments, *flags)


def learner_of(place):
    learner = piaget.load(place / "out" / "seed-0" / "learner")
    assert isinstance(learner, piaget.PriorLearner)
    return learner


def test_groups_without_a_class_are_learned_and_scored(tmp_path, capsys):
    table = rare()
    shown = run(capsys, table, tmp_path)
    assert shown.code == 0, shown.err
    lacking = [g for g, one in table.groupby("g", sort=False) if one["y"].nunique() == 1]
    assert len(lacking) > 3
    assert "of 20 groups have few rows, or lack a class or different values" in shown.err
    assert "They are learned with the others, and scored" in shown.err
    assert "skipped" not in shown.err
    rows = list(RunFolder(tmp_path / "out" / "seed-0").rows())
    counts = {metric: len(scores_of(rows, metric)) for metric in ("auc", "loss", "accuracy", MAJORITY)}
    assert counts["loss"] == counts["accuracy"] == counts[MAJORITY] == 20
    assert len(scores_of(rows, "loss by alone")) == 20
    assert 0 < counts["auc"] < 10
    # All test rows are there: the scores are of the population that is learned.
    summary = json.loads((tmp_path / "out" / "seed-0" / "summary.json").read_text())
    assert sum(one["rows"] for one in summary["reliability"]) == sum(g["tested"] for g in summary["groups"])
    assert sum(group["classes"][1] for group in summary["groups"]) == (table["y"] == "yes").sum()
    heads = shown.out.splitlines()[:2]
    assert heads[0].split() == ["20", "groups,", "400", "rows", "AUC", "log-loss", "accuracy"]
    assert heads[1].split()[-3:] == [str(counts["auc"]), "20", "20"]
    assert summary["metric"] == "loss"  # AUC is of a few groups only
    assert set(learner_of(tmp_path).tasks) == set(table["g"])


def test_the_page_says_over_how_many_groups_means_are(tmp_path, capsys):
    assert run(capsys, rare(), tmp_path).code == 0
    assert said(capsys, "report", tmp_path / "out", "--quiet").code == 0
    text = (tmp_path / "out" / "report" / "tables" / "models.md").read_text()
    assert "Means over those of 20 groups in which a score is defined (20 for log-loss, " in text


@pytest.mark.parametrize("rows", [2, 3, 4])
@pytest.mark.parametrize("classes", [True, False])
def test_a_few_rows_in_every_group_are_enough(tmp_path, capsys, rows, classes):
    rng = np.random.default_rng(rows)
    x = rng.normal(size=30 * rows)
    y = x + rng.normal(0, 0.3, 30 * rows)
    named = np.repeat([f"s{i}" for i in range(30)], rows)
    table = pandas.DataFrame({"g": named, "a": x, "y": np.where(y > 0, "hi", "lo") if classes else y})
    shown = run(capsys, table, tmp_path)
    assert shown.code == 0, shown.err
    assert "mean of 30 groups" in shown.out
    assert (
        len(scores_of(list(RunFolder(tmp_path / "out" / "seed-0").rows()), "loss" if classes else "rmse"))
        == 30
    )
    assert learner_of(tmp_path).known.rows == 30 * rows
    answers = ("predict", tmp_path / "out", tmp_path / "table.csv", "--out", tmp_path / "p.csv")
    assert said(capsys, *answers).code == 0


def test_what_cannot_be_scored_is_learned(tmp_path, capsys):
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"g": [f"s{i}" for i in range(30)], "a": rng.normal(size=30)})
    shown = run(capsys, table.assign(y=2 * table["a"] + 0.1), tmp_path)
    assert shown.code == 0, shown.err
    assert "30 groups, 30 rows; no test rows to score: all are learned, but how good" in shown.out
    assert len(learner_of(tmp_path).tasks) == 30
    assert said(capsys, "report", tmp_path / "out", "--quiet").code == 0


def test_a_target_that_is_the_same_everywhere_is_refused(tmp_path, capsys):
    for number, y in enumerate((1.5, "no")):
        place = tmp_path / str(number)
        place.mkdir()
        shown = run(capsys, rare(4).assign(y=y), place)
        assert (shown.code, "its target is constant" in shown.err) == (2, True), shown.err


def test_a_regression_of_constant_groups(tmp_path, capsys):
    table = frame().rename(columns={"site": "g", "cost": "y"}).drop(columns="ill")
    table.loc[table["g"] == "site 2", "y"] = 7.0
    shown = run(capsys, table, tmp_path)
    assert shown.code == 0, shown.err
    rows = list(RunFolder(tmp_path / "out" / "seed-0").rows())
    assert (len(scores_of(rows, "rmse")), len(scores_of(rows, "r2"))) == (6, 5)


def test_what_an_older_version_did_is_still_known(tmp_path, capsys, monkeypatch):
    """It left such groups out; the same command shows its scores, and learns nothing anew."""
    monkeypatch.setattr("piaget.lab.table_runs._keeps", lambda place: False)
    assert run(capsys, rare(), tmp_path).code == 0
    monkeypatch.undo()
    place = tmp_path / "out" / "seed-0"
    description = json.loads((place / "run.json").read_text())
    del description["keeps"], description["sha256"]
    write_json(place / "run.json", description)
    again = run(capsys, rare(), tmp_path)
    assert again.code == 0, again.err
    assert "learning" not in again.err
    assert len(description["data"]) < 20


# --- in Python ---------------------------------------------------------------------------------------------


def test_kept_groups_are_tasks_for_a_prior_learner_only():
    table = rare()
    with pytest.warns(DataNote, match="a PriorLearner learns them, with on_unusable='keep'"):
        skipping = from_table(table, group="g", target="y")
    with pytest.warns(DataNote, match="They are learned with the others"):
        stream = from_table(table, group="g", target="y", on_unusable="keep")
    assert not stream.skipped
    assert set(stream.partial) == set(skipping.skipped)
    assert [task.name for task in stream] == list(dict.fromkeys(table["g"]))
    partial = next(task for task in stream if task.name in stream.partial)
    assert (partial.partial, partial.labels) == (True, ("no", "yes"))
    learner = piaget.Learner.for_stream(stream)
    assert isinstance(learner, piaget.PriorLearner)
    learner.learn_all(stream)
    assert len(scores_of(learner.evaluate(stream), "loss")) == 20
    assert len(partial.lean().train) == 1
    deep = piaget.Learner(structure="linear", initial_tasks=1, epochs=2)
    with pytest.raises(TaskError, match="no train sample of class yes; expected one of each class"):
        deep.learn(partial)
    with pytest.raises(SettingError, match="expected 'skip', 'keep' or 'error'"):
        from_table(table, group="g", target="y", on_unusable="leave")  # type: ignore[arg-type]
    split = visits(range(3), 20).assign(part="train")
    split.loc[split["site"] == "site 1", "part"] = "test"
    with pytest.warns(DataNote, match="none of its 20 samples is for training. They are skipped"):
        kept = from_table(
            split.drop(columns="stay"), group="site", target="ill", split="part", on_unusable="keep"
        )
    assert list(kept.skipped) == ["site 1"]
    with pytest.raises(DataError, match="cannot be a task"):
        from_table(only(frame(), "cost").assign(cost=1.5), group="site", target="cost", on_unusable="keep",
                   kind="regression")  # fmt: skip


def test_categories_of_kept_groups_are_known():
    """Columns are encoded by the training rows of all groups that are learned."""
    table = rare().assign(place="in")
    first = next(g for g, one in table.groupby("g", sort=False) if one["y"].nunique() == 1)
    table.loc[table["g"] == first, "place"] = "out"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataNote)
        stream = from_table(table, group="g", target="y", on_unusable="keep")
    assert "place=out" in [name.replace(": ", "=") for name in stream.encoding.inputs]


def test_simple_models_learn_from_groups_that_are_not_scored():
    import torch

    rng = np.random.default_rng(0)
    x = torch.as_tensor(rng.normal(size=(8, 2)))
    none = Part(x[:0], torch.zeros(0, dtype=torch.int64))
    no, mixed = torch.zeros(8, dtype=torch.int64), torch.arange(8) % 2
    rows = {
        "a": GroupRows(Part(x, mixed), none, Part(x, mixed)),
        "b": GroupRows(Part(x, no), none, none),
    }
    found = compared(rows, 2)
    assert list(found) == ["majority", "alone", "pooled", "interactions", "boosting"]
    assert all(list(of) == ["a"] for of in found.values())
    alone = {"a": GroupRows(Part(x, no), none, Part(x, mixed))}  # one class in all that is learned
    assert all(np.isfinite(of["a"]["loss"]) for of in compared(alone, 2).values())
