"""The commands, as a user runs them."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas
import pytest

import piaget
from piaget.cli import main
from piaget.cli.common import seed_list
from tests.data_files import write_everything, write_features
from tests.test_table import frame, only


def piaget_command(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "piaget", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )


@pytest.mark.parametrize(
    "command", ["", "run", "predict", "sweep", "data", "data list", "data fetch", "data draw"]
)
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([*command.split(), "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert "usage: piaget" in text
    if command in ("run", "sweep", "data list"):
        assert "--data-dir" in text


# --- data ---------------------------------------------------------------------------------------------------


def test_data_list(small_data, capsys):
    assert main(["data", "list", "--data-dir", str(small_data)]) == 0
    text = capsys.readouterr().out
    for name in piaget.streams.STREAMS:
        assert f" {name} " in text
    assert "built in" in text
    assert "present" in text
    assert "CC BY-SA 3.0" in text
    assert "168.5 MB" in text
    assert str(small_data) in text


def test_data_list_without_files(tmp_path, capsys):
    assert main(["data", "list", "--data-dir", str(tmp_path)]) == 0
    assert "0 of 4" in capsys.readouterr().out


def test_data_verify(tmp_path, capsys):
    root = tmp_path / "data"
    write_everything(root)
    assert main(["data", "verify", "--data-dir", str(root)]) == 0
    text = capsys.readouterr().out
    assert "mnist: sound, but not the public files, by their hashes" in text
    assert "omniglot: sound" in text
    (root / "mnist" / "t10k-labels-idx1-ubyte.gz").write_bytes(b"gone wrong")
    (root / "cub" / "test_resnet18.mat").unlink()
    assert main(["data", "verify", "--data-dir", str(root)]) == 1
    text = capsys.readouterr().out
    assert "mnist: DAMAGED" in text
    assert "cub: MISSING cub/test_resnet18.mat (piaget data fetch cub)" in text
    assert main(["data", "verify", "landmine", "--data-dir", str(root)]) == 0


def test_data_fetch_of_what_is_there(small_data, capsys):
    assert main(["data", "fetch", "mnist", "objects", "--data-dir", str(small_data)]) == 0
    text = capsys.readouterr().out
    assert "train-images-idx3-ubyte.gz" in text
    assert "objects: comes with the package, nothing to fetch" in text


@pytest.mark.filterwarnings("ignore::piaget.errors.DataNote")
@pytest.mark.parametrize(
    "name", ["objects", "digits", "landmine", "schools", "cub", "combined", "omniglot", "pixel-mnist"]
)
def test_data_draw(name, small_data, tmp_path):
    from PIL import Image

    assert (
        main(["data", "draw", name, "--data-dir", str(small_data), "--out", str(tmp_path), "--tasks", "2"])
        == 0
    )
    with Image.open(tmp_path / f"{name}.png") as picture:
        assert picture.width == 900
        assert len(set(picture.convert("L").tobytes())) > 10  # something is drawn


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["data", "fetch", "mnits"], "did you mean 'mnist'"),
        (["data", "draw", "nothing"], "is not known"),
        (["run"], "give either a stream, or --table"),
        (["run", "digits", "--table", "x.csv"], "give either a stream, or --table"),
        (["run", "--table", "nothing.csv", "--group", "a", "--target", "b"], "nothing.csv does not exist"),
        (["run", "digits", "--adaptation", "magic"], "magic"),
        (["run", "digits", "--structure", "magic"], "magic"),
        (["run", "digits", "--option", "size=3"], "no option 'size'; its options are tasks, train_size"),
        (["sweep", "digits", "--option", "features=x"], "no option 'features'; expected tasks, train_size"),
        (["data", "draw", "digits", "--option", "x=1"], "no option 'x'"),
        (["sweep", "digist"], "did you mean 'digits'"),
        (["sweep", "digits", "--structure", "magic"], "structure 'magic' is not known"),
        (["sweep", "digits", "--structure", "all"], "structure 'all' is not known"),
        (["sweep", "digits", "--epochs", "1"], "epochs=1"),
        (["sweep", "digits", "--quick"], "--quick is for presets"),
        (["sweep", "schedule", "--structure", "linear"], "leave out --structure"),
        (["sweep", "landmine", "--algorithms", "dynamic"], "linear combinations with all but dynamic"),
        (["run", "digits", "--group", "g"], "--group is of a table: leave it out with a stream"),
        (["run", "digits", "--initial-tasks", "11"], "initial_tasks=11, but the stream has 10 tasks"),
        (["run", "digits", "--epochs", "9", "--adapt-every", "2"], "with 9 epochs; expected one of 3, 9"),
        (["run", "digits", "--set", "train_size=3"], "and options.NAME for options of the stream"),
        (["resume", "nowhere"], "nowhere does not exist, or is no folder"),
        (["sweep", "digits", "--set", "widht=3"], "did you mean 'width'"),
        (["bench", "nothing"], "no row has 'nothing'; rows: soft ordering, assimilation;"),
        (["predict", "nowhere", "x.csv", "--out", "y.csv"], "holds no learner"),
    ],
)
def test_mistakes_get_one_line_and_a_code(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("piaget: ")
    assert message in said
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


def test_a_package_that_is_not_installed(small_data, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    assert main(["data", "verify", "landmine", "--data-dir", str(small_data)]) == 2
    said = capsys.readouterr()
    assert (
        "MATLAB files need the package scipy, which is not installed: pip install 'piaget[data]'" in said.err
    )
    assert "DAMAGED" not in said.out


def test_folders_that_cannot_be_written_to(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    for arguments in (
        ["run", "digits", "--epochs", "2", "--out", str(tmp_path / "file" / "out")],
        ["data", "draw", "digits", "--out", str(tmp_path / "file" / "out")],
        ["sweep", "digits", "--out", str(tmp_path / "file" / "out")],
    ):
        assert main(arguments) == 2
        assert "Not a directory" in capsys.readouterr().err


def test_verify_names_what_it_cannot_check(small_data, capsys):
    assert main(["data", "verify", "digits", "cub", "--data-dir", str(small_data)]) == 0
    said = capsys.readouterr().out
    assert "digits: comes with the package" in said
    assert "cub: sound" in said


# --- run and predict --------------------------------------------------------------------------------------


def test_from_a_table_to_predictions(tmp_path):
    """The practitioner's whole way, in a process of its own."""
    table = only(frame(groups=5), "cost")
    table.loc[3, "age"] = None
    table.loc[5, "cost"] = None
    table.to_csv(tmp_path / "costs.csv", index=False)
    run = piaget_command(
        "run",
        "--table",
        tmp_path / "costs.csv",
        "--group",
        "site",
        "--target",
        "cost",
        "--epochs",
        "2",
        "--out",
        tmp_path / "out",
    )
    assert run.returncode == 0, run.stderr
    assert "piaget: note: costs: 1 of 200 rows have no site or no cost; left out" in run.stderr
    assert "task 5 of 5, site 4: done; rmse " in run.stderr
    assert "site 3  rmse" in run.stdout
    assert "mean of 5 tasks  rmse" in run.stdout
    rows = pandas.read_csv(tmp_path / "out" / "seed-0" / "rows.csv")
    assert set(rows["evaluated"].dropna()) == {f"site {g}" for g in range(5)}
    arguments = ("run", "--table", tmp_path / "costs.csv", "--group", "site", "--target", "cost")
    other = piaget_command(*arguments, "--epochs", 3, "--out", tmp_path / "out")
    assert other.returncode == 2
    assert "another configuration (epochs: 2 there, 3 now)" in other.stderr
    again = piaget_command(*arguments, "--epochs", 2, "--out", tmp_path / "out")
    assert (again.returncode, again.stdout) == (0, run.stdout)
    assert "task" not in again.stderr  # nothing is trained again
    table[:50].drop(columns="cost").to_csv(tmp_path / "new.csv", index=False)
    predict = piaget_command(
        "predict", tmp_path / "out", tmp_path / "new.csv", "--out", tmp_path / "answers.csv"
    )
    assert predict.returncode == 0, predict.stderr
    answers = pandas.read_csv(tmp_path / "answers.csv")
    assert list(answers.columns) == ["site", "age", "ward", "visits", "predicted cost"]
    assert len(answers) == 50
    assert answers["predicted cost"].between(500, 2500).all()
    for out, message in (("x.txt", "ends in .csv or .parquet"), ("no/where.csv", "there is no such folder")):
        wrong = piaget_command("predict", tmp_path / "out", tmp_path / "new.csv", "--out", tmp_path / out)
        assert (wrong.returncode, message in wrong.stderr) == (2, True)
    again = piaget_command("predict", tmp_path / "out", tmp_path / "new.csv", "--out", tmp_path / "a.parquet")
    assert again.returncode == 0
    assert pandas.read_parquet(tmp_path / "a.parquet")["predicted cost"].notna().all()


def test_run_a_stream(tmp_path, capsys):
    out = tmp_path / "out"
    assert (
        main(["run", "digits", "--epochs", "2", "--option", "train_size=20", "--quiet", "--out", str(out)])
        == 0
    )
    said = capsys.readouterr()
    assert "mean of 10 tasks  accuracy" in said.out
    assert said.err == ""
    assert len(piaget.Learner.load(out / "seed-0" / "learner").tasks) == 10


def test_sweep_any_stream(small_data, tmp_path, capsys):
    arguments = ["sweep", "landmine", "--epochs", "2", "--seeds", "2", "--workers", "1", "--quiet"]
    assert main([*arguments, "--data-dir", str(small_data), "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "93.6 ± 0.1" in said.out  # the paper's, beside
    table = (tmp_path / "table.md").read_text()
    assert table.count("| landmine | ER |") == 3
    assert "accuracy in %" in table


@pytest.mark.filterwarnings("ignore::piaget.errors.DataNote")
def test_other_features_are_named_in_results(tmp_path, capsys):
    data, out = str(tmp_path / "data"), str(tmp_path / "out")
    write_features(tmp_path / "data" / "cub", "mine", features=7)
    arguments = [
        "sweep",
        "cub",
        "--algorithms",
        "compositional",
        "--epochs",
        "2",
        "--seeds",
        "1",
        "--workers",
        "1",
    ]
    arguments += [
        "--option",
        "features=mine",
        "--option",
        "tasks=5",
        "--quiet",
        "--data-dir",
        data,
        "--out",
        out,
    ]
    assert main(arguments) == 0
    table = (tmp_path / "out" / "table.md").read_text()
    assert "| cub/mine | ER | Compositional |" in table
    assert "80.6 ± 0.3" in table  # the paper's, for comparison
    assert main(["data", "list", "--data-dir", data]) == 0
    assert "0 of 2; features: mine" in capsys.readouterr().out


def test_what_cannot_be_learned_is_refused_before_training(tmp_path, capsys):
    """Expansion needs validation data, which is noticed only after the initial tasks otherwise."""
    table = only(frame(groups=6), "cost")
    table["part"] = ["train", "test"] * (len(table) // 2)
    table.to_csv(tmp_path / "t.csv", index=False)
    arguments = ["run", "--table", str(tmp_path / "t.csv"), "--group", "site", "--target", "cost"]
    assert main([*arguments, "--split", "part", "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "'site 4': there is no validation split" in said
    assert "epochs" not in said


def test_pixel_pictures_adapt_every_hundredth_epoch():
    from piaget.lab.configuration import configure
    from piaget.lab.making import make_learner

    def stages(algorithm, **more):
        configuration = configure(stream="pixel-mnist", algorithm=algorithm, **more)
        return make_learner(configuration, 0, 10).settings.stages()

    staged = stages("compositional")
    assert len(staged) == 1000
    assert [i + 1 for i, stage in enumerate(staged) if stage == "adaptation"] == list(range(100, 1001, 100))
    assert stages("joint") == ["joint"] * 1000
    assert stages("compositional", epochs=7) == ["assimilation"] * 6 + ["adaptation"]


def test_help_and_list_do_not_wait_for_torch():
    for command in ("--help", "list", "run --help", "sweep --help", "data --help"):
        code = (
            f"import sys; from piaget.cli import main; sys.argv = ['piaget', *{command.split()!r}]\n"
            "try: main()\nexcept SystemExit: pass\n"
            "print('torch' in sys.modules, file=sys.stderr)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stderr.strip() == "False", (command, done.stderr)


def test_list(capsys):
    assert main(["list"]) == 0
    said = capsys.readouterr().out
    for name in (*piaget.streams.STREAMS, "soft-gating", "ewc", "no-components"):
        assert f"  {name} " in said


def test_a_reader_that_goes_away():
    command = f"{sys.executable} -m piaget list | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("streams\n", "")


TINY = ["run", "digits", "--epochs", "2", "--option", "tasks=5", "--option", "train_size=20", "--quiet"]


def test_status(tmp_path, capsys):
    out = tmp_path / "out"
    assert main([*TINY, "--seeds", "0-1", "--out", str(out)]) == 0
    description = out / "seed-1" / "run.json"
    text = description.read_text()
    description.write_text(text.replace('"status": "done"', '"status": "running"'))
    capsys.readouterr()
    assert main(["status", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["counts"] == {"done": 1, "interrupted": 1}
    assert [run["done"] for run in found["runs"]] == [1.0, 0.0]
    assert main(["status", str(out)]) == 0
    assert "1 done, 1 interrupted" in capsys.readouterr().out
    assert main(["status", str(tmp_path / "nothing")]) == 2
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected"), [("3", [3]), ("0-3", [0, 1, 2, 3]), ("0,2,5", [0, 2, 5]), ("0-1,1-2", [0, 1, 2])]
)
def test_seeds(text, expected):
    assert seed_list(text) == expected


@pytest.mark.parametrize("text", ["", "x", "3-1", "-1", "1-", "1,,2", "1.5"])
def test_wrong_seeds(text, capsys):
    with pytest.raises(SystemExit):
        main(["run", "digits", "--seeds", text])
    assert "is not a list of seeds" in capsys.readouterr().err or "expected one argument" in text


def test_resume(tmp_path, capsys):
    out, other = tmp_path / "out", tmp_path / "other"
    arguments = ["run", "digits", "--epochs", "40", "--option", "tasks=6", "--option", "train_size=40"]
    command = [sys.executable, "-m", "piaget", *arguments, "--out", str(out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if line.startswith("tasks 1 to 4 of 6: done"):
                break
        process.send_signal(signal.SIGTERM)
        assert "stopped; what was done is kept: the same command goes on" in process.stderr.read()
        assert process.wait() == 130
    assert main(["status", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"] == {"interrupted": 1}
    assert main(["resume", str(out)]) == 0
    said = capsys.readouterr()
    assert "tasks 1 to 4" not in said.err
    assert main([*arguments, "--quiet", "--out", str(other)]) == 0
    same = [(folder / "seed-0" / "rows.csv").read_bytes() for folder in (out, other)]
    assert same[0] == same[1]
    assert main(["resume", str(tmp_path / "nothing")]) == 2


def test_a_sweep_that_is_killed_goes_on(tmp_path):
    """All its processes at once; then one of its workers alone."""

    def command(out):
        arguments = [
            "sweep",
            "digits",
            "--algorithms",
            "compositional",
            "joint",
            "--seeds",
            "2",
            "--epochs",
            "30",
        ]
        arguments += ["--option", "tasks=6", "--option", "train_size=40", "--quiet", "--out", str(out)]
        return [sys.executable, "-m", "piaget", *arguments]

    def rows(out):
        return {path.relative_to(out): path.read_bytes() for path in out.rglob("rows.csv")}

    assert subprocess.run(command(tmp_path / "undisturbed"), capture_output=True).returncode == 0
    out = tmp_path / "out"
    process = subprocess.Popen(command(out), start_new_session=True, stdout=subprocess.DEVNULL)
    while process.poll() is None and len(list(out.rglob("checkpoint.json"))) < 2:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process = subprocess.Popen(command(out), start_new_session=True, stdout=subprocess.DEVNULL)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("checkpoint.json")}
    while process.poll() is None and all(
        path.exists() and path.stat().st_mtime_ns == t for path, t in before.items()
    ):
        time.sleep(0.02)
    children = [p.read_text().split() for p in Path(f"/proc/{process.pid}/task").glob("*/children")]
    commands = {int(c): Path(f"/proc/{c}/cmdline").read_bytes() for found in children for c in found}
    spawned = [child for child, command in commands.items() if b"spawn_main" in command]
    assert len(spawned) == 3  # two workers, and before them the queue's process
    os.kill(max(spawned), signal.SIGKILL)
    assert process.wait() == 0
    assert rows(out) == rows(tmp_path / "undisturbed")


def test_a_sweep_with_settings_of_ones_own(tmp_path, capsys):
    """Its table tells variants apart; JSON is JSON also for a single seed."""
    arguments = ["sweep", "digits", "--algorithms", "compositional", "--option", "tasks=5", "--option"]
    arguments += ["train_size=20", "--workers", "1", "--json", "--out", str(tmp_path), "--seeds", "1-1"]
    assert main([*arguments, "--epochs", "2", "--set", "width=8"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    (line,) = json.loads(last, parse_constant=pytest.fail)["table"]
    assert line["error"] is None
    assert line["variant"] == "tasks=5, train_size=20, width=8, epochs=2"
    assert main([*arguments, "--epochs", "3"]) == 0
    capsys.readouterr()
    assert main(["resume", str(tmp_path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "width=8, epochs=2" in said
    assert "train_size=20, epochs=3" in said
    assert main(["status", str(tmp_path / "digits_tasks-5_train_size-20")]) == 0
    assert "2 done" in capsys.readouterr().out


def test_odd_folders(tmp_path, capsys):
    out = tmp_path / "out"
    assert main([*TINY, "--out", str(out)]) == 0
    shutil.copytree(out / "seed-0", out / "seed-0.bak")
    (out / "broken").mkdir()
    (out / "broken" / "run.json").write_text("{")
    assert main(["status", str(out)]) == 0
    assert "2 done" in capsys.readouterr().out.replace("1 unreadable, ", "")
    assert main(["status", str(out / "seed-0")]) == 0
    assert main(["resume", str(out), "--quiet"]) == 0
    assert main(["resume", str(tmp_path)]) == 2
    assert f"give {out}" in capsys.readouterr().err


def test_a_sweep_over_structures(tmp_path, capsys):
    arguments = [
        "sweep",
        "digits",
        "--structures",
        "soft-ordering",
        "linear",
        "--algorithms",
        "compositional",
    ]
    arguments += ["--epochs", "2", "--seeds", "1", "--option", "tasks=5", "--option", "train_size=20"]
    assert main([*arguments, "--workers", "1", "--json", "--out", str(tmp_path)]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {e["run"] for e in events if e["event"] == "ended"} == {
        "digits soft-ordering er compositional seed 0",
        "digits linear er compositional seed 0",
    }
    assert len(events[-1]["table"]) == 2
