"""The effect of what the paper leaves open about the Objects pictures.

    python -m benchmarks.objects_drawing            # all readings, compositional ER, 5 seeds
    python -m benchmarks.objects_drawing "tab"

Prints final accuracy in the settings random (paper: 90.9) and, where that is within 4 points of the
paper's, top-left (paper: 84.9).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import torch

import piaget
from benchmarks.command import ended
from piaget.errors import SettingError
from piaget.lab.final_table import lines, with_error
from piaget.streams.objects import Drawing, Objects

READINGS = {
    "tab colours, wrapping (default)": Drawing(),
    "tab colours, cut off": Drawing(wraps=False),
    "web colours, cut off": Drawing("web", wraps=False),
    "web colours, wrapping": Drawing("web"),
    "web colours, cut off, whole pixels": Drawing("web", wraps=False, whole_pixels=True),
    "web colours, cut off, size is the radius": Drawing("web", wraps=False, extent=2),
    "web colours, cut off, rotated": Drawing("web", wraps=False, rotated=True),
    "web colours, cut off, dark grey background": Drawing("web", wraps=False, background=20),
    "web colours, cut off, grey background": Drawing("web", wraps=False, background=128),
    "web colours, cut off, white background": Drawing("web", wraps=False, background=255),
    "web colours, cut off, white, size is the radius": Drawing("web", wraps=False, background=255, extent=2),
}


def accuracy(
    drawing: Drawing, setting: str, algorithm: str = "compositional", seeds: int = 5
) -> tuple[float, float]:
    streams = [Objects(seed, setting, drawing) for seed in range(seeds)]
    cohort = piaget.Cohort(
        [piaget.Learner(adaptation=piaget.Replay(5), algorithm=algorithm, seed=s) for s in range(seeds)]
    )
    for i in range(len(streams[0])):
        rows = cohort.learn([s[i] for s in streams], evaluate_on=[s[: i + 1] for s in streams])
    (line,) = lines(row for run in rows for row in run)
    return line.mean, line.error


def readings(wanted: Sequence[str]) -> dict[str, Drawing]:
    """Those with one of these texts in their names; all, if none is wanted."""
    for text in wanted:
        if not any(text in name for name in READINGS):
            raise SettingError(f"no reading is called like {text!r}; there are: {'; '.join(READINGS)}")
    return {
        name: drawing
        for name, drawing in READINGS.items()
        if not wanted or any(text in name for text in wanted)
    }


def show(wanted: Sequence[str]) -> None:
    """A line for each reading."""
    torch.set_num_threads(1)
    for name, drawing in readings(wanted).items():
        random = accuracy(drawing, "random")
        near = abs(random[0] - 90.9) <= 4
        top_left = with_error(*accuracy(drawing, "top-left")) if near else ""
        print(f"| {name} | {with_error(*random)} | {top_left} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command, and its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.objects_drawing",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("wanted", nargs="*", metavar="TEXT", help="only readings with it in their names")
    options = parser.parse_args(arguments)
    return ended("benchmarks.objects_drawing", lambda: show(options.wanted))


if __name__ == "__main__":
    raise SystemExit(main())
