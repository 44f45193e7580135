"""Sweeps: their jobs, cohorts and workers."""

import time
from concurrent.futures import Future
from dataclasses import replace

import pytest

from piaget.cli import main
from piaget.lab import final_table as table, folder, keeping, making, runs as lab, sweeps as sweep
from piaget.lab.configuration import configure
from piaget.lab.executors import InProcess, Processes
from piaget.lab.folder import is_done, read_description
from piaget.lab.jobs import Job, plan, read_cohorts
from piaget.lab.progress import Standing
from piaget.method.components import Dense
from piaget.paper.names import Method
from piaget.scoring.rows import COLUMNS
from tests.commands import in_a_process, said, words


@pytest.fixture
def tiny(monkeypatch):
    """Streams of six tasks."""
    import piaget.streams.objects as objects

    monkeypatch.setattr(objects, "TASKS", 6)
    return Job("objects-random", Method("er", "dynamic"), (0, 1), 2)


def test_a_job_leaves_its_rows(tmp_path, tiny):
    events: list[tuple[Job, Standing]] = []
    sweep.run_job(tiny, tmp_path, events.append)
    runs = sweep.runs_of(tiny, tmp_path)
    folder = tmp_path / "objects-random" / "soft-ordering_er_dynamic_epochs-2"
    assert [run.path for run in runs] == [folder / "seed-0", folder / "seed-1"]
    assert all(is_done(run.path) for run in runs)
    rows = [row for run in runs for row in run.rows()]
    assert tuple(rows[0]) == COLUMNS
    assert {r["seed"] for r in rows} == {0, 1}
    assert {r["evaluated"] for r in rows if r["trained"] == "objects-05" and r["metric"] == "accuracy"} == {
        f"objects-{i:02d}" for i in range(6)
    }
    job, progress = events[-1]
    assert (job, progress.task, progress.done, progress.metric) == (tiny, 6, 1.0, "accuracy")
    final = [r for r in rows if r["trained"] == "objects-05" and r["metric"] == "accuracy"]
    current = [r["value"] for r in final if r["evaluated"] == "objects-05"]
    assert progress.current == pytest.approx(sum(current) / 2)
    assert progress.past == pytest.approx((sum(r["value"] for r in final) - sum(current)) / 10)
    (line,) = table.lines(rows)
    assert line.seeds == 2


def test_the_command(tmp_path, capsys):
    """Two methods in two worker processes; the second time, nothing is trained again."""
    methods = "--algorithms compositional no-components --seeds 2 --epochs 2"
    arguments = words(f"sweep objects-random {methods}", out=tmp_path)
    first = in_a_process(*arguments)
    assert first.returncode == 0, first.stderr
    assert "Compositional" in first.stdout
    assert "90.9 ± 0.9" in first.stdout, "the paper's column"
    assert str(tmp_path / "table.md") in first.stdout.replace("\n", "")
    assert "task 16 of 16" in first.stderr
    stamps = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.csv")}
    assert len(stamps) == 4
    again = said(capsys, *arguments)
    assert again.code == 0
    assert f"4 of 4 runs were done in {tmp_path} already" in again.out.replace("\n", "")
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.csv")} == stamps


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sweep", "minst"], "stream or preset 'minst' is not known (did you mean 'mnist'?)"),
        (["sweep", "soft-orderin"], "(did you mean 'soft-ordering'?); presets: linear, soft-ordering,"),
        (
            ["sweep", "digits", "soft-ordering"],
            "soft-ordering is a preset, which has its streams: give it alone",
        ),
        (["sweep", "digits", "--algorithms", "dynamci"], "'dynamci' is not known (did you mean 'dynamic'?)"),
        (["sweep", "digits", "--structures", "soft-gate"], "(did you mean 'soft-gating'?)"),
        (
            ["sweep", "objects", "--adaptations", "l2"],
            "adaptation 'l2' is not known; expected er, er-diluted, der++, a-gem, ewc, ewc-merged, nft, fm",
        ),
        (["sweep", "objects", "--algorithms", "x"], "algorithm 'x' is not known"),
        (
            ["sweep", "digits", "--adaptations", "fm", "--algorithms", "joint"],
            "fm with soft-ordering goes with dynamic, compositional, alone, recommended",
        ),
        (
            ["sweep", "objects", "--adaptations", "fm", "--algorithms", "joint"],
            "none of these go together; the preset objects has er with dynamic, er with compositional",
        ),
    ],
)
def test_wrong_words(arguments, message, capsys):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["sweep"], ["sweep", "objects", "--seeds", "0"]])
def test_usage_errors(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert "usage: piaget" in capsys.readouterr().err


def test_a_failing_job_does_not_stop_the_others(tmp_path):
    """A job that cannot run (unknown stream) is reported with its traceback."""
    good = Job("objects-random", Method("fm", "compositional"), (0,), 2)
    bad = Job("no-such-stream", Method("er", "joint"), (0,), 2)
    failed = sweep.run_jobs([bad, good], tmp_path, Processes(1), lambda event: None)
    assert list(failed) == [bad]
    assert "no-such-stream" in failed[bad]
    assert is_done(good.folder(tmp_path) / "seed-0")
    described = read_description(bad.folder(tmp_path) / "seed-0")
    assert described["status"] == "failed"
    assert "no-such-stream" in described["error"]


@pytest.mark.usefixtures("without_workers")
def test_a_quick_stream(tmp_path):
    assert (
        main(
            ["sweep", "digits", "--quick", "--quiet", "--algorithms", "compositional", "--out", str(tmp_path)]
        )
        == 0
    )
    (run,) = tmp_path.rglob("run.json")
    configuration = read_description(run.parent)["configuration"]
    assert (configuration["epochs"], configuration["options"]) == (2, {"tasks": 5, "train_size": 40})


@pytest.mark.usefixtures("without_workers")
@pytest.mark.parametrize("name", ["pixel-mnist", "schedule"])
def test_a_quick_preset(name, small_data, tmp_path, capsys):
    arguments = ["sweep", name, "--quick", "--quiet", "--data-dir", str(small_data), "--out", str(tmp_path)]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "This is not the paper's setting" in said
    text = (tmp_path / "table.md").read_text()
    assert ("adapt_every=2" in text) == (name == "schedule")
    lines = [line for line in text.splitlines() if "| ER |" in line]
    performance = [line for line in lines if "| accuracy in % |" in line]
    assert len(performance) == (2 if name == "pixel-mnist" else 5)  # of mnist alone
    if name == "pixel-mnist":  # binary tasks: as many lines of further scores
        assert len(lines) == 4
    assert all(
        d["status"] == "done" for d in map(read_description, (p.parent for p in tmp_path.rglob("run.json")))
    )


def test_cohorts_keep_all_workers_busy():
    one, two = (Job("digits", Method("er", name), tuple(range(12)), 2) for name in ("joint", "compositional"))

    def sizes(jobs, workers):
        planned = plan(jobs, [], lambda job: sweep.cohort_size(job, jobs, workers))
        return sorted(len(job.seeds) for job in planned)

    assert sizes([one], 2) == [6, 6]
    assert sizes([one], 5) == [3, 3, 3, 3]
    assert sizes([one, two], 2) == [2, 2, 10, 10]
    assert sizes([replace(one, stream="cifar100", epochs=None)], 2) == [1] * 12  # convolutions: fastest alone


def test_who_is_trained_together_is_settled_once():
    job = Job("digits", Method("er", "joint"), (0, 1, 2, 3, 4), data_dir="a")
    first = plan([replace(job, seeds=(0, 1, 2))], [], lambda job: 2)
    assert [cohort.seeds for cohort in first] == [(0, 1), (2,)]
    again = plan(
        [replace(job, data_dir="b")], first, lambda job: 10
    )  # more seeds, other workers, other data folder
    assert [(cohort.seeds, cohort.data_dir) for cohort in again] == [
        ((0, 1), "b"),
        ((2,), "b"),
        ((3, 4), "b"),
    ]
    assert plan([replace(job, seeds=(2,), data_dir="b")], again, lambda job: 1) == [again[1]]
    assert plan([replace(job, epochs=7)], again, lambda job: 10) == [replace(job, epochs=7)]


def test_the_order_of_options_does_not_matter():
    one, two = (
        Job("digits", Method("er", "joint"), (0,), options=options)
        for options in ((("tasks", 5), ("train_size", 20)), (("train_size", 20), ("tasks", 5)))
    )
    assert one == two
    assert "epochs=3" in replace(one, epochs=3).name


class Fake:
    """Runs nothing; says how many workers it has only when it is entered."""

    workers = 2

    def __enter__(self):
        self.workers, self.given = 5, []
        return self

    def __exit__(self, *error):
        pass

    def submit(self, work, job, out):
        future: Future[None] = Future()
        self.given.append(job)
        future.set_exception(ValueError("no"))
        return future

    def received(self):
        return []

    def died(self, error):
        return False


def test_a_clusters_size_counts(tmp_path):
    job, executor = Job("digits", Method("er", "joint"), tuple(range(10)), 2), Fake()
    failed = sweep.run_jobs([job], tmp_path, executor, lambda event: None)
    assert [one.seeds for one in executor.given] == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
    assert len(failed) == 5
    assert [one.seeds for one in read_cohorts(tmp_path)] == [one.seeds for one in executor.given]


def test_a_run_of_another_configuration_fails_alone(tmp_path):
    """It is not overwritten, and the others go on."""
    good = Job("digits", Method("er", "compositional"), (0,), 2, options=(("tasks", 5), ("train_size", 20)))
    bad = replace(good, method=Method("er", "joint"))
    place = bad.folder(tmp_path) / "seed-0"
    folder.begin(place, replace(bad, epochs=3).configuration, 0)
    failed = sweep.run_jobs([bad, good], tmp_path, InProcess(), lambda event: None)
    assert list(failed) == [bad]
    assert "another configuration" in failed[bad]
    assert read_description(place)["status"] == "new"
    assert is_done(good.folder(tmp_path) / "seed-0")


def test_an_interrupt_while_workers_start(tmp_path):
    """Nobody waits for the jobs."""
    job = Job("digits", Method("er", "joint"), (0,), 5000, options=(("tasks", 5),))
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt), Processes(2) as executor:  # noqa: PT012
        for _ in range(3):
            executor.submit(sweep.run_job, job, tmp_path)
        raise KeyboardInterrupt
    assert time.monotonic() - start < 60  # the job would take many minutes


def test_seeds_that_were_interrupted_together_go_on_together(tmp_path, monkeypatch):
    job = Job("digits", Method("er", "joint"), (0, 1, 2, 3), 2, options=(("tasks", 5), ("train_size", 20)))
    first = replace(job, seeds=(1, 2))
    monkeypatch.setattr(keeping.Keeper, "due", lambda self: pytest.fail("stop here"))
    with pytest.raises(pytest.fail.Exception):
        sweep.run_job(first, tmp_path, lambda news: None)
    monkeypatch.undo()
    assert sweep.run_jobs([job], tmp_path, InProcess(), lambda event: None) == {}
    together = [read_description(job.folder(tmp_path) / f"seed-{s}")["together"] for s in range(4)]
    assert together == [[0, 3], [1, 2], [1, 2], [0, 3]]


def test_runs_that_are_faster_alone_are_trained_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.setattr(Dense, "together", 2)
    configuration = configure(stream="digits", options={"tasks": 4, "train_size": 20}, epochs=2)
    learners, streams = making.make(configuration, [0, 1, 2], None)
    seen: list[Standing] = []
    lab.run(learners, streams, tmp_path, configuration, seen.append)
    together = [read_description(tmp_path / f"seed-{seed}")["together"] for seed in range(3)]
    assert together == [[0, 1], [0, 1], [2]]
    shares = [progress.done for progress in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_a_preset_says_what_it_does_not_have(monkeypatch, capsys):
    """Its name may be a stream's, too: nothing that was asked for is dropped without a word."""
    monkeypatch.setattr("piaget.cli.sweep.go", lambda jobs, options, code: 0)
    assert main(["sweep", "combined", "--algorithms", "dynamic", "recommended"]) == 0
    assert "combined has no recommended in this preset" in capsys.readouterr().err
