"""piaget list, piaget status: what there is to choose from, and how far runs are."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from piaget.cli.common import print_json, print_table, seeds_text

CHOICES = {
    "structures": {
        "prior": "a prior over linear models, learned from all groups: for tables, in seconds",
        "linear": "linear combinations of models",
        "soft-ordering": "soft layer ordering: a weight for each component at each depth",
        "soft-gating": "soft gating: weights computed from the input",
        "soft-ordering-scaled": "soft ordering, with a scale and a shift for each task at each depth",
        "soft-gating-scaled": "soft gating, with a scale and a shift for each task at each depth",
        "monolithic": "a single network",
        "alone": "a network of its own for each task",
    },
    "adaptations": {
        "nft": "naive fine-tuning: components learn from the new task alone",
        "er": "experience replay: and from stored samples of earlier tasks",
        "er-diluted": "the same, but batches with stored samples count less, as in the authors' code",
        "der++": "replay, with the outputs that stored samples had when their task was finished",
        "a-gem": "gradients that would raise the loss of stored samples are projected",
        "ewc": "Kronecker-factored elastic weight consolidation: held near earlier values",
        "ewc-merged": "the same with one memory for all tasks, which does not grow",
        "fm": "frozen: components do not change after initialization",
    },
    "algorithms": {
        "dynamic": "assimilation, adaptation, and expansion by component dropout",
        "recommended": "the same with parts that the paper does not have: docs/methods.md",
        "compositional": "assimilation, then adaptation",
        "joint": "structure and components learn together",
        "no-components": "a single network for all tasks, all of which learns in every epoch",
        "no-components-frozen": "the same, but what is a past task's own stays as it is",
        "alone": "each task from scratch, nothing shared: does sharing help at all?",
    },
}


def add(commands: Any) -> None:
    """The commands and their flags."""
    parser = commands.add_parser(
        "list", help="streams, structures, adaptations, algorithms, and presets: the paper's experiments"
    )
    parser.set_defaults(run=_list)
    status = commands.add_parser(
        "status",
        help="how far the runs in a folder are",
        description="What is done, running, planned, interrupted, stopped or failed among the runs in a "
        "folder and below it, and the time that is left.",
    )
    status.add_argument("out", type=Path, metavar="DIR", help="output folder of piaget run or piaget sweep")
    status.add_argument("--json", action="store_true", help="one JSON object, for machines")
    status.set_defaults(run=_status)


def _list(options: argparse.Namespace) -> int:
    from piaget.lab.expected_times import expected_time
    from piaget.paper.presets import PRESETS
    from piaget.streams.catalog import STREAMS

    described = {"streams": {stream.name: stream.what for stream in STREAMS.values()}} | CHOICES
    for title, names in described.items():
        print(title)
        for name, what in names.items():
            print(f"  {name:<18}{what}")
    print("presets (piaget sweep NAME)")
    for preset in PRESETS.values():
        print(f"  {preset.name:<18}{preset.what}: {preset.runs:,} runs, {expected_time(preset)}")
        print(f"  {'':<18}expected: {preset.expected}")
    print("Files of streams: piaget data list")
    return 0


def _status(options: argparse.Namespace) -> int:
    from rich.table import Table

    from piaget.lab.folder import no_runs
    from piaget.lab.progress import duration
    from piaget.lab.status import RunStatus, statuses, time_left

    runs = statuses(options.out)
    if not runs:
        raise no_runs(options.out)
    counts = {s: sum(run.status == s for run in runs) for s in dict.fromkeys(run.status for run in runs)}
    left = time_left(runs)
    if options.json:
        keys = ("status", "seed", "done", "together", "seconds", "left", "last", "error")
        described = [{"folder": str(run.folder)} | {key: getattr(run, key) for key in keys} for run in runs]
        print_json({"counts": counts, "left": left, "runs": described})
        return 0
    shown = Table()
    for column in ("runs", "status", "done", "last row", "error"):
        shown.add_column(column)
    alike: dict[tuple[Path, str, str | None], list[RunStatus]] = {}
    for run in runs:
        alike.setdefault((run.folder.parent, run.status, run.error), []).append(run)
    for (folder, status, error), some in alike.items():
        seeds = sorted(run.seed for run in some if run.seed is not None)
        below = folder.relative_to(options.out) if folder.is_relative_to(options.out) else folder
        where = f"{below}/ {seeds_text(seeds)}" if seeds else str(some[0].folder)
        done = f"{100 * sum(run.done for run in some) / len(some):.0f} %"
        last = max((run.last for run in some if run.last), default="")
        shown.add_row(where, status, done, last, error or "")
    print_table(shown)
    print(", ".join(f"{count} {status}" for status, count in counts.items()))
    if left is not None:
        print(f"About {duration(left)} left, if as much is at work as now.")
    return 0
