"""piaget run: learners over a stream, or over a table of one's own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from piaget.cli import tables
from piaget.cli.common import add_options, add_set, print_json
from piaget.cli.live import add_progress, view
from piaget.cli.words import OF_TABLE, WORDS, add_flags, apply, read_file, trusted
from piaget.lab.configuration import configure, is_prior
from piaget.lab.parts import Trusted
from piaget.lab.progress import duration
from piaget.method.choices import SETTINGS, SINGLE
from piaget.paper.defaults import own_data
from piaget.paper.names import check_frozen
from piaget.scoring.rows import (
    FURTHER,
    MAJORITY,
    Row,
    final_performance,
    final_scores,
    further_performance,
    inferred_performance,
)
from piaget.scoring.worth import at_chance


def add(commands: Any) -> None:
    """The command and its flags."""
    parser = commands.add_parser(
        "run",
        help="train learners on a stream, or on a table of your own, and keep them",
        description="Trains one learner for each seed on the tasks of a stream, or of a table with a task a "
        "group of rows. Every run has a folder: run.json, rows.csv (all scores), and in the end learner/ "
        "(piaget.Learner.load). Interrupted, the same command goes on; finished, it only shows the scores.",
    )
    parser.add_argument(
        "source",
        nargs="?",
        metavar="STREAM|FILE.toml",
        help="objects, mnist, ...: see piaget list; package.module:function, a stream of your own; or a file "
        "that says what flags can say",
    )
    add_flags(parser, WORDS)
    add_set(parser, "any of the flags' names, or options.NAME; before flags and the file")
    add_progress(parser)
    add_options(parser)
    shown = parser.add_argument_group("what is shown of a table, beside simple models")
    shown.add_argument(
        "--metric", metavar="NAME", help="auc, loss, accuracy, or rmse, r2 (default: the first)"
    )
    shown.add_argument("--each", action="store_true", help="each group, not only the mean of all")
    shown.add_argument("--by-class", action="store_true", help="precision, recall, F1 and AUC of each class")
    parser.set_defaults(run=_run, fields={})


def _run(options: argparse.Namespace) -> int:
    from piaget.errors import SettingError

    is_file = options.source is not None and options.source.endswith(".toml")
    if options.source is not None and not is_file:
        if options.stream is not None:
            raise SettingError(f"two streams: {options.source} and --stream {options.stream}")
        options.stream = options.source
    code = trusted(options)
    if is_file:
        read_file(options, Path(options.source))
    apply(options, dict(options.changes))
    if (options.stream is None) == (options.table is None):
        raise SettingError("give either a stream, or --table FILE --group COLUMN --target COLUMN")
    options.out = options.out or Path("results/run")
    table = _table(options)
    settings = {name: getattr(options, name, None) for name in SETTINGS}
    chosen = {name: value for name, value in settings.items() if value is not None} | options.fields
    configuration = configure(
        stream=options.stream,
        table=table,
        options=dict(options.options) if table is None else {},
        structure=options.structure,
        adaptation=options.adaptation,
        algorithm=options.algorithm,
        every=options.every,
        settings=chosen,
        class_weight=options.class_weight,
    )
    check_frozen(configuration["adaptation"], configuration["algorithm"])
    own = {} if table is None else own_data(configuration["structure"], chosen)
    return go(configuration, options.seeds or [0], options, code, own)


def _table(options: argparse.Namespace) -> dict[str, Any] | None:
    """The table and its columns, if there is one."""
    from piaget.errors import SettingError

    columns = {name: getattr(options, name) for name in OF_TABLE}
    if options.table is None:
        for name, value in columns.items():
            if value is not None:
                raise SettingError(f"--{name} is of a table: leave it out with a stream")
        return None
    for name in ("group", "target"):
        if columns[name] is None:
            raise SettingError(f"--{name} is missing: which column of {options.table} is it?")
    if options.data_dir is not None:
        raise SettingError("--data-dir is where streams have their files: leave it out with --table")
    lists = {name: columns[name] or [] for name in ("categorical", "ignore")}
    return {"table": str(options.table.absolute())} | columns | lists | dict(options.options)


def go(
    configuration: dict[str, Any],
    seeds: Sequence[int],
    options: argparse.Namespace,
    code: Trusted,
    own: Mapping[str, Any] = MappingProxyType({}),
) -> int:
    """Trains, or goes on with, the runs of a configuration, and shows their scores. own: settings that suit
    the user's own data, for deep methods."""
    if is_prior(configuration):
        return tables.go(configuration, seeds, options, code)
    import torch

    from piaget.lab.folder import diverged
    from piaget.lab.making import make_streams
    from piaget.lab.memory import keep_memory
    from piaget.lab.own_settings import suit_own_data
    from piaget.lab.progress import Standing
    from piaget.lab.runs import run

    keep_memory()
    torch.set_num_threads(1)  # more are slower: the matrices are small
    streams = make_streams(configuration, seeds, options.data_dir, code)
    configuration, learners = suit_own_data(configuration, own, streams, seeds, options.out, code)
    with view(options) as shown:

        def tell(standing: Standing) -> None:
            shown.progress("", standing)
            shown.overall(standing.done, standing.left, f"{duration(standing.seconds)} so far")

        data_dir = None if options.data_dir is None else str(Path(options.data_dir).absolute())
        folders = run(learners, streams, options.out, configuration, tell, data_dir)
        shown.ended("", "failed: diverged" if diverged(folders) else "done")
    return show(configuration, seeds, options)


def show(configuration: dict[str, Any], seeds: Sequence[int], options: argparse.Namespace) -> int:
    """The scores of runs that are done, and what became of the others."""
    if is_prior(configuration):
        return tables.show(seeds, options)
    from piaget.errors import LoadError
    from piaget.lab.folder import RunFolder, diverged, seed_folders

    lost = diverged(seed_folders(options.out, seeds))
    for folder, error in lost.items():
        print(f"piaget: {folder}: failed: diverged: {error}", file=sys.stderr)
    results: dict[int, tuple[dict[str, tuple[str, float]], int]] = {}  # of each seed
    further: dict[int, dict[str, tuple[float, int]]] = {}
    for seed, folder in zip(seeds, seed_folders(options.out, seeds), strict=True):
        if folder in lost:
            continue
        try:
            rows = list(RunFolder(folder).rows())
        except LoadError as error:
            print(f"piaget: left out: {error}", file=sys.stderr)
            continue
        results[seed], further[seed] = (final_scores(rows), _components(rows)), further_performance(rows)
    folders, wrong = seed_folders(options.out, list(results)), len(results) < len(seeds)
    if options.json:
        runs = [
            {
                "folder": str(folder),
                "seed": seed,
                "scores": {task: dict([pair]) for task, pair in scores.items()},
                "components": components,
            }
            for folder, (seed, (scores, components)) in zip(folders, results.items(), strict=True)
        ]
        failed = [{"folder": str(folder), "error": error} for folder, error in lost.items()]
        print_json({"event": "result", "runs": runs, "failed": failed})
        return int(wrong)
    for seed, (scores, components) in results.items():
        if len(folders) > 1 or wrong:
            print(f"seed {seed}")
        _print(scores, further[seed], components)
        rows = list(RunFolder(options.out / f"seed-{seed}").rows())
        for metric, mean in inferred_performance(rows).items():
            print(f"{'without task names':>24}  {metric} {mean:.3f}")
        if (chance := at_chance(rows)) is not None:
            print(chance)
    if folders:
        inside = "run.json, rows.csv (all scores), log.txt, learner/ (piaget.Learner.load)"
        print(f"In {options.out}/seed-*: {inside}.")
    if configuration["table"] is not None and folders:
        print(f"For new rows: piaget predict {folders[0]} NEW.csv --out predictions.csv")
        print(f"To learn later rows: piaget learn {folders[0]} LATER.csv")
    return int(wrong)


def _components(rows: Sequence[Row]) -> int:
    """How many there are in the end: 0 of a single network, which combines none."""
    last = [row for row in rows if row["metric"] == "components"][-1]
    return 0 if last["method"].partition("/")[0] in SINGLE else int(last["value"])


def _print(
    scores: dict[str, tuple[str, float]], further: dict[str, tuple[float, int]], components: int
) -> None:
    for task, (metric, value) in scores.items():
        print(f"{task:>24}  {metric} {value:.3f}")
    for metric in dict.fromkeys(metric for metric, _ in scores.values()):
        alike = {task: pair for task, pair in scores.items() if pair[0] == metric}
        mean = final_performance(alike)
        print(f"{f'mean of {len(alike)} tasks':>24}  {metric} {mean[1] if mean else 0:.3f}")
    for metric, name in {MAJORITY: MAJORITY, **FURTHER}.items() if "auc" in further else ():
        if metric in further:
            mean_of_tasks, tasks = further[metric]
            print(f"{f'mean of {tasks} tasks':>24}  {name} {mean_of_tasks:.3f}")
    if components:
        print(f"{'components':>24}  {components}")
