"""A sweep: methods x seeds on streams, in workers.

The seeds of one method are trained together as a cohort, each in a run folder of its own. The same
sweep again skips what is done, and goes on with what was interrupted.
"""

from __future__ import annotations

import contextlib
import json
import math
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from piaget.errors import LoadError, PiagetError, SettingError, note
from piaget.files import write_atomically
from piaget.lab import folder, jobs as plain
from piaget.lab.executors import Executor, Send, Work
from piaget.lab.final_table import Line, escaped, lines, markdown
from piaget.lab.folder import DIVERGED, DONE, RunFolder, has_ended, is_done, seed_folders
from piaget.lab.jobs import Job
from piaget.lab.locks import only_one
from piaget.lab.making import make, make_learner, make_stream
from piaget.lab.parts import NOTHING, Trusted, references
from piaget.lab.progress import Standing
from piaget.lab.runs import fingerprints, run
from piaget.lab.unchanged import check_data
from piaget.scoring.rows import Row

ATTEMPTS = 3  # at a cohort whose worker dies (killed, out of memory)


@dataclass(frozen=True)
class Event:
    """What a display is told of a cohort: that it is `waiting`, `running`, `done`, `failed` or `again`."""

    job: Job
    status: str
    standing: Standing | None = None
    error: str | None = None


Report = Callable[[Event], None]


def check_jobs(jobs: Sequence[Job], trusted: Trusted) -> None:
    """Finds or downloads all files, and raises an error about settings that do not go together, or methods
    that could not be told apart."""
    streams: dict[str, str] = {}
    for job in jobs:
        name = job.stream.split(":")[-1]  # as rows have it
        if streams.setdefault(name, job.stream) != job.stream:
            raise SettingError(
                f"streams {streams[name]} and {job.stream} would both be called {name}: give them different "
                "names, or run them apart"
            )
    lengths, methods = {}, dict[tuple[object, ...], Job]()
    for job in jobs:
        data = job.stream, job.data_dir, job.options
        if data not in lengths:
            lengths[data] = len(make_stream(job.configuration, 0, job.data_dir, trusted))
        method = make_learner(job.configuration, 0, lengths[data], trusted).settings.method
        other = methods.setdefault((*data, job.changes, method), job)
        if other.method != job.method and references(job.configuration) != references(other.configuration):
            raise SettingError(
                f"{other.name} and {job.name} would both be called {method}: give the parts different names"
            )


def run_job(job: Job, out: Path, send: Send, trusted: Trusted = NOTHING) -> None:
    """Trains a cohort over the whole stream."""
    learners, streams = make(job.configuration, job.seeds, job.data_dir, trusted)
    place, together = job.folder(out), len(job.seeds)
    run(learners, streams, place, job.configuration, lambda s: send((job, s)), together=together)


def runs_of(job: Job, out: Path) -> list[RunFolder]:
    """The runs of a job."""
    return [RunFolder(path) for path in seed_folders(job.folder(out), job.seeds)]


def cohort_size(job: Job, jobs: Sequence[Job], workers: int, trusted: Trusted = NOTHING) -> int:
    """As many seeds as are trained fastest together, but so that no worker is idle."""
    useful = make_learner(job.configuration, 0, 4, trusted).settings.components.together
    return max(1, min(useful, math.ceil(sum(len(one.seeds) for one in jobs) / workers)))


def all_ended(job: Job, out: Path) -> bool:
    """Is nothing left to train of a job?"""
    return all(has_ended(path) for path in seed_folders(job.folder(out), job.seeds))


def renamed_runs(jobs: Sequence[Job], out: Path) -> list[Path]:
    """Folders of jobs whose runs are of another algorithm now: version 0.1 called it by the job's name."""
    return [
        job.folder(out)
        for job in jobs
        if any(run.algorithm not in (None, job.method.algorithm) for run in runs_of(job, out))
    ]


def run_jobs(
    jobs: Sequence[Job],
    out: Path,
    executor: Executor,
    report: Report,
    size: int | None = None,
    trusted: Trusted = NOTHING,
) -> dict[Job, str]:
    """Runs what is not done yet, the longest first; returns the failed cohorts with their tracebacks.

    size: seeds that are trained together, at most (default: what is fastest).
    """
    if all(all_ended(job, out) for job in jobs):
        return {}
    with only_one([out]):
        _check_data(jobs, out, trusted)
        with executor:
            before = plain.read_cohorts(out)
            planned = plain.plan(
                jobs, before, lambda job: size or cohort_size(job, jobs, executor.workers, trusted)
            )
            others = {(c.folder(out), c.seeds): c for c in before}  # of other jobs, or other seeds
            for cohort in planned:
                others.pop((cohort.folder(out), cohort.seeds), None)
            plain.write_cohorts(out, [*others.values(), *planned])
            todo = [cohort for cohort in planned if not all_ended(cohort, out)]
            todo.sort(key=lambda job: job.cost, reverse=True)
            for job in todo:
                report(Event(job, "waiting"))
            failed: dict[Job, str] = {}
            work = partial(run_job, trusted=trusted)
            for job, error in _run_all(work, todo, out, executor, report):
                failed[job] = error
                _record(job, out, error)
        return failed


def _check_data(jobs: Sequence[Job], out: Path, trusted: Trusted) -> None:
    """All runs of a sweep's folder have the same data: of each stream, one that was begun is looked at."""
    left = {_data_of(job.configuration): job for job in jobs if not all_ended(job, out)}
    for begun in folder.runs_below(out):
        with contextlib.suppress(LoadError):  # it is told where it is used
            job = left.get(_data_of(begun.configuration)) if begun.description.get("data") else None
            if job is not None:
                del left[_data_of(job.configuration)]
                stream = make_stream(job.configuration, begun.seed, job.data_dir, trusted)
                then, done = begun.description["data"], is_done(begun.path)
                check_data(begun.path, then, fingerprints(stream), done)


def _data_of(configuration: Mapping[str, Any]) -> str:
    return json.dumps([configuration["stream"], configuration["options"]], sort_keys=True)


def _run_all(
    work: Work, todo: Sequence[Job], out: Path, executor: Executor, report: Report
) -> Iterator[tuple[Job, str]]:
    """Yields the cohorts that failed, with their tracebacks."""
    attempts = dict.fromkeys(todo, 1)
    running = {executor.submit(work, job, out): job for job in todo}
    while running:
        ended, _ = wait(running, timeout=0.2)
        for job, standing in executor.received():
            report(Event(job, "running", standing))
        for future in ended:
            job, error = running.pop(future), future.exception()
            if error is None:
                report(Event(job, "done"))
                continue
            known = isinstance(error, PiagetError)  # its text says all that a user needs
            text = str(error) if known else "".join(traceback.format_exception(error))
            if executor.died(error) and attempts[job] < ATTEMPTS:
                attempts[job] += 1
                report(Event(job, "again", error=text))
                running[executor.submit(work, job, out)] = job
            else:
                report(Event(job, "failed", error=text))
                yield job, text


def _record(job: Job, out: Path, error: str) -> None:
    """A run that failed before it began, or with its worker, could not record that itself."""
    for path, seed in zip(seed_folders(job.folder(out), job.seeds), job.seeds, strict=True):
        # Where somebody else works, or where there is another run, nothing is written.
        with contextlib.suppress(PiagetError), only_one([path]):
            folder.begin(path, job.configuration, seed)
            if folder.read_description(path)["status"] not in ("failed", DONE, DIVERGED):
                folder.note(path, status="failed", error=error)
                folder.log(path, f"failed\n{error}")


def diverged_runs(jobs: Sequence[Job], out: Path) -> dict[Path, str]:
    """Those runs that diverged, and what is said of them."""
    return folder.diverged(run.path for job in jobs for run in runs_of(job, out))


def _readable_rows(one: RunFolder) -> list[Row]:
    try:
        return list(one.rows())
    except LoadError as error:
        note(f"left out: {error}")
        return []


def write_tables(jobs: Sequence[Job], out: Path) -> dict[str, list[Line]]:
    """Final performance of all runs that are done, in table.md and by variant.

    Jobs that differ in options or settings have tables of their own.
    """
    variants: dict[str, list[Job]] = {}
    for job in jobs:
        variants.setdefault(", ".join(plain.as_words(job.variant)), []).append(job)
    tables, text = {}, []
    for variant, members in variants.items():
        done = [run for job in members for run in runs_of(job, out) if is_done(run.path)]
        tables[variant] = lines(row for run in done for row in _readable_rows(run))
        text.append((f"{escaped(variant)}\n\n" if variant else "") + markdown(tables[variant]))
    whole, file = "\n".join(text).encode(), out / "table.md"
    if not file.is_file() or file.read_bytes() != whole:  # a finished sweep may be read-only
        write_atomically(file, whole)
    return tables
