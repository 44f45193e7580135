"""piaget predict: answers of a learner for new rows of a table."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    """The command and its flags."""
    parser = commands.add_parser(
        "predict",
        help="predict new rows of a table with a learner that piaget run has kept",
        description="Adds columns of predictions to a table. Each row is answered by what was learned of its "
        "group; one that was never seen, by what the others have in common, and a column says so.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="output folder of piaget run")
    parser.add_argument(
        "table", type=Path, metavar="FILE", help="CSV, TSV or Parquet, with the columns of training"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="a CSV or Parquet file to write"
    )
    parser.add_argument("--proba", action="store_true", help="also the probability of each class")
    parser.add_argument(
        "--interval",
        type=float,
        metavar="LEVEL",
        help="also between which values a measurement lies, with a probability such as 0.9",
    )
    parser.add_argument(
        "--threshold",
        type=float,
        metavar="P",
        help="of two classes: answer the second one from this probability on (default: 0.5, or by weights)",
    )
    parser.set_defaults(run=_predict)


def _predict(options: argparse.Namespace) -> int:
    import piaget
    from piaget.data.columns import as_written
    from piaget.errors import LoadError, SettingError
    from piaget.files import write_atomically
    from piaget.lab.folder import DONE
    from piaget.lab.table_lives import only_run
    from piaget.streams.table_predictions import predict_table

    if options.out.suffix not in (".csv", ".parquet"):
        raise SettingError(f"--out {options.out}; expected a file that ends in .csv or .parquet")
    if not options.out.absolute().parent.is_dir():
        raise SettingError(f"--out {options.out}: there is no such folder")
    if (options.out.absolute().parent / "run.json").exists():
        raise SettingError(f"--out {options.out}: that is the folder of a run; expected another one")
    if options.out.exists() and options.table.exists() and options.out.samefile(options.table):
        raise SettingError(f"--out {options.out}: that is the table itself; expected another file")
    run = only_run(options.folder)
    try:
        found = run.saved_learner() if (run.path / "run.json").is_file() else run.learner
        learner = piaget.load(found)
    except LoadError as error:
        if not (run.path / "run.json").is_file():
            raise
        advice = "only one that is done has a learner"
        if run.status == DONE:
            advice = f"remove {run.path} and give the command that made it again, to train it again"
        raise LoadError(f"{error}. The run is {run.status}: {advice}") from error
    answered = predict_table(
        learner,
        options.table,
        proba=options.proba,
        interval=options.interval,
        threshold=options.threshold,
    )
    new = answered.attrs.pop("predicted")
    written = as_written(options.table)
    if written is not None and options.out.suffix == ".csv":
        answered = written.assign(**{name: answered[name] for name in new})
    if options.out.suffix == ".parquet":
        write_atomically(options.out, answered.to_parquet(index=False))
    else:
        write_atomically(options.out, answered.to_csv(index=False).encode())
    print(f"{options.out}: {len(answered)} rows with {', '.join(map(repr, new))}")
    return 0
