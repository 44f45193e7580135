"""The groups of a table: the rows of each, divided into training, validation and test rows."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from piaget.data.columns import as_text, as_texts
from piaget.data.encoding import Encoding
from piaget.data.plain import Fractions
from piaget.data.tasks import Kind, Task, split_rows
from piaget.errors import DataError
from piaget.streams.cuts import Rows, limit, make_task, of_rows, unusable

PARTS = {"train": 0, "validation": 1, "valid": 1, "val": 1, "test": 2}


@dataclass(frozen=True, eq=False)
class Group:
    """One group of rows that is a task."""

    rows: Rows  # of the table
    y: np.ndarray  # class numbers, or values, of these rows
    labels: list[Any] | None  # of the classes
    parts: tuple[Rows, Rows, Rows]  # training, validation and test: places in `rows`
    lack: str | None = None  # why it is no task for every learner

    @property
    def train(self) -> Rows:
        return self.rows[self.parts[0]]

    def task(self, name: str, stream: str, kind: Kind, x: np.ndarray, encoding: Encoding) -> Task:
        """x: the inputs of all rows of the table."""
        if kind == "multiclass" and self.labels is not None and len(self.labels) == 2:
            kind = "binary"  # two of several classes
        return make_task(
            name,
            kind,
            of_rows(x[self.rows], self.y, self.parts),
            stream=stream,
            labels=self.labels,
            scaling=encoding.scaling,
            encoding=encoding,
            partial=self.lack is not None and kind != "regression",
        )


def groups_of(
    names: np.ndarray,
    y: np.ndarray,
    kind: Kind,
    parts: np.ndarray | None,
    fractions: Fractions,
    stratified: bool,
    train_size: int | None,
    seed: int,
    copies: np.ndarray | None = None,
    keep: bool = False,
) -> tuple[dict[str, Group], dict[str, str]]:
    """The groups in order of occurrence, and {group: why it is no task}. parts: 0, 1 or 2 a row. copies:
    numbers that equal rows share, if these are to be in the same split. keep: a group is a task, whatever it
    lacks, if it has training rows; with the classes of all groups."""
    every, all_labels = (y, None) if kind == "regression" else classes_of(y)
    keep = keep and len(np.unique(every)) > 1
    members: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        members.setdefault(name, []).append(row)
    groups, skipped = {}, {}
    for name, listed in members.items():
        rows = np.array(listed)
        own, labels = (y[rows], None) if kind == "regression" else classes_of(y[rows])
        if parts is not None:
            first, second, third = (np.flatnonzero(parts[rows] == i) for i in range(3))
            reason = unusable(own, (first, second, third), (1, 0, 0))
        else:
            # A group's own: other groups change nothing.
            draw = zlib.crc32(f"{seed}/{name}".encode("utf-8", "surrogatepass"))
            classes = len(labels or ()) if stratified else 0
            same = None if copies is None else copies[rows]
            first, second, third = _divided(own, classes, fractions, draw, same)
            reason = unusable(own, (first, second, third), fractions)
        if reason and not (keep and len(first)):
            skipped[name] = reason
            continue
        if reason:
            own, labels = every[rows], all_labels
            if parts is None and fractions[2] > 0 and not len(third):
                second, third = third, second  # a score says more than a choice among simple models
        train = limit(first, own, train_size, kind)
        groups[name] = Group(rows, own, labels, (train, second, third), reason)
    return groups, skipped


def _divided(
    y: np.ndarray, classes: int, fractions: Fractions, seed: int, copies: np.ndarray | None
) -> tuple[Rows, Rows, Rows]:
    """`split_rows`; if there are copies, of the first of equal rows, and the others are where it is."""
    numbers = np.arange(len(y)) if copies is None else copies
    _, places, number = np.unique(numbers, return_index=True, return_inverse=True)
    firsts = np.sort(places)
    divided = split_rows(torch.from_numpy(y[firsts]), classes, fractions, seed)
    first, second, third = (firsts[part.numpy()] for part in divided)
    if len(firsts) < len(y):
        origin = places[number]
        first, second, third = (np.flatnonzero(np.isin(origin, part)) for part in (first, second, third))
    return first, second, third


def parts_of(split: Any) -> np.ndarray:
    """0, 1 or 2 for each row, by a column of train, validation or test."""
    texts = [str(text).strip().lower() for text in as_texts(split)]
    odd = next((i for i, text in enumerate(texts) if text not in PARTS), None)
    if odd is not None:
        raise DataError(
            f"column {split.name!r} holds {split.iloc[odd]!r} in row {split.index[odd]}; expected train, "
            "validation or test"
        )
    return np.array([PARTS[text] for text in texts])


def classes_of(y: np.ndarray) -> tuple[np.ndarray, list[Any]]:
    """Class numbers and labels, in the labels' own order; numbers before texts."""
    labels = sorted(
        set(y), key=lambda v: (isinstance(v, str), v if isinstance(v, str | int | float) else str(v))
    )
    number = {label: i for i, label in enumerate(labels)}
    plain = [v.item() if isinstance(v, np.generic) else v for v in labels]
    numbers = np.array([number[v] for v in y], np.int64)
    return numbers, [v if isinstance(v, str | int | float) else as_text(v) for v in plain]
