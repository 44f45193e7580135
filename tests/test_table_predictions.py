"""From a table to a learner, and to predictions for new rows."""

import json
import warnings

import numpy as np
import pandas
import polars
import pytest
import torch

import piaget
from piaget.errors import DataError, DataNote
from piaget.streams import from_table
from piaget.streams.table_predictions import predict_table
from tests.tables import frame, only


@pytest.fixture(scope="module")
def learned():
    stream = from_table(only(frame(), "cost"), group="site", target="cost")
    learner = piaget.Learner("linear", algorithm="compositional", epochs=300, learning_rate=0.05, seed=0)
    for task in stream:
        learner.learn(task)
    return stream, learner


def test_scores_and_predictions_are_in_the_targets_units(learned):
    stream, learner = learned
    for task in stream:
        (value,) = (r["value"] for r in learner.evaluate(task) if r["metric"] == "rmse")
        errors = learner.predict(task.test.x, task.name) - task.test.y
        assert value == pytest.approx(float(errors.square().mean().sqrt()), rel=1e-4)
        assert value < 40  # the outcome itself varies by hundreds


def test_new_rows_are_predicted_also_after_loading(learned, tmp_path):
    stream, learner = learned
    new = only(frame(seed=9), "cost")
    rows = new[new["site"] == "site 2"].drop(columns=["cost", "site"])
    expected = learner.predict(stream.encoding.encode(rows), "site 2")
    assert np.array_equal(learner.predict(rows, "site 2"), expected)
    learner.save(tmp_path / "learner")
    json.loads((tmp_path / "learner" / "learner.json").read_text())
    loaded = piaget.Learner.load(tmp_path / "learner")
    assert loaded.encoding("site 2") == stream.encoding
    assert np.array_equal(loaded.predict(rows, "site 2"), expected)
    assert np.array_equal(loaded.predict(polars.DataFrame(rows.to_dict("list")), "site 2"), expected)
    assert np.array_equal(loaded.predict(rows.to_dict("records"), "site 2"), expected)
    answered = predict_table(loaded, new)
    off = (answered["predicted cost"] - new["cost"]).abs()
    assert off.median() < 40
    some = new.assign(site=new["site"].mask(new.index < 5, "site 77").mask(new.index == 7))
    with pytest.warns(DataNote, match=r"6 of 240 rows get no prediction: .* for site 'site 77', \(missing\)"):
        partly = predict_table(loaded, some)
    assert partly["predicted cost"].isna().sum() == 6
    assert partly["predicted cost"][10] == answered["predicted cost"][10]
    with pytest.raises(DataError, match="no row is of a group that was learned; those are site 0, site 1"):
        predict_table(loaded, new.assign(site="site 77"))
    with pytest.raises(DataError, match="has a column 'predicted cost' already"):
        predict_table(loaded, answered)
    with pytest.raises(
        DataError, match="column 'age' holds 'old' in row 130"
    ):  # of the table, not of the group
        predict_table(loaded, new.assign(age=new["age"].astype(object).mask(new.index == 130, "old")))


def test_a_group_that_comes_later(learned):
    stream, learner = learned
    later = only(frame(groups=8), "cost")
    later = later[later["site"] == "site 7"].drop(columns="visits").assign(visits=3)  # constant here
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (task,) = from_table(later, encoding=learner.encoding("site 0"))
    assert task.input_shape == stream[0].input_shape
    assert task.scaling == stream[0].scaling
    assert learner.try_task(task)


def test_codes_stay_what_they_are(tmp_path):
    """In the new file all codes look like numbers; in the old one, not."""
    n = 240
    codes = np.resize(["01", "02", "A1"], n)
    table = pandas.DataFrame(
        {
            "site": np.resize(["001", "002", "003", "004"], n),
            "code": codes,
            "age": np.arange(n) % 7,
            "cost": (codes == "02") * 50.0 + np.arange(n) % 7,
        }
    )
    table.to_csv(tmp_path / "old.csv", index=False)
    stream = from_table(tmp_path / "old.csv", group="site", target="cost", kind="regression")
    assert [task.name for task in stream] == ["001", "002", "003", "004"]
    learner = piaget.Learner("linear", "er", "compositional", epochs=300, learning_rate=0.05)
    for task in stream:
        learner.learn(task)
    new = table[(table["code"] != "A1")][:40]
    new.drop(columns="cost").to_csv(tmp_path / "new.csv", index=False)
    answers = predict_table(learner, tmp_path / "new.csv")
    assert np.abs(answers["predicted cost"] - new["cost"].to_numpy()).max() < 15
    later = from_table(tmp_path / "old.csv", encoding=learner.encoding("001"))
    assert torch.equal(later[0].train.x, stream[0].train.x)


def test_evaluating_with_another_encoding_is_refused(learned):
    _, learner = learned
    other = from_table(only(frame(seed=5), "cost"), group="site", target="cost")
    with pytest.raises(piaget.TaskError, match="scaled or encoded otherwise"):
        learner.evaluate(other)


def test_the_encoding_is_saved_once(learned, tmp_path):
    stream, learner = learned
    learner.save(tmp_path)
    assert (tmp_path / "learner.json").read_text().count('"age"') == 1
    assert piaget.Learner.load(tmp_path).encoding("site 5") == stream.encoding


def test_pending_tasks_keep_their_encoding(tmp_path):
    stream = from_table(only(frame(), "ill"), group="site", target="ill")
    learner = piaget.Learner(epochs=2)
    learner.learn(stream[0])
    learner.save(tmp_path)
    loaded = piaget.Learner.load(tmp_path)
    loaded.initialize()
    rows = only(frame(), "ill").drop(columns="ill")[:5]
    assert set(loaded.predict(rows, "site 0")) <= {"yes", "no"}


def test_a_learner_without_tables_says_so():
    learner = piaget.Learner(epochs=2, initial_tasks=1)
    learner.learn(piaget.stream("digits")[0])
    with pytest.raises(DataError, match="no task from a table"):
        predict_table(learner, frame())


def test_rows_keep_their_names():
    table = only(frame(), "cost")
    stream = from_table(table, group="site", target="cost")
    learner = piaget.Learner.for_stream(stream)
    for task in stream:
        learner.learn(task)
    mixed = table.sample(frac=1, random_state=0)
    predicted = predict_table(learner, mixed)["predicted cost"]
    assert predicted.index.equals(mixed.index)
    assert np.corrcoef(predicted.loc[table.index], table["cost"])[0, 1] > 0.5


@pytest.mark.filterwarnings("ignore::piaget.errors.DataNote")
def test_probabilities_of_networks():
    """Of each class, by its group's network; groups may lack a class, and unknown ones have none."""
    table = only(frame(groups=5, rows=40), "ill")
    table["ill"] = np.where(table["ill"] == "yes", "yes", "no")
    few = table["site"] == "site 1"
    three = table.assign(ill=np.where(~few & (np.arange(len(table)) % 5 == 0), "maybe", table["ill"]))
    for data, classes in ((table, {"yes", "no"}), (three, {"yes", "no", "maybe"})):
        stream = from_table(data, group="site", target="ill", stratified=True)
        learner = piaget.Learner(epochs=3, width=8, algorithm="compositional")
        for task in stream:
            learner.learn(task)
        new = pandas.concat([data.head(60), data.head(2).assign(site="unknown")], ignore_index=True)
        answered = learner.predict_table(new, proba=True)
        columns = {f"probability of {label}" for label in classes}
        assert columns <= set(answered.columns)
        shares = answered[sorted(columns)].to_numpy()
        assert np.isnan(shares[60:]).all()
        assert shares[:60].sum(1) == pytest.approx(1.0, abs=1e-5)
        rows = (new["site"] == "site 1").to_numpy()
        labels = learner.record("site 1").labels
        assert labels is not None
        own = learner.predict_proba(new[rows], "site 1")
        for i, label in enumerate(labels):
            assert answered.loc[rows, f"probability of {label}"].to_numpy() == pytest.approx(own[:, i])
        if len(classes) == 3:
            assert (answered.loc[rows, "probability of maybe"] == 0).all()
            with pytest.raises(piaget.SettingError, match="two classes"):
                learner.predict_table(new, threshold=0.3)
            continue
        first, second = labels
        careful = learner.predict_table(new, threshold=0.01)["predicted ill"]
        likely = answered[f"probability of {second}"] >= 0.01
        assert (careful[:60] == np.where(likely[:60], second, first)).all()
    with pytest.raises(piaget.SettingError, match="intervals"):
        predict_table(learner, new, interval=0.9)
