"""Scores in MLflow, read back with its own reader."""

import os
import sys
import time
from pathlib import Path

import filelock
import pytest

from piaget.errors import PackageError, PiagetError, SettingError
from piaget.lab import sinks
from piaget.lab.exports import Exporter
from piaget.lab.sinks import MLflow
from tests.exported import FIRST, ODD, SECOND, append, make_run, moment, run_command

# MLflow and TensorBoard are not free of what their own libraries warn of.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(autouse=True)
def _quiet(monkeypatch, tmp_path):
    """No telemetry, and no mlruns folder in the repository."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.chdir(tmp_path)


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
    assert found is not None
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
    assert len(first.data.params) == 10
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


def test_mlflow_without_what_databases_need(monkeypatch):
    pytest.importorskip("mlflow")
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(PackageError, match="sqlalchemy"):
        MLflow("sqlite:///x.db")
    assert not Path("x.db").exists()
