"""When components came and went, from the rows that say so."""

from __future__ import annotations

import csv

import pandas as pd

from piaget.report.contents import Contents
from piaget.report.lives import Life, lives
from piaget.report.metrics import BORN, component_events
from piaget.report.reading import read
from piaget.report.tables import components
from piaget.scoring.rows import MERGED, REDUCTION, REMOVED
from tests.made_runs import constant, rows_of, write_run

TASKS = [f"t{j}" for j in range(10)]


def events(*lines):
    columns = ["trained", "event", "component", "into"]
    return pd.DataFrame([(f"t{j}", *rest) for j, *rest in lines], columns=columns)


def test_numbers_are_those_of_the_time():
    """Four at first; two come, then the second goes into the first, and what is number 3 then is removed."""
    found = lives(
        events((4, BORN, None, None), (5, BORN, None, None), (6, MERGED, 1, 0), (8, REMOVED, 3, None)),
        TASKS,
        4,
    )
    assert found == [
        Life(-1, component=0),
        Life(-1, left=6, into=0),
        Life(-1, component=1),
        Life(-1, component=2),
        Life(4, left=8),  # it was number 4, and 3 after the merger
        Life(5, component=3),
    ]


def test_what_was_merged_may_be_merged_again():
    found = lives(events((5, MERGED, 2, 1), (6, MERGED, 1, 0)), TASKS, 2)
    assert [(life.left, life.into, life.component) for life in found] == [
        (None, None, 0),
        (6, 0, None),
        (5, 1, None),
        (None, None, 1),
    ]


def test_what_is_not_known_is_not_told():
    assert lives(events((5, REMOVED, 2, None)), TASKS, 0) == []  # the run is unfinished
    assert lives(events(), TASKS, 2) == [Life(-1, component=0), Life(-1, component=1)]
    damaged = lives(events((5, REMOVED, 9, None)), TASKS, 2)
    assert sum(life.left is None for life in damaged) == 3


def test_events_in_the_order_of_rows():
    rows = rows_of("digits", "soft-ordering/er/dynamic", 0, constant(0.9), kept=[4])
    last = {**rows[-1], "stage": REDUCTION, "trained": "digits-05"}
    merged = {**last, "metric": MERGED, "component": 3, "value": 1.0}
    removed = {**last, "metric": REMOVED, "component": 0, "value": 0.01}
    frame = pd.DataFrame([*rows, merged, removed]).assign(run="a")
    found = component_events(frame)
    assert list(found["event"]) == [BORN, MERGED, REMOVED]
    assert list(found["trained"]) == ["digits-04", "digits-05", "digits-05"]
    assert list(found["into"].dropna()) == [1.0]


def test_births_of_a_run(tmp_path):
    write_run(tmp_path, "digits", "soft-ordering/er/dynamic", 0, constant(0.9), kept=[5])
    contents = Contents(read([tmp_path]))
    (run,) = contents.groups[0].runs
    tasks = [f"digits-{j:02}" for j in range(6)]
    assert [life.born for life in contents.lives(run.name, tasks, 5)] == [-1, -1, -1, -1, 5]


def test_those_that_went_are_counted(tmp_path):
    """In the table of components: of two runs, one merged and removed one each."""
    for seed in (0, 1):
        write_run(tmp_path, "digits", "soft-ordering/er/dynamic", seed, constant(0.9), kept=[5])
    path = next(tmp_path.rglob("seed-1/rows.csv"))
    *_, line = csv.DictReader(path.read_text().splitlines())
    merged = line | {"stage": REDUCTION, "metric": MERGED, "component": "3", "value": "1.0"}
    removed = line | {"stage": REDUCTION, "metric": REMOVED, "component": "0", "value": "0.01"}
    with path.open("a", newline="") as handle:
        csv.DictWriter(handle, list(line)).writerows([merged, removed])
    (row,) = components(Contents(read([tmp_path]))).rows
    assert [cell.text for cell in row[-3:]] == ["2.0 ± 0.0", "1.0 ± 0.0", "1.0 ± 1.0"]
