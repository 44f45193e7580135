"""Figures of components: structures, their life, candidates, reuse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from piaget.report import metrics
from piaget.report.canvas import COLOURS, MARKS, WIDTH, Figures, broken, grid, style
from piaget.report.contents import Contents
from piaget.report.groups import Group
from piaget.report.statistics import mean_and_error

MAPS = 40  # columns of structures in a line


def structures(contents: Contents) -> Figures:
    """Component x depth for every task of each method's first run; and birth, reuse and age of components."""
    for one in contents.groups:
        run = one.first.name
        found = contents.weights(run)
        if not found:
            continue
        most = max(len(matrix) for _, matrix in found)
        figure = _maps(found, most)
        figure.suptitle(f"{one.stream}: {one.label}, seed {one.first.seed}", fontsize=8)
        yield f"structures-{_slug(one)}", figure
        yield f"life-{_slug(one)}", _life(contents, one, found, most)


def _maps(found: Sequence[tuple[str, np.ndarray]], most: int) -> Figure:
    """Component x depth of each task, side by side; in one picture a line, since many axes take long to
    draw."""
    depth = found[0][1].shape[1]
    a_line = max(1, min(len(found), MAPS // depth))
    lines = [found[i : i + a_line] for i in range(0, len(found), a_line)]
    figure = Figure(figsize=(WIDTH, 0.5 + (0.4 + 0.13 * most) * len(lines)))
    axes = figure.subplots(len(lines), 1, squeeze=False)[:, 0]
    low = min(0.0, *(float(matrix.min()) for _, matrix in found))
    high = max(float(matrix.max()) for _, matrix in found)
    for axis, line in zip(axes, lines, strict=True):
        picture = np.full((most, a_line * (depth + 1) - 1), np.nan)
        for place, (_, matrix) in enumerate(line):
            picture[: len(matrix), place * (depth + 1) : place * (depth + 1) + depth] = matrix
        image = axis.imshow(
            picture, vmin=low, vmax=high, cmap="viridis", aspect="auto", interpolation="nearest"
        )
        middles = [place * (depth + 1) + (depth - 1) / 2 for place in range(len(line))]
        axis.set_xticks(
            middles, [task if len(task) < 12 else f"{task[:10]}…" for task, _ in line], fontsize=6
        )
        axis.set_yticks(range(0, most, 1 + most // 8))
        axis.set_ylabel("component")
        axis.spines[:].set_visible(False)
        axis.tick_params(length=0)
    axes[-1].set_xlabel("task; within it, depth from first to last")
    figure.colorbar(image, ax=axes, label="weight", shrink=0.8)
    return figure


def _life(contents: Contents, one: Group, found: Sequence[tuple[str, np.ndarray]], most: int) -> Figure:
    """How much each task uses each component, from its birth on; crosses: the task needs it (removal)."""
    run, tasks = one.first.name, [task for task, _ in found]
    use = np.full((most, len(tasks)), np.nan)
    for j, (_, matrix) in enumerate(found):
        use[: len(matrix), j] = np.abs(matrix).mean(1)
    figure = Figure(figsize=(min(WIDTH, 1.6 + 0.22 * len(tasks)), 0.9 + 0.22 * most))
    axis = figure.subplots()
    image = axis.imshow(use, cmap="viridis", aspect="auto", vmin=0)
    removed = contents.removals_of(run)
    removed = removed[removed["reused"] & removed["evaluated"].isin(tasks)]
    for task, component in zip(removed["evaluated"], removed["component"], strict=True):
        axis.plot(tasks.index(task), component, "x", color="white", markersize=4)
    for component, birth in enumerate(contents.births(run, tasks, most)):
        axis.plot([birth - 0.45] * 2, [component - 0.45, component + 0.45], color=COLOURS[1], linewidth=2)
    axis.set(
        xlabel="task",
        ylabel="component",
        title=f"{one.stream}: {one.label}, seed {one.first.seed}\n| born   x needed by the task",
    )
    axis.set_xticks(range(len(tasks)), [str(j + 1) for j in range(len(tasks))])
    axis.set_yticks(range(most))
    figure.colorbar(image, ax=axis, label="mean weight")
    return figure


def candidates(contents: Contents) -> Figures:
    """Validation scores of every candidate component, with and without it."""
    for stream in contents.streams:
        groups = [one for _, one in contents.on(stream)]
        tried = contents.candidates
        shown = [one for one in groups if tried["run"].isin(one.names).any()]
        if not shown:
            continue
        figure, axes = grid(len(shown), 4, WIDTH / min(4, max(2, len(shown))), 2.0)
        for axis, one in zip(axes, shown, strict=True):
            own = tried[tried["run"].isin(one.names)]
            for kept, mark, colour in ((True, "o", COLOURS[0]), (False, "x", COLOURS[1])):
                points = own[own["kept"] == kept]
                axis.plot(
                    points["without"] * one.unit,
                    points["with_it"] * one.unit,
                    mark,
                    color=colour,
                    markersize=4,
                    label="kept" if kept else "discarded",
                )
            ends = (
                np.array([own[["without", "with_it"]].min().min(), own[["without", "with_it"]].max().max()])
                * one.unit
            )
            axis.plot(ends, ends, color="black", linewidth=0.6)
            factor = 1.05 if one.higher_is_better else 0.95
            axis.plot(ends, factor * ends, color="black", linewidth=0.6, linestyle="--")
            axis.set(title=broken(one.label), xlabel="without it")
        axes[0].set_ylabel("with it (validation)")
        axes[0].legend()
        yield f"candidates-{stream}", figure


def reuse(contents: Contents) -> Figures:
    """How many tasks need each component."""
    lines = metrics.reuse(contents.table)
    for stream in contents.streams:
        groups = [one for _, one in contents.on(stream)]
        shown = [one for one in groups if lines["run"].isin(one.names).any()]
        if not shown:
            continue
        figure = Figure(figsize=(WIDTH / 2, 2.4))
        axis = figure.subplots()
        for i, one in enumerate(shown):
            own = lines[lines["run"].isin(one.names)]
            numbers = [(rank, *mean_and_error(list(values))) for rank, values in own.groupby("rank")["tasks"]]
            ranks, means, errors = zip(*numbers, strict=True)
            axis.errorbar(
                ranks,
                means,
                np.nan_to_num(errors),
                marker=MARKS[i % 8],
                markersize=3,
                label=one.label,
                elinewidth=0.8,
                **style(i),
            )
        axis.set(
            xlabel="component, most reused first", ylabel="tasks that need it", title=stream, ylim=(0, None)
        )
        axis.legend()
        yield f"reuse-{stream}", figure


def _slug(one: Group) -> str:
    words = [one.stream, *one.method.split("/"), *one.variant.split()]
    return "-".join(word.replace("=", "-") for word in words)
