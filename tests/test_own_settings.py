"""Deep methods over a table, by the command line: settings as in Python, and runs of older versions."""

import json
import shlex

import pytest

import piaget
from piaget.cli import main
from piaget.lab.folder import RunFolder
from piaget.method.description import to_json
from piaget.paper.defaults import OWN_DATA, PAPERS, own_data
from piaget.report.reading import read
from piaget.streams import from_table
from tests.commands import said, words
from tests.tables import frame, only

SMALL = "--width 4 --initial-components 2 --depth 2 --quiet"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    table = only(frame(groups=4, rows=20), "ill")
    table.to_csv(folder / "table.csv", index=False)
    part = ["train"] * 12 + ["test"] * 8
    table.assign(part=part * 4).to_csv(folder / "two-parts.csv", index=False)
    return folder


def deep(place, flags="", table="table.csv"):
    base = f"run --group site --target ill --structure soft-ordering {SMALL} {flags} --table"
    return words(base, place / table)


def begun(out):
    return RunFolder(out / "seed-0").description


def few(monkeypatch):
    """Only some epochs, without anybody having chosen so."""
    monkeypatch.setattr("piaget.lab.configuration.default_epochs", lambda linear: 3)


def older(monkeypatch):
    """As if it was an older version, which had the paper's settings."""
    monkeypatch.setattr("piaget.cli.run.own_data", lambda structure, chosen: {})


@pytest.mark.parametrize(
    ("chosen", "left_out"),
    [
        ({}, set()),
        ({"epochs": 2}, {"stop", "patience"}),
        ({"patience": 5}, {"stop", "patience"}),
        ({"schedule": "joint"}, {"stop", "patience"}),
        ({"optimizer": "sgd"}, {"weight_decay"}),
        ({"optimizer.rate": 0.1}, {"weight_decay"}),
        ({"calibration": "none", "weight_decay": 0.0, "stop": "never"}, set(OWN_DATA)),
        ({"width": 8}, set()),
    ],
)
def test_what_is_chosen_is_heeded(chosen, left_out):
    found = own_data("soft-ordering", chosen)
    assert found == {name: value for name, value in OWN_DATA.items() if name not in left_out}
    assert own_data("linear", chosen) == {}


def test_settings_are_those_of_python(place, tmp_path, monkeypatch, capsys):
    few(monkeypatch)
    done = said(capsys, *deep(place), "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert done.err == ""
    description = begun(tmp_path / "out")
    assert description["configuration"]["settings"].items() >= OWN_DATA.items()
    stream = from_table(place / "table.csv", group="site", target="ill", stratified=True)
    small = {"width": 4, "initial_components": 2, "depth": 2}
    learner = piaget.Learner.for_stream(stream, structure="soft-ordering", **small)
    assert isinstance(learner, piaget.Learner)
    expected, found = json.loads(json.dumps(to_json(learner.settings))), description["learner"]
    for one in (expected, found):  # which are three here, for speed
        del one["algorithm"]["schedule"], one["initial_epochs"]
    assert found == expected
    again = said(capsys, *deep(place), "--out", tmp_path / "out")
    assert (again.code, again.out, again.err) == (0, done.out, "")
    command = read([tmp_path / "out"]).runs[0].command
    assert "--set stop=patience --set patience=40 --set weight_decay=0.01" in command


@pytest.mark.parametrize(
    "flags", ["--epochs 2", "--stop never --weight-decay 0 --calibration none --epochs 2"]
)
def test_what_is_given_is_heeded(place, tmp_path, flags):
    assert main([*deep(place, flags), "--out", str(tmp_path / "out")]) == 0
    settings = begun(tmp_path / "out")["configuration"]["settings"]
    never = "never" in flags
    assert settings.get("stop") == ("never" if never else None)
    assert settings["calibration"] == ("none" if never else "temperature")
    assert settings["weight_decay"] == (0 if never else 0.01)


def test_without_validation_rows_they_are_the_papers(place, tmp_path, monkeypatch):
    few(monkeypatch)
    flags = deep(place, "--split part --algorithm compositional", "two-parts.csv")
    assert main([*flags, "--out", str(tmp_path / "out")]) == 0
    assert not {*OWN_DATA} & {*begun(tmp_path / "out")["configuration"]["settings"]}


def test_streams_keep_the_papers(tmp_path):
    run = f"run digits --epochs 2 --option tasks=4 --option train_size=20 {SMALL}"
    assert main(words(run, out=tmp_path / "out")) == 0
    assert not {*OWN_DATA} & {*begun(tmp_path / "out")["configuration"]["settings"]}


def test_a_finished_run_of_an_older_version_is_shown(place, tmp_path, monkeypatch, capsys):
    few(monkeypatch)
    out = tmp_path / "out"
    with monkeypatch.context() as then:
        older(then)
        before = said(capsys, *deep(place), "--out", out)
    assert before.code == 0, before.err
    files = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    now = said(capsys, *deep(place), "--out", out)
    assert (now.code, now.out) == (0, before.out)
    assert "the run has the paper's settings" in now.err
    assert "a new one has stop=patience, patience=40, weight_decay=0.01, calibration=temperature" in now.err
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == files
    # What was the default then may be said now, and other seeds are of the same kind.
    more = said(capsys, *deep(place, "--batch-size 32 --seeds 0-1"), "--out", out)
    assert more.code == 0, more.err
    assert begun(out)["learner"]["stop"] == RunFolder(out / "seed-1").description["learner"]["stop"]
    assert not {*OWN_DATA} & {*RunFolder(out / "seed-1").configuration["settings"]}


def test_an_interrupted_run_of_an_older_version_goes_on(place, tmp_path, monkeypatch, capsys):
    """With the same numbers as if nothing had happened."""
    few(monkeypatch)
    with monkeypatch.context() as then:
        older(then)
        assert main([*deep(place), "--out", str(tmp_path / "whole")]) == 0
        calls = iter(range(10**6))

        def interrupting(*arguments):
            if next(calls) == 2:
                raise KeyboardInterrupt

        then.setattr("piaget.lab.runs._tell_of_all", interrupting)
        main([*deep(place), "--out", str(tmp_path / "out")])
    assert RunFolder(tmp_path / "out" / "seed-0").status == "interrupted"
    capsys.readouterr()
    now = said(capsys, *deep(place), "--out", tmp_path / "out")
    assert now.code == 0, now.err
    assert "the run has the paper's settings" in now.err
    rows = [(tmp_path / name / "seed-0" / "rows.csv").read_bytes() for name in ("whole", "out")]
    assert rows[0] == rows[1]


def test_the_command_of_an_older_run_makes_it_again(place, tmp_path, monkeypatch, capsys):
    few(monkeypatch)
    with monkeypatch.context() as then:
        older(then)
        assert main([*deep(place), "--out", str(tmp_path / "out")]) == 0
    (run,) = read([tmp_path / "out"]).runs
    assert {name for name in PAPERS if f"--set {name}=" in run.command} == {"weight_decay", "calibration"}
    command = [*shlex.split(run.command)[1:-1], str(tmp_path / "again"), "--quiet"]
    assert main(command) == 0
    assert begun(tmp_path / "again")["learner"] == begun(tmp_path / "out")["learner"]


def test_other_settings_are_still_refused(place, tmp_path, monkeypatch, capsys):
    few(monkeypatch)
    assert main([*deep(place), "--out", str(tmp_path / "out")]) == 0
    other = said(capsys, *deep(place, "--weight-decay 0"), "--out", tmp_path / "out")
    assert other.code == 2
    assert "holds a run with another configuration" in other.err
