"""The paper's pictures of what components do: a digit as one component's intensity goes from 0 to 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from piaget.errors import PiagetError
from piaget.report.canvas import STYLE, WIDTH
from piaget.report.explorer import Opened, is_pixels, open_run, pictures
from piaget.report.groups import Group

STEPS = 8
LAST = 2  # tasks that are shown, as in the paper


def figures(groups: Sequence[Group], data_dir: str | None) -> Iterator[tuple[str, Figure]]:
    """One a component: the methods beside each other, the last two tasks below each other."""
    opened = [found for one in groups if (found := _open(one, data_dir)) is not None]
    if not opened:
        return
    for component in range(max(found.learner.components for _, found in opened)):
        with matplotlib.rc_context(STYLE):
            yield f"component-{component}", _figure(opened, component)


def _open(one: Group, data_dir: str | None) -> tuple[Group, Opened] | None:
    run = next((run for run in one.runs if run.status == "done"), None)
    if run is None or run.configuration["settings"].get("decoder") != "shared":
        return None
    try:
        found = open_run(run, data_dir)
    except (PiagetError, OSError):
        return None  # the explorer, which needs the same, says why
    return (one, found) if is_pixels(found) else None


def _figure(opened: Sequence[tuple[Group, Opened]], component: int) -> Figure:
    depth = max(found.learner.settings.depth for _, found in opened)
    figure = Figure(figsize=(WIDTH, WIDTH * LAST * depth / (STEPS * max(2, len(opened))) * 1.15))
    axes = figure.subplots(LAST, len(opened), squeeze=False)
    intensities = [float(a) for a in np.linspace(0, 1, STEPS)]
    for column, (one, found) in enumerate(opened):
        for row, task in enumerate(found.tasks[-LAST:]):
            axis = axes[row, column]
            if component < found.learner.components:
                drawn = pictures(found, task, component, intensities)  # (depths, steps, rows, columns)
                strip = np.concatenate([np.concatenate(list(line), 1) for line in drawn], 0)
                axis.imshow(strip, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
                axis.set_yticks(
                    [(d + 0.5) * drawn.shape[2] for d in range(len(drawn))],
                    [str(d + 1) for d in range(len(drawn))],
                )
            axis.set_xticks([])
            axis.set(xlabel="0 ← intensity → 1", ylabel=f"{task.name}\ndepth")
            if row == 0:
                axis.set_title(one.label)
    figure.suptitle(f"component {component}", fontsize=8)
    return figure
