"""Rows on disk: one CSV file a run, which only grows."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from piaget.errors import LoadError
from piaget.files import write_atomically
from piaget.scoring import rows as contract
from piaget.scoring.rows import COLUMNS, OLD_COLUMNS, Row, downgrade


def _header(columns: Sequence[str]) -> bytes:
    return (",".join(columns) + "\n").encode()


HEADER = _header(COLUMNS)


class RowFile:
    """Appends rows. What lies behind `size` was written and not kept: it is cut off when opened.

    A file that an older version began is carried on in its own form, so that it stays one table.
    """

    def __init__(self, path: Path, size: int | None = None) -> None:
        self.path = path
        if size is None:
            write_atomically(path, HEADER)
            size = len(HEADER)
        length = path.stat().st_size if path.is_file() else 0
        if length < size:
            raise LoadError(
                f"{path} has {length:,} bytes, but {size:,} were written: it was changed or cut off"
            )
        if length > size:
            os.truncate(path, size)
        self.size = size
        with open(path, "rb") as handle:
            self.old = handle.readline() == _header(OLD_COLUMNS)

    def append(self, rows: Sequence[Row]) -> None:
        """On disk when it returns."""
        if not rows:
            return
        data = as_csv(rows, self.old)
        with open(self.path, "ab") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        self.size += len(data)


def as_csv(rows: Sequence[Row], old: bool = False) -> bytes:
    """Rows as lines of the file; `old`: as version 0.1 wrote them."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, OLD_COLUMNS if old else COLUMNS, lineterminator="\n")
    writer.writerows(downgrade(row) if old else row for row in rows)
    return text.getvalue().encode()


def read_rows(files: Sequence[Path]) -> Iterator[Row]:
    """The rows of several files, one after the other."""
    for path in files:
        with open(path, newline="", encoding="utf-8") as handle:
            yield from contract.read_rows(handle)
