"""piaget collect: what matters of finished runs, in small files that can be kept for good."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    """The command and its flags."""
    parser = commands.add_parser(
        "collect",
        help="keep the results of finished runs in small files, without learners",
        description="Adds what tables and figures need of finished runs to two small files a stream: scores, "
        "components, settings, versions. Runs that are there already are put in their place again. piaget "
        "report reads such a folder as it reads runs.",
    )
    parser.add_argument(
        "folders", nargs="+", type=Path, metavar="DIR", help="output folders of piaget run or piaget sweep"
    )
    parser.add_argument("--to", type=Path, required=True, metavar="DIR", help="the folder of the collection")
    parser.add_argument(
        "--reduced",
        metavar="WHY",
        help="these runs are less than the experiment that they are called after, since their data is: say "
        "in what, such as 'a part of CIFAR-100'",
    )
    parser.set_defaults(run=_collect)


def _collect(options: argparse.Namespace) -> int:
    from piaget.lab.collecting import add as add_runs
    from piaget.lab.folder import no_runs, runs_below

    runs = {run.path: run for folder in options.folders for run in runs_below(folder)}
    if not runs:
        raise no_runs(options.folders[0])
    added = add_runs(runs.values(), options.to, options.reduced)
    for why in added.left_out:
        print(f"piaget: left out: {why}", file=sys.stderr)
    print(f"{options.to}: {added.new} new, {added.replaced} replaced, {added.same} as they were")
    return 0
