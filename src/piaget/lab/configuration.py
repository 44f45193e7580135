"""What a run is, as plain data. No heavy imports: `making.py` makes streams and learners of it."""

from __future__ import annotations

from typing import Any

from piaget.lab.defaults import settings_of, structure_of
from piaget.method.choices import check_settings

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
    settings: dict[str, Any] | None = None,
) -> Configuration:
    """With the paper's choices for the stream where nothing is said."""
    structure = structure or structure_of(stream or "")
    algorithm = algorithm or ("compositional" if structure == "linear" else "dynamic")
    given = check_settings(settings or {})
    said = given if epochs is None else given | {"epochs": epochs}
    resolved = settings_of(stream or "", structure, adaptation, algorithm, said) | said
    return {
        "stream": stream,
        "table": table,
        "options": options or {},
        "structure": structure,
        "adaptation": adaptation,
        "algorithm": algorithm,
        "epochs": resolved.pop("epochs", None) or (10_000 if structure == "linear" else 100),
        "every": every,
        "settings": resolved,
    }
