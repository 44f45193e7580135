"""Figures of components: structures, their life, candidates, reuse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from piaget.lab.final_table import mean_and_error
from piaget.report import metrics
from piaget.report.canvas import COLOURS, HEAT, WIDTH, Figures, broken, grid, marked
from piaget.report.contents import Contents, mean_use
from piaget.report.groups import Group
from piaget.report.statistics import spread

MAPS = 40  # columns of structures in a line
LINES = 6  # of structures: of more tasks, some are drawn, from the first to the last
COLUMNS = 75  # in the life of components: of more tasks, each is the mean over several


def structures(contents: Contents) -> Figures:
    """Component x depth for every task of each method's first run; and birth, reuse and age of components."""
    for group in contents.groups:
        weights = contents.weights(group.first.name)
        if not weights:
            continue
        most = max(map(len, weights.values()))
        figure = _maps(weights, most)
        figure.suptitle(_title(group), fontsize=8)
        words = [group.stream, *group.method.split("/"), *group.variant.split()]
        name = "-".join(words).replace("=", "-")
        yield f"structures-{name}", figure
        yield f"life-{name}", _life(contents, group, weights, most)


def _title(group: Group) -> str:
    return f"{group.stream}: {group.label}, seed {group.first.seed}"


def _maps(weights: Mapping[str, np.ndarray], most: int) -> Figure:
    """Component x depth of each task, side by side; in one picture a line, since many axes take long to
    draw."""
    depth = next(iter(weights.values())).shape[1]
    a_line = max(1, min(len(weights), MAPS // depth))
    tasks = [list(weights)[j] for j in spread(len(weights), LINES * a_line)]
    lines = [tasks[i : i + a_line] for i in range(0, len(tasks), a_line)]
    figure = Figure(figsize=(WIDTH, 0.5 + (0.4 + 0.13 * most) * len(lines)))
    axes = figure.subplots(len(lines), 1, squeeze=False)[:, 0]
    low = min(0.0, *(float(matrix.min()) for matrix in weights.values()))
    high = max(float(matrix.max()) for matrix in weights.values())
    for axis, line in zip(axes, lines, strict=True):
        picture = np.full((most, a_line * (depth + 1) - 1), np.nan)
        for place, task in enumerate(line):
            start = place * (depth + 1)
            picture[: len(weights[task]), start : start + depth] = weights[task]
        image = axis.imshow(picture, **HEAT, vmin=low, vmax=high, aspect="auto")
        middles = [place * (depth + 1) + (depth - 1) / 2 for place in range(len(line))]
        axis.set_xticks(middles, [task if len(task) < 12 else f"{task[:10]}…" for task in line], fontsize=6)
        axis.set_yticks(range(0, most, 1 + most // 8))
        axis.set_ylabel("component")
        axis.spines[:].set_visible(False)
        axis.tick_params(length=0)
    axes[-1].set_xlabel("task; within it, depth from first to last")
    figure.colorbar(image, ax=axes, label="weight", shrink=0.8)
    return figure


def _life(contents: Contents, group: Group, weights: Mapping[str, np.ndarray], most: int) -> Figure:
    """How much each task uses each component, from its birth on; crosses: the task needs it (removal). Of
    many tasks, a column is the mean over neighbours, and a cross says that most of them need it."""
    run, tasks = group.first.name, list(weights)
    use = np.full((most, len(tasks)), np.nan)
    for j, matrix in enumerate(weights.values()):
        use[: len(matrix), j] = mean_use(matrix)
    size = -(-len(tasks) // COLUMNS)
    use, needed = _binned(use, size), _binned(_needed(contents, run, tasks, most), size)
    columns = use.shape[1]
    figure = Figure(figsize=(min(WIDTH, 1.6 + 0.22 * columns), 0.9 + 0.22 * most))
    axis = figure.subplots()
    image = axis.imshow(use, cmap="viridis", aspect="auto", vmin=0)
    rows, places = np.nonzero(needed > 0.5)
    axis.plot(places, rows, "x", color="white", markersize=4 if size == 1 else 2)
    there = [life for life in contents.lives(run, tasks, most) if life.component is not None]
    for component, life in enumerate(there):
        x, y = [max(life.born, 0) // size - 0.45] * 2, [component - 0.45, component + 0.45]
        axis.plot(x, y, color=COLOURS[1], linewidth=2)
    whose = "the task" if size == 1 else f"most of {size} tasks"
    axis.set(xlabel="task", ylabel="component", title=f"{_title(group)}\n| born   x needed by {whose}")
    ticks = range(0, columns, max(1, columns // 25))
    axis.set_xticks(ticks, [str(k * size + 1) for k in ticks])
    axis.set_yticks(range(most))
    figure.colorbar(image, ax=axis, label="mean weight")
    return figure


def _needed(contents: Contents, run: str, tasks: Sequence[str], components: int) -> np.ndarray:
    """(components, tasks): 1, where the task needs the component, else 0."""
    removals, places = contents.of(run, metrics.removals), {task: j for j, task in enumerate(tasks)}
    lines = removals[removals["reused"] & removals["evaluated"].isin(places)]
    needed = np.zeros((components, len(tasks)))
    needed[lines["component"].to_numpy(int), lines["evaluated"].map(places).to_numpy(int)] = 1
    return needed


def _binned(values: np.ndarray, size: int) -> np.ndarray:
    """Means over so many neighbouring columns, of those that are not nan: (rows, columns / size)."""
    parts = [values[:, k : k + size] for k in range(0, values.shape[1], size)]
    counts = np.stack([np.isfinite(part).sum(1) for part in parts], 1)
    sums = np.stack([np.nansum(part, 1) for part in parts], 1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def candidates(contents: Contents) -> Figures:
    """Validation scores of each candidate, with and without it. Dashed: what it took to be kept."""
    tried = contents.compute(metrics.candidates)
    for stream in contents.streams:
        groups = [group for group in contents.on(stream) if tried["run"].isin(group.names).any()]
        if not groups:
            continue
        figure, axes = grid(len(groups), 4, 2.0)
        for axis, group in zip(axes, groups, strict=True):
            scores = tried[tried["run"].isin(group.names)]
            for kept, mark, colour in ((True, "o", COLOURS[0]), (False, "x", COLOURS[1])):
                points = scores[scores["kept"] == kept][["without", "with_it"]].to_numpy() * group.unit
                label = "kept" if kept else "discarded"
                axis.plot(points[:, 0], points[:, 1], mark, color=colour, markersize=4, label=label)
            both = scores[["without", "with_it"]] * group.unit
            ends = np.array([both.min().min(), both.max().max()])
            axis.plot(ends, ends, color="black", linewidth=0.6)
            if group.first.threshold is not None:
                factor = 1 + group.first.threshold * (1 if group.higher_is_better else -1)
                axis.plot(ends, factor * ends, color="black", linewidth=0.6, linestyle="--")
            axis.set(title=broken(group.label), xlabel="without it")
        axes[0].set_ylabel("with it (validation)")
        axes[0].legend()
        yield f"candidates-{stream}", figure


def reuse(contents: Contents) -> Figures:
    """How many tasks need each component."""
    lines = contents.compute(metrics.reuse)
    for stream in contents.streams:
        groups = [group for group in contents.on(stream) if lines["run"].isin(group.names).any()]
        if not groups:
            continue
        figure = Figure(figsize=(WIDTH / 2, 2.4))
        axis = figure.subplots()
        for i, group in enumerate(groups):
            counts = lines[lines["run"].isin(group.names)].groupby("rank")["tasks"]
            numbers = [(rank, *mean_and_error(list(tasks))) for rank, tasks in counts]
            ranks, means, errors = zip(*numbers, strict=True)
            axis.errorbar(ranks, means, np.nan_to_num(errors), label=group.label, elinewidth=0.8, **marked(i))
        axis.set(
            xlabel="component, most reused first", ylabel="tasks that need it", title=stream, ylim=(0, None)
        )
        axis.legend()
        yield f"reuse-{stream}", figure
