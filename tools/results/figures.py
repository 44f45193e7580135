"""The three figures of the paper's main result: gains, learning curves, forgetting."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from piaget.lab.final_table import mean_and_error
from piaget.method.choices import FREEZING, adaptation_of
from piaget.paper.names import ALGORITHMS, BASES, PAPER_ALGORITHMS
from piaget.paper.presets import IMAGES, OBJECTS
from piaget.report import metrics
from piaget.report.canvas import COLOURS, WIDTH, marked
from piaget.report.contents import Contents
from piaget.report.groups import Group
from piaget.report.selection import Selection, final, forward
from piaget.report.statistics import spread

ADAPTING = ("er", "ewc", "nft")
SHORT = {
    "dynamic": "D+C",
    "compositional": "C",
    "joint": "J",
    "no-components": "NC",
    "no-components-frozen": "NC\nfrozen",
    "alone": "alone",
    "recommended": "rec.",
}
PLACES = 10  # tasks of a stream in the figure of forgetting, as in the paper


@dataclass(frozen=True)
class Row:
    """Panels beside each other, one an adaptation: means over streams."""

    structure: str
    streams: tuple[str, ...]
    title: str

    def groups(self, selection: Selection, base: str, algorithm: str) -> dict[str, Group]:
        """Those of the streams on which the method was run. What adapts nothing is beside all adaptations."""
        base = adaptation_of(algorithm) if algorithm in FREEZING else base
        found = {stream: selection.find(stream, self.structure, base, algorithm) for stream in self.streams}
        return {stream: chosen.group for stream, chosen in found.items() if chosen is not None}

    def everywhere(self, selection: Selection) -> list[str]:
        """The streams on which all of the paper's methods were run: means over others would not compare."""
        sets = [
            set(self.groups(selection, base, algorithm))
            for base in ADAPTING
            for algorithm in PAPER_ALGORITHMS
        ]
        return [stream for stream in self.streams if all(stream in found for found in sets)]


PICTURES = Row("soft-ordering", IMAGES, "soft ordering")
ROWS = (PICTURES, Row("soft-gating", IMAGES, "soft gating"), Row("soft-ordering", OBJECTS, "Objects"))


def _shown(selection: Selection) -> dict[Row, list[str]]:
    """The rows for which there is something to show, with their streams."""
    found = {row: row.everywhere(selection) for row in ROWS}
    return {row: streams for row, streams in found.items() if streams}


def _words(streams: list[str]) -> str:
    """Names of streams; of several settings of one data set, what they have in common once."""
    if len(streams) > 1 and set(streams) <= set(OBJECTS):
        return ", ".join(stream.removeprefix("objects-") for stream in streams)
    return ", ".join(streams)


def gains(selection: Selection) -> Figure | None:
    """By how many percent methods are better than no-components NFT: mean over streams."""
    rows = _shown(selection)
    if not rows:
        return None
    contents = selection.contents
    values = {"forward": contents.gains(forward(contents)), "final": contents.gains(final(contents))}
    figure = Figure(figsize=(WIDTH, 0.5 + 1.9 * len(rows)))
    axes = figure.subplots(len(rows), len(ADAPTING), squeeze=False, sharey="row")
    for panels, (row, streams) in zip(axes, rows.items(), strict=True):
        for axis, base in zip(panels, ADAPTING, strict=True):
            shown = _bars(axis, selection, row, base, streams, values)
            axis.axhline(0, color="black", linewidth=0.6)
            axis.set_xticks(range(len(shown)), [SHORT[name] for name in shown])
            axis.set_title(f"{BASES[base]}, {row.title}\n{_words(streams)}")
        panels[0].set_ylabel("gain over NFT No Comp. in %")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), ncols=2, loc="outside lower right")
    return figure


def _bars(
    axis: object,
    selection: Selection,
    row: Row,
    base: str,
    streams: list[str],
    values: dict[str, pd.Series],
) -> list[str]:
    """Draws one panel; returns the algorithms that are in it."""
    shown = []
    for algorithm in SHORT:
        groups = row.groups(selection, base, algorithm)
        if all(stream in groups for stream in streams):
            shown.append(algorithm)
    for i, (name, gained) in enumerate(values.items()):
        numbers = []
        for algorithm in shown:
            groups = row.groups(selection, base, algorithm)
            pairs = [mean_and_error(list(groups[stream].of(gained).values())) for stream in streams]
            mean = float(np.mean([mean for mean, _ in pairs]))
            numbers.append((mean, math.hypot(*(error for _, error in pairs)) / len(pairs)))
        axis.bar(  # type: ignore[attr-defined]
            np.arange(len(shown)) + 0.4 * i - 0.2,
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
    return shown


def curves(selection: Selection) -> Figure | None:
    """Learning curves of ER with soft ordering, one line a task: mean over mnist and fashion, and seeds."""
    contents = selection.contents
    panels = {}
    for algorithm in PAPER_ALGORITHMS:
        found = PICTURES.groups(selection, "er", algorithm)
        streams = [stream for stream in ("mnist", "fashion") if stream in found]
        if streams:
            lines = [contents.mean_curves(found[stream], smooth=False) for stream in streams]
            panels[algorithm] = _mean(lines), streams
    if not panels:
        return None
    figure = Figure(figsize=(WIDTH, 2.0))
    axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axis, (algorithm, (mean, streams)) in zip(axes, panels.items(), strict=True):
        mark = "." if len(mean) < 25 else None  # evaluated at the end of tasks only
        for place in mean.columns:
            line = mean[place].dropna()
            colour = COLOURS[int(place) % len(COLOURS)]
            axis.plot(line.index, line, color=colour, linewidth=0.8, marker=mark, markersize=3)
        axis.set(title=f"ER {ALGORITHMS[algorithm]}\n{', '.join(streams)}", xlabel="epochs of all tasks")
    axes[0].set_ylabel("accuracy in %")
    return figure


def _mean(lines: list[pd.DataFrame]) -> pd.DataFrame:
    """Over streams, at the epochs that all of them have."""
    common = reduce(pd.Index.intersection, (line.index for line in lines))
    of_all = [line.loc[common] for line in lines]
    return sum(of_all[1:], of_all[0]) / len(of_all)


def forgetting(selection: Selection) -> Figure | None:
    """First score / final score against the place of a task, mean over streams."""
    rows = _shown(selection)
    if not rows:
        return None
    figure = Figure(figsize=(WIDTH, 0.5 + 1.8 * len(rows)))
    axes = figure.subplots(len(rows), len(ADAPTING), squeeze=False)
    for panels, (row, streams) in zip(axes, rows.items(), strict=True):
        for axis, base in zip(panels, ADAPTING, strict=True):
            for algorithm in PAPER_ALGORITHMS:
                groups = row.groups(selection, base, algorithm)
                ratios = [_ratios(selection.contents, groups[stream]) for stream in streams]
                mean = np.mean([line[spread(len(line), PLACES)] for line in ratios if len(line) >= PLACES], 0)
                if np.ndim(mean):
                    places = np.arange(1, len(mean) + 1)
                    axis.plot(
                        places, mean, label=ALGORITHMS[algorithm], **marked(list(SHORT).index(algorithm))
                    )
            axis.axhline(1, color="black", linewidth=0.6)
            axis.set(title=f"{BASES[base]}, {row.title}", xlabel="task")
        panels[0].set_ylabel("first / final accuracy")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), ncols=4, loc="outside lower center")
    return figure


def _ratios(contents: Contents, group: Group) -> np.ndarray:
    """Of the tasks in their order, mean over seeds."""
    lines = contents.compute(metrics.forgetting_ratio)
    return lines[lines["run"].isin(group.names)].groupby("j")["ratio"].mean().to_numpy()


Draw = Callable[[Selection], Figure | None]

FIGURES: dict[str, tuple[Draw, str]] = {
    "gains": (
        gains,
        "Gain over the final accuracy of NFT without components, right after a task was learned (forward) "
        "and after all tasks (final): mean over the streams on which all methods were run, with standard "
        "errors. D+C: dynamic + compositional, C: compositional, J: joint, NC: no components, rec.: "
        "recommended.",
    ),
    "curves": (
        curves,
        "Accuracy of each task while it and later ones are learned, ER with soft ordering: one line a task, "
        "mean over streams and seeds.",
    ),
    "forgetting": (
        forgetting,
        "Accuracy right after a task was learned, divided by its final one: 1 means that nothing was "
        "forgotten. Mean over streams and seeds; of longer streams, ten tasks from the first to the last.",
    ),
}
