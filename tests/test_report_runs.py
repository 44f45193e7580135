"""piaget report: runs that are unfinished, damaged, doubled, of older versions, or by one's own methods."""

import json
import math
import re
import shutil
from pathlib import Path

import pytest

from piaget.cli import main
from piaget.errors import SettingError
from piaget.lab.configuration import configure
from piaget.lab.folder import note, read_description, runs_below
from piaget.report import forms
from piaget.report.contents import Contents
from piaget.report.groups import group
from piaget.report.reading import read, read_rows as read_table
from piaget.report.tables import AGAINST_THE_PAPER, tables
from piaget.scoring.rows import COLUMNS
from tests import page_schema
from tests.reported import of_csv, some_run
from tests.sample_report import data_of


def test_an_unfinished_run(copy, capsys):
    path = some_run(copy)
    note(path, status="running")
    rows = (path / "rows.csv").read_text().splitlines(keepends=True)
    (path / "rows.csv").write_text("".join(rows[: len(rows) // 4]) + rows[len(rows) // 4][:20])  # a torn line
    shutil.rmtree(path / "learner")
    assert main(["report", str(copy), "--quiet"]) == 0
    data = data_of((copy / "report" / "report.html").read_text())
    assert [run["status"] for run in data["runs"]].count("interrupted") == 1
    assert "unfinished runs left out of means: 1; piaget resume goes on with them" in data["notes"]
    assert any(note.startswith("all runs: epochs=4") for note in data["notes"])
    lines = {line["method"]: line for line in of_csv(copy / "report", "final")}
    assert [line["seeds"] for line in lines.values()].count("2") == 1


def test_a_run_that_failed(copy):
    path = some_run(copy)
    note(path, status="failed", error="Traceback ...\nValueError: no <such> thing\n")
    shutil.rmtree(path / "learner")
    assert main(["report", str(copy), "--quiet"]) == 0
    data = data_of((copy / "report" / "report.html").read_text())
    assert "runs that failed, left out of means: 1; piaget status says why" in data["notes"]
    assert not any("unfinished" in note for note in data["notes"])
    (alert,) = (one for one in data["alerts"] if one["kind"] == "failed")
    assert "ValueError: no <such> thing." in alert["text"]
    assert "When the cause is mended" in alert["text"]


def test_only_unfinished_runs(copy):
    """They are all there is: shown as far as they are."""
    for path in copy.rglob("run.json"):
        note(path.parent, status="running")
        rows = (path.parent / "rows.csv").read_text().splitlines(keepends=True)
        (path.parent / "rows.csv").write_text("".join(row for row in rows if ",removal," not in row))
    assert main(["report", str(copy), "--quiet"]) == 0
    assert {line["seeds"] for line in of_csv(copy / "report", "final")} == {"3"}
    assert {line["verdict"] for line in of_csv(copy / "report", "final")} == {"unfinished"}


def test_no_components_at_all(copy):
    for path in sorted(copy.rglob("run.json")):
        if "no-components" not in str(path):
            shutil.rmtree(path.parent)
    assert main(["report", str(copy), "--quiet"]) == 0
    assert len(of_csv(copy / "report", "final")) == 1


def test_a_run_that_diverged(copy):
    path = some_run(copy, "compositional")
    text = (path / "rows.csv").read_text()
    text = re.sub(r"(accuracy,,|weight,\d,1),[\d.e-]+$", r"\1,nan", text, flags=re.M)
    (path / "rows.csv").write_text(re.sub(r"(weight,\d,0),[\d.e-]+$", r"\1,inf", text, flags=re.M))
    assert main(["report", str(copy), "--quiet"]) == 0
    data = data_of((copy / "report" / "report.html").read_text())
    assert any("diverged" in note for note in data["notes"])
    assert "" in {line["final"] for line in of_csv(copy / "report", "final")}


def test_a_stream_with_an_odd_name(copy):
    for path in copy.rglob("rows.csv"):
        path.write_text(path.read_text().replace("\ndigits,", "\ngröße $x_{$ </script>,"))
    assert main(["report", str(copy), "--quiet"]) == 0
    data = data_of((copy / "report" / "report.html").read_text())
    assert data["streams"][0]["name"] == "größe $x_{$ </script>"


def test_the_page_and_the_tables_agree_on_who_counts(copy):
    """An interrupted run is unfinished for the page, too; references are the baseline's runs."""
    path = some_run(copy, "no-components")
    note(path, status="interrupted")
    assert main(["report", str(copy), "--quiet"]) == 0
    data = data_of((copy / "report" / "report.html").read_text())
    for run in data["runs"]:
        if run["status"] != "done":
            assert run["reference"] is None
        elif run["reference"] is not None:
            other = data["runs"][run["reference"]]
            assert other["status"] == "done"
            assert data["methods"][other["method"]]["algorithm"] == "No Comp."
            assert other["seed"] == run["seed"]
    assert sum(run["reference"] is None for run in data["runs"]) == 3  # itself, and two of its seed


def test_a_method_of_which_nothing_is_finished(copy):
    for path in copy.rglob("run.json"):
        if "dynamic" in str(path):
            note(path.parent, status="interrupted")
    assert main(["report", str(copy), "--quiet"]) == 0
    assert len(of_csv(copy / "report", "final")) == 2


def test_damaged_runs_are_left_out_with_a_note(copy, capsys):
    paths = sorted(path.parent for path in copy.rglob("run.json"))
    (paths[0] / "run.json").write_text("{")
    (paths[1] / "rows.csv").write_text("a,b\n1,2\n")
    (paths[2] / "rows.csv").write_text(",".join(COLUMNS) + "\n")
    (paths[3] / "rows.csv").unlink()
    assert main(["report", str(copy)]) == 0
    printed = capsys.readouterr().err
    assert printed.count("left out") == 4
    assert "run.json is damaged" in printed
    assert "expected stream, method" in printed
    assert "has no scores yet" in printed


def test_a_run_that_is_there_twice_counts_once(results, copy):
    result = read([results, copy])
    groups = group(result)
    assert [len(one.runs) for one in groups] == [3, 3, 3]
    assert sum("is the same as" in text for text in result.notes) == 9


def test_without_the_learner_there_is_no_explorer(copy, capsys):
    shutil.rmtree(some_run(copy, "compositional") / "learner")
    assert main(["report", str(copy)]) == 0
    assert "no component explorer" in capsys.readouterr().err


# --- of version 0.1 ------------------------------------------------------------

OLD = Path(__file__).parent / "written_by_0_1"


@pytest.mark.parametrize("name", ["sweep", "whole", "interrupted", "table"])
def test_runs_of_version_0_1_have_the_tables_that_it_made(name):
    """And one more, of what its rows have of further scores: losses of classification tasks. What it called
    ER without components has another name now, and the paper is not named where it has no numbers."""
    made = tables(Contents(read([OLD / name])))
    then = [table for table in made if table.name != "scores"]
    text = (OLD / "tables" / f"{name}.md").read_text()
    text = text.replace("| ER No Comp. |", "| ER No Comp., past frozen |")
    text = text.replace("Final performance beside the paper's", "Final performance")
    text = text.replace(AGAINST_THE_PAPER, "")
    assert "\n".join(map(forms.as_markdown, then)) == text
    new = [row for table in made if table.name == "scores" for row in table.rows]
    assert len(new) == {"sweep": 4, "whole": 1, "interrupted": 1, "table": 0}[name]
    for row in new:
        accuracy, majority, auc, loss = row[3:7]
        assert (accuracy.value is not None, loss.value is not None) == (True, True)
        assert (majority.text, auc.text, row[7].text) == ("", "", "")


def test_rows_are_read_as_the_contract_says(results):
    """Also those of version 0.1, by another implementation."""
    for run in [*runs_below(OLD), *runs_below(results)]:
        frame = read_table(run.rows_file, run.row_text()).astype(object)
        frame["method"] = frame["method"].map(run.method_now)
        rows = frame.where(frame.notna(), None).to_dict("records")
        expected = [row | {"value": None if math.isnan(row["value"]) else row["value"]} for row in run.rows()]
        assert rows == expected


def test_a_run_of_0_1_that_was_killed_before_its_first_row(tmp_path):
    folder = tmp_path / "runs" / "seed-0"
    shutil.copytree(Path(__file__).parent / "written_by_0_1" / "whole" / "seed-0", folder)
    header = (folder / "rows.csv").read_text().splitlines()[0]
    (folder / "rows.csv").write_text(header + "\n")
    with pytest.raises(SettingError, match="no run has scores yet"):
        read([tmp_path])
    (folder / "rows.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SettingError, match=r"there are no scores that can be read: .* has the columns a, b"):
        read([tmp_path])


# --- one's own methods ------------------------------------------------------------


def renamed(source, target, method):
    """A copy of a run by another method, whose adaptation is a class of the user's own."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("report"))
    for path in target.rglob("rows.csv"):
        path.write_text(re.sub(r"soft-ordering/nft/\w+", method, path.read_text()))
    for path in target.rglob("run.json"):
        described = read_description(path.parent)
        described["configuration"] |= {"adaptation": "mypackage.mod:Mine", "algorithm": "mypackage.mod:rule"}
        described["learner"]["algorithm"]["expansion"] = {"part": "McNemar", "level": 0.05}
        note(path.parent, **described)


def test_ones_own_methods_stand_beside_the_papers(copy, monkeypatch):
    methods = ("soft-ordering/der++/dynamic", "scaled:ordering/a.gem/my+rule")
    source = some_run(copy).parent
    for i, method in enumerate(methods):
        renamed(source, copy / f"own-{i}", method)

    def picky(**names):
        if "mypackage" in str(names.get("adaptation")):
            raise RuntimeError("no such adaptation")
        return configure(**names)

    monkeypatch.setattr("piaget.report.reported_run.configure", picky)
    assert main(["report", str(copy), "--quiet"]) == 0
    final = of_csv(copy / "report", "final")
    labels = [line["method"] for line in final]
    ours = ["a.gem my+rule (scaled:ordering)", "der++ Dyn. + Comp. (soft-ordering)"]
    assert labels[-2:] == ours  # after those that the paper has
    assert {line["seeds"] for line in final} == {"3"}
    pairs = [(line["method"], line["other method"]) for line in of_csv(copy / "report", "differences")]
    assert len(pairs) == 5 * 4 / 2
    assert ("NFT No Comp.", ours[0]) in pairs
    assert {line["method"] for line in of_csv(copy / "report", "components")} >= set(ours)
    names = [path.name for path in (copy / "report" / "figures").glob("*.svg")]
    assert all(re.fullmatch(r"[\w.-]+", name) for name in names)
    assert len([name for name in names if name.startswith("life-")]) == 4
    data = data_of((copy / "report" / "report.html").read_text())
    page_schema.check(data)
    assert {run["threshold"] for run in data["runs"] if data["methods"][run["method"]]["label"] in ours} == {
        None
    }


def test_candidates_are_shown_with_the_threshold_of_their_run(copy):
    path = some_run(copy)
    learner = json.loads((path / "run.json").read_text())["learner"]
    learner["algorithm"]["expansion"]["threshold"] = 0.2
    note(path, learner=learner)
    thresholds = {run.name: run.threshold for run in read([copy]).runs}
    assert thresholds[str(path)] == 0.2
    assert sorted(thresholds.values(), key=str) == [0.05, 0.05, 0.2, *[None] * 6]
