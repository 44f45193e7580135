"""Files that are there whole, or not at all, and that know whether they are still what was written. No heavy
imports."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from piaget.errors import LoadError, type_of


def write_atomically(path: Path, data: bytes, before: Path | None = None) -> None:
    """Writes a file so that it is either there whole or not at all. `before`: the name that the file which it
    replaces gets."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        if before is not None and path.is_file():
            os.replace(path, before)
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


# --- JSON with a seal -----------------------------------------------------------------------------------
# The last entry of such a file is a hash of all bytes before it: whatever becomes of the file, it is noticed.

_SEAL = re.compile(rb',\n "sha256": "([0-9a-f]{64})"\n\}\Z')


def write_json(path: Path, data: dict[str, Any], before: Path | None = None) -> None:
    """Writes a JSON object, sealed, as `write_atomically` does."""
    body = json.dumps(data, indent=1).encode().removesuffix(b"\n}")
    seal = f',\n "sha256": "{hashlib.sha256(body).hexdigest()}"\n}}'
    write_atomically(path, body + seal.encode(), before)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object, unless it is not what was written. Versions before 0.2 wrote no seal."""
    return _read(path)[0]


def _read(path: Path) -> tuple[dict[str, Any], bool]:
    """A JSON object, and whether it has a seal."""
    try:
        text = path.read_bytes()
        data = json.loads(text)
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise LoadError(f"{path} is damaged, it is no JSON: {error}") from error
    if not isinstance(data, dict):
        raise LoadError(f"{path} is damaged: it holds {type_of(data)}; expected an object")
    noted = data.pop("sha256", None)
    seal = _SEAL.search(text)
    if noted is not None and (seal is None or not _is_intact(text[: seal.start()], noted)):
        raise LoadError(f"{path} is damaged, or was edited: it is not what piaget wrote")
    return data, noted is not None


def _is_intact(body: bytes, digest: Any) -> bool:
    return hashlib.sha256(body).hexdigest() == digest


def read_described(path: Path, format: str, versions: Sequence[int]) -> dict[str, Any]:
    """A JSON object that says of what format and version it is. versions: the one that is written now, with a
    seal; older ones."""
    data, sealed = _read(path)
    if data.get("format") != format:
        raise LoadError(f"{path} does not describe a {format}")
    if data.get("version") not in versions:
        raise LoadError(
            f"{path} was saved in format version {data.get('version')}; this piaget reads "
            f"{' and '.join(map(str, versions))}: update piaget"
        )
    if data["version"] == versions[0] and not sealed:
        raise LoadError(f"{path} is damaged, or was edited: the hash at its end is missing")
    return data
