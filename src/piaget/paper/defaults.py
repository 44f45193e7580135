"""The paper's settings for each stream, where they are not the library's defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from piaget.method.choices import STAGED, STORING, structure_for

LINEAR: dict[str, Any] = {"structure": "linear"}
FIXED: dict[str, Any] = {"encoder": "fixed"}
BIRDS: dict[str, Any] = {"width": 256}
COLOURS: dict[str, Any] = {"components": "conv", "channels": 50, "padding": 1}
# Not the paper's: of streams of other papers, where tasks come one by one to a net with a common first layer.
ONE_BY_ONE: dict[str, Any] = {"initial_tasks": 1}
COMMON: dict[str, Any] = {"encoder": "shared"} | ONE_BY_ONE

PAPER: dict[str, dict[str, Any]] = {
    "landmine": LINEAR,
    "schools": LINEAR,
    "fera": LINEAR,
    "mnist": FIXED,
    "fashion": FIXED,
    "digits": FIXED,  # not in the paper; like mnist
    "cub": BIRDS,
    "combined": BIRDS,
    "cifar100": COLOURS,
    "omniglot": {"components": "conv", "channels": 53, "padding": 0},
    "objects": {"replay_size": 5},  # elsewhere replay keeps one mini-batch a task
    "pixel-mnist": {
        "dropout": 0.0,
        "encoder": "shared",
        "decoder": "shared",
        "epochs": 1000,
        "adapt_every": 100,
    },
    **{f"{way}-{data}": COMMON for way in ("split", "permuted", "rotated") for data in ("mnist", "fashion")},
    "split-cifar100": COLOURS | ONE_BY_ONE,
}
# Not the paper's: of deep methods on a user's own data, which may be little. (Patience of 10 epochs was worse
# than none: docs/own-data.md.)
OWN_DATA: dict[str, Any] = {
    "stop": "patience",
    "patience": 40,
    "weight_decay": 0.01,
    "calibration": "temperature",
}
# The paper's, instead of these.
PAPERS: dict[str, Any] = {"stop": "never", "weight_decay": 0.0, "calibration": "none"}
# Whoever chooses one of these has chosen otherwise; of the other settings: when to stop.
INSTEAD = {"weight_decay": ("weight_decay", "optimizer"), "calibration": ("calibration",)}
STOPPING = ("stop", "patience", "schedule", "epochs")
SIZES = ("width", "channels", "padding", "dropout")  # numbers of components, each of some kinds only


def _of(stream: str) -> dict[str, Any]:
    return PAPER["objects"] if stream.startswith("objects") else PAPER.get(stream, {})


def structure_of(stream: str, algorithm: object = None) -> str:
    """The structure that the paper uses on a stream (on pictures, one of two), or an algorithm that is not
    the paper's uses instead."""
    return structure_for(algorithm, str(_of(stream).get("structure", "soft-ordering")))


def algorithm_of(structure: str) -> str:
    """The paper's own algorithm for a structure."""
    return "compositional" if structure == "linear" else "dynamic"


def settings_of(
    stream: str, structure: str, adaptation: str, algorithm: str, chosen: Mapping[str, Any]
) -> dict[str, Any]:
    """The paper's settings for a stream, without those that make no sense with what was chosen."""
    settings = {name: value for name, value in _of(stream).items() if name != "structure"}
    if (structure == "linear") != (structure_of(stream) == "linear"):
        return {}
    drop: set[str] = set()
    if adaptation not in STORING:
        drop.add("replay_size")
    if algorithm not in STAGED or "epochs" in chosen or "schedule" in chosen:
        drop.add("adapt_every")
    if chosen.get("components", settings.get("components")) != settings.get("components"):
        drop.update(("components", *SIZES))
    if chosen.get("components_from") is not None:  # a library says what its components are
        drop.update(("components", *(size for size in SIZES if size != "dropout")))
    return {name: value for name, value in settings.items() if name not in drop}


def own_data(structure: Any, chosen: Iterable[str]) -> dict[str, Any]:
    """What suits a user's own data, of which all tasks have validation rows, beside what was chosen: names of
    settings, or of fields such as "optimizer.momentum". Linear structures, whose epochs are single steps,
    have nothing of it."""
    names = {name.partition(".")[0] for name in chosen}
    if structure == "linear":
        return {}
    return {name: value for name, value in OWN_DATA.items() if names.isdisjoint(INSTEAD.get(name, STOPPING))}
