"""What a run keeps is verified before it is used: damage and changed data are noticed."""

import importlib
import json
import os
import random
import shutil
import sys
import traceback
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from piaget.cli import main
from piaget.data.tasks import Split
from piaget.errors import DataError, DataNote, LoadError
from piaget.files import read_json, write_json
from piaget.lab import runs as lab
from piaget.lab.final_table import escaped
from piaget.lab.folder import RunFolder, note, read_description
from piaget.lab.jobs import read_cohorts
from piaget.lab.making import make
from piaget.learner import Learner
from piaget.report import forms
from piaget.report.reading import read
from tests.commands import said, words
from tests.test_faults import FORK, configuration, contents, go

SEEDS = [0, 1]


@pytest.fixture(scope="module")
def config():
    return configuration(epochs=3, every=1, options={"tasks": 5, "train_size": 20})


@pytest.fixture(scope="module")
def whole(tmp_path_factory, config):
    """A run that nobody disturbs."""
    out = tmp_path_factory.mktemp("whole")
    go(out, config, SEEDS)
    return out


def stopped(work, after=0, at="piaget.lab.keeping.Keeper.due"):
    """Does something, which is stopped when it calls a function once more than so many times."""
    left = iter(range(after))

    def called(*arguments):
        return next(left, None) is not None or pytest.fail("stop here")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(at, called)
        with pytest.raises(pytest.fail.Exception, match="stop here"):
            work()


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory, config):
    """The same, interrupted at its fifth task: with two checkpoints."""
    out = tmp_path_factory.mktemp("interrupted")
    stopped(lambda: go(out, config, SEEDS), after=5)
    place = out / "seed-0" / "checkpoint"
    assert {"checkpoint.json", "checkpoint-old.json"} <= {path.name for path in place.iterdir()}
    assert len(list(place.glob("*.safetensors"))) == 2
    return out


def damaged(path: Path, rng: random.Random) -> str:
    """A flipped bit, a lost end, an end of zeros, or nothing but zeros."""
    data = bytearray(path.read_bytes())
    kind, at = (
        rng.choice(["flipped", "flipped", "cut off", "zeros at the end", "zeros"]),
        rng.randrange(len(data)),
    )
    if kind == "flipped":
        data[at] ^= 1 << rng.randrange(8)
    elif kind == "cut off":
        del data[at:]
    else:
        start = at if kind == "zeros at the end" else 0
        data[start:] = bytes(len(data) - start)
    path.write_bytes(data)
    return f"{path.name}: {kind} at {at}"


def refused(work):
    """What an error says of damage. None: there was none."""
    try:
        work()
    except LoadError as error:
        return str(error)
    return None


def copied(source: Path, tmp_path: Path, number: int) -> Path:
    return Path(shutil.copytree(source, tmp_path / str(number)))


FILES = ("seed-0/rows.csv", "seed-1/rows.csv", "seed-1/run.json", "seed-0/checkpoint/*")


@pytest.mark.parametrize("pattern", FILES)
def test_a_damaged_byte_never_gives_another_result(pattern, interrupted, whole, config, tmp_path):
    rng, expected, outcomes = random.Random(pattern), contents(whole, SEEDS), []
    for number in range(14):
        out = copied(interrupted, tmp_path, number)
        path = rng.choice(sorted(out.glob(pattern)))
        told = damaged(path, rng)
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always", DataNote)
            refusal = refused(partial(go, out, config, SEEDS))
        if refusal is None:
            assert contents(out, SEEDS) == expected, told
            outcomes.append("went on from before" if notes else "went on")
        else:
            assert path.name in refusal, told
            assert "emove" in refusal, told  # what to do
            outcomes.append("refused")
    assert len(set(outcomes)) > 1 or pattern.endswith("run.json"), outcomes


def ends_the_same_without_the_last_state(out, config, whole):
    place = out / "seed-0" / "checkpoint"
    last = read_json(place / "checkpoint.json")["tensors"]["file"]
    (place / last).write_bytes(b"")
    with pytest.warns(DataNote, match=r"goes on from the state kept before that"):
        go(out, config, SEEDS)
    assert contents(out, SEEDS) == contents(whole, SEEDS)


def test_the_state_before_is_used(interrupted, whole, config, tmp_path):
    """And it is not lost when the next one is kept."""
    ends_the_same_without_the_last_state(copied(interrupted, tmp_path, 0), config, whole)


@pytest.mark.parametrize("after", [0, 2, 4])
def test_the_two_states_share_nothing(after, config, whole, tmp_path):
    """Also where the second one has the same tensors, at the end of a task."""
    stopped(lambda: go(tmp_path, config, SEEDS), after)
    ends_the_same_without_the_last_state(tmp_path, config, whole)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [("*.json", "is no JSON"), ("*.safetensors", "before that is no better")],
)
def test_both_states_damaged(pattern, reason, interrupted, whole, config, tmp_path):
    out = copied(interrupted, tmp_path, 0)
    place = out / "seed-0" / "checkpoint"
    for path in place.glob(pattern):
        path.write_text("{")
    with pytest.raises(LoadError, match=f"{reason}.*What was learned is lost: remove {place} "):
        go(out, config, SEEDS)
    shutil.rmtree(place)
    go(out, config, SEEDS)
    assert contents(out, SEEDS) == contents(whole, SEEDS)


@pytest.mark.parametrize("name", ["rows.csv", "run.json", "learner/*"])
def test_a_damaged_finished_run(name, whole, tmp_path):
    """Its rows and its learner are those that were written, or none."""
    rng = random.Random(name)
    rows, tasks = list(RunFolder(whole / "seed-0").rows()), Learner.load(whole / "seed-0" / "learner").tasks
    noticed = 0
    for number in range(25):
        folder = copied(whole / "seed-0", tmp_path, number)
        path = rng.choice(sorted(folder.glob(name)))
        told = damaged(path, rng)
        same: list[bool] = []

        def look(folder=folder, same=same):
            same.append(list(RunFolder(folder).rows()) == rows)
            same.append(Learner.load(folder / "learner").tasks == tasks)

        refusal = refused(look)
        assert all(same), told
        if refusal is not None:
            assert path.name in refusal, told
            noticed += 1
    assert noticed >= 24  # of flips, one may hit the name of the seal, which is not missed


def test_rows_behind_the_end(whole, tmp_path):
    out = copied(whole, tmp_path, 0)
    rows = out / "seed-0" / "rows.csv"
    rows.write_bytes(rows.read_bytes() + rows.read_bytes().splitlines(keepends=True)[-1])
    with pytest.raises(LoadError, match=r"rows\.csv was edited: it has more than"):
        list(RunFolder(out / "seed-0").rows())


def test_rows_that_are_zeros(whole, tmp_path):
    """Also where nothing says what they were: of version 0.1."""
    out = copied(whole, tmp_path, 0)
    note(out / "seed-0", rows=None)
    (out / "seed-0" / "rows.csv").write_bytes(bytes(500) + b"\n")
    with pytest.raises(LoadError, match="is no file of rows"):
        list(RunFolder(out / "seed-0").rows())
    assert sum("expected stream, method" in text for text in read([out]).notes) == 1


def test_one_damaged_run_does_not_keep_the_others(interrupted, tmp_path, capsys):
    out = copied(interrupted, tmp_path, 0)
    shutil.copytree(out, tmp_path / "second")
    for odd in (b"{", b"[" * 100_000, b"[]", b'{"status": 5, "configuration": []}', b"\xff\xfe"):
        (out / "seed-1" / "run.json").write_bytes(odd)
        (tmp_path / "sweep.json").write_bytes(odd)
        code, text, _ = said(capsys, "status", tmp_path, "--json")
        assert code == 0
        assert json.loads(text)["counts"] == {"damaged": 2, "interrupted": 3}
        assert (
            sum("is damaged" in note or "does not describe" in note for note in read([tmp_path]).notes) == 1
        )


def test_what_is_left_of_a_command_goes_on(whole, config, tmp_path, capsys):
    out = tmp_path / "out"
    go(out, config, [0])
    stopped(lambda: go(out, config, [2]))
    (out / "seed-0" / "run.json").write_text("{")
    code, _, err = said(capsys, "resume", out, "--quiet")
    assert code == 1
    assert f"left out: {out}/seed-0/run.json is damaged" in err
    assert read_description(out / "seed-2")["status"] == "done"


def test_a_done_run_whose_rows_are_damaged_is_left_out(whole, tmp_path, capsys):
    out = copied(whole, tmp_path, 0)
    (out / "seed-0" / "rows.csv").write_text("")
    code, text, err = said(capsys, "resume", out)
    assert code == 1
    assert f"Remove {out}/seed-0 and give the command that made it again" in err
    assert "seed 1" in text


def test_a_run_that_is_finished_again_is_not_damaged(whole, config, tmp_path):
    """Killed when one run of two was noted as done, and again before its rows were written again."""
    stopped(lambda: go(tmp_path, config, SEEDS), at="piaget.lab.kept.remove")
    note(tmp_path / "seed-1", status="running", rows=None)
    stopped(lambda: go(tmp_path, config, SEEDS), at="piaget.scoring.component_rows.parts")
    assert list(RunFolder(tmp_path / "seed-0").rows())
    go(tmp_path, config, SEEDS)
    assert contents(tmp_path, SEEDS) == contents(whole, SEEDS)


# --- sealed files ---------------------------------------------------------------------------------------


def test_every_flipped_bit_of_a_sealed_file_is_noticed(tmp_path):
    path, data = tmp_path / "a.json", {"a": [1, 2.5, None], "ü": {"b": "text", "c": float("inf")}}
    write_json(path, data)
    assert read_json(path) == data
    text = path.read_bytes()
    json.loads(text)  # it is still JSON for everybody
    name = range(text.rfind(b'"sha256"'), text.rfind(b'"sha256"') + 8)
    for place in range(len(text)):
        for bit in range(8):
            flipped = bytearray(text)
            flipped[place] ^= 1 << bit
            path.write_bytes(flipped)
            if place in name:  # the name of the seal: nothing else is damaged
                continue
            with pytest.raises(LoadError, match=r"a\.json"):
                read_json(path)


def test_a_damaged_sweep_says_what_to_do(tmp_path, capsys):
    sweep = words("sweep digits --algorithms joint --seeds 1 --epochs 1 --option tasks=4 --workers 1 --quiet")
    assert main([*sweep, "--out", str(tmp_path)]) == 0
    rows = next(tmp_path.rglob("rows.csv")).read_bytes()
    file = tmp_path / "sweep.json"
    file.write_bytes(file.read_bytes().replace(b'"digits"', b'"digitt"'))
    with pytest.raises(LoadError, match="Remove this file and give the command of the sweep again"):
        read_cohorts(tmp_path)
    assert said(capsys, "resume", tmp_path).code == 2
    file.unlink()
    assert main([*sweep, "--out", str(tmp_path)]) == 0
    assert next(tmp_path.rglob("rows.csv")).read_bytes() == rows


@pytest.mark.parametrize(
    "odd",
    [
        {"other": 1},
        {"cohorts": 5},
        {"cohorts": [5]},
        {"cohorts": [{"method": {}}]},
        {"cohorts": [{"seeds": "a"}]},
    ],
)
def test_odd_sweeps(odd, tmp_path):
    write_json(tmp_path / "sweep.json", odd)
    with pytest.raises(LoadError, match=r"sweep\.json does not describe a sweep"):
        read_cohorts(tmp_path)


# --- data that changed ----------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"site": np.repeat(["a", "b", "c", "d"], 30), "x": rng.normal(size=120)})
    rows["y"] = (rows["x"] + 0.1 * rng.normal(size=120) > 0).astype(int)
    rows.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


RUN = words("run --group site --target y --epochs 2 --quiet --table")


def test_a_table_that_has_grown(table, tmp_path, capsys):
    command = [*RUN, table, "--out", tmp_path / "out"]
    assert said(capsys, *command).code == 0
    assert said(capsys, *command).code == 0
    kept = contents(tmp_path / "out", [0])
    with open(table, "a", encoding="utf-8") as handle:
        handle.write("a,0.5,1\na,-0.5,0\n")
    code, _, err = said(capsys, *command)
    assert code == 2
    assert "the data is not what the run finished with: task 'a'" in err
    assert "give another folder" in err
    assert contents(tmp_path / "out", [0]) == kept


@pytest.mark.parametrize("part", ["train", "validation", "test"])
def test_data_that_changed_before_resuming(part, config, tmp_path):
    """Of a task that was not learned yet, too, and in any of its parts."""
    learners, streams = lab_parts(config)
    stopped(lambda: lab.run(learners, streams, tmp_path, config))
    learners, streams = lab_parts(config)
    last = streams[0][4]
    getattr(last, part).y[0] ^= 1
    with pytest.raises(DataError, match=f"not what the run began with: task {last.name!r} has other data"):
        lab.run(learners, streams, tmp_path, config)
    learners, streams = lab_parts(config)
    with pytest.raises(DataError, match="is gone"):
        lab.run(learners, [streams[0][:4]], tmp_path, config)
    learners, streams = lab_parts(config)
    lab.run(learners, streams, tmp_path, config)


def test_data_that_changed_without_a_description(config, tmp_path):
    """The checkpoint has fingerprints, too: run.json may have been removed, since it was damaged."""
    learners, streams = lab_parts(config)
    stopped(lambda: lab.run(learners, streams, tmp_path, config))
    (tmp_path / "seed-0" / "run.json").unlink()
    learners, streams = lab_parts(config)
    assert streams[0][4].test is not None
    streams[0][4].test.y[0] ^= 1
    with pytest.raises(DataError, match="not what the run began with"):
        lab.run(learners, streams, tmp_path, config)


def lab_parts(config):
    """A learner, and a stream whose tasks are made once."""
    learners, streams = make(config, [0], None)
    return learners, [list(streams[0])]


def test_a_sweep_whose_data_changed(tmp_path, capsys):
    """Runs that are done came from other data than those that are left would."""
    sweep = words("sweep digits --algorithms joint --epochs 1 --workers 1 --quiet --option tasks=4")
    assert said(capsys, *sweep, "--seeds", "1", "--out", tmp_path).code == 0
    folder = next(tmp_path.rglob("run.json")).parent
    data = read_description(folder)["data"]
    note(folder, data=data | {next(iter(data)): "2:another"})
    others = words("sweep digits --algorithms no-components --epochs 1 --workers 1 --quiet --option tasks=4")
    for command in ([*sweep, "--seeds", "2"], [*others, "--seeds", "1"], [*sweep, "--seeds", "5-6"]):
        code, _, err = said(capsys, *command, "--out", tmp_path)
        assert code == 2, command
        assert "the data is not what the run finished with" in err


# --- reading what cannot be written ---------------------------------------------------------------------


def _as_nobody(arguments, said):
    os.setegid(65534)
    os.seteuid(65534)
    with open(said, "w", encoding="utf-8") as handle:
        sys.stdout = sys.stderr = handle
        try:
            code = main([str(argument) for argument in arguments])
        except BaseException:
            traceback.print_exc()
            code = 1
    os._exit(code)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be somebody else")
def test_a_read_only_run_can_be_read(whole, tmp_path, capsys):
    out, anywhere = copied(whole, tmp_path, 0), tmp_path / "anywhere"
    above = [path for path in tmp_path.parents if "pytest" in str(path)]
    for path in [*above, tmp_path, out, *out.rglob("*")]:
        path.chmod(0o755)
    anywhere.mkdir()
    anywhere.chmod(0o777)
    commands = (("status", "2 done", 0), ("resume", "seed 1", 0), ("report", "Permission denied", 2))
    for command, expected, expected_code in commands:
        # Whoever reads it then may not be able to import what is needed.
        importlib.import_module("piaget.report.write")
        assert expected_code or said(capsys, command, out).code == 0
        process = FORK.Process(target=_as_nobody, args=([command, out], anywhere / "said"))
        process.start()
        process.join(120)
        text = (anywhere / "said").read_text()
        assert (process.exitcode, expected in text, "Traceback" in text) == (expected_code, True, False), text


# --- names in tables ------------------------------------------------------------------------------------


def test_names_in_tables():
    table = forms.Table("t", "a|b", "<b>", ["=1+1", "n"])
    table.add(0, "=HYPERLINK(1)", forms.number(-1.5))
    table.add(1, "a|b\n| x |", forms.number(2.0))
    assert "'=HYPERLINK(1)" in forms.as_csv(table)
    assert forms.as_csv(table).splitlines()[0] == "'=1+1,n"
    assert ",-1.5" in forms.as_csv(table)  # a number stays one
    marked = forms.as_markdown(table)
    assert r"| a\|b \| x \| | 2.0 |" in marked
    assert r"## a\|b" in marked
    assert escaped("two_words _and_ *more*") == r"two_words \_and\_ \*more\*"


# --- runs that diverge ----------------------------------------------------------------------------------

DIVERGING = words(
    "run digits --epochs 3 --every 1 --option tasks=5 --option train_size=20 --quiet --seeds 0-2"
)


def test_a_rate_that_is_too_large(tmp_path, capsys):
    code, _, err = said(capsys, *DIVERGING, "--learning-rate", "1e30", "--out", tmp_path)
    assert code == 1
    assert err.count("failed: diverged:") == 3
    assert "learning_rate" in err
    assert "Traceback" not in err
    code, text, _ = said(capsys, "status", tmp_path, "--json")
    assert json.loads(text)["counts"] == {"failed: diverged": 3}
    assert not list(tmp_path.rglob("checkpoint"))
    began = (tmp_path / "seed-0" / "log.txt").read_text()
    assert said(capsys, *DIVERGING, "--learning-rate", "1e30", "--out", tmp_path).code == 1
    assert (tmp_path / "seed-0" / "log.txt").read_text() == began  # not tried again


def diverging(config):
    """The second run meets inputs as its fourth task, of which three are initial, that no network bears."""
    learners, streams = make(config, [0, 1, 2], None)
    tasks = [list(stream) for stream in streams]
    task = tasks[1][3]
    tasks[1][3] = replace(task, train=Split(task.train.x.float() * 1e37, task.train.y))
    return learners, tasks


def test_one_of_three_diverges(tmp_path):
    """The others go on, with the same bytes after an interruption."""
    config = configuration(
        epochs=4, every=1, options={"tasks": 5, "train_size": 20}, settings={"initial_tasks": 3}
    )
    learners, streams = diverging(config)
    lab.run(learners, streams, tmp_path / "whole", config)
    statuses = [read_description(tmp_path / "whole" / f"seed-{seed}")["status"] for seed in range(3)]
    assert statuses == ["done", "failed: diverged", "done"]
    lost = read_description(tmp_path / "whole" / "seed-1")
    assert "digits-03" in lost["error"]
    assert {row["trained"] for row in RunFolder(tmp_path / "whole" / "seed-1").rows()} == {"digits-02"}
    before = []
    for after in (3, 5, 9):  # times that something was kept: before it diverged, and afterwards
        out = tmp_path / str(after)
        learners, streams = diverging(config)
        stopped(partial(lab.run, learners, streams, out, config), after)
        far = RunFolder(out / "seed-0").how_far
        before.append(far is not None and not far.diverged)
        learners, streams = diverging(config)
        lab.run(learners, streams, out, config)
        assert contents(out, [0, 2]) == contents(tmp_path / "whole", [0, 2])
        assert read_description(out / "seed-1")["error"] == lost["error"]
        rows = [(where / "seed-1" / "rows.csv").read_bytes() for where in (out, tmp_path / "whole")]
        assert rows[0] == rows[1]
    assert True in before
    assert False in before


def test_the_learner_of_another_run_is_noticed(whole, tmp_path, capsys, table):
    out = copied(whole, tmp_path, 0)
    shutil.rmtree(out / "seed-0" / "learner")
    shutil.copytree(out / "seed-1" / "learner", out / "seed-0" / "learner")
    with pytest.raises(LoadError, match="is not what the run saved"):
        RunFolder(out / "seed-0").saved_learner()
    code, _, err = said(capsys, "predict", out / "seed-0", table, "--out", tmp_path / "p.csv")
    assert code == 2
    assert f"The run is done: remove {out}/seed-0 and give the command that made it again" in err
