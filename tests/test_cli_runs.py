"""`piaget run`, `predict`, `status` and `resume`, as a user runs them."""

import json
import shutil
import signal
import subprocess

import pandas
import pytest

import piaget
from piaget.cli import main
from piaget.lab.folder import note
from tests.commands import command, in_a_process, said, words
from tests.tables import frame, only

TINY = "run digits --epochs 2 --option tasks=5 --option train_size=20 --quiet"


def test_from_a_table_to_predictions(tmp_path, capsys):
    """The practitioner's whole way; learning, in a process of its own."""
    costs, out, new = tmp_path / "costs.csv", tmp_path / "out", tmp_path / "new.csv"
    table = only(frame(groups=5), "cost")
    table.loc[3, "age"] = None
    table.loc[5, "cost"] = None
    table.to_csv(costs, index=False)
    arguments = ("run", "--table", costs, "--group", "site", "--target", "cost", "--out", out, "--epochs")
    run = in_a_process(*arguments, 2)
    assert run.returncode == 0, run.stderr
    assert "piaget: note: costs: 1 of 200 rows have no site or no cost; left out" in run.stderr
    assert "task 5 of 5, site 4: done; rmse " in run.stderr
    assert "site 3  rmse" in run.stdout
    assert "mean of 5 tasks  rmse" in run.stdout
    rows = pandas.read_csv(out / "seed-0" / "rows.csv")
    assert set(rows["evaluated"].dropna()) == {f"site {g}" for g in range(5)}
    other = said(capsys, *arguments, 3)
    assert other.code == 2
    assert "another configuration (epochs: 2 there, 3 now)" in other.err
    again = said(capsys, *arguments, 2)
    assert (again.code, again.out) == (0, run.stdout)
    assert "task" not in again.err  # nothing is trained again
    table[:50].drop(columns="cost").to_csv(new, index=False)
    predict = in_a_process("predict", out, new, "--out", tmp_path / "answers.csv")
    assert predict.returncode == 0, predict.stderr
    answers = pandas.read_csv(tmp_path / "answers.csv")
    assert list(answers.columns) == ["site", "age", "ward", "visits", "predicted cost"]
    assert len(answers) == 50
    assert answers["predicted cost"].between(500, 2500).all()
    for name, message in (("x.txt", "ends in .csv or .parquet"), ("no/where.csv", "there is no such folder")):
        wrong = said(capsys, "predict", out, new, "--out", tmp_path / name)
        assert (wrong.code, message in wrong.err) == (2, True)
    assert said(capsys, "predict", out, new, "--out", tmp_path / "a.parquet").code == 0
    assert pandas.read_parquet(tmp_path / "a.parquet")["predicted cost"].notna().all()


def test_run_a_stream(tmp_path, capsys):
    out = tmp_path / "out"
    code, text, errors = said(capsys, *words("run digits --epochs 2 --option train_size=20 --quiet", out=out))
    assert code == 0
    assert "mean of 10 tasks  accuracy" in text
    for name in ("majority", "AUC", "log-loss"):  # its tasks are binary
        assert f"mean of 10 tasks  {name} " in text
    assert errors == ""
    assert len(piaget.Learner.load(out / "seed-0" / "learner").tasks) == 10


def test_what_cannot_be_learned_is_refused_before_training(tmp_path, capsys):
    """Expansion needs validation data, which is noticed only after the initial tasks otherwise."""
    table = only(frame(groups=6), "cost")
    table["part"] = ["train", "test"] * (len(table) // 2)
    table.to_csv(tmp_path / "t.csv", index=False)
    deep = "run --structure soft-ordering --group site --target cost --split part --table"
    arguments = words(deep, tmp_path / "t.csv")
    code, _, errors = said(capsys, *arguments, "--out", tmp_path / "out")
    assert code == 2
    assert "'site 4': there is no validation split" in errors
    assert "epochs" not in errors


@pytest.mark.parametrize("algorithm", ["no-components", "no-components-frozen", "joint"])
def test_frozen_components_are_refused_where_nothing_else_learns(algorithm, tmp_path, capsys):
    arguments = words(f"{TINY} --adaptation fm --algorithm {algorithm}", out=tmp_path / "out")
    code, _, errors = said(capsys, *arguments)
    assert code == 2
    assert f"adaptation 'fm' with the algorithm '{algorithm}': frozen" in errors
    assert "expected one of the algorithms dynamic, recommended, compositional, alone," in errors
    assert not (tmp_path / "out").exists()


def test_a_single_network_has_no_components_to_count(tmp_path, capsys):
    arguments = words(f"{TINY} --algorithm no-components", out=tmp_path)
    code, text, _ = said(capsys, *arguments)
    assert code == 0
    assert "mean of 5 tasks" in text
    assert "components" not in text
    arguments.remove("--quiet")
    (run,) = json.loads(said(capsys, *arguments, "--json").out.splitlines()[-1])["runs"]
    assert run["components"] == 0


def test_pixel_pictures_adapt_every_hundredth_epoch():
    from piaget.lab.configuration import configure
    from piaget.lab.making import make_learner

    def stages(algorithm, **more):
        configuration = configure(stream="pixel-mnist", algorithm=algorithm, **more)
        return [stage.name for stage in make_learner(configuration, 0, 10).settings.stages()]

    staged = stages("compositional")
    assert len(staged) == 1000
    assert [i + 1 for i, stage in enumerate(staged) if stage == "adaptation"] == list(range(100, 1001, 100))
    assert stages("joint") == ["joint"] * 1000
    assert stages("compositional", epochs=7) == ["assimilation"] * 6 + ["adaptation"]


def test_status(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(words(TINY, "--seeds", "0-1", out=out)) == 0
    note(out / "seed-1", status="running")
    code, text, _ = said(capsys, "status", out, "--json")
    assert code == 0
    found = json.loads(text)
    assert found["counts"] == {"done": 1, "interrupted": 1}
    assert [run["done"] for run in found["runs"]] == [1.0, 0.0]
    code, text, _ = said(capsys, "status", out)
    assert code == 0
    assert "1 done, 1 interrupted" in text
    code, _, errors = said(capsys, "status", tmp_path / "nothing")
    assert code == 2
    assert "does not exist" in errors


def test_resume(tmp_path, capsys):
    out, other = tmp_path / "out", tmp_path / "other"
    arguments = "run digits --epochs 40 --option tasks=6 --option train_size=40"
    call = command(*words(arguments, out=out))
    with subprocess.Popen(call, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("tasks 1 to 4 of 6: done"):
                break
        process.send_signal(signal.SIGTERM)
        assert "stopped; what was done is kept: the same command goes on" in process.stderr.read()
        assert process.wait() == 130
    code, text, _ = said(capsys, "status", out, "--json")
    assert code == 0
    assert json.loads(text)["counts"] == {"interrupted": 1}
    code, _, errors = said(capsys, "resume", out)
    assert code == 0
    assert "tasks 1 to 4" not in errors
    assert main(words(arguments, "--quiet", out=other)) == 0
    same = [(folder / "seed-0" / "rows.csv").read_bytes() for folder in (out, other)]
    assert same[0] == same[1]
    assert main(["resume", str(tmp_path / "nothing")]) == 2


def test_odd_folders(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(words(TINY, out=out)) == 0
    shutil.copytree(out / "seed-0", out / "seed-0.bak")
    (out / "broken").mkdir()
    (out / "broken" / "run.json").write_text("{")
    code, text, _ = said(capsys, "status", out)
    assert code == 0
    assert "2 done" in text.replace("1 unreadable, ", "")
    assert main(["status", str(out / "seed-0")]) == 0
    assert main(["resume", str(out), "--quiet"]) == 0
    code, _, errors = said(capsys, "resume", tmp_path)
    assert code == 2
    assert f"give {out}" in errors
