"""A bar that grows with the epochs of a task, for people who wait: `learn(task, progress=True)`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from piaget.scoring.watch import EpochReport, OnEpoch


@contextlib.contextmanager
def epoch_bar(on_epoch: OnEpoch | None) -> Iterator[OnEpoch]:
    """Inside, the function that it gives moves the bar (on stderr, or in a notebook) and calls `on_epoch`."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:

        def tell(report: EpochReport) -> bool | None:
            text = f"{escape(report.task)}: {report.stage}"
            text += f", {report.components} components" if report.components else ""
            if not bar.tasks:
                bar.add_task(text)
            bar.update(bar.task_ids[0], description=text, completed=report.epoch, total=report.epochs)
            return None if on_epoch is None else on_epoch(report)

        yield tell
