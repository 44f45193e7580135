"""Run folders by hand, for tests of exports."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from piaget.cli import export as command
from piaget.lab.row_file import as_csv
from piaget.scoring.rows import COLUMNS, Row
from tests.small import make_row

HEADER = (",".join(COLUMNS) + "\n").encode()
CONFIGURATION = {
    "stream": "s",
    "table": None,
    "options": {},
    "structure": "soft-ordering",
    "adaptation": "er",
    "algorithm": "joint",
    "epochs": None,
    "every": None,
    "settings": {"width": 64, "a.b": [1, 2]},
    "seed": 0,
}


def row(
    trained: str, epoch: int, evaluated: str, value: float, metric: str = "accuracy", split: str = "test"
) -> Row:
    return make_row(
        trained=trained, epoch=epoch, evaluated=evaluated, value=value, metric=metric, split=split
    )


def moment(trained: str, epoch: int, scores: dict[str, float], components: int = 4) -> list[Row]:
    """What one evaluation writes."""
    rows = [row(trained, epoch, task, value) for task, value in scores.items()]
    rows += [row(trained, epoch, task, 1 - value, "loss") for task, value in scores.items()]
    return [*rows, row(trained, epoch, "", float(components), "components", "")]


FIRST = moment("t1", 10, {"t0": 0.5, "t1": 0.7}) + moment("t1", 20, {"t0": 0.6, "t1": 0.8})
SECOND = moment("t2", 10, {"t0": 0.4, "t1": 0.6, "t2": 0.8}, 5)

# Names of tasks that a target may not take as they are.
ODD = ["mean", "größe", "a/b", "a//b", "a_b", "a?b", "a*b", "../x", "/x", "x/", "line\nbreak", 'quo"te']
ODD += ["com,ma", "x" * 300, "x" * 301, " ", "a_b-x0123456789", "Site 7: north"]


def make_run(folder: Path, rows: Iterable[Row] = (), status: str = "done", **more: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    description = {
        "configuration": CONFIGURATION,
        "status": status,
        "started": "2024-05-01T10:00:00+00:00",
        "finished": None,
        "error": None,
    }
    (folder / "run.json").write_text(json.dumps(description | more))
    (folder / "rows.csv").write_bytes(HEADER + as_csv(list(rows)))
    return folder


def append(folder: Path, rows: Sequence[Row], cut: int | None = None) -> None:
    with open(folder / "rows.csv", "ab") as handle:
        handle.write(as_csv(rows)[:cut])


def run_command(*arguments: Any) -> int:
    """`piaget export`, with errors as they are raised."""
    parser = argparse.ArgumentParser()
    command.add(parser.add_subparsers())
    options = parser.parse_args(["export", *map(str, arguments)])
    code: int = options.run(options)
    return code
