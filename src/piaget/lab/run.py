"""One learner over one stream, kept on disk after every task."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from piaget.checks import check_task
from piaget.evaluation import COLUMNS, EpochReport, Row
from piaget.learner import Learner
from piaget.state import State
from piaget.storage import write_atomically
from piaget.tasks import Stream, Task


def run(learner: Learner, stream: Stream, out: Path, quiet: bool = False) -> dict[str, tuple[str, float]]:
    """Learns all tasks; {task: (metric, final test score)}. The learner and all rows go to `out`."""
    out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    past: list[Task] = []
    for i in range(len(stream)):
        task = stream[i]

        def on_epoch(report: EpochReport, i: int = i) -> None:
            if report.epoch == 1 and not quiet:
                print(
                    f"task {i + 1} of {len(stream)}, {report.task}: {report.epochs} epochs", file=sys.stderr
                )

        rows += learner.learn(task, evaluate_on=[*past, task], on_epoch=on_epoch)
        past.append(task.lean())
        learner.save(out / "learner")
        write_rows(out / "rows.csv", rows)
    last = {
        row["evaluated"]: row
        for row in rows
        if row["metric"] in ("accuracy", "rmse") and row["split"] == "test"
    }
    return {name: (row["metric"], row["value"]) for name, row in last.items()}


def check_stream(learner: Learner, stream: Stream) -> None:
    """Raises an error if a task could not be learned, before any of them is. The learner is new."""
    settings = learner.settings
    proposes = settings.algorithm.expansion.proposes
    for i in range(len(stream)):
        check_task(settings, State(torch.Generator()), stream[i], proposes and i >= settings.initial_tasks)


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, text.getvalue().encode())
