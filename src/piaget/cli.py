"""The command line."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    from piaget.errors import PiagetError

    try:
        return int(options.run(options))
    except PiagetError as error:
        print(f"piaget: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\npiaget: stopped; finished methods are kept, run the same command to go on", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="piaget", description="Lifelong learning of compositional structures."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    sweep = commands.add_parser(
        "sweep",
        help="train methods on streams over several seeds, and print the table of final accuracy",
        description="Trains every adaptation x algorithm on every stream with the paper's settings, "
        "the seeds of a method together as one cohort, and prints final accuracy with standard "
        "errors beside the paper's numbers. Methods that are already done in the output folder are "
        "not run again.",
    )
    sweep.add_argument("streams", nargs="+", metavar="STREAM", help="objects-random, objects-circle, ...")
    sweep.add_argument(
        "--adaptations", nargs="+", default=["er"], metavar="NAME",
        help="er, ewc, nft, fm, or 'all' (default: er)",
    )  # fmt: skip
    sweep.add_argument(
        "--algorithms", nargs="+", default=["all"], metavar="NAME",
        help="dynamic, compositional, joint, no-components, or 'all' (default)",
    )  # fmt: skip
    sweep.add_argument("--seeds", type=_positive, default=3, metavar="N", help="seeds 0 .. N-1 (default: 3)")
    sweep.add_argument(
        "--epochs", type=_positive, default=100, metavar="N", help="epochs a task (default: 100)"
    )
    sweep.add_argument(
        "--workers", type=_positive, default=2, metavar="N", help="worker processes (default: 2)"
    )
    sweep.add_argument(
        "--out", type=Path, default=Path("results"), metavar="DIR", help="output folder (default: results)"
    )
    sweep.add_argument("--quiet", action="store_true", help="no progress, only the table")
    sweep.set_defaults(run=_sweep)
    return parser


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 1 or more")
    return int(text)


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
    from piaget.streams import STREAMS

    streams = ["objects-random" if name == "objects" else name for name in options.streams]
    streams = _choose(streams, list(STREAMS)[1:], "stream")
    adaptations = _choose(options.adaptations, list(table.BASES), "adaptation")
    algorithms = _choose(options.algorithms, list(table.ALGORITHMS), "algorithm")
    methods = [m for m in sweep.PAPER_METHODS if m.adaptation in adaptations and m.algorithm in algorithms]
    if not methods:
        raise SettingError("fm (frozen components) goes with the algorithms dynamic and compositional")
    seeds = tuple(range(options.seeds))
    jobs = [sweep.Job(s, m, seeds, options.epochs) for s in streams for m in methods]
    jobs.sort(key=sweep.expected_cost, reverse=True)
    before = sum(job.file(options.out).exists() for job in jobs)
    if before:
        print(f"{before} of {len(jobs)} methods are done in {options.out} already; delete it to train again.")
    start = time.monotonic()
    with _progress(options.quiet) as report:
        failed = sweep.run_jobs(jobs, options.out, options.workers, report)
    files = [job.file(options.out) for job in jobs if job not in failed]
    lines = table.lines(sweep.read_rows(files))
    _show(lines)
    (options.out / "table.md").write_text(table.markdown(lines))
    print(f"{len(jobs)} methods x {len(seeds)} seeds in {time.monotonic() - start:.0f} s.")
    for job, trace in failed.items():
        print(f"FAILED: {job.stream} {job.method.name}\n{trace}", file=sys.stderr)
    print(f"Results: {options.out / 'table.md'} (this table), and one CSV file of rows a method beside it.")
    return 1 if failed else 0


def _show(lines: Sequence[Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from piaget.lab.table import ALGORITHMS, BASES, with_error

    shown = Table(title="Final accuracy in %, mean ± standard error")
    for column, justify in (
        ("stream", "left"), ("base", "left"), ("algorithm", "left"), ("seeds", "right"),
        ("piaget", "right"), ("paper (50 trials)", "right"),
    ):  # fmt: skip
        shown.add_column(column, justify=justify)  # type: ignore[arg-type]
    for line in lines:
        shown.add_row(
            line.stream, BASES[line.base], ALGORITHMS[line.algorithm], str(line.seeds),
            with_error(line.mean, line.error), with_error(*line.paper) if line.paper else "",
        )  # fmt: skip
    Console().print(shown)


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


if __name__ == "__main__":
    sys.exit(main())
