"""Task: one learning problem, validated once, when it is made."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from piaget.encoding import Encoding, Scaling
from piaget.errors import SettingError, TaskError

Kind = Literal["binary", "multiclass", "regression"]
KINDS = ("binary", "multiclass", "regression")
Stream = Sequence["Task"]


@dataclass(frozen=True, eq=False)
class Split:
    """x: (n, *input shape); y: (n,), class numbers (int64) or values (float)."""

    x: Tensor
    y: Tensor

    def __post_init__(self) -> None:
        if not isinstance(self.x, Tensor) or not isinstance(self.y, Tensor):
            found = f"{type(self.x).__name__} and {type(self.y).__name__}"
            raise TaskError(f"a split holds {found}; expected tensors (see Task.from_arrays for arrays)")

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, eq=False)
class Task:
    """One task T^(t): its name, kind, and data.

    `classes` is the number of classes (0 for regression). `labels` are the user's own names
    of the classes 0, 1, ...; `predict` answers with them. `validation` and `test` may be
    absent; expansion needs `validation`, evaluation needs `test`. `scaling` is applied when the
    data is used; `encoding` tells how rows of a table became the inputs.
    """

    name: str
    kind: Kind
    train: Split
    validation: Split | None = None
    test: Split | None = None
    classes: int = 0
    labels: tuple[Any, ...] | None = None
    stream: str = ""
    scaling: Scaling = Scaling()  # noqa: RUF009  (frozen, without state)
    encoding: Encoding | None = None

    def __post_init__(self) -> None:
        _check(self)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(split)} {name}" for name, split in self.splits())
        return f"Task({self.name!r}, {self.kind}, inputs {self.input_shape}, {sizes} samples)"

    def fingerprint(self) -> str:
        """A hash of what is learned from: two tasks with the same one are the same."""
        described = (self.kind, self.classes, self.labels, self.train.x.shape, self.scaling)
        digest = hashlib.sha256(repr(described).encode())
        for tensor in (self.train.x, self.train.y):
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def lean(self) -> Task:
        """The task for evaluation on test data: with no more than one training sample of each class."""
        keep = [int((self.train.y == c).nonzero()[0]) for c in range(self.classes)] or [0]
        return replace(self, train=Split(self.train.x[keep], self.train.y[keep]), validation=None)

    @property
    def input_shape(self) -> tuple[int, ...]:
        return tuple(self.train.x.shape[1:])

    def splits(self) -> Iterator[tuple[str, Split]]:
        """The splits that are there, with their names."""
        for name in ("train", "validation", "test"):
            split = getattr(self, name)
            if split is not None:
                yield name, split

    @staticmethod
    def from_arrays(
        name: str,
        x: Any,
        y: Any,
        *,
        validation: tuple[Any, Any] | None = None,
        test: tuple[Any, Any] | None = None,
        kind: Kind | None = None,
        classes: int | None = None,
        fractions: tuple[float, float, float] = (0.6, 0.2, 0.2),
        seed: int = 0,
        divisor: float | None = None,
        stream: str = "",
    ) -> Task:
        """A task from the user's own arrays (numpy, torch, or nested lists).

        x: (n, *shape) features or images (channels first); y: (n,) labels or values.
        Without `kind`, whole numbers, booleans and strings mean classes and other numbers
        mean regression. Class labels may be anything: they are numbered in sorted order,
        unless they already are 0 .. classes-1. If neither `validation` nor `test` is given,
        the samples are divided at random (from `seed`) by `fractions`, every class alike.
        Bytes (uint8, as of images) are divided by `divisor` when they are used, without one by the
        largest byte in x.
        """
        named = {"train": (x, y), "validation": validation, "test": test}
        if classes is not None and (isinstance(classes, bool) or not isinstance(classes, int)):
            raise TaskError(f"task {name!r}: classes={classes!r}; expected a whole number")
        pairs = {
            split: (_features(name, split, pair[0]), _targets(name, split, pair[1]))
            for split, pair in named.items()
            if pair is not None
        }
        targets = [labels for _, labels in pairs.values()]
        kind = kind or _infer_kind(targets, classes)
        if kind not in KINDS:
            raise TaskError(f"task {name!r}: kind is {kind!r}; expected one of {', '.join(KINDS)}")
        if kind == "regression":
            numbered = {split: _floats(name, split, labels) for split, (_, labels) in pairs.items()}
            labels_of_classes, count = None, 0
        else:
            numbered, labels_of_classes, count = _number_classes(name, pairs, classes)
            if kind == "binary" and count != 2:
                raise TaskError(f"task {name!r}: kind is binary, but there are {count} classes")
        splits: dict[str, Any] = {}
        for split, (inputs, _) in pairs.items():
            target = torch.from_numpy(numbered[split])
            if len(target) != len(inputs):
                raise TaskError(
                    f"task {name!r}, {split}: {len(inputs)} inputs but {len(target)} targets; "
                    "expected as many targets as inputs"
                )
            splits[split] = Split(inputs, target)
        inputs = splits["train"].x
        if divisor is None:
            divisor = float(inputs.max()) or 1.0 if inputs.dtype == torch.uint8 else 1.0
        elif not divisor > 0 or inputs.dtype != torch.uint8:
            raise TaskError(
                f"task {name!r}: divisor={divisor} with inputs of {inputs.dtype}; expected a positive number "
                "with bytes (uint8)"
            )
        scaling = Scaling(divisor)
        task = Task(
            name, kind, **splits, classes=count, labels=labels_of_classes, stream=stream, scaling=scaling
        )
        if validation is None and test is None:
            divided: dict[str, Any] = _divide(name, task.train, count, fractions, seed)
            task = replace(task, **divided)
        return _warn_of_absent_classes(task)


def split_rows(
    y: Tensor, classes: int, fractions: tuple[float, float, float], seed: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Row numbers of a random train / validation / test division, every class alike."""
    generator = torch.Generator().manual_seed(seed)
    groups = [torch.nonzero(y == c).flatten() for c in range(classes)] or [torch.arange(len(y))]
    parts: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
    check_fractions(fractions)
    for rows in groups:
        rows = rows[torch.randperm(len(rows), generator=generator)]
        first = round(fractions[0] * len(rows))
        second = len(rows) if fractions[2] == 0 else round((fractions[0] + fractions[1]) * len(rows))
        for part, piece in zip(parts, (rows[:first], rows[first:second], rows[second:]), strict=True):
            part.append(piece)
    return tuple(torch.cat(part) for part in parts)  # type: ignore[return-value]


def check_fractions(fractions: tuple[float, float, float]) -> None:
    shares = tuple(fractions)
    if len(shares) != 3 or min(shares) < 0 or shares[0] == 0 or abs(sum(shares) - 1) > 1e-6:
        raise SettingError(
            f"fractions={fractions}; expected three shares (training, validation, test) adding to 1"
        )


# --- checks and conversions -------------------------------------------------------------------


def _check(task: Task) -> None:
    where = f"task {task.name!r}"
    if not isinstance(task.name, str) or not task.name:
        raise TaskError(f"a task's name is a non-empty text; found {task.name!r}")
    if task.kind not in KINDS:
        raise TaskError(f"{where}: kind is {task.kind!r}; expected one of {', '.join(KINDS)}")
    expected = {"binary": task.classes == 2, "regression": task.classes == 0}
    if not expected.get(task.kind, task.classes >= 2):
        raise TaskError(
            f"{where}: kind {task.kind} with classes={task.classes}; expected 2 classes for "
            "binary, 2 or more for multiclass, 0 for regression"
        )
    if task.labels is not None and len(task.labels) != task.classes:
        raise TaskError(f"{where}: {len(task.labels)} labels for {task.classes} classes")
    odd = [label for label in task.labels or () if not isinstance(label, str | int | float)]
    if odd:
        raise TaskError(f"{where}: label {odd[0]!r} is a {type(odd[0]).__name__}; expected texts or numbers")
    for name, split in task.splits():
        _check_split(f"{where}, {name}", split, task)
    if task.kind != "regression":
        _check_training_classes(where, task)


def _check_split(where: str, split: Split, task: Task) -> None:
    x, y = split.x, split.y
    if x.ndim < 2 or (x.numel() == 0 and len(x) > 0):
        raise TaskError(f"{where}: inputs have shape {tuple(x.shape)}; expected (samples, features...)")
    if len(x) == 0:
        raise TaskError(f"{where}: the split is empty; give at least one sample, or no split")
    if y.shape != (len(x),):
        raise TaskError(f"{where}: targets have shape {tuple(y.shape)}; expected ({len(x)},)")
    if tuple(x.shape[1:]) != task.input_shape:
        raise TaskError(
            f"{where}: inputs have shape {tuple(x.shape[1:])}, but the training inputs have "
            f"{task.input_shape}"
        )
    if x.is_complex() or x.dtype == torch.bool:
        raise TaskError(f"{where}: inputs have dtype {x.dtype}; expected floating point or integers")
    if x.is_floating_point() and not bool(torch.isfinite(x).all()):
        bad = torch.nonzero(~torch.isfinite(x.flatten(1)).all(1)).flatten()
        raise TaskError(
            f"{where}: NaN or infinite inputs in {len(bad)} samples (the first is row "
            f"{int(bad[0])}); expected finite numbers"
        )
    if task.kind == "regression":
        if not y.is_floating_point() or not bool(torch.isfinite(y).all()):
            raise TaskError(f"{where}: regression targets must be finite floating-point numbers")
    elif y.dtype != torch.int64:
        raise TaskError(f"{where}: labels have dtype {y.dtype}; expected whole numbers (int64)")
    elif int(y.min()) < 0 or int(y.max()) >= task.classes:
        raise TaskError(
            f"{where}: labels run from {int(y.min())} to {int(y.max())}; expected 0 to "
            f"{task.classes - 1}, since the task has {task.classes} classes"
        )


def _absent_classes(task: Task, split: Split) -> str:
    present = torch.bincount(split.y, minlength=task.classes) > 0
    missing = torch.nonzero(~present).flatten().tolist()
    return ", ".join(str(task.labels[c] if task.labels else c) for c in missing)


def _check_training_classes(where: str, task: Task) -> None:
    if absent := _absent_classes(task, task.train):
        raise TaskError(
            f"{where}: no train sample of class {absent}; every class needs at least one training sample"
        )


def _warn_of_absent_classes(task: Task) -> Task:
    for name, split in task.splits():
        if task.kind != "regression" and (absent := _absent_classes(task, split)):
            warnings.warn(f"task {task.name!r}: no {name} sample of class {absent}", stacklevel=3)
    return task


def _to_numpy(values: Any) -> Any:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else values


def _array(name: str, split: str, what: str, values: Any) -> np.ndarray:
    try:
        return np.asarray(_to_numpy(values))
    except ValueError as error:
        raise TaskError(f"task {name!r}, {split}: {what} are no array: {error}") from error


def _targets(name: str, split: str, y: Any) -> np.ndarray:
    array = _array(name, split, "targets", y)
    if array.dtype.kind == "O":
        raise TaskError(
            f"task {name!r}, {split}: targets are of mixed types; expected only numbers or only texts"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise TaskError(f"task {name!r}, {split}: NaN or infinite targets; expected finite numbers")
    return array


def _features(name: str, split: str, x: Any) -> Tensor:
    array = _array(name, split, "inputs", x)
    if array.shape[:1] == (0,):
        raise TaskError(f"task {name!r}, {split}: the split is empty; give at least one sample, or no split")
    if array.dtype.kind not in "fiu":
        raise TaskError(
            f"task {name!r}, {split}: inputs have dtype {array.dtype}; expected numbers "
            "(encode texts and categories first)"
        )
    if array.ndim == 1:
        raise TaskError(
            f"task {name!r}, {split}: inputs have shape {array.shape}; expected "
            "(samples, features...); for a single feature use x[:, None]"
        )
    if array.dtype != np.uint8:  # integer images stay bytes until they are used
        array = array.astype(np.float32 if array.dtype != np.float64 else np.float64)
    return torch.from_numpy(np.ascontiguousarray(array))


def _infer_kind(targets: list[np.ndarray], classes: int | None) -> Kind:
    if classes is not None:
        return "binary" if classes == 2 else "multiclass"
    y = np.concatenate([labels.ravel() for labels in targets]) if targets else np.zeros(0)
    if y.dtype.kind == "f" and not np.array_equal(y, np.round(y)):
        return "regression"
    return "binary" if len(np.unique(y)) <= 2 else "multiclass"


def _floats(name: str, split: str, labels: np.ndarray) -> np.ndarray:
    if labels.dtype.kind not in "fiub":
        raise TaskError(f"task {name!r}, {split}: regression targets have dtype {labels.dtype}")
    return np.ascontiguousarray(labels.astype(np.float64))


def _number_classes(
    name: str, pairs: dict[str, tuple[Tensor, np.ndarray]], classes: int | None
) -> tuple[dict[str, np.ndarray], tuple[Any, ...] | None, int]:
    """Numbers the class labels 0, 1, ...; keeps the user's labels where they differ."""
    if any(y.dtype.kind == "f" for _, y in pairs.values()):
        for split, (_, y) in pairs.items():
            if y.dtype.kind == "f" and not np.array_equal(y, np.round(y)):
                bad = y[y != np.round(y)].ravel()[0]
                raise TaskError(
                    f"task {name!r}, {split}: label {bad} is not a whole number; "
                    "expected class numbers, or kind='regression' for values"
                )
        pairs = {split: (x, y.astype(np.int64)) for split, (x, y) in pairs.items()}
    seen = np.unique(np.concatenate([y.ravel() for _, y in pairs.values()]))
    plain = seen.dtype.kind in "iub" and seen.size > 0
    if plain and (classes is not None or np.array_equal(seen, np.arange(len(seen)))):
        count = classes if classes is not None else max(len(seen), 2)
        labels = (False, True) if seen.dtype.kind == "b" and count == 2 else None
        return {s: y.astype(np.int64) for s, (_, y) in pairs.items()}, labels, count
    if classes is not None and len(seen) != classes:
        raise TaskError(f"task {name!r}: {len(seen)} different labels; expected {classes}")
    numbered = {s: np.searchsorted(seen, y).astype(np.int64) for s, (_, y) in pairs.items()}
    return numbered, tuple(seen.tolist()), len(seen)


def _divide(
    name: str, data: Split, classes: int, fractions: tuple[float, float, float], seed: int
) -> dict[str, Split]:
    rows = split_rows(data.y, classes, fractions, seed)
    names = ("train", "validation", "test")
    empty = [part for part, r, share in zip(names, rows, fractions, strict=True) if share > 0 and not len(r)]
    if empty:
        raise TaskError(
            f"task {name!r}: {len(data)} samples are too few to divide by {fractions}: "
            f"nothing is left for {', '.join(empty)}"
        )
    return {
        part: Split(data.x[r], data.y[r])
        for part, r, share in zip(names, rows, fractions, strict=True)
        if share > 0
    }
