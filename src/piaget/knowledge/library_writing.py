"""The components of a learner, written into a folder for others, and their card. What is there stays."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, fields
from pathlib import Path

from piaget.data.plain import shown
from piaget.errors import LoadError, SettingError
from piaget.knowledge.library import FORMAT, NAME, VERSIONS, Card, Trained, User, hashes_of, read_card
from piaget.knowledge.state import State
from piaget.knowledge.storage import as_folder, write_files
from piaget.method.description import to_json
from piaget.method.settings import Settings
from piaget.method.trees import ordered

NAMED = 3  # other files in a folder, in a message


def export(
    folder: str | os.PathLike[str],
    settings: Settings,
    state: State,
    versions: dict[str, str],
    licence: str | None,
    note: str,
) -> Card:
    """Writes a learner's components, and their card, into a folder that holds nothing else. If the very same
    library is there, it stays as it is."""
    path = as_folder(folder, SettingError)
    for what, text in (("licence", licence or ""), ("note", note)):
        if not isinstance(text, str):
            raise SettingError(f"{what}={text!r}; expected a text")
    _check_exportable(settings, state)
    components = {name: p.detach().cpu() for name, p in ordered(state.components).items()}
    records = list(state.records.values())
    card = Card(
        kind=to_json(settings.components),
        count=state.k,
        depth=settings.depth,
        dtype=settings.dtype,
        entering=settings.model.shapes(records[0].input_shape)[0],
        shapes={name: tuple(p.shape[1:]) for name, p in components.items()},
        hashes=hashes_of(components),
        tasks=[
            User(one.name, one.stream, one.kind, one.classes, one.usage.tolist())
            for one in records
            if one.usage is not None
        ],
        trained=_trained(settings, state, versions),
        licence=licence,
        note=note,
    )
    if not _is_there(path, card):
        write_files(path, NAME, {"format": FORMAT, "version": VERSIONS[0], "card": asdict(card)}, components)
    return card


def _check_exportable(settings: Settings, state: State) -> None:
    """Raises an error if there are no components that are of use to others."""
    if state.progress is not None:
        raise SettingError(
            f"the learner is in the middle of {state.progress.tasks[-1]!r}; expected one whose components "
            "have settled: learn the task to its end"
        )
    if not state.records:
        raise SettingError("no task was learned with its components: learn the initial tasks first")
    if not settings.structure.expandable:
        raise SettingError(
            f"structure {settings.structure.name!r} has no components that other tasks could combine"
        )
    if settings.encoder.shared or settings.decoder.shared:
        raise SettingError(
            "components that are learned together with a shared encoder or decoder are of no use without it; "
            "expected an encoder and a decoder for each task"
        )


def _trained(settings: Settings, state: State, versions: dict[str, str]) -> Trained:
    return Trained(
        method=settings.method,
        seed=settings.seed,
        streams=list(dict.fromkeys(one.stream for one in state.records.values())),
        tasks=len(state.records),
        steps=state.steps,
        versions=versions,
        started_from=settings.components_from,
        merged=state.merged,
    )


def _is_there(path: Path, card: Card) -> bool:
    """Is this very library in the folder already? Raises an error if anything else is: a library is known by
    its folder, and what others begin with is not to change without a word."""
    if not (path / f"{NAME}.json").exists():
        _check_empty(path)
        return False
    try:
        there = read_card(path)
    except LoadError as error:
        raise SettingError(
            f"a library is in {path} already, which cannot be read ({error}); give another folder, or remove "
            "that one first"
        ) from error
    differing = [one.name for one in fields(Card) if _plain(there, one.name) != _plain(card, one.name)]
    if differing:
        raise SettingError(
            f"another library is in {path} already: {there.count} components, "
            f"licence {'not said' if there.licence is None else shown(there.licence)}. It differs from this "
            f"one in {', '.join(differing)}; give another folder, or remove that one first"
        )
    return True


def _plain(card: Card, name: str) -> str:
    """A field of a card as a file has it, but for the versions with which it was written."""
    value = asdict(card)[name]
    if name == "trained":
        value = value | {"versions": None}
    return json.dumps(value, sort_keys=True)


def _check_empty(path: Path) -> None:
    """Raises an error if a folder holds files that are not left of an export which was broken off."""
    found = sorted(one.name for one in path.iterdir()) if path.exists() else []
    others = [
        name
        for name in found
        if not name.startswith(".") and not re.fullmatch(rf"{NAME}-[0-9a-f]{{16}}\.safetensors", name)
    ]
    if others:
        more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
        raise SettingError(
            f"{path} holds other files ({', '.join(others[:NAMED])}{more}); expected a folder for the "
            "library alone, new or empty"
        )
