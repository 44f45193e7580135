"""Task: one learning problem, validated once, when it is made."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from piaget.data.arrays import Kind as Kind, as_features, as_targets, as_values, infer_kind, number_classes
from piaget.data.encoding import Encoding, Scaling, centered, to_json
from piaget.data.plain import Fractions, check_fractions, check_seed, is_number, is_whole, plain, shown
from piaget.errors import TaskError

KINDS = ("binary", "multiclass", "regression")
Stream = Sequence["Task"]


@dataclass(frozen=True, eq=False)
class Split:
    """x: (n, *input shape); y: (n,), class numbers (int64) or values (float).

    Raises `TaskError` if one of them is no tensor.

    >>> len(piaget.Split(torch.zeros(5, 3), torch.zeros(5)))
    5
    """

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

    Raises `TaskError` with what was found and what is expected, if data does not fit: NaN, shapes that
    differ, a class without training samples, a name that is no text.

    >>> data = piaget.Split(torch.randn(4, 3, generator=torch.Generator()), torch.tensor([0, 1, 0, 1]))
    >>> task = piaget.Task("site 1", "binary", data, test=data, classes=2)
    >>> task.input_shape
    (3,)
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
        # Numbers and labels as Python's own: they are saved, and compared.
        object.__setattr__(self, "classes", plain(self.classes))
        if isinstance(self.labels, tuple | list | np.ndarray):
            object.__setattr__(self, "labels", tuple(plain(label) for label in self.labels))
        _check(self)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(split)} {name}" for name, split in self.splits())
        names = self.labels if self.labels is not None else range(self.classes)
        listed = ", ".join(map(repr, names[:5])) + ", ..." * (self.classes > 5)
        kind = f"{self.kind}: {listed}" if self.classes else self.kind
        return f"Task({self.name!r}, {kind}; inputs {self.input_shape}; {sizes} samples)"

    def fingerprint(self) -> str:
        """A hash of all that the task is, beside its name and stream: with the same one, it is the same.

        It begins with the number of its form: `same_fingerprint` also knows that of version 0.1.
        """
        described = {
            "kind": self.kind,
            "classes": self.classes,
            "labels": self.labels,
            "scaling": [_floats(v) for v in self.scaling.to_json().values()],
            "encoding": None if self.encoding is None else to_json(self.encoding),
            "splits": {
                name: [(str(t.dtype), list(t.shape)) for t in (split.x, split.y)]
                for name, split in self.splits()
            },
        }
        digest = hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode())
        for _, split in self.splits():
            for tensor in (split.x, split.y):
                # As bytes, since numpy has no bfloat16; -0.0 and 0.0 differ.
                digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        return f"2:{digest.hexdigest()}"

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
        fractions: Fractions = (0.6, 0.2, 0.2),
        seed: int = 0,
        divisor: float | None = None,
        standardize: bool = True,
        scale: bool = True,
        stream: str = "",
    ) -> Task:
        """A task from the user's own arrays (numpy, torch, or nested lists).

        x: (n, *shape) features or images (channels first); y: (n,) labels or values.
        Without `kind`, whole numbers, booleans and strings mean classes and other numbers
        mean regression. Class labels may be anything: they are numbered in sorted order,
        unless they already are 0 .. classes-1. If neither `validation` nor `test` is given,
        the samples are divided at random (from `seed`) by `fractions`, every class alike.
        Bytes (uint8, as of images) are divided by `divisor` when they are used, without one by the
        largest byte in x. Other numbers are standardised when they are used, each feature (each channel of
        images) by the training samples; features of zeros and ones stay as they are (`scale=False`: all do).
        Values of a regression are standardised for learning by the training values; scores and predictions
        are in their own units (`standardize=False`: learned as they are). All that is recorded in `scaling`:
        `predict` does the same.

        Raises `TaskError`: see `Task`.

        >>> x = np.arange(40.0).reshape(20, 2)
        >>> piaget.Task.from_arrays("site 1", x, ["ill", "well"] * 10)
        Task('site 1', binary: 'ill', 'well'; inputs (2,); 12 train, 4 validation, 4 test samples)
        >>> piaget.Task.from_arrays("site 1", x[:, :1], x[:5, 0])
        Traceback (most recent call last):
        piaget.errors.TaskError: ...
        """
        named = {"train": (x, y), "validation": validation, "test": test}
        classes = plain(classes)
        if classes is not None and not is_whole(classes):
            raise TaskError(f"task {name!r}: classes={shown(classes)}; expected a whole number")
        seed, fractions, divisor = check_seed(seed), check_fractions(fractions), plain(divisor)
        for split, pair in named.items():
            if pair is not None and not (isinstance(pair, tuple | list) and len(pair) == 2):
                raise TaskError(f"task {name!r}: {split} is a {type(pair).__name__}; expected a pair (x, y)")
        pairs = {
            split: (as_features(name, split, pair[0]), as_targets(name, split, pair[1]))
            for split, pair in named.items()
            if pair is not None
        }
        targets = [labels for _, labels in pairs.values()]
        kind = kind or infer_kind(targets, classes)
        if kind not in KINDS:
            raise TaskError(f"task {name!r}: kind is {kind!r}; expected one of {', '.join(KINDS)}")
        if kind == "regression":
            numbered = {split: as_values(name, split, labels) for split, (_, labels) in pairs.items()}
            labels_of_classes, count = None, 0
        else:
            numbered, labels_of_classes, count = number_classes(name, pairs, classes)
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
        elif not is_number(divisor) or not divisor > 0 or inputs.dtype != torch.uint8:
            raise TaskError(
                f"task {name!r}: divisor={shown(divisor)} with inputs of {inputs.dtype}; expected a "
                "positive number with bytes (uint8)"
            )
        scaling = Scaling(divisor)
        task = Task(
            name, kind, **splits, classes=count, labels=labels_of_classes, stream=stream, scaling=scaling
        )
        if validation is None and test is None:
            divided: dict[str, Any] = _divide(name, task.train, count, fractions, seed)
            task = replace(task, **divided)
        if kind == "regression" and standardize:
            task = replace(task, scaling=standardized(name, task.train.y.numpy(), divisor))
        if scale and inputs.is_floating_point():
            task = scaled_alike([task])[0]
        return _warn_of_absent_classes(task)


def _floats(value: Any) -> Any:
    return [float(v) for v in value] if isinstance(value, tuple) else float(value)


def scaled_alike(tasks: Sequence[Task]) -> list[Task]:
    """The tasks, with inputs standardised by the training samples of all of them together."""
    found = centered(torch.cat([task.train.x for task in tasks]))
    return [
        replace(task, scaling=replace(task.scaling, center=found.center, width=found.width)) for task in tasks
    ]


def same_fingerprint(task: Task, stored: str) -> bool:
    """Is it the task that was stored? Also if version 0.1 wrote that: it looked at training data only."""
    return stored == (task.fingerprint() if ":" in stored else _first_fingerprint(task))


def _first_fingerprint(task: Task) -> str:
    described = (task.kind, task.classes, task.labels, task.train.x.shape, task.scaling)
    digest = hashlib.sha256(repr(described).encode())
    for tensor in (task.train.x, task.train.y):
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def split_rows(y: Tensor, classes: int, fractions: Fractions, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Row numbers of a random train / validation / test division, every class alike."""
    generator = torch.Generator().manual_seed(seed)
    groups = [torch.nonzero(y == c).flatten() for c in range(classes)] or [torch.arange(len(y))]
    parts: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
    fractions = check_fractions(fractions)
    for rows in groups:
        rows = rows[torch.randperm(len(rows), generator=generator)]
        first = round(fractions[0] * len(rows))
        second = len(rows) if fractions[2] == 0 else round((fractions[0] + fractions[1]) * len(rows))
        for part, piece in zip(parts, (rows[:first], rows[first:second], rows[second:]), strict=True):
            part.append(piece)
    return tuple(torch.cat(part) for part in parts)  # type: ignore[return-value]


def standardized(name: str, y: np.ndarray, divisor: float = 1.0) -> Scaling:
    """Of a regression's training values y."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean, spread = float(y.mean()), float(y.std())
    if not np.isfinite([mean, spread]).all():
        raise TaskError(f"{name}: target values up to {np.abs(y).max():g} are too large to compute with")
    return Scaling(divisor, mean, spread or 1.0)


# --- checks and conversions -------------------------------------------------------------------


def _check(task: Task) -> None:
    where = f"task {shown(task.name)}"
    if not isinstance(task.name, str) or not task.name or not _can_be_written(task.name):
        raise TaskError(f"a task's name is a non-empty text (Unicode); found {shown(task.name)}")
    for field, kind in _TYPES.items():
        if not isinstance(getattr(task, field), kind):
            found = type(getattr(task, field)).__name__
            raise TaskError(f"{where}: {field} is a {found}; expected {_named(kind)}")
    if task.kind not in KINDS:
        raise TaskError(f"{where}: kind is {shown(task.kind)}; expected one of {', '.join(KINDS)}")
    expected = {"binary": task.classes == 2, "regression": task.classes == 0}
    if not is_whole(task.classes) or not expected.get(task.kind, task.classes >= 2):
        raise TaskError(
            f"{where}: kind {task.kind} with classes={shown(task.classes)}; expected 2 classes for "
            "binary, 2 or more for multiclass, 0 for regression"
        )
    if task.labels is not None:
        _check_labels(where, task.labels, task.classes)
    for name, split in task.splits():
        _check_split(f"{where}, {name}", split, task)
    scaled = len(task.scaling.center)
    if scaled not in (0, task.input_shape[0]):
        raise TaskError(f"{where}: its scaling is of {scaled} inputs; the inputs are {task.input_shape}")
    if task.kind != "regression":
        _check_training_classes(where, task)


_TYPES: dict[str, Any] = {
    "train": Split,
    "validation": Split | None,
    "test": Split | None,
    "labels": tuple | None,
    "stream": str,
    "scaling": Scaling,
    "encoding": Encoding | None,
}


def _named(kind: Any) -> str:
    """Split | None -> "a Split, or None" """
    return f"a {kind.__name__}" if isinstance(kind, type) else f"a {kind.__args__[0].__name__}, or None"


def _can_be_written(text: str) -> bool:
    """File names that are no Unicode are read as texts that no file can hold."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _check_labels(where: str, labels: tuple[Any, ...], classes: int) -> None:
    if len(labels) != classes:
        raise TaskError(f"{where}: {len(labels)} labels for {classes} classes")
    for label in labels:
        if not isinstance(label, str | int | float) or label != label:
            found = shown(label)
            raise TaskError(f"{where}: label {found} is a {type(label).__name__}; expected texts or numbers")
        if isinstance(label, str) and not _can_be_written(label):
            raise TaskError(f"{where}: label {label!r} is no text that can be written (Unicode)")
        if isinstance(label, int) and not -(2**63) <= label < 2**64:
            raise TaskError(f"{where}: a label is a whole number beyond 64 bits; expected less, or texts")
    if len(set(labels)) < classes:
        twice = next(label for label in labels if labels.count(label) > 1)
        raise TaskError(f"{where}: label {twice!r} occurs twice; expected different labels")


# What a network can be given; all are cast to the learner's own type.
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_SIGNED = (torch.int8, torch.int16, torch.int32, torch.int64)
_UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)


def _check_split(where: str, split: Split, task: Task) -> None:
    x, y = split.x, split.y
    for what, tensor in (("inputs", x), ("targets", y)):
        if tensor.layout != torch.strided or tensor.is_nested or tensor.is_meta:
            raise TaskError(f"{where}: {what} are a sparse, nested or meta tensor; expected a full one")
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
    if x.dtype not in (*_FLOATS, *_SIGNED, *_UNSIGNED):
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
    if task.classes > len(task.train):
        raise TaskError(
            f"{where}: {len(task.train)} training samples for {task.classes} classes; every class needs at "
            "least one"
        )
    if absent := _absent_classes(task, task.train):
        raise TaskError(
            f"{where}: no train sample of class {absent}; every class needs at least one training sample"
        )


def _warn_of_absent_classes(task: Task) -> Task:
    for name, split in task.splits():
        if task.kind != "regression" and (absent := _absent_classes(task, split)):
            warnings.warn(f"task {task.name!r}: no {name} sample of class {absent}", stacklevel=3)
    return task


def _divide(name: str, data: Split, classes: int, fractions: Fractions, seed: int) -> dict[str, Split]:
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
