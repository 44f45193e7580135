"""Reports about tasks that nobody named."""

from __future__ import annotations

import re

import numpy as np
import pytest

from piaget.lab.collecting import add
from piaget.lab.exports import _Note, _points, _Score
from piaget.lab.folder import RunFolder
from piaget.report.component_figures import _binned
from piaget.report.contents import Contents
from piaget.report.describe import Describer
from piaget.report.inferred import confusion, confusion_table, inference_table
from piaget.report.reading import read
from piaget.report.tables import tables
from piaget.scoring.rows import TAKEN_FOR, inferred_performance, taken_for
from tests.made_runs import constant, rows_of, write_run

METHOD = "soft-ordering/er/dynamic"
NAMES = ["a", "taken for b", "none of them"]  # as if to lead astray


def shares(seed):
    """Of three tasks; the first loses something to the third only with seed 0."""
    table = [[0.5, 0.25, 0.125 * (seed == 0)], [0.0, 1.0, 0.0], [0.125, 0.125, 0.5]]
    return lambda i, j: table[i][j]


@pytest.fixture
def runs(tmp_path):
    for seed in (0, 1):
        more = {"tasks": 3, "names": NAMES, "taken": shares(seed)}
        write_run(tmp_path / "runs", "digits", METHOD, seed, constant(0.9), **more)
    return tmp_path / "runs"


def test_the_name_of_a_task_is_told_whatever_it_is():
    for name in ("a", "taken for b", "", "{}", 'x,"y'):
        assert taken_for(TAKEN_FOR.format(name)) == name
    assert taken_for("task inferred") is None


def test_confusion_of_a_run(runs):
    contents = Contents(read([runs]))
    one, other = contents.groups[0].names
    assert confusion(contents, one, NAMES).tolist() == [
        [0.5, 0.25, 0.125, 0.125],
        [0.0, 1.0, 0.0, 0.0],
        [0.125, 0.125, 0.5, 0.25],
    ]
    assert confusion(contents, other, NAMES)[0].tolist() == [0.5, 0.25, 0.0, 0.25]


def test_tables(runs):
    contents = Contents(read([runs]))
    (line,) = inference_table(contents).rows
    seeds = [cell.text for cell in line[2:]]
    assert seeds == ["2", "66.7 ± 0.0", "100.0 ± 0.0", "14.6 ± 2.1", "90.0 ± 0.0", "70.0 ± 0.0", ""]
    pairs = [[cell.text for cell in line[2:]] for line in confusion_table(contents).rows]
    assert pairs == [
        ["a", "taken for b", "25.0 ± 0.0", "2"],
        ["none of them", "a", "12.5 ± 0.0", "2"],
        ["none of them", "taken for b", "12.5 ± 0.0", "2"],
        ["a", "none of them", "6.2 ± 6.2", "2"],  # 0 with seed 1
    ]


def test_the_page_is_given_what_there_is(runs, tmp_path):
    contents = Contents(read([runs]))
    data = Describer(contents, tmp_path).report([], [], title="", command="")["runs"][0]["inference"]
    assert data is not None
    assert data["none"] == [12.5, 0.0, 25.0]
    assert data["inferred"] == [50.0, 100.0, 50.0]
    assert data["taken"] == [
        (0, 0, 50.0), (0, 1, 25.0), (0, 2, 12.5), (1, 1, 100.0), (2, 0, 12.5), (2, 1, 12.5), (2, 2, 50.0)
    ]  # fmt: skip


def test_runs_without_inference_have_nothing_of_it(tmp_path):
    write_run(tmp_path / "runs", "digits", METHOD, 0, constant(0.9))
    contents = Contents(read([tmp_path / "runs"]))
    assert not {"inference", "confusions"} & {table.name for table in tables(contents)}
    data = Describer(contents, tmp_path).report([], [], title="", command="")
    assert data["runs"][0]["inference"] is None


def test_rows_without_pairs_are_read_as_well(runs):
    """As they were before pairs were told."""
    for path in runs.rglob("rows.csv"):
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not re.search(r",test,.?taken for ", line)))
    contents = Contents(read([runs]))
    assert len(inference_table(contents).rows) == 1
    assert confusion_table(contents).rows == []
    assert confusion(contents, contents.groups[0].names[0], NAMES).shape == (0, 1)


def test_pairs_are_collected(runs, tmp_path):
    add([RunFolder(path.parent) for path in sorted(runs.rglob("run.json"))], tmp_path / "kept")
    kept = Contents(read([tmp_path / "kept"]))
    ours = [confusion(kept, name, NAMES) for name in kept.groups[0].names]
    contents = Contents(read([runs]))
    theirs = [confusion(contents, name, NAMES) for name in contents.groups[0].names]
    assert np.array_equal(ours, theirs)


def test_pairs_are_no_means_and_are_not_exported():
    rows = rows_of("digits", METHOD, 0, constant(0.9), 3, names=NAMES, taken=shares(0))
    assert list(inferred_performance(rows)) == [
        "task inferred", "task inferred in tens", "false alarms", "accuracy with task inferred"
    ]  # fmt: skip
    score = {name: _Score("c", 4, "a", "test", name, 0.5) for name in ("accuracy", TAKEN_FOR.format("b"))}
    points = _points(list(score.values()), _Note("here"), re.compile(r"[^\w/]"))
    assert [point.tag for point in points] == ["accuracy/test/a", "accuracy/test/mean"]


def test_columns_of_figures_are_means_of_neighbours():
    values = np.array([[1.0, 2.0, 3.0, 4.0, 5.0], [np.nan, np.nan, np.nan, 1.0, 3.0]])
    assert np.array_equal(_binned(values, 2), [[1.5, 3.5, 5.0], [np.nan, 1.0, 3.0]], equal_nan=True)
    assert np.array_equal(_binned(values, 1), values, equal_nan=True)
