"""The paper's pictures of what components do: a digit as one component's intensity goes from 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from piaget.errors import PiagetError
from piaget.report.canvas import STYLE, WIDTH, Figures
from piaget.report.explorer import OpenedRun, is_pixels, open_run, pictures
from piaget.report.groups import Group

STEPS = 8
LAST = 2  # tasks that are shown, as in the paper


def figures(groups: Sequence[Group], data_dir: str | None) -> Figures:
    """One a component: the methods beside each other, the last two tasks below each other."""
    opened = [(group, run) for group in groups if (run := _open(group, data_dir)) is not None]
    for component in range(max((run.learner.components for _, run in opened), default=0)):
        with matplotlib.rc_context(STYLE):
            yield f"component-{component}", _figure(opened, component)


def _open(group: Group, data_dir: str | None) -> OpenedRun | None:
    run = next((run for run in group.runs if run.done), None)
    if run is None or run.configuration["settings"].get("decoder") != "shared":
        return None
    try:
        opened = open_run(run, data_dir)
    except (PiagetError, OSError):
        return None  # the explorer, which needs the same, says why
    return opened if is_pixels(opened) else None


def _figure(opened: Sequence[tuple[Group, OpenedRun]], component: int) -> Figure:
    depth = max(run.learner.settings.depth for _, run in opened)
    figure = Figure(figsize=(WIDTH, WIDTH * LAST * depth / (STEPS * max(2, len(opened))) * 1.15))
    axes = figure.subplots(LAST, len(opened), squeeze=False)
    intensities = [float(a) for a in np.linspace(0, 1, STEPS)]
    for column, (group, run) in enumerate(opened):
        for row, task in enumerate(run.tasks[-LAST:]):
            axis = axes[row, column]
            if component < run.learner.components:
                drawn = pictures(run, task, component, intensities)  # (depths, steps, rows, columns)
                axis.imshow(
                    np.block([list(line) for line in drawn]),
                    cmap="gray",
                    vmin=0,
                    vmax=1,
                    interpolation="nearest",
                )
                middles = [(d + 0.5) * drawn.shape[2] for d in range(len(drawn))]
                axis.set_yticks(middles, [str(d + 1) for d in range(len(drawn))])
            axis.set_xticks([])
            axis.set(xlabel="0 ← intensity → 1", ylabel=f"{task.name}\ndepth")
            if row == 0:
                axis.set_title(group.label)
    figure.suptitle(f"component {component}", fontsize=8)
    return figure
