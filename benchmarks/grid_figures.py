"""What benchmarks/grids.py measured: a figure with a panel for each question, and a table."""

from __future__ import annotations

import csv
import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from piaget.errors import SettingError
from piaget.method.choices import SINGLE
from piaget.streams.grids import FEW_SHOT

WINDOW = 15  # tasks, over which times are smoothed
Line = dict[str, Any]


def read(path: Path) -> list[Line]:
    """The lines of a file of numbers; none if it is not there."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


class Measured:
    """All seeds of one method."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.seeds = [seed for seed in sorted(folder.glob("seed-*")) if read(seed / "tasks.csv")]

    @property
    def combines(self) -> bool:
        """Does it have components to combine? A single network does not."""
        structures = (json.loads((seed / "setting.json").read_text())["method"] for seed in self.seeds)
        return not any(structure.partition("/")[0] in SINGLE for structure in structures)

    def of_tasks(self, column: str, window: int = 1) -> dict[int, float]:
        """A number of each task, by how many were learned: mean over seeds, median over a window."""
        series: dict[int, list[float]] = defaultdict(list)
        for seed in self.seeds:
            values = [
                (int(line["number"]) + 1, float(line[column] or "nan")) for line in read(seed / "tasks.csv")
            ]
            for i in range(len(values)):
                around = [value for _, value in values[max(0, i - window + 1) : i + 1]]
                series[values[i][0]].append(statistics.median(around))
        return {number: statistics.fmean(values) for number, values in series.items()}

    def old(self) -> dict[int, float]:
        """The mean accuracy on all tasks so far, by how many there were."""
        found: dict[int, list[float]] = defaultdict(list)
        for seed in self.seeds:
            for line in read(seed / "scores.csv"):
                found[int(line["after"])].append(float(line["accuracy"]))
        return {after: statistics.fmean(values) for after, values in sorted(found.items())}

    def kept(self) -> tuple[float, float] | None:
        """The mean accuracy of tasks when they were learned, and at the end; initial tasks are left out."""
        then, now = [], []
        for seed in self.seeds:
            first = {line["task"]: line["accuracy"] for line in read(seed / "tasks.csv") if line["accuracy"]}
            scores = read(seed / "scores.csv")
            if not scores:
                return None
            last = max(int(line["after"]) for line in scores)
            final = {line["task"]: line["accuracy"] for line in scores if int(line["after"]) == last}
            then += [float(first[task]) for task in final if task in first]
            now += [float(final[task]) for task in final if task in first]
        return (statistics.fmean(then), statistics.fmean(now)) if then else None

    def transfer(self) -> dict[str, tuple[float, float]]:
        """Of each part of few-shot tasks: mean accuracy, and its standard error over tasks and seeds."""
        found: dict[str, list[float]] = defaultdict(list)
        for seed in self.seeds:
            for line in read(seed / "few.csv"):
                found[line["part"]].append(float(line["accuracy"]))
        return {
            part: (statistics.fmean(values), statistics.stdev(values) / len(values) ** 0.5)
            for part, values in found.items()
            if len(values) > 1
        }


def measured(out: Path) -> list[Measured]:
    """Of each method that there are results of. Raises an error if there are none."""
    folders = sorted(p for p in out.iterdir() if p.is_dir()) if out.is_dir() else []
    methods = [one for one in map(Measured, folders) if one.seeds]
    if not methods:
        what = "has no results of this benchmark" if out.is_dir() else "is no folder"
        raise SettingError(f"{out} {what}; expected the folder that --out named when methods were trained")
    return methods


def draw(methods: Sequence[Measured], path: Path) -> None:
    """Six panels."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(13, 7), layout="constrained")
    of_tasks = (
        ("processor seconds to learn a task", "seconds", WINDOW),
        ("MB that the learner holds", "held", 1),
        ("components", "components", 1),
        ("accuracy just learned", "accuracy", 2 * WINDOW),
    )
    for axis, (title, column, window) in zip(axes.flat, of_tasks, strict=False):
        for m, one in enumerate(methods):
            if column == "components" and not one.combines:
                continue
            numbers = {n: v for n, v in one.of_tasks(column, window).items() if v == v}
            axis.plot(list(numbers), list(numbers.values()), color=f"C{m}", label=one.name)
        axis.set(title=title, xlabel="tasks learned")
    axes[0, 0].set_ylim(0, None)
    axes[0, 0].legend(frameon=False, fontsize=8)
    for one in methods:
        axes[1, 1].plot(list(one.old()), list(one.old().values()), "o-", markersize=3)
    axes[1, 1].set(title="mean accuracy on all tasks so far", xlabel="tasks learned")
    _bars(axes[1, 2], methods)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


def _bars(axis: Any, methods: Sequence[Measured]) -> None:
    """Accuracy of few-shot tasks, by part, with standard errors."""
    width = 0.8 / max(1, len(methods))
    for m, one in enumerate(methods):
        transfer = one.transfer()
        parts = [part for part in FEW_SHOT if part in transfer]
        places = [FEW_SHOT.index(part) + m * width for part in parts]
        means, errors = ([transfer[part][i] for part in parts] for i in (0, 1))
        axis.bar(places, means, width, yerr=errors, label=one.name)
    axis.set_xticks([i + 0.4 - width / 2 for i in range(len(FEW_SHOT))], FEW_SHOT)
    axis.set(title="accuracy of few-shot tasks", ylim=(0.3, 1))


def table(methods: Iterable[Measured]) -> str:
    """Markdown: a line a method."""
    head = ["method", "seeds", "tasks", "s a task: first 50", "last 50", "MB: half-way", "at the end"]
    head += ["components: half-way", "at the end", "accuracy just learned", "at the end", *FEW_SHOT]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for one in methods:
        seconds, held, components = (one.of_tasks(c) for c in ("seconds", "held", "components"))
        times, last = list(seconds.values()), max(seconds)
        kept, transfer = one.kept(), one.transfer()
        cells = [one.name, str(len(one.seeds)), str(last)]
        cells += [f"{statistics.median(part):.2f}" for part in (times[4:54], times[-50:])]
        cells += [f"{held[n]:.1f}" for n in (max(1, last // 2), last)]
        cells += [f"{components[n]:.0f}" if one.combines else "-" for n in (max(1, last // 2), last)]
        cells += [f"{100 * value:.1f}" for value in kept] if kept else ["-", "-"]
        cells += [
            f"{100 * transfer[part][0]:.1f} ± {100 * transfer[part][1]:.1f}" if part in transfer else "-"
            for part in FEW_SHOT
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
