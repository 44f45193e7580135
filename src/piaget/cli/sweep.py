"""piaget sweep: methods x seeds on streams, and the table of final performance."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
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
        "streams", nargs="+", metavar="STREAM", help="objects, mnist, ...: see piaget data list"
    )
    parser.add_argument(
        "--structure", metavar="NAME",
        help="linear, soft-ordering or soft-gating (default: the paper's for the stream)",
    )  # fmt: skip
    parser.add_argument(
        "--adaptations", nargs="+", default=["er"], metavar="NAME",
        help="er, ewc, nft, fm, or 'all' (default: er)",
    )  # fmt: skip
    parser.add_argument(
        "--algorithms", nargs="+", default=["all"], metavar="NAME",
        help="dynamic, compositional, joint, no-components, or 'all' (default)",
    )  # fmt: skip
    parser.add_argument("--seeds", type=positive, default=3, metavar="N", help="seeds 0 .. N-1 (default: 3)")
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
    import piaget
    from piaget.errors import SettingError
    from piaget.lab import sweep, table
    from piaget.lab.configuration import make_learner
    from piaget.lab.defaults import structure_of
    from piaget.lab.rows import read_rows
    from piaget.streams import lookup

    streams = ["objects-random" if name == "objects" else lookup(name).name for name in options.streams]
    check_options(streams, options.options)
    adaptations = _choose(options.adaptations, list(table.BASES), "adaptation")
    algorithms = _choose(options.algorithms, list(table.ALGORITHMS), "algorithm")
    if options.structure not in (None, "linear", "soft-ordering", "soft-gating"):
        raise SettingError(
            f"structure {options.structure!r} is not known; expected linear, soft-ordering or soft-gating"
        )
    seeds = tuple(range(options.seeds))
    jobs = []
    for stream in dict.fromkeys(streams):
        extra = tuple(options_for(stream, options.options).items())
        methods = sweep.paper_methods(options.structure or structure_of(stream))
        jobs += [
            sweep.Job(stream, method, seeds, options.epochs, options.data_dir, extra)
            for method in methods
            if method.adaptation in adaptations and method.algorithm in algorithms
        ]
    if not jobs:
        raise SettingError(
            "none of these go together: fm (frozen components) goes with the algorithms dynamic and "
            "compositional, linear combinations with all but dynamic"
        )
    for stream, extra in dict.fromkeys((job.stream, job.options) for job in jobs):
        piaget.stream(stream, 0, options.data_dir, **dict(extra))  # files are found or downloaded first
    for job in jobs:
        make_learner(job.configuration, 0, 5)  # settings that do not go together are found now
    for stream in dict.fromkeys(streams):
        trained = {job.method.algorithm for job in jobs if job.stream == stream}
        left_out = [algorithm for algorithm in algorithms if algorithm not in trained]
        if left_out and "all" not in options.algorithms:
            print(f"piaget: note: {stream} has no {', '.join(left_out)} with this structure", file=sys.stderr)
    jobs.sort(key=sweep.expected_cost, reverse=True)
    before = sum(job.done(options.out) for job in jobs)
    if before:
        print(f"{before} of {len(jobs)} methods are done in {options.out} already; delete it to train again.")
    start = time.monotonic()
    with _progress(options.quiet) as report:
        failed = sweep.run_jobs(jobs, options.out, options.workers, report)
    files = [path for job in jobs if job not in failed for path in job.rows(options.out)]
    lines = table.lines(read_rows(files))
    _show(lines)
    (options.out / "table.md").write_text(table.markdown(lines))
    print(f"{len(jobs)} methods x {len(seeds)} seeds in {time.monotonic() - start:.0f} s.")
    for job, trace in failed.items():
        print(f"FAILED: {job.stream} {job.method.name}\n{trace}", file=sys.stderr)
    if options.epochs or options.options:
        print("With --epochs or --option this is not the paper's setting; its numbers are for orientation.")
    print(f"Results: {options.out / 'table.md'} (this table), and a folder for each run (rows.csv, learner).")
    return 1 if failed else 0


def _show(lines: Sequence[Line]) -> None:
    from rich.table import Table

    from piaget.lab.table import ALGORITHMS, BASES, UNITS, with_error

    shown = Table(title="Final performance: mean ± standard error")
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
