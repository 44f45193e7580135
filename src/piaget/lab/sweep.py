"""A sweep: methods x seeds on streams, in worker processes.

The seeds of one method are trained together as a cohort, each in a run folder of its own. The same
sweep again skips what is done, and goes on with what was interrupted.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import re
import traceback
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from piaget.errors import DataNote
from piaget.lab.configuration import Configuration, configure, make_learner, make_stream
from piaget.lab.run import Progress, check_stream, run
from piaget.lab.status import read_description
from piaget.lab.table import ALGORITHMS, BASES


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
    settings: tuple[tuple[str, Any], ...] = ()  # of the learner, where they are not the paper's

    def folder(self, out: Path) -> Path:
        """stream/method, with one folder a seed inside."""
        stream = "_".join([self.stream, *(f"{name}-{value}" for name, value in self.options)])
        changes = [f"{name}-{value}" for name, value in self.settings]
        changes += [f"{self.epochs}-epochs"] if self.epochs else []
        method = "_".join([*self.method.name.split("/"), *changes])
        return out / _plain(stream) / _plain(method)

    def rows(self, out: Path) -> list[Path]:
        return [self.folder(out) / f"seed-{seed}" / "rows.csv" for seed in self.seeds]

    def done(self, out: Path) -> bool:
        folders = [path.parent for path in self.rows(out)]
        described = [read_description(folder) for folder in folders if (folder / "run.json").is_file()]
        return len(described) == len(folders) and all(d["status"] == "done" for d in described)

    @property
    def configuration(self) -> Configuration:
        return configure(
            stream=self.stream,
            options=dict(self.options),
            structure=self.method.structure,
            adaptation=self.method.adaptation,
            algorithm=self.method.algorithm,
            epochs=self.epochs,
            settings=dict(self.settings),
        )


def _plain(text: str) -> str:
    """For a folder's name."""
    return re.sub(r"[^A-Za-z0-9._=-]+", "-", text)


Report = Callable[[dict[str, Any]], None]


def run_job(job: Job, out: Path, report: Report) -> list[Path]:
    """Trains a cohort over the whole stream; the row files of its runs."""
    streams = [make_stream(job.configuration, seed, job.data_dir) for seed in job.seeds]
    learners = [make_learner(job.configuration, seed, len(streams[0])) for seed in job.seeds]
    check_stream(learners[0], streams[0])

    def on_progress(progress: Progress) -> None:
        epoch = progress.epoch
        if epoch.epoch % 5 == 0 or epoch.epoch == epoch.epochs:
            done = progress.task - 1 + epoch.epoch / epoch.epochs
            report(
                {
                    "job": job,
                    "done": done,
                    "total": progress.tasks,
                    "task": progress.task,
                    "stage": epoch.stage,
                }
            )

    run(learners, streams, job.folder(out), job.configuration, on_progress)
    return job.rows(out)


# --- in worker processes ---------------------------------------------------------------------------


_channel: Any = None


def _start_worker(channel: Any) -> None:
    """One torch thread a worker: two workers share two cores."""
    global _channel
    _channel = channel
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore", DataNote)  # said before, by the process that asked for the sweep


def _work(job: Job, out: Path) -> list[Path]:
    return run_job(job, out, _channel.put)


def run_jobs(jobs: Sequence[Job], out: Path, workers: int, report: Report) -> dict[Job, str]:
    """Runs what is not done yet; returns the failed jobs with their tracebacks."""
    out.mkdir(parents=True, exist_ok=True)
    todo = [job for job in jobs if not job.done(out)]
    for job in jobs:
        if job not in todo:
            report({"job": job, "done": 1, "total": 1, "task": 0, "stage": "done before"})
    if not todo:
        return {}
    # Large tensors come and go in every step: keep their memory instead of returning it to the
    # system each time (measured: 12 % less time a step for 5 runs, 13 % for 10, compositional).
    os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", str(2**30))
    os.environ.setdefault("MALLOC_TRIM_THRESHOLD_", str(2**33))
    failed: dict[Job, str] = {}
    for _ in range(ATTEMPTS):
        died = _round(todo, out, workers, report, failed)
        todo = [job for job in died if job in failed]
        if not todo:
            break
        for job in todo:
            del failed[job]
    failed |= died
    return failed


ATTEMPTS = 3  # a worker that dies (killed, out of memory) takes others' work with it; it is taken up again


def _round(
    todo: Sequence[Job], out: Path, workers: int, report: Report, failed: dict[Job, str]
) -> dict[Job, str]:
    """Runs jobs in new workers; adds to `failed`. Those that died with a worker are returned as well."""
    context = multiprocessing.get_context("spawn")
    died: dict[Job, str] = {}
    with context.Manager() as manager:
        channel = manager.Queue()
        with ProcessPoolExecutor(workers, context, _start_worker, (channel,)) as pool:
            futures: dict[Future[list[Path]], Job] = {pool.submit(_work, job, out): job for job in todo}
            waiting = set(futures)
            try:
                while waiting:
                    done, waiting = wait(waiting, timeout=0.2)
                    _pass_on(channel, report)
                    for future in done:
                        job, error = futures[future], future.exception()
                        if error is not None:
                            failed[job] = "".join(traceback.format_exception(error))
                        if isinstance(error, BrokenProcessPool):
                            died[job] = failed[job]
                        report({"job": job, "done": 1, "total": 1, "task": 0,
                                "stage": "failed" if error else "done"})  # fmt: skip
            except KeyboardInterrupt:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in list((pool._processes or {}).values()):
                    process.terminate()
                raise
    return died


def _pass_on(channel: Any, report: Report) -> None:
    while True:
        try:
            report(channel.get_nowait())
        except queue.Empty:
            return


def expected_cost(job: Job) -> float:
    """Relative work of a job, to start long ones first."""
    weight = {"dynamic": 2.2, "compositional": 1.0, "joint": 1.6, "no-components": 1.2}
    return weight[job.method.algorithm] * len(job.seeds)
