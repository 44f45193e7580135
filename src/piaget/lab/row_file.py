"""Rows on disk: one CSV file a run, which only grows."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from piaget.errors import LoadError
from piaget.knowledge.storage import write_atomically
from piaget.scoring.watch import COLUMNS, Row

HEADER = (",".join(COLUMNS) + "\n").encode()


class RowFile:
    """Appends rows. What lies behind `size` was written and not kept: it is cut off when opened."""

    def __init__(self, path: Path, size: int | None = None) -> None:
        self.path = path
        if size is None:
            write_atomically(path, HEADER)
            size = len(HEADER)
        found = path.stat().st_size if path.is_file() else 0
        if found < size:
            raise LoadError(
                f"{path} has {found:,} bytes, but {size:,} were written: it was changed or cut off"
            )
        if found > size:
            os.truncate(path, size)
        self.size = size

    def append(self, rows: Sequence[Row]) -> None:
        """On disk when it returns."""
        if not rows:
            return
        data = as_csv(rows)
        with open(self.path, "ab") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        self.size += len(data)


def as_csv(rows: Sequence[Row]) -> bytes:
    text = io.StringIO(newline="")
    csv.DictWriter(text, COLUMNS, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def read_rows(files: Sequence[Path]) -> Iterator[Row]:
    for path in files:
        with open(path, newline="", encoding="utf-8") as handle:
            for text in csv.DictReader(handle):
                row: Any = text | {key: convert(text[key]) for key, convert in _NUMBERS.items()}
                yield row


_NUMBERS: dict[str, Callable[[str], Any]] = {"seed": int, "epoch": int, "value": float}
