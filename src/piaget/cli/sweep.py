"""piaget sweep: methods x seeds on streams, and the table of final performance."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from piaget.cli.common import (
    add_data_dir,
    add_every,
    add_options,
    add_set,
    check_options,
    options_for,
    positive,
    print_json,
    print_table,
    seed_list,
    seeds_text,
)
from piaget.cli.live import add_progress, view

if TYPE_CHECKING:
    from piaget.cli.live import View
    from piaget.lab.executors import Executor
    from piaget.lab.jobs import Job
    from piaget.lab.sweeps import Event
    from piaget.lab.table import Line


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "sweep",
        help="train methods on streams over several seeds, and print the table of final performance",
        description="Trains every adaptation x algorithm on every stream with the paper's settings, "
        "the seeds of a method together as one cohort, and prints final performance with standard "
        "errors beside the paper's numbers. Methods that are already done in the output folder are "
        "not run again.",
    )
    parser.add_argument(
        "streams",
        nargs="+",
        metavar="PRESET|STREAM",
        help="an experiment of the paper, or streams: see piaget list",
    )
    parser.add_argument(
        "--structures", nargs="+", metavar="NAME",
        help="linear, soft-ordering, soft-gating (default: the paper's for the stream)",
    )  # fmt: skip
    parser.add_argument(
        "--adaptations", nargs="+", metavar="NAME",
        help="er, ewc, nft, fm, or 'all' (default: er; of a preset: all that it has)",
    )  # fmt: skip
    parser.add_argument(
        "--algorithms", nargs="+", default=["all"], metavar="NAME",
        help="dynamic, compositional, joint, no-components, or 'all' (default)",
    )  # fmt: skip
    parser.add_argument(
        "--seeds",
        type=_seeds,
        metavar="N|LIST",
        help="so many, from 0; or which: 0-9, 0,2,5 (default: 3; of a preset: as many as in the paper)",
    )
    parser.add_argument(
        "--epochs",
        type=positive,
        metavar="N",
        help="epochs a task (default: the paper's, 100 for most streams)",
    )
    add_options(parser)
    add_set(parser, "a setting of the learners, such as width=128 (piaget run --help)")
    add_every(parser)
    add_workers(parser)
    parser.add_argument(
        "--out", type=Path, default=Path("results"), metavar="DIR", help="output folder (default: results)"
    )
    parser.add_argument("--quick", action="store_true", help="a preset in a minute: to see that all works")
    add_progress(parser)
    add_data_dir(parser)
    parser.set_defaults(run=_sweep)


def add_workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", type=positive, metavar="N", help="worker processes (default: 2)")
    parser.add_argument(
        "--cohort", type=positive, metavar="N",
        help="seeds that are trained together, at most (default: 10, or fewer if workers would be idle)",
    )  # fmt: skip
    parser.add_argument(
        "--executor", choices=("processes", "ray"),
        help="processes of this machine (default), or a Ray cluster (pip install 'piaget[ray]')",
    )  # fmt: skip
    parser.add_argument(
        "--address", metavar="ADDRESS",
        help="of the Ray cluster, such as auto or ray://host:10001 (default: one is started here)",
    )  # fmt: skip


def _seeds(text: str) -> list[int]:
    return list(range(positive(text))) if text.isdigit() else seed_list(text)


def _choose(names: Sequence[str], known: Sequence[str], what: str) -> list[str]:
    from piaget.errors import SettingError

    if "all" in names:
        return list(known)
    for name in names:
        if name not in known:
            raise SettingError(f"{what} {name!r} is not known; expected {', '.join(known)} or all")
    return list(dict.fromkeys(names))


def _sweep(options: argparse.Namespace) -> int:
    from piaget.errors import SettingError
    from piaget.lab import jobs as plain, table
    from piaget.lab.defaults import structure_of
    from piaget.lab.presets import PRESETS
    from piaget.streams import lookup

    if len(options.streams) == 1 and options.streams[0] in PRESETS:
        if options.structures is not None:
            raise SettingError(
                f"{options.streams[0]} is a preset, which has its structure; leave out --structures"
            )
        return go(_preset(options), options)
    if options.quick:
        raise SettingError("--quick is for presets; for streams, give --epochs and --option")
    streams = ["objects-random" if name == "objects" else lookup(name).name for name in options.streams]
    check_options(streams, options.options)
    adaptations = _choose(options.adaptations or ["er"], list(table.BASES), "adaptation")
    algorithms = _choose(options.algorithms, list(table.ALGORITHMS), "algorithm")
    for name in options.structures or []:
        if name not in ("linear", "soft-ordering", "soft-gating"):
            raise SettingError(
                f"structure {name!r} is not known; expected linear, soft-ordering or soft-gating"
            )
    seeds = tuple(options.seeds or range(3))
    jobs = []
    for stream in dict.fromkeys(streams):
        extra = tuple(options_for(stream, options.options).items())
        structures = dict.fromkeys(options.structures or [structure_of(stream)])
        methods = [method for structure in structures for method in plain.paper_methods(structure)]
        jobs += [
            plain.Job(
                stream,
                method,
                seeds,
                options.epochs,
                _folder(options),
                extra,
                tuple(options.changes),
                options.every,
            )
            for method in methods
            if method.adaptation in adaptations and method.algorithm in algorithms
        ]
    for stream in dict.fromkeys(streams):
        trained = {job.method.algorithm for job in jobs if job.stream == stream}
        left_out = [algorithm for algorithm in algorithms if algorithm not in trained]
        if left_out and "all" not in options.algorithms:
            print(f"piaget: note: {stream} has no {', '.join(left_out)} with this structure", file=sys.stderr)
    return go(jobs, options)


def _preset(options: argparse.Namespace) -> list[Job]:
    """The cohorts of a preset: those of the adaptations and algorithms that were asked for."""
    from piaget.lab import table
    from piaget.lab.presets import PRESETS, quick

    preset = PRESETS[options.streams[0]]
    adaptations = _choose(options.adaptations or ["all"], list(table.BASES), "adaptation")
    algorithms = _choose(options.algorithms, list(table.ALGORITHMS), "algorithm")
    jobs = preset.jobs(tuple(options.seeds or range(1 if options.quick else preset.seeds)))
    jobs = [j for j in jobs if j.method.adaptation in adaptations and j.method.algorithm in algorithms]
    check_options([job.stream for job in jobs], options.options)
    jobs = [
        replace(
            job,
            data_dir=_folder(options),
            epochs=options.epochs or job.epochs,
            every=options.every,
            settings=tuple((dict(job.settings) | dict(options.changes)).items()),
            options=tuple((dict(job.options) | options_for(job.stream, options.options)).items()),
        )
        for job in jobs
    ]
    return quick(jobs, options.epochs) if options.quick else jobs


def _folder(options: argparse.Namespace) -> str | None:
    """Workers may run elsewhere."""
    return None if options.data_dir is None else str(options.data_dir.absolute())


def go(jobs: list[Job], options: argparse.Namespace) -> int:
    """Runs what is not done of these jobs, and shows the table of all of them."""
    import piaget
    from piaget.errors import SettingError
    from piaget.lab import sweeps as sweep
    from piaget.lab.making import make_learner

    if not jobs:
        raise SettingError(
            "none of these go together: fm (frozen components) goes with the algorithms dynamic and "
            "compositional, linear combinations with all but dynamic"
        )
    executor = _executor(options)
    lengths = {}  # files are found or downloaded first
    for key in dict.fromkeys((job.stream, job.data_dir, job.options) for job in jobs):
        lengths[key] = len(piaget.stream(key[0], 0, key[1], **dict(key[2])))
    for job in jobs:  # settings that do not go together are found now
        make_learner(job.configuration, 0, lengths[job.stream, job.data_dir, job.options])
    start = time.monotonic()
    with view(options) as shown:
        overall = _Overall(shown)
        failed = sweep.run_jobs(jobs, options.out, executor, overall.report, options.cohort)
    seconds = time.monotonic() - start
    return _result(jobs, failed, overall, seconds, options)


def _executor(options: argparse.Namespace) -> Executor:
    from piaget.errors import SettingError
    from piaget.lab import executors

    if options.executor == "ray":
        return executors.Ray(options.workers, options.address)
    if options.address is not None:
        raise SettingError("--address is of a Ray cluster: give --executor ray, too")
    return executors.Processes(options.workers or 2)


class _Overall:
    """How far all cohorts are, weighed by the work they take."""

    def __init__(self, shown: View) -> None:
        self.shown, self.began = shown, time.monotonic()
        self.share: dict[Job, float] = {}  # of each cohort
        self.before: dict[Job, float] = {}  # where it went on
        self.failed: set[Job] = set()
        self.ended = 0

    def name(self, job: Job) -> str:
        """As short as it can be: of the options and settings, those in which cohorts differ."""
        everywhere = set.intersection(*(set(other.variant) for other in self.share))
        own = [f"{key}={value}" for key, value in job.variant if (key, value) not in everywhere]
        structures = {other.method.structure for other in self.share}
        words = [job.stream, job.method.structure if len(structures) > 1 else ""]
        words += [job.method.adaptation, job.method.algorithm, *own, seeds_text(job.seeds)]
        return " ".join(word for word in words if word)

    def report(self, event: Event) -> None:
        job = event.job
        if event.status == "waiting":
            self.share[job] = 0.0
            return
        name = self.name(job)
        if event.progress is not None:
            self.before[job], self.share[job] = event.progress.begun_at, event.progress.done
            self.shown.progress(name, event.progress)
        elif event.status == "again":
            self.shown.ended(name, "its worker died; it goes on from its checkpoint")
        else:
            self.share[job] = 1.0
            self.ended += 1
            if event.status == "failed":
                self.failed.add(job)  # tells nothing about how long others take
            self.shown.ended(name, event.status, event.error)
        counted = {job: share for job, share in self.share.items() if job not in self.failed}
        whole = sum(job.cost for job in counted) or 1.0
        done = sum(job.cost * share for job, share in counted.items()) / whole
        new = done - sum(job.cost * self.before.get(job, 0.0) for job in counted) / whole
        left = (time.monotonic() - self.began) * (1 - done) / new if new > 0 else None
        self.shown.overall(done, left, f"{self.ended} of {len(self.share)} cohorts")


def _result(
    jobs: list[Job], failed: dict[Job, str], overall: _Overall, seconds: float, options: argparse.Namespace
) -> int:
    from piaget.knowledge.storage import write_atomically
    from piaget.lab import table
    from piaget.lab.progress import duration
    from piaget.lab.row_file import read_rows
    from piaget.lab.runs import is_done
    from piaget.lab.sweeps import row_files

    text, found = [], {}
    for variant, members in _variants(jobs).items():
        paths = [path for job in members for path in row_files(job, options.out) if is_done(path.parent)]
        found[variant] = table.lines(read_rows(paths))
        text.append((f"{variant}\n\n" if variant else "") + table.markdown(found[variant]))
    write_atomically(options.out / "table.md", "\n".join(text).encode())
    if options.json:
        rows = [vars(line) | {"variant": variant} for variant in found for line in found[variant]]
        errors = [{"run": job.name, "seeds": job.seeds, "error": error} for job, error in failed.items()]
        print_json({"event": "result", "table": rows, "failed": errors})
        return 1 if failed else 0
    for variant, lines in found.items():
        _show(lines, variant)
    runs, trained = sum(len(job.seeds) for job in jobs), sum(len(job.seeds) for job in overall.share)
    if trained < runs:
        print(
            f"{runs - trained} of {runs} runs were done in {options.out} already; delete it to train again."
        )
    print(f"{trained} runs in {duration(seconds)}.")
    for job, trace in failed.items():
        print(f"FAILED: {job.name} {seeds_text(job.seeds)}\n{trace}", file=sys.stderr)
    if any(job.epochs or job.options or options.changes for job in jobs):
        print("This is not the paper's setting; its numbers are beside for orientation only.")
    print(f"Results: {options.out / 'table.md'} (this table), and a folder for each run (rows.csv, learner).")
    return 1 if failed else 0


def _variants(jobs: Iterable[Job]) -> dict[str, list[Job]]:
    """Jobs that differ in options or settings of their own have tables of their own."""
    found: dict[str, list[Job]] = {}
    for job in jobs:
        own = [f"{name}={value}" for name, value in job.variant]
        found.setdefault(", ".join(own), []).append(job)
    return found


def _show(lines: Sequence[Line], variant: str) -> None:
    from rich.table import Table

    from piaget.lab.table import ALGORITHMS, BASES, UNITS, with_error

    shown = Table(title=f"Final performance: mean ± standard error{variant and '; '}{variant}")
    for column, justify in (
        ("stream", "left"), ("base", "left"), ("algorithm", "left"), ("seeds", "right"),
        ("metric", "left"), ("piaget", "right"), ("paper", "right"),
    ):  # fmt: skip
        shown.add_column(column, justify=justify)  # type: ignore[arg-type]
    for line in lines:
        shown.add_row(
            line.stream, BASES[line.base], ALGORITHMS[line.algorithm], str(line.seeds),
            UNITS[line.metric], with_error(line.mean, line.error, line.metric),
            with_error(*line.paper, line.metric) if line.paper else "",
        )  # fmt: skip
    print_table(shown)
