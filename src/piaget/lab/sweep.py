"""A sweep: methods x seeds on streams, in workers.

The seeds of one method are trained together as a cohort, each in a run folder of its own. The same
sweep again skips what is done, and goes on with what was interrupted.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, replace
from pathlib import Path

from piaget.lab import folder, jobs as plain
from piaget.lab.executors import Executor, Send
from piaget.lab.jobs import Job
from piaget.lab.making import make
from piaget.lab.progress import Progress
from piaget.lab.run import begun_cohorts, is_done, run, run_folders
from piaget.storage import write_atomically

ATTEMPTS = 3  # at a cohort whose worker dies (killed, out of memory)
SECONDS = 0.5  # between two reports of a worker, at least
COHORT = 10  # seeds trained together: more do not make a step of one run any faster


@dataclass(frozen=True)
class Event:
    """What a display is told of a cohort: that it is `waiting`, `running`, `done`, `failed` or `again`."""

    job: Job
    status: str
    progress: Progress | None = None
    error: str | None = None


Report = Callable[[Event], None]


def row_files(job: Job, out: Path) -> list[Path]:
    return [path / "rows.csv" for path in run_folders(job.folder(out), job.seeds)]


def run_job(job: Job, out: Path, send: Send) -> None:
    """Trains a cohort over the whole stream."""
    learners, streams = make(job.configuration, list(job.seeds), job.data_dir)
    last = 0.0

    def on_progress(progress: Progress) -> None:
        nonlocal last  # epochs may be very short
        if time.monotonic() - last > SECONDS or progress.epoch == progress.epochs:
            last = time.monotonic()
            send((job, progress))

    run(learners, streams, job.folder(out), job.configuration, on_progress)


def cohorts(jobs: Sequence[Job], out: Path, workers: int, size: int | None = None) -> list[Job]:
    """What is still to do, cut into cohorts; the longest ones first.

    Seeds that were interrupted together go on together. The others are spread over all workers, but
    not more than `size` in one.
    """
    begun, new = [], []
    for job in jobs:
        place = job.folder(out)
        groups = begun_cohorts(place, job.seeds)
        busy = {seed for group in groups for seed in group}
        left = [s for s in job.seeds if s not in busy and not is_done(run_folders(place, [s])[0])]
        begun += [replace(job, seeds=tuple(group)) for group in groups]
        new += [replace(job, seeds=tuple(left))] if left else []
    fair = math.ceil(sum(len(job.seeds) for job in new) / workers)
    size = size or max(1, min(COHORT, fair))
    cut = [replace(job, seeds=job.seeds[i : i + size]) for job in new for i in range(0, len(job.seeds), size)]
    return sorted(begun + cut, key=lambda job: job.cost, reverse=True)


def run_jobs(
    jobs: Sequence[Job], out: Path, executor: Executor, report: Report, size: int | None = None
) -> dict[Job, str]:
    """Runs what is not done yet; returns the failed cohorts with their tracebacks."""
    with folder.only_one([out]):
        planned = plain.merged([*plain.read_jobs(out), *jobs])
        write_atomically(out / plain.FILE, plain.as_json(planned))
        todo = cohorts(jobs, out, executor.workers, size)
        for job in todo:
            report(Event(job, "waiting"))
        failed: dict[Job, str] = {}
        if todo:
            with executor:
                for job, error in _run_all(todo, out, executor, report):
                    failed[job] = error
                    _record(job, out, error)
        return failed


def _run_all(todo: Sequence[Job], out: Path, executor: Executor, report: Report) -> Iterator[tuple[Job, str]]:
    """Yields the cohorts that failed, with their tracebacks."""
    attempts = dict.fromkeys(todo, 1)
    running = {executor.submit(run_job, job, out): job for job in todo}
    while running:
        ended, _ = wait(running, timeout=0.2)
        for job, progress in executor.received():
            report(Event(job, "running", progress))
        for future in ended:
            job, error = running.pop(future), future.exception()
            if error is None:
                report(Event(job, "done"))
                continue
            text = "".join(traceback.format_exception(error))
            if executor.died(error) and attempts[job] < ATTEMPTS:
                attempts[job] += 1
                report(Event(job, "again", error=text))
                running[executor.submit(run_job, job, out)] = job
            else:
                report(Event(job, "failed", error=text))
                yield job, text


def _record(job: Job, out: Path, error: str) -> None:
    """A run that failed before it began, or with its worker, could not record that itself."""
    for path, seed in zip(run_folders(job.folder(out), job.seeds), job.seeds, strict=True):
        folder.begin(path, job.configuration, seed)
        if folder.read_description(path)["status"] not in ("failed", "done"):
            folder.note(path, status="failed", error=error)
            folder.log(path, f"failed\n{error}")
