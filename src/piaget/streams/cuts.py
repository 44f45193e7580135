"""Cutting arrays into tasks. Everything here is a function of arrays and a random generator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from piaget.data.encoding import Encoding, Scaling
from piaget.data.plain import Fractions, check_count, check_fractions
from piaget.data.tasks import Kind, Split, Task, split_rows
from piaget.errors import SettingError, TaskError

Rows = np.ndarray  # row numbers
PARTS = ("train", "validation", "test")
MOST_TASKS = 100_000  # drawn from classes that may be used again


def check_tasks(tasks: int | None) -> int:
    """How many tasks there are to be, where there may be any number."""
    tasks = check_count("tasks", tasks)
    if tasks > MOST_TASKS:
        raise SettingError(f"tasks={tasks}; expected at most {MOST_TASKS:,}")
    return tasks


def draw_classes(
    rng: np.random.Generator, classes: int, per_task: int, tasks: int | None, *, reuse: bool
) -> list[list[int]]:
    """The classes of each task. `reuse`: different tasks may have the same class.

    Without reuse, and without a number of tasks, there are as many as the classes suffice for.
    """
    per_task = check_count("classes_per_task", per_task)
    if per_task < 2 or per_task > classes:
        raise SettingError(f"{per_task} classes a task; expected 2 to {classes}")
    if reuse:
        return [rng.choice(classes, per_task, replace=False).tolist() for _ in range(check_tasks(tasks))]
    most = classes // per_task
    tasks = most if tasks is None else check_count("tasks", tasks)
    if tasks > most:
        raise SettingError(
            f"{tasks} tasks of {per_task} classes each; expected at most {most}, since there are {classes} "
            "classes, none of which occurs in two tasks"
        )
    order = rng.permutation(classes)[: tasks * per_task]
    return order.reshape(tasks, per_task).tolist()


def divide(rng: np.random.Generator, n: int, fractions: Fractions) -> tuple[Rows, Rows, Rows]:
    """Rows 0 .. n-1, shuffled: training, validation and test; what rounding leaves over is for test."""
    fractions = check_fractions(fractions)
    order = rng.permutation(n)
    first = int(n * fractions[0] + 1e-9)
    second = first + int(n * fractions[1] + 1e-9)
    if fractions[2] == 0:
        second = n
    return order[:first], order[first:second], order[second:]


def divide_with_all_classes(
    rng: np.random.Generator, y: np.ndarray, fractions: Fractions
) -> tuple[Rows, Rows, Rows]:
    """`divide`, drawn again until no class is without a training sample (or it cannot be)."""
    if y.dtype.kind == "f":
        return divide(rng, len(y), fractions)
    classes = len(np.unique(y))
    for _ in range(100):
        rows = divide(rng, len(y), fractions)
        if len(np.unique(y[rows[0]])) == classes:
            break
    return rows


def unusable(y: np.ndarray, parts: tuple[Rows, Rows, Rows], fractions: Fractions) -> str | None:
    """Why samples divided like this are no task, if so. y: class numbers from 0, or values."""
    if len(np.unique(y)) < 2:
        return "it has a single sample" if len(y) < 2 else "its target is constant"
    for part, share, name in zip(parts, fractions, ("training", "validation", "test"), strict=True):
        if share > 0 and not len(part):
            if share == 1:  # others say what each sample is for
                return f"none of its {len(y)} samples is for {name}"
            enough = math.ceil(1 / min(s for s in fractions if s > 0))
            return f"its {len(y)} samples are too few: none is left for {name} ({enough} would be enough)"
    if y.dtype.kind != "f" and len(np.unique(y[parts[0]])) <= y.max():
        return f"a class has too few of its {len(y)} samples: none is left for training"
    return None


def rest_divided(
    rows: Mapping[str, Rows], y: Mapping[str, np.ndarray], values: bool, fractions: Fractions, seed: int
) -> dict[str, tuple[str, Rows]] | str:
    """The rows of one task in each part of a data set, with parts that are not there cut from training.

    rows, y: by part, rows of the task, and labels (or `values`) of all rows. Returned: the rows of each part
    of the task, and the part of the data set that they are of; or why it is no task. What is cut off is in
    proportion to `fractions`, every class alike.
    """
    there = {part: found for part, found in rows.items() if part == "train" or len(found)}
    mine = y["train"][there["train"]]
    number = np.zeros(len(mine)) if values else np.unique(mine, return_inverse=True)[1]
    wanted = [
        0.0 if part in there and part != "train" else share
        for part, share in zip(PARTS, fractions, strict=True)
    ]
    shares = (wanted[0] / sum(wanted), wanted[1] / sum(wanted), wanted[2] / sum(wanted))
    cut = split_rows(torch.from_numpy(number), 0 if values else int(number.max(initial=0)) + 1, shares, seed)
    parts = (cut[0].numpy(), cut[1].numpy(), cut[2].numpy())
    reason = unusable(mine.astype(np.float64) if values else number, parts, shares)
    if reason:
        return reason
    new = {
        part: ("train", there["train"][found]) for part, found in zip(PARTS, parts, strict=True) if len(found)
    }
    return {part: (part, found) for part, found in there.items()} | new


def check_train_size(size: int | None, classes: int) -> None:
    """Raises an error if tasks of so many classes cannot have so few training samples."""
    if size is not None and check_count("train_size", size) < classes:
        raise SettingError(f"train_size={size}; expected {classes} or more, one sample of each class")


def limit(rows: Rows, y: np.ndarray, size: int | None, kind: Kind) -> Rows:
    """At most `size` of the training rows, the first ones, but at least one of each class. y: all rows'."""
    if size is None:
        return rows
    size = check_count("train_size", size)
    if size >= len(rows):
        return rows
    if kind == "regression":
        return rows[:size]
    _, first = np.unique(y[rows], return_index=True)
    check_train_size(size, len(first))
    rest = np.setdiff1d(np.arange(len(rows)), first)  # sorted
    return rows[np.sort(np.concatenate([first, rest[: size - len(first)]]))]


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one array: x[rows], y[rows]. y: class numbers, or values."""

    x: np.ndarray
    y: np.ndarray
    rows: Rows

    def of_classes(self, classes: Sequence[int]) -> Part:
        """Only these classes, numbered in the order they are given in."""
        number = np.zeros(max(int(self.y.max(initial=0)), *classes) + 1, np.int64)
        number[list(classes)] = np.arange(len(classes))
        return Part(self.x, number[self.y], self.rows[np.isin(self.y[self.rows], classes)])

    def split(self) -> Split | None:
        if not len(self.rows):
            return None
        y = self.y[self.rows]
        target = y.astype(np.float64) if y.dtype.kind == "f" else y.astype(np.int64)
        return Split(torch.from_numpy(np.ascontiguousarray(self.x[self.rows])), torch.from_numpy(target))


Parts = tuple[Part, Part, Part]  # training, validation, test


def of_rows(x: np.ndarray, y: np.ndarray, rows: tuple[Rows, Rows, Rows]) -> Parts:
    """All three parts from the same arrays."""
    return Part(x, y, rows[0]), Part(x, y, rows[1]), Part(x, y, rows[2])


def make_task(
    name: str,
    kind: Kind,
    parts: Parts,
    *,
    stream: str,
    train_size: int | None = None,
    labels: Sequence[Any] | None = None,
    scaling: Scaling | None = None,
    encoding: Encoding | None = None,
    partial: bool = False,
) -> Task:
    """A task of these parts; an empty one is absent. y: class numbers from 0, or values."""
    x, y, rows = parts[0].x, parts[0].y, parts[0].rows
    train = Part(x, y, limit(rows, y, train_size, kind)).split()
    if train is None:
        raise TaskError(f"task {name!r}: there are too few samples: none is left for training")
    classes = 0 if kind == "regression" else len(labels) if labels else int(train.y.max()) + 1
    return Task(
        name,
        kind,
        train,
        parts[1].split(),
        parts[2].split(),
        classes,
        None if labels is None else tuple(labels),
        stream,
        scaling or Scaling(),
        encoding,
        partial,
    )


def classes_task(
    name: str,
    parts: Parts,
    classes: Sequence[int],
    names: Sequence[Any],
    *,
    stream: str,
    train_size: int | None = None,
    scaling: Scaling | None = None,
) -> Task:
    """The task of telling `classes` apart; the second of two is the positive one."""
    chosen = parts[0].of_classes(classes), parts[1].of_classes(classes), parts[2].of_classes(classes)
    kind: Kind = "binary" if len(classes) == 2 else "multiclass"
    labels = [names[c] for c in classes]
    return make_task(name, kind, chosen, stream=stream, train_size=train_size, labels=labels, scaling=scaling)
