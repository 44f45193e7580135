"""Streams from the user's own arrays and data sets."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from piaget.data.arrays import as_array, is_measured, to_numpy
from piaget.data.columns import as_text
from piaget.data.plain import Fractions, check_seed, plain
from piaget.data.tasks import Kind, Task, scaled_alike
from piaget.errors import DataError, SettingError, TaskError, type_of
from piaget.streams.lazy import LazyStream, MadeStream
from piaget.streams.picture_files import channels_first

# --- arrays ---------------------------------------------------------------------------------------------


def from_arrays(
    x: Any,
    y: Any = None,
    groups: Any = None,
    *,
    kind: Kind | None = None,
    fractions: Fractions = (0.6, 0.2, 0.2),
    divisor: float | None = None,
    scale: bool = True,
    seed: int = 0,
    name: str = "arrays",
) -> list[Task]:
    """One task for each value of `groups`; or for each entry of a dictionary {name: (x, y)}.

    x: (n, *shape) inputs, y: (n,) labels or values, groups: (n,) to which task each sample belongs.
    Tasks come in the order in which groups first occur. See `Task.from_arrays` for the other options; inputs
    are scaled by the training samples of all tasks together, if they have the same shape.

    Raises `SettingError`, `DataError` or `TaskError`, if arrays do not fit together.

    >>> x, y = np.arange(80.0).reshape(40, 2), np.arange(40) % 2
    >>> [task.name for task in piaget.streams.from_arrays(x, y, groups=["north"] * 20 + ["south"] * 20)]
    ['north', 'south']
    """
    if isinstance(x, Mapping):
        if y is not None or groups is not None:
            raise SettingError("from_arrays({name: (x, y), ...}) takes no y and no groups of its own")
        pairs = {as_text(task): _pair(task, pair) for task, pair in x.items()}
        if len(pairs) < len(x):
            raise SettingError("from_arrays: two tasks have the same name as texts, such as 1 and '1'")
    elif y is None or groups is None:
        raise SettingError("from_arrays needs x, y and groups, or a dictionary {name: (x, y), ...}")
    else:
        pairs = _by_group(x, y, groups)
        kind = kind or _common_kind(y)
    if not pairs:
        raise DataError(f"{name}: there are no samples")
    seed = check_seed(seed)
    if divisor is None:
        arrays = [_array("inputs", px) for px, _ in pairs.values()]
        if all(array.dtype == np.uint8 for array in arrays):
            divisor = float(max(array.max(initial=0) for array in arrays)) or 1.0  # the same for all
    options: dict[str, Any] = {"kind": kind, "fractions": fractions, "divisor": divisor, "stream": name}
    tasks = [
        Task.from_arrays(task, px, py, seed=seed + i, scale=scale, **options)
        for i, (task, (px, py)) in enumerate(pairs.items())
    ]
    alike = len({(task.input_shape, bool(task.scaling.center)) for task in tasks}) == 1
    return scaled_alike(tasks) if alike and tasks[0].scaling.center else tasks


def _pair(task: Any, pair: Any) -> tuple[Any, Any]:
    if not isinstance(pair, Sequence) or len(pair) != 2:
        raise SettingError(
            f"from_arrays: task {task!r} is given as {type(pair).__name__}; expected a pair (x, y)"
        )
    return pair[0], pair[1]


def _by_group(x: Any, y: Any, groups: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    inputs, targets, names = _array("inputs", x), _array("targets", y), _group_names(groups)
    if not inputs.shape[:1] == targets.shape[:1] == (len(names),):
        found = (array.shape[0] if array.ndim else "no" for array in (inputs, targets))
        raise TaskError(
            "{} inputs, {} targets and {} groups; expected as many of each".format(*found, len(names))
        )
    texts = np.array([as_text(value) for value in names], object)
    return {name: (inputs[texts == name], targets[texts == name]) for name in dict.fromkeys(texts)}


def _group_names(groups: Any) -> list[Any]:
    """A list as it is: numpy makes texts of [1, "a"]."""
    if not isinstance(groups, list | tuple):
        if isinstance(groups, np.ma.MaskedArray) and np.ma.getmaskarray(groups).any():
            raise TaskError("a sample's group is masked; expected a name or number for each")
        try:
            groups = np.asarray(to_numpy(groups)).tolist()
        except Exception as error:  # arrays of other libraries fail in many ways
            raise TaskError(f"groups are no array: {str(error)[:200]}") from error
    if not isinstance(groups, list | tuple):
        raise TaskError(f"groups are {type_of(groups)}; expected a name or number for each sample")
    names = [plain(value) for value in groups]
    for row, value in enumerate(names):
        known = isinstance(value, str | int | float | datetime.date)
        if not known or (isinstance(value, float) and not math.isfinite(value)) or value != value:  # NaT
            raise TaskError(
                f"sample {row}: its group is missing, or no name: it is {type_of(value)}; expected a "
                "name or number for each"
            )
    return names


def _common_kind(y: Any) -> Kind | None:
    """One value with a fraction makes all groups regressions; classes may differ from group to group."""
    y = _array("targets", y)
    return "regression" if is_measured(y) else None


def _array(what: str, values: Any) -> np.ndarray:
    return as_array("from_arrays", what, values)


# --- torch data sets --------------------------------------------------------------------------------------


def from_datasets(
    datasets: Sequence[Any] | Mapping[str, Any],
    *,
    kind: Kind | None = None,
    fractions: Fractions = (0.6, 0.2, 0.2),
    divisor: float | None = None,
    scale: bool = True,
    seed: int = 0,
    name: str = "datasets",
) -> LazyStream:
    """One task for each torch Dataset of samples (input, target), or pair or triple of such data sets.

    A pair is (training, test), a triple (training, validation, test), of which the last two may be None; a
    single data set is divided at random by `fractions`. Inputs are tensors, arrays, or pictures; bytes are
    divided by `divisor` (255), other numbers standardised, unless `scale` is False (see `Task.from_arrays`).
    A data set is read when its task is first asked for, and then kept.

    Raises `SettingError` or `DataError`, if data sets are none, or do not fit.

    >>> data = torch.utils.data.TensorDataset(torch.eye(20), torch.arange(20) % 2)
    >>> stream = piaget.streams.from_datasets({"monday": data, "friday": data})
    >>> stream[1].name, len(stream[1].train)
    ('friday', 12)
    """
    named = (
        dict(datasets)
        if isinstance(datasets, Mapping)
        else {f"{name}-{i:02d}": d for i, d in enumerate(datasets)}
    )
    if not named:
        raise SettingError("from_datasets: there is no data set")
    seed = check_seed(seed)
    made: dict[int, Task] = {}
    options: dict[str, Any] = {"kind": kind, "fractions": fractions, "scale": scale, "stream": name}

    def make(i: int) -> Task:
        if i not in made:
            task, given = list(named.items())[i]
            made[i] = _from_sets(str(task), given, divisor, seed=seed + i, **options)
        return made[i]

    return MadeStream(name, seed, len(named), make)


def _from_sets(task: str, given: Any, divisor: float | None, **options: Any) -> Task:
    sets = list(given) if isinstance(given, tuple | list) else [given]
    if not 1 <= len(sets) <= 3:
        raise TaskError(f"task {task!r}: {len(sets)} data sets; expected one, two or three")
    x, y = samples(task, sets[0])
    rest: dict[str, Any] = {}
    if len(sets) > 1:
        named = {"test": sets[-1], "validation": sets[1] if len(sets) == 3 else None}
        rest = {part: None if one is None else samples(task, one) for part, one in named.items()}
    if divisor is None and _array("inputs", x).dtype == np.uint8:
        divisor = 255
    return Task.from_arrays(task, x, y, divisor=divisor, **rest, **options)


@dataclass(frozen=True)
class ReadLater:
    """A data set that is read at once, when its task is asked for: inputs (n, *shape) and targets (n,)."""

    read: Callable[[], tuple[Any, Any]]


def samples(task: str, dataset: Any) -> tuple[Any, Any]:
    """All inputs (n, *shape) and all targets (n,) of a data set."""
    if isinstance(dataset, ReadLater):
        return dataset.read()
    if isinstance(dataset, torch.utils.data.TensorDataset) and len(dataset.tensors) == 2:
        return dataset.tensors[0], dataset.tensors[1].reshape(len(dataset), -1).squeeze(1)
    pairs = dataset if isinstance(dataset, torch.utils.data.IterableDataset) else _indexed(task, dataset)
    inputs: list[np.ndarray] = []
    targets: list[Any] = []
    for sample in pairs:
        if not isinstance(sample, tuple | list) or len(sample) != 2:
            raise TaskError(f"task {task!r}: sample {len(inputs)} is no pair (input, target)")
        inputs.append(_input(f"task {task!r}, sample {len(inputs)}", sample[0]))
        target = np.asarray(to_numpy(sample[1]))
        if target.size != 1:
            raise TaskError(
                f"task {task!r}: the target of sample {len(inputs) - 1} has shape {target.shape}; expected "
                "a class number, a label or a value"
            )
        targets.append(target.item())
        if inputs[-1].shape != inputs[0].shape:
            raise TaskError(
                f"task {task!r}: sample {len(inputs) - 1} has shape {inputs[-1].shape}, but the first has "
                f"{inputs[0].shape}; expected one shape (resize first)"
            )
    if not inputs:
        raise TaskError(f"task {task!r}: the data set is empty")
    return np.stack(inputs), targets


def _indexed(task: str, dataset: Any) -> Any:
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        raise TaskError(
            f"task {task!r}: {type_of(dataset)} is no data set; expected a torch Dataset of pairs"
        )
    return (dataset[i] for i in range(len(dataset)))


def _input(where: str, value: Any) -> np.ndarray:
    if hasattr(value, "getbands"):  # a picture: channels first
        return channels_first(np.asarray(value))
    array = as_array(where, "inputs", value if hasattr(value, "ndim") else np.asarray(value))
    return array[None] if array.ndim == 0 else array
