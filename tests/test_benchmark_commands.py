"""Benchmarks as commands: what they are asked for is checked before they train anything."""

import pytest

from benchmarks import grids, objects_drawing, reuse

TINY = "--methods soft-ordering/fm/compositional --tasks 6 --tests 1 --set epochs=2 initial_epochs=2"


def said(main, capsys, *arguments):
    """The exit code, and what a benchmark prints."""
    capsys.readouterr()
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as end:  # of argparse
        code = end.code
    return code, *capsys.readouterr()


@pytest.fixture
def one_thread(monkeypatch):
    """A benchmark sets it for its whole process, which here is that of other tests."""
    monkeypatch.setattr("torch.set_num_threads", lambda number: None)


@pytest.mark.usefixtures("one_thread")
def test_growth_is_measured_and_drawn(tmp_path, capsys):
    out = tmp_path / "out"
    code, _, errors = said(grids.main, capsys, "--out", out, *TINY.split(), "--label", "mine")
    assert (code, errors) == (0, "")
    assert len((out / "mine" / "seed-0" / "tasks.csv").read_text().splitlines()) == 7
    assert len((out / "mine" / "seed-0" / "few.csv").read_text().splitlines()) == 5
    code, table, _ = said(grids.main, capsys, "--out", out, "--draw", tmp_path / "growth.png")
    assert code == 0
    assert "| mine | 1 | 6 |" in table
    assert (tmp_path / "growth.png").stat().st_size > 1000
    before = (out / "mine" / "seed-0" / "setting.json").read_bytes()
    changed = ("--out", out, "--label", "mine", *TINY.split(), "width=8", "--tasks", 7)
    code, _, errors = said(grids.main, capsys, *changed)
    assert code == 2
    assert "has another setting (tasks: 6 there, 7 now, width: nothing there, 8 now); give" in errors
    assert "by --label, or all of them another --out" in errors
    assert (out / "mine" / "seed-0" / "setting.json").read_bytes() == before
    (out / "mine" / "seed-0" / "setting.json").write_text("{")
    code, _, errors = said(grids.main, capsys, *changed)
    assert (code, "setting.json is damaged" in errors) == (2, True)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--methods soft-ordering", "'soft-ordering' is not STRUCTURE/ADAPTATION/ALGORITHM, such as"),
        (
            "--methods soft-ordering/er/dynamci",
            "benchmarks.grids: algorithm='dynamci'; expected one of dynamic",
        ),
        ("--tasks 5", "benchmarks.grids: tasks=5, tests=10: too few combinations"),
        ("--set epoch=2", "'epoch' is not known"),
        ("--set epochs", "'epochs' is not KEY=VALUE"),
        ("--set seed=2", "--set seed: say it by --seeds"),
        ("--stop 0", "'0' is not a whole number, 1 or more"),
        ("--draw x.png", "is no folder; expected the folder that --out named"),
    ],
)
def test_growth_that_cannot_be_measured(arguments, message, tmp_path, capsys):
    code, printed, errors = said(grids.main, capsys, "--out", tmp_path / "out", *arguments.split())
    assert (code, printed) == (2, "")
    assert message in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("one_thread")
def test_a_figure_of_nothing(tmp_path, capsys):
    code, _, errors = said(grids.main, capsys, "--out", tmp_path, "--draw", tmp_path / "x.png")
    assert code == 2
    assert "has no results of this benchmark" in errors


@pytest.mark.usefixtures("one_thread")
def test_reuse_of_nothing(tmp_path, capsys):
    code, printed, errors = said(reuse.main, capsys, tmp_path / "missing", tmp_path)
    assert (code, printed) == (2, "")
    assert (
        errors
        == f"benchmarks.reuse: no folder: {tmp_path / 'missing'}; expected those of piaget run or sweep\n"
    )
    code, printed, errors = said(reuse.main, capsys, tmp_path)
    assert (code, printed) == (2, "")
    assert "no finished run of dynamic or compositional replay with soft ordering in" in errors


@pytest.mark.usefixtures("one_thread")
def test_readings_of_the_objects_pictures(capsys):
    code, printed, _ = said(objects_drawing.main, capsys, "--help")
    assert code == 0
    assert "what the paper leaves open" in printed
    assert list(objects_drawing.readings(["cut off, r", "rotated"])) == ["web colours, cut off, rotated"]
    assert objects_drawing.readings([]) == objects_drawing.READINGS
    code, _, errors = said(objects_drawing.main, capsys, "purple")
    assert (code, "no reading is called like 'purple'; there are: tab colours" in errors) == (2, True)
