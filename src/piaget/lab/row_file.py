"""Rows on disk: one CSV file a run, which only grows. What was kept of it is verified before it is used."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from piaget.errors import LoadError
from piaget.files import write_atomically
from piaget.scoring import rows as contract
from piaget.scoring.rows import COLUMNS, OLD_COLUMNS, Row, downgrade


def _header(columns: Sequence[str]) -> bytes:
    return (",".join(columns) + "\n").encode()


HEADER = _header(COLUMNS)


class Extent(NamedTuple):
    """How much of a row file was kept: so many bytes, and their hash (of version 0.1: none)."""

    size: int
    sha256: str | None = None


class RowFile:
    """Appends rows. What lies behind `kept` was written and not kept: it is cut off when opened.

    A file that an older version began is carried on in its own form, so that it stays one table.
    """

    def __init__(self, path: Path, kept: Extent | None = None) -> None:
        self.path = path
        if kept is None:
            write_atomically(path, HEADER)
        there = HEADER if kept is None else kept_bytes(path, kept)
        if path.stat().st_size > len(there):
            os.truncate(path, len(there))
        self._size, self._hash = len(there), hashlib.sha256(there)
        self.old = there.startswith(_header(OLD_COLUMNS))

    @property
    def extent(self) -> Extent:
        """All that was appended."""
        return Extent(self._size, self._hash.hexdigest())

    def rows(self) -> Iterator[Row]:
        """All rows that are in it."""
        return rows_of(self.path, self.path.read_bytes())

    def append(self, rows: Sequence[Row]) -> None:
        """On disk when it returns."""
        if not rows:
            return
        data = as_csv(rows, self.old)
        with open(self.path, "ab") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        self._size += len(data)
        self._hash.update(data)


def as_csv(rows: Sequence[Row], old: bool = False) -> bytes:
    """Rows as lines of the file; `old`: as version 0.1 wrote them."""
    columns = OLD_COLUMNS if old else COLUMNS
    plain: Iterable[Any] = map(downgrade, rows) if old else rows
    return csv_text([row[name] for name in columns] for row in plain)


def csv_text(lines: Iterable[Sequence[Any]]) -> bytes:
    """Lines of a CSV file that end with a line feed. Before Python 3.13 only those characters of a name are
    quoted that end a line: so lines end with both while they are written, or a name with a carriage return
    could not be read back."""
    parts: list[str] = []

    class _Lines:
        def write(self, line: str) -> None:
            parts.append(line.removesuffix("\r\n") + "\n")

    csv.writer(_Lines(), lineterminator="\r\n").writerows(lines)
    return "".join(parts).encode()


def kept_bytes(path: Path, kept: Extent, whole: bool = False) -> bytes:
    """The part of a row file that was kept, verified. `whole`: nothing may be behind it."""
    try:
        with open(path, "rb") as handle:
            there = handle.read(kept.size)
            more = handle.read(1) if whole else b""
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error.strerror}") from error
    if len(there) < kept.size:
        raise LoadError(
            f"{path} is damaged: it has {len(there):,} bytes, but {kept.size:,} were written; it was cut off"
        )
    if more:
        raise LoadError(f"{path} was edited: it has more than the {kept.size:,} bytes that were written")
    if kept.sha256 is not None and hashlib.sha256(there).hexdigest() != kept.sha256:
        raise LoadError(f"{path} is damaged, or was edited: its rows are not those that were written")
    return there


def whole_lines(path: Path) -> bytes:
    """All that is there. The last line may be half written, by a run that is at work or was killed."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error.strerror}") from error
    return text[: text.rfind(b"\n") + 1]


def rows_of(path: Path, text: bytes) -> Iterator[Row]:
    """The rows of a file's text."""
    first = text[: text.find(b"\n") + 1]
    if text and first not in (HEADER, _header(OLD_COLUMNS)):
        raise LoadError(f"{path} is no file of rows: it begins with {first[:100]!r}; expected {HEADER!r}")
    try:
        yield from contract.read_rows(io.StringIO(text.decode(), newline=""))
    except (csv.Error, ValueError, KeyError, TypeError) as error:
        raise LoadError(f"{path} is no file of rows: {type(error).__name__}: {error}") from error
