"""piaget report: what the command makes of folders of runs."""

import shlex
import xml.etree.ElementTree as ET

import pytest

from piaget.cli import main
from piaget.errors import LoadError, SettingError
from piaget.lab import final_table
from piaget.lab.folder import runs_below
from piaget.paper.names import ALGORITHMS
from piaget.report.contents import Contents
from piaget.report.reading import read, read_rows as read_table
from piaget.report.tables import tables
from tests import page_schema
from tests.reported import of_csv
from tests.sample_report import data_of


@pytest.fixture(scope="module")
def report(results):
    assert main(["report", str(results), "--quiet"]) == 0
    return results / "report"


def test_everything_is_written(report):
    names = {path.name for path in (report / "tables").iterdir()}
    for name in (
        "final",
        "transfer",
        "components",
        "reuse",
        "compositionality",
        "ratios",
        "differences",
        "cost",
    ):
        assert {f"{name}.md", f"{name}.csv", f"{name}.tex"} <= names
    drawn = {path.name for path in (report / "figures").iterdir()}
    kinds = {
        "bars-digits",
        "curves-digits",
        "forgetting-digits",
        "transfer-digits",
        "candidates-digits",
        "reuse-digits",
    }
    assert {f"{kind}.{ending}" for kind in (*kinds, "gains") for ending in ("svg", "pdf")} <= drawn
    for path in (report / "figures").glob("*.svg"):
        assert ET.parse(path).getroot().tag.endswith("svg")
    assert all(path.read_bytes().startswith(b"%PDF") for path in (report / "figures").glob("*.pdf"))
    assert len((report / "report.html").read_bytes()) < 3_000_000


def test_final_performance_is_what_the_lab_has(results, report):
    """By another implementation, from the same rows."""
    rows = [row for run in runs_below(results) for row in run.rows()]
    expected = {(l.base, l.algorithm): l for l in final_table.lines(rows)}
    for line in of_csv(report, "final"):
        base, _, algorithm = line["method"].partition(" [")[0].partition(" ")
        known = expected[base.lower(), {label: name for name, label in ALGORITHMS.items()}[algorithm]]
        assert float(line["final"]) == pytest.approx(known.mean)
        assert float(line["final s.e."]) == pytest.approx(known.error)
        assert line["seeds"] == "3"
        assert line["verdict"] == ""  # not the paper's settings


def test_the_page_has_all_runs(results, report):
    data = data_of((report / "report.html").read_text())
    assert len(data["runs"]) == 9
    assert [stream["name"] for stream in data["streams"]] == ["digits"]
    for run in data["runs"]:
        assert len(run["tasks"]) == 6
        assert run["after"][:3] == [[], [], []]  # the initial tasks are learned together
        assert [sum(value is not None for value in row) for row in run["after"][3:]] == [4, 5, 6]
        assert run["steps"]["value"] > 0
        assert (report / run["link"]).resolve().is_file()
        has_components = data["methods"][run["method"]]["algorithm"] != "No Comp."
        assert bool(run["structures"]) == has_components
        assert bool(run["reused"]) == has_components
        assert run["time"]["text"].endswith(" s")
        assert run["threshold"] == (0.05 if "dynamic" in run["folder"] else None)
    assert [explorer["network"] for explorer in data["explorers"]] == [None, None]
    page_schema.check(data)


def test_a_runs_command_makes_the_same_run(report, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = data_of((report / "report.html").read_text())["runs"][0]
    words = shlex.split(run["command"])
    assert words[0] == "piaget"
    assert main([*words[1:], "--quiet"]) == 0
    (again,) = read([tmp_path / "again"]).runs
    assert again.configuration == run["configuration"]
    assert again.variant


def test_steps_are_counted(results):
    """Tasks of 20 samples in batches of 32: one batch an epoch; component dropout takes two passes."""
    steps = {run.parts[2]: run.description["steps"] for run in read([results]).runs}
    assert steps["compositional"] == 4 * 4 + 2 * 4  # four initial tasks x 4 epochs, two tasks x 4 epochs
    assert steps["dynamic"] == 4 * 4 + 2 * 4 * 2
    assert steps["no-components"] == steps["compositional"]


def test_the_same_runs_give_the_same_files(results, report, tmp_path):
    assert main(["report", str(results), "--out", str(tmp_path), "--quiet"]) == 0
    for folder in ("tables", "figures"):
        for path in (report / folder).iterdir():
            assert (tmp_path / folder / path.name).read_bytes() == path.read_bytes(), path.name


def test_the_terminal_shows_the_first_tables(results, tmp_path, capsys):
    assert main(["report", str(results), "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert "Final performance" in printed.out
    assert "beside the paper's" not in printed.out  # which has no number for digits
    assert "NFT Dyn. + Comp." in printed.out
    assert "Differences between methods" not in printed.out
    assert printed.out.endswith(f"Report: {tmp_path / 'report.html'}\n")
    assert main(["report", str(results), "--out", str(tmp_path), "--all"]) == 0
    assert "Differences between methods" in capsys.readouterr().out


# --- what cannot be reported ---


def test_what_is_no_folder_of_runs(tmp_path, capsys):
    assert main(["report", str(tmp_path / "nothing")]) == 2
    assert "is no folder" in capsys.readouterr().err
    assert main(["report", str(tmp_path)]) == 2
    assert "no run in" in capsys.readouterr().err


def test_the_report_must_go_into_a_folder(results, tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    assert main(["report", str(results), "--out", str(tmp_path / "file")]) == 2
    assert "is a file; expected a folder" in capsys.readouterr().err


def test_missing_packages_are_named(results, monkeypatch, capsys):
    import importlib

    real = importlib.import_module

    def missing(name, *rest):
        if name == "scipy":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", missing)
    assert main(["report", str(results)]) == 2
    assert "piaget[report]" in capsys.readouterr().err


def test_rows_must_be_rows(tmp_path):
    with pytest.raises(LoadError, match="is no file of rows"):
        read_table(tmp_path / "rows.csv", b"")
    with pytest.raises(SettingError, match="no run in"):
        read([tmp_path])


def test_no_table_is_empty(results):
    for made in tables(Contents(read([results]))):
        assert made.rows
        assert all(len(row) == len(made.columns) for row in made.rows)
