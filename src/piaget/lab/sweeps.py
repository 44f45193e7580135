"""A sweep: methods x seeds on streams, in workers.

The seeds of one method are trained together as a cohort, each in a run folder of its own. The same
sweep again skips what is done, and goes on with what was interrupted.
"""

from __future__ import annotations

import contextlib
import math
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from dataclasses import dataclass
from pathlib import Path

from piaget.errors import PiagetError
from piaget.knowledge.storage import write_atomically
from piaget.lab import folder, jobs as plain
from piaget.lab.executors import Executor, Send
from piaget.lab.jobs import Job
from piaget.lab.making import make, make_learner
from piaget.lab.progress import Progress
from piaget.lab.runs import is_done, run, run_folders

ATTEMPTS = 3  # at a cohort whose worker dies (killed, out of memory)


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
    run(
        learners, streams, job.folder(out), job.configuration, lambda progress: send((job, progress)),
        together=len(job.seeds),
    )  # fmt: skip


def cohort_size(job: Job, jobs: Sequence[Job], workers: int) -> int:
    """As many seeds as are trained fastest together, but so that no worker is idle."""
    useful = make_learner(job.configuration, 0, 4).settings.components.together
    return max(1, min(useful, math.ceil(sum(len(one.seeds) for one in jobs) / workers)))


def all_done(job: Job, out: Path) -> bool:
    return all(is_done(path) for path in run_folders(job.folder(out), job.seeds))


def run_jobs(
    jobs: Sequence[Job], out: Path, executor: Executor, report: Report, size: int | None = None
) -> dict[Job, str]:
    """Runs what is not done yet, the longest first; returns the failed cohorts with their tracebacks."""
    with folder.only_one([out]):
        if all(all_done(job, out) for job in jobs):
            return {}
        with executor:
            before = plain.read_cohorts(out)
            planned = plain.plan(jobs, before, lambda job: size or cohort_size(job, jobs, executor.workers))
            others = {(c.folder(out), c.seeds): c for c in before}  # of other jobs, or other seeds
            for cohort in planned:
                others.pop((cohort.folder(out), cohort.seeds), None)
            write_atomically(out / plain.FILE, plain.as_json([*others.values(), *planned]))
            todo = [cohort for cohort in planned if not all_done(cohort, out)]
            todo.sort(key=lambda job: job.cost, reverse=True)
            for job in todo:
                report(Event(job, "waiting"))
            failed: dict[Job, str] = {}
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
        # Where somebody else works, or where there is another run, nothing is written.
        with contextlib.suppress(PiagetError), folder.only_one([path]):
            folder.begin(path, job.configuration, seed)
            if folder.read_description(path)["status"] not in ("failed", "done"):
                folder.note(path, status="failed", error=error)
                folder.log(path, f"failed\n{error}")
