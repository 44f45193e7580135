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
        description="Adds a column of predictions to a table. Each row is answered by the task of its group.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="output folder of piaget run")
    parser.add_argument(
        "table", type=Path, metavar="FILE", help="CSV, TSV or Parquet, with the columns of training"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="a CSV or Parquet file to write"
    )
    parser.set_defaults(run=_predict)


def _predict(options: argparse.Namespace) -> int:
    import piaget
    from piaget.errors import LoadError, SettingError
    from piaget.files import write_atomically
    from piaget.lab.folder import DONE, RunFolder, runs_in
    from piaget.streams.table_stream import predict_table

    if options.out.suffix not in (".csv", ".parquet"):
        raise SettingError(f"--out {options.out}; expected a file that ends in .csv or .parquet")
    if not options.out.absolute().parent.is_dir():
        raise SettingError(f"--out {options.out}: there is no such folder")
    runs = runs_in(options.folder)
    run = runs[0] if len(runs) == 1 else RunFolder(options.folder)
    try:
        found = run.saved_learner() if (run.path / "run.json").is_file() else run.learner
        learner = piaget.Learner.load(found)
    except LoadError as error:
        if not (run.path / "run.json").is_file():
            raise
        advice = "only one that is done has a learner"
        if run.status == DONE:
            advice = f"remove {run.path} and give the command that made it again, to train it again"
        raise LoadError(f"{error}. The run is {run.status}: {advice}") from error
    answered = predict_table(learner, options.table)
    if options.out.suffix == ".parquet":
        write_atomically(options.out, answered.to_parquet(index=False))
    else:
        write_atomically(options.out, answered.to_csv(index=False).encode())
    print(f"{options.out}: {len(answered)} rows with {answered.columns[-1]!r}")
    return 0
