"""The report's figures, fit to print: one function each, from `Contents` to matplotlib figures by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from piaget.lab.table import ALGORITHMS, BASES
from piaget.report import metrics
from piaget.report.contents import Contents
from piaget.report.groups import Group
from piaget.report.statistics import mean_and_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Figures = Iterator[tuple[str, Figure]]
STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "svg.hashsalt": "piaget",
    "figure.constrained_layout.use": True,
}
# Told apart by the colour-blind (Okabe and Ito, 2008); lines also by their dashes, points by their marks.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A6D00")
DASHES = ("-", "--", "-.", ":")
MARKS = "osD^v<>X"
WIDTH = 6.9  # inches: a page's text
SMOOTH = 5  # evaluations that a point of a learning curve is the mean of


def style(i: int) -> dict[str, Any]:
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i // len(COLOURS) % len(DASHES)]}


def grid(count: int, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """`count` panels of one size; width and height in inches, of one panel."""
    columns = max(1, min(columns, count))
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(width * columns, height * rows))
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[count:]:
        axis.set_visible(False)
    return figure, list(axes[:count])


# --- performance ------------------------------------------------------------------------------------------


def bars(contents: Contents) -> Figures:
    """Forward and final performance of each stream, and gains over no-components NFT, as in the paper."""
    numbers = {"forward": contents.forward, "final": contents.final}
    gains = {name: contents.gains(values) for name, values in numbers.items()}
    for stream in contents.streams:
        groups = [one for _, one in contents.on(stream)]
        bars = {name: [one.summary(values, one.unit) for one in groups] for name, values in numbers.items()}
        yield f"bars-{stream}", _bars([one.label for one in groups], bars, stream, _unit(groups[0]))
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
    figure = Figure(figsize=(min(WIDTH, 2.0 + 0.55 * len(labels)), 2.6))
    axis = figure.subplots()
    for i, (name, numbers) in enumerate(bars.items()):
        axis.bar(
            np.arange(len(labels)) + 0.4 * i - 0.2,
            [mean for mean, _ in numbers],
            0.38,
            label=name,
            yerr=np.nan_to_num([error for _, error in numbers]),
            error_kw={"linewidth": 0.8},
            color=COLOURS[i],
            hatch="///" if i == 0 else None,
            edgecolor="white",
            linewidth=0,
        )
    axis.axhline(0, color="black", linewidth=0.6)
    axis.set_xticks(range(len(labels)), [_broken(label) for label in labels], rotation=90)
    axis.set(ylabel=unit, title=title)
    figure.legend(ncols=2, loc="outside upper right")
    return figure


def _broken(label: str) -> str:
    return label.replace(" [", "\n[")


def ratios(contents: Contents) -> Figures:
    lines = metrics.forgetting_ratio(contents.table)
    for stream in contents.streams:
        groups = [one for _, one in contents.on(stream)]
        bases = list(dict.fromkeys(one.runs[0].parts[1] for one in groups))
        figure, axes = grid(len(bases), 3, WIDTH / min(3, max(2, len(bases))), 2.3)
        for axis, base in zip(axes, bases, strict=True):
            for i, one in enumerate(g for g in groups if g.runs[0].parts[1] == base):
                own = lines[lines["run"].isin([run.name for run in one.runs])]
                places = own.groupby("j")["ratio"].mean()
                axis.plot(
                    places.index + 1, places, marker=MARKS[i % 8], markersize=3, label=one.label, **style(i)
                )
            axis.axhline(1, color="black", linewidth=0.6)
            axis.set(title=BASES.get(base, base), xlabel="task")
            axis.legend()
        axes[0].set_ylabel("first / final score")
        yield f"forgetting-{stream}", figure


def against(contents: Contents, option: str, label: str) -> Figures:
    """Final performance against a setting that runs differ in."""
    for stream in contents.streams:
        groups = [one for _, one in contents.on(stream)]
        lines: dict[str, list[tuple[float, Group]]] = {}
        for one in groups:
            value = one.runs[0].changes.get(option)
            others = [f"{k}={v}" for k, v in one.runs[0].changes.items() if k not in (option, "replay_size")]
            if isinstance(value, int | float):
                name = " ".join([_method_label(one), *others])
                lines.setdefault(name, []).append((value, one))
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
        for i, one in enumerate((g for g in groups if not g.runs[0].changes), len(lines)):
            if option == "adapt_every" and one.runs[0].parts[2] in ("joint", "no-components"):
                axis.axhline(one.summary(contents.final, one.unit)[0], label=one.label, **style(i))
        axis.set(xscale="log", xlabel=label, title=stream, ylabel=_unit(groups[0]))
        ticks = sorted({value for points in lines.values() for value, _ in points})
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
        axis.legend()
        yield f"{option.replace('_', '-')}-{stream}", figure


def train_sizes(contents: Contents) -> Figures:
    return against(contents, "train_size", "training samples a task")


def frequencies(contents: Contents) -> Figures:
    return against(contents, "adapt_every", "epochs from one adaptation to the next")


def _method_label(one: Group) -> str:
    _, base, algorithm = one.runs[0].parts
    return f"{BASES.get(base, base)} {ALGORITHMS.get(algorithm, algorithm)}"


def _unit(one: Group) -> str:
    return "accuracy in %" if one.metric == "accuracy" else one.metric


# --- over the stream --------------------------------------------------------------------------------------


def mean_curves(contents: Contents, one: Group) -> pd.DataFrame:
    """Scores of the j-th task (columns) against epochs of the stream (index), mean over seeds."""
    lengths = {run.name: epochs_of(contents.table, run.name, run.configuration["epochs"]) for run in one.runs}
    own = contents.table[contents.table["run"].isin(lengths)]
    lines = metrics.epochs_of_stream(own, lengths)
    return lines.pivot_table(index="at", columns="j", values="value", aggfunc="mean") * one.unit


def epochs_of(table: pd.DataFrame, run: str, epochs: int) -> list[int]:
    """How many epochs each trained task took, as far as its rows tell."""
    lines = metrics.scores(table[table["run"] == run])
    longest = lines.groupby("trained", sort=False)["epoch"].max()
    return [
        int(max(longest.iloc[i], epochs)) if i < len(longest) - 1 else int(longest.iloc[i])
        for i in range(len(longest))
    ]


def smoothed(curves: pd.DataFrame) -> pd.DataFrame:
    """A centred moving average, where there are enough points for it to leave the shape as it is."""
    if len(curves) < 4 * SMOOTH:
        return curves
    mean = curves.rolling(SMOOTH, center=True, min_periods=1).mean()
    return mean.where(curves.notna())


def curves(contents: Contents) -> Figures:
    for stream in contents.streams:
        groups = [one for _, one in contents.on(stream)]
        figure, axes = grid(len(groups), 4, WIDTH / min(4, max(2, len(groups))), 1.7)
        for axis, one in zip(axes, groups, strict=True):
            found = smoothed(mean_curves(contents, one))
            shades = matplotlib.colormaps["viridis"](np.linspace(0, 0.9, max(len(found.columns), 1)))
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
            axis.set_title(_broken(one.label))
        _same_range(axes)
        axes[0].set_ylabel(_unit(groups[0]))
        for axis in axes:
            axis.set_xlabel("epochs of all tasks")
        yield f"curves-{stream}", figure


def _same_range(axes: Sequence[Axes]) -> None:
    limits = [axis.get_ylim() for axis in axes]
    for axis in axes:
        axis.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))


def mean_after(contents: Contents, one: Group) -> np.ndarray:
    """a[i, j], mean over seeds: (tasks, tasks); nan where a task is not known yet."""
    lines = metrics.after(contents.table[contents.table["run"].isin([run.name for run in one.runs])])
    size = int(lines["j"].max()) + 1
    wide = lines.pivot_table(index="i", columns="j", values="value", aggfunc="mean")
    return wide.reindex(index=range(size), columns=range(size)).to_numpy() * one.unit


def transfer(contents: Contents) -> Figures:
    """The transfer matrix: task trained x task evaluated."""
    for stream in contents.streams:
        groups = [one for _, one in contents.on(stream)]
        found = [mean_after(contents, one) for one in groups]
        figure, axes = grid(len(groups), 4, WIDTH / min(4, max(2, len(groups))), 1.8)
        low, high = (float(f([f(matrix) for matrix in found])) for f in (np.nanmin, np.nanmax))
        for axis, one, matrix in zip(axes, groups, found, strict=True):
            image = axis.imshow(
                matrix, vmin=low, vmax=high, cmap="viridis", aspect="equal", interpolation="nearest"
            )
            axis.set(title=_broken(one.label), xlabel="task evaluated")
        axes[0].set_ylabel("after task")
        figure.colorbar(image, ax=axes, label=_unit(groups[0]), shrink=0.8)
        yield f"transfer-{stream}", figure


# --- components -------------------------------------------------------------------------------------------


def weights(contents: Contents, run: str) -> list[tuple[str, np.ndarray]]:
    """Each task's structure (components, depths), in the order of the stream."""
    lines = contents.structures[contents.structures["run"] == run]
    found = []
    for task, own in lines.groupby("evaluated", sort=False):
        wide = own.pivot_table(index="component", columns="depth", values="value", aggfunc="last")
        found.append((str(task), wide.to_numpy()))
    return found


def births(contents: Contents, run: str, tasks: Sequence[str], components: int) -> list[int]:
    """The place of the task with which each component came; 0 for the initial ones."""
    tried = contents.candidates
    kept = [task for task in tried[(tried["run"] == run) & tried["kept"]]["trained"] if task in tasks]
    return [0] * (components - len(kept)) + [list(tasks).index(task) for task in kept]


def structures(contents: Contents) -> Figures:
    """Component x depth for every task of each method's first run; and birth, reuse and age of components."""
    for one in contents.groups:
        run = one.runs[0].name
        found = weights(contents, run)
        if not found:
            continue
        most = max(len(matrix) for _, matrix in found)
        figure, axes = grid(len(found), 8, WIDTH / 8, 0.45 + 0.14 * most)
        high = max(float(np.abs(matrix).max()) for _, matrix in found)
        for axis, (task, matrix) in zip(axes, found, strict=True):
            filled = np.full((most, matrix.shape[1]), np.nan)
            filled[: len(matrix)] = matrix
            image = axis.imshow(
                filled, vmin=min(0.0, float(np.nanmin(filled))), vmax=high, cmap="viridis", aspect="auto"
            )
            axis.set_title(task if len(task) < 14 else f"{task[:12]}…", fontsize=6)
            axis.set_xticks([])
            axis.set_yticks(range(most) if axis is axes[0] else [])
        axes[0].set_ylabel("component")
        figure.supxlabel("depth, from first to last", fontsize=8)
        figure.colorbar(image, ax=axes, label="weight", shrink=0.8)
        figure.suptitle(f"{one.stream}: {one.label}, seed {one.runs[0].seed}", fontsize=8)
        yield f"structures-{_slug(one)}", figure
        yield f"life-{_slug(one)}", _life(contents, one, found, most)


def _life(contents: Contents, one: Group, found: Sequence[tuple[str, np.ndarray]], most: int) -> Figure:
    """How much each task uses each component, from its birth on; crosses: the task needs it (removal)."""
    run, tasks = one.runs[0].name, [task for task, _ in found]
    use = np.full((most, len(tasks)), np.nan)
    for j, (_, matrix) in enumerate(found):
        use[: len(matrix), j] = np.abs(matrix).mean(1)
    figure = Figure(figsize=(min(WIDTH, 1.6 + 0.22 * len(tasks)), 0.9 + 0.22 * most))
    axis = figure.subplots()
    image = axis.imshow(use, cmap="viridis", aspect="auto", vmin=0)
    removed = contents.removals[(contents.removals["run"] == run) & contents.removals["reused"]]
    for task, component in zip(removed["evaluated"], removed["component"], strict=True):
        axis.plot(tasks.index(task), component, "x", color="white", markersize=4)
    for component, birth in enumerate(births(contents, run, tasks, most)):
        axis.plot([birth - 0.45] * 2, [component - 0.45, component + 0.45], color=COLOURS[1], linewidth=2)
    axis.set(xlabel="task", ylabel="component", title=f"{one.stream}: {one.label}, seed {one.runs[0].seed}")
    axis.set_xticks(range(len(tasks)), [str(j + 1) for j in range(len(tasks))])
    axis.set_yticks(range(most))
    figure.colorbar(image, ax=axis, label="mean weight")
    return figure


def candidates(contents: Contents) -> Figures:
    """Validation scores of every candidate component, with and without it."""
    for stream in contents.streams:
        groups = [one for _, one in contents.on(stream)]
        tried = contents.candidates
        shown = [one for one in groups if tried["run"].isin([run.name for run in one.runs]).any()]
        if not shown:
            continue
        figure, axes = grid(len(shown), 4, WIDTH / min(4, max(2, len(shown))), 2.0)
        for axis, one in zip(axes, shown, strict=True):
            own = tried[tried["run"].isin([run.name for run in one.runs])]
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
            axis.set(title=_broken(one.label), xlabel="without it")
        axes[0].set_ylabel("with it (validation)")
        axes[0].legend()
        yield f"candidates-{stream}", figure


def reuse(contents: Contents) -> Figures:
    """How many tasks need each component."""
    lines = metrics.reuse(contents.table)
    for stream in contents.streams:
        groups = [one for _, one in contents.on(stream)]
        shown = [one for one in groups if lines["run"].isin([run.name for run in one.runs]).any()]
        if not shown:
            continue
        figure = Figure(figsize=(WIDTH / 2, 2.4))
        axis = figure.subplots()
        for i, one in enumerate(shown):
            own = lines[lines["run"].isin([run.name for run in one.runs])]
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
