"""What must hold of a task: checked once, when it is made."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch

from piaget.data.encoding import Encoding, Scaling
from piaget.data.plain import is_whole, shown
from piaget.data.splits import Split
from piaget.errors import TaskError, type_of, with_article

if TYPE_CHECKING:
    from piaget.data.tasks import Task

KINDS = ("binary", "multiclass", "regression")


def check(task: Task) -> None:
    """Raises an error that says what is wrong with a task, if anything is."""
    where = f"task {shown(task.name)}"
    if not isinstance(task.name, str) or not task.name or not _can_be_written(task.name):
        raise TaskError(f"a task's name is a non-empty text (Unicode); found {shown(task.name)}")
    for field, kind in _TYPES.items():
        if not isinstance(getattr(task, field), kind):
            found = type_of(getattr(task, field))
            raise TaskError(f"{where}: {field} is {found}; expected {_named(kind)}")
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
    if task.kind != "regression" and not task.partial:
        _check_training_classes(where, task)


_TYPES: dict[str, Any] = {
    "train": Split,
    "validation": Split | None,
    "test": Split | None,
    "labels": tuple | None,
    "stream": str,
    "scaling": Scaling,
    "encoding": Encoding | None,
    "partial": bool,
}


def _named(kind: Any) -> str:
    """Split | None -> "a Split, or None" """
    if isinstance(kind, type):
        return with_article(kind.__name__)
    return f"{with_article(kind.__args__[0].__name__)}, or None"


def _can_be_written(text: str) -> bool:
    """File names that are no Unicode are read as texts that no file can hold."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _check_labels(where: str, labels: tuple[Any, ...], classes: int) -> None:
    if len(labels) != classes:
        raise TaskError(f"{where}: {len(labels)} labels for {classes} classes")
    for label in labels:
        if not isinstance(label, str | int | float) or label != label:
            what = "None" if label is None else f"{shown(label)} is {type_of(label)}"
            raise TaskError(f"{where}: label {what}; expected texts or numbers")
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


def absent_from_training(task: Task) -> str:
    """The classes that no training sample has, in words; of a task that may lack some."""
    return _absent_classes(task, task.train) if task.partial and task.classes else ""


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


def warn_of_absent_classes(task: Task) -> Task:
    """The task, after a warning if a split lacks a class."""
    for name, split in task.splits():
        if task.kind != "regression" and (absent := _absent_classes(task, split)):
            warnings.warn(f"task {task.name!r}: no {name} sample of class {absent}", stacklevel=3)
    return task
