"""A table of one's own over the months, through the command line."""

import json
import shutil
import signal
import subprocess
import sys
import warnings

import numpy as np
import pandas
import pytest

import piaget
from piaget.cli import main
from piaget.errors import DataError, DataNote, UnknownTaskError
from piaget.files import write_json
from piaget.lab import folder as run_folder, table_lives
from piaget.lab.folder import RunFolder
from piaget.lab.locks import only_one
from piaget.streams import from_table
from piaget.streams.table_predictions import predict_table
from tests.commands import command, said, words
from tests.tables import frame, only, visits


def january(folder, target="ill", **options):
    path = folder / "january.csv"
    visits(**options).drop(columns={"ill": "stay", "stay": "ill"}[target]).to_csv(path, index=False)
    return words(f"run --group site --target {target} --quiet --table", path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """January's table, learned: to be copied."""
    folder = tmp_path_factory.mktemp("tables")
    assert main([*january(folder), "--out", str(folder / "out")]) == 0
    return folder


@pytest.fixture
def place(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "copy")
    return tmp_path / "copy"


def test_a_story_of_months(tmp_path, capsys):
    """January is learned, February brings new groups and new rows; predictions, and a group to forget."""
    out = tmp_path / "sites"
    run = said(capsys, *january(tmp_path), "--out", out)
    assert run.code == 0, run.err
    assert "mean of 12 groups, 720 rows" in run.out
    for name in ("most frequent class", "a linear model for each group", "piaget  "):
        assert name in run.out
    assert any(
        word in run.out for word in ("Worth it: AUC 0.", "No clear difference: AUC 0.", "Not worth it")
    )
    assert "better in " in run.out
    assert f"piaget report {out}" in run.out
    assert f"piaget learn {out} LATER.csv" in run.out
    assert " would be chance, with so many test rows." in run.out
    again = said(capsys, *january(tmp_path), "--out", out, "--each")
    assert again.code == 0
    assert all(f"site {g} " in again.out for g in range(12))

    february, march = tmp_path / "february.csv", tmp_path / "march.csv"
    visits([2, 3, 12, 13], 30, seed=1).drop(columns="stay").to_csv(february, index=False)
    learned = said(capsys, "learn", out, february)
    assert learned.code == 0, learned.err
    assert "site 2  updated with 30 rows; these were answered with accuracy 0." in learned.out
    assert "site 13  new, 30 rows; " in learned.out
    assert "2 new groups, 2 updated, 120 new rows" in learned.out
    assert "now knows 14 groups" in learned.out
    twice = said(capsys, "learn", out, february)
    assert "site 13  nothing new: its 30 rows were learned before" in twice.out
    assert "Nothing new: all rows of" in twice.out
    learner = piaget.load(out / "seed-0" / "learner")
    assert isinstance(learner, piaget.PriorLearner)
    assert learner.lessons["site 2"].rows == 90
    assert learner.known.records["site 2"].n == 90

    new = visits([2, 13, 50], 5, seed=2).drop(columns=["stay", "ill"])
    new.loc[0, "ward"] = "mauve"
    new.to_csv(march, index=False)
    arguments = ("predict", out, march, "--out", tmp_path / "answers.csv", "--proba", "--threshold", 0.3)
    predicted = said(capsys, *arguments)
    assert predicted.code == 0, predicted.err
    assert "column 'ward': 'mauve' was never seen before, in 1 of 15 rows" in predicted.err
    assert "5 of 15 rows are of groups never seen, 'site 50'" in predicted.err
    answers = pandas.read_csv(tmp_path / "answers.csv")
    assert list(answers.columns[5:]) == [
        "predicted ill",
        "probability of no",
        "probability of yes",
        "predicted from",
    ]
    assert answers["predicted from"].tolist() == ["own rows"] * 10 + ["other groups"] * 5
    assert np.allclose(answers["probability of no"] + answers["probability of yes"], 1)
    assert ((answers["probability of yes"] >= 0.3) == (answers["predicted ill"] == "yes")).all()

    forgotten = said(capsys, "forget", out, "site 3")
    assert forgotten.out == f"{out}/seed-0: forgotten site 3; 13 groups left\n"
    for file in (out / "seed-0" / "learner").iterdir():
        assert b"site 3" not in file.read_bytes()
    again = said(capsys, "forget", out, "site 3")
    assert again.code == 0
    assert "forgotten before: 'site 3'" in again.err
    assert said(capsys, "forget", out, "site 999").code == 2
    shown = said(capsys, *january(tmp_path), "--out", out)
    assert shown.code == 0, shown.err  # the same command still shows the scores
    assert said(capsys, "resume", out, "--quiet").code == 0
    assert json.loads(said(capsys, "status", out, "--json").out)["counts"] == {"done": 1}
    report = said(capsys, "report", out, "--quiet")
    assert report.code == 0, report.err
    assert (out / "report" / "report.html").stat().st_size > 10_000
    log = (out / "seed-0" / "log.txt").read_text()
    assert "february.csv: site 12: new, 30 rows" in log
    assert "forgets site 3" in log


def test_a_score_of_another_kind_is_refused_before_anything_is_learned(tmp_path, capsys):
    run = said(
        capsys, *january(tmp_path, "stay", groups=range(3)), "--out", tmp_path / "out", "--metric", "auc"
    )
    assert run.code == 2
    assert "--metric auc: expected" in run.err
    assert "learning" not in run.err
    assert not (tmp_path / "out").exists()


def test_auc_of_three_classes(tmp_path, capsys):
    """Of each class against all others, in the mean of those that a group has; a run of an older version,
    which had none, is still shown."""
    made, out = visits(range(8), 60, seed=1).drop(columns="ill"), tmp_path / "out"
    made["length"] = np.select([made["stay"] < 8, made["stay"] < 12], ["short", "middle"], "long")
    made.drop(columns="stay").to_csv(tmp_path / "table.csv", index=False)
    flags = words("run --target length --group site --table", tmp_path / "table.csv", "--out", out)
    run = said(capsys, *flags, "--metric", "auc")
    assert run.code == 0, run.err
    assert run.out.split("\n")[0].split()[-3:] == ["log-loss", "accuracy", "AUC"]
    assert ": AUC 0." in run.out
    assert "Worst by AUC" in run.out
    rows = [row for row in RunFolder(out / "seed-0").rows() if row["metric"] == "auc"]
    assert {row["evaluated"] for row in rows} == set(made["site"])
    path = out / "seed-0" / "summary.json"
    summary = json.loads(path.read_text())
    assert summary["metric"] == "loss"
    assert summary["means"]["auc"]["mean"]["majority"] == 0.5
    mean = summary["means"]["auc"]["mean"]["piaget"]
    assert mean == pytest.approx(np.mean([row["value"] for row in rows]))
    stream = from_table(made.drop(columns="stay"), target="length", group="site")
    told = piaget.PriorLearner.load(out / "seed-0" / "learner").evaluate(stream, "train", metric="auc")
    assert {row["metric"] for row in told} == {"auc"}
    del summary["sha256"], summary["means"]["auc"]
    for group in summary["groups"]:
        del group["auc"]
    write_json(path, summary)
    shown = said(capsys, *flags, "--metric", "auc")
    assert shown.code == 0, shown.err
    assert "The run has no AUC, since an older version of piaget made it; so by log-loss:" in shown.out
    assert said(capsys, *flags).code == said(capsys, "report", out, "--quiet").code == 0


def test_a_score_that_no_group_has(tmp_path, capsys):
    """Groups of 10 rows have 2 for the test: too few for R2."""
    table = tmp_path / "table.csv"
    visits(range(6), 10, seed=1).drop(columns="ill").to_csv(table, index=False)
    command = ("run", "--table", table, "--target", "stay", "--group", "site", "--out", tmp_path / "out")
    run = said(capsys, *command, "--metric", "r2")
    assert run.code == 0, run.err
    assert "No group has R2, which needs 6 test rows that differ; so by RMSE:\n" in run.out
    assert "RMSE" in run.out.split("so by RMSE:")[1]


def test_values_with_intervals(tmp_path, capsys):
    out, new = tmp_path / "out", tmp_path / "new.parquet"
    run = said(capsys, *january(tmp_path, "stay", groups=range(5)), "--out", out, "--metric", "r2")
    assert run.code == 0, run.err
    assert "R2 0." in run.out
    assert " % of the values lie in their intervals of 90 %" in run.out
    assert "\nthe mean " in run.out
    table = visits([0, 40], 200, seed=3)
    table.drop(columns="ill").to_parquet(new)
    assert said(capsys, "predict", out, new, "--out", tmp_path / "p.parquet", "--interval", 0.8).code == 0
    answers = pandas.read_parquet(tmp_path / "p.parquet")
    inside = (answers["stay from"] < table["stay"]) & (table["stay"] < answers["stay to"])
    assert 0.7 < inside[:200].mean() < 0.9
    width = answers["stay to"] - answers["stay from"]
    assert width[200:].mean() > 1.3 * width[:200].mean()
    for flags, message in (
        (["--proba"], "the target is a number: it has intervals"),
        (["--interval", 1.2], "expected a number between 0 and 1"),
    ):
        wrong = said(capsys, "predict", out, new, "--out", tmp_path / "q.csv", *flags)
        assert (wrong.code, message in wrong.err) == (2, True), wrong.err


def test_wrong_input_is_refused_and_changes_nothing(place, capsys, tmp_path):
    out, new = place / "out", tmp_path / "new.csv"
    before = {path: path.read_bytes() for path in (out / "seed-0").rglob("*") if path.is_file()}
    right = visits([1], 10, seed=4).drop(columns="stay")
    without = right.drop(columns="dose")
    tables = {
        "no 'dose'; found site, age, bmi, ward, ill; expected site, ill, age, dose, bmi, ward": without,
        "column 'ill' holds 'perhaps' in row 2; expected 'no', 'yes'": right.assign(
            ill=right["ill"].mask(right.index == 2, "perhaps")
        ),
        "column 'age' holds 'old' in row 3": right.assign(
            age=right["age"].astype(object).mask(right.index == 3, "old")
        ),
    }
    for message, table in tables.items():
        table.to_csv(new, index=False)
        wrong = said(capsys, "learn", out, new)
        assert (wrong.code, message in wrong.err) == (2, True), wrong.err
    for arguments, message in (
        (["learn", out, tmp_path / "nothing.csv"], "does not exist"),
        (["run", "--table", new, "--target", "ill"], "--group is missing: which column of"),
        (["learn", tmp_path / "nothing", new], "does not exist, or is no folder"),
        (["forget", out, "site 99"], "task 'site 99' is not known; known tasks: 'site 0', "),
        (
            ["predict", out, new, "--out", tmp_path / "p.csv", "--interval", 0.9],
            "it has probabilities, no intervals",
        ),
        (["predict", out, new, "--out", tmp_path / "p.csv", "--threshold", 3], "threshold=3.0; expected"),
        (
            [*january(tmp_path), "--out", out, "--metric", "f1"],
            "--metric f1: expected auc, loss",
        ),
        (
            [*january(tmp_path), "--out", tmp_path / "o", "--adaptation", "er", "--structure", "prior"],
            "has its own",
        ),
    ):
        right.to_csv(new, index=False)
        wrong = said(capsys, *arguments)
        assert (wrong.code, message in wrong.err) == (2, True), wrong.err
    assert {path: path.read_bytes() for path in before} == before


def test_a_table_that_grew_or_changed(place, capsys, tmp_path):
    out, grown = place / "out", tmp_path / "grown.csv"
    old = pandas.read_csv(place / "january.csv")
    more = visits([0, 5], 7, seed=8).drop(columns="stay")
    pandas.concat([old, more]).to_csv(grown, index=False)
    learned = said(capsys, "learn", out, grown)
    assert "site 5  updated with 7 rows; 60 rows were learned before" in learned.out
    assert "site 1  nothing new: its 60 rows" in learned.out
    assert "0 new groups, 2 updated, 14 new rows" in learned.out
    rows = [row for row in RunFolder(out / "seed-0").rows() if row["stage"] == "arrival"]
    assert {row["evaluated"] for row in rows} == {"site 0", "site 5"}
    old.assign(age=old["age"].where(old.index != 70, 1.0)).to_csv(grown, index=False)
    changed = said(capsys, "learn", out, grown)
    assert changed.code == 2
    assert "rows of 'site 1' that were learned before" in changed.err
    counted = said(capsys, "learn", out, place / "january.csv", "--again", "--json")
    assert {one["rows"] for one in json.loads(counted.out)["groups"]} == {60}
    pandas.concat([old, more]).to_csv(place / "january.csv", index=False)  # and the run's own command
    path = place / "january.csv"
    run = said(capsys, *words("run --group site --target ill --quiet --table", path), "--out", out)
    assert run.code == 2
    # Its folder was copied, so the path differs, too: that is said first.
    assert "another configuration" in run.err or "piaget learn" in run.err


def test_all_forgotten_and_learned_again(place, capsys, tmp_path):
    out, sites = place / "out", [f"site {i}" for i in range(12)]
    assert "0 groups left" in said(capsys, "forget", out, *sites, "site 0").out
    new = tmp_path / "new.csv"
    visits([0, 9], 30, seed=3).to_csv(new, index=False)
    asked = said(capsys, "predict", out, new, "--out", tmp_path / "p.csv")
    assert (asked.code, "knows no task" in asked.err) == (2, True)
    learned = said(capsys, "learn", out, new)
    assert (learned.code, "site 9  new, 30 rows\n" in learned.out) == (0, True), learned.err
    assert said(capsys, "predict", out, new, "--out", tmp_path / "p.csv").code == 0


def test_what_may_be_a_slip_is_noted(place, capsys, tmp_path):
    out, new = place / "out", tmp_path / "new.csv"
    right = visits([0, 9], 30, seed=3)
    for wrong, text in (
        (
            right.assign(site=right["site"].str.upper()),
            "'SITE 9' are treated as different from 'site 0', 'site 9'",
        ),
        (right.assign(age=""), "column 'age' has no value in 60 of 60 rows"),
        (right.assign(age=right["age"] * 1e6), "is it in the same unit?"),
        (right.assign(age=right["age"] * 12), "column 'age': these rows lie elsewhere"),
        (right.assign(ward=right["ward"].str.upper()), "would be known: the same word, spelt otherwise"),
    ):
        wrong.to_csv(new, index=False)
        noted = said(capsys, "predict", out, new, "--out", tmp_path / "p.csv")
        assert (noted.code, text in noted.err) == (0, True), noted.err


def test_a_dry_run_keeps_nothing(place, capsys, tmp_path):
    out, new = place / "out", tmp_path / "new.csv"
    visits([0, 9], 30, seed=3).drop(columns="stay").to_csv(new, index=False)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    dry = said(capsys, "learn", out, new, "--dry-run")
    assert (dry.code, "would know (nothing was kept)" in dry.out) == (0, True), dry.err
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    learned = said(capsys, "learn", out, new)
    assert learned.out.splitlines()[:-1] == dry.out.splitlines()[:-1]


def test_predictions_do_not_overwrite_the_table(place, capsys, tmp_path):
    out, new = place / "out", tmp_path / "new.csv"
    visits([0], 5, seed=3).drop(columns=["stay", "ill"]).to_csv(new, index=False)
    before, link = new.read_bytes(), tmp_path / "link.csv"
    link.symlink_to(new)
    for target in (new, link, tmp_path / "." / "new.csv"):
        told = said(capsys, "predict", out, new, "--out", target)
        assert (told.code, "that is the table itself; expected another file" in told.err) == (2, True)
    assert new.read_bytes() == before


def test_predictions_of_several_runs(place, capsys, tmp_path):
    out, new = place / "out", tmp_path / "new.csv"
    visits([0], 5, seed=3).to_csv(new, index=False)
    shutil.copytree(out / "seed-0", out / "seed-1")
    for arguments in (("learn", out, new), ("predict", out, new, "--out", tmp_path / "p.csv")):
        told = said(capsys, *arguments)
        assert told.code == 2
        assert f"{out} has 2 runs; give one of them, such as {out / 'seed-0'}" in told.err


def test_other_class_weights_are_another_run(tmp_path, capsys):
    arguments = [*january(tmp_path, groups=range(3)), "--out", tmp_path / "out"]
    assert said(capsys, *arguments).code == 0
    weighted = said(capsys, *arguments, "--class-weight", "balanced")
    assert weighted.code == 2
    assert "class_weight: None there, 'balanced' now" in weighted.err


def test_the_runs_own_table_that_grew(tmp_path, capsys):
    arguments = [*january(tmp_path, groups=range(3)), "--out", tmp_path / "out"]
    assert said(capsys, *arguments).code == 0
    visits(range(4)).drop(columns="stay").to_csv(tmp_path / "january.csv", index=False)
    run = said(capsys, *arguments)
    assert run.code == 2
    assert "task 'site 3' is new. Nothing was changed" in run.err
    assert f"or learn what is new: piaget learn {tmp_path / 'out'} {tmp_path / 'january.csv'}" in run.err


def test_a_run_that_is_killed_begins_anew_and_ends_the_same(trained, tmp_path):
    out = tmp_path / "out"
    arguments = words("run --group site --target ill --table", trained / "january.csv", out=out)
    with subprocess.Popen(command(*arguments), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "comparing with simple models" in line:
                break
        process.send_signal(signal.SIGKILL)
    assert RunFolder(out / "seed-0").status == "interrupted"
    assert main([*arguments, "--quiet"]) == 0
    for name in ("rows.csv", "learner/learner.json", "summary.json"):
        assert (out / "seed-0" / name).read_bytes() == (trained / "out" / "seed-0" / name).read_bytes(), name


@pytest.mark.parametrize("moment", ["write_atomically", "save", "note"])
def test_a_crash_while_a_later_table_is_learned(place, tmp_path, capsys, monkeypatch, moment):
    """Whatever was written: it can be read, and the same command ends as if nothing had happened."""
    table = tmp_path / "february.csv"
    visits([2, 12], 30, seed=1).drop(columns="stay").to_csv(table, index=False)
    out = place / "out" / "seed-0"

    def crash(*arguments, **more):
        if moment != "note" or more.get("next", ...) is None:
            raise KeyboardInterrupt
        return note(*arguments, **more)

    note, calls = run_folder.note, []

    def save(self, folder):
        calls.append(folder)
        if len(calls) == 2:  # the first is beside, for its hash
            raise KeyboardInterrupt
        kept(self, folder)

    kept = piaget.PriorLearner.save
    with monkeypatch.context() as patch:
        if moment == "save":
            patch.setattr(piaget.PriorLearner, "save", save)
        else:
            patch.setattr(table_lives if moment == "write_atomically" else run_folder, moment, crash)
        assert said(capsys, "learn", out, table).code == 130
    assert list(RunFolder(out).rows())
    assert said(capsys, "predict", out, table, "--out", tmp_path / "p.csv").code == 0
    again = said(capsys, "learn", out, table)
    assert again.code == 0, again.err
    arrived = [
        row for row in RunFolder(out).rows() if row["stage"] == "arrival" and row["metric"] == "samples"
    ]
    assert [(row["evaluated"], row["value"]) for row in arrived] == [("site 2", 30.0), ("site 12", 30.0)]
    learner = piaget.PriorLearner.load(RunFolder(out).saved_learner())
    assert learner.lessons["site 2"].rows == 90


@pytest.mark.parametrize("change", ["learn", "forget"])
def test_killed_at_every_change_of_a_file(tmp_path, change):
    """The same command again ends with the same bytes: nothing is lost, nothing learned twice."""
    assert main([*january(tmp_path, groups=range(4), rows=25), "--out", str(tmp_path / "out")]) == 0
    table = tmp_path / "february.csv"
    visits([2, 12], 20, seed=1).drop(columns="stay").to_csv(table, index=False)
    what = [str(table)] if change == "learn" else ["site 3", "site 1"]
    words = [sys.executable, "-m", "tests.killing", str(tmp_path / "out" / "seed-0"), change, "{}", *what]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    alone, *killed = json.loads(done.stdout)
    assert len(killed) > 8
    for moment, found in enumerate(killed):
        assert found == alone, moment


def test_one_process_at_a_time_changes_a_folder(place, tmp_path, capsys):
    out = place / "out" / "seed-0"
    with only_one([out]):
        told = said(capsys, "forget", out, "site 3")
    assert (told.code, "another process is working there" in told.err) == (2, True)
    assert "site 3" in piaget.PriorLearner.load(RunFolder(out).saved_learner()).tasks


def test_broken_off_twice_by_different_commands(place, tmp_path, capsys, monkeypatch):
    """A change that was not noted is noted before the next one begins, which may be broken off, too."""
    out, table = place / "out" / "seed-0", tmp_path / "february.csv"
    visits([2, 12], 30, seed=1).drop(columns="stay").to_csv(table, index=False)
    note = run_folder.note

    def crash(folder, **changes):
        if changes.get("next", ...) is None:
            raise KeyboardInterrupt
        note(folder, **changes)

    with monkeypatch.context() as patch:
        patch.setattr(run_folder, "note", crash)
        assert said(capsys, "learn", out, table).code == 130
    with monkeypatch.context() as patch:
        patch.setattr(table_lives, "write_atomically", lambda *_: crash(None, next=None))
        assert said(capsys, "forget", out, "site 3").code == 130
    assert said(capsys, "predict", out, table, "--out", tmp_path / "p.csv").code == 0
    told = said(capsys, "forget", out, "site 3", "site 3")
    assert (told.code, told.out.count("site 3")) == (0, 1), told.err
    again = said(capsys, "forget", out, "site 3")
    assert (again.code, "forgotten before: 'site 3'" in again.err) == (0, True)
    assert said(capsys, "forget", out, "site 333").code == 2
    assert RunFolder(out).description["forgotten"] == ["site 3"]


def test_groups_of_one_class_are_learned_all_the_same(tmp_path, capsys):
    table = visits(range(4)).drop(columns="stay")
    table.loc[table["site"] == "site 3", "ill"] = "no"
    table.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "out"
    run = said(capsys, *words("run --group site --target ill --table", tmp_path / "t.csv", out=out))
    assert run.code == 0
    assert "'site 3': its target is constant" in run.err
    assert "They are learned with the others" in run.err
    learner = piaget.PriorLearner.load(out / "seed-0" / "learner")
    assert learner.tasks == [f"site {g}" for g in range(4)]
    new = visits([3], 20, seed=5)
    assert learner.predict_proba(new, "site 3")[:, 1].mean() < 0.2
    stream = from_table(table[table["site"] != "site 3"], encoding=learner.encoding())
    with pytest.warns(DataNote, match="test rows of 3 tasks, such as 'site 0', were learned, too"):
        learner.evaluate(stream)


def test_rows_that_the_user_holds_out_are_not_learned(tmp_path, capsys):
    table = visits(range(4)).drop(columns="stay").assign(part=["train", "train", "test"] * 80)
    table.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "out"
    arguments = words(
        "run --split part --group site --target ill --quiet --table", tmp_path / "t.csv", out=out
    )
    assert said(capsys, *arguments).code == 0
    learner = piaget.PriorLearner.load(out / "seed-0" / "learner")
    assert {one.rows for one in learner.lessons.values()} == {40}
    assert "Nothing new" in said(capsys, "learn", out, tmp_path / "t.csv").out
    february = (
        visits(range(4), 8, seed=1)
        .drop(columns="stay")
        .assign(part=["Validation", "train", "test", "train"] * 8)
    )
    february.to_csv(tmp_path / "f.csv", index=False)
    learned = said(capsys, "learn", out, tmp_path / "f.csv")
    assert "8 of 32 rows are test rows by column 'part'; not learned" in learned.err.replace("\n", " ")
    assert "0 new groups, 4 updated, 24 new rows" in learned.out
    february[february["part"] == "test"].to_csv(tmp_path / "f.csv", index=False)
    wrong = said(capsys, "learn", out, tmp_path / "f.csv")
    assert (wrong.code, "all 8 rows are test rows by column 'part'; none to learn" in wrong.err) == (2, True)
    february.assign(part="perhaps").to_csv(tmp_path / "f.csv", index=False)
    wrong = said(capsys, "learn", out, tmp_path / "f.csv")
    assert (wrong.code, "holds 'perhaps' in row 0; expected train, validation or test" in wrong.err) == (
        2,
        True,
    )
    february.drop(columns="part").to_csv(tmp_path / "f.csv", index=False)
    learned = said(capsys, "learn", out, tmp_path / "f.csv")
    assert "no column 'part', which told test rows; all rows are learned" in learned.err.replace("\n", " ")
    assert "8 new rows" in learned.out


def test_at_the_level_of_chance_it_says_so(tmp_path, capsys):
    table = visits(range(6)).drop(columns="stay")
    table["ill"] = np.random.default_rng(0).permutation(table["ill"])
    table.to_csv(tmp_path / "t.csv", index=False)
    arguments = words("run --group site --target ill --quiet --table", tmp_path / "t.csv")
    run = said(capsys, *arguments, "--out", tmp_path / "out")
    assert "At the level of chance: AUC 0." in run.out
    deep = said(capsys, *arguments, "--out", tmp_path / "deep", "--epochs", 2)
    assert "At the level of chance: AUC 0." in deep.out


def test_a_stream_of_the_paper_with_the_prior(tmp_path, capsys):
    run = said(
        capsys, *words("run tests.test_cli_tables:two --structure prior --quiet", out=tmp_path / "out")
    )
    assert run.code == 0, run.err
    assert "mean of 2 groups" in run.out
    wrong = said(capsys, *words("run digits --structure prior --quiet", out=tmp_path / "o"))
    assert wrong.code == 2
    assert "structure 'prior' does not suit these tasks: inputs have shape" in wrong.err


def two(seed):
    """A stream of one's own."""
    return list(from_table(only(frame(groups=2), "ill"), group="site", target="ill", seed=seed))


def test_a_deep_learner_says_what_it_cannot(tmp_path, capsys):
    arguments = january(tmp_path, groups=range(4))
    out = tmp_path / "out"
    assert said(capsys, *arguments, "--out", out, "--epochs", 2).code == 0
    table = tmp_path / "january.csv"
    wrong = said(capsys, "predict", out, table, "--out", tmp_path / "p.csv", "--interval", 0.9)
    assert wrong.code == 2
    assert "of tables that were learned without --structure" in wrong.err
    assert said(capsys, "predict", out, table, "--out", tmp_path / "p.csv", "--proba").code == 0
    assert "probability of" in (tmp_path / "p.csv").read_text().splitlines()[0]


def test_tables_in_python():
    """The same life, without the command line."""
    table = visits(range(6)).drop(columns="stay")
    stream = from_table(table, group="site", target="ill")
    learner = piaget.Learner.for_stream(stream)
    assert isinstance(learner, piaget.PriorLearner)
    with pytest.raises(
        UnknownTaskError, match=r"learn a first table as a stream, learner\.learn_all\(stream\)"
    ):
        learner.learn_table(table)
    learner.learn_all(stream)
    arrivals = learner.learn_table(visits([1, 7], 20, seed=3))
    assert [(one.group, one.known, one.rows) for one in arrivals] == [
        ("site 1", True, 20),
        ("site 7", False, 20),
    ]
    parts = visits([2, 3], 20, seed=5).assign(part=["train", "test", "train", "validation"] * 10)
    with pytest.warns(DataNote, match="10 of 40 rows are test rows by column 'part'; not learned"):
        assert [one.rows for one in learner.learn_table(parts, split="part")] == [15, 15]
    rest = learner.learn_table(table)
    assert {one.rows for one in rest} == {12}  # the test rows
    with pytest.warns(DataNote, match="never seen"):
        answered = predict_table(learner, visits([0, 9], 3, seed=4), proba=True)
    assert list(answered["predicted from"]) == ["own rows"] * 3 + ["other groups"] * 3


def test_texts_for_missing_values_and_truth_values_are_the_same_later(tmp_path, capsys):
    """Whatever a file holds, all its rows are learned once, and predicted without a word."""
    table = visits(range(4), 40).drop(columns="stay")
    rng = np.random.default_rng(0)
    table["smokes"] = rng.choice(["TRUE", "FALSE", ""], len(table))
    table["ward"] = np.where(rng.random(len(table)) < 0.1, "NA", table["ward"])
    table["land"] = rng.choice(["NA", "de", "fr"], len(table))  # named as a category: a country
    table["id"] = [f"{i:05d}" for i in range(len(table))]
    path, out = tmp_path / "t.csv", tmp_path / "out"
    table.to_csv(path, index=False)
    run = words("run --group site --target ill --categorical land --ignore id --quiet --table", path)
    assert said(capsys, *run, "--out", out).code == 0
    learner = piaget.PriorLearner.load(out / "seed-0" / "learner")
    assert learner.known.rows == len(table)
    encoding = learner.encoding()
    assert encoding is not None
    assert {"land=NA", "smokes=True", "ward is missing"} <= set(encoding.inputs)
    predicted = said(capsys, "predict", out, path, "--out", tmp_path / "p.csv")
    assert (predicted.code, "never seen" in predicted.err) == (0, False), predicted.err
    written = pandas.read_csv(tmp_path / "p.csv", dtype=str, keep_default_na=False)
    original = pandas.read_csv(path, dtype=str, keep_default_na=False)
    pandas.testing.assert_frame_equal(written[original.columns], original)  # to the letter
    assert "Nothing new" in said(capsys, "learn", out, path).out


def test_truth_values_as_texts_later():
    table = visits(range(3), 40).drop(columns="stay")
    table["smokes"] = np.random.default_rng(0).random(len(table)) < 0.5
    table["ill"] = table["ill"] == "yes"
    stream = from_table(table, group="site", target="ill")
    learner = piaget.PriorLearner(stream.labels, trees=False)
    learner.learn_all(stream)
    expected = learner.predict_table(table, proba=True)["probability of True"]
    spelt = {True: "TRUE", False: "false"}
    for values in (table["smokes"].astype(str), table["smokes"].map(spelt), table["smokes"].astype("string")):
        later = table.assign(smokes=values)
        assert (learner.predict_table(later, proba=True)["probability of True"] == expected).all()
    later = table.assign(smokes=table["smokes"].map(spelt), ill=table["ill"].map(spelt))
    from_table(later, encoding=stream.encoding)
    assert {one.rows for one in learner.learn_table(later)} == {8}  # those that were held out
    with pytest.raises(DataError, match="column 'smokes' holds 'perhaps' in row 0"):
        learner.predict_table(table.assign(smokes="perhaps"))
    with pytest.raises(DataError, match="column 'age' holds 'True' in row 0"):
        learner.predict_table(table.assign(age="True"))


def test_names_of_columns_that_would_be_the_same(tmp_path, capsys):
    table = visits(range(3), 30).drop(columns="stay").rename(columns={"ill": "from"})
    path, out = tmp_path / "t.csv", tmp_path / "out"
    table.to_csv(path, index=False)
    assert (
        said(capsys, *words("run --group site --target from --quiet --table", path), "--out", out).code == 0
    )
    assert said(capsys, "predict", out, path, "--out", tmp_path / "p.csv").code == 0
    answers = pandas.read_csv(tmp_path / "p.csv")
    assert set(answers["predicted from"]) <= set(table["from"])
    assert set(answers["predicted from (2)"]) == {"own rows"}
    refused = said(capsys, "predict", out, path, "--out", out / "seed-0" / "rows.csv")
    assert (refused.code, "that is the folder of a run" in refused.err) == (2, True)


def test_test_rows_are_a_random_sample():
    """Coins that tell nothing: counting a group's own does no better than chance on its test rows."""
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"g": np.repeat(np.arange(400), 6).astype(str), "x": rng.normal(size=2400)})
    table["coin"] = rng.choice(["heads", "tails"], 2400)

    def counted(**options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataNote)  # groups of one class only
            stream = from_table(table, group="g", target="coin", **options)
        pairs = [(task.train.y, task.test.y) for task in stream if task.test is not None]
        return np.mean([float((own == train.mode().values).double().mean()) for train, own in pairs])

    assert abs(counted() - 0.5) < 0.06
    assert counted(stratified=True) > 0.7


def test_control_characters_of_names_do_not_reach_the_terminal(tmp_path, capsys):
    table = visits(range(3), 30).drop(columns="stay")
    table["site"] = table["site"].replace("site 1", "si\x1b[2J\nte")
    path, out = tmp_path / "t.csv", tmp_path / "out"
    table.to_csv(path, index=False)
    run = said(capsys, *words("run --group site --target ill --each --quiet --table", path), "--out", out)
    new = tmp_path / "new.csv"
    table.assign(age=table["age"] + 0.5).to_csv(new, index=False)
    learned = said(capsys, "learn", out, new)
    for text in (run.out, learned.out, (out / "seed-0" / "log.txt").read_text()):
        assert "\x1b" not in text
    assert "si\\x1b[2J\\nte" in learned.out
