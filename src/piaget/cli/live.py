"""Progress as people read it: live bars in a terminal, plain lines elsewhere, JSON for machines."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any, Protocol

from piaget.cli.common import print_json
from piaget.lab.progress import PROBING, Standing, duration, score

SECONDS = 30  # between two plain lines about the same task, at least


def add_progress(parser: argparse.ArgumentParser) -> None:
    """The flags that say how progress is shown."""
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--quiet", action="store_true", help="no progress, only the result")
    how.add_argument(
        "--json", action="store_true", help="progress and result as JSON objects, one a line, on stdout"
    )


class View(Protocol):
    """Shows cohorts at work. `share`: of all the work, as far as that is known; `left`: seconds."""

    def __enter__(self) -> View: ...

    def __exit__(self, *error: object) -> None: ...

    def progress(self, name: str, standing: Standing) -> None:
        """A cohort has learned something."""

    def ended(self, name: str, status: str, error: str | None = None) -> None:
        """A cohort has ended."""

    def overall(self, share: float, left: float | None, text: str) -> None:
        """How far all of them are."""


def view(options: argparse.Namespace) -> View:
    """The display that the flags ask for."""
    from rich.console import Console

    console = Console(stderr=True)
    if options.json:
        return JsonView()
    if options.quiet:
        return QuietView()
    return LiveView(console) if console.is_terminal else PlainView()


def describe(standing: Standing) -> str:
    """Scores and components, as far as they are known: "accuracy 91.2 %, others 95.0 %, 5 components"."""
    this, past = score(standing.metric, standing.current), score(standing.metric, standing.past)
    if this and past:
        past = "others " + past.removeprefix(f"{standing.metric} ")
    elif past:
        past = f"others {past}"
    parts = [this, past, f"{standing.components} components" if standing.components else ""]
    return ", ".join(part for part in parts if part)


class QuietView:
    """Shows nothing."""

    def __enter__(self) -> QuietView:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def progress(self, name: str, standing: Standing) -> None:
        pass

    def ended(self, name: str, status: str, error: str | None = None) -> None:
        pass

    def overall(self, share: float, left: float | None, text: str) -> None:
        pass


class JsonView(QuietView):
    """One object a line: {"event": "progress" | "ended" | "overall", ...}."""

    def progress(self, name: str, standing: Standing) -> None:
        print_json({"event": "progress", "run": name} | vars(standing))

    def ended(self, name: str, status: str, error: str | None = None) -> None:
        print_json({"event": "ended", "run": name, "status": status, "error": error})

    def overall(self, share: float, left: float | None, text: str) -> None:
        print_json({"event": "overall", "done": share, "left": left})


class PlainView(QuietView):
    """A line for each task when it is done, and now and then on the way."""

    def __init__(self) -> None:
        self.last: dict[str, float] = {}

    def progress(self, name: str, standing: Standing) -> None:
        probes = standing.stage == PROBING
        done = not probes and standing.epoch == standing.epochs and standing.current is not None
        if not done and time.monotonic() - self.last.setdefault(name, time.monotonic()) < SECONDS:
            return
        self.last[name] = time.monotonic()
        initial = standing.stage == "initialization"
        task = (
            f"tasks 1 to {standing.task} of {standing.tasks}"
            if initial
            else (f"task {standing.task} of {standing.tasks}, {standing.name}")
        )
        unit = "part" if probes else "epoch"
        where = "done" if done else f"{standing.stage}, {unit} {standing.epoch} of {standing.epochs}"
        left = "" if standing.left is None else f"about {duration(standing.left)} left"
        text = f"{task}: " + "; ".join(part for part in (where, describe(standing), left) if part)
        print(f"{name}: {text}" if name else text, file=sys.stderr, flush=True)

    def ended(self, name: str, status: str, error: str | None = None) -> None:
        if name:
            print(f"{name}: {status}", file=sys.stderr, flush=True)


class LiveView:
    """A bar for all the work, and one for the current task of each cohort at work."""

    def __init__(self, console: Any) -> None:
        from rich.progress import BarColumn, Progress as Bars, TaskProgressColumn, TextColumn

        self.bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("{task.fields[text]}", markup=False),
            console=console,
            transient=True,
        )
        self.of: dict[str, Any] = {}

    def __enter__(self) -> LiveView:
        self.bars.start()
        self.all = self.bars.add_task("all tasks", total=1.0, text="")
        return self

    def __exit__(self, *error: object) -> None:
        self.bars.stop()

    def progress(self, name: str, standing: Standing) -> None:
        if name not in self.of:
            self.of[name] = self.bars.add_task(name, total=1.0, text="")
        unit = "part" if standing.stage == PROBING else "epoch"
        text = f"{standing.stage}, {unit} {standing.epoch}/{standing.epochs}"
        text = "; ".join(part for part in (text, describe(standing)) if part)
        task = f"task {standing.task}/{standing.tasks} {standing.name}"
        self.bars.update(
            self.of[name],
            description=f"{name} {task}" if name else task,
            completed=standing.epoch / standing.epochs,
            text=text,
        )

    def ended(self, name: str, status: str, error: str | None = None) -> None:
        if name in self.of:
            self.bars.remove_task(self.of.pop(name))
        if name:
            self.bars.console.print(f"{name}: {status}", markup=False, highlight=False)

    def overall(self, share: float, left: float | None, text: str) -> None:
        shown = [text, "" if left is None else f"about {duration(left)} left"]
        self.bars.update(self.all, completed=share, text="; ".join(part for part in shown if part))
