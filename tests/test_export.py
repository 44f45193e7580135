"""What is exported of a run, and when: each score once, whatever happens in between."""

import json
import os
import shutil
import sys

import filelock
import pytest

from piaget.errors import LoadError, PackageError
from piaget.lab import exports as export, sinks
from piaget.lab.exports import Exporter
from piaget.lab.row_file import as_csv
from piaget.lab.sinks import MLflow, Point, TensorBoard
from tests.exported import FIRST, HEADER, ODD, SECOND, append, make_run, row, run_command

# MLflow and TensorBoard are not free of what their own libraries warn of.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(autouse=True)
def _quiet(monkeypatch, tmp_path):
    """No telemetry, and no mlruns folder in the repository."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.chdir(tmp_path)


class Memory:
    """A sink that remembers what it was sent."""

    name, odd = "memory", MLflow.odd

    def __init__(self, target="here"):
        self.target, self.points, self.shown, self.begun = target, [], [], 0
        self.again = []

    def begin(self, run, place):
        self.begun += 1
        return "place", place is not None

    def send(self, place, points, when, again):
        self.points += points
        self.again.append((when, again))

    def show(self, run, place):
        self.shown.append(run.status)

    def close(self):
        pass


def test_steps_tags_and_means(tmp_path):
    make_run(tmp_path / "seed-0", FIRST + SECOND)
    sink = Memory()
    assert Exporter(tmp_path, sink).update() == 5 + 5 + 7
    steps = {tag: [p.step for p in sink.points if p.tag == tag] for tag in {p.tag for p in sink.points}}
    assert steps["accuracy/test/t0"] == [10, 20, 30]
    assert steps["loss/test/t2"] == [30]
    assert steps["components"] == [10, 20, 30]
    means = [p.value for p in sink.points if p.tag == "accuracy/test/mean"]
    assert means == pytest.approx([0.6, 0.7, 0.6])


def test_scores_that_not_all_tasks_have(tmp_path):
    """A curve for each task that has them, and the mean over these."""
    *scores, components = SECOND
    further = [row("t2", 10, "t0", 0.75, "auc"), row("t2", 10, "t2", 0.25, "auc")]
    make_run(tmp_path / "seed-0", [*scores, *further, components])
    sink = Memory()
    assert Exporter(tmp_path, sink).update() == 9
    found = {point.tag: point.value for point in sink.points if point.tag.startswith("auc/")}
    assert found == {"auc/test/t0": 0.75, "auc/test/t2": 0.25, "auc/test/mean": 0.5}


def test_a_growing_file_with_torn_lines(tmp_path):
    """Cut anywhere, by one exporter or by new ones, the same points are sent, each once."""
    rows = FIRST + SECOND
    whole, data = Memory(), as_csv(rows)
    make_run(tmp_path / "whole", rows)
    Exporter(tmp_path / "whole", whole).update()
    for keep_exporter in (True, False):
        folder = make_run(tmp_path / f"growing-{keep_exporter}", status="stopped")
        sink, exporter = Memory(), None
        for i in range(0, len(data), 37):
            with open(folder / "rows.csv", "ab") as handle:
                handle.write(data[i : i + 37])
            if exporter is None or not keep_exporter:
                exporter = Exporter(folder, sink)
            exporter.update()
        assert sink.points == whole.points
        assert not any(again for _, again in sink.again)


def test_what_a_crash_cut_off_is_not_sent_twice(tmp_path):
    folder = make_run(tmp_path / "run", FIRST, status="stopped")
    sink = Memory()
    exporter = Exporter(tmp_path, sink)
    exporter.update()
    os.truncate(folder / "rows.csv", len(HEADER) + len(as_csv(FIRST[:7])))
    assert exporter.update() == 0
    assert Exporter(tmp_path, sink).update() == 0
    append(folder, FIRST[7:] + SECOND)
    assert exporter.update() == len(SECOND)
    assert [p.step for p in sink.points if p.tag == "components"] == [10, 20, 30]


def test_an_epoch_is_sent_when_it_is_complete(tmp_path):
    rows = [row("t0", 1, "t0", 0.5), row("t0", 1, "t1", 0.7)]
    folder = make_run(tmp_path / "run", rows, status="stopped")
    sink = Memory()
    exporter = Exporter(tmp_path, sink)
    assert exporter.update() == 0
    make_run(folder, rows, status="done")
    assert exporter.update() == 2
    assert sink.points[-1] == Point("accuracy/test/mean", 1, 0.6)


def test_a_file_that_did_not_grow_is_not_read(tmp_path, monkeypatch):
    folder = make_run(tmp_path / "run", FIRST)
    sink = Memory()
    exporter = Exporter(tmp_path, sink)
    exporter.update()
    begun = sink.begun
    monkeypatch.setattr(export, "_moments", None)
    monkeypatch.setattr(export, "RunFolder", None)
    assert exporter.update() == 0
    assert sink.begun == begun
    assert json.loads((folder / "export-memory.json").read_text())["targets"]["here"]["step"] == 20


def test_another_target_starts_anew_and_the_first_goes_on(tmp_path):
    folder = make_run(tmp_path / "run", FIRST, status="stopped")
    here, there = Memory("here"), Memory("there")
    assert Exporter(tmp_path, here).update() == 10
    append(folder, SECOND)
    assert Exporter(tmp_path, there).update() == 17
    assert Exporter(tmp_path, here).update() == 7
    assert here.points == there.points


def test_what_was_broken_off_is_sent_again_with_its_time(tmp_path, monkeypatch):
    """The target may have some of it: it is told so, and the numbers are the same."""
    folder = make_run(tmp_path / "run", FIRST)
    sink = Memory()

    def broken(*arguments):
        Memory.send(sink, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sink, "send", broken)
        with pytest.raises(KeyboardInterrupt):
            Exporter(tmp_path, sink).update()
    os.utime(folder / "rows.csv", (1, 1))
    Exporter(tmp_path, sink).update()
    half = len(sink.points) // 2
    assert sink.points[:half] == sink.points[half:]
    (first, _), (second, again) = sink.again
    assert (first, True) == (second, again)


def test_large_files_are_noted_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "BATCH", 10)
    make_run(tmp_path / "run", FIRST + SECOND)
    sink = Memory()
    Exporter(tmp_path, sink).update()
    assert len(sink.again) == 2


@pytest.mark.parametrize("odd", [MLflow.odd, TensorBoard.odd])
def test_names_stay_apart(odd):
    cleaned = [sinks.clean(name, odd) for name in ODD]
    assert len(set(cleaned)) == len(ODD)
    assert "mean" not in cleaned
    assert cleaned == [sinks.clean(name, odd) for name in ODD]
    # A cleaned name cannot be the name of another task.
    assert not set(cleaned) & {sinks.clean(name, odd) for name in set(cleaned) - set(ODD)}
    for plain in ("größe", "a/b", "a_b", " ", "Site 7: north"):
        assert sinks.clean(plain, odd) == plain


# --- what is wrong with folders -------------------------------------------------------------------------


def test_folders_that_cannot_be_exported(tmp_path):
    def refused(*what):
        exporter = Exporter(tmp_path, Memory())
        assert exporter.update() == 0
        (said,) = exporter.damaged.values()
        assert all(part in said for part in what), said

    with pytest.raises(LoadError, match="holds no runs"):
        Exporter(tmp_path, Memory()).update()
    folder = make_run(tmp_path / "run", FIRST)
    good = (folder / "rows.csv").read_bytes()
    (folder / "rows.csv").write_bytes(good + b"s,m,0,t2,ten,joint,t0,test,accuracy,0.5\n")
    refused("rows.csv", "ten", "is no row")
    (folder / "rows.csv").write_bytes(good + b"\xff,m\n")
    refused("rows.csv", "is no row")
    (folder / "rows.csv").write_bytes(b"a,b\n1,2\n")
    refused("rows.csv", "columns a, b")
    (folder / "rows.csv").write_bytes(good)
    Exporter(tmp_path, Memory()).update()
    (folder / "rows.csv").write_bytes(good.replace(b"joint", b"jnt") + as_csv(FIRST))
    refused("rows.csv", "was changed")
    (folder / "export-memory.json").write_text("{")
    refused("export-memory.json", "damaged")
    (folder / "run.json").write_text("{")
    refused("run.json", "is damaged")


def test_a_damaged_run_does_not_keep_the_others(tmp_path):
    make_run(tmp_path / "a", FIRST)
    make_run(tmp_path / "b", FIRST)
    (tmp_path / "a" / "run.json").write_text("[" * 100_000)
    exporter = Exporter(tmp_path, Memory())
    assert exporter.update() == len(FIRST)
    assert list(exporter.damaged) == [tmp_path / "a"]


def test_a_copy_is_a_run_of_its_own(tmp_path):
    make_run(tmp_path / "a", FIRST)
    sink = Memory()
    assert Exporter(tmp_path, sink).update() == len(FIRST)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert Exporter(tmp_path, sink).update() == len(FIRST)
    assert Exporter(tmp_path, sink).update() == 0


def test_a_run_without_rows_yet(tmp_path):
    folder = make_run(tmp_path / "run", status="new")
    (folder / "rows.csv").unlink()
    sink = Memory()
    assert Exporter(tmp_path, sink).update() == 0
    (folder / "rows.csv").write_bytes(HEADER[:7])
    assert Exporter(tmp_path, sink).update() == 0


def test_runs_of_several_folders_have_names_of_their_own(tmp_path, monkeypatch):
    for name in ("a/seed-0", "b/seed-0"):
        make_run(tmp_path / name, FIRST)
    sink, names = Memory(), []

    def begin(run, place):
        names.append(run.name)
        return "place", False

    monkeypatch.setattr(sink, "begin", begin)
    Exporter([tmp_path / "a", tmp_path / "b", tmp_path / "a" / "seed-0"], sink).update()
    Exporter(tmp_path / "a", sink).update()
    Exporter(tmp_path / "a" / "seed-0", sink).update()
    assert names == ["a/seed-0", "b/seed-0", "seed-0", "seed-0"]


# --- while runs are running -----------------------------------------------------------------------------


def test_statuses_of_runs_at_work(tmp_path):
    folder = make_run(tmp_path / "run", FIRST, status="running")
    sink = Memory()
    exporter = Exporter(tmp_path, sink)
    with filelock.FileLock(folder / ".lock"):
        exporter.update()
        assert exporter.at_work
    exporter.update()
    assert not exporter.at_work
    with filelock.FileLock(folder / ".lock"):
        make_run(folder, FIRST, status="running", goes_on=True)
        exporter.update()
        assert exporter.at_work
        make_run(folder, FIRST, status="done")
    with filelock.FileLock(tmp_path / ".lock"):  # a sweep, between two runs
        exporter.update()
        assert exporter.at_work
    exporter.update()
    assert not exporter.at_work
    assert sink.shown == ["running", "interrupted", "running", "done"]


# --- packages that are not there ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "package"),
    [(("tensorboard", "--out", "tb"), "tensorboard"), (("mlflow", "--uri", "http://x"), "mlflow")],
)
def test_missing_packages(tmp_path, monkeypatch, arguments, package):
    monkeypatch.setitem(sys.modules, package, None)
    where, *options = arguments
    with pytest.raises(PackageError, match=rf"the package {package}, .* pip install 'piaget\[{package}\]'"):
        run_command(where, make_run(tmp_path / "run"), *options)
    assert not (tmp_path / "tb").exists()
