"""A table of one's own: groups become tasks, columns become inputs, and new rows can be predicted."""

import decimal
import json
import warnings

import numpy as np
import pandas
import polars
import pytest
import torch

import piaget
from piaget.errors import DataError, DataNote, SettingError
from piaget.streams import from_table
from piaget.streams.table_stream import predict_table


def frame(groups=6, rows=40, seed=0):
    """Sites with an outcome that depends on age, ward and a site's own offset."""
    rng = np.random.default_rng(seed)
    n = groups * rows
    table = pandas.DataFrame(
        {
            "site": np.repeat([f"site {g}" for g in range(groups)], rows),
            "age": rng.normal(50, 10, n),
            "ward": rng.choice(["red", "green", "blue"], n),
            "visits": rng.integers(0, 9, n),
        }
    )
    effect = table["ward"].map({"red": 0.0, "green": 40.0, "blue": -40.0})
    table["cost"] = (
        1000 + 3 * table["age"] + effect + 100 * np.repeat(np.arange(groups), rows) + rng.normal(0, 1, n)
    )
    table["ill"] = np.where(table["age"] + effect / 4 > 50, "yes", "no")
    return table


def only(table, target):
    return table.drop(columns=[{"cost": "ill", "ill": "cost"}[target]])


def test_one_task_a_group():
    table = only(frame(), "cost")
    stream = from_table(table, group="site", target="cost")
    assert [task.name for task in stream] == [f"site {g}" for g in range(6)]
    assert {task.kind for task in stream} == {"regression"}
    assert stream.encoding.inputs == ["age", "ward=blue", "ward=green", "ward=red", "visits"]
    assert {task.input_shape for task in stream} == {(5,)}
    assert [len(s) for _, s in stream[0].splits()] == [24, 8, 8]
    for task in stream:
        mine = table[table["site"] == task.name]["cost"]
        assert sorted(torch.cat([s.y for _, s in task.splits()]).tolist()) == pytest.approx(sorted(mine))


def test_standardised_by_the_training_rows():
    stream = from_table(only(frame(), "cost"), group="site", target="cost")
    x = torch.cat([task.train.x for task in stream]).double()
    age, visits = x[:, 0], x[:, 4]
    for column in (age, visits):
        assert float(column.mean()) == pytest.approx(0, abs=1e-6)
        assert float(column.std(correction=0)) == pytest.approx(1, abs=1e-5)
    assert set(x[:, 1:4].unique().tolist()) == {0.0, 1.0}
    assert (x[:, 1:4].sum(1) == 1).all()
    y = torch.cat([task.scaling.targets(task.train.y) for task in stream])
    assert float(y.mean()) == pytest.approx(0, abs=1e-6)
    assert float(y.std(correction=0)) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("form", ["pandas", "polars", "pyarrow", "csv", "csv.gz", "tsv", "parquet", "dict"])
def test_any_form_of_table_gives_the_same_tasks(form, tmp_path):
    table = only(frame(), "ill")
    path = tmp_path / f"scores.{form}"
    given = path
    if form == "pandas":
        given = table
    elif form == "dict":
        given = table.to_dict("list")
    elif form in ("polars", "pyarrow"):
        given = polars.DataFrame(table.to_dict("list"))
        given = given.to_arrow() if form == "pyarrow" else given
    elif form == "parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if form == "tsv" else ",")
    stream = from_table(given, group="site", target="ill")
    same = from_table(table, group="site", target="ill")
    assert stream.name == ("scores" if given is path else "table")
    for task, other in zip(stream, same, strict=True):
        assert torch.equal(task.train.y, other.train.y)
        assert torch.allclose(task.train.x, other.train.x, atol=1e-6)
        assert task.labels == ("no", "yes")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0.5, 1.5], "regression"),
        (list(range(40)), "regression"),
        ([1, 2], "binary"),
        ([0.0, 1.0, 2.0], "multiclass"),
        (["a", "b"], "binary"),
        ([True, False], "binary"),
        (["a", "b", "c"], "multiclass"),
    ],
)
def test_the_kind_is_inferred(values, kind):
    n = 240
    table = pandas.DataFrame(
        {"g": np.repeat(["p", "q"], n // 2), "x": np.arange(n) % 7, "t": (values * n)[:n]}
    )
    assert {task.kind for task in from_table(table, group="g", target="t")} == {kind}


def test_the_kind_can_be_given():
    table = pandas.DataFrame({"g": ["p"] * 60, "x": np.arange(60) % 7, "t": np.arange(60) % 4})
    assert from_table(table, group="g", target="t")[0].kind == "multiclass"
    assert from_table(table, group="g", target="t", kind="regression")[0].kind == "regression"
    with pytest.raises(DataError, match="4 different values; expected 2, since kind is binary"):
        from_table(table, group="g", target="t", kind="binary")
    with pytest.raises(SettingError, match="kind='ordinal'"):
        from_table(table, group="g", target="t", kind="ordinal")


def test_a_group_with_some_of_the_classes():
    table = pandas.DataFrame(
        {"g": np.repeat(["p", "q"], 60), "x": np.arange(120) % 7, "t": np.arange(120) % 3}
    )
    table.loc[60:, "t"] = np.arange(60) % 2 + 1
    three, two = from_table(table, group="g", target="t")
    assert (three.kind, three.labels) == ("multiclass", (0, 1, 2))
    assert (two.kind, two.labels) == ("binary", (1, 2))


def test_missing_values():
    table = only(frame(), "cost")
    table.loc[::5, "age"] = np.nan
    table.loc[::7, "ward"] = None
    stream = from_table(table, group="site", target="cost")
    assert stream.encoding.inputs == [
        "age",
        "age is missing",
        "ward=blue",
        "ward=green",
        "ward=red",
        "ward is missing",
        "visits",
    ]
    rows = stream.encoding.encode(
        pandas.DataFrame({"age": [np.nan, 50], "ward": ["red", None], "visits": [1, 2]})
    )
    assert rows[0, :6].tolist() == [0, 1, 0, 0, 1, 0]
    assert rows[1, 1:6].tolist() == [0, 0, 0, 0, 1]
    table.loc[:9, "cost"] = np.nan
    table.loc[10:14, "site"] = None
    with pytest.warns(DataNote, match="15 of 240 rows have no site or no cost; left out"):
        stream = from_table(table, group="site", target="cost")
    assert sum(len(s) for _, s in stream[0].splits()) == 25


def test_new_rows_are_encoded_alike():
    stream = from_table(only(frame(), "cost"), group="site", target="cost")
    new = [
        {"age": 60, "ward": "violet", "visits": None, "other": "ignored"}
    ]  # an unseen level, a missing number
    encoded = stream.encoding.encode(new)
    age = stream.encoding.columns[0]
    assert encoded.shape == (1, 5)
    assert encoded[0].tolist() == pytest.approx([(60 - age.mean) / age.spread, 0, 0, 0, 0], abs=1e-6)
    with pytest.raises(DataError, match="the table has no column 'age', 'visits'"):
        stream.encoding.encode(pandas.DataFrame({"ward": ["red"]}))
    with pytest.raises(DataError, match="column 'age' holds 'old' in row 1"):
        stream.encoding.encode(pandas.DataFrame({"age": [1, "old"], "ward": "red", "visits": 1}))
    with pytest.raises(DataError, match=r"a dict is no table.*for one row, give"):
        stream.encoding.encode({"age": 1, "ward": "red", "visits": 1})
    with pytest.raises(DataError, match="column 'age' holds inf in row 0"):
        stream.encoding.encode(pandas.DataFrame({"age": [np.inf], "ward": "red", "visits": 1}))


def test_numbers_as_categories_dates_and_booleans():
    n = 80
    table = pandas.DataFrame(
        {
            "g": np.repeat(["p", "q"], n // 2),
            "code": np.arange(n) % 3,
            "flag": np.arange(n) % 2 == 0,
            "day": pandas.date_range("2020-01-01", periods=n),
            "t": np.arange(n) / 7,
            "row": np.arange(n),
        }
    )
    stream = from_table(table, group="g", target="t", categorical=["code"], ignore=["row"])
    assert stream.encoding.inputs == ["code=0", "code=1", "code=2", "flag", "day"]
    spread = stream.encoding.columns[2].spread
    assert 20 < spread < 25  # days
    assert stream.encoding.encode(table.assign(code=table["code"].astype(float)))[:, :3].sum() == n
    assert stream.encoding.encode(table.assign(code=table["code"].astype(str)))[:, :3].sum() == n


def test_a_column_that_says_how_to_split():
    table = only(frame(groups=4), "cost")
    table["part"] = np.resize(["train"] * 6 + ["Test"] * 3 + ["val"], len(table))
    stream = from_table(table, group="site", target="cost", split="part")
    assert [len(s) for _, s in stream[1].splits()] == [24, 4, 12]
    assert "part" not in stream.encoding.inputs
    table.loc[7, "part"] = "holdout"
    with pytest.raises(DataError, match="column 'part' holds 'holdout' in row 7; expected train, validation"):
        from_table(table, group="site", target="cost", split="part")


def test_seeds_order_and_size():
    table = only(frame(), "cost")
    one, same, other = (from_table(table, group="site", target="cost", seed=s) for s in (0, 0, 1))
    assert [t.fingerprint() for t in one] == [t.fingerprint() for t in same]
    assert [t.fingerprint() for t in one] != [t.fingerprint() for t in other]
    shuffled = from_table(table, group="site", target="cost", shuffle=True)
    assert sorted(t.name for t in shuffled) == [t.name for t in one] != [t.name for t in shuffled]
    assert {len(t.train) for t in from_table(table, group="site", target="cost", train_size=5)} == {5}
    # a group's rows are divided alike, whatever other groups there are
    fewer = from_table(table[table["site"] != "site 0"], group="site", target="cost")
    assert sorted(fewer[0].train.y.tolist()) == sorted(one[1].train.y.tolist())


# --- columns that are not what they seem ------------------------------------------------------------


def test_a_text_among_numbers_is_a_mistake():
    table = only(frame(), "cost")
    table["age"] = table["age"].round(1).astype(object)
    table.loc[17, "age"] = "unknown"
    with pytest.raises(
        DataError, match=r"column 'age' holds texts, nearly all .* in row 17 it holds 'unknown'"
    ):
        from_table(table, group="site", target="cost")
    table["age"] = [f"{a:.1f}".replace(".", ",") for a in frame()["age"]]
    with pytest.raises(DataError, match="they have decimal commas"):
        from_table(table, group="site", target="cost")
    table["age"], table["cost"] = 1.0 * np.arange(240), table["cost"].astype(str)
    table.loc[3, "cost"] = "n/k"
    with pytest.raises(DataError, match=r"column 'cost' holds texts, nearly all .* in row 3 it holds 'n/k'"):
        from_table(table, group="site", target="cost")


def test_objects_that_are_numbers_are_numbers():
    table = only(frame(), "cost")
    same = from_table(table, group="site", target="cost")
    table["age"] = table["age"].astype(object)
    table["cost"] = [decimal.Decimal(str(v)) for v in table["cost"]]
    stream = from_table(table, group="site", target="cost")
    assert stream.encoding.inputs == same.encoding.inputs
    assert stream[0].kind == "regression"
    assert torch.allclose(stream[0].train.x, same[0].train.x)


def test_dates_in_files(tmp_path):
    table = only(frame(), "cost").assign(day=pandas.date_range("2020-01-01", periods=240, freq="3D"))
    expected = from_table(table, group="site", target="cost")
    table.to_csv(tmp_path / "t.csv", index=False)
    stream = from_table(tmp_path / "t.csv", group="site", target="cost")
    assert stream.encoding.inputs == expected.encoding.inputs
    assert "day" in stream.encoding.inputs
    assert torch.allclose(stream[2].train.x, expected[2].train.x, atol=1e-5)
    dates = table.assign(day=table["day"].dt.date)
    assert torch.allclose(from_table(dates, group="site", target="cost")[2].train.x, expected[2].train.x)
    row = {"age": 50, "ward": "red", "visits": 3, "day": "2020-01-04"}
    later = row | {"day": table["day"][1]}
    assert np.allclose(stream.encoding.encode([row]), stream.encoding.encode([later]))
    with pytest.raises(DataError, match="column 'day' holds 'soon' in row 0"):
        stream.encoding.encode([row | {"day": "soon"}])


def test_odd_files(tmp_path):
    table = only(frame(groups=4), "cost")
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False, sep=";")  # as some spreadsheets write
    assert len(from_table(path, group="site", target="cost")) == 4
    path.write_text("site,age,age,cost\n" + "a,1,2,3\n" * 9)
    with pytest.raises(DataError, match="column 'age' occurs twice"):
        from_table(path, group="site", target="cost")
    countries = table["site"].map({"site 0": "NA", "site 1": "None", "site 2": "null", "site 3": "007"})
    table.assign(site=countries).to_csv(path, index=False)
    stream = from_table(path, group="site", target="cost")
    assert [task.name for task in stream] == ["NA", "None", "null", "007"]


def test_targets_too_large_to_compute_with():
    table = only(frame(), "cost")
    with pytest.raises(piaget.TaskError, match=r"column 'cost': target values up to .* are too large"):
        from_table(table.assign(cost=table["cost"] * 1e300), group="site", target="cost")


def test_lazy_frames_and_one_name_for_a_list():
    table = polars.DataFrame(only(frame(), "cost").to_dict("list")).lazy()
    stream = from_table(table, group="site", target="cost", ignore="visits", categorical="ward")
    assert stream.encoding.inputs == ["age", "ward=blue", "ward=green", "ward=red"]
    with pytest.raises(SettingError, match="are for a new encoding"):
        from_table(table, encoding=stream.encoding, ignore="ward")


# --- groups that are no tasks --------------------------------------------------------------------------


def test_unusable_groups_are_skipped_with_a_warning_or_refused():
    table = only(frame(), "cost")
    table.loc[table["site"] == "site 1", "cost"] = 7.0
    table = table.drop(index=table.index[80:118])  # two rows of site 2
    table = table.drop(index=table.index[-39:])  # one row of site 5
    with pytest.warns(DataNote) as notes:
        stream = from_table(table, group="site", target="cost")
    text = str(notes[0].message)
    assert "3 of 6 groups cannot be a task" in text
    assert "'site 1': its target is constant" in text
    assert "'site 2': its 2 samples are too few: none is left for" in text
    assert "'site 5': it has a single sample" in text
    assert list(stream.skipped) == ["site 1", "site 2", "site 5"]
    assert [task.name for task in stream] == ["site 0", "site 3", "site 4"]
    with pytest.raises(DataError, match="3 of 6 groups"):
        from_table(table, group="site", target="cost", on_unusable="error")
    with pytest.raises(DataError, match="1 of 1 groups"):
        from_table(table[table["site"] == "site 1"], group="site", target="cost", kind="regression")


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"group": "school"}, "has no column 'school'; its columns: site, age, ward, visits, cost"),
        ({}, {"target": "score"}, "has no column 'score'"),
        ({}, {"ignore": ["nothing"]}, "has no column 'nothing'"),
        ({"name": [f"person {i}" for i in range(240)]}, {}, "column 'name' has 144 different texts"),
        ({}, {"ignore": ["age", "ward", "visits"]}, "no column is left"),
        ({"age": np.inf}, {}, "column 'age' holds inf in row"),
        ({}, {"on_unusable": "hide"}, "expected 'skip' or 'error'"),
        ({}, {"fractions": (0.5, 0.5, 0.5)}, "three shares"),
        ({}, {"target": None}, "needs the names of two columns"),
        ({}, {"fractions": 0.5}, "three shares"),
        ({}, {"seed": -1, "shuffle": True}, "seed=-1"),
    ],
)
def test_tables_that_cannot_be_used(change, options, message):
    table = only(frame(), "cost").assign(**change)
    with pytest.raises((DataError, SettingError), match=message):
        from_table(table, **({"group": "site", "target": "cost"} | options))


def test_constant_columns_are_left_out():
    table = only(frame(), "cost").assign(country="here", one=0.1)
    with pytest.warns(DataNote, match="constant in the training rows: country, one"):
        stream = from_table(table, group="site", target="cost")
    assert stream.encoding.inputs == ["age", "ward=blue", "ward=green", "ward=red", "visits"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "cannot be read: EmptyDataError"),
        ("t.csv", b"a,b\n", "has no rows"),
        ("t.csv", b"a,b\n1,2,3\n1,2,3,4\n", "cannot be read: ParserError"),
        ("t.parquet", b"no parquet", "cannot be read"),
        ("t.xlsx", b"", "expected a file that ends in .csv, .tsv or .parquet"),
    ],
)
def test_files_that_are_no_tables(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        from_table(tmp_path / name, group="a", target="b")
    with pytest.raises(DataError, match="does not exist"):
        from_table(tmp_path / "nothing.csv", group="a", target="b")


# --- from table to prediction ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def learned():
    stream = from_table(only(frame(), "cost"), group="site", target="cost")
    settings = {"structure": "linear", "algorithm": "compositional", "epochs": 300, "learning_rate": 0.05}
    learner = piaget.Learner(**settings, seed=0)
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


def test_a_limited_task_limits_what_is_known_of_the_columns():
    table = only(frame(), "cost").assign(rare=np.resize([f"level {i}" for i in range(40)], 240))
    few = from_table(table, group="site", target="cost", train_size=3)
    levels = next(c for c in few.encoding.columns if c.name == "rare").levels
    assert len(levels) <= 18  # six groups of three rows
    y = torch.cat([task.scaling.targets(task.train.y) for task in few])
    assert float(y.mean()) == pytest.approx(0, abs=1e-6)


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
