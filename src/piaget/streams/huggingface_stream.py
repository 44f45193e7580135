"""A stream from a data set of Hugging Face's library `datasets`, in memory or on disk.

Nothing is downloaded, and no code that comes with a data set is run: a path is read by
`datasets.load_from_disk` (Arrow files and JSON); `trust_remote_code` is never used.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from piaget.data.arrays import as_array, is_measured
from piaget.data.columns import as_text
from piaget.data.plain import Fractions, check_fractions, check_seed, shown
from piaget.data.tasks import Kind, scaled_alike
from piaget.errors import DataError, SettingError, note, type_of
from piaget.extras import need
from piaget.streams.array_stream import ReadLater, from_datasets
from piaget.streams.cuts import PARTS, Rows, check_train_size, draw_classes, limit, rest_divided
from piaget.streams.lazy import LazyStream, MadeStream
from piaget.streams.picture_files import Packed, Picture, channels_first, checked_size, common_shape, pixels

# What the parts of a data set are called.
CALLED = dict.fromkeys(("valid", "val", "dev"), "validation") | {part: part for part in PARTS}


def from_huggingface(
    dataset: Any,
    *,
    target: str,
    inputs: str | Sequence[str],
    group: str | None = None,
    classes_per_task: int | None = None,
    tasks: int | None = None,
    kind: Kind | None = None,
    fractions: Fractions = (0.6, 0.2, 0.2),
    train_size: int | None = None,
    size: tuple[int, int] | None = None,
    seed: int = 0,
    name: str = "huggingface",
) -> LazyStream:
    """One task for each value of the column `group`; or classes, `classes_per_task` of them a task.

    dataset: a `datasets.Dataset` or `DatasetDict`, or the folder that `save_to_disk` wrote one to.
    target: the column of labels or values. Labels of a ClassLabel are kept by their names.
    inputs: a column of pictures, arrays or numbers, or several columns of numbers.
    classes_per_task: no class is in two tasks; they are drawn from the seed, and `tasks` limits how many.
    fractions: a Dataset is divided by them, every class alike. Of a DatasetDict the parts that are there are
        used as they are; one that is not there (validation, test) is cut from the training part in
        proportion.
    size: (height, width) to which pictures are resized; without it, all must have the same size.

    Pictures are grey if all are, else in colour, and read when their task is asked for. Numbers are
    standardised by the training samples of all tasks. Groups that cannot be a task are skipped, with a note.
    Tables with texts and missing values: `from_table(dataset.to_pandas(), ...)`.

    Raises `SettingError` for columns or numbers that do not fit, `DataError` for data that cannot be read or
    has no task in it, and `PackageError` without the library `datasets`.

    >>> import datasets
    >>> columns = {"height": np.arange(40.0), "width": np.arange(40.0) % 7}
    >>> columns |= {"animal": ["ant", "bee"] * 20, "site": ["north"] * 20 + ["south"] * 20}
    >>> dataset = datasets.Dataset.from_dict(columns)
    >>> inputs = ["height", "width"]
    >>> stream = piaget.streams.from_huggingface(dataset, group="site", target="animal", inputs=inputs)
    >>> stream[0]
    Task('north', binary: 'ant', 'bee'; inputs (2,); 12 train, 4 validation, 4 test samples)
    """
    if (group is None) == (classes_per_task is None):
        raise SettingError("from_huggingface needs either group=... (a column), or classes_per_task=...")
    fractions, seed, size = check_fractions(fractions), check_seed(seed), checked_size(size)
    columns = [inputs] if isinstance(inputs, str) else list(inputs)
    sets = _parts(dataset)
    for part, one in sets.items():
        _check_columns(part, one, [target, *columns, *([group] if group is not None else [])])
    targets = {part: _targets(part, one, target) for part, one in sets.items()}
    sets = {part: one for part, one in sets.items() if targets[part] is not None}
    labels = {part: np.asarray(y) for part, y in targets.items() if y is not None}
    if "train" not in sets:
        raise DataError(f"column {target!r}: no training sample has a label")
    if kind is None and any(map(is_measured, labels.values())):
        kind = "regression"
    if group is not None:
        groups = {part: _texts(part, one, group) for part, one in sets.items()}
    else:
        groups = _cut(labels, kind, classes_per_task, tasks, seed)
    reader = _reader(sets, columns, size)
    divided = {}
    names = list(dict.fromkeys(groups["train"].tolist()))
    if group is None:
        names = sorted(set(names) - {""})
    for i, task in enumerate(names):
        rows = {part: np.flatnonzero(texts == task) for part, texts in groups.items()}
        found = rest_divided(rows, labels, kind == "regression", fractions, seed + i)
        if isinstance(found, str):
            note(f"{name}: {task!r} is skipped: {found}")
        else:
            divided[task] = found
    if not divided:
        raise DataError(f"{name}: no task is left")
    return _made(divided, labels, reader, kind, train_size, seed, name)


def _made(
    divided: Mapping[str, Mapping[str, tuple[str, Rows]]],
    labels: Mapping[str, np.ndarray],
    reader: _Numbers | _Pictures,
    kind: Kind | None,
    train_size: int | None,
    seed: int,
    name: str,
) -> LazyStream:
    """divided: of each task, the rows of its parts, with the part of the data set that they are of."""

    def read(source: str, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        return reader.read(source, rows), labels[source][rows]

    named: dict[str, Any] = {}
    for task, parts in divided.items():
        source, rows = parts["train"]
        if kind != "regression":
            check_train_size(train_size, len(np.unique(labels[source][rows])))
        rows = limit(rows, labels[source], train_size, kind or "multiclass")
        chosen = {**parts, "train": (source, rows)}
        named[task] = tuple(
            ReadLater(partial(read, *chosen[part])) if part in chosen else None for part in PARTS
        )
    stream = from_datasets(named, kind=kind, fractions=(1, 0, 0), seed=seed, name=name)
    if isinstance(reader, _Pictures) or reader.bytes:
        return stream
    scaled = scaled_alike(list(stream))
    return MadeStream(name, seed, len(scaled), scaled.__getitem__)


# --- the data set's parts and columns -----------------------------------------------------------------------


def _parts(dataset: Any) -> dict[str, Any]:
    """{"train": ..., and "validation" and "test" if they are there}."""
    library = need("datasets", "data sets of Hugging Face")
    if isinstance(dataset, str | os.PathLike):
        if not os.path.isdir(dataset):  # also of a name that is too long for a file
            raise DataError(
                f"{dataset} is no folder; expected one that save_to_disk wrote (nothing is downloaded: load "
                "it with the library datasets, and give what it returns)"
            )
        try:
            dataset = library.load_from_disk(str(dataset))
        except Exception as error:  # damaged files fail in many ways
            raise DataError(
                f"{dataset} cannot be read as a data set that save_to_disk wrote: {str(error)[:300]}"
            ) from error
    if isinstance(dataset, library.Dataset):
        return {"train": dataset}
    if not isinstance(dataset, library.DatasetDict):
        raise DataError(
            f"{type_of(dataset)}; expected a Dataset or DatasetDict, which can be indexed, or the "
            "folder of one"
        )
    found: dict[str, Any] = {}
    for name, one in dataset.items():
        part = CALLED.get(str(name))
        if part is None or part in found:
            note(f"the part {name!r} of the data set is not used")
        else:
            found[part] = one
    if "train" not in found:
        raise DataError(
            f"the data set has the parts {', '.join(map(str, dataset))}; expected one called train"
        )
    return found


def _check_columns(part: str, dataset: Any, names: Sequence[Any]) -> None:
    for name in names:
        if name not in dataset.column_names:
            there = ", ".join(map(repr, dataset.column_names))
            raise SettingError(f"{part}: there is no column {shown(name)}; there are {there}")
    if len(set(names)) < len(names):
        raise SettingError(f"columns {', '.join(map(repr, names))}; expected different ones")
    if not len(dataset):
        raise DataError(f"{part}: the data set is empty")


def _column(dataset: Any, name: str) -> list[Any]:
    """Its values, as Python's own; without what a user's format or transform makes of them."""
    return dataset.with_format(None).select_columns([name])[:][name]


def _targets(part: str, dataset: Any, name: str) -> np.ndarray | None:
    """(n,) names of classes, labels or values; None if no sample has any (as in competitions' test parts)."""
    feature, values = dataset.features[name], _column(dataset, name)
    absent = [i for i, value in enumerate(values) if value is None]
    if hasattr(feature, "int2str"):  # a ClassLabel
        absent = [i for i, value in enumerate(values) if value is None or value < 0]  # -1: not labelled
        if len(absent) == len(values):
            note(f"the part {part!r} has no labels, and is not used")
            return None
        if not absent:
            values = [feature.names[value] for value in values]
    if absent:
        raise DataError(
            f"{part}: column {name!r} is empty in {len(absent)} rows (the first is row {absent[0]}); "
            "expected a label or value for each: dataset.filter(...) leaves rows out"
        )
    return as_array(f"{part}, column {name!r}", "targets", values)


def _texts(part: str, dataset: Any, name: str) -> np.ndarray:
    """(n,) names of groups; those of a ClassLabel by its names."""
    feature, values = dataset.features[name], _column(dataset, name)
    for row, value in enumerate(values):
        if value is None or isinstance(value, list | dict) or as_text(value) == "":
            raise DataError(
                f"{part}, row {row}: column {name!r} holds {shown(value)}; expected a group's name"
            )
    if hasattr(feature, "int2str"):
        values = [feature.names[value] for value in values]
    return np.array([as_text(value) for value in values], object)


def _cut(
    labels: Mapping[str, np.ndarray], kind: Kind | None, per_task: Any, tasks: int | None, seed: int
) -> dict[str, np.ndarray]:
    """The task of each sample, by its class: "" if no task has it."""
    if kind == "regression":
        raise SettingError("classes_per_task is for classes; the target has values: give group=...")
    classes = np.unique(labels["train"])
    drawn = draw_classes(np.random.default_rng(seed), len(classes), per_task, tasks, reuse=False)
    task_of = {classes[c]: f"task-{i:03d}" for i, chosen in enumerate(drawn) for c in chosen}
    return {part: np.array([task_of.get(label, "") for label in y], object) for part, y in labels.items()}


# --- inputs -------------------------------------------------------------------------------------------------


def _reader(
    sets: Mapping[str, Any], columns: Sequence[str], size: tuple[int, int] | None
) -> _Numbers | _Pictures:
    library = need("datasets", "data sets of Hugging Face")
    pictures = [c for c in columns if isinstance(sets["train"].features[c], library.Image)]
    if pictures and len(columns) > 1:
        raise SettingError(f"inputs: {pictures[0]!r} holds pictures; expected it alone")
    if pictures:
        raw = {
            part: one.with_format(None)
            .select_columns(columns)
            .cast_column(columns[0], library.Image(decode=False))
            for part, one in sets.items()
        }
        every = (_picture(raw[part], columns[0], part, row) for part in raw for row in range(len(raw[part])))
        return _Pictures(raw, columns[0], common_shape(every, size), size is not None)
    if size is not None:
        raise SettingError(f"size={size} is for pictures; inputs are {', '.join(map(repr, columns))}")
    arrays = {part: _numbers(part, one, columns) for part, one in sets.items()}
    return _Numbers(arrays, bytes=arrays["train"].dtype == np.uint8)


@dataclass(frozen=True)
class _Numbers:
    arrays: Mapping[str, np.ndarray]  # by part: (n, *shape)
    bytes: bool

    def read(self, part: str, rows: Rows) -> np.ndarray:
        return self.arrays[part][rows]


@dataclass(frozen=True)
class _Pictures:
    sets: Mapping[str, Any]
    column: str
    shape: tuple[int, int, int]
    resized: bool

    def read(self, part: str, rows: Rows) -> np.ndarray:
        pictures = (_picture(self.sets[part], self.column, part, int(row)) for row in rows)
        return np.stack([pixels(picture, self.shape, self.resized) for picture in pictures])


def _picture(dataset: Any, column: str, part: str, row: int) -> Picture:
    """The file itself: it is opened here, where only pictures of some formats are."""
    value, where = dataset[row][column], f"{part}, row {row}, column {column!r}"
    if value is None or (value["bytes"] is None and not Path(str(value["path"])).is_file()):
        raise DataError(
            f"{where}: there is no picture; expected its file in the data set, or on this machine"
        )
    return Path(value["path"]) if value["bytes"] is None else Packed(where, value["bytes"])


def _are_bytes(dataset: Any, column: str) -> bool:
    """Its numbers, or those in its arrays: as arrays of numpy, the library makes them wider."""
    kind = dataset.data.schema.field(column).type
    while inner := getattr(kind, "storage_type", None) or getattr(kind, "value_type", None):
        kind = inner
    return str(kind) == "uint8"


def _numbers(part: str, dataset: Any, columns: Sequence[str]) -> np.ndarray:
    """(n, *shape) of one column of arrays or numbers, or (n, columns)."""
    content = dataset.with_format("numpy").select_columns(list(columns))[:]
    arrays = []
    for column in columns:
        array = as_array(f"{part}, column {column!r}", "inputs", content[column])
        if array.dtype.kind not in "fiub":
            raise DataError(
                f"{part}: column {column!r} holds no numbers ({array.dtype}); expected numbers, arrays of "
                "one shape, or pictures; for texts: from_table(dataset.to_pandas(), ...)"
            )
        if len(columns) > 1 and array.ndim != 1:
            raise DataError(f"{part}: column {column!r} holds arrays of {array.shape[1:]}; expected it alone")
        kind = np.uint8 if _are_bytes(dataset, column) else np.float32 if array.dtype.kind == "b" else None
        arrays.append(array if kind is None else array.astype(kind))
    if len(columns) > 1:
        return np.stack(arrays, 1)
    (array,) = arrays
    if array.ndim == 1:
        return array[:, None]
    pictures = array.dtype == np.uint8 and array.ndim in (3, 4)  # with channels last, as most have them
    if pictures and (array.ndim == 3 or (array.shape[3] in (1, 3, 4) and array.shape[1] not in (1, 3, 4))):
        return np.stack([channels_first(picture) for picture in array])
    return array
