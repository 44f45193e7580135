"""piaget report: from folders of runs to tables, figures and the page."""

import base64
import csv
import io
import json
import math
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import torch

from piaget.cli import main
from piaget.errors import LoadError, SettingError
from piaget.lab import final_table
from piaget.lab.configuration import configure
from piaget.lab.folder import note, read_description, runs_below
from piaget.learner import Learner
from piaget.paper.names import ALGORITHMS
from piaget.report import explorer, forms
from piaget.report.contents import Contents
from piaget.report.groups import group
from piaget.report.reading import read, read_rows as read_table
from piaget.report.statistics import spread
from piaget.report.tables import tables
from piaget.scoring.rows import COLUMNS
from tests import page_schema
from tests.sample_report import data_of

OPTIONS = ["--option", "tasks=6", "--option", "train_size=20", "--epochs", "4", "--quiet"]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("results") / "digits"
    algorithms = ["--algorithms", "dynamic", "compositional", "no-components"]
    arguments = ["sweep", "digits", "--adaptations", "nft", *algorithms, "--seeds", "3", "--every", "2"]
    assert main([*arguments, *OPTIONS, "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def report(results):
    assert main(["report", str(results), "--quiet"]) == 0
    return results / "report"


def of_csv(report, name):
    with open(report / "tables" / f"{name}.csv", newline="") as file:
        return list(csv.DictReader(file))


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
    import shlex

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
    assert "Final performance beside the paper's" in printed.out
    assert "NFT Dyn. + Comp." in printed.out
    assert "Differences between methods" not in printed.out
    assert printed.out.endswith(f"Report: {tmp_path / 'report.html'}\n")
    assert main(["report", str(results), "--out", str(tmp_path), "--all"]) == 0
    assert "Differences between methods" in capsys.readouterr().out


# --- unfinished, damaged, doubled ------------------------------------------------------------


@pytest.fixture
def copy(results, tmp_path):
    """Which a test may edit: without the hash of rows, as if version 0.1 had written them."""
    shutil.copytree(results, tmp_path / "runs", ignore=shutil.ignore_patterns("report"))
    for path in (tmp_path / "runs").rglob("run.json"):
        note(path.parent, rows=None)
    return tmp_path / "runs"


def some_run(copy, word="dynamic"):
    return next(path.parent for path in sorted(copy.rglob("run.json")) if word in str(path))


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


def test_what_is_no_folder_of_runs(tmp_path, capsys):
    assert main(["report", str(tmp_path / "nothing")]) == 2
    assert "is no folder" in capsys.readouterr().err
    assert main(["report", str(tmp_path)]) == 2
    assert "no run in" in capsys.readouterr().err


def test_the_report_must_go_into_a_folder(results, tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    assert main(["report", str(results), "--out", str(tmp_path / "file")]) == 2
    assert "is a file; expected a folder" in capsys.readouterr().err


def test_without_the_learner_there_is_no_explorer(copy, capsys):
    shutil.rmtree(some_run(copy, "compositional") / "learner")
    assert main(["report", str(copy)]) == 0
    assert "no component explorer" in capsys.readouterr().err


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


# --- of version 0.1 ------------------------------------------------------------

OLD = Path(__file__).parent / "written_by_0_1"


@pytest.mark.parametrize("name", ["sweep", "whole", "interrupted", "table"])
def test_runs_of_version_0_1_have_the_tables_that_it_made(name):
    """And one more, of what its rows have of further scores: losses of classification tasks. What it called
    ER without components has another name now."""
    made = tables(Contents(read([OLD / name])))
    then = [table for table in made if table.name != "scores"]
    text = (
        (OLD / "tables" / f"{name}.md").read_text().replace("| ER No Comp. |", "| ER No Comp., past frozen |")
    )
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

    monkeypatch.setattr("piaget.report.reading.configure", picky)
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


# --- tables ------------------------------------------------------------


def table():
    made = forms.Table("t", "A & B", "100 % of it_all.", ["method", "score", "n"])
    made.add(0, "a|b <c> $x$", forms.number(1.25, 0.5), "7")
    made.add(1, "d", forms.number(2.0), "8")
    forms.mark_best(made, 1, True, range(2))
    return made


def test_markdown_is_escaped():
    assert "| a\\|b \\<c\\> $x$ | 1.2 ± 0.5 | 7 |" in forms.as_markdown(table())
    assert "**2.0**" in forms.as_markdown(table())


def test_csv_has_numbers_in_full():
    rows = list(csv.DictReader(io.StringIO(forms.as_csv(table()))))
    assert rows[0] == {"method": "a|b <c> $x$", "score": "1.25", "score s.e.": "0.5", "n": "7"}
    assert rows[1]["score s.e."] == ""


def test_latex_is_escaped():
    text = forms.as_latex(table())
    assert r"\caption{A \& B. 100 \% of it\_all.}" in text
    assert r"a|b $<$c$>$ \$x\$ & $1.2 \pm 0.5$ & 7 \\" in text
    assert r"$\mathbf{2.0}$" in text


def test_what_rounds_to_the_same_is_best_together():
    made = forms.Table("t", "t", "", ["x"])
    for value in (1.04, 0.96, 0.5):
        made.add(None, forms.number(value))
    forms.mark_best(made, 0, True, range(3))
    assert [row[0].best for row in made.rows] == [True, True, False]


def test_positions_are_spread_from_first_to_last():
    assert spread(3, 10) == [0, 1, 2]
    assert spread(50, 10)[0] == 0
    assert spread(50, 10)[-1] == 49
    assert len(spread(50, 10)) == 10
    assert spread(0, 10) == []


def test_no_table_is_empty(results):
    for made in tables(Contents(read([results]))):
        assert made.rows
        assert all(len(row) == len(made.columns) for row in made.rows)


# --- pictures from coordinates ------------------------------------------------------------


@pytest.fixture(scope="module")
def pictures(tmp_path_factory, small_data):
    out = tmp_path_factory.mktemp("pixels")
    arguments = ["sweep", "pixel-mnist", "--quick", "--quiet", "--data-dir", str(small_data)]
    assert main([*arguments, "--out", str(out)]) == 0
    assert main(["report", str(out), "--quiet", "--data-dir", str(small_data)]) == 0
    return out


def test_the_pages_picture_is_the_learners(pictures, small_data):
    """What the page is told to compute, computed here from the numbers that it gets."""
    data = data_of((pictures / "report" / "report.html").read_text())
    page_schema.check(data)
    with_pictures = [explorer for explorer in data["explorers"] if explorer["network"]]
    assert len(with_pictures) == 2  # compositional and joint
    for one in with_pictures:
        run, network = data["runs"][one["run"]], one["network"]
        learner = Learner.load(next(p for p in pictures.rglob("learner") if run["folder"] in str(p)))
        flat = np.frombuffer(base64.b64decode(network["numbers"]), "<f4")
        k, width, pixels = one["components"], network["width"], int(np.prod(network["side"]))
        shapes = [(pixels, 2), (2, width), (width,), (k, width, width), (k, width), (width, 1), (1,)]
        parts, start = [], 0
        for shape in shapes:
            parts.append(flat[start : start + np.prod(shape)].reshape(shape))
            start += int(np.prod(shape))
        assert start == len(flat)
        x, encoder, bias, weight, biases, decoder, last = parts
        for task in one["tasks"]:
            h = x @ encoder + bias
            for weights in task["weights"]:
                outputs = np.maximum(np.einsum("koi,pi->pko", weight, h) + biases, 0)
                h = np.einsum("k,pko->po", weights, outputs)
            ink = 1 / (1 + np.exp(-(h @ decoder + last)))
            expected = learner.predict_proba(torch.from_numpy(x.copy()), task["name"])[:, 1]
            np.testing.assert_allclose(ink[:, 0], expected, atol=2e-4)
            assert len(base64.b64decode(task["truth"])) == pixels


def test_pictures_of_components(pictures):
    drawn = {path.name for path in (pictures / "report" / "figures").glob("component-*")}
    assert drawn == {f"component-{c}.{ending}" for c in range(4) for ending in ("svg", "pdf")}


def test_the_picture_at_the_learned_intensity_is_the_learners(pictures, small_data):
    run = next(run for run in read([pictures]).runs if run.parts[2] == "compositional")
    opened = explorer.open_run(run, str(small_data))
    task = opened.tasks[-1]
    learned = float(opened.learner.structures()[task.name][1, 2])
    result = explorer.pictures(opened, task, 1, [0.0, learned])
    expected = opened.learner.predict_proba(task.train.x, task)[:, 1].reshape(28, 28)
    np.testing.assert_allclose(result[2, 1], expected, atol=1e-5)
    assert not np.allclose(result[2, 0], expected)


def test_a_run_of_0_1_that_was_killed_before_its_first_row(tmp_path):
    folder = tmp_path / "runs" / "seed-0"
    shutil.copytree(Path(__file__).parent / "written_by_0_1" / "whole" / "seed-0", folder)
    header = (folder / "rows.csv").read_text().splitlines()[0]
    (folder / "rows.csv").write_text(header + "\n")
    with pytest.raises(SettingError, match="no run has scores yet"):
        read([tmp_path])
