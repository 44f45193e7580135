"""piaget resume: goes on with what was interrupted."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from piaget.cli import run, sweep
from piaget.cli.common import add_data_dir
from piaget.cli.progress import add_progress


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
    from piaget.lab.jobs import FILE, read_jobs

    if jobs := read_jobs(options.out):
        if options.data_dir is not None:
            jobs = [replace(job, data_dir=str(options.data_dir.absolute())) for job in jobs]
        return sweep.go(jobs, options)
    if options.workers is not None or options.executor is not None:
        raise SettingError(f"{options.out} is no folder of a sweep: leave out --workers and --executor")
    folders = sorted(options.out.glob("seed-*/run.json"), key=lambda path: int(path.parent.name[5:]))
    if not folders:
        raise LoadError(f"{options.out} holds no runs: there is no {FILE} and no seed-*/run.json in it")
    configurations = [read_description(path.parent)["configuration"] for path in folders]
    seeds = [configuration.pop("seed") for configuration in configurations]
    return run.go(configurations[0], seeds, options)
