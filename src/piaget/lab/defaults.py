"""The paper's settings for each stream, where they are not the library's defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from piaget.adaptation import Adaptation, Replay, named_adaptation
from piaget.components import Conv, Dense
from piaget.schedule import Staged
from piaget.settings import Algorithm, named_algorithm

LINEAR: dict[str, Any] = {"structure": "linear"}
FIXED: dict[str, Any] = {"encoder": "fixed"}
BIRDS: dict[str, Any] = {"components": Dense(width=256)}

SETTINGS: dict[str, dict[str, Any]] = {
    "landmine": LINEAR,
    "schools": LINEAR,
    "fera": LINEAR,
    "mnist": FIXED,
    "fashion": FIXED,
    "digits": FIXED,  # not in the paper; like mnist
    "cub": BIRDS,
    "combined": BIRDS,
    "cifar100": {"components": Conv(channels=50, padding=1)},
    "omniglot": {"components": Conv(channels=53, padding=0)},
    "pixel-mnist": {
        "components": Dense(dropout=0.0),
        "encoder": "shared",
        "decoder": "shared",
        "epochs": 1000,
    },
}


def structure_of(stream: str) -> str:
    return SETTINGS.get(stream, {}).get("structure", "soft-ordering")


def settings_of(stream: str, structure: str) -> dict[str, Any]:
    """What a learner of this structure is made with, beside its parts by name."""
    settings = {name: value for name, value in SETTINGS.get(stream, {}).items() if name != "structure"}
    return settings if (structure == "linear") == (structure_of(stream) == "linear") else {}


def adaptation_of(stream: str, name: str) -> Adaptation:
    """Replay keeps one mini-batch a task, on objects 5 samples."""
    return Replay(5) if name == "er" and stream.startswith("objects") else named_adaptation(name)


def algorithm_of(stream: str, name: str, epochs: int | None) -> str | Algorithm:
    """By name; on pixel-mnist components adapt in every 100th of 1,000 epochs."""
    if stream != "pixel-mnist" or epochs is not None:
        return name
    made = named_algorithm(name, 1000)
    if not isinstance(made.schedule, Staged):
        return name
    return replace(made, schedule=Staged(struct_updates=990, adapt_freq=99, comp_updates=1))
