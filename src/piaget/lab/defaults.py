"""The paper's settings for each stream, where they are not the library's defaults. No heavy imports."""

from __future__ import annotations

from typing import Any

LINEAR: dict[str, Any] = {"structure": "linear"}
FIXED: dict[str, Any] = {"encoder": "fixed"}
BIRDS: dict[str, Any] = {"width": 256}
OBJECTS: dict[str, Any] = {"replay_size": 5}  # elsewhere replay keeps one mini-batch a task

PAPER: dict[str, dict[str, Any]] = {
    "landmine": LINEAR,
    "schools": LINEAR,
    "fera": LINEAR,
    "mnist": FIXED,
    "fashion": FIXED,
    "digits": FIXED,  # not in the paper; like mnist
    "cub": BIRDS,
    "combined": BIRDS,
    "cifar100": {"components": "conv", "channels": 50, "padding": 1},
    "omniglot": {"components": "conv", "channels": 53, "padding": 0},
    "objects": OBJECTS,
    "pixel-mnist": {
        "dropout": 0.0, "encoder": "shared", "decoder": "shared", "epochs": 1000, "adapt_every": 100,
    },
}  # fmt: skip
SIZES = ("width", "channels", "padding", "dropout")  # settings of components, each of some kinds only


def _of(stream: str) -> dict[str, Any]:
    return PAPER["objects"] if stream.startswith("objects") else PAPER.get(stream, {})


def structure_of(stream: str) -> str:
    return str(_of(stream).get("structure", "soft-ordering"))


def settings_of(
    stream: str, structure: str, adaptation: str, algorithm: str, given: dict[str, Any]
) -> dict[str, Any]:
    """Flat settings (and `epochs`), without those that make no sense with what was chosen."""
    settings = {name: value for name, value in _of(stream).items() if name != "structure"}
    if (structure == "linear") != (structure_of(stream) == "linear"):
        return {}
    drop: set[str] = set()
    if adaptation != "er":
        drop.add("replay_size")
    if algorithm in ("joint", "no-components") or "epochs" in given:
        drop.add("adapt_every")
    if given.get("components", settings.get("components")) != settings.get("components"):
        drop.update(("components", *SIZES))
    return {name: value for name, value in settings.items() if name not in drop}
