"""Finding the files of a source, downloading those that are absent, and reading them.

Files are looked for in the data folder that was given, then in the folder that the environment
variable PIAGET_DATA names, then in the user's cache folder. What is in none of them is downloaded
to the first of these folders that can be written to.
"""

from __future__ import annotations

import functools
import hashlib
import http.client
import os
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock
from platformdirs import user_cache_path

from piaget.errors import DataError, note
from piaget.streams.sources import File, Source

Progress = Callable[[File, int, int | None], None]  # bytes so far, and in all if that is known
ATTEMPTS, TIMEOUT, PAUSE, CHUNK = 4, 30.0, 1.0, 1 << 18  # per address; seconds; seconds; bytes


def folders(data_dir: str | os.PathLike[str] | None) -> list[Path]:
    """Where files are looked for, in order."""
    given = {"": data_dir, "PIAGET_DATA: ": os.environ.get("PIAGET_DATA")}
    try:
        named = {what: Path(folder).expanduser() for what, folder in given.items() if folder}
    except (TypeError, RuntimeError) as error:
        raise DataError(f"the data folder {data_dir!r} is no path: {error}") from error
    for what, folder in named.items():
        if not folder.is_dir():
            raise DataError(
                f"{what}the data folder {folder} {'is no folder' if folder.exists() else 'does not exist'}; "
                "create it, or give another"
            )
    return [*named.values(), user_cache_path("piaget") / "data"]


def find(file: File, places: list[Path]) -> Path | None:
    """A file of the data folders, also if it was unpacked (without .gz)."""
    for folder in places:
        for path in (folder / file.path, folder / file.path.removesuffix(".gz")):
            if path.is_file():
                return path
    return None


def matches(path: Path, expected: str) -> bool:
    """Is it the public file? By its hash, "md5:..." or "sha256:..."; without one, there is none."""
    method, _, wanted = expected.partition(":")
    if not method:
        return True
    try:
        with open(path, "rb") as handle:
            # md5 is what some publishers give; it guards against damage here, not against malice
            digest = hashlib.file_digest(handle, lambda: hashlib.new(method, usedforsecurity=False))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    return digest.hexdigest() == wanted


def open_source(
    source: Source, data_dir: str | os.PathLike[str] | None = None, progress: Progress | None = None
) -> Any:
    """What a source holds: found, or downloaded, and read. Kept in memory for the next time."""
    paths = locate(source, data_dir, progress)
    marks = tuple((path, path.stat().st_mtime_ns, path.stat().st_size) for path in paths)
    return _read(source.name, source, marks)


def locate(
    source: Source, data_dir: str | os.PathLike[str] | None, progress: Progress | None = None
) -> list[Path]:
    """The paths of a source's files, which are downloaded if need be."""
    places = folders(data_dir)
    found = [find(file, places) for file in source.files]
    absent = [file for file, path in zip(source.files, found, strict=True) if path is None]
    if absent:
        fetch(source, absent, places, progress)
        found = [find(file, places) for file in source.files]
    return [path for path in found if path is not None]


def fetch_source(
    source: Source, data_dir: str | os.PathLike[str] | None, progress: Progress | None = None
) -> None:
    """Downloads what is absent of a source, and what is damaged."""
    places = folders(data_dir)
    paths = locate(source, data_dir, progress)
    try:
        check(source, paths)
    except DataError as error:
        wrong = [f for f, path in zip(source.files, paths, strict=True) if not matches(path, f.hash)]
        before = [places.index(folder) for folder in places if any(folder in path.parents for path in paths)]
        if not wrong or places.index(_writable(places)) > min(before):
            raise DataError(
                f"{error}\nIt cannot be replaced there: remove it, or give another folder"
            ) from None
        fetch(source, wrong, places, progress)
        check(source, locate(source, data_dir, progress))


def check(source: Source, paths: list[Path]) -> None:
    """Raises an error if the files are not what they should be, read in full."""
    source.check(source.read(*paths))


def fetch(source: Source, files: list[File], places: list[Path], progress: Progress | None) -> None:
    """Downloads files of a source, with a bar if no other way to show progress is given."""
    folder = _writable(places)
    with _bar(progress) as shown:
        for file in files:
            try:
                download(file, folder, shown)
            except DataError as error:
                how = [
                    f"With a network: piaget data fetch {source.name}\n"
                    f"Without one: get {address} elsewhere, and put it at {places[0] / file.path}"
                    for address in file.addresses[:1]
                ]
                state = "is missing" if find(file, places) is None else "is damaged"
                text = [f"{file.path} {state}, and could not be downloaded:", str(error)]
                text += [f"Looked for in: {', '.join(map(str, places))}", *how]
                raise DataError("\n".join(text)) from None


@functools.lru_cache(maxsize=4)
def _read(name: str, source: Source, marks: tuple[tuple[Path, int, int], ...]) -> Any:
    paths = [path for path, _, _ in marks]
    other = [
        file.path for file, path in zip(source.files, paths, strict=True) if not matches(path, file.hash)
    ]
    try:
        content = source.read(*paths)
    except DataError as error:
        raise DataError(f"{error}\nTo get the public file instead: piaget data fetch {name}") from None
    if other:
        found = (
            "is not the public file by its hash"
            if len(other) == 1
            else "are not the public files by their hashes"
        )
        note(f"{', '.join(other)} {found}, but can be read, and used")
    return content


# --- downloading ------------------------------------------------------------------------------------------


@dataclass
class _Failure(Exception):
    text: str
    again: bool  # the same address may do the next time


def download(file: File, folder: Path, progress: Progress) -> Path:
    """Gets a file from the first address that gives the right one; whole, or not at all.

    What has come so far lies beside the target; it is carried on with when a transfer breaks off,
    also by a later call. One process downloads at a time; others wait and then find the file.
    """
    target = folder / file.path
    part, lock = (target.with_name(f".{target.name}.{end}") for end in ("part", "lock"))
    if not file.addresses:
        raise DataError("it is not a public file: there is no address for it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{target.parent} cannot be made: {error}") from None
    try:
        with FileLock(lock):
            try:
                if not (target.is_file() and matches(target, file.hash)):
                    _from_any_address(file, part, progress)
                    os.replace(part, target)
                return target
            finally:
                lock.unlink(missing_ok=True)
    except OSError as error:  # a full disk, a folder that is locked
        raise DataError(f"{target} cannot be written: {error}") from None


def _from_any_address(file: File, part: Path, progress: Progress) -> None:
    """Until `part` is the whole, right file."""
    if part.is_file() and matches(part, file.hash):
        return
    problems = []
    for address in file.addresses:
        for attempt in range(ATTEMPTS):
            time.sleep(PAUSE * (2**attempt - 1))
            try:
                _transfer(address, part, file, progress)
                return
            except _Failure as failure:
                problems.append(f"{address}: {failure.text}")
                if not failure.again:
                    break
    raise DataError("\n".join(dict.fromkeys(problems)))


def _transfer(address: str, part: Path, file: File, progress: Progress) -> None:
    """One request; afterwards `part` is the whole, right file, or what has come of it so far."""
    begun = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(address, headers={"User-Agent": "piaget"})
    if begun:
        request.add_header("Range", f"bytes={begun}-")
    done, total = begun, None
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as reply:
            begun = done = begun if reply.status == 206 else 0
            length = reply.headers.get("Content-Length")
            total = begun + int(length) if re.fullmatch("[0-9]{1,18}", length or "") else None
            with open(part, "ab" if begun else "wb") as out:
                while chunk := reply.read(CHUNK):
                    out.write(chunk)
                    done += len(chunk)
                    progress(file, done, total)
                    if done > 4 * file.size + (1 << 20):
                        part.unlink()
                        raise _Failure(f"it sends more than {done:,} bytes: not the public file", False)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # what has come so far is no beginning of what is there
            part.unlink(missing_ok=True)
        again = error.code in (408, 416, 429) or error.code >= 500
        raise _Failure(f"the server answers {error.code} {error.reason}", again) from None
    except (OSError, http.client.HTTPException) as error:  # no connection, or it broke off
        reason = getattr(error, "reason", None) or error
        down = isinstance(reason, socket.gaierror | ConnectionRefusedError)  # it will be the next time, too
        raise _Failure(str(reason) or type(reason).__name__, again=not down) from None
    if total is not None and done < total:
        raise _Failure(f"the transfer broke off after {done:,} of {total:,} bytes", True)
    if not matches(part, file.hash):
        part.unlink()
        raise _Failure("what it sends is not the public file: its hash differs", again=begun > 0)


def _writable(places: list[Path]) -> Path:
    for folder in places:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    raise DataError(f"none of the data folders can be written to: {', '.join(map(str, places))}")


class _bar:
    """A bar on the terminal, or a line a file elsewhere."""

    def __init__(self, progress: Progress | None) -> None:
        self.given = progress

    def __enter__(self) -> Progress:
        if self.given is not None:
            return self.given
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress as Bars,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        console = Console(stderr=True)
        self.bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self.bars.start()
        shown: dict[str, Any] = {}

        def report(file: File, done: int, total: int | None) -> None:
            if file.path not in shown:
                shown[file.path] = self.bars.add_task(f"downloading {file.path}", total=total)
                if not console.is_terminal:
                    console.print(f"downloading {file.path} ({(total or file.size) / 1e6:.1f} MB)")
            self.bars.update(shown[file.path], completed=done, total=total)

        return report

    def __exit__(self, *error: object) -> None:
        if self.given is None:
            self.bars.stop()
