"""A user's arrays as inputs and targets of a task. Everything that comes in goes through `as_array`."""

from __future__ import annotations

import contextlib
import decimal
import numbers
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from piaget.data.plain import plain
from piaget.errors import TaskError, type_of

Kind = Literal["binary", "multiclass", "regression"]
EXACT = 2.0**53  # beyond, floating-point numbers skip whole numbers


# --- arrays ---------------------------------------------------------------------------------------------


def as_array(where: str, what: str, values: Any) -> np.ndarray:
    """A user's values as a plain array of numpy; what would come out changed, or is missing, is an error."""
    if _is_sparse(values):
        how = "x.to_dense()" if isinstance(values, Tensor) else "x.toarray()"
        raise TaskError(f"{where}: {what} are sparse; expected a full array, such as {how}")
    try:
        array = _converted(values)
    except Exception as error:  # arrays of other libraries fail in many ways
        raise TaskError(f"{where}: {what} are no array of numbers: {str(error)[:200]}") from error
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else np.zeros(())
    if mask.any():
        raise TaskError(
            f"{where}: {mask.sum()} of {what} are masked (the first in row {np.argwhere(mask)[0][0]}); "
            "expected values for all: fill them, or leave out those samples"
        )
    if array.dtype.kind == "O":
        return _of_objects(where, what, array)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            array = array.astype(np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _is_sparse(values: Any) -> bool:
    if isinstance(values, Tensor):
        return values.layout != torch.strided
    return hasattr(values, "toarray") and hasattr(values, "nnz")  # scipy's


def to_numpy(values: Any) -> Any:
    """Tensors as arrays; all else as it is."""
    if not isinstance(values, Tensor):
        return values
    values = values.detach().cpu()
    known = not values.is_floating_point() or values.dtype in (torch.float16, torch.float32, torch.float64)
    return (values if known else values.float()).numpy()  # numpy has no bfloat16


def _converted(values: Any) -> np.ndarray:
    values = to_numpy(values)
    if isinstance(values, list | tuple) and values and not any(map(_has_parts, values)):
        array = np.empty(len(values), object)  # each as it is: numpy makes texts of [1, "a"]
        array[:] = [plain(value) for value in values]
        return array
    return np.asarray(values)


def _has_parts(value: Any) -> bool:
    return isinstance(value, list | tuple) or getattr(value, "ndim", 0) > 0


def _of_objects(where: str, what: str, array: np.ndarray) -> np.ndarray:
    """Objects that are all numbers, all texts or all true or false, as an array of these."""
    flat = array.ravel().tolist()
    kinds = [_kind_of(one) for one in dict.fromkeys(map(type, flat))]
    if len(set(kinds)) != 1 or kinds[0] is None or array.ndim == 0:
        raise TaskError(f"{where}: {what} {_mixture(array, flat)}; expected only numbers or only texts")
    if kinds[0] == "text":
        if any(text.endswith("\0") for text in flat):
            raise TaskError(f"{where}: {what} hold a text that ends in NUL, which numpy drops")
        return np.array(flat, str).reshape(array.shape)
    if kinds[0] == "truth":
        return np.array(flat, bool).reshape(array.shape)
    whole = all(issubclass(one, numbers.Integral) for one in set(map(type, flat)))
    for kind in (np.int64, np.uint64, np.float64) if whole else (np.float64,):
        with contextlib.suppress(OverflowError):
            found = np.array(flat, kind).reshape(array.shape)
            _check_apart(where, what, len(set(flat)), found)
            return found
    raise TaskError(f"{where}: {what} hold a whole number beyond all floating-point numbers")


def _check_apart(where: str, what: str, different: int, found: np.ndarray) -> None:
    """As floats, whole numbers beyond 2^53 may be the same."""
    if found.dtype.kind == "f" and np.isfinite(found).all() and len(np.unique(found)) < different:
        raise TaskError(
            f"{where}: {what} hold different numbers that are the same as floating-point numbers (beyond "
            "2^53 these skip some); expected smaller ones, or texts for classes"
        )


def _kind_of(kind: type) -> str | None:
    if issubclass(kind, bool | np.bool_):
        return "truth"
    if issubclass(kind, numbers.Real | decimal.Decimal):
        return "number"
    return "text" if issubclass(kind, str) else None


def _mixture(array: np.ndarray, flat: list[Any]) -> str:
    """What is wrong with objects, by their types: their own texts may be anything."""
    if array.ndim == 0:
        return f"are {type_of(flat[0])}"
    if not flat:
        return "are none"
    kinds = [_kind_of(type(value)) for value in flat]
    odd = kinds.index(None) if None in kinds else next(i for i, k in enumerate(kinds) if k != kinds[0])
    row = np.unravel_index(odd, array.shape)[0]
    found = type_of(flat[odd])
    return f"are of mixed types or missing: row {row} holds {found}, row 0 {type_of(flat[0])}"


def as_labels(labels: tuple[Any, ...]) -> np.ndarray:
    """Labels as an array that has them as they are: numpy alone makes texts of (1, "a")."""
    if len(set(map(type, labels))) == 1:
        array = np.asarray(labels)
        if array.tolist() == list(labels):
            return array
    array = np.empty(len(labels), object)
    array[:] = labels
    return array


# --- inputs and targets -----------------------------------------------------------------------------------


def as_targets(name: str, split: str, y: Any) -> np.ndarray:
    """Targets (n,), checked: texts, whole numbers, finite numbers, or true and false."""
    where = f"task {name!r}, {split}"
    array = as_array(where, "targets", y)
    if array.ndim != 1:
        raise TaskError(f"{where}: targets have shape {array.shape}; expected (samples,)")
    if array.dtype.kind not in "biufU":
        hint = "; as texts, dates can be classes: y.astype(str)" if array.dtype.kind in "mM" else ""
        raise TaskError(f"{where}: targets have dtype {array.dtype}; expected numbers or texts{hint}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise TaskError(f"{where}: NaN or infinite targets; expected finite numbers")
    return array.astype(np.float64, copy=False) if array.dtype.kind == "f" else array


def as_tensor(where: str, x: Any, kinds: str = "fiu") -> Tensor:
    """Inputs as a tensor of their own type, if they are numbers."""
    array = as_array(where, "inputs", x)
    if array.dtype.kind not in kinds:
        hint = "real numbers" if array.dtype.kind == "c" else "numbers (encode texts and categories first)"
        raise TaskError(f"{where}: inputs have dtype {array.dtype}; expected {hint}")
    return torch.from_numpy(np.require(array, requirements=["C", "W"]))


def as_features(name: str, split: str, x: Any) -> Tensor:
    """Inputs (n, ...), checked; bytes stay bytes."""
    where = f"task {name!r}, {split}"
    tensor = as_tensor(where, x)
    if tensor.shape[:1] == (0,):
        raise TaskError(f"{where}: the split is empty; give at least one sample, or no split")
    if tensor.ndim < 2:
        raise TaskError(
            f"{where}: inputs have shape {tuple(tensor.shape)}; expected "
            "(samples, features...); for a single feature use x[:, None]"
        )
    if tensor.dtype == torch.uint8:  # integer images stay bytes until they are used
        return tensor
    double = tensor.dtype == torch.float64
    if not tensor.is_floating_point() and tensor.numel():  # whole numbers beyond 2^24: 32 bits skip some
        double = float(tensor.double().abs().max()) > 2**24
    return tensor.to(torch.float64 if double else torch.float32, copy=True)


def infer_kind(targets: list[np.ndarray], classes: int | None) -> Kind:
    """The kind of task that targets like these mean."""
    if classes is not None:
        return "binary" if classes == 2 else "multiclass"
    if any(map(is_measured, targets)):
        return "regression"
    return "binary" if len(set().union(*(np.unique(y).tolist() for y in targets))) <= 2 else "multiclass"


def is_measured(y: np.ndarray) -> bool:
    """Values, no class numbers: with fractions, or so large that there could be none."""
    if y.dtype.kind != "f":
        return False
    y = y.astype(np.float64, copy=False)
    return bool((y != np.round(y)).any() or (np.abs(y) > EXACT).any())


def as_values(name: str, split: str, labels: np.ndarray) -> np.ndarray:
    """Targets of a regression, in float64."""
    if labels.dtype.kind not in "fiub":
        raise TaskError(f"task {name!r}, {split}: regression targets have dtype {labels.dtype}")
    values = np.ascontiguousarray(labels.astype(np.float64))
    _check_apart(f"task {name!r}, {split}", "targets", len(np.unique(labels)), values)
    return values


def number_classes(
    name: str, pairs: dict[str, tuple[Tensor, np.ndarray]], classes: int | None
) -> tuple[dict[str, np.ndarray], tuple[Any, ...] | None, int]:
    """Numbers the class labels 0, 1, ...; keeps the user's labels where they differ."""
    targets = _comparable(name, {split: _whole(name, split, y) for split, (_, y) in pairs.items()})
    seen = np.unique(np.concatenate(list(targets.values())))
    if len(seen) == 1 and classes is None:
        raise TaskError(f"task {name!r}: all targets are {seen[0]}; expected two classes or more")
    whole = seen.dtype.kind in "iub" and seen.size > 0
    if whole and (classes is not None or np.array_equal(seen, np.arange(len(seen)))):
        if classes is not None and classes >= 2 and (int(seen[0]) < 0 or int(seen[-1]) >= classes):
            raise TaskError(
                f"task {name!r}: labels run from {int(seen[0])} to {int(seen[-1])}; expected 0 to "
                f"{classes - 1}, since the task has {classes} classes"
            )
        count = classes if classes is not None else max(len(seen), 2)
        labels = (False, True) if seen.dtype.kind == "b" and count == 2 else None
        return {split: y.astype(np.int64) for split, y in targets.items()}, labels, count
    if classes is not None and len(seen) != classes:
        raise TaskError(f"task {name!r}: {len(seen)} different labels; expected {classes}")
    numbered = {split: np.searchsorted(seen, y).astype(np.int64) for split, y in targets.items()}
    return numbered, tuple(seen.tolist()), len(seen)


def _whole(name: str, split: str, y: np.ndarray) -> np.ndarray:
    """Class labels that are floating-point numbers, as the whole numbers that they are."""
    if y.dtype.kind != "f":
        return y
    if is_measured(y):
        bad = y[(y != np.round(y)) | (np.abs(y) > EXACT)][0]
        raise TaskError(
            f"task {name!r}, {split}: label {bad} is not a whole number"
            + (" below 2^53, beyond which floating-point numbers skip some" if abs(bad) > EXACT else "")
            + "; expected class numbers, or kind='regression' for values"
        )
    return y.astype(np.int64)


def _comparable(name: str, targets: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Labels of all splits in one type; numpy alone makes floats of two kinds of whole numbers."""
    kinds = {y.dtype.kind for y in targets.values()}
    if "U" in kinds and len(kinds) > 1:
        raise TaskError(f"task {name!r}: the targets of one split are texts, those of another numbers")
    if not {"u", "i"} <= kinds and not {"u", "b"} <= kinds:
        return targets
    if max(int(y.max(initial=0)) for y in targets.values()) < 2**63:
        return {split: y.astype(np.int64) for split, y in targets.items()}
    if min(int(y.min(initial=0)) for y in targets.values()) < 0:
        raise TaskError(f"task {name!r}: labels run from below 0 to 2^63 or more; expected 64 bits, or texts")
    return {split: y.astype(np.uint64) for split, y in targets.items()}
