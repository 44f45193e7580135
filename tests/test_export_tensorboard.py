"""Scores in TensorBoard, read back with its own reader."""

import json
import threading
import time

import filelock
import pytest

from piaget.cli import export as command
from piaget.files import write_atomically
from piaget.lab import exports as export
from piaget.lab.exports import Exporter
from piaget.lab.row_file import as_csv
from piaget.lab.sinks import TensorBoard
from tests.exported import FIRST, ODD, SECOND, append, make_run, moment, run_command

# MLflow and TensorBoard are not free of what their own libraries warn of.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(autouse=True)
def _quiet(monkeypatch, tmp_path):
    """No telemetry, and no mlruns folder in the repository."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.chdir(tmp_path)


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
    exporter = Exporter(tmp_path / "b", TensorBoard(tmp_path / "tb"))
    assert exporter.update() == 0
    assert "has the events of another run" in exporter.damaged[tmp_path / "b" / "seed-0"]
    exporter.close()
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
    assert list(sink.writers) == ["seed-2", "seed-3"]
    sink.close()
    assert not sink.writers
    assert len(events(tmp_path / "tb" / "seed-0").Scalars("components")) == 2
