"""Reports of runs that do not go well together: what is compared, what is not, and what is said."""

import json
import math
from typing import Any

import pytest

from piaget.cli import main
from piaget.errors import SettingError
from piaget.files import read_json, write_json
from piaget.lab import folder
from piaget.lab.collecting import add
from piaget.lab.essence import essential
from piaget.lab.folder import DIVERGED, runs_below
from piaget.lab.jobs import Job
from piaget.lab.parts import NOTHING
from piaget.lab.sweeps import check_jobs
from piaget.paper.names import Method
from piaget.report.claims import FAILS, HOLDS, Comparison, Finding
from piaget.report.contents import Contents
from piaget.report.forms import number
from piaget.report.reading import read
from piaget.report.statistics import holm
from piaget.report.tables import tables
from tests.made_runs import constant, rows_of, write_run
from tests.sample_report import data_of

DYNAMIC, JOINT, BASE = "soft-ordering/er/dynamic", "soft-ordering/er/joint", "monolithic/nft/no-components"


def table(contents, name):
    return next(one for one in tables(contents) if one.name == name)


def changed(path, **fields):
    """A run whose description says something else."""
    description = read_json(path / "run.json")
    write_json(path / "run.json", description | fields)


def test_a_stream_all_of_whose_runs_diverged(tmp_path):
    runs = tmp_path / "runs"
    write_run(runs, "digits", DYNAMIC, 0, constant(0.9))
    write_run(runs, "mnist", DYNAMIC, 0, constant(0.9), status=DIVERGED)
    assert main(["report", str(runs), "--out", str(tmp_path / "report"), "--quiet"]) == 0
    data = data_of((tmp_path / "report" / "report.html").read_text())
    assert [stream["name"] for stream in data["streams"]] == ["digits", "mnist"]
    assert any("diverged" in note for note in data["notes"])


def test_only_what_a_report_wrote_is_removed(tmp_path):
    runs, out = tmp_path / "runs", tmp_path / "report"
    write_run(runs, "digits", DYNAMIC, 0, constant(0.9))
    write_run(runs, "mnist", DYNAMIC, 0, constant(0.9))
    assert main(["report", str(runs), "--out", str(out), "--quiet"]) == 0
    assert (out / "figures" / "bars-mnist.svg").is_file()
    mine = out / "figures" / "mine.pdf"
    mine.write_bytes(b"of my own")
    elsewhere = tmp_path / "elsewhere.svg"
    elsewhere.write_bytes(b"not of the report")
    listed = out / ".files.txt"
    listed.write_text(listed.read_text() + "\n../elsewhere.svg\nfigures/../../elsewhere.svg\nfigures/..")
    assert main(["report", str(runs / "digits"), "--out", str(out), "--quiet"]) == 0
    assert mine.read_bytes() == b"of my own"
    assert elsewhere.is_file()
    assert not (out / "figures" / "bars-mnist.svg").exists()
    assert (out / "figures" / "bars-digits.svg").is_file()


def test_a_number_without_end_is_no_number_of_the_page():
    assert (number(math.inf).text, number(math.inf).value) == ("∞", None)
    assert Comparison("same difference", (2.0, 2.0, 2.0)).effect == math.inf


def test_gains_are_over_the_baseline_with_the_same_settings(tmp_path):
    for settings in ({}, {"width": 32}, {"width": 64}):
        level = 0.5 + settings.get("width", 0) / 1000
        write_run(tmp_path, "digits", BASE, 0, constant(level), settings=settings)
        write_run(tmp_path, "digits", JOINT, 0, constant(0.9), settings=settings)
    write_run(tmp_path, "digits", DYNAMIC, 0, constant(0.9), settings={"width": 32, "threshold": 0.1})
    write_run(tmp_path, "digits", DYNAMIC, 0, constant(0.9), settings={"dropout": 0.1})
    contents = Contents(read([tmp_path]))
    runs = {run.name: run for run in contents.results.runs}
    assert len(contents.references) == 8
    for name, reference in contents.references.items():
        assert runs[name].changes.get("width") == runs[reference].changes.get("width")


def test_runs_on_other_data_are_not_paired(tmp_path):
    for seed in range(4):
        for method, level in ((DYNAMIC, 0.9), (JOINT, 0.8)):
            write_run(tmp_path, "digits", method, seed, constant(level + 0.01 * (seed % 3) * level))
    assert table(Contents(read([tmp_path])), "differences").rows[0][3].text == "4"
    (run,) = (run.path for run in runs_below(tmp_path) if run.seed == 2 and "joint" in str(run.path))
    changed(run, data={"a": "another table"})
    contents = Contents(read([tmp_path]))
    assert table(contents, "differences").rows[0][3].text == "3"
    assert any("learned from different data with seeds 2: not compared" in n for n in contents.results.notes)
    add(runs_below(tmp_path), tmp_path / "kept")
    assert table(Contents(read([tmp_path / "kept"])), "differences").rows[0][3].text == "3"


def test_unfinished_runs_have_no_verdict_anywhere(tmp_path):
    for seed in range(6):
        write_run(tmp_path, "mnist", DYNAMIC, seed, constant(0.5 + 0.01 * seed), status="interrupted")
    contents = Contents(read([tmp_path]))
    assert table(contents, "final").rows[0][6].text == "unfinished"
    assert table(contents, "components").rows[0][4].text == "unfinished"


def test_streams_of_ones_own_with_the_same_last_name(tmp_path):
    for place, level in (("a", 0.9), ("b", 0.2)):
        path = write_run(tmp_path / place, "digits", DYNAMIC, 0, constant(level))
        description = read_json(path / "run.json")
        description["configuration"]["stream"] = f"{place}:digits"
        write_json(path / "run.json", description)
    contents = Contents(read([tmp_path]))
    assert len(contents.groups) == 2
    assert all(place in group.label for place, group in zip(("a:", "b:"), contents.groups, strict=True))


# --- collected ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("there", "new", "why"),
    [
        ({}, {"status": DIVERGED}, "it diverged"),
        ({"every": 10}, {}, "no learning curves"),
        ({}, {"reduced": "a part"}, "of reduced data"),
    ],
)
def test_results_that_tell_less_do_not_take_the_place_of_others(tmp_path, there, new, why):
    write_run(tmp_path / "a", "digits", DYNAMIC, 0, constant(0.9), **there)
    reduced = new.pop("reduced", None)
    write_run(tmp_path / "b", "digits", DYNAMIC, 0, constant(0.8), **new)
    add(runs_below(tmp_path / "a"), tmp_path / "kept")
    before = (tmp_path / "kept" / "digits" / "results.json").read_bytes()
    added = add(runs_below(tmp_path / "b"), tmp_path / "kept", reduced)
    assert (added.new, added.replaced, len(added.left_out)) == (0, 0, 1)
    assert why in added.left_out[0]
    assert (tmp_path / "kept" / "digits" / "results.json").read_bytes() == before


def test_the_same_run_twice_is_told(tmp_path):
    for place in ("a", "b"):
        write_run(tmp_path / place, "digits", DYNAMIC, 0, constant(0.9))
    added = add(runs_below(tmp_path), tmp_path / "kept")
    assert (added.new, added.replaced) == (1, 0)
    assert "is the same run as another one" in added.left_out[0]


# --- claims -------------------------------------------------------------------------------------------------


def finding(*comparisons):
    return Finding(comparisons, tuple(holm([one.p for one in comparisons])))


def test_a_claim_about_two_things_needs_both():
    better = Comparison("points", (3.0, 3.1, 2.9), of="scores")
    worse = Comparison("points", (-0.5, 0.1, -0.4), of="scores")
    fewer = Comparison("components", (9.0, 9.1, 8.9), of="components")
    assert finding(better, fewer).verdict == HOLDS
    assert finding(worse, fewer).verdict == FAILS
    assert finding(better).verdict == HOLDS


def test_what_is_no_p_value_is_left_out_of_the_correction():
    corrected = holm([0.01, math.nan, 0.001])
    assert corrected[0] == pytest.approx(0.01)
    assert math.isnan(corrected[1])
    assert corrected[2] == pytest.approx(0.002)


# --- resumed ------------------------------------------------------------------------------------------------


def test_a_run_that_failed_before_it_began_keeps_its_name(tmp_path):
    configuration: dict[str, Any] = {
        "stream": "digits",
        "table": None,
        "options": {},
        "structure": "soft-ordering",
    }
    configuration |= {"adaptation": "er", "algorithm": "no-components", "epochs": 2, "every": None}
    configuration |= {"settings": {}}
    folder.begin(tmp_path, configuration, 0)
    folder.note(tmp_path, status="failed", error="no memory")
    described = json.loads((tmp_path / "run.json").read_text())
    assert described["configuration"]["algorithm"] == "no-components"
    folder.begin(tmp_path, configuration, 0)  # the same command again
    with pytest.raises(SettingError):
        folder.begin(tmp_path, configuration | {"algorithm": "no-components-frozen"}, 0)


def test_streams_of_a_sweep_have_different_names():
    method = Method("er", "dynamic", "soft-ordering")
    jobs = [Job(f"{place}:make_stream", method, (0,)) for place in ("a", "b")]
    with pytest.raises(
        SettingError, match="a:make_stream and b:make_stream would both be called make_stream"
    ):
        check_jobs(jobs, NOTHING)


def test_the_first_look_at_each_task_is_kept():
    """However many rows there are: later tasks are compared by it."""
    rows = rows_of("digits", DYNAMIC, 0, constant(0.9), epochs=100, every=1, tasks=20)
    own = [row for row in rows if row["trained"] == row["evaluated"] and row["metric"] == "accuracy"]
    kept = [row for row in essential(rows) if row in own and row["epoch"] == 1]
    assert len(kept) == len({row["evaluated"] for row in own})


def test_the_command_of_a_table_has_all_its_options(tmp_path):
    path = write_run(tmp_path, "digits", DYNAMIC, 0, constant(0.9))
    description = read_json(path / "run.json")
    table = {"table": "x.csv", "group": "site", "target": "ill", "train_size": 50, "shuffle": True}
    description["configuration"] |= {"stream": None, "table": table}
    write_json(path / "run.json", description)
    (run,) = read([tmp_path]).runs
    words = "--table x.csv --group site --target ill --option train_size=50 --option shuffle=True"
    assert words in run.command
