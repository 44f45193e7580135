"""Task: one learning problem, validated once, when it is made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from piaget.data.arrays import Kind as Kind, as_features, as_targets, as_values, infer_kind, number_classes
from piaget.data.encoding import Encoding, Scaling, centered, to_json
from piaget.data.plain import Fractions, check_fractions, check_seed, is_number, is_whole, plain, shown
from piaget.data.splits import Split as Split, divided, split_rows as split_rows
from piaget.data.task_checks import KINDS as KINDS, check, warn_of_absent_classes
from piaget.errors import TaskError, type_of

Stream = Sequence["Task"]


@dataclass(frozen=True, eq=False)
class Task:
    """One task T^(t): its name, kind, and data.

    `classes` is the number of classes (0 for regression). `labels` are the user's own names
    of the classes 0, 1, ...; `predict` answers with them. `validation` and `test` may be
    absent; expansion needs `validation`, evaluation needs `test`. `scaling` is applied when the
    data is used; `encoding` tells how rows of a table became the inputs. `partial`: training samples may
    lack classes; a `PriorLearner`, whose tasks have their classes in common, learns such a task.

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
    partial: bool = False

    def __post_init__(self) -> None:
        # Numbers and labels as Python's own: they are saved, and compared.
        object.__setattr__(self, "classes", plain(self.classes))
        if isinstance(self.labels, tuple | list | np.ndarray):
            object.__setattr__(self, "labels", tuple(plain(label) for label in self.labels))
        check(self)

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
        there = self.train.y.unique().tolist() if self.classes else ()
        keep = [int((self.train.y == c).nonzero()[0]) for c in there] or [0]
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
                raise TaskError(f"task {name!r}: {split} is {type_of(pair)}; expected a pair (x, y)")
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
            parts: dict[str, Any] = divided(name, task.train, count, fractions, seed)
            task = replace(task, **parts)
        if kind == "regression" and standardize:
            task = replace(task, scaling=standardized(name, task.train.y.numpy(), divisor))
        if scale and inputs.is_floating_point():
            task = scaled_alike([task])[0]
        return warn_of_absent_classes(task)


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


def standardized(name: str, y: np.ndarray, divisor: float = 1.0) -> Scaling:
    """Of a regression's training values y."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean, spread = float(y.mean()), float(y.std())
    if not np.isfinite([mean, spread]).all():
        raise TaskError(f"{name}: target values up to {np.abs(y).max():g} are too large to compute with")
    return Scaling(divisor, mean, spread or 1.0)


def all_validated(stream: Stream) -> bool:
    """Have all tasks validation rows?"""
    return all(stream[i].validation is not None for i in range(len(stream)))
