"""piaget resume: goes on with what was interrupted."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from piaget.cli import run, sweep
from piaget.cli.common import add_data_dir
from piaget.cli.live import add_progress
from piaget.cli.words import trusted
from piaget.lab.parts import ROLES, Trusted, as_flag, references

if TYPE_CHECKING:
    from piaget.lab.folder import RunFolder


def add(commands: Any) -> None:
    """The command and its flags."""
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
    parts = parser.add_argument_group(
        "parts of your own, which a folder names, but only you can have run (package.module:Name)"
    )
    for role in ROLES:
        flag = as_flag(role, "").strip()
        parts.add_argument(
            flag, dest=role, nargs="+", action="extend", metavar="REFERENCE", help="as when it began"
        )
    parser.set_defaults(run=_resume)


def _resume(options: argparse.Namespace) -> int:
    from dataclasses import replace

    from piaget.errors import LoadError, SettingError
    from piaget.lab.folder import no_runs, runs_below, runs_in
    from piaget.lab.jobs import FILE, read_cohorts
    from piaget.lab.sweeps import all_ended

    if jobs := read_cohorts(options.out):
        options.changes = []
        if options.data_dir is not None:
            jobs = [replace(job, data_dir=str(options.data_dir.absolute())) for job in jobs]
        left = [job.configuration for job in jobs if not all_ended(job, options.out)]
        return sweep.go(jobs, options, _code(options, [job.configuration for job in jobs], left))
    for flag in ("workers", "executor", "cohort", "address"):
        if getattr(options, flag) is not None:
            raise SettingError(f"{options.out} is no folder of a sweep: leave out --{flag}")
    runs = runs_in(options.out)
    if not runs:
        below = {run.path.parent for run in runs_below(options.out)}
        below |= {path.parent for path in options.out.rglob(FILE)}
        if below:
            raise LoadError(f"{options.out} is not a folder of one command: give {_any(sorted(below))}")
        raise no_runs(options.out)
    return _resume_runs(runs, options)


def _resume_runs(runs: list[RunFolder], options: argparse.Namespace) -> int:
    """The runs of one command. One that cannot be read does not keep the others."""
    from piaget.errors import LoadError
    from piaget.lab.folder import has_ended, readable

    damaged: dict[Path, LoadError] = {}
    for one in runs:
        try:
            readable(one.path)
        except LoadError as error:
            damaged[one.path] = error
            print(f"piaget: left out: {error}", file=sys.stderr)
    runs = [one for one in runs if one.path not in damaged]
    if not runs:
        raise LoadError(f"{options.out}: no run can be read")
    if options.data_dir is None and runs[0].description.get("data_dir"):
        options.data_dir = Path(runs[0].description["data_dir"])
    seeds = [one.configuration["seed"] for one in runs]
    configuration = {name: value for name, value in runs[0].configuration.items() if name != "seed"}
    ended = all(has_ended(one.path) for one in runs)
    code = _code(options, [configuration], [] if ended else [configuration])
    shown = run.show(configuration, seeds, options) if ended else run.go(configuration, seeds, options, code)
    return shown or int(bool(damaged))


def _code(
    options: argparse.Namespace,
    configurations: Iterable[Mapping[str, Any]],
    left: Iterable[Mapping[str, Any]],
) -> Trusted:
    """The code that the flags name: what the folder names, and all of that, if something is left to do."""
    from piaget.errors import SettingError

    recorded = dict.fromkeys(pair for one in configurations for pair in references(one).items())
    needed = dict.fromkeys(pair for one in left for pair in references(one).items())
    named = [(role, reference) for role in ROLES for reference in getattr(options, role) or []]
    for role, reference in named:
        if (role, reference) not in recorded:
            there = [as_flag(*pair) for pair in recorded if pair[0] == role]
            began = f"began with {' '.join(there)}" if there else f"has no {role} of your own"
            raise SettingError(f"{as_flag(role, reference)}: {options.out} {began}")
    if any(pair not in named for pair in needed):
        flags = " ".join(as_flag(*pair) for pair in needed)
        raise SettingError(
            f"{options.out} has parts of your own, and code is only run if you name it yourself: "
            f"piaget resume {options.out} {flags}"
        )
    return trusted(options)


def _any(folders: list[Path]) -> str:
    shown = [str(folder) for folder in folders[:5]]
    return " or ".join(shown) + (", ..." if len(folders) > 5 else "")
