"""Collected results: the same numbers as the runs, in small files that know whether they are whole."""

import csv
import io
import json
import lzma
import shutil

import pandas as pd
import pytest

from piaget.cli import main
from piaget.errors import LoadError, SettingError
from piaget.lab.collecting import add
from piaget.lab.collection import collections_below, folder_of, read_collection
from piaget.lab.essence import MOST, essential
from piaget.lab.folder import note, runs_below
from piaget.report import metrics
from piaget.report.against import against
from piaget.report.contents import Contents
from piaget.report.reading import read
from piaget.report.tables import tables
from tests.made_runs import constant, rows_of, write_run

METHODS = ("soft-ordering/er/dynamic", "soft-ordering/er/joint", "monolithic/nft/no-components")


def score(level):
    return lambda i, j: level - 0.0101 * (i - j) + 0.0031 * ((7 * i + 3 * j) % 5)


@pytest.fixture
def runs(tmp_path):
    out = tmp_path / "runs"
    for m, method in enumerate(METHODS):
        for seed in range(3):
            write_run(out, "digits", method, seed, score(0.9 - 0.05 * m), every=50, kept=[5])
    return out


@pytest.fixture
def collected(runs, tmp_path):
    assert main(["collect", str(runs), "--to", str(tmp_path / "kept")]) == 0
    return tmp_path / "kept"


def files_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_report_says_the_same(runs, collected):
    of_runs, of_kept = (tables(Contents(read([folder]))) for folder in (runs, collected))
    assert [table.name for table in of_kept] == [table.name for table in of_runs]
    for table, kept in zip(of_runs, of_kept, strict=True):
        assert [[cell.text for cell in row] for row in kept.rows] == [
            [cell.text for cell in row] for row in table.rows
        ], table.name


def test_how_many_parameters_there_are_is_kept_where_it_is_known(runs, tmp_path):
    (first, *_) = runs_below(runs)
    note(first.path, parameters=1234)
    add(runs_below(runs), tmp_path / "kept")
    known = {run.parameters for run in read([tmp_path / "kept"]).runs}
    assert known == {1234, None}
    (parameters,) = {run.parameters for run in read([runs]).runs if run.parameters}
    assert parameters == 1234


def test_pages_are_made_of_collected_results(collected, tmp_path):
    assert main(["report", str(collected), "--out", str(tmp_path / "report"), "--quiet"]) == 0
    page = (tmp_path / "report" / "report.html").read_text()
    assert len(page) > 10_000
    assert (tmp_path / "report" / "figures" / "curves-digits.svg").is_file()


def test_what_runs_have_in_common_is_written_once(collected):
    described = json.loads((collected / "digits" / "results.json").read_text())
    assert len(described["setups"]) == 3
    assert len(described["software"]) == 1
    assert described["software"][0]["versions"]["torch"] == "2.13.0"
    assert [run["seed"] for run in described["runs"]] == [0, 1, 2] * 3
    assert "/somewhere/else" not in json.dumps(described)  # where data lay is of no use to others
    assert all("seed" not in setup["configuration"] for setup in described["setups"])


def test_the_rows_are_a_plain_table(collected):
    (path,) = (collected / "digits").glob("rows-*.csv.xz")
    table = pd.read_csv(path)
    assert table.columns[0] == "run"
    assert set(table["run"]) == set(range(9))


def test_the_same_again_changes_nothing(runs, collected, capsys):
    before = files_of(collected)
    assert main(["collect", str(runs), "--to", str(collected)]) == 0
    assert "0 new, 0 replaced, 9 as they were" in capsys.readouterr().out
    assert files_of(collected) == before


def test_parts_in_any_order_give_the_same_files(runs, collected, tmp_path):
    parts = sorted(path for path in (runs / "digits").iterdir())
    for part in (parts[2], parts[0], parts[1], parts[0]):
        add(runs_below(part), tmp_path / "other")
    assert files_of(tmp_path / "other") == files_of(collected)


def test_a_run_made_anew_takes_the_place_of_the_old_one(runs, collected, tmp_path):
    other = tmp_path / "anew"
    write_run(other, "digits", METHODS[1], 1, score(0.5), every=25)  # looked at more often: the same run
    assert add(runs_below(other), collected).replaced == 1
    results = read([collected])
    assert len(results.runs) == 9
    finals = metrics.final_performance(results.rows)
    (run,) = (run for run in results.runs if run.method == METHODS[1] and run.seed == 1)
    assert finals[run.name] == pytest.approx(sum(score(0.5)(5, j) for j in range(6)) / 6)


def test_only_what_has_ended_is_collected(runs, tmp_path, capsys):
    write_run(runs, "digits", METHODS[0], 7, score(0.9), status="interrupted")
    write_run(runs, "digits", METHODS[0], 8, score(0.9), status="failed: diverged")
    shutil.rmtree(runs / "digits" / "monolithic_nft_no-components_")
    (runs / "digits" / "soft-ordering_er_joint_" / "seed-0" / "run.json").write_text("{}")
    added = add(runs_below(runs), tmp_path / "kept")
    assert added.new == 6
    assert len(added.left_out) == 2
    statuses = [run.status for run in read_collection(tmp_path / "kept" / "digits").runs]
    assert statuses.count("failed: diverged") == 1
    assert main(["collect", str(tmp_path / "kept"), "--to", str(tmp_path / "x")]) == 2
    assert "holds no runs" in capsys.readouterr().err


def test_why_results_are_reduced_is_kept(runs, tmp_path):
    main(["collect", str(runs), "--to", str(tmp_path / "kept"), "--reduced", "half of them"])
    results = read([tmp_path / "kept"])
    assert {run.reduced for run in results.runs} == {"half of them"}
    assert all(run.changes["data"] == "half of them" for run in results.runs)
    assert all(run.paper is None for run in results.runs)
    add(runs_below(runs), tmp_path / "kept")  # that was a mistake
    assert {run.reduced for run in read([tmp_path / "kept"]).runs} == {None}


@pytest.mark.parametrize("which", ["results.json", "rows"])
@pytest.mark.parametrize("how", ["cut", "changed", "gone"])
def test_damage_is_noticed(collected, which, how, runs):
    (path,) = (collected / "digits").glob(f"{which}*")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data[:-20] if how == "cut" else data)
    if how == "gone":
        path.unlink()
    if path.name == "results.json" and how == "gone":
        assert collections_below(collected) == []
        return
    with pytest.raises(LoadError, match=r"damaged|cannot be read"):
        read_collection(collected / "digits")
    both = read([collected, runs])  # the others are shown, and it is said
    assert len(both.runs) == 9
    assert any(str(path) in note for note in both.notes)
    with pytest.raises(LoadError):
        add(runs_below(runs), collected)  # nothing is lost by adding


def test_wrong_files_are_refused_in_plain_words(collected):
    path = collected / "digits" / "results.json"
    good = json.loads(path.read_text())
    del good["sha256"]
    (rows,) = (collected / "digits").glob("rows-*.csv.xz")
    wrong = [
        good | {"runs": [{}]},
        good | {"runs": [good["runs"][0] | {"setup": 99}]},
        good | {"setups": [good["setups"][0] | {"method": 3}]},
        good | {"setups": [good["setups"][0] | {"configuration": {"stream": []}}]},
        good | {"rows": {"size": "1", "sha256": ""}},
        good | {"rows": {"size": 1, "sha256": "../../x"}},
        good | {"version": 2},
        good | {"format": "run"},
    ]
    for data in wrong:
        path.write_text(json.dumps(data))
        with pytest.raises(LoadError):
            read_collection(collected / "digits")
    assert rows.is_file()


def test_an_interrupted_addition_leaves_what_was_there(runs, collected, monkeypatch, tmp_path):
    before = metrics.final_performance(read([collected]).rows)
    write_run(tmp_path / "more", "digits", METHODS[0], 9, score(0.9))

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("piaget.lab.collecting.write_json", killed)
    with pytest.raises(KeyboardInterrupt):
        add(runs_below(tmp_path / "more"), collected)
    pd.testing.assert_series_equal(metrics.final_performance(read([collected]).rows), before)
    monkeypatch.undo()
    add(runs_below(tmp_path / "more"), collected)
    assert len(list((collected / "digits").glob("rows-*"))) == 1
    assert len(read([collected]).runs) == 10


def test_streams_whose_names_would_be_one_folder(tmp_path):
    assert folder_of("cub/resnet18_approx", tmp_path).name == "cub-resnet18_approx"
    write_run(tmp_path / "a", "cub/x", METHODS[0], 0, score(0.5))
    write_run(tmp_path / "b", "cub", METHODS[0], 0, score(0.5))
    (tmp_path / "b" / "cub").rename(tmp_path / "b" / "y")
    text = (path := next((tmp_path / "b").rglob("rows.csv"))).read_text()
    path.write_text(text.replace("cub,", "cub x,"))
    add(runs_below(tmp_path / "a"), tmp_path / "kept")
    with pytest.raises(SettingError, match="cub/x"):
        add(runs_below(tmp_path / "b"), tmp_path / "kept")


def test_names_may_be_anything(tmp_path):
    names = ["a\nb", 'c,"d"', "e\u2028f", "\r", "=1+1", "g"]
    write_run(tmp_path / "runs", "digits", METHODS[0], 0, score(0.5), names=names)
    add(runs_below(tmp_path / "runs"), tmp_path / "kept")
    before = files_of(tmp_path / "kept")
    add(runs_below(tmp_path / "runs"), tmp_path / "kept")
    assert files_of(tmp_path / "kept") == before
    assert list(metrics.by_task(read([tmp_path / "kept"]).rows)["evaluated"]) == names


def test_long_streams_are_thinned_and_their_numbers_stay(tmp_path):
    rows = rows_of("digits", METHODS[1], 0, score(0.9), tasks=60, every=50)
    kept = essential(rows)
    scores = [row for row in kept if row["metric"] == "accuracy" and row["stage"] != "removal"]
    assert len(scores) <= MOST + 3 * 60
    assert len([row for row in rows if row["metric"] == "accuracy"]) > 3000
    whole, thin = (pd.DataFrame(some).assign(run="a") for some in (rows, kept))
    for metric in (
        metrics.final_performance,
        metrics.forward_performance,
        metrics.forgetting,
        metrics.backward_transfer,
    ):
        assert float(metric(thin)["a"]) == pytest.approx(float(metric(whole)["a"]), abs=1e-12)
    assert len(metrics.reuse(thin)) == 4
    assert [row for row in kept if row["stage"] == "structure"] == [
        row for row in rows if row["stage"] == "structure"
    ]


def test_a_best_score_within_a_task_is_not_taken_for_one_after_it():
    """Scores on the way are looked at, but it is the last of each task's training that counts."""
    rows = rows_of("digits", METHODS[1], 0, lambda i, j: 0.5, tasks=60, every=2)
    for row in rows:
        if row["metric"] == "accuracy" and row["epoch"] == 50:
            row["value"] = 0.99
    thin = pd.DataFrame(essential(rows)).assign(run="a")
    assert float(metrics.forgetting(thin)["a"]) == 0


def test_it_is_compact(tmp_path):
    """A run of the paper's size takes a few kB."""
    for seed in range(5):
        write_run(tmp_path / "runs", "digits", METHODS[0], seed, score(0.9), tasks=20, kept=[5, 9])
    add(runs_below(tmp_path / "runs"), tmp_path / "kept")
    assert sum(len(data) for data in files_of(tmp_path / "kept").values()) < 5 * 5_000


def test_rows_can_be_read_by_anybody(collected):
    (path,) = (collected / "digits").glob("rows-*.csv.xz")
    text = lzma.decompress(path.read_bytes()).decode()
    lines = list(csv.DictReader(io.StringIO(text, newline="")))
    assert {line["metric"] for line in lines} >= {"accuracy", "loss", "components", "weight", "kept"}
    losses = [line for line in lines if line["run"] == "0" and line["metric"] == "loss"]
    assert len(losses) == 6 + 5  # the first and final one of each task, but of the last


def test_runs_are_compared_with_results_that_were_kept(runs, collected, tmp_path, capsys):
    out = tmp_path / "report"
    assert main(["report", str(runs), "--against", str(collected), "--out", str(out)]) == 0
    assert "Final performance beside other results" in capsys.readouterr().out
    lines = list(csv.DictReader(io.StringIO((out / "tables" / "against.csv").read_text())))
    assert [line["verdict"] for line in lines] == ["the same"] * 3
    assert {float(line["other seeds"]) for line in lines} == {3}


@pytest.mark.parametrize(
    ("seeds", "change", "verdict"),
    [
        (5, 0.0, "the same"),
        (5, 0.01, "matches"),
        (5, 0.2, "higher"),
        (5, -0.2, "lower"),
        (4, 0.2, "too few seeds"),
    ],
)
def test_verdicts_beside_other_results(tmp_path, seeds, change, verdict):
    for name, moved in (("here", change), ("there", 0.0)):
        for seed in range(seeds):
            level = 0.7 + 0.02 * seed + moved
            write_run(tmp_path / name, "digits", METHODS[1], seed, constant(level))
    write_run(tmp_path / "there", "digits", METHODS[2], 0, score(0.5))
    here, there = (Contents(read([tmp_path / name])) for name in ("here", "there"))
    (row,) = against(here, there).rows
    assert row[-1].text == verdict
    assert row[-2].value == pytest.approx(100 * abs(change), abs=1e-6)
