"""How much whole answers depend on each column, and why there may be no map."""

import numpy as np
import pandas
import pytest

import piaget
from piaget.lab.table_columns import moved_by
from piaget.lab.table_summary import columns_of
from piaget.report.table_map import map_of, why_no_map
from piaget.streams import from_table
from tests.tables import visits


def bent(kind="number", rows=150):
    """The first column bends the answer, the next two matter only together, the last one not at all."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(8 * rows, 4))
    y = 2 * np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + np.repeat(rng.normal(size=8), rows)
    table = pandas.DataFrame(x, columns=["a", "b", "c", "none"])
    named = {
        "number": y,
        "two": np.where(y > 0, "yes", "no"),
        "three": np.array(list("uvw"))[np.digitize(y, [-1, 1])],
    }[kind]
    return table.assign(g=np.repeat([f"g{i}" for i in range(8)], rows), y=named)


def learned(table, **options):
    stream = from_table(table, group="g", target="y")
    learner = piaget.PriorLearner(stream.labels, **options)
    learner.learn_all(stream)
    return learner


@pytest.mark.parametrize("kind", ["number", "two", "three"])
def test_columns_that_matter_only_through_trees_are_found(kind):
    learner = learned(bent(kind))
    assert learner.known.correction is not None
    moved = {one["column"]: one["moves"] for one in moved_by(learner)}
    assert list(moved) == ["a", "b", "c", "none"]
    assert min(moved["a"], moved["b"], moved["c"]) > 3 * moved["none"]
    linear = {one["input"]: abs(one["common"]) for one in columns_of(learner)}
    assert linear["c"] < linear["a"] / 2  # weights alone say little of it
    assert moved_by(learner) == moved_by(learner)


def test_of_a_linear_answer_it_is_the_change_by_a_deviation():
    table = bent()
    table["y"] = 3 * table["a"] + 0.2 * np.sin(4 * table["b"]) + table["c"]
    learner = learned(table)
    assert learner.known.correction is not None
    moved = {one["column"]: one["moves"] for one in moved_by(learner)}
    effects = {one["input"]: one["common"] for one in columns_of(learner)}
    assert moved["a"] == pytest.approx(effects["a"], rel=0.1)
    assert moved["c"] == pytest.approx(effects["c"], rel=0.1)


def test_categories_are_one_column_and_arrays_have_none():
    table = bent()
    kind = np.random.default_rng(1).choice(["x", "y", "z"], len(table))
    learner = learned(table.assign(kind=kind, y=table["y"] + 2.0 * (kind == "x")))
    moved = {one["column"]: one["moves"] for one in moved_by(learner)}
    assert moved["kind"] > 3 * moved["none"]
    x, y = (table[list(names)].to_numpy() for names in (["a", "b", "c", "none"], ["y"]))
    stream = piaget.streams.from_arrays(x, y[:, 0], groups=table["g"].to_numpy())
    arrays = piaget.PriorLearner()
    arrays.learn_all(stream)
    assert [one["column"] for one in moved_by(arrays)] == [f"input {i}" for i in range(4)]


def test_without_trees_weights_tell_all():
    assert moved_by(learned(bent(), trees=False)) == []


def test_why_there_is_no_map():
    learner = learned(bent(), trees=False)
    assert (learner.components, map_of(learner, "y")) == (0, None)
    assert "no direction was found in which some groups differ" in why_no_map(learner)
    few = visits(range(2)).rename(columns={"site": "g", "stay": "y"}).drop(columns="ill")
    assert "too few groups: 2, and 3 are needed" in why_no_map(learned(few, trees=False))


def test_components_along_which_no_group_lies_are_no_map(monkeypatch):
    """They were drawn as one mark for all groups."""
    learner = learned(visits().rename(columns={"site": "g", "stay": "y"}).drop(columns="ill"), trees=False)
    assert learner.components > 0
    assert map_of(learner, "y") is not None
    monkeypatch.setattr("piaget.report.table_map.NOTICED", 100.0)
    assert map_of(learner, "y") is None
    assert "no direction was found" in why_no_map(learner)


def test_columns_that_matter_only_by_bends_of_groups_are_found():
    """Sines of each group's own phase: in the mean of groups, the column says nothing."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(12 * 120, 3))
    phase, weight = (np.repeat(rng.normal(size=12), 120) for _ in range(2))
    y = 2 * np.sin(2 * x[:, 0] + 1.5 * phase) + weight * x[:, 1] + 0.3 * rng.normal(size=len(x))
    table = pandas.DataFrame(x, columns=["a", "b", "none"])
    learner = learned(table.assign(g=np.repeat([f"g{i}" for i in range(12)], 120), y=y))
    assert learner.known.bent is not None
    moved = {one["column"]: one["moves"] for one in moved_by(learner)}
    assert moved["a"] > moved["b"] > 3 * moved["none"]
