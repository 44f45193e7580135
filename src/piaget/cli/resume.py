"""piaget resume: goes on with what was interrupted."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from piaget.cli import run, sweep
from piaget.cli.common import add_data_dir, no_runs
from piaget.cli.live import add_progress


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "resume",
        help="go on with runs or a sweep that was interrupted",
        description="Goes on with the runs in a folder of piaget run or piaget sweep from where they were, "
        "and ends with the same numbers as without the interruption.",
    )
    parser.add_argument("out", type=Path, metavar="DIR", help="output folder of piaget run or piaget sweep")
    sweep.add_workers(parser)
    add_progress(parser)
    add_data_dir(parser)
    parser.set_defaults(run=_resume)


def _resume(options: argparse.Namespace) -> int:
    from dataclasses import replace

    from piaget.errors import LoadError, SettingError
    from piaget.lab.folder import read_description
    from piaget.lab.jobs import FILE, read_cohorts

    if jobs := read_cohorts(options.out):
        options.changes = []
        if options.data_dir is not None:
            jobs = [replace(job, data_dir=str(options.data_dir.absolute())) for job in jobs]
        return sweep.go(jobs, options)
    for flag in ("workers", "executor", "cohort", "address"):
        if getattr(options, flag) is not None:
            raise SettingError(f"{options.out} is no folder of a sweep: leave out --{flag}")
    found = [path.parent for path in options.out.glob("seed-*/run.json") if path.parent.name[5:].isdigit()]
    if not found:
        below = {p.parent.parent for p in options.out.rglob("run.json")}
        below |= {p.parent for p in options.out.rglob(FILE)}
        if below:
            raise LoadError(f"{options.out} is not a folder of one command: give {_any(sorted(below))}")
        raise LoadError(no_runs(options.out))
    described = sorted((read_description(path) for path in found), key=lambda d: d["configuration"]["seed"])
    if options.data_dir is None and described[0].get("data_dir"):
        options.data_dir = Path(described[0]["data_dir"])
    seeds = [one["configuration"].pop("seed") for one in described]
    return run.go(described[0]["configuration"], seeds, options)


def _any(folders: list[Path]) -> str:
    shown = [str(folder) for folder in folders[:5]]
    return " or ".join(shown) + (", ..." if len(folders) > 5 else "")
