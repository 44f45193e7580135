"""How each named stream is cut from its source (the paper's appendix, its table of data-set details).

Every function takes the stream's name, the seed that all that is random comes from, the data folder,
and options by keyword.
"""

from __future__ import annotations

import os
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from piaget.data.encoding import Scaling
from piaget.data.plain import Fractions, check_count, shown
from piaget.data.tasks import Kind, Task
from piaget.errors import DataError, SettingError
from piaget.streams import sources
from piaget.streams.cuts import (
    Part,
    Parts,
    check_tasks,
    check_train_size,
    classes_task,
    divide,
    divide_with_all_classes,
    draw_classes,
    make_task,
    of_rows,
)
from piaget.streams.fetch import folders, open_source
from piaget.streams.formats import Labelled
from piaget.streams.glyphs import GLYPHS
from piaget.streams.grids import Grids
from piaget.streams.lazy import LazyStream, MadeStream
from piaget.streams.objects import Drawing, Objects

DataDir = str | os.PathLike[str] | None
HALVES = (0.5, 0.0, 0.5)  # of the linear data sets: training, validation, test


def generator(name: str, seed: int) -> np.random.Generator:
    """Streams of one seed are drawn independently of each other."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


# --- classes of one data set, some a task --------------------------------------------------------------


def of_classes(
    name: str, seed: int, data: Labelled, tasks: int, per_task: int, reuse: bool, train_size: int | None
) -> LazyStream:
    """Tasks of classes that are drawn; divided as by `of_class_lists`."""
    rng = generator(name, seed)
    parts = _standard_parts(rng, data)
    classes = draw_classes(rng, len(data.names), per_task, tasks, reuse=reuse)
    return _of_parts(name, seed, parts, classes, data.names, train_size)


def of_class_lists(
    name: str, seed: int, data: Labelled, classes: list[list[int]], train_size: int | None
) -> LazyStream:
    """Tasks of these classes.

    The standard test part is for test; of the standard training part, 80 % are for training and 20 % for
    validation. It is divided once for the whole stream: no sample is for training in one task and for
    validation in another.
    """
    parts = _standard_parts(generator(name, seed), data)
    return _of_parts(name, seed, parts, classes, data.names, train_size)


def _standard_parts(rng: np.random.Generator, data: Labelled) -> Parts:
    train, validation, _ = divide(rng, len(data.train_y), (0.8, 0.2, 0))
    return (
        Part(data.train_x, data.train_y, train),
        Part(data.train_x, data.train_y, validation),
        Part(data.test_x, data.test_y, np.arange(len(data.test_y))),
    )


def _of_parts(
    name: str,
    seed: int,
    parts: Parts,
    classes: list[list[int]],
    names: tuple[Any, ...],
    train_size: int | None,
) -> LazyStream:
    check_train_size(train_size, max(map(len, classes)))  # before any of them is learned
    x = parts[0].x
    scaling = Scaling(float(x.max())) if x.dtype == np.uint8 else Scaling()

    def make(i: int) -> Task:
        return classes_task(
            f"{name}-{i:02d}", parts, classes[i], names, stream=name, train_size=train_size, scaling=scaling
        )

    return MadeStream(name, seed, len(classes), make)


def mnist(
    name: str, seed: int, data_dir: DataDir, *, tasks: int = 10, train_size: int | None = None
) -> LazyStream:
    """Pairs of digits."""
    return of_classes(name, seed, open_source(sources.MNIST, data_dir), tasks, 2, True, train_size)


def fashion(
    name: str, seed: int, data_dir: DataDir, *, tasks: int = 10, train_size: int | None = None
) -> LazyStream:
    """Pairs of articles."""
    return of_classes(name, seed, open_source(sources.FASHION, data_dir), tasks, 2, True, train_size)


def cifar100(
    name: str, seed: int, data_dir: DataDir, *, tasks: int = 20, train_size: int | None = None
) -> LazyStream:
    """Five classes a task, none in two tasks."""
    return of_classes(name, seed, open_source(sources.CIFAR100, data_dir), tasks, 5, False, train_size)


def cub(
    name: str,
    seed: int,
    data_dir: DataDir,
    *,
    tasks: int = 20,
    train_size: int | None = None,
    features: str = "resnet18",
) -> LazyStream:
    """Ten species a task, none in two tasks. `features`: cub/train_FEATURES.mat of the data folder,
    or a path with {split} in it, which stands for train and test."""
    if not isinstance(features, str):
        raise SettingError(f"features={features!r}; expected a name")
    try:
        data = open_source(sources.cub_features(features), data_dir)
    except DataError as error:
        there = ", ".join(sources.other_features(folders(data_dir)))
        hint = f"\nFeatures of CUB that are there: {there}; choose by the option features" if there else ""
        raise DataError(f"{error}{hint}") from None
    made = of_classes(name, seed, data, tasks, 10, False, train_size)
    return made if features == "resnet18" else relabelled(made, with_features(name, features))


def with_features(name: str, features: str) -> str:
    """What results are filed under: other features than the paper's are named."""
    return name if features == "resnet18" else f"{name}/{Path(features).name.replace('{split}', 'own')}"


def relabelled(stream: LazyStream, label: str) -> LazyStream:
    """The same tasks under another stream's name."""
    return MadeStream(label, stream.seed, len(stream), lambda i: replace(stream[i], stream=label))


def digits(
    name: str, seed: int, data_dir: DataDir, *, tasks: int = 10, train_size: int | None = None
) -> LazyStream:
    """Pairs of digits from the 1,797 pictures of 8 x 8 that come with the package."""
    x, y = sources.packaged_digits()
    rng = generator(name, seed)
    parts = of_rows(x, y, divide_with_all_classes(rng, y, (0.6, 0.2, 0.2)))
    classes = draw_classes(rng, 10, 2, tasks, reuse=True)
    return _of_parts(name, seed, parts, classes, tuple(range(10)), train_size)


# --- tasks that are given ---------------------------------------------------------------------------------


def landmine(
    name: str, seed: int, data_dir: DataDir, *, train_size: int | None = None, fractions: Fractions = HALVES
) -> LazyStream:
    """One field a task."""
    return of_groups(name, seed, open_source(sources.LANDMINE, data_dir), "binary", train_size, fractions)


def schools(
    name: str, seed: int, data_dir: DataDir, *, train_size: int | None = None, fractions: Fractions = HALVES
) -> LazyStream:
    """One school a task."""
    return of_groups(name, seed, open_source(sources.SCHOOLS, data_dir), "regression", train_size, fractions)


def fera(
    name: str, seed: int, data_dir: DataDir, *, train_size: int | None = None, fractions: Fractions = HALVES
) -> LazyStream:
    """One action unit of one person a task."""
    return of_groups(name, seed, open_source(sources.FERA, data_dir), "binary", train_size, fractions)


def of_groups(
    name: str,
    seed: int,
    groups: list[tuple[np.ndarray, np.ndarray]],
    kind: Kind,
    train_size: int | None,
    fractions: Fractions,
) -> LazyStream:
    """Tasks that are given as (x, y), in random order."""
    check_train_size(train_size, 1 if kind == "regression" else 2)
    rng = generator(name, seed)
    order = rng.permutation(len(groups))
    labels = None if kind == "regression" else np.unique(np.concatenate([y for _, y in groups]))
    if labels is not None and len(labels) != 2:
        raise DataError(f"{name}: there are {len(labels)} different labels; expected 2")
    targets = [y.astype(np.float64) if labels is None else np.searchsorted(labels, y) for _, y in groups]
    rows = [divide_with_all_classes(rng, y, fractions) for y in targets]
    digits_of_number = len(str(len(groups) - 1))

    def make(i: int) -> Task:
        j = int(order[i])
        return make_task(
            f"{name}-{j:0{digits_of_number}d}",
            kind,
            of_rows(groups[j][0], targets[j], rows[j]),
            stream=name,
            train_size=train_size,
            labels=None if labels is None else labels.tolist(),
        )

    return MadeStream(name, seed, len(groups), make)


def omniglot(
    name: str,
    seed: int,
    data_dir: DataDir,
    *,
    tasks: int | None = None,
    train_size: int | None = None,
    fractions: Fractions = (0.8, 0.1, 0.1),
) -> LazyStream:
    """One alphabet a task."""
    archive = open_source(sources.OMNIGLOT, data_dir)
    tasks = len(archive.alphabets) if tasks is None else check_count("tasks", tasks)
    if tasks > len(archive.alphabets):
        raise SettingError(f"tasks={tasks}; expected at most {len(archive.alphabets)}, one an alphabet")
    rng = generator(name, seed)
    order = [archive.alphabets[i] for i in rng.permutation(len(archive.alphabets))]
    labels = {alphabet: archive.labels(alphabet) for alphabet in order}
    check_train_size(train_size, max(len(names) for _, names in labels.values()))
    rows = {alphabet: divide_with_all_classes(rng, labels[alphabet][0], fractions) for alphabet in order}

    def make(i: int) -> Task:
        alphabet = order[i]
        y, names = labels[alphabet]
        parts = of_rows(archive.images(alphabet), y, rows[alphabet])
        kind: Any = "binary" if len(names) == 2 else "multiclass"
        return make_task(alphabet, kind, parts, stream=name, train_size=train_size, labels=names)

    return MadeStream(name, seed, tasks, make)


def pixel_mnist(name: str, seed: int, data_dir: DataDir, *, tasks: int = 10, digit: int = 4) -> LazyStream:
    """One picture of a digit a task: from a pixel's row and column, in [0, 1], to whether it is inked.

    The paper's label is the intensity in [0, 1], with binary cross-entropy; as in the authors' published
    code, it is 1 for intensities above 0.3.
    All pixels are for training, and for validation and test as well: nothing is generalised to.
    """
    if check_count("digit", digit, 0) > 9:
        raise SettingError(f"digit={digit}; expected 0 to 9")
    data = open_source(sources.MNIST, data_dir)
    pictures = np.flatnonzero(data.train_y == digit)
    tasks = check_count("tasks", tasks)
    if tasks > len(pictures):
        raise DataError(f"{name}: {tasks} tasks, but there are {len(pictures)} pictures of the digit {digit}")
    chosen = generator(name, seed).permutation(pictures)[:tasks]
    height, width = data.train_x.shape[2:]
    row, column = np.divmod(np.arange(height * width), width)
    x = np.stack([row / (height - 1), column / (width - 1)], 1).astype(np.float32)

    def make(i: int) -> Task:
        picture = data.train_x[chosen[i]].ravel()
        y = (picture / picture.max() > 0.3).astype(np.int64)
        rows = np.arange(len(y))
        return make_task(f"{name}-{i:02d}", "binary", of_rows(x, y, (rows, rows, rows)), stream=name)

    return MadeStream(name, seed, tasks, make)


# --- of several -------------------------------------------------------------------------------------------


def combined(
    name: str, seed: int, data_dir: DataDir, *, train_size: int | None = None, features: str = "resnet18"
) -> LazyStream:
    """The tasks of mnist, fashion and cub, in random order."""
    streams = [
        mnist("mnist", seed, data_dir, train_size=train_size),
        fashion("fashion", seed, data_dir, train_size=train_size),
        cub("cub", seed, data_dir, train_size=train_size, features=features),
    ]
    places = [(stream, i) for stream in streams for i in range(len(stream))]
    order = generator(name, seed).permutation(len(places))

    label = with_features(name, features)

    def make(i: int) -> Task:
        stream, j = places[order[i]]
        return replace(stream[j], stream=label)

    return MadeStream(label, seed, len(places), make)


def objects(
    name: str, seed: int, data_dir: DataDir, *, setting: str | None = None, drawing: Drawing | None = None
) -> LazyStream:
    """48 classes of drawn objects. `setting`: "random", or what is held out; the name may say it, too."""
    said = None if name == "objects" else name.removeprefix("objects-")
    if said and setting and said != setting:
        raise SettingError(f"stream {name!r} with setting={setting!r}; expected one of them to say it")
    return Objects(seed, said or ("random" if setting is None else setting), drawing)


def grids(
    name: str,
    seed: int,
    data_dir: DataDir,
    *,
    tasks: int = 100,
    tests: int = 5,
    shots: int = 10,
    glyphs: str = "digits",
    train_size: int | None = None,
) -> LazyStream:
    """Glyphs in four cells: `tasks` training tasks, then `tests` few-shot tasks of each of four kinds, with
    `shots` samples of each class. `glyphs`: "digits", "mnist", "omniglot" or "shapes"."""
    if not isinstance(glyphs, str) or glyphs not in GLYPHS:
        raise SettingError(f"glyphs={shown(glyphs)}; expected one of {', '.join(GLYPHS)}")
    tasks, tests, shots = check_tasks(tasks), check_count("tests", tests, 0), check_count("shots", shots)
    check_train_size(train_size, 3)
    label = name if glyphs == "digits" else f"{name}/{glyphs}"
    return Grids(label, seed, lambda rng: GLYPHS[glyphs](rng, data_dir), tasks, tests, shots, train_size)
