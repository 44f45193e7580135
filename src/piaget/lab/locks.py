"""One process at a time works in a run's folder."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import filelock

from piaget.errors import SettingError

LOOK = 0.5  # seconds: `piaget status` holds a lock for a moment, to see whether it is free


@contextlib.contextmanager
def only_one(folders: Sequence[Path]) -> Iterator[None]:
    """One process at a time works in a folder."""
    with contextlib.ExitStack() as locks:
        for folder in folders:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise _no_folder(folder, error) from error
            try:
                locks.enter_context(filelock.FileLock(folder / ".lock", timeout=LOOK))
            except filelock.Timeout:
                raise SettingError(
                    f"{folder}: another process is working there; wait for it, or give another folder"
                ) from None
        yield


def _no_folder(folder: Path, error: OSError) -> SettingError:
    """Why an output folder cannot be made."""
    places = (folder, *folder.parents)
    file = next((place for place in places if os.path.exists(place) and not os.path.isdir(place)), None)
    if file is not None:
        return SettingError(f"{file} is a file; expected a folder for the output, or a name for a new one")
    return SettingError(f"the output folder {folder} cannot be made: {error.strerror}")


def at_work(folder: Path) -> bool:
    """Does a process hold the folder's lock?"""
    if not (folder / ".lock").exists():
        return False
    lock = filelock.FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        return True
    except OSError as error:  # it cannot be written to: not by us, or, on a read-only disk, by nobody
        return error.errno != errno.EROFS
    lock.release()
    return False
