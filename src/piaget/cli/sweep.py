"""piaget sweep: methods x seeds on streams, and the table of final performance."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from piaget.cli.common import (
    add_options,
    add_set,
    check_options,
    options_for,
    positive,
    print_json,
    seed_list,
)
from piaget.cli.live import add_progress, view
from piaget.cli.sweep_view import Overall, show
from piaget.cli.words import PART_SETTINGS, add_flags, trusted
from piaget.data.plain import whole_from
from piaget.lab.parts import Trusted, is_reference
from piaget.method.choices import ADAPTATIONS, COMBINING
from piaget.paper.names import ALGORITHMS, BASES, COMPARED, Method, goes_together, methods

if TYPE_CHECKING:
    from piaget.lab.executors import Executor
    from piaget.lab.jobs import Job


def add(commands: Any) -> None:
    """The command and its flags."""
    parser = commands.add_parser(
        "sweep",
        help="train methods on streams over several seeds, and print the table of final performance",
        description="Trains every adaptation x algorithm on every stream with the paper's settings, "
        "the seeds of a method together as one cohort, and prints final performance with standard "
        "errors beside the paper's numbers. Methods that are already done in the output folder are "
        "not run again. package.module:Name is a stream or a part of your own.",
    )
    parser.add_argument(
        "streams",
        nargs="+",
        metavar="PRESET|STREAM",
        help="an experiment of the paper, or streams: see piaget list",
    )
    for name, text in (
        ("structure", f"{', '.join(COMBINING)} (default: the paper's for the stream; recommended: scaled)"),
        (
            "adaptation",
            f"{', '.join(BASES)}, or 'all' (default: er, recommended: fm; of a preset: all that it has)",
        ),
        ("algorithm", f"{', '.join(ALGORITHMS)}, or 'all': the paper's and baselines (default)"),
    ):
        parser.add_argument(f"--{name}s", f"--{name}", nargs="+", metavar="NAME", dest=f"{name}s", help=text)
    parser.add_argument(
        "--seeds",
        type=_seeds,
        metavar="N|LIST",
        help="so many, from 0; or which: 0-9, 0,2,5 (default: 3; of a preset: as many as in the paper)",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("results"), metavar="DIR", help="output folder (default: results)"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="only the first stream, one seed, and er (or --adaptations), with few epochs, tasks and "
        "samples: shows in a minute or two that everything works",
    )
    add_flags(parser, ("every", "data_dir", "epochs", "components_from", *PART_SETTINGS))
    add_options(parser)
    add_set(parser, "a setting of the learners, such as width=128 (piaget run --help)")
    add_workers(parser)
    add_progress(parser)
    parser.set_defaults(run=_sweep)


def add_workers(parser: argparse.ArgumentParser) -> None:
    """The flags that say where a sweep runs."""
    parser.add_argument("--workers", type=positive, metavar="N", help="worker processes (default: 2)")
    parser.add_argument(
        "--cohort",
        type=positive,
        metavar="N",
        help="seeds that are trained together, at most (default: 10, or fewer if workers would be idle)",
    )
    parser.add_argument(
        "--executor",
        choices=("processes", "ray"),
        help="processes of this machine (default), or a Ray cluster (pip install 'piaget[ray]')",
    )
    parser.add_argument(
        "--address",
        metavar="ADDRESS",
        help="of the Ray cluster, such as auto or ray://host:10001 (default: one is started here)",
    )


def _seeds(text: str) -> list[int]:
    return seed_list(f"0-{positive(text) - 1}" if whole_from(text) is not None else text)


def _choose(
    names: Sequence[str], known: Sequence[str], what: str, every: Sequence[str] | None = None
) -> list[str]:
    """The chosen names; `all` stands for the known ones (or `every`), beside which there may be one's own."""
    from piaget.errors import SettingError, suggestion

    allowed = [*known, "all"] if what != "structure" else known  # which of them depends on the stream
    for name in names:
        if name not in allowed and not is_reference(name):
            raise SettingError(
                f"{what} {name!r} is not known{suggestion(name, allowed)}; expected {', '.join(allowed)} or "
                "package.module:Name"
            )
    paper = [name for name in names if not is_reference(name) and name != "all"]
    paper = [*(every or known), *paper] if "all" in names else paper
    return list(dict.fromkeys([*paper, *filter(is_reference, names)]))


def _sweep(options: argparse.Namespace) -> int:
    from piaget.errors import SettingError
    from piaget.paper.presets import PRESETS

    code = trusted(options)
    is_preset = len(options.streams) == 1 and options.streams[0] in PRESETS
    bases = options.adaptations or (["all"] if is_preset and not options.quick else None)
    options.adaptations = bases and _choose(bases, list(ADAPTATIONS), "adaptation", list(BASES))
    particular = options.algorithms is not None and "all" not in options.algorithms
    options.algorithms = _choose(options.algorithms or ["all"], list(ALGORITHMS), "algorithm", list(COMPARED))
    jobs = _preset(options) if is_preset else _product(options, code)
    if not jobs:
        raise SettingError(f"none of these go together; {_what_goes(options)}")
    if particular:
        _note_absent(jobs, options, "in this preset" if is_preset else "with this structure")
    return go(jobs, options, code)


def _what_goes(options: argparse.Namespace) -> str:
    """Which algorithms there are for the structures and adaptations that were asked for."""
    from piaget.paper.defaults import structure_of
    from piaget.paper.presets import PRESETS

    if options.streams[0] in PRESETS:
        preset = PRESETS[options.streams[0]]
        known = [entry.method for entry in preset.entries]
        there = dict.fromkeys(f"{method.adaptation} with {method.algorithm}" for method in known)
        return f"the preset {preset.name} has {', '.join(there)}"
    structures = options.structures or map(structure_of, options.streams)
    told = []
    for structure, base in itertools.product(dict.fromkeys(structures), options.adaptations or BASES):
        fitting = [name for name in ALGORITHMS if goes_together(Method(base, name, structure))]
        told.append(f"{base} with {structure} goes with {', '.join(fitting)}")
    return "; ".join(told)


def _product(options: argparse.Namespace, code: Trusted) -> list[Job]:
    """Streams x structures x adaptations x algorithms, as far as they go together."""
    from piaget.lab.jobs import Job, quick
    from piaget.paper.defaults import structure_of

    _check_streams(options.streams)
    names = options.streams
    streams = list(dict.fromkeys("objects-random" if name == "objects" else name for name in names))
    check_options(streams, options.options, code)
    structures = _choose(options.structures, COMBINING, "structure") if options.structures else None
    jobs = []
    for stream in streams:
        by_structure: dict[str, list[str]] = {}
        for algorithm in options.algorithms:
            for structure in structures or [structure_of(stream, algorithm)]:
                by_structure.setdefault(structure, []).append(algorithm)
        chosen = [
            method
            for structure, algorithms in by_structure.items()
            for method in methods(structure, options.adaptations, algorithms)
        ]
        common = _common(options) | {"options": tuple(options_for(stream, options.options, code).items())}
        common |= {"seeds": tuple(options.seeds or range(1 if options.quick else 3))}
        jobs += [Job(stream, method, **common) for method in chosen]
    settings = _settings(options)
    jobs = [replace(job, settings=tuple(_fitting(settings, job, jobs, code).items())) for job in jobs]
    return quick(jobs, options.epochs) if options.quick else jobs


def _check_streams(names: Sequence[str]) -> None:
    """Raises an error about a name that is no stream."""
    from piaget.errors import SettingError, suggestion
    from piaget.paper.presets import PRESETS
    from piaget.streams import STREAMS

    for name in names:
        if name in PRESETS and name not in STREAMS:
            raise SettingError(f"{name} is a preset, which has its streams: give it alone")
        if name not in STREAMS and not is_reference(name):
            raise SettingError(
                f"stream or preset {name!r} is not known{suggestion(name, [*PRESETS, *STREAMS])}; presets: "
                f"{', '.join(PRESETS)}; streams: {', '.join(STREAMS)}; or package.module:function"
            )


def _fitting(settings: dict[str, Any], job: Job, jobs: Sequence[Job], code: Trusted) -> dict[str, Any]:
    """The settings of one method among others. A field of an adaptation or a structure is that of the methods
    which have it; one that none has stays: making the learner says what is wrong."""
    from piaget.lab.making import has_field

    def fits(setting: str, one: Job) -> bool:
        role, dot, field = setting.partition(".")
        return not dot or has_field(role, getattr(one.method, role, None), field, code)

    return {
        setting: value
        for setting, value in settings.items()
        if fits(setting, job) or not any(fits(setting, other) for other in jobs)
    }


def _note_absent(jobs: Sequence[Job], options: argparse.Namespace, where: str) -> None:
    """Says which algorithms that were asked for a stream does not have there."""
    for stream in dict.fromkeys(job.stream for job in jobs):
        trained = {job.method.algorithm for job in jobs if job.stream == stream}
        absent = [algorithm for algorithm in options.algorithms if algorithm not in trained]
        if absent:
            print(f"piaget: note: {stream} has no {', '.join(absent)} {where}", file=sys.stderr)


def _preset(options: argparse.Namespace) -> list[Job]:
    """The cohorts of a preset: those of the adaptations and algorithms that were asked for."""
    from piaget.errors import SettingError
    from piaget.lab.jobs import preset_jobs, quick
    from piaget.paper.presets import PRESETS

    preset = PRESETS[options.streams[0]]
    if options.structures is not None:
        raise SettingError(f"{preset.name} is a preset, which has its structure; leave out --structures")
    seeds = options.seeds or range(1 if options.quick else preset.seeds)
    every = preset_jobs(preset, seeds, _settings(options), **_common(options))
    jobs = [
        job
        for job in every
        if job.method in methods(job.method.structure, options.adaptations, options.algorithms)
    ]
    check_options([job.stream for job in jobs], options.options)
    jobs = [
        replace(job, options=tuple((dict(job.options) | options_for(job.stream, options.options)).items()))
        for job in jobs
    ]
    return quick(jobs, options.epochs) if options.quick else jobs


def _common(options: argparse.Namespace) -> dict[str, Any]:
    """What all jobs have in common. The data folder is absolute: workers may run elsewhere."""
    data_dir = None if options.data_dir is None else str(options.data_dir.absolute())
    return {"data_dir": data_dir, "every": options.every}


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """What flags and --set say of all learners."""
    flags = {name: getattr(options, name) for name in ("epochs", "components_from", *PART_SETTINGS)}
    said = {name: value for name, value in flags.items() if value is not None} | dict(options.changes)
    if isinstance(said.get("components_from"), str):  # workers may run elsewhere
        said["components_from"] = str(Path(said["components_from"]).absolute())
    return said


def go(jobs: list[Job], options: argparse.Namespace, code: Trusted) -> int:
    """Runs what is not done of these jobs, and shows the table of all of them."""
    from piaget.lab.sweeps import all_ended, check_jobs, diverged_runs, renamed_runs, run_jobs, write_tables

    executor = _executor(options)
    for folder in renamed_runs(jobs, options.out):
        print(
            f"piaget: note: {folder} holds runs of version 0.1, which called no-components what is "
            "no-components-frozen now; give another --out to train no-components",
            file=sys.stderr,
        )
    check_jobs([job for job in jobs if not all_ended(job, options.out)], code)
    start = time.monotonic()
    with view(options) as shown:
        overall = Overall(shown)
        failed = run_jobs(jobs, options.out, executor, overall.report, options.cohort, code)
    tables, lost = write_tables(jobs, options.out), diverged_runs(jobs, options.out)
    if options.json:
        rows = [vars(line) | {"variant": variant} for variant, table in tables.items() for line in table]
        errors = [{"run": job.name, "seeds": job.seeds, "error": error} for job, error in failed.items()]
        errors += [{"run": str(folder), "error": f"diverged: {error}"} for folder, error in lost.items()]
        print_json({"event": "result", "table": rows, "failed": errors})
    else:
        show(jobs, tables, failed, overall, time.monotonic() - start, options)
        for folder, error in lost.items():
            print(f"piaget: {folder}: failed: diverged: {error}", file=sys.stderr)
    return 1 if failed or lost else 0


def _executor(options: argparse.Namespace) -> Executor:
    from piaget.errors import SettingError
    from piaget.lab import executors

    if options.executor == "ray":
        return executors.Ray(options.workers, options.address)
    if options.address is not None:
        raise SettingError("--address is of a Ray cluster: give --executor ray, too")
    return executors.Processes(options.workers or 2)
