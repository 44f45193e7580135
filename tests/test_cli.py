"""The commands in general: what they say of themselves, of mistakes, and how soon."""

import subprocess
import sys

import pytest

import piaget
from piaget.cli import main
from piaget.cli.common import seed_list


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
        (["sweep", "schedule", "--structure", "linear"], "leave out --structure"),
        (
            ["sweep", "landmine", "--algorithms", "dynamic"],
            "er with linear goes with compositional, joint, no-components",
        ),
        (["run", "digits", "--group", "g"], "--group is of a table: leave it out with a stream"),
        (["run", "digits", "--initial-tasks", "11"], "initial_tasks=11, but the stream has 10 tasks"),
        (["run", "digits", "--epochs", "9", "--adapt-every", "2"], "with 9 epochs; expected one of 3, 9"),
        (["run", "digits", "--set", "train_size=3"], "options.NAME for options of the stream"),
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


def test_folders_that_cannot_be_written_to(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    for arguments, message in (
        (
            ["run", "digits", "--epochs", "2", "--out", str(tmp_path / "file" / "out")],
            "file is a file; expected",
        ),
        (
            ["run", "digits", "--epochs", "2", "--out", str(tmp_path / "file")],
            "file is a file; expected a folder",
        ),
        (["data", "draw", "digits", "--out", str(tmp_path / "file" / "out")], "Not a directory"),
        (["sweep", "digits", "--out", str(tmp_path / "file" / "out")], "file is a file; expected a folder"),
    ):
        assert main(arguments) == 2
        assert message in capsys.readouterr().err


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
