"""What is odd about rows that come later, told in notes: it may be meant, or a slip of the pen."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from piaget.data.columns import as_text, as_texts
from piaget.data.encoding import Column, Encoding
from piaget.errors import DataNote

SHOWN = 5  # names in a message, at most
FAR = 1000  # spreads of a column in training, by which a value is away from its mean there


def some(names: Sequence[Any]) -> str:
    """The first few, for a message."""
    shown = ", ".join("(missing)" if name is None else repr(name) for name in names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown}, ... ({len(names)} in all)"


def note(text: str) -> None:
    """To whoever called the function that calls this one."""
    warnings.warn(text, DataNote, stacklevel=4)


def note_odd_columns(frame: Any, encoding: Encoding) -> None:
    """Categories that were never seen, values missing where none was, and numbers far from all others."""
    for column in encoding.columns:
        values = frame[column.name]
        missing = int(values.isna().sum())
        if missing and not column.may_miss:
            taken = "they are told by their other columns" if column.levels else "its mean is taken"
            note(
                f"column {column.name!r} has no value in {missing} of {len(frame)} rows, and none was "
                f"missing in training: {taken}"
            )
        if column.levels is None:
            _note_far(column, values)
        else:
            _note_new(column, as_texts(values))


def _note_new(column: Column, texts: np.ndarray) -> None:
    assert column.levels is not None
    levels = set(column.levels)
    new = [text for text in dict.fromkeys(texts) if text is not None and text not in levels]
    if new:
        rows = int(np.isin(texts, np.array(new, object)).sum())
        note(
            f"column {column.name!r}: {some(new)} was never seen before, in {rows} of {len(texts)} rows: "
            "they are told by their other columns"
        )


def _note_far(column: Column, values: Any) -> None:
    away = np.abs(column.encode(values)[:, 0])
    rows = int((away > FAR).sum())
    if rows:
        note(
            f"column {column.name!r} holds {values.iloc[int(away.argmax())]}, {away.max():.0e} times its "
            f"spread in training away from its mean there ({rows} of {len(values)} rows are far): is it in "
            "the same unit?"
        )


def note_alike(new: Iterable[str], known: Iterable[str] = ()) -> None:
    """Names of groups that differ from others only as the same name may be written twice."""
    first = {_plain(name): name for name in known}
    same = set(first.values())
    pairs = []
    for name in new:
        other = first.setdefault(_plain(name), name)
        if other != name and name not in same:
            pairs.append((name, other))
    if pairs:
        names, others = ([pair[i] for pair in pairs] for i in range(2))
        note(
            f"groups {some(names)} are taken for others than {some(list(dict.fromkeys(others)))}, which are "
            "spelt nearly the same (capitals, blanks, 1.0 for 1): if they are the same, write them the same"
        )


def _plain(name: str) -> str:
    text = " ".join(name.casefold().split())
    try:
        return as_text(float(text))
    except ValueError:
        return text
