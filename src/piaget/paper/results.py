"""The paper's numbers: final performance of every method on every stream, and its other tables."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def results() -> dict[str, Any]:
    """The paper's numbers: {structure: {stream: {base: {algorithm: (mean, standard error)}}}}."""
    return json.loads(files("piaget.paper").joinpath("results.json").read_text())


@cache
def component_numbers() -> dict[str, Any]:
    """The paper's numbers of components, of tasks that reuse them, and by kinds of tasks."""
    return json.loads(files("piaget.paper").joinpath("components.json").read_text())


def reported(structure: str, stream: str, base: str, algorithm: str) -> tuple[float, float] | None:
    """What the paper reports: mean and standard error. Without components, the structure does not matter.

    A stream of other features ("cub/NAME") is set beside the paper's.
    """
    stream = stream.partition("/")[0]
    for name, streams in results().items():
        if name == structure or (structure == "monolithic" and name != "source" and stream in streams):
            numbers = streams.get(stream, {}).get(base, {}).get(algorithm)
            return (numbers[0], numbers[1]) if numbers else None
    return None
