"""piaget sweep: methods x seeds on streams, and the table of final performance."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from piaget.cli.common import add_data_dir, add_options, check_options, options_for, positive, print_table

if TYPE_CHECKING:
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
        "--structure", metavar="NAME",
        help="linear, soft-ordering or soft-gating (default: the paper's for the stream)",
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
        "--seeds", type=positive, metavar="N", help="seeds 0 .. N-1 (default: 3; of a preset: the paper's)"
    )
    parser.add_argument(
        "--epochs",
        type=positive,
        metavar="N",
        help="epochs a task (default: the paper's, 100 for most streams)",
    )
    add_options(parser)
    parser.add_argument(
        "--workers", type=positive, default=2, metavar="N", help="worker processes (default: 2)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("results"), metavar="DIR", help="output folder (default: results)"
    )
    parser.add_argument("--quick", action="store_true", help="a preset in a minute: to see that all works")
    parser.add_argument("--quiet", action="store_true", help="no progress, only the table")
    add_data_dir(parser)
    parser.set_defaults(run=_sweep)


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
    from piaget.lab import sweep, table
    from piaget.lab.defaults import structure_of
    from piaget.lab.presets import PRESETS
    from piaget.streams import lookup

    if len(options.streams) == 1 and options.streams[0] in PRESETS:
        if options.structure is not None:
            raise SettingError(
                f"{options.streams[0]} is a preset, which has its structure; leave out --structure"
            )
        return _train(_preset(options), options)
    if options.quick:
        raise SettingError("--quick is for presets; for streams, give --epochs and --option")
    streams = ["objects-random" if name == "objects" else lookup(name).name for name in options.streams]
    check_options(streams, options.options)
    adaptations = _choose(options.adaptations or ["er"], list(table.BASES), "adaptation")
    algorithms = _choose(options.algorithms, list(table.ALGORITHMS), "algorithm")
    if options.structure not in (None, "linear", "soft-ordering", "soft-gating"):
        raise SettingError(
            f"structure {options.structure!r} is not known; expected linear, soft-ordering or soft-gating"
        )
    seeds = tuple(range(options.seeds or 3))
    jobs = []
    for stream in dict.fromkeys(streams):
        extra = tuple(options_for(stream, options.options).items())
        methods = sweep.paper_methods(options.structure or structure_of(stream))
        jobs += [
            sweep.Job(stream, method, seeds, options.epochs, options.data_dir, extra)
            for method in methods
            if method.adaptation in adaptations and method.algorithm in algorithms
        ]
    for stream in dict.fromkeys(streams):
        trained = {job.method.algorithm for job in jobs if job.stream == stream}
        left_out = [algorithm for algorithm in algorithms if algorithm not in trained]
        if left_out and "all" not in options.algorithms:
            print(f"piaget: note: {stream} has no {', '.join(left_out)} with this structure", file=sys.stderr)
    return _train(jobs, options)


def _preset(options: argparse.Namespace) -> list[Any]:
    """The cohorts of a preset: those of the adaptations and algorithms that were asked for."""
    from piaget.lab import table
    from piaget.lab.presets import PRESETS, quick

    preset = PRESETS[options.streams[0]]
    adaptations = _choose(options.adaptations or ["all"], list(table.BASES), "adaptation")
    algorithms = _choose(options.algorithms, list(table.ALGORITHMS), "algorithm")
    jobs = preset.jobs(tuple(range(options.seeds or (1 if options.quick else preset.seeds))))
    jobs = [j for j in jobs if j.method.adaptation in adaptations and j.method.algorithm in algorithms]
    check_options([job.stream for job in jobs], options.options)
    jobs = [
        replace(
            job,
            data_dir=options.data_dir,
            epochs=options.epochs or job.epochs,
            options=tuple((dict(job.options) | options_for(job.stream, options.options)).items()),
        )
        for job in jobs
    ]
    return quick(jobs) if options.quick else jobs


def _train(jobs: list[Any], options: argparse.Namespace) -> int:
    import piaget
    from piaget.errors import SettingError
    from piaget.lab import sweep, table
    from piaget.lab.configuration import make_learner
    from piaget.lab.rows import read_rows
    from piaget.storage import write_atomically

    if not jobs:
        raise SettingError(
            "none of these go together: fm (frozen components) goes with the algorithms dynamic and "
            "compositional, linear combinations with all but dynamic"
        )
    for stream, extra in dict.fromkeys((job.stream, job.options) for job in jobs):
        piaget.stream(stream, 0, options.data_dir, **dict(extra))  # files are found or downloaded first
    for job in jobs:
        make_learner(job.configuration, 0, 5)  # settings that do not go together are found now
    jobs.sort(key=sweep.expected_cost, reverse=True)
    before = sum(job.done(options.out) for job in jobs)
    if before:
        print(f"{before} of {len(jobs)} methods are done in {options.out} already; delete it to train again.")
    start = time.monotonic()
    with _progress(options.quiet) as report:
        failed = sweep.run_jobs(jobs, options.out, options.workers, report)
    text = []
    for variant, members in _variants(job for job in jobs if job not in failed).items():
        lines = table.lines(read_rows([path for job in members for path in job.rows(options.out)]))
        _show(lines, variant)
        text.append((f"{variant}\n\n" if variant else "") + table.markdown(lines))
    write_atomically(options.out / "table.md", "\n".join(text).encode())
    runs = sum(len(job.seeds) for job in jobs)
    print(f"{runs} runs in {time.monotonic() - start:.0f} s.")
    for job, trace in failed.items():
        print(f"FAILED: {job.stream} {job.method.name}\n{trace}", file=sys.stderr)
    if options.epochs or options.options or options.quick:
        print("This is not the paper's setting; its numbers are beside for orientation only.")
    print(f"Results: {options.out / 'table.md'} (this table), and a folder for each run (rows.csv, learner).")
    return 1 if failed else 0


def _variants(jobs: Iterable[Any]) -> dict[str, list[Any]]:
    """Jobs that differ in options or settings of their own have tables of their own."""
    found: dict[str, list[Any]] = {}
    for job in jobs:
        own = [f"{name}={value}" for name, value in (*job.options, *job.settings)]
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


class _progress:
    """Live bars in a terminal, plain lines elsewhere, nothing if quiet."""

    def __init__(self, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        console = Console(stderr=True)
        self.quiet, self.live = quiet, console.is_terminal and not quiet
        self.bars: dict[Any, Any] = {}
        self.said: dict[Any, int] = {}
        self.progress = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(), TimeRemainingColumn(), console=console, disable=not self.live,
        )  # fmt: skip

    def __enter__(self) -> Any:
        self.progress.start()
        return self.report

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def report(self, event: dict[str, Any]) -> None:
        job, done = event["job"], event["done"] / event["total"]
        name = f"{job.stream} {job.method.adaptation} {job.method.algorithm}"
        state = f"task {event['task']}/{event['total']} {event['stage']}" if event["task"] else event["stage"]
        if self.live:
            if job not in self.bars:
                self.bars[job] = self.progress.add_task(name, total=1.0, state=state)
            self.progress.update(self.bars[job], completed=done, state=state)
        elif not self.quiet:
            step = event["task"] if event["task"] else -1
            if self.said.get(job) != step:
                self.said[job] = step
                print(f"{name}: {state}", file=sys.stderr, flush=True)
