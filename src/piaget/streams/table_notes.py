"""What is odd about rows that come later, told in notes: it may be meant, or a slip of the pen."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from piaget.data.columns import as_frame, as_numbers, as_text, as_texts, is_table
from piaget.data.encoding import Column, Encoding
from piaget.errors import note

SHOWN = 5  # names in a message, at most
FAR = 1000  # spreads of a column in training, by which a value is away from its mean there
ELSEWHERE = 4  # of these spreads, by which most values are
MANY_ROWS = 50  # from which on it is no chance that whole numbers are all different
APART = 100  # ranges in which nine of ten values of a column lie, by which a value is away from their middle


def some(names: Sequence[Any]) -> str:
    """The first few, for a message."""
    shown = ", ".join("(missing)" if name is None else repr(name) for name in names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown}, ... ({len(names)} in all)"


def note_odd_columns(frame: Any, encoding: Encoding) -> None:
    """Categories that were never seen, values missing where none was, and numbers far from all others."""
    for column in encoding.columns:
        values = frame[column.name]
        missing = int(values.isna().sum())
        if missing and not column.may_miss:
            taken = (
                "these are answered by their other columns" if column.levels else f"{column.mean:g} is taken"
            )
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
        plain = {_plain(level): level for level in column.levels}
        alike = [plain[_plain(text)] for text in new if _plain(text) in plain]
        hint = f". {some(list(dict.fromkeys(alike)))} would be known: the same word, spelt otherwise" * bool(
            alike
        )
        note(
            f"column {column.name!r}: {some(new)} {'were' if len(new) > 1 else 'was'} never seen before, in "
            f"{rows} of {len(texts)} rows: these are answered by their other columns{hint}"
        )


def _note_far(column: Column, values: Any) -> None:
    encoded = column.encode(values)[:, 0]
    away = np.abs(encoded)
    rows = int((away > FAR).sum())
    middle = float(np.median(encoded[values.notna().to_numpy(bool)])) if values.notna().any() else 0.0
    if not rows and abs(middle) > ELSEWHERE:
        side = "above" if middle > 0 else "below"
        note(
            f"column {column.name!r}: these rows lie elsewhere, half of them {abs(middle):.1f} spreads or "
            f"more {side} the mean in training, so that answers are extrapolated. Is it in the same unit? (A "
            "date that is always later is better left out.)"
        )
    if rows:
        note(
            f"column {column.name!r} holds {values.iloc[int(away.argmax())]}, {away.max():.0e} times its "
            f"spread in training away from its mean there ({rows} of {len(values)} rows are far): is it in "
            "the same unit?"
        )


def note_outliers(columns: Iterable[str], frame: Any) -> None:
    """Values in a first table's columns of numbers that are so far from all others that these, scaled
    together with them, look alike."""
    for name in columns:
        numbers = as_numbers(name, frame[name])
        there = np.flatnonzero(~np.isnan(numbers))
        away, low, high = _apart(numbers[there])
        rows = int((away > APART).sum())
        if rows:
            worst = frame[name].iloc[there[int(away.argmax())]]
            note(
                f"column {name!r} holds {worst}, and nine of ten values lie within {low:g} and {high:g} "
                f"({rows} of {len(frame)} training rows are far away): scaled together with it, all others "
                "look alike. Mend such rows or leave them out; if they are right, give the column otherwise, "
                "as a logarithm or a rank"
            )


def note_held_out(columns: Iterable[Column], frame: Any) -> None:
    """Categories, and missing values, that no training row has: nothing can be learned of them."""
    for column in columns:
        texts = set(as_texts(frame[column.name])) if column.levels is not None else set()
        others = sorted(texts - {None, *(column.levels or ())})
        lacks = not column.may_miss and bool(frame[column.name].isna().any())
        told = [some(others)] * bool(others) + ["missing values"] * lacks
        if told:
            note(
                f"column {column.name!r}: {' and '.join(told)} occur only in rows that are held out, and "
                "count as values never seen"
            )


def note_identifiers(columns: Iterable[str], frame: Any) -> None:
    """Whole numbers that are different in every row of a first table, and consecutive but for gaps: cases
    that were numbered, nothing to predict from."""
    for name in (name for name in columns if frame[name].dtype.kind in "iuf"):  # not dates
        numbers = as_numbers(name, frame[name])
        whole = len(numbers) >= MANY_ROWS and bool((numbers == np.floor(numbers)).all())  # NaN is none
        if whole and len(np.unique(numbers)) == len(numbers) and np.ptp(numbers) < 2 * len(numbers):
            note(
                f"column {name!r} holds another whole number in each row, as cases are numbered: leave it "
                f"out (on the command line, --ignore {shlex.quote(name)}) unless it means something"
            )


def _apart(values: np.ndarray) -> tuple[np.ndarray, float, float]:
    """By how many central ranges each value (n,) is away from their middle, and that range. Where most values
    are equal (zeros, say), the range is that of the others."""
    some_values = values
    for _ in range(2):
        if not len(some_values):
            break
        low = float(np.quantile(some_values, 0.05, method="higher"))
        high = float(np.quantile(some_values, 0.95, method="lower"))
        if low < high:
            return np.abs(values - (low + high) / 2) / (high - low), low, high
        some_values = values[values != low]
    return np.zeros(len(values)), 0.0, 0.0


def note_other_groups(rows: Any, encoding: Encoding | None, task: str) -> None:
    """Rows of a table that are asked about as a task's, and are other groups'."""
    if encoding is None or not is_table(rows):
        return
    frame = as_frame(rows)
    if encoding.group in frame.columns:
        groups = as_texts(frame[encoding.group])
        others = [group for group in dict.fromkeys(groups) if group not in (task, None)]
        if others:
            count = int(np.isin(groups, np.array(others, object)).sum())
            note(
                f"{count} of {len(frame)} rows are of {encoding.group} {some(others)}, and are answered as "
                f"if they were of {task!r}; predict_table answers each row by its own group"
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
            f"groups {some(names)} are treated as different from {some(list(dict.fromkeys(others)))}, which "
            "are spelt nearly the same (capitals, blanks, 1.0 for 1): if they are the same, write them alike"
        )


def _plain(name: str) -> str:
    text = " ".join(name.casefold().split())
    try:
        number = float(text)
    except ValueError:
        return text
    return as_text(number) if abs(number) < 2**53 else text  # beyond, different whole numbers are the same
