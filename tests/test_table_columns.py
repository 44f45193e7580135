"""Columns that are not what they seem, groups that are no tasks, and files that are no tables."""

import decimal

import numpy as np
import pandas
import polars
import pytest
import torch

import piaget
from piaget.errors import DataError, DataNote, SettingError
from piaget.streams import from_table
from tests.tables import frame, only

# --- columns that are not what they seem ------------------------------------------------------------


def test_a_text_among_numbers_is_a_mistake():
    table = only(frame(), "cost")
    table["age"] = table["age"].round(1).astype(object)
    table.loc[17, "age"] = "unknown"
    with pytest.raises(
        DataError, match=r"column 'age' holds texts, nearly all .* in row 17 .* it holds 'unknown'"
    ):
        from_table(table, group="site", target="cost")
    table["age"] = [f"{a:.1f}".replace(".", ",") for a in frame()["age"]]
    with pytest.raises(DataError, match="they have decimal commas"):
        from_table(table, group="site", target="cost")
    table["age"], table["cost"] = 1.0 * np.arange(240), table["cost"].astype(str)
    table.loc[3, "cost"] = "n/k"
    with pytest.raises(DataError, match=r"'cost' holds texts, .* in row 3 \(counted from 0\) it holds 'n/k'"):
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


@pytest.mark.parametrize("written", ["%d.%m.%Y", "%m/%d/%Y", "%d-%m-%Y %H:%M", "%Y/%m/%d"])
def test_dates_that_are_not_written_year_first(written):
    days = pandas.Series(pandas.date_range("2020-01-01", periods=240, freq="D")).dt.strftime(written)
    table = only(frame(), "cost").assign(day=days)
    with pytest.raises(DataError, match=r"column 'day' holds dates such as .* expected the year first"):
        from_table(table, group="site", target="cost")
    right = table.assign(day=pandas.date_range("2020-01-01", periods=240, freq="D").strftime("%Y-%m-%d"))
    if not written.startswith("%Y"):  # later, only what is clear
        with pytest.raises(DataError, match="expected the year first"):
            from_table(right, group="site", target="cost").encoding.encode(table)
    few = table.assign(day=np.resize(days[:28], 240))  # few enough for a category
    with pytest.raises(DataError, match="expected the year first"):
        from_table(few, group="site", target="cost")
    known = from_table(few, group="site", target="cost", categorical="day").encoding
    assert len(from_table(few, encoding=known)) == 6  # it was a category when it was learned
    versions = table.assign(day=np.where(np.arange(240) % 2, "1.2.3", "1.10.0"))
    assert "day=1.2.3" in from_table(versions, group="site", target="cost").encoding.inputs


def test_all_columns_of_names_are_told_at_once():
    names = {"a name": [f"person {i}" for i in range(240)], "notes": [f"note {i}" for i in range(240)]}
    with pytest.raises(DataError) as error:
        from_table(only(frame(), "cost").assign(**names), group="site", target="cost")
    assert "column 'a name' has 144 different texts in training rows, such as 'person " in str(error.value)
    assert "column 'notes' has 144 different texts" in str(error.value)
    assert "--ignore 'a name' notes; in from_table, ignore=['a name', 'notes']" in str(error.value)


def test_odd_files(tmp_path):
    table = only(frame(groups=4), "cost")
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False, sep=";")  # as some spreadsheets write
    assert len(from_table(path, group="site", target="cost")) == 4
    table.rename(columns={"age": "age, years"}).to_csv(path, index=False, sep=";")  # no column of its own
    assert "age, years" in from_table(path, group="site", target="cost").encoding.inputs
    path.write_text("site,age;cost\n" + "a,1,2,3\n" * 9)
    with pytest.raises(DataError, match=r"row 1 has 4 values .* separated by ','"):
        from_table(path, group="site", target="cost")
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


def test_days_name_groups_as_in_a_file(tmp_path):
    table = only(frame(), "cost")
    days = pandas.to_timedelta(table["site"].str[-1].astype(int), "D")
    table["site"] = pandas.to_datetime("2021-03-04") + days
    table.to_csv(tmp_path / "days.csv", index=False)
    names = [task.name for task in from_table(table, group="site", target="cost")]
    assert names == [task.name for task in from_table(tmp_path / "days.csv", group="site", target="cost")]
    assert names[0] == "2021-03-04"


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
    assert "'site 2': its 2 samples are too few: none is left for test (5 would be enough)" in text
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
        (
            {},
            {"group": "school"},
            "has no column 'school'; its columns: 'site', 'age', 'ward', 'visits', 'cost'",
        ),
        ({}, {"target": "score"}, "has no column 'score'"),
        ({}, {"ignore": ["nothing"]}, "has no column 'nothing'"),
        ({"name": [f"person {i}" for i in range(240)]}, {}, "column 'name' has 144 different texts"),
        ({}, {"ignore": ["age", "ward", "visits"]}, "no column is left"),
        ({"age": np.inf}, {}, "column 'age' holds inf in row"),
        ({}, {"on_unusable": "hide"}, "expected 'skip', 'keep' or 'error'"),
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
        ("t.csv", b"", "is empty; expected a row of names"),
        ("t.csv", b"a,b\n", "has no rows"),
        ("t.csv", b"a,b\n1,2,3\n1,2,3,4\n", "row 1 has 3 values .*; expected 2"),
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


def test_columns_of_zeros_and_ones_stay_as_they_are():
    """They say yes or no: a rare yes is no outlier. The same in files, where missing values make them numbers
    with fractions."""
    rng = np.random.default_rng(0)
    table = only(frame(), "ill").assign(
        smokes=(rng.random(240) < 0.1).astype(int), urgent=rng.random(240) < 0.3
    )
    table["insured"] = np.where(rng.random(240) < 0.2, np.nan, rng.integers(0, 2, 240))
    table["whole"] = rng.integers(1, 3, 240)  # of ones and twos: a number
    stream = from_table(table, group="site", target="ill")
    fitted = {column.name: column for column in stream.encoding.columns}
    for name in ("smokes", "urgent", "insured"):
        assert (fitted[name].mean, fitted[name].spread, fitted[name].levels) == (0.0, 1.0, None)
        values = stream.encoding.encode(table)[:, stream.encoding.inputs.index(name)]
        np.testing.assert_array_equal(values, table[name].fillna(0).astype(float))
    missing = stream.encoding.encode(table)[:, stream.encoding.inputs.index("insured is missing")]
    np.testing.assert_array_equal(missing, table["insured"].isna())
    assert fitted["whole"].spread != 1.0
    learner = piaget.Learner.for_stream(stream)
    assert isinstance(learner, piaget.PriorLearner)
    learner.learn_all(stream)
    place = 1 + stream.encoding.inputs.index("smokes")
    assert learner.known.begun[1].spread[place] == 1  # nor does the prior scale it


def heights(n=60):
    rng = np.random.default_rng(0)
    table = {"site": np.repeat(["a", "b", "c"], n // 3), "age": rng.normal(50, 9, n), "rare": np.zeros(n)}
    table["rare"][:: n // 20] = rng.integers(1, 9, 20)
    table["income"] = rng.lognormal(8, 1.5, n)
    return pandas.DataFrame(table | {"height": rng.normal(170, 9, n)})


@pytest.mark.parametrize(("column", "value"), [("age", 1e25), ("rare", -99999), ("height", 1.7e6)])
def test_a_value_far_from_all_others_is_noted(column, value):
    table, split = heights(), ["train"] * 60
    table.loc[7, column] = value
    with pytest.warns(DataNote, match=rf"'{column}' holds .*\(1 of 60 training rows are far"):
        from_table(table.assign(split=split), group="site", target="height", split="split")


def test_values_that_are_merely_large_are_not_noted(recwarn):
    from_table(heights(), group="site", target="height")
    table = heights().assign(when=pandas.date_range("2020-01-01", periods=60), flag=np.arange(60) % 9 == 7)
    from_table(table, group="site", target="height")
    assert not [str(w.message) for w in recwarn]


@pytest.mark.parametrize("written", ["{}%", "€ {}", "{:.2f} €", "${}"])
def test_numbers_with_a_sign_are_refused(written):
    table = only(frame(), "cost").assign(share=[written.format(i % 30) for i in range(240)])
    with pytest.raises(DataError, match="column 'share' holds numbers with a sign, such as"):
        from_table(table, group="site", target="cost")
    assert from_table(table, group="site", target="cost", categorical="share")


def test_cases_that_were_numbered_are_noted(recwarn):
    table = only(frame(), "cost")
    numbered = table.assign(**{"case no": np.random.default_rng(0).permutation(240) + 7000})
    with pytest.warns(DataNote, match="'case no' holds another whole number in each row.*--ignore 'case no'"):
        from_table(numbered, group="site", target="cost")
    recwarn.clear()
    from_table(table.assign(income=np.arange(240) * 37), group="site", target="cost")
    assert not [one for one in recwarn if "whole number" in str(one.message)]
