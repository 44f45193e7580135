"""A stream from folders of pictures."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from piaget.data.encoding import Scaling
from piaget.data.plain import Fractions, check_fractions, check_seed
from piaget.data.tasks import Kind, Task
from piaget.errors import DataError, SettingError, note
from piaget.streams.cuts import (
    Rows,
    check_train_size,
    divide,
    draw_classes,
    make_task,
    of_rows,
    unusable,
)
from piaget.streams.lazy import LazyStream, MadeStream
from piaget.streams.picture_files import checked_size, common_shape, pixels

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")


def from_folder(
    folder: str | os.PathLike[str],
    *,
    classes_per_task: int | None = None,
    tasks: int | None = None,
    reuse: bool = False,
    fractions: Fractions = (0.6, 0.2, 0.2),
    train_size: int | None = None,
    size: tuple[int, int] | None = None,
    seed: int = 0,
    name: str | None = None,
) -> LazyStream:
    """Tasks from pictures: folder/task/class/picture.png, or folder/class/picture.png cut into tasks.

    In the second case `classes_per_task` says how many classes a task has; they are drawn at random, with
    `reuse` also for several tasks (then `tasks` says how many there are). `size` (height, width) resizes;
    without it all pictures must have the same size. Pictures are grey if all are, and else in colour.
    They are read when their task is asked for, and kept as bytes in the task.

    Raises `DataError` if there are no pictures, or if they differ in size and `size` is not given;
    `SettingError` for numbers that do not fit.

    >>> import pathlib, tempfile
    >>> from PIL import Image
    >>> root = pathlib.Path(tempfile.mkdtemp())
    >>> for number in range(20):
    ...     place = root / "north" / ("cat", "dog")[number % 2]
    ...     place.mkdir(parents=True, exist_ok=True)
    ...     Image.new("L", (8, 8), number).save(place / f"{number}.png")
    >>> stream = piaget.streams.from_folder(root)
    >>> stream[0].labels, stream[0].input_shape
    (('cat', 'dog'), (1, 8, 8))
    """
    if not isinstance(folder, str | os.PathLike):
        raise DataError(f"{folder!r} is no path of a folder")
    root = Path(folder)
    if not os.path.isdir(root):  # also of a name that is too long for a file
        raise DataError(f"{root} does not exist, or is no folder")
    fractions = check_fractions(fractions)
    seed = check_seed(seed)
    size = checked_size(size)
    rng, stream = np.random.default_rng(seed), name or root.resolve().name
    try:
        found = _classes(root)
    except OSError as error:
        raise DataError(f"{root} cannot be read: {error}") from error
    per_task = _tasks(root, found, classes_per_task, tasks, reuse, rng)
    shape = common_shape(
        [path for classes in found.values() for paths in classes.values() for path in paths], size
    )
    # Each class is divided once, for all tasks that have it.
    parts = {key: divide(rng, len(paths), fractions) for key, paths in _by_class(found).items()}
    divided = {}
    for task, classes in list(per_task.items()):
        divided[task] = _joined([parts["" if "" in found else task, c] for c in classes])
        reason = unusable(*divided[task], fractions)
        if reason:
            note(f"{root}: {task!r} is skipped: {reason}")
            del per_task[task]
    if not per_task:
        raise DataError(f"{root}: no task is left")
    names = list(per_task)
    check_train_size(train_size, max(len(classes) for classes in per_task.values()))

    def make(i: int) -> Task:
        classes = per_task[names[i]]
        y, rows = divided[names[i]]
        x = np.stack([pixels(path, shape, size is not None) for paths in classes.values() for path in paths])
        kind: Kind = "binary" if len(classes) == 2 else "multiclass"
        return make_task(
            names[i],
            kind,
            of_rows(x, y, rows),
            stream=stream,
            train_size=train_size,
            labels=list(classes),
            scaling=Scaling(255),
        )

    return MadeStream(stream, seed, len(names), make)


Classes = dict[str, list[Path]]  # class -> pictures


def _classes(root: Path) -> dict[str, Classes]:
    """{task: classes}; one task named "" if the folder holds classes."""

    def pictures(folder: Path) -> list[Path]:
        return sorted(p for p in folder.iterdir() if p.suffix.lower() in IMAGES and p.is_file())

    def inner(folder: Path) -> list[Path]:
        folders = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
        for p in folders:
            if p.is_symlink() and folder.resolve().is_relative_to(p.resolve()):
                raise DataError(f"{p} is a link to a folder that it is in; expected folders of pictures")
        return folders

    tasks = {t.name: {c.name: pictures(c) for c in inner(t) if pictures(c)} for t in inner(root)}
    tasks = {task: classes for task, classes in tasks.items() if classes}
    if not tasks and any(pictures(folder) for folder in inner(root)):
        return {"": {folder.name: pictures(folder) for folder in inner(root) if pictures(folder)}}
    if not tasks:
        raise DataError(
            f"{root} holds no pictures; expected task/class/picture.png or class/picture.png "
            f"({', '.join(IMAGES)})"
        )
    return tasks


def _tasks(
    root: Path,
    found: dict[str, Classes],
    per_task: int | None,
    tasks: int | None,
    reuse: bool,
    rng: np.random.Generator,
) -> dict[str, Classes]:
    if "" not in found:
        if per_task is not None or tasks is not None:
            raise SettingError(
                f"{root} holds task/class/picture: its tasks are given; classes_per_task and tasks are for "
                "class/picture"
            )
        few = [task for task, classes in found.items() if len(classes) < 2]
        if few:
            raise DataError(f"{root / few[0]} holds a single class; expected two or more a task")
        return found
    classes = found[""]
    if per_task is None:
        raise SettingError(
            f"{root} holds class/picture, {len(classes)} classes: classes_per_task must say how to cut them "
            "into tasks"
        )
    names = list(classes)
    drawn = draw_classes(rng, len(names), per_task, tasks, reuse=reuse)
    return {f"task-{i:02d}": {names[c]: classes[names[c]] for c in chosen} for i, chosen in enumerate(drawn)}


def _by_class(found: dict[str, Classes]) -> dict[tuple[str, str], list[Path]]:
    return {(task, name): paths for task, classes in found.items() for name, paths in classes.items()}


def _joined(parts: list[tuple[Rows, Rows, Rows]]) -> tuple[np.ndarray, tuple[Rows, Rows, Rows]]:
    """Class numbers of all pictures, one class after the other, and the parts of all of them."""
    sizes = [sum(map(len, part)) for part in parts]
    starts = np.cumsum([0, *sizes[:-1]])
    train, validation, test = (
        np.concatenate([start + part[i] for start, part in zip(starts, parts, strict=True)]) for i in range(3)
    )
    return np.repeat(np.arange(len(parts)), sizes), (train, validation, test)
