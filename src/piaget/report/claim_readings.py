"""How each of the paper's claims is read: what is compared with what (claims.py)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import linear_regression

import pandas as pd

from piaget.method.choices import adaptation_of
from piaget.paper.names import paper_methods
from piaget.paper.presets import IMAGES, OBJECTS, SOME
from piaget.report import metrics
from piaget.report.claims import Comparison, Side, beyond, difference
from piaget.report.contents import Contents
from piaget.report.selection import Selection, components, final, forward, mean_ratio, on_kind, reuse_at

OURS, BASELINES = ("dynamic", "compositional"), ("joint", "no-components")
ADAPTING = ("er", "ewc", "nft")
GATED = tuple(stream for stream in IMAGES if stream != "cub")
FORGOTTEN = 1.02  # "practically no forgetting": less than 2 %
NEAR = 2.0  # "nearly identical": less than two points apart
CHANCE = 20.0  # "incapable": less than twice what guessing gives


def single_model(selection: Selection) -> Iterator[Comparison]:
    """No components against joint on two streams, and against compositional on one."""
    for stream in ("landmine", "schools"):
        for base in ADAPTING:
            sides = Side(base, "no-components", "linear"), Side(base, "joint", "linear")
            yield from difference(selection, stream, *sides)
    for base in ("er", "ewc"):
        sides = Side(base, "no-components", "linear"), Side(base, "compositional", "linear")
        yield from difference(selection, "schools", *sides)


def adaptation(selection: Selection) -> Iterator[Comparison]:
    """Compositional methods that adapt against the one that does not."""
    for stream in IMAGES:
        for base in ADAPTING:
            sides = Side(base, "compositional"), Side("fm", "compositional")
            yield from difference(selection, stream, *sides)


def frozen_is_best(selection: Selection) -> Iterator[Comparison]:
    """Frozen components, to which new ones are added: final performance, and how many there are."""
    for stream in ("mnist", "fashion"):
        for base in ADAPTING:
            sides = Side("fm", "dynamic"), Side(base, "dynamic")
            yield from difference(selection, stream, *sides)
            yield from difference(selection, stream, *sides, components, 1.0)


def near(selection: Selection) -> Iterator[Comparison]:
    """How much less than `NEAR` two methods are apart: the mean, since single seeds scatter."""
    for stream in GATED:
        for base in ADAPTING:
            for one in OURS:
                for two in BASELINES:
                    sides = Side(base, one, "soft-gating"), Side(base, two, "soft-gating")
                    for found in difference(selection, stream, *sides, forward):
                        side = math.copysign(1.0, found.mean) if found.values else 1.0
                        room = tuple(NEAR - side * value for value in found.values)
                        yield Comparison(found.what, room, found.reduced)


def fewer_components(selection: Selection) -> Iterator[Comparison]:
    """Soft gating against soft ordering."""
    for stream in GATED:
        for base in (*ADAPTING, "fm"):
            sides = Side(base, "dynamic", "soft-gating"), Side(base, "dynamic", "soft-ordering")
            yield from difference(selection, stream, *sides, components, 1.0, fewer=True)


def one_a_task(selection: Selection) -> Iterator[Comparison]:
    """Four fifths of as many as tasks: "almost"."""
    for base in ADAPTING:
        chosen = selection.find("cifar100", "soft-ordering", base, "dynamic")
        if chosen is not None:
            tasks = len(selection.contents.of(chosen.group.first.name, metrics.by_task))
            yield from beyond(selection, "cifar100", Side(base, "dynamic"), components, 0.8 * tasks, 1.0)


def incapable(selection: Selection) -> Iterator[Comparison]:
    """Accuracy on the CUB tasks is near chance."""
    side = Side("er", "no-components")
    yield from beyond(selection, "combined", side, on_kind("cub"), CHANCE, below=True)


def no_forgetting(selection: Selection) -> Iterator[Comparison]:
    """The forgetting ratio is below a bound."""
    for structure, streams in (("soft-ordering", IMAGES), ("soft-gating", GATED)):
        for stream in streams:
            for base in ADAPTING:
                for algorithm in OURS:
                    side = Side(base, algorithm, structure)
                    yield from beyond(selection, stream, side, mean_ratio, FORGOTTEN, 1.0, below=True)


def less_forgetting(selection: Selection) -> Iterator[Comparison]:
    """The forgetting ratio is below that of the baselines."""
    for structure, streams in (("soft-ordering", IMAGES), ("soft-gating", GATED)):
        for stream in streams:
            for base in ADAPTING:
                for one in OURS:
                    for two in BASELINES:
                        sides = Side(base, one, structure), Side(base, two, structure)
                        yield from difference(selection, stream, *sides, mean_ratio, 1.0, fewer=True)


def reused(selection: Selection) -> Iterator[Comparison]:
    """The least reused of the four initial components, by more than one task."""
    for stream in IMAGES:
        for algorithm in OURS:
            yield from beyond(selection, stream, Side("er", algorithm), reuse_at(3), 1.0, 1.0)


def schedules(selection: Selection, stream: str, algorithm: str) -> list[tuple[int, Side]]:
    """All schedules that were run: the usual one adapts once, after 100 epochs."""
    sides = [
        (every, Side("er", algorithm, changes=(("adapt_every", every),)))
        for every in selection.settings(stream, "adapt_every")
    ]
    return [*sides, (100, Side("er", algorithm))] if all(every != 100 for every, _ in sides) else sides


def rarer_is_better(selection: Selection) -> Iterator[Comparison]:
    """Of each seed, by how many points performance rises when components adapt ten times as rarely."""
    for stream in SOME:
        for algorithm in OURS:
            by_data: dict[str, dict[int, list[tuple[float, float]]]] = {}  # what is less: seed: points
            for every, side in schedules(selection, stream, algorithm):
                chosen = selection.find(stream, side.structure, side.base, side.algorithm, side.changes)
                if chosen is not None and chosen.group.first.configuration["epochs"] == 100:
                    by_seed = by_data.setdefault(chosen.reduced, {})
                    for seed, value in chosen.values(selection.contents, final).items():
                        by_seed.setdefault(seed, []).append((math.log10(every), value))
            for reduced, by_seed in by_data.items():
                most = max(map(len, by_seed.values()), default=0)
                whole = [points for _, points in sorted(by_seed.items()) if len(points) == most >= 3]
                slopes = tuple(linear_regression(*zip(*points, strict=True)).slope for points in whole)
                if slopes:
                    yield Comparison(f"{stream}: ER {Side('er', algorithm).label}", slopes, reduced)


def every_schedule(selection: Selection) -> Iterator[Comparison]:
    """Each schedule against the baselines; of the usual one alone, nothing is said of schedules."""
    for stream in ("mnist", "fashion"):
        for algorithm in OURS:
            sides = schedules(selection, stream, algorithm)
            for _, side in sides if len(sides) > 1 else ():
                for two in BASELINES:
                    yield from difference(selection, stream, side, Side("er", two))


def fast_is_worse(selection: Selection) -> Iterator[Comparison]:
    """Joint training against the schedule that adapts most often."""
    for algorithm in OURS:
        for every, side in schedules(selection, "cub", algorithm)[:1]:
            if every < 100:
                yield from difference(selection, "cub", Side("er", "joint"), side)


def little_data(selection: Selection) -> Iterator[Comparison]:
    """Ours against the baselines at each number of training samples."""
    for stream in SOME:
        for size in selection.settings(stream, "train_size"):
            common = ("train_size", size), ("epochs", 1000), ("replay_size", min(max(size // 10, 1), 32))
            for one in OURS:
                for two in BASELINES:
                    ours = Side("er", one, changes=(*common, ("adapt_every", 10)))
                    yield from difference(selection, stream, ours, Side("er", two, changes=common))


def later_tasks(selection: Selection) -> Iterator[Comparison]:
    """By how many points a task the score after the first look at it rises, along the stream."""

    def slope(contents: Contents) -> pd.Series:
        lines = metrics.scores(contents.rows)
        own = lines[(lines["trained"] == lines["evaluated"])]
        looks = own.groupby(["run", "evaluated"], sort=False).agg(
            first=("value", "first"), size=("value", "size"), epoch=("epoch", "first")
        )
        looks = looks[looks["size"] > 1].reset_index()  # evaluated while it was learned
        slopes = {}
        for run, tasks in looks.groupby("run"):
            later = tasks.iloc[1:]  # the first is one of the initial ones, which are learned together
            if len(later) >= 3 and later["epoch"].nunique() == 1:  # others do not compare
                slopes[run] = linear_regression(range(len(later)), later["first"]).slope
        return pd.Series(slopes, dtype=float)

    for stream in ("mnist", "fashion"):
        yield from beyond(selection, stream, Side("er", "dynamic"), slope, 0.0)


def consistent(selection: Selection) -> Iterator[Comparison]:
    """A component's effect is the same everywhere: compositional against joint."""

    def measure(contents: Contents) -> pd.Series:
        return contents.compute(metrics.consistency)

    sides = Side("er", "compositional"), Side("er", "joint")
    yield from difference(selection, "pixel-mnist", *sides, measure, 1.0)


def sharing(selection: Selection) -> Iterator[Comparison]:
    """Ours against each task alone."""
    for stream in ("landmine", "schools"):
        sides = Side("er", "compositional", "linear"), Side("fm", "alone", "linear")
        yield from difference(selection, stream, *sides)
    for stream in (*IMAGES, "combined", *OBJECTS):
        yield from difference(selection, stream, Side("er", "dynamic"), Side("fm", "alone"))


def frozen_baseline(selection: Selection) -> Iterator[Comparison]:
    """Ours against a single network whose past encoders and decoders stay as they are."""
    for stream in (*IMAGES, "combined", *OBJECTS):
        yield from difference(selection, stream, Side("er", "dynamic"), Side("er", "no-components-frozen"))


def recommended(selection: Selection) -> Iterator[Comparison]:
    """The recommended method against each of the paper's."""
    ours = Side(adaptation_of("recommended"), "recommended")
    for stream in (*IMAGES, "combined", *OBJECTS):
        for method in paper_methods("soft-ordering"):
            yield from difference(selection, stream, ours, Side(method.adaptation, method.algorithm))
