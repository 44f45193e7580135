"""Saving and loading a learner: safetensors and JSON, nothing that can run code.

A folder holds `learner.json`, and the tensor file that it names with its hash. Saving writes a
new tensor file beside the old one and then replaces the JSON in one move: a crash at any moment
leaves the old learner or the new one, whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors, save as save_tensors
from torch import Tensor

from piaget.errors import LoadError, PiagetError, SettingError
from piaget.files import read_described, read_json, write_atomically, write_json
from piaget.knowledge.consistency import check_state
from piaget.knowledge.snapshot import describe, restore
from piaget.knowledge.state import State
from piaget.method.description import from_json, to_json
from piaget.method.settings import Settings, check_device
from piaget.method.trees import flatten as flatten, unflatten

FORMAT = "piaget learner"
PRIOR_FORMAT = "piaget prior learner"
VERSIONS = (4, 3)  # the one that is written, and older ones that are read


def save(folder: str | os.PathLike[str], settings: Settings, state: State) -> None:
    """Writes a learner into a folder."""
    path = as_folder(folder, SettingError)
    description, tree = describe(state)
    header = {"format": FORMAT, "version": VERSIONS[0], "settings": to_json(settings)}
    write_files(path, "learner", header | description, tree)


def write_files(
    path: Path, name: str, description: dict[str, Any], tree: Any, before: str | None = None
) -> None:
    """NAME.json and the tensor file that it names, replaced in one move. `before`: the name that the
    description which is there gets; its tensor file stays."""
    path.mkdir(parents=True, exist_ok=True)
    # Copies: tensors that share memory (tasks with the same inputs) cannot be stored as they are.
    tensors = {key: t.detach().cpu().clone().contiguous() for key, t in flatten(tree).items()}
    data = save_tensors(tensors)
    digest = hashlib.sha256(data).hexdigest()
    file = f"{name}-{digest[:16]}.safetensors"
    if before is not None and file == _tensor_file(path / f"{name}.json"):
        file = f"{name}-{digest[16:32]}.safetensors"  # the same tensors again: in a file of their own
    write_atomically(path / file, data)
    old_name = None if before is None else path / f"{before}.json"
    write_json(path / f"{name}.json", description | {"tensors": {"file": file, "sha256": digest}}, old_name)
    stays = {file, _tensor_file(old_name) if old_name else None}
    for old in path.glob(f"{name}-*.safetensors"):
        if old.name not in stays:
            old.unlink(missing_ok=True)


def remove_leftovers(path: Path, name: str) -> None:
    """Files of a save that was broken off, which NAME.json does not name. By whoever alone writes there."""
    file = _tensor_file(path / f"{name}.json")
    if file is None:
        return
    for other in (*path.glob(".*.tmp"), *path.glob(f"{name}-*.safetensors")):
        if other.name != file:
            other.unlink(missing_ok=True)


def _tensor_file(description: Path) -> str | None:
    """That a description names, if it is readable."""
    with contextlib.suppress(LoadError, KeyError, TypeError):
        return str(read_json(description)["tensors"]["file"])
    return None


def load(folder: str | os.PathLike[str], own: Mapping[str, Any]) -> tuple[Settings, State]:
    """The settings and the state in a folder. own: parts of the user's own, by the names of settings."""
    path = as_folder(folder, LoadError)
    if not (path / "learner.json").is_file():
        raise no_learner(path)
    try:
        if holds_prior(path):
            raise LoadError(
                f"{path} holds a prior learner: load it by piaget.PriorLearner.load, or piaget.load"
            )
        data, tree = read_files(path, "learner", FORMAT, VERSIONS)
    except LoadError:
        raise
    except Exception as error:  # whatever is in a file: it is no bug of the reader's
        raise damaged(path, error) from error
    try:
        settings = from_json(data["settings"], own)
        check_device(settings.device)
    except PiagetError as error:
        raise LoadError(f"{path}: {error}") from error
    except Exception as error:
        raise damaged(path, error) from error
    try:
        state = restore(data, tree, settings)
        check_state(settings, state)
        return settings, state
    except Exception as error:  # also of the parts, which meet what they did not make
        raise damaged(path, error) from error


def holds_prior(folder: str | os.PathLike[str]) -> bool:
    """Is it a learner of the other class? (Of no learner at all, loading says so.)"""
    path = as_folder(folder, LoadError) / "learner.json"
    return path.is_file() and read_json(path).get("format") == PRIOR_FORMAT


def no_learner(path: Path) -> LoadError:
    """The error about a folder without one; of a run's folder, it says where its learner is."""
    below = [*path.glob("learner/learner.json"), *sorted(path.glob("seed-*/learner/learner.json"))]
    where = f"; there is one in {below[0].parent}" if below else ""
    return LoadError(f"{path} holds no learner: there is no file learner.json in it{where}")


def damaged(path: Path, error: Exception) -> LoadError:
    """What is wrong with a learner's files, in words."""
    if isinstance(error, OSError):
        return LoadError(f"{path} cannot be read: {error}")
    kind = "" if type(error) is ValueError or isinstance(error, PiagetError) else f"{type(error).__name__}: "
    return LoadError(f"{path} is damaged: {kind}{str(error)[:1000]}")


def as_folder(folder: Any, error: type[PiagetError]) -> Path:
    """The path of a folder that is there, or may be made."""
    try:
        path = Path(folder)
        if "\0" in str(path):
            raise ValueError("there is a null byte in its name")
        taken = [place for place in (path, *path.parents) if place.exists() and not place.is_dir()]
    except (TypeError, ValueError, OSError) as problem:
        raise error(f"{str(folder)[:200]!r} is no folder: {problem}") from problem
    if taken:
        raise error(f"{taken[0]} is a file; expected a folder")
    return path


def read_files(
    path: Path, name: str, format: str, versions: Sequence[int]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `write_files` wrote, checked by its hashes."""
    data = read_described(path / f"{name}.json", format, versions)
    return data, unflatten(_read_tensors(path, f"{name}.json", data))


def _read_tensors(path: Path, described: str, data: dict[str, Any]) -> dict[str, Tensor]:
    try:
        name, digest = data["tensors"]["file"], data["tensors"]["sha256"]
    except (KeyError, TypeError) as error:
        raise LoadError(f"{path / described} is damaged: it names no tensor file") from error
    file = path / Path(str(name)).name
    if not file.is_file():
        raise LoadError(f"{path} is damaged: {file.name} is missing")
    raw = file.read_bytes()
    if hashlib.sha256(raw).hexdigest() != digest:
        raise LoadError(f"{path} is damaged: {file.name} is not the file that was saved")
    try:
        return load_tensors(raw)
    except SafetensorError as error:
        raise LoadError(f"{path} is damaged: {file.name}: {error}") from error
