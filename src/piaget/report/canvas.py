"""How figures look: fit to print, and told apart by the colour-blind."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

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
    "text.parse_math": False,
    "pdf.fonttype": 42,
    "svg.hashsalt": "piaget",
    "figure.constrained_layout.use": True,
}
# Told apart by the colour-blind (Okabe and Ito, 2008); lines also by their dashes, points by their marks.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A6D00")
DASHES = ("-", "--", "-.", ":")
MARKS = "osD^v<>X"
WIDTH = 6.9  # inches: a page's text
HEAT: dict[str, Any] = {"cmap": "viridis", "interpolation": "nearest"}


def style(i: int) -> dict[str, Any]:
    """How the i-th line looks."""
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i // len(COLOURS) % len(DASHES)]}


def marked(i: int) -> dict[str, Any]:
    """How the i-th line looks if its points are marked."""
    return style(i) | {"marker": MARKS[i % len(MARKS)], "markersize": 3}


def grid(count: int, columns: int, height: float) -> tuple[Figure, list[Axes]]:
    """`count` panels of one size, together as wide as a page's text; height in inches, of one panel."""
    width = WIDTH / min(columns, max(2, count))
    columns = max(1, min(columns, count))
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(width * columns, height * rows))
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[count:]:
        axis.set_visible(False)
    return figure, list(axes[:count])


def broken(label: str) -> str:
    """In several lines, as a panel's title."""
    return textwrap.fill(label, 22)
