"""Pictures of a stream's first tasks."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from piaget.data.tasks import Stream, Task
from piaget.extras import need

SAMPLES = 12  # pictures a task
ROWS = 60  # samples a heat map


def draw(stream: Stream, path: Path, tasks: int = 4) -> None:
    """One strip a task: pictures, or a heat map of samples x features, ordered by their labels."""
    need("matplotlib", "pictures of streams")
    from matplotlib.figure import Figure  # without the global state of pyplot

    shown = [stream[i] for i in range(min(tasks, len(stream)))]
    figure = Figure(figsize=(9, 1.25 * len(shown)), layout="constrained")
    strips = figure.subfigures(len(shown), 1, squeeze=False)[:, 0]
    for task, strip in zip(shown, strips, strict=True):
        strip.suptitle(_title(task), fontsize=9, x=0.01, ha="left")
        if _is_pixels(task):
            _draw_pixels(task, strip)
        elif len(task.input_shape) == 3:
            _draw_pictures(task, strip)
        else:
            _draw_features(task, strip)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that the font lacks
        figure.savefig(path, dpi=100)


def _title(task: Task) -> str:
    sizes = ", ".join(f"{len(split)} {name}" for name, split in task.splits())
    if task.kind == "regression":
        return f"{task.name}: regression; {sizes}"
    names = ", ".join(str(label) for label in (task.labels or range(task.classes))[:5])
    return f"{task.name}: {names}{', ...' if task.classes > 5 else ''}; {sizes}"


def _is_pixels(task: Task) -> bool:
    """Coordinates to ink: the task is itself a picture."""
    return task.input_shape == (2,) and task.kind == "binary"


def _draw_pictures(task: Task, strip: Any) -> None:
    """The first pictures of each class (of the first classes), in order of their labels."""
    classes = min(task.classes, SAMPLES)
    each = SAMPLES // classes
    rows = torch.cat([torch.nonzero(task.train.y == c).flatten()[:each] for c in range(classes)])
    for axes, x in zip(strip.subplots(1, SAMPLES, squeeze=False)[0], task.train.x[rows], strict=False):
        picture = (x / task.scaling.divisor).permute(1, 2, 0).numpy()
        axes.imshow(picture.squeeze(), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    for axes in strip.axes:
        axes.axis("off")


def _draw_pixels(task: Task, strip: Any) -> None:
    side = int(np.sqrt(len(task.train)))
    image = torch.zeros(side, side)
    place = (task.train.x * (side - 1)).round().long()
    image[place[:, 0], place[:, 1]] = task.train.y.float()
    axes = strip.subplots()
    axes.imshow(image.numpy(), cmap="gray")
    axes.axis("off")


def _draw_features(task: Task, strip: Any) -> None:
    """Samples (columns, ordered by label) x features (rows), with the labels above."""
    order = torch.argsort(task.train.y, stable=True)
    order = order[torch.linspace(0, len(order) - 1, min(ROWS, len(order))).long()]
    x, y = task.train.x[order].flatten(1).float(), task.train.y[order]
    x = (x - x.mean(0)) / x.std(0).clamp_min(1e-6)
    above, below = strip.subplots(2, 1, gridspec_kw={"height_ratios": [1, 5]})
    above.imshow(y[None].float().numpy(), aspect="auto", cmap="viridis")
    below.imshow(x.T.numpy(), aspect="auto", cmap="RdBu_r", vmin=-2, vmax=2, interpolation="nearest")
    for axes in (above, below):
        axes.set_xticks([])
        axes.set_yticks([])
    above.set_ylabel("label", rotation=0, ha="right", va="center", fontsize=7)
    below.set_ylabel(f"{x.shape[1]} features", rotation=0, ha="right", va="center", fontsize=7)
