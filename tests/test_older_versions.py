"""Learners, runs and sweeps that version 0.1 wrote: they load, predict the same, and go on.

The files in `written_by_0_1` were made once, with that version, from the tasks below, and are not made again.
"""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas
import pytest
import torch

import piaget
from piaget.lab.folder import runs_below
from piaget.scoring.rows import COLUMNS, Row
from tests.commands import said, words
from tests.small import make_task

if TYPE_CHECKING:
    from tests.small import Complete

WRITTEN = Path(__file__).parent / "written_by_0_1"
KINDS = [("multiclass", 3, 6), ("binary", 2, 5), ("regression", 0, 6), ("multiclass", 4, 7)]


def task(number: int, kind: str, classes: int, features: int, samples: int) -> Complete:
    return make_task(f"task {number}", kind, classes, features, samples, seed=number, dtype=torch.float32)


def mixed() -> list[Complete]:
    return [task(i, *KINDS[i % 4], 16 + i % 3) for i in range(6)]


def same() -> list[Complete]:
    return [task(i, "multiclass", 3, 6, 16) for i in range(6)]


def binary() -> list[Complete]:
    return [task(i, "binary", 2, 6, 16) for i in range(6)]


LEARNERS = {
    "soft-ordering-er": mixed,
    "soft-gating-ewc": same,
    "no-components-nft": mixed,
    "linear-er": binary,
}


# A whole training at a high rate follows, which multiplies what rounding does: inputs that differ by 1e-7
# move the probabilities by 0.5 (other learners': by 1e-7). So processors that round otherwise than the one
# on which these were written, as some with AVX-512 do, end elsewhere. There, what is read must at least go
# on alike.
APART = {("soft-gating-ewc", "pending")}


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize(("state", "next_task"), [("finished", None), ("midway", 5), ("pending", 2)])
def test_learners_predict_the_same_and_go_on(name, state, next_task):
    """Between tasks; in the middle of one; with tasks that wait for the first ones to be complete."""
    tasks, folder = LEARNERS[name](), WRITTEN / "learners" / name
    expected = json.loads((folder / "expected.json").read_text())[state]
    learner = piaget.Learner.load(folder / state)
    if next_task is not None:
        rows = learner.learn(tasks[next_task])
        assert {row["trained"] for row in rows} == {f"task {next_task}"}
    assert learner.tasks == list(expected["predictions"])
    assert learner.components == expected.get("components", learner.components)
    for one in tasks:
        for how, found in (("predictions", learner.predict), ("probabilities", learner.predict_proba)):
            if (values := expected[how].get(one.name)) is not None:
                answers = found(one.test.x, one.name)
                if (name, state) in APART and torch.backends.cpu.get_cpu_capability() == "AVX512":
                    again = piaget.Learner.load(folder / state)
                    again.learn(tasks[next_task])
                    same = getattr(again, found.__name__)(one.test.x, one.name)
                    np.testing.assert_array_equal(answers, same)
                    assert np.shape(answers) == np.shape(values)
                else:
                    np.testing.assert_allclose(answers, values, rtol=1e-5, atol=1e-5)


def test_saved_again_they_are_the_same(tmp_path):
    old = WRITTEN / "learners" / "soft-ordering-er" / "midway"
    piaget.Learner.load(old).save(tmp_path)
    tasks, learners = mixed(), [piaget.Learner.load(path) for path in (old, tmp_path)]
    for learner in learners:
        learner.learn(tasks[5])
    for one in tasks:
        first, second = (learner.predict(one.test.x, one.name) for learner in learners)
        assert torch.equal(first, second)


def copied(name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(WRITTEN / name, tmp_path / name))


def rows_of(out: Path) -> list[Row]:
    rows = [row for run in runs_below(out) for row in run.rows()]
    assert all(row.keys() == set(COLUMNS) for row in rows)
    return rows


NEW = {"auc", "majority"}  # metrics that version 0.1 did not have


def _tasks(rows: list[Row], metric: str) -> set[tuple[int, str]]:
    return {(row["seed"], row["evaluated"]) for row in rows if row["metric"] == metric}


def test_an_interrupted_run_goes_on(tmp_path, capsys):
    """And ends with the rows of the run that was not interrupted, which are of that version, too."""
    out = copied("interrupted", tmp_path)
    code, text, _ = said(capsys, "status", out, "--json")
    assert code == 0
    assert json.loads(text)["counts"] == {"interrupted": 2}
    assert said(capsys, "resume", out, "--quiet").code == 0
    everything, expected = rows_of(out), rows_of(WRITTEN / "whole")
    found = [row for row in everything if row["metric"] not in NEW]
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert {**mine, "value": None} == {**theirs, "value": None}
        assert mine["value"] == pytest.approx(theirs["value"], rel=1e-5, abs=1e-5)
    # What that version did not write is there from where the run goes on, to its end.
    later = [row for row in everything if row["metric"] in NEW]
    assert {row["metric"] for row in later} == NEW
    last = [row for row in everything if row["trained"] == everything[-1]["trained"]]
    scored = {metric: _tasks(last, metric) for metric in ("accuracy", "auc")}
    assert scored["auc"] == scored["accuracy"]
    assert len(_tasks(later, "majority")) < len(scored["accuracy"])
    for path in out.glob("seed-*/rows.csv"):  # one file, in one form
        assert path.read_text().count("stream,method") == 1
        assert len({line.count(",") for line in path.read_text().splitlines()}) == 1
    text = said(capsys, "status", out, "--json").out
    assert json.loads(text)["counts"] == {"done": 2}
    assert len(piaget.Learner.load(out / "seed-1" / "learner").tasks) == 5


def test_components_are_named_in_columns_now(tmp_path):
    """In 0.1 they were part of the metric's name."""
    rows = rows_of(WRITTEN / "whole")
    weights = [row for row in rows if row["metric"] == "weight"]
    assert weights
    assert {row["component"] for row in weights} >= {0, 1, 2}
    assert {row["depth"] for row in weights} >= {0, 1, 2}
    assert not any("component " in row["metric"] for row in rows)


SWEEP = (
    "sweep digits --epochs 4 --option tasks=5 --option train_size=30 --set width=6 --set initial_components=3"
    " --adaptations er ewc --algorithms dynamic no-components --seeds 2 --every 2 --cohort 2"
)


def test_a_sweep_finds_everything_done(tmp_path, capsys):
    """What it called no-components, with replay, has another name now."""
    out = copied("sweep", tmp_path)
    before = {path: path.read_bytes() for path in out.rglob("rows.csv")}
    code, text, error = said(capsys, *words(SWEEP, out=out))
    assert code == 0
    assert error.count("which called no-components what is no-components-frozen now") == 1
    assert f"8 of 8 runs were done in {out} already" in text.replace("\n", "")
    assert {path: path.read_bytes() for path in out.rglob("rows.csv")} == before
    written = (WRITTEN / "sweep" / "table.md").read_text()
    renamed = written.replace("| ER | No Comp. |", "| ER | No Comp., past frozen |")
    assert (out / "table.md").read_text() == renamed
    code, text, _ = said(capsys, "status", out)
    assert code == 0
    assert "8 done" in text


@pytest.mark.usefixtures("without_workers")
def test_a_sweep_gets_more_seeds(tmp_path):
    """New runs beside old ones, in one table."""
    out = copied("sweep", tmp_path)
    more = f"{SWEEP} --quiet".replace("--seeds 2", "--seeds 3").replace("er ewc", "ewc")
    assert piaget.cli.main(words(more, out=out)) == 0
    lines = [line for line in (out / "table.md").read_text().splitlines() if "| digits |" in line]
    performance, further = lines[:2], lines[2:]
    assert len(further) == 2
    assert all("| 3 |" in line for line in lines)
    assert not any("seeds)" in line for line in performance)
    assert all(line.count("(1 of 3 seeds)") == 2 for line in further)  # majority and AUC: the new one's


def table_run(tmp_path: Path) -> Path:
    """The run folder, with its table where it is now."""
    out = copied("table", tmp_path)
    shutil.copy(WRITTEN / "stays.csv", tmp_path / "stays.csv")
    for path in out.rglob("run.json"):
        path.write_text(path.read_text().replace("/tmp/example/stays.csv", str(tmp_path / "stays.csv")))
    return out


def test_predictions_for_a_table(tmp_path, capsys):
    out, answers = table_run(tmp_path), tmp_path / "answers.csv"
    assert said(capsys, "predict", out, tmp_path / "stays.csv", "--out", answers).code == 0
    found, expected = pandas.read_csv(answers), pandas.read_csv(WRITTEN / "stays-predicted.csv")
    assert list(found.columns) == list(expected.columns)
    np.testing.assert_allclose(found["predicted stay"], expected["predicted stay"], rtol=1e-5)
    code, text, _ = said(capsys, "resume", out)
    assert code == 0
    assert "mean of 5 tasks  rmse" in text


def test_a_later_table(tmp_path, capsys):
    """A group is forgotten, and rows are learned; the command of the run finds what it knows."""
    out, later = table_run(tmp_path), tmp_path / "later.csv"
    forgotten = said(capsys, "forget", out, "site 3")
    assert forgotten.code == 0, forgotten.err
    rows = pandas.read_csv(tmp_path / "stays.csv")
    new = rows[rows["site"] == "site 0"].head(8)
    new.assign(stay=new["stay"] + 0.5).to_csv(later, index=False)
    learned = said(capsys, "learn", out, later)
    assert (learned.code, "updated with 8 rows" in learned.out) == (0, True), learned.err
    again = said(capsys, "learn", out, later)
    assert "Nothing new" in again.out
    assert said(capsys, "resume", out).code == 0


def test_a_later_table_needs_the_first(tmp_path, capsys):
    """Which data it was, that version did not note; but groups that are gone are missed."""
    out = table_run(tmp_path)
    rows = pandas.read_csv(tmp_path / "stays.csv")
    rows[rows["site"] != "site 2"].to_csv(tmp_path / "stays.csv", index=False)
    learned = said(capsys, "learn", out, tmp_path / "stays.csv")
    assert (learned.code, "task 'site 2' is gone" in learned.err) == (2, True), learned.err


def test_a_report_of_everything(tmp_path, capsys):
    for name in ("sweep", "whole"):
        copied(name, tmp_path)
    table_run(tmp_path)
    code, _, errors = said(capsys, "report", tmp_path, "--out", tmp_path / "report")
    assert code == 0, errors
    assert (tmp_path / "report" / "report.html").is_file()
    text = (tmp_path / "report" / "tables.md").read_text()
    assert "digits" in text
    assert "stays" in text
    with open(tmp_path / "report" / "tables" / "scores.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert {line["stream"] for line in lines} == {"digits"}  # the others are regressions
    assert all(float(line["log-loss"]) > 0 for line in lines)
    assert {line["AUC"] + line["majority"] for line in lines} == {""}  # not known


def test_a_run_that_went_on_is_reported(tmp_path, capsys):
    """The end has all further scores; what is known of some tasks only is left out of the table."""
    out = copied("interrupted", tmp_path)
    assert said(capsys, "resume", out, "--quiet").code == 0
    assert said(capsys, "report", out, "--out", tmp_path / "report").code == 0
    with open(tmp_path / "report" / "tables" / "scores.csv", newline="") as file:
        (line,) = csv.DictReader(file)
    assert 0 <= float(line["AUC"]) <= 1
    assert line["AUC of"] == "5 tasks"
    assert line["majority"] == ""
