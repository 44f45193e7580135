"""What an epoch over a whole stream costs, for each stream and structure of the paper's experiments.

    python -m benchmarks.preset_times [STREAM ...]       # PIAGET_DATA names the data folder

Prints the table SECONDS of lab/expected_times.py, from which expected times are computed. Measured on the
second task after the initial ones, with frozen components: as nearly all epochs of staged learning are. A
stream whose files are not there is replaced by random numbers of its shapes.
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import replace

import torch

import piaget
from piaget.errors import PiagetError
from piaget.lab.configuration import configure
from piaget.lab.making import make_learner
from piaget.lab.memory import keep_memory
from piaget.method.choices import CompileMode
from piaget.paper.presets import PRESETS

EPOCHS = 2
# name: (input shape, classes, training samples a task, tasks), for streams that cannot be had
SHAPES = {"cifar100": ((3, 32, 32), 5, 2000, 20), "fera": ((100,), 2, 400, 21)}


def make_tasks(name: str, seed: int) -> tuple[list[piaget.Task], int]:
    """Tasks 1 to 6, and how many there are."""
    options = {"features": "resnet18_approx"} if name in ("cub", "combined") else {}
    try:
        stream = piaget.stream(name, seed, **options)
        return [stream[i] for i in range(6)], len(stream)
    except PiagetError:
        shape, classes, samples, tasks = SHAPES[name]
        draw = torch.Generator().manual_seed(seed)
        return [
            piaget.Task.from_arrays(
                f"task {i}",
                torch.rand(samples * 2, *shape, generator=draw),
                torch.randint(classes, (samples * 2,), generator=draw),
                fractions=(0.5, 0.25, 0.25),
                seed=seed,
            )
            for i in range(6)
        ], tasks


def seconds(name: str, structure: str) -> float:
    epochs = 50 * EPOCHS if structure == "linear" else EPOCHS
    configuration = configure(
        stream=name,
        structure=structure,
        adaptation="fm",
        algorithm="compositional",
        epochs=epochs,
        settings={"initial_epochs": 1},
    )
    runs = 2 if name in ("cifar100", "omniglot") else 10
    streams = [make_tasks(name, seed) for seed in range(runs)]
    learners = [make_learner(configuration, seed, 6) for seed in range(runs)]
    for i in range(6):
        if i == 4:  # as if there were many epochs: with compiled steps, where that is of use
            for learner in learners:
                wise: CompileMode = "always" if learner.settings.components.compiles_well else "never"
                learner.settings = replace(learner.settings, compile=wise)
        start = time.perf_counter()
        piaget.Cohort(learners).learn([tasks[i] for tasks, _ in streams])
    return (time.perf_counter() - start) / epochs / runs * streams[0][1]


def main() -> None:
    torch.set_num_threads(1)
    keep_memory()
    warnings.simplefilter("ignore")
    pairs = dict.fromkeys(
        (entry.stream, entry.method.structure) for preset in PRESETS.values() for entry in preset.entries
    )
    for name, structure in pairs:
        if not sys.argv[1:] or name in sys.argv[1:]:
            seconds(name, structure)  # compiles what tasks of different sizes need
            print(f'    ("{name}", "{structure}"): {seconds(name, structure):.3g},', flush=True)


if __name__ == "__main__":
    main()
