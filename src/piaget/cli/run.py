"""piaget run: one learner over a stream, or over a table of one's own."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from piaget.cli.common import add_data_dir, add_options, positive


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "run",
        help="train one learner on a stream, or on a table of your own, and keep it",
        description="Trains one learner on the tasks of a stream, or of a table with a task a group of rows. "
        "Writes the learner (piaget.Learner.load), the rows of all scores, and prints the final scores.",
    )
    parser.add_argument(
        "stream", nargs="?", metavar="STREAM", help="objects, mnist, ...: see piaget data list"
    )
    table = parser.add_argument_group("a table of your own, instead of a stream")
    table.add_argument("--table", type=Path, metavar="FILE", help="CSV, TSV or Parquet")
    table.add_argument("--group", metavar="COLUMN", help="one task for each of its values")
    table.add_argument("--target", metavar="COLUMN", help="what is to be predicted")
    table.add_argument(
        "--kind", metavar="KIND", help="regression, binary or multiclass (default: by the target)"
    )
    table.add_argument("--split", metavar="COLUMN", help="train, validation or test (default: at random)")
    table.add_argument(
        "--categorical", nargs="+", default=[], metavar="COLUMN", help="numbers that are categories"
    )
    table.add_argument("--ignore", nargs="+", default=[], metavar="COLUMN", help="columns to leave out")
    method = parser.add_argument_group("the method (default: the paper's for the stream)")
    method.add_argument("--structure", metavar="NAME", help="linear, soft-ordering, soft-gating, monolithic")
    method.add_argument("--adaptation", default="er", metavar="NAME", help="nft, er, ewc, fm (default: er)")
    method.add_argument(
        "--algorithm", metavar="NAME",
        help="dynamic, compositional, joint, no-components (default: dynamic, with linear: compositional)",
    )  # fmt: skip
    method.add_argument("--epochs", type=positive, metavar="N", help="epochs a task")
    method.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the stream and the learner (default: 0)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("results/run"),
        metavar="DIR",
        help="output folder (default: results/run)",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress, only the scores")
    add_options(parser)
    add_data_dir(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    import torch

    import piaget
    from piaget.errors import SettingError
    from piaget.lab.defaults import adaptation_of, algorithm_of, settings_of, structure_of
    from piaget.lab.run import check_stream, run

    if (options.stream is None) == (options.table is None):
        raise SettingError("give either a stream, or --table FILE --group COLUMN --target COLUMN")
    if (options.out / "learner").exists():
        raise SettingError(f"{options.out} holds a learner already; give another --out")
    stream: Any
    if options.stream is not None:
        stream = piaget.stream(options.stream, options.seed, options.data_dir, **dict(options.options))
    else:
        stream = piaget.streams.from_table(
            options.table, group=options.group, target=options.target, kind=options.kind, split=options.split,
            categorical=options.categorical, ignore=options.ignore, seed=options.seed,
        )  # fmt: skip
    name = options.stream or ""
    structure = options.structure or structure_of(name)
    settings = settings_of(name, structure)
    algorithm = options.algorithm or ("compositional" if structure == "linear" else "dynamic")
    if options.epochs is not None:
        settings["epochs"] = options.epochs
    learner = piaget.Learner(
        structure,
        adaptation_of(name, options.adaptation),
        algorithm_of(name, algorithm, options.epochs),
        initial_tasks=min(4, len(stream)),
        seed=options.seed,
        **settings,
    )
    check_stream(learner, stream)
    torch.set_num_threads(1)  # more are slower: the matrices are small
    scores = run(learner, stream, options.out, quiet=options.quiet)
    _show(scores, learner.components)
    print(f"In {options.out}: learner/ (piaget.Learner.load), rows.csv (all scores).")
    if options.table is not None:
        print(f"For new rows: piaget predict {options.out} NEW.csv --out predictions.csv")
    return 0


def _show(scores: dict[str, tuple[str, float]], components: int) -> None:
    for task, (metric, value) in scores.items():
        print(f"{task:>24}  {metric} {value:.3f}")
    for metric in dict.fromkeys(metric for metric, _ in scores.values()):
        values = [value for name, value in scores.values() if name == metric]
        print(f"{'mean of ' + str(len(values)) + ' tasks':>24}  {metric} {sum(values) / len(values):.3f}")
    print(f"{'components':>24}  {components}")
