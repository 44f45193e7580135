"""A table of one's own: groups become tasks, columns become inputs."""

from typing import Any, cast

import numpy as np
import pandas
import polars
import pytest
import torch

from piaget.errors import DataError, DataNote, SettingError
from piaget.streams import from_table
from tests.tables import frame, only


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
    with pytest.warns(DataNote, match="'t' has 4 different whole numbers, taken for classes; if they are co"):
        assert from_table(table, group="g", target="t")[0].kind == "multiclass"
    assert from_table(table, group="g", target="t", kind="multiclass")[0].kind == "multiclass"
    assert from_table(table, group="g", target="t", kind="regression")[0].kind == "regression"
    with pytest.raises(DataError, match="4 different values; expected 2, since kind is binary"):
        from_table(table, group="g", target="t", kind="binary")
    with pytest.raises(SettingError, match="kind='ordinal'"):
        from_table(table, group="g", target="t", kind=cast(Any, "ordinal"))


def test_a_group_with_some_of_the_classes():
    table = pandas.DataFrame(
        {"g": np.repeat(["p", "q"], 60), "x": np.arange(120) % 7, "t": np.arange(120) % 3}
    )
    table.loc[60:, "t"] = np.arange(60) % 2 + 1
    three, two = from_table(table, group="g", target="t", kind="multiclass")
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


@pytest.mark.filterwarnings("ignore:column 'rare'")
def test_a_limited_task_limits_what_is_known_of_the_columns():
    table = only(frame(), "cost").assign(rare=np.resize([f"level {i}" for i in range(40)], 240))
    few = from_table(table, group="site", target="cost", train_size=3)
    levels = next(c for c in few.encoding.columns if c.name == "rare").levels
    assert levels is not None
    assert len(levels) <= 18  # six groups of three rows
    y = torch.cat([task.scaling.targets(task.train.y) for task in few])
    assert float(y.mean()) == pytest.approx(0, abs=1e-6)


@pytest.mark.filterwarnings("ignore::piaget.errors.DataNote")
def test_classes_of_whole_numbers_some_of_which_are_missing(tmp_path):
    table = only(frame(), "cost").drop(columns="cost").assign(ill=np.arange(240) % 2)
    whole = from_table(table, group="site", target="ill").labels
    table["ill"] = table["ill"].astype(float).mask(np.arange(240) % 11 == 0)
    table.to_csv(tmp_path / "t.csv", index=False)
    for given in (table, tmp_path / "t.csv"):
        labels = from_table(given, group="site", target="ill").labels
        assert labels == whole == [0, 1]
        assert all(isinstance(label, int) for label in labels)


def test_groups_spelt_nearly_alike_are_noted_but_not_large_whole_numbers():
    def stream(names):
        table = pandas.DataFrame(
            {"site": np.repeat(names, 20), "a": np.arange(40.0), "cost": np.arange(40) / 7}
        )
        return from_table(table, group="site", target="cost")

    with pytest.warns(DataNote, match=r"'1.0' are treated as different from '1'"):
        stream(["1", "1.0"])
    assert [task.name for task in stream([2**53, 2**53 + 1])] == ["9007199254740992", "9007199254740993"]


def test_what_only_held_out_rows_have_is_said():
    n = 40
    table = pandas.DataFrame(
        {"site": ["a", "b"] * (n // 2), "a": np.arange(n, dtype=float), "c": ["u", "v"] * 20}
    )
    table["split"], table["cost"] = ["train"] * 24 + ["validation"] * 8 + ["test"] * 8, np.arange(n) / 7
    table.loc[35, "c"], table.loc[33, "a"] = "w", np.nan
    with pytest.warns(DataNote) as caught:
        from_table(table, group="site", target="cost", split="split")
    told = " ".join(str(one.message) for one in caught)
    assert "column 'c': 'w' occur only in rows that are held out" in told
    assert "column 'a': missing values occur only in rows that are held out" in told


# --- rows that occur more than once -------------------------------------------------------------------------


def test_copies_of_rows_stay_in_the_same_split():
    table = only(frame(groups=4, rows=30), "cost")
    twice = pandas.concat([table, table, table[::2]], ignore_index=True)
    with pytest.warns(DataNote, match="table: 300 of 300 rows occur more than once .120 are different"):
        stream = from_table(twice, group="site", target="cost")
    for task in stream:
        train, validation, test = ({*map(tuple, part.x.tolist())} for _, part in task.splits())
        assert len(train | validation | test) == 30  # none in two of them
        assert [len(part) for part in (train, validation, test)] == [18, 6, 6]
        assert sum(len(part) for _, part in task.splits()) == 75
    once = from_table(table, group="site", target="cost")
    late = pandas.concat([table, table[30:45]], ignore_index=True)
    with pytest.warns(DataNote, match="30 of 135 rows occur more than once"):
        mixed = from_table(late, encoding=once.encoding)
    for i in (0, 2, 3):  # groups without copies are divided as ever
        for (_, part), (_, before) in zip(mixed[i].splits(), once[i].splits(), strict=True):
            assert torch.equal(part.x, before.x)


def test_copies_in_splits_of_ones_own_are_noted():
    table = only(frame(groups=3, rows=30), "ill")
    twice = pandas.concat([table.assign(part="train"), table.assign(part="test")])
    with pytest.warns(DataNote, match="180 of 180 rows .* in several splits, so that scores on test"):
        from_table(twice, group="site", target="ill", split="part")
    inside = pandas.concat([table.assign(part=np.where(table.index % 3, "train", "test"))] * 2)
    with pytest.warns(DataNote, match="each in a single split"):
        from_table(inside, group="site", target="ill", split="part")


def test_class_by_class_copies_are_divided_as_in_version_0_1():
    """Runs of deep methods that were made then go on with the same splits; so it is only said."""
    table = only(frame(groups=3, rows=30), "ill")
    twice = pandas.concat([table, table], ignore_index=True)
    with pytest.warns(DataNote, match="180 of 180 rows .* in several splits"):
        stream = from_table(twice, group="site", target="ill", stratified=True)
    task = stream[0]
    train, _, test = ({*map(tuple, part.x.tolist())} for _, part in task.splits())
    assert train & test


@pytest.mark.parametrize("seed", range(5))
def test_rows_that_are_equal_by_chance_are_no_copies(seed):
    """Few values: new rows will equal old ones, too, and the splits are random as ever."""
    rng = np.random.default_rng(seed)
    table = pandas.DataFrame(
        {
            "site": np.repeat(["a", "b", "c"], 80),
            "ward": rng.choice(["red", "green"], 240),
            "visits": rng.integers(0, 60, 240),
            "ill": rng.choice(["yes", "no"], 240, p=[0.1, 0.9]),
        }
    )
    for columns in (["ward"], ["visits"], ["ward", "visits"]):
        from_table(table[["site", *columns, "ill"]], group="site", target="ill")  # without a note
