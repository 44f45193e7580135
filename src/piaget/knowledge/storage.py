"""Saving and loading a learner: safetensors and JSON, nothing that can run code.

A folder holds `learner.json`, and the tensor file that it names with its hash. Saving writes a
new tensor file beside the old one and then replaces the JSON in one move: a crash at any moment
leaves the old learner or the new one, whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors, save as save_tensors
from torch import Tensor

from piaget.data import encoding
from piaget.data.encoding import Encoding, Scaling
from piaget.data.tasks import Split, Task
from piaget.errors import LoadError, PiagetError
from piaget.knowledge.state import Progress, State, TaskRecord
from piaget.method.settings import Settings, check_device, from_json, to_json
from piaget.method.trees import Tree, flatten, map_tree, unflatten

FORMAT = "piaget learner"
VERSION = 3


def save(folder: str | os.PathLike[str], settings: Settings, state: State) -> None:
    description, tree = describe(state)
    header = {"format": FORMAT, "version": VERSION, "settings": to_json(settings)}
    write_files(Path(folder), "learner", header | description, tree)


def write_files(path: Path, name: str, description: dict[str, Any], tree: Tree) -> None:
    """NAME.json and the tensor file that it names, replaced in one move."""
    path.mkdir(parents=True, exist_ok=True)
    # Copies: tensors that share memory (tasks with the same inputs) cannot be stored as they are.
    tensors = {key: t.detach().cpu().clone().contiguous() for key, t in flatten(tree).items()}
    data = save_tensors(tensors)
    digest = hashlib.sha256(data).hexdigest()
    file = f"{name}-{digest[:16]}.safetensors"
    write_atomically(path / file, data)
    text = json.dumps(description | {"tensors": {"file": file, "sha256": digest}}, indent=1)
    write_atomically(path / f"{name}.json", text.encode())
    for old in path.glob(f"{name}-*.safetensors"):
        if old.name != file:
            old.unlink(missing_ok=True)


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file so that it is either there whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """After a power loss the new name is there, not the old one. Not every system can do that."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def load(folder: str | os.PathLike[str], given: dict[str, Any]) -> tuple[Settings, State]:
    path = Path(folder)
    if not (path / "learner.json").is_file():
        raise LoadError(f"{path} holds no learner: there is no file learner.json in it")
    data, tree = read_files(path, "learner", FORMAT, VERSION)
    try:
        settings = from_json(data["settings"], given)
        check_device(settings.device)
        return settings, restore(data, tree, settings.device)
    except PiagetError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise LoadError(f"{path} is damaged: {type(error).__name__}: {error}") from error


def read_files(path: Path, name: str, format: str, version: int) -> tuple[dict[str, Any], Tree]:
    """What `write_files` wrote, checked by its hash."""
    data = read_header(path, name, format, version)
    return data, unflatten(_read_tensors(path, f"{name}.json", data))


def read_header(path: Path, name: str, format: str, version: int) -> dict[str, Any]:
    """NAME.json alone."""
    file = path / f"{name}.json"
    try:
        data = json.loads(file.read_text())
    except ValueError as error:
        raise LoadError(f"{file} is damaged: {error}") from error
    if not isinstance(data, dict) or data.get("format") != format:
        raise LoadError(f"{file} does not describe a {format}")
    if data.get("version") != version:
        raise LoadError(
            f"{path} was saved in format version {data.get('version')}; this piaget reads "
            f"version {version}: update piaget, or save the learner again with the older one"
        )
    return data


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


# --- the state as plain data and a tree -------------------------------------------------------------


def describe(state: State, with_data: bool = True) -> tuple[dict[str, Any], Tree]:
    """`with_data`: with the data of pending tasks."""
    pending = list(state.pending.values()) if with_data else []
    tree: Tree = {
        "components": state.components,
        "moments": state.moments,
        "io": state.io,
        "io_moments": state.io_moments,
        "memory": state.memory,
        "generator": state.generator.get_state(),
        "own": {str(i): r.own for i, r in enumerate(state.records.values())},
        "usage": {str(i): r.usage for i, r in enumerate(state.records.values()) if r.usage is not None},
        "pending": {str(i): _task_tensors(t) for i, t in enumerate(pending)},
    }
    described: list[TaskRecord | Task] = [*state.records.values(), *pending]
    encodings = list(dict.fromkeys(d.encoding for d in described if d.encoding is not None))
    description: dict[str, Any] = {
        "records": [_fields(r, _RECORD_FIELDS, encodings) for r in state.records.values()],
        "pending": [_fields(t, _TASK_FIELDS, encodings) for t in pending],
        "encodings": [encoding.to_json(e) for e in encodings],
        "progress": None,
        "steps": state.steps,
    }
    if state.progress is not None:
        progress = state.progress
        tree["progress"] = {str(i): m for i, m in enumerate(progress.moments.values())}
        tree["generator"] = progress.generator
        description["progress"] = {
            "tasks": progress.tasks,
            "epoch": progress.epoch,
            "candidate": progress.candidate,
            "fingerprints": progress.fingerprints,
        }
    return description, tree


_RECORD_FIELDS = ("name", "kind", "classes", "labels", "input_shape", "stream", "k")
_TASK_FIELDS = ("name", "kind", "classes", "labels", "stream")


def _fields(
    described: TaskRecord | Task, names: tuple[str, ...], encodings: list[Encoding]
) -> dict[str, Any]:
    """What describes a task; its encoding by its number, since tasks share one."""
    number = None if described.encoding is None else encodings.index(described.encoding)
    fields = {name: getattr(described, name) for name in names}
    return fields | {"scaling": vars(described.scaling), "encoding": number}


def _task_tensors(task: Task) -> Tree:
    return {name: {"x": split.x, "y": split.y} for name, split in task.splits()}


def restore(data: dict[str, Any], tree: Tree, device: str) -> State:
    def on_device(sub: Tree) -> Tree:
        return map_tree(lambda t: t.to(device), sub)

    state = State(torch.Generator(), steps=data.get("steps", 0))
    state.generator.set_state(tree["generator"])
    state.components = on_device(tree.get("components", {}))
    state.moments = on_device(tree.get("moments", {}))
    state.io = on_device(tree.get("io", {}))
    state.io_moments = {"mean": {}, "square": {}} | on_device(tree.get("io_moments", {}))
    state.memory = on_device(tree.get("memory", {}))
    encodings = [encoding.from_json(described) for described in data["encodings"]]
    for i, fields in enumerate(data["records"]):
        own = _whole(on_device(tree.get("own", {}).get(str(i), {})))
        usage = tree.get("usage", {}).get(str(i))
        state.records[fields["name"]] = TaskRecord(**_from_fields(fields, encodings), own=own, usage=usage)
    for i, fields in enumerate(data["pending"]):
        splits: dict[str, Any] = {name: Split(**s) for name, s in tree["pending"][str(i)].items()}
        state.pending[fields["name"]] = Task(**_from_fields(fields, encodings), **splits)
    if data["progress"] is not None:
        moments = {}
        for i, name in enumerate(data["progress"]["tasks"]):
            m = on_device(tree["progress"][str(i)])
            moments[name] = {
                "mean": _whole(m.get("mean", {})),
                "square": _whole(m.get("square", {})),
                "count": m["count"],
            }
        state.progress = Progress(moments=moments, generator=tree["generator"].clone(), **data["progress"])
    return state


def _whole(own: Tree) -> Tree:
    """Empty sub-trees have no tensors in the file: puts them back."""
    return {"encoder": {}, "structure": {}, "decoder": {}} | own


def _from_fields(fields: dict[str, Any], encodings: list[Encoding]) -> dict[str, Any]:
    """The inverse of `_fields`; JSON has lists where the state has tuples."""
    plain: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in fields.items()}
    number = plain["encoding"]
    shared = None if number is None else encodings[number]
    return plain | {"scaling": Scaling(**plain["scaling"]), "encoding": shared}
