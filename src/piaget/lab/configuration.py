"""What a run is, as plain data. No heavy imports: `making.py` makes streams and learners of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from piaget.lab.parts import check_choices
from piaget.method.choices import default_epochs
from piaget.paper.defaults import adaptation_of, algorithm_of, settings_of, structure_of

Configuration = dict[str, Any]


def configure(
    *,
    stream: str | None = None,
    table: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
    structure: str | None = None,
    adaptation: str | None = None,
    algorithm: str | None = None,
    epochs: int | None = None,
    every: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Configuration:
    """The configuration of a run, with the paper's choices for the stream where nothing is said.

    Nothing is imported: parts of one's own are texts such as "package.module:Name".
    """
    structure = structure or structure_of(stream or "")
    algorithm = algorithm or algorithm_of(structure)
    adaptation = adaptation or adaptation_of(algorithm)
    method = {"structure": structure, "adaptation": adaptation, "algorithm": algorithm}
    chosen = check_choices(method, {"epochs": epochs} | dict(settings or {}))
    resolved = settings_of(stream or "", structure, adaptation, algorithm, chosen) | chosen
    linear = "linear" in (structure, resolved.get("components"))
    return {
        "stream": stream,
        "table": table,
        "options": options or {},
        **method,
        # A schedule of one's own has its own number of them.
        "epochs": resolved.pop("epochs", None if "schedule" in resolved else default_epochs(linear)),
        "every": every,
        "settings": resolved,
    }
