"""What a user sees while runs are at work: in a terminal, in a file, as JSON; and in the log."""

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from dataclasses import replace
from pathlib import Path

import pytest

from piaget.cli import main
from piaget.cli.live import QuietView
from piaget.cli.sweep_view import Overall
from piaget.errors import LoadError
from piaget.lab.folder import RunFolder
from piaget.lab.jobs import Job
from piaget.lab.kept import Kept, how_far, kept_of
from piaget.lab.progress import Plan, Rates, Standing, Tracker, duration, score
from piaget.lab.row_file import Extent
from piaget.lab.runs import _tell_of_all
from piaget.lab.sweeps import Event
from piaget.paper.names import Method
from piaget.scoring.watch import EpochReport
from tests.commands import command, words

RUN = words("run digits --epochs 8 --every 2 --option tasks=6 --option train_size=40")
SWEEP = words(
    "sweep digits --algorithms compositional joint --seeds 2 --epochs 6"
    " --option tasks=5 --option train_size=20"
)


def longer(arguments, epochs, out):
    """So long that it can be stopped on its way; its initial tasks are soon done."""
    i = arguments.index("--epochs")
    rest = [*arguments[:i], *arguments[i + 2 :]]
    return words("", *rest, "--epochs", epochs, "--set", "initial_epochs=10", out=out)


def in_a_terminal(arguments, columns=120, interrupt_at=None):
    """Runs the command in a pseudo-terminal; its exit code, and all it wrote, without colours."""
    child, screen = pty.fork()
    if child == 0:
        # Workers of pytest-xdist say how wide their output is: that of the terminal below is meant.
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
        os.execvpe(sys.executable, command(*arguments), environment | {"TERM": "xterm"})
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    written, sent = b"", False
    while True:
        try:
            data = os.read(screen, 65536)
        except OSError:  # the other side is closed
            break
        written += data
        if interrupt_at is not None and interrupt_at in written and not sent:
            os.write(screen, b"\x03")  # Ctrl-C, as typed
            sent = True
    os.close(screen)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode())


def test_a_run_in_a_terminal(tmp_path):
    code, text = in_a_terminal(longer(RUN, 120, tmp_path))
    assert code == 0
    assert re.search(
        r"task [56]/6 digits-0\d .* assimilation, epoch \d+/120; accuracy .* %, others .* %, \d components",
        text,
    )
    assert re.search(r"all tasks .* \d+% .* so far; about .* left", text)
    assert "mean of 6 tasks  accuracy" in text
    assert "Traceback" not in text


def test_a_sweep_in_a_narrow_terminal(tmp_path):
    code, text = in_a_terminal([*SWEEP, "--out", str(tmp_path)], columns=60)
    assert code == 0
    assert "digits er joint seeds 0-1: done" in text
    assert "2 of 2 cohorts" in text
    assert "4 runs in" in text


@pytest.mark.parametrize("arguments", [RUN, SWEEP])
def test_ctrl_c_in_a_terminal(arguments, tmp_path):
    code, text = in_a_terminal(longer(arguments, 300, tmp_path), interrupt_at=b"assimilation")
    assert code == 130
    assert "stopped; what was done is kept: the same command goes on" in text
    assert "Traceback" not in text
    assert list(tmp_path.rglob("checkpoint.json"))


def test_json_of_a_run(tmp_path, capsys):
    assert main([*RUN, "--json", "--seeds", "0-1", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    events = [json.loads(line) for line in said.out.splitlines()]
    assert said.err == ""
    assert {event["event"] for event in events} == {"progress", "overall", "ended", "result"}
    progress = [event for event in events if event["event"] == "progress"]
    assert [event["done"] for event in progress] == sorted(event["done"] for event in progress)
    assert progress[-1]["done"] == 1.0
    assert progress[-1]["left"] == 0.0
    last = events[-1]["runs"]
    assert [run["seed"] for run in last] == [0, 1]
    assert len(last[0]["scores"]) == 6
    assert 0 < last[0]["scores"]["digits-00"]["accuracy"] <= 1


def test_json_of_a_sweep(tmp_path, capsys):
    assert main([*SWEEP, "--json", "--out", str(tmp_path)]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    ended = [event for event in events if event["event"] == "ended"]
    assert sorted(event["status"] for event in ended) == ["done", "done"]
    assert events[-1]["failed"] == []
    assert {line["algorithm"] for line in events[-1]["table"]} == {"compositional", "joint"}


def test_the_log(tmp_path):
    assert main([*RUN, "--quiet", "--seeds", "0-1", "--out", str(tmp_path)]) == 0
    for seed in (0, 1):  # each run's own scores
        last = list(RunFolder(tmp_path / f"seed-{seed}").rows())
        tests = [r["value"] for r in last if (r["evaluated"], r["metric"]) == ("digits-05", "accuracy")]
        log = (tmp_path / f"seed-{seed}" / "log.txt").read_text()
        assert f"digits-05: accuracy {100 * tests[-1]:.1f} % on it" in log
    lines = (tmp_path / "seed-0" / "log.txt").read_text().splitlines()
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00 begins", lines[0])
    assert "task 2 of 6, digits-01: waits for the other initial ones" in lines[2]
    assert re.search(r"task 6 of 6, digits-05: accuracy .* % on it, accuracy .* % on the others", lines[6])
    assert "done in" in lines[-1]


@pytest.mark.usefixtures("without_workers")  # but those of the sweep that is killed
def test_a_sweep_says_what_is_left_and_goes_on(tmp_path, capsys):
    """Killed, it is `interrupted` or `planned`; `piaget resume` needs nothing but the folder."""
    long = longer([*SWEEP, "--workers", "1", "--quiet"], 150, tmp_path)
    process = subprocess.Popen(command(*long), start_new_session=True)
    while process.poll() is None and not any(
        (kept := how_far(path.parent)) is not None and kept.done > 0
        for path in tmp_path.rglob("checkpoint.json")
    ):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGSTOP)  # it must not end while this process looks at it
    assert main(long) == 2  # a second sweep there
    assert "another process is working there" in capsys.readouterr().err
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    while alive(process.pid):  # its worker, which holds the lock until it is gone
        time.sleep(0.02)
    assert main(["status", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["counts"] == {"interrupted": 2, "planned": 2}
    assert all(run["left"] > 0 for run in found["runs"])
    assert found["left"] == pytest.approx(sum(run["left"] for run in found["runs"]))
    assert main(["status", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "seeds 0-1" in said
    assert "left, if as much is at work as now" in said
    assert main(["resume", str(tmp_path), "--quiet"]) == 0
    assert "4 runs in" in capsys.readouterr().out
    assert main(["status", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"] == {"done": 4}


def test_workers_do_not_outlive_the_sweep(tmp_path):
    """Only the process that asked is killed: its workers notice."""
    long = longer([*SWEEP, "--quiet"], 3000, tmp_path)
    process = subprocess.Popen(command(*long), start_new_session=True)
    while process.poll() is None and len(list(tmp_path.rglob("checkpoint.json"))) < 2:
        time.sleep(0.02)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while alive(process.pid) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not alive(process.pid)


def alive(group):
    """Threads of a process group that are not zombies, which nobody may have waited for.

    Of each thread: the first one of a killed process may be gone while another still holds its files.
    """
    found = []
    for path in Path("/proc").glob("[0-9]*/task/*/stat"):
        with contextlib.suppress(OSError):  # gone
            state, _, in_group = path.read_text().rpartition(")")[2].split()[:3]
            found += [path.parent.name] if state != "Z" and int(in_group) == group else []
    return found


def epoch(task, stage, number, epochs=10):
    return EpochReport(0, task, stage, number, epochs, 4, lambda split: 0.0)


def progress_after(tracker, task, report):
    tracker.current = tracker.current or {report.seed: report.task}
    tracker.epoch(task, report)
    return tracker.standing()


def row(seed, evaluated, value, metric="accuracy"):
    return {"split": "test", "metric": metric, "seed": seed, "evaluated": evaluated, "value": value}


def test_the_share_that_is_done():
    tracker = Tracker(Plan([40] * 10))
    assert progress_after(tracker, 4, epoch("d", "initialization", 5)).done == pytest.approx(0.2)
    assert progress_after(tracker, 4, epoch("d", "initialization", 10)).done == pytest.approx(0.4)
    assert progress_after(tracker, 5, epoch("e", "assimilation", 5)).done == pytest.approx(0.45)
    assert progress_after(tracker, 10, epoch("j", "adaptation", 10)).done == pytest.approx(1.0)


def test_scores_are_means_over_runs_of_the_latest():
    tracker = Tracker(Plan([40] * 3))
    assert progress_after(tracker, 1, epoch("a", "assimilation", 1)).metric is None
    tracker.rows([row(0, "a", 0.1), row(0, "a", 0.5), row(1, "a", 0.7), row(0, "b", 0.9), row(1, "b", 0.7)])
    tracker.rows([row(0, "c", 3.0, "rmse")])
    tracker.current = {0: "b", 1: "b"}
    progress = progress_after(tracker, 2, epoch("b", "assimilation", 1))
    assert (progress.metric, progress.current) == ("accuracy", 0.8)
    assert progress.past == pytest.approx(0.6)


# --- the time that is left ------------------------------------------------------------------------------


STAGED = ["assimilation"] * 19 + ["adaptation"]
# A plan, and what work takes: an epoch in a stage at a task; what is between tasks, and every evaluation.
TIMES = {
    "dynamic er": (
        Plan([8000] * 10, STAGED, 4, None, 2),
        lambda stage, task: {"initialization": 4, "assimilation": 3, "adaptation": 3 + 0.1 * task}[stage],
        lambda task: 0.3 * task,
    ),
    "joint ewc": (
        Plan([1000] * 20, ["joint"] * 20, 4, None, 1, frozenset(["joint"])),
        lambda stage, task: 4 * 0.5 if stage == "initialization" else 0.4 + 0.12 * task,
        lambda task: 0.5 + 0.05 * task,
    ),
    "ewc that adapts often": (
        Plan([1000] * 40, (["assimilation"] * 4 + ["adaptation"]) * 4, 4, None, 1, frozenset(["adaptation"])),
        lambda stage, task: {"initialization": 2, "assimilation": 0.4, "adaptation": 0.4 + 0.12 * task}[
            stage
        ],
        lambda task: 0.5 + 0.05 * task,
    ),
    "linear, tasks of all sizes": (
        Plan([300 + 100 * (7 * i % 10) for i in range(29)], ["assimilation"] * 400 + ["adaptation"], 4),
        lambda stage, task: 1e-5 * (1600 if stage == "initialization" else 300 + 100 * (7 * (task - 1) % 10)),
        lambda task: 0.01 * task,
    ),
    "slow evaluations": (
        Plan([50] * 50, ["assimilation"] * 9 + ["adaptation"], 4, 5, 2),
        lambda stage, task: 0.4 if stage == "initialization" else 0.2,
        lambda task: 2.0 * task,
    ),
}


def simulated(plan, epoch_takes, between_takes):
    """What happens, one after the other: (seconds, task, report, or what else it was)."""
    events: list[tuple[float, int, EpochReport | str]] = []
    for task in range(plan.initial, len(plan.sizes) + 1):
        stages = ["initialization"] * 20 if task == plan.initial else plan.stages
        for number, stage in enumerate(stages, 1):
            report = EpochReport(0, f"task {task}", stage, number, len(stages), 4, lambda split: 0.0)
            evaluated = plan.every is not None and number % plan.every == 0 and number < len(stages)
            seconds = epoch_takes(stage, task) + evaluated * between_takes(task)
            if stages.index(stage) == number - 1 and task in (plan.initial + 1, plan.initial + 4):
                seconds *= 50 if task == plan.initial + 1 else 10  # something is compiled
            events.append((seconds * (1 + 0.05 * (number % 3 - 1)), task, report))  # nothing is even
        events.append((between_takes(task), task, "evaluated"))
        # What is done for the first time takes longer.
        events.append((10 * between_takes(task) if task == plan.initial else 0.0, task, "ended"))
    return events


def ratios(events, plan, monkeypatch, stop_at=None):
    """Time left as it is told, relative to the truth, from the second task after the initial ones on."""
    now, left, found = 100.0, sum(seconds for seconds, *_ in events), []
    monkeypatch.setattr(time, "monotonic", lambda: now)
    tracker = Tracker(plan)
    for i, (seconds, task, report) in enumerate(events):
        now, left = now + seconds, left - seconds
        if isinstance(report, str):
            tracker.rows([]) if report == "evaluated" else tracker.ended()
            continue
        tracker.epoch(task, report)
        if i == stop_at:  # killed: what was measured is kept as JSON
            kept = json.loads(json.dumps(tracker.rates.measured))
            measured = {kind: {int(t): both for t, both in of.items()} for kind, of in kept.items()}
            now += 1000.0
            tracker = Tracker(plan, tracker.done, tracker.seconds, measured)
            now += 5.0  # it is loaded
        if i % 7 and len(events) > 1000:
            continue
        told = tracker.left
        if task >= plan.initial + 2 and left > 0.02 * sum(s for s, *_ in events) and told is not None:
            found.append(told / left)
    return found


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("stopped", [False, True])
def test_the_time_that_is_left(name, stopped, monkeypatch):
    """Within a factor of 1.5, also after an interruption."""
    plan, *takes = TIMES[name]
    events = simulated(plan, *takes)
    found = ratios(events, plan, monkeypatch, len(events) // 2 if stopped else None)
    assert len(found) > 50
    assert min(found) > 1 / 1.5
    assert max(found) < 1.5


def test_other_cohorts_take_as_long():
    told: list[Standing] = []
    standing = progress_after(Tracker(Plan([40] * 10)), 10, epoch("j", "adaptation", 10))
    for i in range(2):
        _tell_of_all(told.append, i, 3, replace(standing, seconds=60.0, left=30.0))
    assert [one.left for one in told] == [30 + 2 * 90, 30 + 90]


def test_probing_is_part_of_the_time_that_is_left(monkeypatch):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    tracker = Tracker(Plan([40] * 2, ["joint"] * 10))
    tracker.probing = 0.1  # of all the rest
    for number in (1, 2):  # the first one is not measured: it begins with preparations
        now += 1.0
        tracker.epoch(1, epoch("a", "joint", number))
    assert tracker.left == pytest.approx(18 + 0.1 * 20)
    probes = epoch("b", "probing", 0)
    tracker.probe(probes)
    now += 3.0
    tracker.probe(replace(probes, epoch=6, epochs=10))
    assert tracker.left == pytest.approx(2.0)


class Shown(QuietView):
    """What is told of a whole sweep."""

    def __init__(self):
        self.left: list[float | None] = []

    def overall(self, share, left, text):
        self.left.append(left)


def test_the_time_that_is_left_of_a_sweep():
    """Cohorts tell of themselves, and of those that wait."""
    method = Method("er", "joint")
    one, two, three = jobs = [Job("objects", method, (seed,)) for seed in range(3)]
    shown = Shown()
    overall = Overall(shown)
    standing = replace(
        progress_after(Tracker(Plan([40] * 10)), 9, epoch("i", "joint", 10)), seconds=60.0, left=40.0
    )
    for job in jobs:
        overall.report(Event(job, "waiting"))
    overall.report(Event(one, "running", standing))
    early = replace(standing, stage="initialization", done=0.1, seconds=5.0, left=10.0)
    overall.report(Event(two, "running", early))
    overall.report(Event(two, "running", replace(standing, seconds=20.0, left=80.0)))
    overall.report(Event(one, "done"))
    overall.report(Event(three, "running", replace(standing, seconds=10.0, left=70.0)))
    assert shown.left == pytest.approx([40 + 2 * 100, (40 + 2 * 100) / 2, (40 + 80 + 100) / 2, 80, 80])


def test_short_epochs_are_not_all_told(monkeypatch):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    tracker = Tracker(Plan([40] * 10))
    assert tracker.due()
    progress_after(tracker, 1, epoch("a", "joint", 1))
    assert not tracker.due()
    now = 100.2
    assert tracker.due()
    assert tracker.began(1)
    assert not tracker.began(2)


def test_what_is_kept_of_the_time():
    """Older versions kept nothing of it."""
    kept = {"rows": [[7, "ab"]], "done": 0.5, "seconds": 3.0}
    assert kept_of(Path(), {"kept": kept}) == Kept([Extent(7, "ab")], 0.5, 3.0)
    measured = {"joint": {5: [40.0, 1.5]}}
    written = json.loads(json.dumps(kept | {"left": 2.5, "measured": measured}))
    read = kept_of(Path(), {"kept": written})
    assert (read.left, read.measured) == (2.5, measured)


@pytest.mark.parametrize(
    "wrong",
    [
        {"left": "2"},
        {"measured": [1]},
        {"measured": {"joint": {"5": [40.0]}}},
        {"measured": {"joint": {"5": [0, 1.5]}}},
        {"measured": {"joint": {"0": [40.0, 1.5]}}},
    ],
)
def test_what_is_wrong_about_the_time(wrong):
    with pytest.raises(LoadError, match="does not say what was kept"):
        kept_of(Path(), {"kept": {"rows": [[7, "ab"]], "done": 0.5, "seconds": 3.0} | wrong})


@pytest.mark.parametrize(
    ("seconds", "text"), [(3.2, "3 s"), (240, "4 min"), (7200, "2.0 h"), (300_000, "3.5 days")]
)
def test_duration(seconds, text):
    assert duration(seconds) == text


def test_score():
    assert score("accuracy", 0.9712) == "accuracy 97.1 %"
    assert score("rmse", 10.23) == "rmse 10.2"
    assert score(None, None) == ""


def test_tasks_that_need_fewer_epochs_than_planned_make_the_time_left_shorter():
    """Stages stopped early, or no second attempt was needed."""
    plan = Plan([40] * 6, ["assimilation"] * 20, initial=1)

    def left(epochs):
        rates = Rates(plan, {"assimilation": {j: [40.0 * epochs, 1.0 * epochs] for j in (2, 3)}})
        return rates.left(4, "assimilation", 20, 20, True)

    assert left(19) == pytest.approx(2 * 20.0)
    assert left(9) == pytest.approx(left(19) * 9 / 19)
