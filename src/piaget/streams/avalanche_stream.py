"""A stream from a benchmark of Avalanche. Avalanche itself is not imported: what is used is its documented
interface, which other objects may have, too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from piaget.data.plain import Fractions, check_fractions, check_seed
from piaget.errors import DataError, SettingError, TaskError, type_of
from piaget.streams.array_stream import ReadLater, from_datasets, samples
from piaget.streams.cuts import PARTS, Rows, rest_divided
from piaget.streams.lazy import LazyStream

STREAMS = {"train": ("train_stream",), "validation": ("valid_stream", "val_stream"), "test": ("test_stream",)}


def from_avalanche(
    benchmark: Any,
    *,
    class_names: Sequence[str] | None = None,
    fractions: Fractions = (0.6, 0.2, 0.2),
    scale: bool = False,
    seed: int = 0,
    name: str = "avalanche",
) -> LazyStream:
    """One task for each experience of a benchmark's train_stream, in its order.

    The test stream has an experience for each of the train stream, or a single one, of which each task gets
    the samples of its classes. Where there is no validation stream (valid_stream), samples are cut from the
    training experience, every class alike, in proportion to `fractions` (and so is a test part that is not
    there).
    class_names: what the class numbers 0, 1, ... are called; without it, labels are the numbers.
    scale: standardise inputs; without it they stay as the benchmark's transformations leave them.

    Every experience is a task with outputs of its own, and whoever asks for a prediction says which it is:
    results are those of the task-incremental setting, also for benchmarks that are made for others.
    Transformations are those for evaluation: there is no augmentation. Data is read when its task is asked
    for, and then kept.

    Raises `DataError` for what is no benchmark, or has streams that do not fit, `SettingError` for class
    names or numbers that do not, and `TaskError`, when it is read, for an experience that cannot be a task.

    Avalanche itself makes benchmarks with `nc_benchmark(train, test, n_experiences=5, ...)`, say. Here is a
    small object that has the same interface:

    >>> from types import SimpleNamespace
    >>> def experience(*classes):  # of samples (input, class, task label)
    ...     samples = [(torch.full((1, 4, 4), number / 10), classes[number % 2], 0) for number in range(10)]
    ...     return SimpleNamespace(dataset=samples)
    >>> benchmark = SimpleNamespace(train_stream=[experience(0, 1), experience(2, 3)])
    >>> stream = piaget.streams.from_avalanche(benchmark, class_names=["ant", "bee", "cat", "dog"])
    >>> stream[1]
    Task('avalanche-01', binary: 'cat', 'dog'; inputs (1, 4, 4); 6 train, 2 validation, 2 test samples)
    """
    fractions, seed = check_fractions(fractions), check_seed(seed)
    experiences = {part: _experiences(benchmark, part) for part in PARTS}
    train = experiences["train"]
    if not train:
        raise DataError(
            f"{type_of(benchmark)} has no train_stream with experiences; expected a benchmark of Avalanche"
        )
    for part in ("validation", "test"):
        if len(experiences[part]) not in (0, 1, len(train)):
            raise DataError(
                f"{len(train)} experiences for training, but {len(experiences[part])} for {part}; expected "
                "as many, or a single one with all classes"
            )
    names = _names(class_names)
    datasets = {}
    for i, experience in enumerate(train):
        task = f"{name}-{i:02d}"
        its = {"train": experience}
        for part in ("validation", "test"):
            if experiences[part]:
                its[part] = experiences[part][i if len(experiences[part]) > 1 else 0]
        datasets[task] = _Experience(task, its, names, fractions, seed + i).sets()
    return from_datasets(datasets, fractions=(1, 0, 0), scale=scale, seed=seed, name=name)


def _experiences(benchmark: Any, part: str) -> list[Any]:
    for attribute in STREAMS[part]:
        stream = getattr(benchmark, attribute, None)
        if isinstance(stream, Iterable):
            return list(stream)
    return []


def _names(class_names: Any) -> tuple[str, ...] | None:
    if class_names is None:
        return None
    names = tuple(class_names) if isinstance(class_names, Iterable) else ()
    if isinstance(class_names, str) or not names or not all(isinstance(one, str) for one in names):
        raise SettingError(f"class_names={class_names!r}; expected a list of texts, one a class")
    if len(set(names)) < len(names):
        raise SettingError("class_names: a name occurs twice; expected different ones")
    return names


@dataclass
class _Experience:
    """One task's experiences by part, read together when the first of its parts is asked for."""

    task: str
    experiences: dict[str, Any]
    names: tuple[str, ...] | None
    fractions: Fractions
    seed: int

    def sets(self) -> tuple[Any, ...]:
        """Training, validation and test; what cannot be there is None."""
        shares = dict(zip(PARTS, self.fractions, strict=True))
        there = [part in self.experiences or shares[part] > 0 for part in PARTS]
        read: dict[str, Any] = {}

        def part_of(part: str) -> tuple[np.ndarray, np.ndarray]:
            if not read:
                read.update(self._read())
            return read.pop(part)

        return tuple(
            ReadLater(partial(part_of, part)) if yes else None for part, yes in zip(PARTS, there, strict=True)
        )

    def _read(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        x, y = {}, {}
        for part, experience in self.experiences.items():
            inputs, targets = samples(self.task, _Pairs(self.task, _dataset(self.task, experience)))
            x[part], y[part] = np.asarray(inputs), self._labels(np.asarray(targets))
        classes = np.unique(y["train"])
        rows: dict[str, Rows] = {}
        for part, labels in y.items():
            rows[part] = np.flatnonzero(np.isin(labels, classes))
            if not len(rows[part]):
                raise TaskError(f"task {self.task!r}: no {part} sample is of one of its classes")
        divided = rest_divided(rows, y, False, self.fractions, self.seed)
        if isinstance(divided, str):
            raise TaskError(f"task {self.task!r}: {divided}")
        return {part: (x[source][found], y[source][found]) for part, (source, found) in divided.items()}

    def _labels(self, y: np.ndarray) -> np.ndarray:
        if y.dtype.kind not in "iub":
            raise TaskError(f"task {self.task!r}: targets have dtype {y.dtype}; expected class numbers")
        if self.names is None:
            return y
        if y.min() < 0 or y.max() >= len(self.names):
            raise SettingError(
                f"task {self.task!r}: class numbers run from {y.min()} to {y.max()}, but there are "
                f"{len(self.names)} class_names"
            )
        return np.asarray(self.names)[y]


def _dataset(task: str, experience: Any) -> Any:
    dataset = getattr(experience, "dataset", None)
    if dataset is None:
        raise DataError(f"task {task!r}: {type_of(experience)} has no dataset; expected an experience")
    evaluation = getattr(dataset, "eval", None)  # the transformations for evaluation
    return evaluation() if callable(evaluation) else dataset


@dataclass(frozen=True)
class _Pairs:
    """Of samples (input, target, task label, ...) the first two."""

    task: str
    dataset: Any

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, i: int) -> tuple[Any, Any]:
        sample = self.dataset[i]
        if not isinstance(sample, tuple | list) or len(sample) < 2:
            raise TaskError(f"task {self.task!r}: sample {i} is no (input, target, ...)")
        return sample[0], sample[1]
