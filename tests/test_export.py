"""Scores in TensorBoard and MLflow, read back with their own readers."""

import argparse
import json
import os
import sys
import threading
import time
from pathlib import Path

import filelock
import pytest

from piaget.cli import export as command
from piaget.errors import LoadError, PackageError, PiagetError, SettingError
from piaget.knowledge.storage import write_atomically
from piaget.lab import exports as export, sinks
from piaget.lab.exports import Exporter
from piaget.lab.row_file import HEADER, as_csv
from piaget.lab.sinks import MLflow, Point, TensorBoard

# MLflow and TensorBoard are not free of what their own libraries warn of.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(autouse=True)
def _quiet(monkeypatch, tmp_path):
    """No telemetry, and no mlruns folder in the repository."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.chdir(tmp_path)


# --- runs by hand ---------------------------------------------------------------------------------------


def row(trained, epoch, evaluated, value, metric="accuracy", split="test", stage="joint"):
    return {
        "stream": "s",
        "method": "m",
        "seed": 0,
        "trained": trained,
        "epoch": epoch,
        "stage": stage,
        "evaluated": evaluated,
        "split": split,
        "metric": metric,
        "value": value,
    }


def moment(trained, epoch, scores, components=4):
    """What one evaluation writes."""
    rows = [row(trained, epoch, task, value) for task, value in scores.items()]
    rows += [row(trained, epoch, task, 1 - value, "loss") for task, value in scores.items()]
    return [*rows, row(trained, epoch, "", float(components), "components", "")]


CONFIGURATION = {"stream": "s", "epochs": None, "settings": {"width": 64, "a.b": [1, 2]}, "seed": 0}


def make_run(folder, rows=(), status="done", **more):
    folder.mkdir(parents=True, exist_ok=True)
    description = {
        "configuration": CONFIGURATION,
        "status": status,
        "started": "2024-05-01T10:00:00+00:00",
        "finished": None,
        "error": None,
    }
    (folder / "run.json").write_text(json.dumps(description | more))
    (folder / "rows.csv").write_bytes(HEADER + as_csv(list(rows)))
    return folder


def append(folder, rows, cut=None):
    with open(folder / "rows.csv", "ab") as handle:
        handle.write(as_csv(rows)[:cut])


FIRST = moment("t1", 10, {"t0": 0.5, "t1": 0.7}) + moment("t1", 20, {"t0": 0.6, "t1": 0.8})
SECOND = moment("t2", 10, {"t0": 0.4, "t1": 0.6, "t2": 0.8}, 5)


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
    monkeypatch.setattr(export, "read_description", None)
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


def test_what_was_broken_off_is_sent_again_with_its_time(tmp_path):
    """The target may have some of it: it is told so, and the numbers are the same."""
    folder = make_run(tmp_path / "run", FIRST)
    sink = Memory()

    def broken(*arguments):
        Memory.send(sink, *arguments)
        raise KeyboardInterrupt

    sink.send = broken
    with pytest.raises(KeyboardInterrupt):
        Exporter(tmp_path, sink).update()
    del sink.send
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


ODD = [
    "mean",
    "größe",
    "a/b",
    "a//b",
    "a_b",
    "a?b",
    "a*b",
    "../x",
    "/x",
    "x/",
    "line\nbreak",
    'quo"te',
    "com,ma",
    "x" * 300,
    "x" * 301,
    " ",
    "a_b-x0123456789",
    "Site 7: north",
]


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
        with pytest.raises(LoadError) as caught:
            Exporter(tmp_path, Memory()).update()
        assert all(part in str(caught.value) for part in what), caught.value

    refused(str(tmp_path), "holds no runs")
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
    refused("run.json", "cannot be read")


def test_a_run_without_rows_yet(tmp_path):
    folder = make_run(tmp_path / "run", status="new")
    (folder / "rows.csv").unlink()
    sink = Memory()
    assert Exporter(tmp_path, sink).update() == 0
    (folder / "rows.csv").write_bytes(HEADER[:7])
    assert Exporter(tmp_path, sink).update() == 0


def test_runs_of_several_folders_have_names_of_their_own(tmp_path):
    for name in ("a/seed-0", "b/seed-0"):
        make_run(tmp_path / name, FIRST)
    sink, names = Memory(), []

    def begin(run, place):
        names.append(run.name)
        return "place", False

    sink.begin = begin
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


def run_command(*arguments):
    parser = argparse.ArgumentParser()
    command.add(parser.add_subparsers())
    options = parser.parse_args(["export", *map(str, arguments)])
    return options.run(options)


def test_following_a_run_to_its_end(tmp_path, monkeypatch, capsys):
    pytest.importorskip("tensorboard")
    monkeypatch.setattr(command, "SECONDS", 0.02)
    folder = make_run(tmp_path / "results" / "run", FIRST, status="running")
    begun, followed = threading.Event(), threading.Event()

    def train():
        with filelock.FileLock(folder / ".lock"):
            begun.set()
            followed.wait(10)
            append(folder, SECOND, cut=50)
            time.sleep(0.1)
            with open(folder / "rows.csv", "ab") as handle:
                handle.write(as_csv(SECOND)[50:])
            done = json.loads((folder / "run.json").read_text()) | {"status": "done"}
            write_atomically(folder / "run.json", json.dumps(done).encode())

    def update(self):
        sent = Exporter.update(self)
        followed.set()
        return sent

    worker = threading.Thread(target=train)
    worker.start()
    begun.wait(10)
    monkeypatch.setattr(export, "Exporter", type("Watched", (Exporter,), {"update": update}))
    assert run_command("tensorboard", tmp_path / "results", "--out", tmp_path / "tb", "--follow") == 0
    worker.join()
    shown = capsys.readouterr().out
    assert "1 run, 10 new rows sent" in shown
    assert "1 run, 7 new rows sent" in shown
    assert f"tensorboard --logdir {tmp_path / 'tb'}" in shown
    assert [e.step for e in events(tmp_path / "tb" / "run").Scalars("components")] == [10, 20, 30]


# --- TensorBoard ----------------------------------------------------------------------------------------


def events(folder):
    module = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = module.EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    return found.Reload()


def to_tensorboard(root, out):
    pytest.importorskip("tensorboard")
    exporter = Exporter(root, TensorBoard(out))
    sent = exporter.update()
    exporter.close()
    return sent


def test_event_files(tmp_path):
    results, out = tmp_path / "results", tmp_path / "tb"
    folder = make_run(results / "s" / "seed-0", FIRST, status="stopped")
    make_run(results / "s" / "seed-1", FIRST)
    assert to_tensorboard(results, out) == 20
    append(folder, SECOND)
    assert to_tensorboard(results, out) == 7
    assert to_tensorboard(results, out) == 0
    found = events(out / "s" / "seed-0")
    assert [(e.step, e.value) for e in found.Scalars("accuracy/test/t0")] == [
        (10, pytest.approx(0.5)),
        (20, pytest.approx(0.6)),
        (30, pytest.approx(0.4)),
    ]
    assert [e.value for e in found.Scalars("accuracy/test/mean")] == pytest.approx([0.6, 0.7, 0.6])
    assert [e.value for e in found.Scalars("components")] == [4, 4, 5]
    (text,) = found.Tensors("configuration/text_summary")
    assert '"width": 64' in text.tensor_proto.string_val[0].decode()
    assert [e.step for e in events(out / "s" / "seed-1").Scalars("components")] == [10, 20]
    assert to_tensorboard(results, tmp_path / "other") == 27


def test_odd_names_in_event_files(tmp_path):
    make_run(tmp_path / "run", moment("größe", 1, {name: i / 100 for i, name in enumerate(ODD)}))
    to_tensorboard(tmp_path / "run", tmp_path / "tb")
    found = events(tmp_path / "tb" / "run")
    tags = [tag for tag in found.Tags()["scalars"] if tag.startswith("accuracy/")]
    assert len(tags) == len(ODD) + 1
    assert "accuracy/test/größe" in tags
    assert len(found.Scalars("accuracy/test/mean")) == 1


def test_a_log_folder_that_was_removed_is_written_again(tmp_path):
    make_run(tmp_path / "run", FIRST)
    to_tensorboard(tmp_path / "run", tmp_path / "tb")
    for path in (tmp_path / "tb" / "run").iterdir():
        path.unlink()
    assert to_tensorboard(tmp_path / "run", tmp_path / "tb") == 10
    assert [e.step for e in events(tmp_path / "tb" / "run").Scalars("components")] == [10, 20]


def test_two_runs_are_not_mixed(tmp_path):
    for name in ("a", "b"):
        make_run(tmp_path / name / "seed-0", FIRST)
    to_tensorboard(tmp_path / "a", tmp_path / "tb")
    with pytest.raises(SettingError, match="has the events of another run"):
        to_tensorboard(tmp_path / "b", tmp_path / "tb")
    # It has its place: under another name nothing is sent again, and after a move it goes on.
    (tmp_path / "moved").mkdir()
    (tmp_path / "a" / "seed-0").rename(tmp_path / "moved" / "seed-9")
    append(tmp_path / "moved" / "seed-9", SECOND)
    assert to_tensorboard(tmp_path / "moved", tmp_path / "tb") == 7
    assert [e.step for e in events(tmp_path / "tb" / "seed-0").Scalars("components")] == [10, 20, 30]


def test_events_of_a_killed_export_are_shown_once(tmp_path, monkeypatch):
    folder = make_run(tmp_path / "run", FIRST, status="stopped")
    to_tensorboard(folder, tmp_path / "tb")
    append(folder, SECOND)
    flush = export._Kept.keep

    def killed(self, note):
        if note.sending is None:
            raise KeyboardInterrupt
        flush(self, note)

    with monkeypatch.context() as patch:
        patch.setattr(export._Kept, "keep", killed)
        with pytest.raises(KeyboardInterrupt):
            to_tensorboard(folder, tmp_path / "tb")
    assert to_tensorboard(folder, tmp_path / "tb") == 7
    assert [e.step for e in events(tmp_path / "tb" / "run").Scalars("components")] == [10, 20, 30]


def test_many_runs_do_not_keep_many_files_open(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard")
    monkeypatch.setattr(TensorBoard, "OPEN", 2)
    for i in range(4):
        make_run(tmp_path / "results" / f"seed-{i}", FIRST, status="stopped")
    sink = TensorBoard(tmp_path / "tb")
    monkeypatch.setattr(sink, "show", lambda run, place: None)
    Exporter(tmp_path / "results", sink).update()
    assert list(sink._writers) == ["seed-2", "seed-3"]
    sink.close()
    assert not sink._writers
    assert len(events(tmp_path / "tb" / "seed-0").Scalars("components")) == 2


# --- MLflow ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory):
    """Making the tables takes a second: it is done once."""
    pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    path = tmp_path_factory.mktemp("mlflow") / "empty.db"
    from mlflow import MlflowClient

    MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def database(tmp_path, empty_database):
    path = tmp_path / "mlflow.db"
    path.write_bytes(empty_database.read_bytes())
    return f"sqlite:///{path}"


def mlflow_runs(uri, experiment="piaget"):
    from mlflow import MlflowClient

    client = MlflowClient(uri)
    found = client.get_experiment_by_name(experiment)
    return client, {run.info.run_name: run for run in client.search_runs([found.experiment_id])}


def history(client, run, key):
    return [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, key)]


def test_mlflow_runs(tmp_path, database):
    results = tmp_path / "results"
    folder = make_run(results / "s" / "seed-0", FIRST, status="stopped")
    make_run(results / "s" / "seed-1", FIRST, finished="2024-05-01T11:00:00+00:00")
    assert Exporter(results, MLflow(database)).update() == 20
    append(folder, SECOND)
    assert Exporter(results, MLflow(database)).update() == 7
    assert Exporter(results, MLflow(database)).update() == 0
    client, runs = mlflow_runs(database)
    assert set(runs) == {"s/seed-0", "s/seed-1"}
    first, second = runs["s/seed-0"], runs["s/seed-1"]
    assert history(client, first, "accuracy/test/t0") == [(10, 0.5), (20, 0.6), (30, 0.4)]
    assert history(client, first, "accuracy/test/mean") == [
        (10, pytest.approx(0.6)),
        (20, pytest.approx(0.7)),
        (30, pytest.approx(0.6)),
    ]
    assert first.data.params["settings.width"] == "64"
    assert first.data.params["epochs"] == "null"
    assert len(first.data.params) == 5
    assert first.data.tags["piaget.folder"] == str(folder)
    assert (first.info.status, second.info.status) == ("KILLED", "FINISHED")
    assert second.info.end_time - second.info.start_time == 3600 * 1000


def test_the_mlflow_command(tmp_path, database, capsys):
    make_run(tmp_path / "results" / "run", FIRST)
    assert run_command("mlflow", tmp_path / "results", "--uri", database, "--experiment", "mine") == 0
    assert "1 run, 10 new rows sent" in (shown := capsys.readouterr().out)
    assert f"mlflow ui --backend-store-uri {database}" in shown
    client, runs = mlflow_runs(database, "mine")
    client.delete_experiment(runs["run"].info.experiment_id)
    with pytest.raises(SettingError, match="'mine' was deleted"):
        run_command("mlflow", tmp_path / "results", "--uri", database, "--experiment", "mine")


def test_statuses_in_mlflow(tmp_path, database):
    folder = make_run(tmp_path / "run", FIRST, status="running")
    exporter = Exporter(folder, MLflow(database))
    found = []

    def look():
        exporter.update()
        ((_, run),) = mlflow_runs(database)[1].items()
        found.append((run.info.status, run.data.tags["piaget.status"]))

    with filelock.FileLock(folder / ".lock"):
        look()
    make_run(folder, FIRST, status="failed")
    look()
    assert found == [("RUNNING", "running"), ("FAILED", "failed")]


def test_another_mlflow_target_starts_anew(tmp_path, database):
    make_run(tmp_path / "run", FIRST)
    assert Exporter(tmp_path / "run", MLflow(database)).update() == 10
    assert Exporter(tmp_path / "run", MLflow(database, "other")).update() == 10
    assert Exporter(tmp_path / "run", MLflow("sqlite:///mlflow.db", "other")).update() == 0
    client, runs = mlflow_runs(database)
    client.delete_run(runs["run"].info.run_id)
    assert Exporter(tmp_path / "run", MLflow(database)).update() == 10
    client, runs = mlflow_runs(database)
    assert history(client, runs["run"], "components") == [(10, 4), (20, 4)]


def test_what_mlflow_has_is_not_added_again(tmp_path, database, monkeypatch):
    make_run(tmp_path / "run", FIRST)
    sink = MLflow(database)

    def broken(*arguments):
        MLflow.send(sink, *arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(sink, "send", broken)
    with pytest.raises(KeyboardInterrupt):
        Exporter(tmp_path / "run", sink).update()
    assert Exporter(tmp_path / "run", MLflow(database)).update() == 10
    client, runs = mlflow_runs(database)
    assert history(client, runs["run"], "components") == [(10, 4), (20, 4)]


def test_odd_names_and_many_points_in_mlflow(tmp_path, database):
    tasks = {name: i / 10_000 for i, name in enumerate([*ODD, *(f"t{i}" for i in range(600))])}
    tasks["t0"] = float("nan")
    make_run(tmp_path / "run", moment("größe", 1, tasks))
    assert Exporter(tmp_path / "run", MLflow(database)).update() == 2 * 618 + 1
    _, runs = mlflow_runs(database)
    metrics = runs["run"].data.metrics
    assert len(metrics) == 2 * 618 + 2 + 1
    assert metrics["accuracy/test/größe"] == 0.0001
    assert metrics["accuracy/test/t599"] == pytest.approx(0.0617)


def test_configurations_as_params():
    params = sinks.flat({"a": {"b": 1}, "a.b": "x", "n": None, "c": {"d": {"e": [1]}}}, MLflow.odd)
    assert params["a.b"] == "1"
    assert (params["n"], params["c.d.e"], len(params)) == ("null", "[1]", 4)


def test_a_server_that_is_not_there(tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    assert int(sinks.MANNERS["MLFLOW_HTTP_REQUEST_MAX_RETRIES"]) <= 2
    monkeypatch.setitem(sinks.MANNERS, "MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    make_run(tmp_path / "run", FIRST)
    begin = time.monotonic()
    with pytest.raises(PiagetError, match=r"MLflow at http://127\.0\.0\.1:9 cannot be reached") as caught:
        run_command("mlflow", tmp_path / "run", "--uri", "http://me:secret@127.0.0.1:9")
    assert time.monotonic() - begin < 5
    assert "secret" not in str(caught.value)
    assert "MLFLOW_HTTP_REQUEST_MAX_RETRIES" not in os.environ


@pytest.mark.parametrize("uri", ["nonsense://x", "sqlite:///folder", "sqlite:///text.txt"])
def test_addresses_that_cannot_be(tmp_path, uri):
    pytest.importorskip("mlflow")
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.txt").write_text("This is no database." * 100)
    with pytest.raises(PiagetError, match=uri.rpartition("/")[2]):
        MLflow(uri)


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


def test_mlflow_without_what_databases_need(monkeypatch):
    pytest.importorskip("mlflow")
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(PackageError, match="sqlalchemy"):
        MLflow("sqlite:///x.db")
    assert not Path("x.db").exists()
