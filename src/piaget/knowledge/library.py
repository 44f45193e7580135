"""A library of components: a folder with a card (components.json), and a tensor file that it names with its
hash. (library_writing.py writes it.)

What a folder holds is verified before it is used, and nothing in it can run code: a kind of components of
one's own is only named in the card, and whoever uses the library gives it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from piaget.data.plain import shown
from piaget.data.typed_data import LATER, read
from piaget.errors import LoadError, PiagetError, SettingError
from piaget.knowledge.consistency import MANY_INPUTS
from piaget.knowledge.state import Origin, State
from piaget.knowledge.storage import as_folder, damaged, read_files
from piaget.method.adaptation import Adaptation
from piaget.method.choices import ALGORITHMS
from piaget.method.components import KINDS, Components, Shape
from piaget.method.description import components_from_json, is_described, to_json
from piaget.method.parameters import SharedParams, new_moments, shared_moments
from piaget.method.resolving import BASELINES, resolve
from piaget.method.settings import Algorithm, Settings
from piaget.method.structures import Structure
from piaget.method.trees import Tensors, ordered
from piaget.method.values import PLACE

NAME, FORMAT, VERSIONS = "components", "piaget components", (1,)


@dataclass(frozen=True)
class User:
    """A task that uses components, and how it weighs them: (components that it may use, depths)."""

    name: str
    stream: str
    kind: str
    classes: int
    weights: list[list[float]]


@dataclass(frozen=True)
class Trained:
    """Where components were trained."""

    method: str
    seed: int
    streams: list[str]
    tasks: int
    steps: int
    versions: dict[str, str]
    started_from: str | None  # the hash of the library with which learning began
    merged: tuple[Origin, ...] = field(default=(), metadata=LATER)  # of learners that were merged into it


@dataclass(frozen=True)
class Card:
    """What is said of components."""

    kind: dict[str, Any]  # as settings have it: a part of piaget, or the name of one's own
    count: int
    depth: int
    dtype: str
    entering: tuple[int, ...]  # what enters the first depth
    shapes: dict[str, tuple[int, ...]]  # of the parameters of one component
    hashes: list[str]  # SHA-256, of each component
    tasks: list[User]
    trained: Trained
    licence: str | None
    note: str


@dataclass(frozen=True, eq=False)
class Library:
    """Components that were verified, and their card."""

    path: Path
    card: Card
    kind: Components
    components: Tensors  # (count, ...)
    digest: str  # SHA-256 of all components

    def settings(
        self,
        structure: str | Structure,
        adaptation: str | Adaptation,
        algorithm: str | Algorithm,
        choices: Mapping[str, Any],
    ) -> Settings:
        """The settings of a learner that begins with these components: there are no initial tasks."""
        card, kind = self.card, choices.get("components")
        for name in ("initial_tasks", "initial_components", "initial_epochs"):
            if choices.get(name) is not None:
                raise SettingError(
                    f"{name} is about initialization, which is not needed with components from a library: "
                    "leave it out"
                )
        if isinstance(kind, str) and type(KINDS.get(kind)) is not type(self.kind):
            raise SettingError(f"components={kind!r}, but {self.path} has {type(self.kind).__name__}")
        as_there = {"depth": card.depth, "dtype": card.dtype}
        given = {name: value for name, value in choices.items() if value is not None}
        parts = {"components": kind if isinstance(kind, Components) else self.kind}
        settings = resolve(structure, adaptation, algorithm, as_there | given | parts)
        self._check(settings)
        return replace(
            settings,
            initial_tasks=0,
            initial_components=card.count,
            initial_epochs=0,
            components_from=self.digest,
        )

    def _check(self, settings: Settings) -> None:
        card, where = self.card, f"{self.path} cannot be used here"
        if settings.algorithm.name in BASELINES:
            those = ", ".join(name for name in ALGORITHMS if name not in BASELINES)
            raise SettingError(
                f"{where}: the algorithm {settings.algorithm.name!r} combines no components; those that do: "
                f"{those}"
            )
        if not settings.structure.expandable:
            raise SettingError(f"{where}: structure {settings.structure.name!r} combines no components")
        if settings.encoder.shared or settings.decoder.shared:
            raise SettingError(f"{where}: a shared encoder or decoder is learned together with components")
        shapes = parameter_shapes(settings.components, card.entering, settings.dtype)
        same = _computing(to_json(settings.components)) == _computing(card.kind)
        if settings.dtype != card.dtype or shapes != dict(card.shapes) or not same:
            raise SettingError(
                f"{where}: it has {self.kind} in {card.dtype}, with parameters {card.shapes}; expected "
                f"{settings.components} in {settings.dtype}, with {shapes}"
            )

    def begin(self, settings: Settings, state: State) -> None:
        """A new learner's state: it has these components, and no task yet."""
        slots = settings.optimizer.slots
        state.components = {name: p.to(settings.device) for name, p in ordered(self.components).items()}
        state.moments = new_moments(slots, state.components, self.card.count)
        state.shared = SharedParams({}, {})
        state.shared_moments = shared_moments(slots, state.shared)


def _computing(kind: dict[str, Any]) -> dict[str, Any]:
    """What a kind of components, as plain data, says of how they compute: all but dropout, which only
    learning has."""
    told = {name: value for name, value in kind.items() if name != "dropout"}
    return told | {"fields": _computing(kind["fields"])} if "fields" in kind else told


def hashes_of(components: Tensors) -> list[str]:
    """Of each component: the names, types and bytes of its parameters."""
    digests = []
    for i in range(len(next(iter(components.values())))):
        digest = hashlib.sha256()
        for name, stack in sorted(components.items()):
            one = stack[i].contiguous()
            digest.update(f"{name} {one.dtype} {tuple(one.shape)} ".encode() + one.numpy().tobytes())
        digests.append(digest.hexdigest())
    return digests


def digest_of(card: Card) -> str:
    """One hash for all components, in their order."""
    return hashlib.sha256(" ".join(card.hashes).encode()).hexdigest()


# --- back -------------------------------------------------------------------------------------------------


def read_card(folder: str | os.PathLike[str]) -> Card:
    """The card of a library, whose components are verified by their hashes; its kind need not be known."""
    return _read(folder)[1]


def load(folder: str | os.PathLike[str], chosen: Any) -> Library:
    """A library, verified. chosen: the kind of components that is asked for; only an object can stand for a
    kind of the user's own."""
    path, card, components = _read(folder)
    own = chosen if isinstance(chosen, Components) else None
    try:
        kind = components_from_json(card.kind, own)
    except PiagetError as error:
        raise LoadError(f"{path}: {error}") from error
    try:
        _check_kind(card, kind)
    except Exception as error:  # also of a kind of one's own, which meets what it did not make
        raise damaged(path, error) from error
    return Library(path, card, kind, components, digest_of(card))


def named(folder: Any, chosen: Any) -> Library:
    """The library that a setting names."""
    if not isinstance(folder, str | os.PathLike):
        raise SettingError(f"components_from={shown(folder)}: expected {PLACE.expected}")
    path = as_folder(folder, SettingError)
    if not (path / f"{NAME}.json").is_file():
        raise SettingError(
            f"components_from={shown(str(path))}: there is no {NAME}.json in it; expected a folder that "
            "export_components wrote"
        )
    return load(path, chosen)


def _read(folder: str | os.PathLike[str]) -> tuple[Path, Card, Tensors]:
    path = as_folder(folder, LoadError)
    if not (path / f"{NAME}.json").is_file():
        raise LoadError(f"{path} holds no library of components: there is no file {NAME}.json in it")
    try:
        data, tree = read_files(path, NAME, FORMAT, VERSIONS)
        card: Card = read(Card, data.get("card"), "card")
        return path, card, _checked(card, tree)
    except LoadError:
        raise
    except Exception as error:  # whatever is in a file: it is no bug of the reader's
        raise damaged(path, error) from error


def _checked(card: Card, tree: dict[str, Any]) -> Tensors:
    """The tensors, if they are what the card says."""
    _require(card.dtype in ("float32", "float64"), f"dtype {card.dtype}")
    _require(1 <= card.count == len(card.hashes), f"{len(card.hashes)} hashes for {card.count} components")
    _require(1 <= card.depth < 2**16, f"depth {card.depth}")
    _require(bool(card.shapes), "components without parameters")
    _require(tree.keys() == card.shapes.keys(), f"tensors {', '.join(tree)} for {', '.join(card.shapes)}")
    for name, shape in card.shapes.items():
        tensor, expected = tree[name], (card.count, *shape)
        right = isinstance(tensor, Tensor) and (tuple(tensor.shape), tensor.dtype) == (
            expected,
            getattr(torch, card.dtype),
        )
        _require(right, f"tensor {name} is not {expected}, {card.dtype}")
        _require(bool(torch.isfinite(tensor).all()), f"tensor {name} is not finite")
    for i, (noted, found) in enumerate(zip(card.hashes, hashes_of(tree), strict=True)):
        _require(noted == found, f"component {i} is not what its hash says")
    for user in card.tasks:
        rows = user.weights
        square = bool(rows) and all(len(row) == len(rows[0]) for row in rows)
        _require(
            square and len(rows) <= card.count, f"the weights of task {user.name!r} are of other components"
        )
    return dict(tree)


def _check_kind(card: Card, kind: Components) -> None:
    """Has a fresh component of the kind the same parameters?"""
    shape = card.entering
    size = 1
    for side in shape:
        _require(side > 0, f"shape {shape} enters")
        size *= side
    _require(bool(shape) and size <= MANY_INPUTS, f"shape {shape} enters")
    fresh = parameter_shapes(kind, shape, card.dtype)
    _require(fresh == dict(card.shapes), f"parameters {card.shapes}; the kind of components has {fresh}")


def parameter_shapes(kind: Components, entering: Shape, dtype: str) -> dict[str, Shape]:
    """Of one component. A kind of piaget's own is drawn without memory: a card may say any width."""
    where = torch.device("meta") if is_described(kind) else contextlib.nullcontext()
    with where:
        fresh = kind.draw(torch.Generator(), entering, getattr(torch, dtype))
    return {name: tuple(p.shape) for name, p in fresh.items()}


def _require(right: bool, what: str) -> None:
    if not right:
        raise ValueError(what)
