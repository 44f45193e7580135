"""A user's arrays as inputs and targets of a task."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from piaget.errors import TaskError

Kind = Literal["binary", "multiclass", "regression"]


def to_numpy(values: Any) -> Any:
    """Tensors as arrays; all else as it is."""
    if not isinstance(values, Tensor):
        return values
    values = values.detach().cpu()
    return values.float().numpy() if values.dtype == torch.bfloat16 else values.numpy()


def as_array(name: str, split: str, what: str, values: Any) -> np.ndarray:
    """A user's values as an array, or an error that says where they are."""
    try:
        return np.asarray(to_numpy(values))
    except ValueError as error:
        raise TaskError(f"task {name!r}, {split}: {what} are no array: {error}") from error


def as_targets(name: str, split: str, y: Any) -> np.ndarray:
    """Targets (n,), checked."""
    array = as_array(name, split, "targets", y)
    if array.dtype.kind == "O":
        raise TaskError(
            f"task {name!r}, {split}: targets are of mixed types; expected only numbers or only texts"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise TaskError(f"task {name!r}, {split}: NaN or infinite targets; expected finite numbers")
    return array


def as_features(name: str, split: str, x: Any) -> Tensor:
    """Inputs (n, ...), checked; bytes stay bytes."""
    array = as_array(name, split, "inputs", x)
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


def infer_kind(targets: list[np.ndarray], classes: int | None) -> Kind:
    """The kind of task that targets like these mean."""
    if classes is not None:
        return "binary" if classes == 2 else "multiclass"
    y = np.concatenate([labels.ravel() for labels in targets]) if targets else np.zeros(0)
    if y.dtype.kind == "f" and not np.array_equal(y, np.round(y)):
        return "regression"
    return "binary" if len(np.unique(y)) <= 2 else "multiclass"


def as_values(name: str, split: str, labels: np.ndarray) -> np.ndarray:
    """Targets of a regression, in float64."""
    if labels.dtype.kind not in "fiub":
        raise TaskError(f"task {name!r}, {split}: regression targets have dtype {labels.dtype}")
    return np.ascontiguousarray(labels.astype(np.float64))


def number_classes(
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
    if len(seen) == 1 and classes is None:
        raise TaskError(f"task {name!r}: all targets are {seen[0]}; expected two classes or more")
    plain = seen.dtype.kind in "iub" and seen.size > 0
    if plain and (classes is not None or np.array_equal(seen, np.arange(len(seen)))):
        count = classes if classes is not None else max(len(seen), 2)
        labels = (False, True) if seen.dtype.kind == "b" and count == 2 else None
        return {s: y.astype(np.int64) for s, (_, y) in pairs.items()}, labels, count
    if classes is not None and len(seen) != classes:
        raise TaskError(f"task {name!r}: {len(seen)} different labels; expected {classes}")
    numbered = {s: np.searchsorted(seen, y).astype(np.int64) for s, (_, y) in pairs.items()}
    return numbered, tuple(seen.tolist()), len(seen)
