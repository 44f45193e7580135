"""Rows that a first table has more than once: copies, or rows that are alike by chance?"""

from __future__ import annotations

from typing import Any

import numpy as np

from piaget.errors import note
from piaget.extras import need

COPIES = 0.9  # of pairs of rows that agree in a column which tells rows apart: agree in all, at least
SEVERAL = 0.01  # of the rows, at least, are copied: with fewer, scores hardly change


def copied(frame: Any, groups: np.ndarray) -> np.ndarray | None:
    """(n,) whole numbers, the same for equal rows of a group, if rows were copied; else None. frame: what is
    used of the table. groups: (n,) the name of each row's.

    Where a table has few columns of few values, rows are equal by chance, and later ones will be, too. So
    there has to be a column in which two rows of a group hardly ever agree, unless they agree in all others.
    """
    values = [_numbers(frame[name]) for name in frame]
    rows = own = _numbers(groups)
    for numbers in values:
        rows = _both(rows, numbers)
    if len(values) < 2 or (np.bincount(rows)[rows] > 1).mean() < SEVERAL:
        return None
    tells = any(_pairs(rows) >= COPIES * _pairs(_both(own, numbers)) for numbers in values)
    return rows if tells else None


def _numbers(values: Any) -> np.ndarray:
    """Equal values of a column have the same number, missing ones, too."""
    return need("pandas", "tables").factorize(values)[0] + 1


def _both(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Numbers of pairs of numbers."""
    return np.unique(first * (int(second.max()) + 1) + second, return_inverse=True)[1]


def _pairs(numbers: np.ndarray) -> int:
    """How many pairs of rows have the same number."""
    counts = np.bincount(numbers)
    return int((counts * (counts - 1)).sum()) // 2


def note_copied(rows: np.ndarray, source: str, parts: np.ndarray | None, kept_together: bool) -> None:
    """rows: as `copied` gives them. parts: 0, 1 or 2 for each, if the table says for what they are.
    kept_together: if it does not, equal rows are put into the same split."""
    often, told = np.bincount(rows), "equal rows are kept in the same split"
    if parts is not None:
        last = np.zeros(len(often), np.int64)
        last[rows] = parts
        kept_together = not bool((last[rows] != parts).any())
        told = "each in a single split"
    if not kept_together:
        told = "some are in several splits, so that scores on test rows are too good"
    note(
        f"{source}: {int((often[rows] > 1).sum()):,} of {len(rows):,} rows occur more than once "
        f"({len(often):,} are different): {told}. Each counts as often as it occurs: leave copies out, "
        "unless they are different cases"
    )
