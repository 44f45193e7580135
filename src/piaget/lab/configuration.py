"""What a run is: plain data, from which its stream and its learner are made."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from typing import Any

from piaget.components import named_components
from piaget.errors import SettingError
from piaget.expansion import ComponentDropout
from piaget.lab.defaults import adaptation_of, algorithm_of, settings_of, structure_of
from piaget.lab.settings import check_settings
from piaget.learner import Learner
from piaget.schedule import Staged
from piaget.settings import Algorithm, named_algorithm
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
    settings: dict[str, Any] | None = None,
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
        "settings": check_settings(settings or {}),
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
    given = dict(configuration["settings"])
    settings = {"initial_tasks": min(4, tasks)} | settings_of(name, structure)
    if epochs is not None:
        settings["epochs"] = epochs
    adaptation = adaptation_of(name, configuration["adaptation"])
    adaptation = _changed(adaptation, given, {"replay_size": "size", "ewc_strength": "strength"})
    algorithm = algorithm_of(name, configuration["algorithm"], epochs)
    if "adapt_every" in given or "threshold" in given:
        total = epochs or settings.get("epochs") or (10_000 if structure == "linear" else 100)
        algorithm = _algorithm(configuration["algorithm"], total, given)
    sizes = {size: size for size in ("width", "channels", "padding", "dropout") if size in given}
    if "components" in given or sizes:
        kind = given.pop("components", None) or settings.get("components")
        kind = kind or ("linear" if structure == "linear" else "dense")
        made = named_components(kind) if isinstance(kind, str) else kind
        settings["components"] = _changed(made, given, sizes)
    return Learner(structure, adaptation, algorithm, seed=seed, **(settings | given))


def _changed(part: Any, given: dict[str, Any], names: dict[str, str]) -> Any:
    """A part with the values that are given for it, by its fields' names. They are taken out of `given`."""
    changes = {field: given.pop(name) for name, field in names.items() if name in given}
    unknown = [field for field in changes if field not in {f.name for f in fields(part)}]
    if unknown:
        raise SettingError(f"{unknown[0]} is no setting of {type(part).__name__}")
    return replace(part, **changes) if changes else part


def _algorithm(name: str, epochs: int, given: dict[str, Any]) -> Algorithm:
    """By name, with adaptation in every so-manieth epoch, or another threshold."""
    made = named_algorithm(name, epochs)
    every, threshold = given.pop("adapt_every", None), given.pop("threshold", None)
    if every is not None:
        if not isinstance(made.schedule, Staged):
            raise SettingError(
                f"adapt_every is no setting of the algorithm {name!r}: it adapts in every epoch"
            )
        if every < 2 or epochs % every:
            raise SettingError(f"adapt_every={every}; expected 2 or more, and a divisor of {epochs} epochs")
        schedule = Staged(struct_updates=epochs - epochs // every, adapt_freq=every - 1, comp_updates=1)
        made = replace(made, schedule=schedule)
    if threshold is not None:
        if not isinstance(made.expansion, ComponentDropout):
            raise SettingError(f"threshold is no setting of the algorithm {name!r}: it does not expand")
        made = replace(made, expansion=ComponentDropout(threshold))
    return made
