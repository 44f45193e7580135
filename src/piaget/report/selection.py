"""The groups of runs that stand for the paper's experiments: with its settings, and with its data or less."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from piaget.method.choices import structure_for
from piaget.report import metrics
from piaget.report.contents import Contents
from piaget.report.groups import Group

# What makes an experiment less than the paper's, and not another one: of data, and where they are less than
# the paper's, of training and networks.
LESS_DATA = ("data", "features", "tasks", "train_size", "fractions")
LESS_WORK = ("epochs", "channels")
MONOLITHIC, ALONE = ("no-components", "no-components-frozen"), "alone"

Changes = tuple[tuple[str, Any], ...]
Measure = Callable[[Contents], pd.Series]  # a number for each run


@dataclass(frozen=True)
class Chosen:
    """The group of runs that stands for an experiment of the paper."""

    group: Group
    reduced: str  # why it is less than the paper's; empty, if it is not

    @property
    def flags(self) -> list[str]:
        """The words of a command that say in what it is less."""
        run = self.group.first
        words = [("--option", f"{name}={value}") for name, value in run.configuration["options"].items()]
        for name in LESS_WORK:
            if name in run.changes:
                value = run.changes[name]
                words.append(("--epochs", str(value)) if name == "epochs" else ("--set", f"{name}={value}"))
        return [word for pair in words for word in pair]

    def values(self, contents: Contents, measure: Measure, unit: float | None = None) -> dict[int, float]:
        """{seed: number}; of scores, in the unit in which they are shown."""
        return self.group.of(measure(contents), self.group.unit if unit is None else unit)


def method_name(structure: str, base: str, algorithm: str) -> str:
    """As rows have it."""
    if algorithm == ALONE:
        return f"{ALONE}/fm/{ALONE}"
    structure = "monolithic" if algorithm in MONOLITHIC else structure_for(algorithm, structure)
    return f"{structure}/{base}/{algorithm}"


@dataclass(frozen=True)
class Selection:
    """Looks groups up by what the paper calls them."""

    contents: Contents

    @cached_property
    def _groups(self) -> Mapping[tuple[str, str], list[Group]]:
        groups: dict[tuple[str, str], list[Group]] = {}
        for group in self.contents.groups:
            groups.setdefault((group.stream.partition("/")[0], group.method), []).append(group)
        return groups

    def find(
        self, stream: str, structure: str, base: str, algorithm: str, changes: Changes = ()
    ) -> Chosen | None:
        """The experiment itself, or the reduced one with the most seeds. changes: settings and options in
        which it differs from the usual one on purpose."""
        found = []
        for group in self._groups.get((stream, method_name(structure, base, algorithm)), []):
            run = group.first
            rest = dict(run.changes)
            if any(rest.pop(name, None) != value for name, value in changes):
                continue
            if group.counted and all(
                name in LESS_DATA or (name in LESS_WORK and run.is_less(name)) for name in rest
            ):
                found.append(Chosen(group, "; ".join(_why(name, value) for name, value in rest.items())))
        found.sort(key=lambda one: (bool(one.reduced), -len(one.group.counted), one.group.variant))
        return found[0] if found else None

    def settings(self, stream: str, name: str) -> list[Any]:
        """The values that a setting or option has in the runs on a stream."""
        values = {
            group.first.changes[name]
            for (known, _), groups in self._groups.items()
            for group in groups
            if known == stream and name in group.first.changes
        }
        return sorted(value for value in values if isinstance(value, int | float))


def _why(name: str, value: Any) -> str:
    if name == "data":
        return str(value)
    if name == "features":
        return "approximate ResNet-18 features" if "approx" in str(value) else f"features of {value}"
    words = {
        "tasks": "tasks",
        "train_size": "training samples a task",
        "epochs": "epochs",
        "channels": "channels",
    }
    return f"{value} {words[name]}" if name in words else f"{name}={value}"


# --- measures -------------------------------------------------------------------------------------------


def final(contents: Contents) -> pd.Series:
    """Final performance."""
    return contents.final


def forward(contents: Contents) -> pd.Series:
    """Performance right after a task was learned."""
    return contents.forward


def components(contents: Contents) -> pd.Series:
    """How many components there are in the end."""
    return contents.compute(metrics.components)


def on_kind(kind: str) -> Measure:
    """Final performance on the tasks of one kind."""

    def measure(contents: Contents) -> pd.Series:
        lines = contents.compute(metrics.final_by_subset)
        return lines[lines["subset"] == kind].set_index("run")["value"]

    return measure


def reuse_at(place: int) -> Measure:
    """How many tasks reuse the component at this place, the most reused one being first."""

    def measure(contents: Contents) -> pd.Series:
        lines = contents.compute(metrics.reuse)
        return lines[lines["rank"] == place].set_index("run")["tasks"].astype(float)

    return measure


def mean_ratio(contents: Contents) -> pd.Series:
    """The paper's forgetting ratio, mean over tasks."""
    lines = contents.compute(metrics.forgetting_ratio)
    return lines.groupby("run")["ratio"].mean()


def further(metric: str) -> Measure:
    """The final mean over tasks of another score than the one that counts, such as `auc`."""

    def measure(contents: Contents) -> pd.Series:
        lines = contents.compute(metrics.further_performance)
        return lines[lines["metric"] == metric].set_index("run")["final"]

    return measure
