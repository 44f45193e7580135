"""`piaget sweep`, as a user runs it."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import piaget
from piaget.cli import main
from piaget.cli.sweep_view import own_line
from piaget.lab.jobs import preset_jobs, write_cohorts
from piaget.paper.presets import PRESETS
from tests.commands import DISTURBED, command, rows_of, said, words
from tests.data_files import write_features
from tests.exported import make_run

SMALL = "--option tasks=5 --option train_size=20 --workers 1 --json"


@pytest.mark.usefixtures("without_workers")
def test_sweep_any_stream(small_data, tmp_path, capsys):
    arguments = words("sweep landmine --epochs 2 --seeds 2 --workers 1 --quiet", out=tmp_path)
    code, out, _ = said(capsys, *arguments, "--data-dir", small_data)
    assert code == 0
    assert "93.6 ± 0.1" in out  # the paper's, beside
    table = (tmp_path / "table.md").read_text()
    performance, further = table.split("\n\n| stream |")[-2:]  # its tasks are binary
    assert performance.count("| landmine | ER |") == further.count("| landmine | ER |") == 3
    assert performance.count("| landmine |  | Alone |") == 1
    assert "accuracy in %" in performance
    assert "| majority | AUC | log-loss |" in further
    assert "Further scores: mean ± standard error" in out


@pytest.mark.usefixtures("without_workers")
@pytest.mark.filterwarnings("ignore::piaget.errors.DataNote")
def test_other_features_are_named_in_results(tmp_path, capsys):
    data, out = tmp_path / "data", tmp_path / "out"
    write_features(data / "cub", "mine", features=7)
    arguments = "sweep cub --algorithms compositional --epochs 2 --seeds 1 --workers 1 --quiet"
    options = "--option features=mine --option tasks=5 --data-dir"
    assert main([*words(arguments, out=out), *words(options, data)]) == 0
    table = (out / "table.md").read_text()
    assert "| cub/mine | ER | Compositional |" in table
    assert "80.6 ± 0.3" in table  # the paper's, for comparison
    assert "0 of 2; features: mine" in said(capsys, "data", "list", "--data-dir", data).out


def test_a_sweep_that_is_killed_goes_on(tmp_path, undisturbed):
    """All its processes at once; then one of its workers alone."""
    call = command(*words(DISTURBED, out=tmp_path))
    process = subprocess.Popen(call, start_new_session=True, stdout=subprocess.DEVNULL)
    while process.poll() is None and len(list(tmp_path.rglob("checkpoint.json"))) < 2:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process = subprocess.Popen(call, start_new_session=True, stdout=subprocess.DEVNULL)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("checkpoint.json")}
    while process.poll() is None and all(
        path.exists() and path.stat().st_mtime_ns == t for path, t in before.items()
    ):
        time.sleep(0.02)
    children = [p.read_text().split() for p in Path(f"/proc/{process.pid}/task").glob("*/children")]
    commands = {int(c): Path(f"/proc/{c}/cmdline").read_bytes() for found in children for c in found}
    spawned = [child for child, command in commands.items() if b"spawn_main" in command]
    assert len(spawned) == 3  # two workers, and before them the queue's process
    os.kill(max(spawned), signal.SIGKILL)
    assert process.wait() == 0
    assert rows_of(tmp_path) == undisturbed


@pytest.mark.usefixtures("without_workers")
def test_a_sweep_with_settings_of_ones_own(tmp_path, capsys):
    """Its table tells variants apart; JSON is JSON also for a single seed."""
    arguments = words(f"sweep digits --algorithms compositional --seeds 1-1 {SMALL}", out=tmp_path)
    code, out, _ = said(capsys, *arguments, "--epochs", 2, "--set", "width=8")
    assert code == 0
    (line,) = json.loads(out.splitlines()[-1], parse_constant=pytest.fail)["table"]
    assert line["error"] is None
    assert line["variant"] == "tasks=5, train_size=20, width=8, epochs=2"
    assert main([*arguments, "--epochs", "3"]) == 0
    code, out, _ = said(capsys, "resume", tmp_path)
    assert code == 0
    text = " ".join(out.split())
    assert "width=8, epochs=2" in text
    assert "train_size=20, epochs=3" in text
    code, out, _ = said(capsys, "status", tmp_path / "digits_tasks-5_train_size-20")
    assert code == 0
    assert "2 done" in out


@pytest.mark.usefixtures("without_workers")
def test_a_sweep_over_structures(tmp_path, capsys):
    what = "--structures soft-ordering linear --algorithms compositional --epochs 2 --seeds 1"
    code, out, _ = said(capsys, *words(f"sweep digits {what} {SMALL}", out=tmp_path))
    assert code == 0
    events = [json.loads(line) for line in out.splitlines()]
    assert {e["run"] for e in events if e["event"] == "ended"} == {
        "digits soft-ordering er compositional seed 0",
        "digits linear er compositional seed 0",
    }
    assert len(events[-1]["table"]) == 2


def test_status_of_many_runs_is_short(tmp_path, capsys):
    """128 runs of 16 methods: a line for each method, and one for each that is neither done nor planned."""
    jobs = preset_jobs(PRESETS["objects"], range(2))
    write_cohorts(tmp_path, jobs)
    first, second = (job.folder(tmp_path) for job in jobs[:2])
    make_run(first / "seed-0", together=[0])
    make_run(first / "seed-1", status="failed", error="Traceback\nValueError: no [/such] task", together=[1])
    make_run(second / "seed-0", status="running", together=[0])
    code, out, _ = said(capsys, "status", tmp_path)
    assert code == 0
    lines = out.splitlines()
    planned = [line for line in lines if "in 4 folders" in line]
    assert len(planned) == 16
    (line,) = (line for line in planned if first.name in line)
    done, *others, left = (cell.strip() for cell in line.split("│")[2:6])
    assert (done, sorted(others), left) == ("1", ["", "1"], "6")
    (failed,) = (line for line in lines if "ValueError: no [/such] task" in line)
    assert f"{first.relative_to(tmp_path)}/ seed" in failed
    assert sum(f"{second.relative_to(tmp_path)}/ seed" in line for line in lines) == 1
    (counts,) = (line for line in lines if line.endswith("125 planned"))
    assert all(count in counts for count in ("1 done", "1 failed", "1 interrupted"))
    assert len(lines) < 32
    runs = json.loads(said(capsys, "status", tmp_path, "--json").out)["runs"]
    assert len(runs) == 128


def test_an_error_in_a_part_of_ones_own_is_told_by_its_line(tmp_path):
    own, library = tmp_path / "mine.py", Path(piaget.__file__).parent / "learner.py"
    lines = [f'  File "{own}", line 12, in correct', f'  File "{library}", line 3, in learn']
    trace = "\n".join(["Traceback (most recent call last):", *lines, "KeyError: 'logit'"])
    assert own_line(trace) == f"{own}, line 12, in correct"
    assert own_line(trace.replace(str(own), str(library))) is None
