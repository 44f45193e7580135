"""Rows of a later table that were learned before, in part, or nearly."""

import warnings

import numpy as np
import pandas
import pytest
import torch

import piaget
from piaget.errors import DataError, DataNote, SettingError
from piaget.streams import from_table
from piaget.streams.table_rows import rows_by_group
from piaget.table_copies import learned_batches, new_rows, note_copies
from tests.commands import said, words
from tests.tables import visits


def kinds(groups, rows, seed):
    """Rows of few kinds: three columns of two values, and a class."""
    rng = np.random.default_rng(seed)
    n = len(groups) * rows
    table = pandas.DataFrame(
        {
            "g": np.repeat(list(groups), rows),
            "a": rng.choice(["u", "v"], n),
            "b": rng.choice(["p", "q"], n),
            "c": rng.integers(0, 2, n),
        }
    )
    return table.assign(y=np.where(rng.random(n) < 0.3 + 0.4 * (table["a"] == "u"), "yes", "no"))


def learned(table, group="g", target="y"):
    stream = from_table(table, group=group, target=target)
    learner = piaget.PriorLearner(stream.labels, trees=False)
    learner.learn_all(stream)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataNote)
        learner.learn_table(table)  # the rows that were held out
    return learner


def rows_of(arrivals):
    return [one.rows for one in arrivals]


# --- where rows are often alike -----------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 4, 6, 20])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_new_rows_that_equal_known_ones_are_learned_where_rows_are_alike(rows, seed):
    january, february = kinds("ABCD", 100, 0), kinds("AB", rows, seed)
    learner = learned(january)
    with pytest.warns(DataNote, match="rows are often alike in this table"):
        assert rows_of(learner.learn_table(february)) == [rows, rows]
    assert rows_of(learner.learn_table(february)) == [0, 0]  # the same table again
    assert rows_of(learner.learn_table(january)) == [0] * 4  # learned in two batches
    both = pandas.concat([january, february])
    assert rows_of(learner.learn_table(both)) == [0] * 4
    with pytest.warns(DataNote, match="rows are often alike in this table"):
        assert rows_of(learner.learn_table(kinds("AB", rows + 1, seed + 7))) == [rows + 1] * 2


def test_the_command_learns_rows_that_equal_known_ones(tmp_path, capsys):
    first, later, out = tmp_path / "few1.csv", tmp_path / "few2.csv", tmp_path / "few"
    kinds("ABCD", 100, 0).to_csv(first, index=False)
    kinds("AB", 6, 1).to_csv(later, index=False)
    run = words("run --group g --target y --quiet --table", first, out=out)
    assert said(capsys, *run).code == 0
    told = said(capsys, "learn", out, later)
    assert (told.code, "0 new groups, 2 updated, 12 new rows" in told.out) == (0, True), told.out
    assert "12 of 12 rows that are taken for new are equal to rows that were learned before" in told.err
    assert "Nothing new" in said(capsys, "learn", out, later).out


def test_few_different_rows_do_not_say_that_rows_differ():
    """A small batch of different rows by chance, in a table of few kinds: the next one may have them, too."""
    learner = learned(kinds("ABCD", 100, 0))
    small = kinds("A", 60, 5).drop_duplicates()[:6].assign(g=["A"] * 3 + ["new"] * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataNote)
        assert rows_of(learner.learn_table(small)) == [3, 3]
        other = pandas.concat([small[:2], small[3:5], kinds("B", 1, 3)])
        assert rows_of(learner.learn_table(other)) == [2, 2, 1]
        task = from_table(kinds("AB", 7, 9), encoding=learner.encoding(), fractions=(1, 0, 0))[0]
        before = learner.lessons[task.name].rows
        learner.update(task)
    assert learner.lessons[task.name].rows == before + 7


def test_a_part_of_a_table_is_known_though_one_group_has_equal_rows():
    table = visits(range(4), 40).drop(columns="stay")
    same = table["site"] == "site 3"
    table.loc[same, ["age", "dose", "bmi"]] = 1.0
    learner = learned(table, "site", "ill")
    part = table[table.groupby("site").cumcount() < 30]
    assert rows_of(learner.learn_table(part)) == [0] * 4
    with pytest.warns(DataNote, match="rows are often alike"):
        assert rows_of(learner.learn_table(part[part["site"] == "site 3"])) == [30]


# --- an export of the last weeks ----------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["ill", "stay"])
def test_known_rows_are_skipped_and_the_rest_is_learned(target):
    table = visits(range(3), 40).drop(columns={"ill": "stay", "stay": "ill"}[target])
    later = visits(range(4), 12, seed=3)[table.columns]
    rolling = pandas.concat([table[table.groupby("site").cumcount() >= 10], later])
    learner = learned(table, "site", target)
    with pytest.raises(DataError, match=r"30 are there again, .* \(--skip-known, skip_known=True\)"):
        learner.learn_table(rolling)
    with pytest.raises(SettingError, match="again and skip_known: expected one of them"):
        learner.learn_table(rolling, again=True, skip_known=True)
    arrivals = learner.learn_table(rolling, skip_known=True)
    assert [(one.rows, one.seen) for one in arrivals] == [(12, 30)] * 3 + [(12, 0)]
    plain = learned(table, "site", target)
    plain.learn_table(later)
    for group in plain.tasks:
        a, b = (one.known.records[group] for one in (learner, plain))
        assert torch.equal(a.x, b.x)
        assert torch.equal(a.y, b.y)
    assert rows_of(learner.learn_table(rolling, skip_known=True)) == [0] * 4
    few = learned(kinds("AB", 100, 0))
    assert rows_of(few.learn_table(kinds("AB", 6, 1), skip_known=True)) == [0, 0]


def test_the_command_skips_known_rows(tmp_path, capsys):
    first, later, out = tmp_path / "first.csv", tmp_path / "later.csv", tmp_path / "out"
    table = visits(range(3), 40).drop(columns="stay")
    table.to_csv(first, index=False)
    pandas.concat([table[15:], visits([0, 5], 9, seed=3)[table.columns]]).to_csv(later, index=False)
    assert said(capsys, *words("run --group site --target ill --quiet --table", first, out=out)).code == 0
    refused = said(capsys, "learn", out, later)
    assert (refused.code, "--skip-known" in refused.err) == (2, True)
    told = said(capsys, "learn", out, later, "--skip-known")
    assert told.code == 0, told.err
    assert "site 0  updated with 9 rows; 25 rows were learned before" in told.out
    assert "1 new group, 1 updated, 18 new rows" in told.out
    with pytest.raises(SystemExit):
        said(capsys, "learn", out, later, "--skip-known", "--again")
    assert "not allowed with argument" in capsys.readouterr().err


# --- what only looks new ------------------------------------------------------------------------------------

NEARLY = "nearly equal to rows that were learned before"


@pytest.mark.parametrize("target", ["ill", "stay"])
@pytest.mark.parametrize("rows", [10, 60, 700])
def test_a_table_with_other_digits_is_noted(target, rows):
    table = visits(range(4), rows).drop(columns={"ill": "stay", "stay": "ill"}[target])
    table["dose"] = np.random.default_rng(1).normal(size=len(table))
    if target == "stay":
        table["stay"] = table["stay"] * np.pi
    rounded = table.assign(age=table["age"].round(1))
    tables = [rounded, rounded.sample(frac=1, random_state=0), table.assign(dose=table["dose"].round(2))]
    if target == "stay":
        tables.append(table.assign(stay=table["stay"].astype(np.float32)))
    later = visits(range(4), rows // 2, seed=5)[table.columns]
    tables.append(pandas.concat([rounded, later]))
    learner = learned(table, "site", target)
    for same in tables:
        with pytest.warns(DataNote, match=NEARLY):
            note_of(learner, same)
    note_of(learner, later)  # without a note
    note_of(learner, table)
    with pytest.warns(DataNote, match=NEARLY):
        assert rows_of(learner.learn_table(tables[1])) > [rows // 2] * 4


def note_of(learner, table):
    """Notes of what would be learned."""
    groups, source = rows_by_group(table, learner.encoding(), learner.labels)
    note_copies(learner, new_rows(learned_batches(learner), groups, source), source)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("columns", [["dose"], ["visits"], ["ward"], ["dose", "visits", "ward", "age"]])
def test_ordinary_tables_are_not_taken_for_others_with_other_digits(columns, seed):
    """Of one column or several, of numbers, whole numbers or categories."""

    def table(groups, rows, seed):
        made = visits(groups, rows, seed)
        made["visits"] = np.random.default_rng(seed).integers(0, 40, len(made))
        return made[["site", *columns, "ill"]]

    learner = learned(table(range(5), 50, seed), "site", "ill")
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        for rows in (1, 10, 50, 200):
            note_of(learner, table(range(7), rows, 100 + seed))
    assert not [one for one in noted if NEARLY in str(one.message) or "renamed" in str(one.message)]


def test_groups_with_other_names_are_noted():
    table = visits(range(4), 30).drop(columns="stay")
    learner = learned(table, "site", "ill")
    with pytest.warns(
        DataNote, match="have only rows that were learned before, of 'site 0', 'site 1', 'site 2'"
    ):
        note_of(learner, table.assign(site="the " + table["site"]))
    with pytest.warns(
        DataNote, match=r"new groups \('other'\) have only rows .* of 'site 2'\. If groups were"
    ):
        note_of(learner, table[60:75].assign(site="other"))
    with pytest.warns(DataNote, match="If groups were renamed, these cases count twice"):
        learner.learn_table(table.assign(site=table["site"] + "x"))
    few = learned(kinds("ABCD", 100, 0))
    for rows in (1, 5, 30):
        note_of(few, kinds("XY", rows, 3))  # few kinds of rows: any group has those of others
