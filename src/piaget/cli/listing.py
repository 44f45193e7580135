"""piaget list, piaget status: what there is to choose from, and how far runs are."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from piaget.cli.common import print_table

CHOICES = {
    "structures": {
        "linear": "linear combinations of models",
        "soft-ordering": "soft layer ordering: a weight for each component at each depth",
        "soft-gating": "soft gating: weights computed from the input",
        "monolithic": "a single network",
    },
    "adaptations": {
        "nft": "naive fine-tuning: components learn from the new task alone",
        "er": "experience replay: and from stored samples of earlier tasks",
        "ewc": "Kronecker-factored elastic weight consolidation: held near earlier values",
        "fm": "frozen: components do not change after initialization",
    },
    "algorithms": {
        "dynamic": "assimilation, adaptation, and expansion by component dropout",
        "compositional": "assimilation, then adaptation",
        "joint": "structure and components learn together",
        "no-components": "a single network for all tasks",
    },
    "presets (piaget sweep NAME)": {
        "linear": "linear models on landmine, schools and fera",
        "soft-ordering": "soft layer ordering on mnist, fashion, cub, cifar100 and omniglot",
        "soft-gating": "soft gating on the same but cub",
        "combined": "very different tasks in one stream",
        "objects": "the compositional data set with what is held out",
        "limited-data": "accuracy against the number of training samples",
        "schedule": "how often components adapt",
        "components": "how many components are learned, and reused",
        "pixel-mnist": "what components do to a picture of a 4",
    },
}


def add(commands: Any) -> None:
    parser = commands.add_parser("list", help="streams, structures, adaptations and algorithms by name")
    parser.set_defaults(run=_list)
    status = commands.add_parser(
        "status",
        help="how far the runs in a folder are",
        description="What is done, running, stopped or failed among the runs in a folder and below it.",
    )
    status.add_argument("out", type=Path, metavar="DIR", help="output folder of piaget run or piaget sweep")
    status.add_argument("--json", action="store_true", help="one JSON object, for machines")
    status.set_defaults(run=_status)


def _list(options: argparse.Namespace) -> int:
    from piaget.streams.catalog import STREAMS

    described = {"streams": {stream.name: stream.what for stream in STREAMS.values()}} | CHOICES
    for title, names in described.items():
        print(title)
        for name, what in names.items():
            print(f"  {name:<18}{what}")
    print("Files of streams: piaget data list")
    return 0


def _status(options: argparse.Namespace) -> int:
    from rich.table import Table

    from piaget.errors import LoadError
    from piaget.lab.status import runs_below

    runs = runs_below(options.out)
    if not runs:
        raise LoadError(f"{options.out} holds no runs: there is no run.json in it or below it")
    counts = {s: sum(run.status == s for run in runs) for s in dict.fromkeys(run.status for run in runs)}
    if options.json:
        print(
            json.dumps({"counts": counts, "runs": [vars(run) | {"folder": str(run.folder)} for run in runs]})
        )
        return 0
    shown = Table()
    for column in ("run", "status", "tasks done", "last row", "error"):
        shown.add_column(column)
    for run in runs:
        shown.add_row(
            str(run.folder.relative_to(options.out)),
            run.status,
            str(run.tasks),
            run.last or "",
            run.error or "",
        )
    print_table(shown)
    print(", ".join(f"{count} {status}" for status, count in counts.items()))
    return 0
