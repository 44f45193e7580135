"""piaget run: learners over a stream, or over a table of one's own."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from piaget.cli.common import (
    add_data_dir,
    add_every,
    add_options,
    add_set,
    positive,
    print_json,
    seed_list,
)
from piaget.cli.live import add_progress, view
from piaget.lab.progress import SCORES, duration
from piaget.method.choices import SETTINGS, parse


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "run",
        help="train learners on a stream, or on a table of your own, and keep them",
        description="Trains one learner for each seed on the tasks of a stream, or of a table with a task a "
        "group of rows. Every run has a folder: run.json, rows.csv (all scores), and in the end learner/ "
        "(piaget.Learner.load). Interrupted, the same command goes on; finished, it only shows the scores.",
    )
    parser.add_argument(
        "stream", nargs="?", metavar="STREAM|FILE.toml",
        help="objects, mnist, ...: see piaget list; or a file that says what flags can say",
    )  # fmt: skip
    _add_table(parser)
    _add_method(parser)
    add_set(parser, "any of the names above, or options.NAME; before flags and the file")
    parser.add_argument(
        "--seeds", type=seed_list, metavar="LIST",
        help="of streams and learners: 3, 0-9 or 0,2,5; they are trained together (default: 0)",
    )  # fmt: skip
    add_every(parser)
    parser.add_argument(
        "--out", type=Path, metavar="DIR",
        help="output folder, with one folder a seed (default: results/run)",
    )  # fmt: skip
    add_progress(parser)
    add_options(parser)
    add_data_dir(parser)
    parser.set_defaults(run=_run)


def _add_table(parser: argparse.ArgumentParser) -> None:
    table = parser.add_argument_group("a table of your own, instead of a stream")
    table.add_argument("--table", type=Path, metavar="FILE", help="CSV, TSV or Parquet")
    table.add_argument("--group", metavar="COLUMN", help="one task for each of its values")
    table.add_argument("--target", metavar="COLUMN", help="what is to be predicted")
    table.add_argument(
        "--kind", metavar="KIND", help="regression, binary or multiclass (default: by the target)"
    )
    table.add_argument("--split", metavar="COLUMN", help="train, validation or test (default: at random)")
    table.add_argument("--categorical", nargs="+", metavar="COLUMN", help="numbers that are categories")
    table.add_argument("--ignore", nargs="+", metavar="COLUMN", help="columns to leave out")


def _add_method(parser: argparse.ArgumentParser) -> None:
    method = parser.add_argument_group("the method (default: the paper's for the stream)")
    method.add_argument("--structure", metavar="NAME", help="linear, soft-ordering, soft-gating, monolithic")
    method.add_argument("--adaptation", metavar="NAME", help="nft, er, ewc, fm (default: er)")
    method.add_argument(
        "--algorithm", metavar="NAME",
        help="dynamic, compositional, joint, no-components (default: dynamic, with linear: compositional)",
    )  # fmt: skip
    method.add_argument("--epochs", type=positive, metavar="N", help="epochs a task")
    groups = {}
    for setting in SETTINGS.values():
        if setting.about.group not in groups:
            groups[setting.about.group] = parser.add_argument_group(
                f"{setting.about.group} (in brackets: the default)"
            )
        groups[setting.about.group].add_argument(
            setting.flag, metavar=setting.about.values.shown, help=setting.about.help, dest=setting.name
        )


def _run(options: argparse.Namespace) -> int:
    from piaget.errors import SettingError
    from piaget.lab.configuration import configure

    if options.stream is not None and options.stream.endswith(".toml"):
        _read_file(options, Path(options.stream))
    _apply(options, dict(options.changes))
    if (options.stream is None) == (options.table is None):
        raise SettingError("give either a stream, or --table FILE --group COLUMN --target COLUMN")
    options.out = options.out or Path("results/run")
    names = ("group", "target", "kind", "split", "categorical", "ignore")
    table = None
    if options.table is not None:
        if options.data_dir is not None:
            raise SettingError("--data-dir is where streams have their files: leave it out with --table")
        table = {"table": str(options.table.absolute())} | {name: getattr(options, name) for name in names}
        table |= {name: table[name] or [] for name in ("categorical", "ignore")} | dict(options.options)
    for name in names:
        if table is None and getattr(options, name) is not None:
            raise SettingError(f"--{name} is of a table: leave it out with a stream")
    configuration = configure(
        stream=options.stream,
        table=table,
        options=dict(options.options) if table is None else {},
        structure=options.structure,
        adaptation=options.adaptation or "er",
        algorithm=options.algorithm,
        epochs=options.epochs,
        every=options.every,
        settings={
            name: parse(value) if isinstance(value, str) else value
            for name in SETTINGS
            if (value := getattr(options, name)) is not None
        },
    )
    return go(configuration, options.seeds or [0], options)


# What a file or --set may say, beside SETTINGS and the options of the stream ([options]).
WORDS = {
    "stream": str, "table": Path, "group": str, "target": str, "kind": str, "split": str, "categorical": list,
    "ignore": list, "structure": str, "adaptation": str, "algorithm": str, "epochs": int, "every": int,
    "seeds": str, "out": Path, "data_dir": Path,
}  # fmt: skip


def _read_file(options: argparse.Namespace, path: Path) -> None:
    import tomllib

    from piaget.errors import SettingError

    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingError(f"{path} does not exist") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} is no TOML file: {error}") from None
    options.stream = None
    own = content.pop("options", {})
    if not isinstance(own, dict):
        raise SettingError(f"{path}: options={own!r}; expected a section [options] with names and values")
    options.options = [*own.items(), *options.options]
    given = [name for name in content if getattr(options, name, None) is not None]
    _apply(options, {name: value for name, value in content.items() if name not in given})  # flags go first


def _apply(options: argparse.Namespace, said: dict[str, Any]) -> None:
    """Words of a file, or of --set, as if they were flags."""
    import difflib

    from piaget.errors import SettingError

    for name, value in said.items():
        if name in SETTINGS:
            setattr(options, name, value)
            continue
        if name.startswith("options."):
            options.options = [*options.options, (name.removeprefix("options."), value)]
            continue
        if name not in WORDS:
            near = difflib.get_close_matches(name, [*WORDS, *SETTINGS], 1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise SettingError(
                f"{name!r} is not known{hint}; known: {', '.join([*WORDS, *SETTINGS])}, and options.NAME for "
                "options of the stream"
            )
        try:
            if name == "seeds":
                several = isinstance(value, list | tuple)
                value = seed_list(",".join(map(str, value)) if several else str(value))
            elif WORDS[name] is int:
                value = positive(str(value))
            elif WORDS[name] is list:
                value = [value] if isinstance(value, str) else [str(v) for v in value]
            else:
                value = WORDS[name](value)
        except (TypeError, argparse.ArgumentTypeError) as error:
            raise SettingError(f"{name}={value!r}: {error}") from None
        setattr(options, name, value)


def go(configuration: dict[str, Any], chosen: list[int], options: argparse.Namespace) -> int:
    """Trains, or goes on with, the runs of a configuration, and shows their scores."""
    import torch

    from piaget.lab.making import make
    from piaget.lab.memory import keep_memory
    from piaget.lab.progress import Progress
    from piaget.lab.row_file import read_rows
    from piaget.lab.runs import run

    keep_memory()
    torch.set_num_threads(1)  # more are slower: the matrices are small
    learners, streams = make(configuration, chosen, options.data_dir)
    with view(options) as shown:

        def on_progress(progress: Progress) -> None:
            shown.progress("", progress)
            shown.overall(progress.done, progress.left, f"{duration(progress.seconds)} so far")

        data_dir = None if options.data_dir is None else str(Path(options.data_dir).absolute())
        folders = run(learners, streams, options.out, configuration, on_progress, data_dir)
        shown.ended("", "done")
    final = [_final(list(read_rows([folder / "rows.csv"]))) for folder in folders]
    if options.json:
        runs = [{"folder": str(f), "seed": s} | one for f, s, one in zip(folders, chosen, final, strict=True)]
        print_json({"event": "result", "runs": runs})
        return 0
    for seed, scores in zip(chosen, final, strict=True):
        if len(folders) > 1:
            print(f"seed {seed}")
        _show(scores)
    print(
        f"In {options.out}/seed-*: run.json, rows.csv (all scores), log.txt, learner/ (piaget.Learner.load)."
    )
    if configuration["table"] is not None:
        print(f"For new rows: piaget predict {folders[0]} NEW.csv --out predictions.csv")
    return 0


def _final(rows: list[Any]) -> dict[str, Any]:
    """The last test score of each task, and the number of components."""
    tests = [row for row in rows if row["metric"] in SCORES and row["split"] == "test"]
    components = [int(row["value"]) for row in rows if row["metric"] == "components"]
    return {
        "scores": {row["evaluated"]: {row["metric"]: row["value"]} for row in tests},
        "components": components[-1],
    }


def _show(final: dict[str, Any]) -> None:
    scores = {task: next(iter(one.items())) for task, one in final["scores"].items()}
    for task, (metric, value) in scores.items():
        print(f"{task:>24}  {metric} {value:.3f}")
    for metric in dict.fromkeys(metric for metric, _ in scores.values()):
        values = [value for name, value in scores.values() if name == metric]
        print(f"{'mean of ' + str(len(values)) + ' tasks':>24}  {metric} {sum(values) / len(values):.3f}")
    print(f"{'components':>24}  {final['components']}")
