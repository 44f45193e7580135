"""A sweep: methods x seeds on one stream, in worker processes, with rows on disk.

The seeds of one method are trained together as a cohort. Every finished cohort leaves a file of
rows in the output folder (written atomically); running the same sweep again skips it.
"""

from __future__ import annotations

import csv
import multiprocessing
import os
import queue
import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from piaget.errors import DataNote
from piaget.evaluation import Row
from piaget.lab.run import check_stream, write_rows
from piaget.lab.table import ALGORITHMS, BASES
from piaget.tasks import Task


@dataclass(frozen=True)
class Method:
    """One column of a comparison: the paper's choices by name."""

    adaptation: str
    algorithm: str
    structure: str = "soft-ordering"

    @property
    def name(self) -> str:
        return f"{self.structure}/{self.adaptation}/{self.algorithm}"


def paper_methods(structure: str) -> list[Method]:
    """The paper's 14: joint training and no components make no sense with frozen components.

    Linear combinations have no expansion.
    """
    return [
        Method(base, algorithm, structure)
        for base in BASES
        for algorithm in ALGORITHMS
        if (base != "fm" or algorithm in ("dynamic", "compositional"))
        and (structure != "linear" or algorithm != "dynamic")
    ]


@dataclass(frozen=True)
class Job:
    """One cohort: a method on a stream, for several seeds in a row."""

    stream: str
    method: Method
    seeds: tuple[int, ...]
    epochs: int | None = None  # None: the paper's
    data_dir: Path | None = None
    options: tuple[tuple[str, Any], ...] = ()  # of the stream

    def file(self, out: Path) -> Path:
        named = [self.stream, *(f"{name}-{value}" for name, value in self.options)]
        named += [*self.method.name.split("/"), f"{self.epochs or 'default'}-epochs"]
        named += [f"seeds-{self.seeds[0]}-to-{self.seeds[-1]}"]
        return out / f"{'_'.join(re.sub(r'[^A-Za-z0-9.-]+', '-', part) for part in named)}.csv"


Report = Callable[[dict[str, Any]], None]


def make_learner(job: Job, seed: int) -> Any:
    """A learner with the paper's settings for the job's stream."""
    import piaget
    from piaget.lab.defaults import adaptation_of, algorithm_of, settings_of

    settings = settings_of(job.stream, job.method.structure)
    if job.epochs is not None:
        settings["epochs"] = job.epochs
    adaptation = adaptation_of(job.stream, job.method.adaptation)
    algorithm = algorithm_of(job.stream, job.method.algorithm, job.epochs)
    return piaget.Learner(job.method.structure, adaptation, algorithm, seed=seed, **settings)


def run_job(job: Job, out: Path, report: Report) -> Path:
    """Trains a cohort over the whole stream; its rows go to a file when it is done."""
    import piaget

    streams = [piaget.stream(job.stream, seed, job.data_dir, **dict(job.options)) for seed in job.seeds]
    cohort = piaget.Cohort([make_learner(job, seed) for seed in job.seeds])
    check_stream(cohort.learners[0], streams[0])
    total = len(streams[0])
    rows: list[Row] = []
    past: list[list[Task]] = [[] for _ in streams]  # learned tasks, without most of their training data
    for i in range(total):

        def on_epoch(epoch: Any, i: int = i) -> None:
            if epoch.seed == job.seeds[0] and (epoch.epoch % 5 == 0 or epoch.epoch == epoch.epochs):
                report(
                    {"job": job, "done": i + epoch.epoch / epoch.epochs, "total": total,
                     "task": i + 1, "stage": epoch.stage}
                )  # fmt: skip

        tasks = [stream[i] for stream in streams]
        seen = [[*earlier, task] for earlier, task in zip(past, tasks, strict=True)]
        for new in cohort.learn(tasks, evaluate_on=seen, on_epoch=on_epoch):
            rows += new
        past = [[*earlier, task.lean()] for earlier, task in zip(past, tasks, strict=True)]
    write_rows(job.file(out), rows)
    return job.file(out)


def read_rows(files: Sequence[Path]) -> Iterator[Row]:
    for path in files:
        with open(path, newline="") as handle:
            for text in csv.DictReader(handle):
                row: Any = text | {key: convert(text[key]) for key, convert in _NUMBERS.items()}
                yield row


_NUMBERS: dict[str, Callable[[str], Any]] = {"seed": int, "epoch": int, "value": float}


# --- in worker processes ---------------------------------------------------------------------------


_channel: Any = None


def _start_worker(channel: Any) -> None:
    """One torch thread a worker: two workers share two cores."""
    global _channel
    _channel = channel
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore", DataNote)  # said before, by the process that asked for the sweep


def _work(job: Job, out: Path) -> Path:
    return run_job(job, out, _channel.put)


def run_jobs(jobs: Sequence[Job], out: Path, workers: int, report: Report) -> dict[Job, str]:
    """Runs what is not done yet; returns the failed jobs with their tracebacks."""
    out.mkdir(parents=True, exist_ok=True)
    todo = [job for job in jobs if not job.file(out).exists()]
    for job in jobs:
        if job not in todo:
            report({"job": job, "done": 1, "total": 1, "task": 0, "stage": "done before"})
    if not todo:
        return {}
    # Large tensors come and go in every step: keep their memory instead of returning it to the
    # system each time (measured: 12 % less time a step for 5 runs, 13 % for 10, compositional).
    os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", str(2**30))
    os.environ.setdefault("MALLOC_TRIM_THRESHOLD_", str(2**33))
    context = multiprocessing.get_context("spawn")
    channel = context.Manager().Queue()
    failed: dict[Job, str] = {}
    with ProcessPoolExecutor(workers, context, _start_worker, (channel,)) as pool:
        futures: dict[Future[Path], Job] = {pool.submit(_work, job, out): job for job in todo}
        waiting = set(futures)
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=0.2)
                while True:
                    try:
                        report(channel.get_nowait())
                    except queue.Empty:
                        break
                for future in done:
                    job, error = futures[future], future.exception()
                    if error is not None:
                        failed[job] = "".join(traceback.format_exception(error))
                    report({"job": job, "done": 1, "total": 1, "task": 0,
                            "stage": "failed" if error else "done"})  # fmt: skip
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list((pool._processes or {}).values()):
                process.terminate()
            raise
    return failed


def expected_cost(job: Job) -> float:
    """Relative work of a job, to start long ones first."""
    weight = {"dynamic": 2.2, "compositional": 1.0, "joint": 1.6, "no-components": 1.2}
    return weight[job.method.algorithm] * len(job.seeds)
