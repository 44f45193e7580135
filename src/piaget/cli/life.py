"""piaget learn, piaget forget: a table's learner over the years."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from piaget.cli.common import print_json
from piaget.data.plain import printable


def add(commands: Any) -> None:
    """The commands and their flags."""
    learn = commands.add_parser(
        "learn",
        help="learn a later table: new groups, and new rows of known ones",
        description="Goes on with a run of piaget run --table: groups that are new are learned, known ones "
        "are updated with their new rows, and rows that were learned before are not counted again. The "
        "networks of a deep method go on learning with all rows of their group, which takes as long as "
        "learning it did.",
    )
    learn.add_argument("folder", type=Path, metavar="DIR", help="output folder of piaget run --table")
    learn.add_argument("table", type=Path, metavar="FILE", help="CSV, TSV or Parquet, with the same columns")
    known = learn.add_mutually_exclusive_group()
    known.add_argument(
        "--again", action="store_true", help="all rows count, also if they were learned before"
    )
    known.add_argument(
        "--skip-known",
        action="store_true",
        help="skip rows that equal learned ones, and learn the rest, also if some of those are missing",
    )
    learn.add_argument(
        "--dry-run", action="store_true", help="only say what would be learned, and how rows are answered now"
    )
    learn.add_argument("--json", action="store_true", help="what was done as one JSON object, for machines")
    learn.set_defaults(run=_learn)
    forget = commands.add_parser(
        "forget",
        help="forget groups of a table, as if they had never been learned",
        description="What was learned of these groups is gone from the learner: their rows and sums are "
        "removed, and all that was drawn from them is estimated anew from the others. Their scores stay in "
        "rows.csv and summary.json; how columns are scaled stays, too. Of a deep method, what is a group's "
        "own goes, and what components learned from it stays in them.",
    )
    forget.add_argument("folder", type=Path, metavar="DIR", help="output folder of piaget run --table")
    forget.add_argument("groups", nargs="+", metavar="GROUP", help="as the group column has it")
    forget.set_defaults(run=_forget)


def _learn(options: argparse.Namespace) -> int:
    import torch

    from piaget.lab.table_lives import as_plain, learn

    torch.set_num_threads(1)
    dry = options.dry_run

    def say(text: str) -> None:
        if not options.json:
            print(f"piaget: {printable(text)} ...", file=sys.stderr, flush=True)

    arrivals, learner, folder = learn(
        options.folder, options.table, options.again, keep=not dry, skip_known=options.skip_known, say=say
    )
    code = int(any(one.diverged for one in arrivals))
    if options.json:
        event = "would be learned" if dry else "learned"
        print_json({"event": event, "folder": str(folder), "groups": [as_plain(one) for one in arrivals]})
        return code
    for arrival in arrivals:
        print(f"{printable(arrival.group):>24}  {arrival.told()}")
    new = sum(not one.known for one in arrivals if one.rows)
    updated = sum(one.known for one in arrivals if one.rows)
    rows = sum(one.rows for one in arrivals)
    left_out = sum(one.left_out is not None for one in arrivals)
    if not rows and not left_out:
        again = "(--again counts them again.)"
        print(f"Nothing new: all rows of {options.table} to be learned were learned before. {again}")
        return 0
    knows = "would know (nothing was kept)" if dry else "now knows"
    groups = len({*learner.tasks, *(one.group for one in arrivals if one.rows)})
    print(
        f"{new} new group{'s' * (new != 1)}, {updated} updated{f', {left_out} left out' * (left_out > 0)}, "
        f"{rows:,} new rows; {folder} {knows} {groups} groups"
    )
    return code


def _forget(options: argparse.Namespace) -> int:
    import torch

    from piaget.lab.table_lives import forget
    from piaget.learner import Learner

    torch.set_num_threads(1)
    folder, groups, learner = forget(options.folder, options.groups)
    left = len(learner.tasks)
    print(f"{folder}: forgotten {', '.join(map(printable, groups))}; {left} group{'s' * (left != 1)} left")
    if isinstance(learner, Learner) and left:
        print("What components learned from them stays in the components; to be without it, run anew.")
    return 0
