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

from piaget.lab.final_table import mean_and_error
from piaget.paper.names import base_name
from piaget.report import metrics
from piaget.report.canvas import COLOURS, HEAT, STYLE, WIDTH, Figures, broken, grid, marked, style
from piaget.report.component_figures import candidates, reuse, structures
from piaget.report.contents import Contents
from piaget.report.groups import Group
from piaget.report.statistics import spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINES = 60  # tasks with a learning curve each: of more, the mean is drawn
POINTS = 300  # of such a mean

# --- performance ------------------------------------------------------------------------------------------


def bars(contents: Contents) -> Figures:
    """Forward and final performance of each stream, and gains over no-components NFT, as in the paper."""
    numbers = {"forward": contents.forward, "final": contents.final}
    for stream in contents.counted_streams:
        groups = contents.on(stream)
        bars = {
            name: [group.summary(values, group.unit) for group in groups] for name, values in numbers.items()
        }
        yield f"bars-{stream}", _bars([group.label for group in groups], bars, stream, groups[0].unit_name)
    gains = {name: contents.gains(values) for name, values in numbers.items()}
    by_label: dict[str, list[Group]] = {}
    for group in contents.counted:
        if group.of(gains["final"]):
            by_label.setdefault(group.label, []).append(group)
    streams = {group.stream for groups in by_label.values() for group in groups}
    # A mean over some of the streams would not compare with one over all of them.
    everywhere = {label: groups for label, groups in by_label.items() if len(groups) == len(streams)}
    if everywhere:
        bars = {
            name: [mean_and_error(_over_streams(groups, values)) for groups in everywhere.values()]
            for name, values in gains.items()
        }
        title = ", ".join(sorted(streams))
        yield "gains", _bars(list(everywhere), bars, title, "gain over final NFT No Comp. in %")


def _over_streams(groups: Sequence[Group], values: pd.Series) -> list[float]:
    """For each seed that all streams have, the mean over streams."""
    by_seed = pd.concat([pd.Series(group.of(values)) for group in groups], axis=1, join="inner")
    return list(by_seed.mean(axis=1, skipna=False))


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
    """Forgetting ratios against the place of a task."""
    ratios = contents.compute(metrics.forgetting_ratio)
    for stream in contents.counted_streams:
        groups = contents.on(stream)
        by_base: dict[str, list[Group]] = {}
        for group in groups:
            by_base.setdefault(base_name(*group.first.parts[1:]), []).append(group)
        figure, axes = grid(len(by_base), 3, 2.3)
        for axis, (base, own) in zip(axes, by_base.items(), strict=True):
            for i, group in enumerate(own):
                places = ratios[ratios["run"].isin(group.names)].groupby("j")["ratio"].mean()
                axis.plot(places.index + 1, places, label=group.label, **marked(i))
            axis.axhline(1, color="black", linewidth=0.6)
            axis.set(title=base or "each task alone", xlabel="task")
            _legend_below(axis)
        axes[0].set_ylabel("first / final score")
        yield f"forgetting-{stream}", figure


def against(contents: Contents, option: str, label: str) -> Figures:
    """Final performance against a setting that runs differ in."""
    for stream in contents.counted_streams:
        groups = contents.on(stream)
        lines: dict[str, list[tuple[float, Group]]] = {}
        for group in groups:
            value = group.first.changes.get(option)
            if isinstance(value, int | float):
                lines.setdefault(_without(group, option), []).append((value, group))
        if not any(len(points) > 1 for points in lines.values()):
            continue
        figure = Figure(figsize=(WIDTH / 2, 2.6))
        axis = figure.subplots()
        for i, (name, points) in enumerate(lines.items()):
            points.sort(key=lambda point: point[0])
            numbers = [group.summary(contents.final, group.unit) for _, group in points]
            x, mean = [value for value, _ in points], np.array([m for m, _ in numbers])
            error = np.nan_to_num([e for _, e in numbers])
            axis.plot(x, mean, label=name, **marked(i))
            axis.fill_between(x, mean - error, mean + error, color=style(i)["color"], alpha=0.2, linewidth=0)
        # Methods without the setting are level lines.
        level = [group for group in groups if option not in group.first.changes and option == "adapt_every"]
        for i, group in enumerate(level, len(lines)):
            axis.axhline(group.summary(contents.final, group.unit)[0], label=group.label, **style(i))
        axis.set(xscale="log", xlabel=label, title=stream, ylabel=groups[0].unit_name)
        ticks = sorted({value for points in lines.values() for value, _ in points})
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
        _legend_below(axis)
        yield f"{option.replace('_', '-')}-{stream}", figure


def train_sizes(contents: Contents) -> Figures:
    """Performance against the number of training samples."""
    return against(contents, "train_size", "training samples a task")


def frequencies(contents: Contents) -> Figures:
    """Performance against how often components adapt."""
    return against(contents, "adapt_every", "epochs from one adaptation to the next")


def _legend_below(axis: Axes) -> None:
    """Where it covers nothing, however many lines there are."""
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.28), fontsize=6)


def _without(group: Group, option: str) -> str:
    """The method's label without this setting (and the size of replay, which goes with the data's)."""
    label = re.sub(rf" ?\b({option}|replay_size)=[^ \]]+", "", group.label)
    return label.replace(" []", "").replace("[ ", "[")


# --- over the stream --------------------------------------------------------------------------------------


def curves(contents: Contents) -> Figures:
    """Learning curves of all tasks."""
    for stream in contents.counted_streams:
        groups = contents.on(stream)
        figure, axes = grid(len(groups), 4, 1.7)
        for axis, group in zip(axes, groups, strict=True):
            curves = contents.mean_curves(group)
            (_each_task if len(curves.columns) <= LINES else _all_tasks)(axis, curves)
            axis.set(title=broken(group.label), xlabel="epochs of all tasks")
        limits = np.array([axis.get_ylim() for axis in axes])
        for axis in axes:
            axis.set_ylim(limits.min(), limits.max())
        axes[0].set_ylabel(groups[0].unit_name)
        yield f"curves-{stream}", figure


def _each_task(axis: Axes, curves: pd.DataFrame) -> None:
    shades = matplotlib.colormaps["viridis"](np.linspace(0, 0.9, len(curves.columns)))
    for place, shade in zip(curves.columns, shades, strict=True):
        line = curves[place].dropna()
        mark = "." if len(line) < 25 else None
        axis.plot(line.index, line, color=shade, linewidth=0.9, marker=mark, markersize=3)


def _all_tasks(axis: Axes, curves: pd.DataFrame) -> None:
    """The mean over the tasks so far, and the middle half of them."""
    some = curves.iloc[spread(len(curves), POINTS)]
    low, high = some.quantile(0.25, axis=1), some.quantile(0.75, axis=1)
    axis.fill_between(some.index, low, high, color=COLOURS[0], alpha=0.2, linewidth=0)
    axis.plot(some.index, some.mean(axis=1), color=COLOURS[0], linewidth=0.9)


def transfer(contents: Contents) -> Figures:
    """The transfer matrix: task trained x task evaluated."""
    for stream in contents.counted_streams:
        groups = contents.on(stream)
        matrices = [contents.mean_after(group) for group in groups]
        figure, axes = grid(len(groups), 4, 1.8)
        low, high = (float(f([f(matrix) for matrix in matrices])) for f in (np.nanmin, np.nanmax))
        for axis, group, matrix in zip(axes, groups, matrices, strict=True):
            end = len(matrix) + 0.5
            image = axis.imshow(
                matrix, **HEAT, vmin=low, vmax=high, aspect="equal", extent=(0.5, end, end, 0.5)
            )
            axis.set(title=broken(group.label), xlabel="task evaluated")
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
