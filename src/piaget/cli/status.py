"""piaget status: how far runs are."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from piaget.cli.common import print_json, print_table, seeds_text

if TYPE_CHECKING:
    from rich.table import Table

    from piaget.lab.status import RunStatus

SETTLED = ("done", "planned")  # counted only; all others are listed
Key = TypeVar("Key", bound=Hashable)


def add(commands: Any) -> None:
    """The command and its flags."""
    parser = commands.add_parser(
        "status",
        help="how far the runs in a folder are",
        description="How many runs of each method in a folder and below it are done, running, planned, "
        "interrupted, stopped or failed; which ones are unfinished or failed, and the time that is left.",
    )
    parser.add_argument("out", type=Path, metavar="DIR", help="output folder of piaget run or piaget sweep")
    parser.add_argument("--json", action="store_true", help="one JSON object, with all runs, for machines")
    parser.set_defaults(run=_status)


def _status(options: argparse.Namespace) -> int:
    from piaget.lab.folder import no_runs
    from piaget.lab.progress import duration
    from piaget.lab.status import statuses, time_left

    runs = statuses(options.out)
    if not runs:
        raise no_runs(options.out)
    counts = {status: len(some) for status, some in _by(runs, lambda run: run.status).items()}
    left = time_left(runs)
    if options.json:
        keys = ("status", "seed", "done", "together", "seconds", "left", "last", "error")
        described = [{"folder": str(run.folder)} | {key: getattr(run, key) for key in keys} for run in runs]
        print_json({"counts": counts, "left": left, "runs": described})
        return 0
    # Done comes first, planned last.
    states = sorted(counts, key=lambda state: (state == "planned") - (state == "done"))
    print_table(_methods(runs, states, options.out))
    if listed := [run for run in runs if run.status not in SETTLED]:
        print_table(_listed(listed, options.out))
    print(", ".join(f"{count} {status}" for status, count in counts.items()))
    if left is not None:
        print(f"About {duration(left)} left, if as much is at work as now.")
    return 0


def _methods(runs: Sequence[RunStatus], states: Sequence[str], out: Path) -> Table:
    """How many runs of each method are in each state.

    A method is told by the name of the folder that holds its seeds, so runs that cannot be read count, too.
    """
    from rich.table import Table

    shown = Table("method", *states, "work done", "last row")
    for some in _by(runs, lambda run: run.folder.parent.name).values():
        folders = list(dict.fromkeys(run.folder.parent for run in some))
        several = f"{folders[0].name} in {len(folders)} folders"
        name = _below(folders[0], out) if len(folders) == 1 else several
        counts = [sum(run.status == state for run in some) for state in states]
        shown.add_row(name, *(str(count or "") for count in counts), _work(some), _last(some))
    return shown


def _listed(runs: Sequence[RunStatus], out: Path) -> Table:
    """Runs with their folders and errors; runs of a folder share a line if state and error are the same."""
    from rich.table import Table

    shown = Table("runs", "status", "work done", "last row", "error")
    alike = _by(runs, lambda run: (run.folder.parent, run.status, run.error))
    for (folder, status, error), some in alike.items():
        seeds = sorted(run.seed for run in some if run.seed is not None)
        where = f"{_below(folder, out)}/ {seeds_text(seeds)}" if seeds else str(some[0].folder)
        shown.add_row(where, status, _work(some), _last(some), error or "")
    return shown


def _by(runs: Iterable[RunStatus], key: Callable[[RunStatus], Key]) -> dict[Key, list[RunStatus]]:
    """The runs by what `key` says of each, in the order in which they come."""
    groups: dict[Key, list[RunStatus]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups


def _below(folder: Path, out: Path) -> str:
    return str(folder.relative_to(out) if folder != out and folder.is_relative_to(out) else folder)


def _work(runs: Sequence[RunStatus]) -> str:
    return f"{100 * sum(run.done for run in runs) / len(runs):.0f} %"


def _last(runs: Iterable[RunStatus]) -> str:
    return max((run.last for run in runs if run.last), default="")
