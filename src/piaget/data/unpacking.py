"""Packed files are read only as far as they may go: a few bytes can hold very many."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any, BinaryIO, cast

from piaget.errors import DataError

LARGEST = 1 << 29  # bytes that a packed file may hold: 512 MB


class _Bounded(io.RawIOBase):
    """What a packed stream holds, and an error once that is too much."""

    def __init__(self, packed: BinaryIO, path: Path) -> None:
        self._packed, self._path, self._done = packed, path, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._packed.read(len(buffer))
        self._done += len(data)
        if self._done > LARGEST:
            raise too_large(self._path)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._packed.close()
        super().close()


def too_large(path: Path) -> DataError:
    """The error about a packed file that holds too much."""
    return DataError(
        f"{path} holds more than {LARGEST >> 20} MB when it is unpacked, the most that is read from a packed "
        "file; unpack it yourself if it is right"
    )


def opened(path: Path) -> BinaryIO:
    """A file for reading; packed by gzip (by its content, not by its name), it is unpacked."""
    try:
        with open(path, "rb") as handle:
            packed = handle.read(2) == b"\x1f\x8b"
        if packed:
            return io.BufferedReader(_Bounded(cast(BinaryIO, gzip.open(path)), path), 1 << 16)
        return open(path, "rb")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
