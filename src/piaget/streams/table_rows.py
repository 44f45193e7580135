"""Rows of a table that comes later: by group, encoded as the first one was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from piaget.data.columns import as_numbers, as_text, as_texts, read_table
from piaget.data.encoding import Encoding
from piaget.errors import DataError, note
from piaget.streams.table_groups import PARTS, parts_of
from piaget.streams.table_notes import note_odd_columns, some
from piaget.streams.table_stream import without_missing


def rows_by_group(
    table: Any,
    encoding: Encoding,
    labels: Sequence[Any],
    columns: Sequence[str] | None = None,
    split: str | None = None,
) -> tuple[dict[str, tuple[Tensor, Tensor]], str]:
    """{group: (x (n, inputs) float64, y (n,))} of a table with a target, and what to call it.

    y: numbers of the labels, or values if there are none. columns: those that the first table had; what is
    missing is an error, what is more is noted. split: a column that said which of its rows were for what;
    test rows are left out.
    """
    frame, source = read_table(table, [encoding.group, *encoding.categories])
    check_columns(source, list(frame.columns), encoding, columns, [encoding.target])
    frame = without_missing(frame, source, [encoding.group, encoding.target])
    frame = encoding.recognized(frame if split is None else _without_test(frame, source, split))
    note_odd_columns(frame, encoding)
    x = torch.from_numpy(encoding.encode(frame)).double()
    target = frame[encoding.target]
    if labels:
        y = torch.from_numpy(_numbers(encoding.target, target, labels))
    else:
        y = torch.tensor(as_numbers(encoding.target, target))
    groups = as_texts(frame[encoding.group])
    places = {name: torch.from_numpy(np.flatnonzero(groups == name)) for name in dict.fromkeys(groups)}
    return {name: (x[rows], y[rows]) for name, rows in places.items()}, source


def _without_test(frame: Any, source: str, split: str) -> Any:
    """Rows that a column calls test rows are left out, with a note."""
    if split not in frame.columns:
        note(f"{source}: there is no column {split!r}, which told test rows; all rows are learned")
        return frame
    test = parts_of(frame[split]) == PARTS["test"]
    if test.all():
        raise DataError(f"{source}: all {len(frame)} rows are test rows by column {split!r}; none to learn")
    if test.any():
        note(f"{source}: {test.sum()} of {len(frame)} rows are test rows by column {split!r}; not learned")
    return frame[~test]


def check_columns(
    source: str,
    there: Sequence[str],
    encoding: Encoding,
    before: Sequence[str] | None,
    also: Sequence[str] = (),
) -> None:
    """Raises an error if a column is missing; columns that are new are noted."""
    needed = [encoding.group, *also, *(column.name for column in encoding.columns)]
    absent = [name for name in needed if name not in there]
    if absent:
        raise DataError(
            f"{source}: the columns changed: there is no {some(absent)}; found {', '.join(there)}; expected "
            f"{', '.join(needed)}"
        )
    new = [name for name in there if before is not None and name not in before]
    if new:
        note(f"{source}: columns that were not there before are not used: {some(new)}")


def _numbers(name: str, target: Any, labels: Sequence[Any]) -> np.ndarray:
    """The class number of each row."""
    number = {label: i for i, label in enumerate(labels)}
    texts = {as_text(label): i for label, i in number.items()}
    if texts.keys() == {"True", "False"}:  # files have TRUE, too
        texts |= {spelt: texts[text] for text in list(texts) for spelt in (text.lower(), text.upper())}
    values = [v.item() if isinstance(v, np.generic) else v for v in target.to_numpy(object)]
    found = [number.get(v, texts.get(as_text(v), -1)) for v in values]
    if -1 in found:
        odd = values[found.index(-1)]
        raise DataError(
            f"column {name!r} holds {odd!r} in row {target.index[found.index(-1)]}; expected "
            f"{', '.join(map(repr, labels))}, as in the first table"
        )
    return np.array(found, np.int64)
