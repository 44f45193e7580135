"""What a run is: plain data, from which its stream and its learner are made."""

from __future__ import annotations

import os
from typing import Any

from piaget.lab.defaults import adaptation_of, algorithm_of, settings_of, structure_of
from piaget.learner import Learner
from piaget.streams import from_table, stream
from piaget.tasks import Stream

Configuration = dict[str, Any]


def configure(
    *,
    stream: str | None = None,
    table: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
    structure: str | None = None,
    adaptation: str = "er",
    algorithm: str | None = None,
    epochs: int | None = None,
    every: int | None = None,
) -> Configuration:
    """With the paper's choices for the stream where nothing is said."""
    structure = structure or structure_of(stream or "")
    return {
        "stream": stream,
        "table": table,
        "options": options or {},
        "structure": structure,
        "adaptation": adaptation,
        "algorithm": algorithm or ("compositional" if structure == "linear" else "dynamic"),
        "epochs": epochs,
        "every": every,
    }


def make_stream(configuration: Configuration, seed: int, data_dir: str | os.PathLike[str] | None) -> Stream:
    if configuration["table"] is not None:
        return from_table(**configuration["table"], seed=seed)
    return stream(configuration["stream"], seed, data_dir, **configuration["options"])


def make_learner(configuration: Configuration, seed: int, tasks: int) -> Learner:
    """`tasks`: how many there will be; with fewer than four, all are initial."""
    name, structure, epochs = (
        configuration["stream"] or "",
        configuration["structure"],
        configuration["epochs"],
    )
    settings = settings_of(name, structure)
    if epochs is not None:
        settings["epochs"] = epochs
    return Learner(
        structure,
        adaptation_of(name, configuration["adaptation"]),
        algorithm_of(name, configuration["algorithm"], epochs),
        initial_tasks=min(4, tasks),
        seed=seed,
        **settings,
    )
