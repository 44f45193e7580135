"""The report's figures, fit to print: one function each, from `Contents` to matplotlib figures by name."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from piaget.lab.table import BASES
from piaget.report import metrics
from piaget.report.canvas import COLOURS, MARKS, STYLE, WIDTH, Figures, broken, grid, style
from piaget.report.component_figures import candidates, reuse, structures
from piaget.report.contents import Contents
from piaget.report.groups import Group
from piaget.report.statistics import mean_and_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# --- performance ------------------------------------------------------------------------------------------


def bars(contents: Contents) -> Figures:
    """Forward and final performance of each stream, and gains over no-components NFT, as in the paper."""
    numbers = {"forward": contents.forward, "final": contents.final}
    gains = {name: contents.gains(values) for name, values in numbers.items()}
    for stream in contents.streams:
        groups = [one for _, one in contents.on(stream)]
        bars = {name: [one.summary(values, one.unit) for one in groups] for name, values in numbers.items()}
        yield f"bars-{stream}", _bars([one.label for one in groups], bars, stream, groups[0].unit_name)
    labels: dict[str, list[Group]] = {}
    for one in contents.groups:
        if any(run.name in gains["final"].index for run in one.runs):
            labels.setdefault(one.label, []).append(one)
    if labels:
        bars = {
            name: [mean_and_error(_over_streams(groups, values)) for groups in labels.values()]
            for name, values in gains.items()
        }
        streams = ", ".join(contents.streams)
        yield "gains", _bars(list(labels), bars, streams, "gain over final NFT No Comp. in %")


def _over_streams(groups: Sequence[Group], values: pd.Series) -> list[float]:
    """For each seed that all streams have, the mean over streams."""
    found = [one.of(values) for one in groups]
    seeds = set.intersection(*(set(of_stream) for of_stream in found))
    return [float(np.mean([of_stream[seed] for of_stream in found])) for seed in sorted(seeds)]


def _bars(labels: Sequence[str], bars: dict[str, list[tuple[float, float]]], title: str, unit: str) -> Figure:
    figure = Figure(figsize=(WIDTH * 0.7, 0.8 + 0.34 * len(labels)))
    axis = figure.subplots()
    for i, (name, numbers) in enumerate(bars.items()):
        axis.barh(
            np.arange(len(labels)) + 0.4 * i - 0.2,
            [mean for mean, _ in numbers],
            0.38,
            label=name,
            xerr=np.nan_to_num([error for _, error in numbers]),
            error_kw={"linewidth": 0.8},
            color=COLOURS[i],
            hatch="///" if i == 0 else None,
            edgecolor="white",
            linewidth=0,
        )
    axis.axvline(0, color="black", linewidth=0.6)
    axis.set_yticks(range(len(labels)), [textwrap.fill(label, 40) for label in labels])
    axis.invert_yaxis()
    axis.set(xlabel=unit, title=textwrap.fill(title, 60))
    figure.legend(ncols=2, loc="outside upper right")
    return figure


def ratios(contents: Contents) -> Figures:
    lines = metrics.forgetting_ratio(contents.table)
    for stream in contents.streams:
        groups = [one for _, one in contents.on(stream)]
        bases = list(dict.fromkeys(one.first.parts[1] for one in groups))
        figure, axes = grid(len(bases), 3, WIDTH / min(3, max(2, len(bases))), 2.3)
        for axis, base in zip(axes, bases, strict=True):
            for i, one in enumerate(g for g in groups if g.first.parts[1] == base):
                own = lines[lines["run"].isin(one.names)]
                places = own.groupby("j")["ratio"].mean()
                axis.plot(
                    places.index + 1, places, marker=MARKS[i % 8], markersize=3, label=one.label, **style(i)
                )
            axis.axhline(1, color="black", linewidth=0.6)
            axis.set(title=BASES.get(base, base), xlabel="task")
            _legend_below(axis)
        axes[0].set_ylabel("first / final score")
        yield f"forgetting-{stream}", figure


def against(contents: Contents, option: str, label: str) -> Figures:
    """Final performance against a setting that runs differ in."""
    for stream in contents.streams:
        groups = [one for _, one in contents.on(stream)]
        lines: dict[str, list[tuple[float, Group]]] = {}
        for one in groups:
            value = one.first.changes.get(option)
            if isinstance(value, int | float):
                lines.setdefault(_without(one, option), []).append((value, one))
        if not any(len(points) > 1 for points in lines.values()):
            continue
        figure = Figure(figsize=(WIDTH / 2, 2.6))
        axis = figure.subplots()
        for i, (name, points) in enumerate(lines.items()):
            points.sort(key=lambda point: point[0])
            numbers = [one.summary(contents.final, one.unit) for _, one in points]
            x, mean = [value for value, _ in points], np.array([m for m, _ in numbers])
            error = np.nan_to_num([e for _, e in numbers])
            axis.plot(x, mean, marker=MARKS[i % 8], markersize=3, label=name, **style(i))
            axis.fill_between(x, mean - error, mean + error, color=style(i)["color"], alpha=0.2, linewidth=0)
        # Methods without the setting are level lines.
        level = [one for one in groups if option not in one.first.changes and option == "adapt_every"]
        for i, one in enumerate(level, len(lines)):
            axis.axhline(one.summary(contents.final, one.unit)[0], label=one.label, **style(i))
        axis.set(xscale="log", xlabel=label, title=stream, ylabel=groups[0].unit_name)
        ticks = sorted({value for points in lines.values() for value, _ in points})
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
        _legend_below(axis)
        yield f"{option.replace('_', '-')}-{stream}", figure


def train_sizes(contents: Contents) -> Figures:
    return against(contents, "train_size", "training samples a task")


def frequencies(contents: Contents) -> Figures:
    return against(contents, "adapt_every", "epochs from one adaptation to the next")


def _legend_below(axis: Axes) -> None:
    """Where it covers nothing, however many lines there are."""
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.28), fontsize=6)


def _without(one: Group, option: str) -> str:
    """The method's label without this setting (and the size of replay, which goes with the data's)."""
    return re.sub(rf" ?\b({option}|replay_size)=[^ \]]+", "", one.label).replace(" []", "").replace("[ ", "[")


# --- over the stream --------------------------------------------------------------------------------------


def curves(contents: Contents) -> Figures:
    for stream in contents.streams:
        groups = [one for _, one in contents.on(stream)]
        figure, axes = grid(len(groups), 4, WIDTH / min(4, max(2, len(groups))), 1.7)
        for axis, one in zip(axes, groups, strict=True):
            found = contents.mean_curves(one)
            shades = matplotlib.colormaps["viridis"](np.linspace(0, 0.9, len(found.columns)))
            for place, shade in zip(found.columns, shades, strict=True):
                line = found[place].dropna()
                axis.plot(
                    line.index,
                    line,
                    color=shade,
                    linewidth=0.9,
                    marker="." if len(line) < 25 else None,
                    markersize=3,
                )
            axis.set_title(broken(one.label))
        _same_range(axes)
        axes[0].set_ylabel(groups[0].unit_name)
        for axis in axes:
            axis.set_xlabel("epochs of all tasks")
        yield f"curves-{stream}", figure


def _same_range(axes: Sequence[Axes]) -> None:
    limits = [axis.get_ylim() for axis in axes]
    for axis in axes:
        axis.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))


def transfer(contents: Contents) -> Figures:
    """The transfer matrix: task trained x task evaluated."""
    for stream in contents.streams:
        groups = [one for _, one in contents.on(stream)]
        found = [contents.mean_after(one) for one in groups]
        figure, axes = grid(len(groups), 4, WIDTH / min(4, max(2, len(groups))), 1.8)
        low, high = (float(f([f(matrix) for matrix in found])) for f in (np.nanmin, np.nanmax))
        for axis, one, matrix in zip(axes, groups, found, strict=True):
            image = axis.imshow(
                matrix,
                vmin=low,
                vmax=high,
                cmap="viridis",
                aspect="equal",
                interpolation="nearest",
                extent=(0.5, len(matrix) + 0.5, len(matrix) + 0.5, 0.5),
            )
            axis.set(title=broken(one.label), xlabel="task evaluated")
        axes[0].set_ylabel("after task")
        figure.colorbar(image, ax=axes, label=groups[0].unit_name, shrink=0.8)
        yield f"transfer-{stream}", figure


FIGURES: tuple[Callable[[Contents], Figures], ...] = (
    bars,
    curves,
    ratios,
    train_sizes,
    frequencies,
    transfer,
    structures,
    candidates,
    reuse,
)


def figures(contents: Contents) -> Figures:
    """All that the runs allow."""
    with matplotlib.rc_context(STYLE):
        for draw in FIGURES:
            yield from draw(contents)
