"""The effect of what the paper leaves open about the Objects pictures.

    python -m benchmarks.objects_drawing            # all readings, compositional ER, 5 seeds
    python -m benchmarks.objects_drawing "web, cut off"

Prints final accuracy for the settings random and top-left beside the paper's (90.9 and 84.9).
"""

from __future__ import annotations

import sys

import torch

import piaget
from piaget.lab.table import final_by_seed, mean_and_error, with_error
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


def accuracy(drawing: Drawing, setting: str, algorithm: str = "compositional", seeds: int = 5) -> str:
    streams = [Objects(seed, setting, drawing) for seed in range(seeds)]
    cohort = piaget.Cohort(
        [piaget.Learner(adaptation=piaget.Replay(5), algorithm=algorithm, seed=s) for s in range(seeds)]
    )
    for i in range(len(streams[0])):
        rows = cohort.learn([s[i] for s in streams], evaluate_on=[s[: i + 1] for s in streams])
    (finals,) = final_by_seed(row for run in rows for row in run).values()
    return with_error(*mean_and_error([100 * value for value in finals.values()]))


def main(wanted: list[str]) -> None:
    torch.set_num_threads(1)
    for name, drawing in READINGS.items():
        if not wanted or any(text in name for text in wanted):
            found = [accuracy(drawing, setting) for setting in ("random", "top-left")]
            print(f"| {name} | {found[0]} | {found[1]} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
