"""How time and memory grow with tasks, components and width: a table and a figure.

    python -m benchmarks.sizes [--out docs/pictures/sizes.png]

Milliseconds a step (one batch of 32, one run alone, compiled), and what a learner holds.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import piaget
from benchmarks import speed
from benchmarks.cases import BATCH, CASES, Case, task
from piaget.method.trees import leaves

TASKS = (5, 10, 20, 40)
COMPONENTS = (4, 8, 16)
WIDTHS = (32, 64, 128, 256)


def step_time(case: Case, **settings: Any) -> float:
    epoch = speed.prepare(case, 1, **settings)
    epoch()
    return 1e3 * min(speed.seconds_a_step(epoch, 0.5) for _ in range(3))


def memory(adaptation: str, tasks: int) -> float:
    """Megabytes that a learner holds after so many tasks, without their encoders."""
    case = replace(CASES[0], batches=1)
    learner = piaget.Learner(
        "soft-ordering", adaptation, "compositional", encoder="fixed", epochs=2, initial_epochs=1
    )
    for number in range(tasks):
        learner.learn(task(case, number, 0, BATCH))
    state = learner.state
    trees: list[Any] = [state.components, state.moments, state.memory]
    trees += [record.params._replace(encoder={}) for record in state.records.values()]
    return sum(t.numel() * t.element_size() for tree in trees for t in leaves(tree)) / 2**20


def measure() -> dict[str, dict[int, float]]:
    base = replace(CASES[0], batches=20)
    adapting = replace(base, stage="adaptation")
    found: dict[str, dict[int, float]] = {
        "assimilation, against tasks (ms)": {n: step_time(replace(base, past=n)) for n in TASKS},
        "adaptation ER, against tasks (ms)": {n: step_time(replace(adapting, past=n)) for n in TASKS},
        "adaptation EWC, against tasks (ms)": {
            n: step_time(replace(adapting, past=n, adaptation="ewc")) for n in TASKS
        },
        "memory ER, against tasks (MB)": {n: memory("er", n) for n in TASKS},
        "memory EWC, against tasks (MB)": {n: memory("ewc", n) for n in TASKS},
    }
    found["assimilation, against width (ms)"] = {
        width: step_time(base, components=piaget.Dense(width)) for width in WIDTHS
    }
    found["assimilation, against components (ms)"] = {
        count: step_time(base, initial_components=count, depth=4) for count in COMPONENTS
    }
    return found


def draw(found: dict[str, dict[int, float]], out: Path) -> None:
    import matplotlib
    import matplotlib.pyplot as plt

    matplotlib.use("Agg")
    panels = {"tasks (ms": "ms a step", "tasks (MB": "MB", "width": "ms a step", "components": "ms a step"}
    figure, axes = plt.subplots(1, 4, figsize=(14, 3.2), layout="constrained")
    for axis, (word, unit) in zip(axes, panels.items(), strict=True):
        for name, numbers in found.items():
            if f"against {word}" in name:
                axis.plot(list(numbers), list(numbers.values()), "o-", label=name.split(",")[0])
        axis.set(xlabel=word.split(" ")[0], ylabel=unit, ylim=(0, None))
        axis.legend(frameon=False, fontsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    start, found = time.monotonic(), measure()
    for name, numbers in found.items():
        shown = ", ".join(f"{n}: {value:.3g}" for n, value in numbers.items() if math.isfinite(value))
        print(f"{name}: {shown}")
    print(f"{time.monotonic() - start:.0f} s")
    if options.out is not None:
        draw(found, options.out)


if __name__ == "__main__":
    main()
