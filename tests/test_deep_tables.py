"""Runs over tables with deep methods, over the years."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load, save

import piaget
from piaget.cli import main
from piaget.files import read_json, write_json
from piaget.lab import deep_tables
from piaget.lab.folder import RunFolder
from tests.commands import said, words
from tests.small import held_out_of, labels_of, validation_of
from tests.tables import visits


def january(folder, target="ill", more="--epochs 4 --structure soft-ordering", **options):
    path = folder / "january.csv"
    visits(**options).drop(columns={"ill": "stay", "stay": "ill"}[target]).to_csv(path, index=False)
    return words(f"run --group site --target {target} --quiet {more} --table", path)


def later(folder, groups, rows=30, seed=1, target="ill", name="february.csv"):
    path = folder / name
    table = visits(groups, rows, seed=seed).drop(columns={"ill": "stay", "stay": "ill"}[target])
    table.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("target", ["ill", "stay"])
def test_a_story_of_months(tmp_path, capsys, target):
    """January is learned, February brings new groups and new rows; predictions, and a group to forget."""
    out = tmp_path / "sites"
    run = said(capsys, *january(tmp_path, target, groups=range(5)), "--out", out)
    assert run.code == 0, run.err
    february = later(tmp_path, [1, 2, 8], target=target)
    dry = said(capsys, "learn", out, february, "--dry-run")
    assert (dry.code, "would know (nothing was kept) 6 groups" in dry.out) == (0, True), dry.err
    assert not list((out / "seed-0").glob(deep_tables.FILES))
    learned = said(capsys, "learn", out, february)
    assert learned.code == 0, learned.err
    assert "site 1  updated with 30 rows; these were answered with" in learned.out
    assert "site 8  new, 30 rows\n" in learned.out
    assert "1 new group, 2 updated, 90 new rows" in learned.out
    assert "learning site 1 (1 of 3)" in learned.err
    again = said(capsys, "learn", out, february)
    assert (again.code, "Nothing new" in again.out) == (0, True)

    (tmp_path / "january.csv").unlink()  # its rows are kept by now
    march = later(tmp_path, [1, 8, 9], seed=2, target=target, name="march.csv")
    learned = said(capsys, "learn", out, march, "--json")
    assert learned.code == 0, learned.err
    told = {one["group"]: (one["known"], one["rows"]) for one in json.loads(learned.out)["groups"]}
    assert told == {"site 1": (True, 30), "site 8": (True, 30), "site 9": (False, 30)}
    place = RunFolder(out / "seed-0")
    book = deep_tables.read_book(place, piaget.Learner.load(place.saved_learner()))
    assert [len(book.groups[f"site {i}"].y) for i in (0, 1, 8)] == [60, 120, 60]
    assert [int(book.groups["site 1"].batch.max())] == [2]

    asked = said(capsys, "predict", out, march, "--out", tmp_path / "p.csv")
    assert asked.code == 0, asked.err
    forgotten = said(capsys, "forget", out, "site 8")
    assert (forgotten.code, "stays in the components" in forgotten.out) == (0, True)
    learner = piaget.Learner.load(out / "seed-0" / "learner")
    assert "site 8" not in learner.tasks
    place = RunFolder(out / "seed-0")
    assert "site 8" not in deep_tables.read_book(place, learner).groups
    assert len(list(place.path.glob(deep_tables.FILES))) == 1
    assert [row["evaluated"] for row in place.rows() if row["metric"] == "samples"] == [
        "site 1", "site 2", "site 8", "site 1", "site 8", "site 9",
    ]  # fmt: skip
    january(tmp_path, target, groups=range(5))
    reported = said(capsys, "report", out)
    assert (reported.code, "in the component explorer are too good" in reported.err) == (0, True)


def test_rows_keep_their_part(tmp_path, capsys):
    """What was trained on is never validated on, and the other way round."""
    out = tmp_path / "out"
    assert said(capsys, *january(tmp_path, groups=range(4)), "--out", out).code == 0
    run = RunFolder(out / "seed-0")
    learner = piaget.Learner.load(run.saved_learner())
    book = deep_tables.read_book(run, learner)
    stream = piaget.streams.from_table(
        tmp_path / "january.csv", group="site", target="ill", stratified=True, seed=0
    )
    for task in stream:
        checked = validation_of(task)
        x, y, validation, _ = book.groups[task.name]
        assert torch.equal(x[: len(task.train)], task.train.x.float())
        assert not validation[: len(task.train)].any()
        there = slice(len(task.train), len(task.train) + len(checked))
        assert torch.equal(x[there], checked.x.float())
        assert validation[there].all()
        assert 0 < validation[there.stop :].sum() < len(held_out_of(task))  # those for tests are shared out
        labels = [book.labels[i] for i in y[: len(task.train)]]
        assert labels == [labels_of(task)[i] for i in task.train.y]
    new = torch.zeros(8, x.shape[1]), torch.tensor([0, 1] * 4)
    more = book.with_rows("site 0", new, seed=0).groups["site 0"]
    assert torch.equal(more.validation[:-8], book.groups["site 0"].validation)
    assert int(more.validation[-8:].sum()) == 2  # one of each class


def test_test_rows_that_the_user_chose_stay_test_rows(tmp_path, capsys):
    table = visits(range(4)).drop(columns="stay")
    table["part"] = ["train", "train", "validation", "test"] * 60
    table.to_csv(tmp_path / "january.csv", index=False)
    out = tmp_path / "out"
    run = words(
        "run --group site --target ill --split part --quiet --epochs 2 --table", tmp_path / "january.csv"
    )
    assert said(capsys, *run, "--out", out).code == 0
    place = RunFolder(out / "seed-0")
    book = deep_tables.read_book(place, piaget.Learner.load(place.saved_learner()))
    assert [len(rows.y) for rows in book.groups.values()] == [45] * 4
    assert "Nothing new" in said(capsys, "learn", out, tmp_path / "january.csv").out
    february = visits([0, 1], 20, seed=1).drop(columns="stay").assign(part=["train", "test"] * 20)
    february.to_csv(tmp_path / "february.csv", index=False)
    learned = said(capsys, "learn", out, tmp_path / "february.csv")
    assert "0 new groups, 2 updated, 20 new rows" in learned.out, learned.err


def test_what_cannot_be_learned_is_said(tmp_path, capsys):
    out = tmp_path / "out"
    table = visits(range(4)).drop(columns="stay")
    table.loc[table.index[:5], "ill"] = "perhaps"  # a class that site 0 alone has
    table.to_csv(tmp_path / "january.csv", index=False)
    arguments = words("run --group site --target ill --quiet --epochs 2 --table", tmp_path / "january.csv")
    assert said(capsys, *arguments, "--out", out).code == 0
    new = visits([1, 7], 20, seed=2).drop(columns="stay")
    new.loc[new["site"] == "site 7", "ill"] = "yes"
    new.loc[0, "ill"] = "perhaps"
    new.loc[new.index[-2:], ["site", "ill"]] = [["site 8", "yes"], ["site 8", "no"]]
    new.to_csv(tmp_path / "february.csv", index=False)
    told = said(capsys, "learn", out, tmp_path / "february.csv")
    assert told.code == 0
    assert "site 1  left out: class 'perhaps' is new in this group" in told.out
    assert "site 7  left out: " in told.out
    assert "site 8  left out: 2 rows, too few for some to be for validation: " in told.out
    assert "0 new groups, 0 updated, 3 left out, 0 new rows" in told.out
    plain = json.loads(said(capsys, "learn", out, tmp_path / "february.csv", "--json").out)["groups"]
    assert [(one["group"], one["rows"], bool(one["left_out"])) for one in plain] == [
        ("site 1", 0, True), ("site 7", 0, True), ("site 8", 0, True),
    ]  # fmt: skip
    (tmp_path / "january.csv").write_text((tmp_path / "january.csv").read_text().replace("red", "green"))
    told = said(capsys, "learn", out, later(tmp_path, [2], 20, seed=3))
    assert told.code == 2
    assert "the first table is needed once more, as it was" in told.err


def test_a_group_that_diverges_is_left_out(tmp_path, capsys):
    """And those after it are learned."""
    out = tmp_path / "out"
    assert said(capsys, *january(tmp_path, "stay", groups=range(4)), "--out", out).code == 0
    february = visits([0, 1, 7, 8], 20, seed=2).drop(columns="ill")
    february.loc[february["site"].isin(["site 0", "site 7"]), "stay"] *= 1e25
    february.to_csv(tmp_path / "february.csv", index=False)
    told = said(capsys, "learn", out, tmp_path / "february.csv")
    assert told.code == 1, told.err
    log = (out / "seed-0" / "log.txt").read_text()
    assert "site 7: left out: diverged" in log
    assert "site 0  left out: answers for its new rows, or their errors, are not finite" in told.out
    assert "site 7  left out: diverged: " in told.out
    assert "1 new group, 1 updated, 2 left out, 40 new rows" in told.out
    learner = piaget.Learner.load(out / "seed-0" / "learner")
    assert learner.tasks == [f"site {i}" for i in (0, 1, 2, 3, 8)]
    book = deep_tables.read_book(RunFolder(out / "seed-0"), learner)
    assert [len(book.groups[group].y) for group in learner.tasks] == [60, 80, 60, 60, 20]


def test_other_runs_learn_no_table(tmp_path, capsys):
    out = tmp_path / "out"
    run = words("run digits --seeds 1 --quiet --epochs 2 --width 4 --option tasks=4")
    assert said(capsys, *run, "--out", out).code == 0
    wrong = said(capsys, "learn", out, later(tmp_path, [1]))
    assert (wrong.code, "is a run over digits; expected one over a table" in wrong.err) == (2, True), (
        wrong.err
    )


def test_damaged_rows_are_noticed(tmp_path, capsys):
    out = tmp_path / "out"
    assert said(capsys, *january(tmp_path, groups=range(4)), "--out", out).code == 0
    assert said(capsys, "learn", out, later(tmp_path, [1])).code == 0
    (path,) = (out / "seed-0").glob(deep_tables.FILES)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    wrong = said(capsys, "learn", out, later(tmp_path, [2], seed=4))
    assert (wrong.code, "is not the file that was written there" in wrong.err) == (2, True)


def test_rows_that_cannot_be_are_refused(tmp_path, capsys):
    """Whatever run.json and the file say, with the right hash: an error in words."""
    out = tmp_path / "out"
    assert said(capsys, *january(tmp_path, groups=range(4), rows=25), "--out", out).code == 0
    assert said(capsys, "learn", out, later(tmp_path, [1])).code == 0
    place = out / "seed-0"
    (path,) = place.glob(deep_tables.FILES)
    description, raw = read_json(place / "run.json"), path.read_bytes()
    march = later(tmp_path, [1], seed=4, name="march.csv")

    def refused(tensors=None, **fields):
        written = raw if tensors is None else save(load(raw) | tensors)
        path.write_bytes(written)
        described = description["learned_rows"] | {"sha256": hashlib.sha256(written).hexdigest()} | fields
        write_json(place / "run.json", description | {"learned_rows": described})
        told = [said(capsys, "learn", out, march), said(capsys, "forget", out, "site 1")]
        assert [(one.code, "Traceback" in one.err) for one in told] == [(2, False)] * 2, told
        return told[0].err

    rows = load(raw)
    for name, wrong in {
        "x": rows["0/x"][:, 1:].contiguous(),
        "y": rows["0/y"] + 2,
        "validation": rows["0/validation"][1:],
        "batch": rows["0/batch"].float(),
    }.items():
        assert "does not hold the rows that 'site 0' was learned from" in refused({f"0/{name}": wrong})
    assert "does not hold" in refused({"0/y": torch.tensor(0)})
    assert "does not hold" in refused({"0/x": rows["0/x"] * torch.inf})
    assert "does not hold" in refused(groups=["site 1", "site 0", "site 2"])
    assert "does not hold" in refused(labels=["no", "never"])
    assert "is damaged" in refused(groups=["site 0", "site 1", "site 2", "site 3", "site 4"])
    assert "not the file" in refused(file="../../../etc/hostname")
    assert "expected str" in refused(file=5)
    assert "expected file, sha256, labels, groups" in refused(more=1)


@pytest.mark.parametrize("change", ["learn", "forget"])
def test_killed_at_every_change_of_a_file(tmp_path, change):
    """The same command again ends with the same bytes: nothing is lost, nothing learned twice."""
    more = "--epochs 2 --width 4 --structure soft-ordering"
    arguments = [*january(tmp_path, groups=range(4), rows=25, more=more), "--out", str(tmp_path / "out")]
    assert main(arguments) == 0
    if change == "forget":
        assert main(["learn", str(tmp_path / "out"), str(later(tmp_path, [3], 20))]) == 0
    what = [str(later(tmp_path, [2, 12], 20))] if change == "learn" else ["site 3", "site 1"]
    command = [sys.executable, "-m", "tests.killing", str(tmp_path / "out" / "seed-0"), change, "{}", *what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    alone, *killed = json.loads(done.stdout)
    assert len(killed) > 8
    for moment, found in enumerate(killed):
        assert found == alone, moment


def test_the_command_of_the_run_again_after_forgetting(tmp_path, capsys):
    """It is done, and says so; a report still reads it, also when all groups are forgotten."""
    run = [*january(tmp_path, groups=range(4), more="--epochs 2 --width 4 --structure soft-ordering")]
    run += ["--out", str(tmp_path / "out")]
    assert said(capsys, *run).code == 0
    for groups in (["site 1"], ["site 0", "site 2", "site 3"]):
        assert said(capsys, "forget", tmp_path / "out", *groups).code == 0
        again = said(capsys, *run)
        assert again.code == 0, again.err
    reported = said(capsys, "report", tmp_path / "out")
    assert (reported.code, "they were forgotten" in reported.err) == (0, True), reported.err


def test_a_new_column_is_noted(tmp_path, capsys):
    out = tmp_path / "out"
    assert said(capsys, *january(tmp_path, groups=range(4)), "--out", out).code == 0
    table = visits([1], 20, seed=1).drop(columns="stay").assign(mood="fine")
    table.to_csv(tmp_path / "february.csv", index=False)
    learned = said(capsys, "learn", out, tmp_path / "february.csv", "--dry-run")
    assert "columns that were not there before are not used: 'mood'" in learned.err


def test_copies_of_rows_keep_their_part(tmp_path, capsys):
    """Also if all rows are to count again: what was trained on tells nothing as a validation row."""
    out = tmp_path / "out"
    assert said(capsys, *january(tmp_path, groups=range(4)), "--out", out).code == 0
    place = RunFolder(out / "seed-0")
    first = deep_tables.read_book(place, piaget.Learner.load(place.saved_learner()))
    assert said(capsys, "learn", out, tmp_path / "january.csv", "--again").code == 0
    place = RunFolder(out / "seed-0")
    book = deep_tables.read_book(place, piaget.Learner.load(place.saved_learner()))
    for group, rows in book.groups.items():
        assert len(rows.y) == 2 * len(first.groups[group].y) == 120
        parts = [{tuple(row) for row in rows.x[rows.validation == part].tolist()} for part in (False, True)]
        assert not parts[0] & parts[1]
    alike = torch.zeros(40, 2), torch.tensor([0, 1] * 20)  # by chance: these are other cases
    often = deep_tables.Book((0, 1), {}).with_rows("a", alike, 0).with_rows("a", alike, 0).groups["a"]
    assert often.validation[:40].sum() == often.validation[40:].sum() == 10


def test_the_first_table_may_lack_what_was_forgotten(tmp_path, capsys):
    """Its rows of other groups are read as they were, though columns would be scaled otherwise now. Classes
    are those of the whole table, also of groups that could not be learned."""
    table = visits(range(5)).drop(columns="stay")
    table.loc[table["site"] == "site 4", "ill"] = "perhaps"
    path, out = tmp_path / "january.csv", tmp_path / "out"
    table.to_csv(path, index=False)
    run = words("run --group site --target ill --quiet --epochs 2 --width 4 --ignore bmi --table", path)
    assert said(capsys, *run, "--structure", "soft-ordering", "--out", out).code == 0
    place = RunFolder(out / "seed-0")
    before = deep_tables.read_book(place, piaget.Learner.load(place.saved_learner()))
    assert before.labels == ("no", "perhaps", "yes")
    assert said(capsys, "forget", out, "site 1").code == 0
    table[table["site"] != "site 1"].to_csv(path, index=False)
    new = visits([2, 4, 6], 20, seed=2).drop(columns="stay")
    new["ill"] = new["ill"].where(new["site"] != "site 4", new["ill"].replace("no", "perhaps"))
    new.to_csv(tmp_path / "february.csv", index=False)
    learned = said(capsys, "learn", out, tmp_path / "february.csv")
    assert learned.code == 0, learned.err
    assert "cannot be a task" not in learned.err  # that was said when the table was read
    place = RunFolder(out / "seed-0")
    learner = piaget.Learner.load(place.saved_learner())
    book = deep_tables.read_book(place, learner)
    assert torch.equal(book.groups["site 0"].x, before.groups["site 0"].x)
    assert torch.equal(book.groups["site 0"].validation, before.groups["site 0"].validation)
    assert learner.record("site 4").labels == ("perhaps", "yes")
    assert learner.tasks == ["site 0", "site 2", "site 3", "site 4", "site 6"]
