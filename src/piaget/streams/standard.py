"""Streams that other papers on continual learning use: split, permuted and rotated MNIST, split CIFAR-100.

They are task-incremental here: whoever asks for a prediction says of which task it is, and each task has
outputs of its own. The standard test part is for test. Of the standard training part 80 % are for training
and 20 % for validation, drawn from the seed once for the whole stream: a picture that trains one task
validates no other, under whatever permutation or rotation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from piaget.data.plain import check_count, is_number, plain, shown
from piaget.data.tasks import Split, Task
from piaget.errors import SettingError
from piaget.streams import sources
from piaget.streams.cuts import MOST_TASKS, draw_classes
from piaget.streams.fetch import open_source
from piaget.streams.formats import Labelled
from piaget.streams.lazy import LazyStream, MadeStream
from piaget.streams.named import DataDir, generator, of_class_lists

ORDERS = ("fixed", "seeded")
ANGLES = tuple(range(0, 180, 18))  # degrees


def _pictures(name: str, data_dir: DataDir) -> Labelled:
    """The data set that a stream's name ends in."""
    return open_source(sources.SOURCES[name.rpartition("-")[2]], data_dir)


def split(
    name: str,
    seed: int,
    data_dir: DataDir,
    *,
    tasks: int | None = None,
    train_size: int | None = None,
    classes_per_task: int | None = None,
    order: str = "fixed",
) -> LazyStream:
    """All classes in turn, none in two tasks: 5 x 2 digits or articles of clothing, 10 x 10 of CIFAR-100.

    order: "fixed", as the files number the classes (0 and 1, 2 and 3, ...), or "seeded", drawn from it.
    """
    if order not in ORDERS:
        raise SettingError(f"order={shown(order)}; expected {' or '.join(ORDERS)}")
    data = _pictures(name, data_dir)
    per_task = (10 if len(data.names) == 100 else 2) if classes_per_task is None else classes_per_task
    drawn = draw_classes(generator(f"{name}/order", seed), len(data.names), per_task, tasks, reuse=False)
    if order == "fixed":
        drawn = np.arange(len(drawn) * len(drawn[0])).reshape(len(drawn), -1).tolist()
    return of_class_lists(name, seed, data, drawn, train_size)


def permuted(
    name: str, seed: int, data_dir: DataDir, *, tasks: int = 10, train_size: int | None = None
) -> LazyStream:
    """All ten classes in every task; the pixels of a task's pictures are in an order of its own, drawn from
    the seed (also in the first task)."""
    data = _pictures(name, data_dir)
    tasks = _at_most(check_count("tasks", tasks), MOST_TASKS)
    rng = generator(f"{name}/permutations", seed)
    pixels = int(np.prod(data.train_x.shape[1:]))
    orders = [torch.from_numpy(rng.permutation(pixels)) for _ in range(tasks)]

    def permute(i: int) -> Callable[[Tensor], Tensor]:
        return lambda x: x.flatten(1)[:, orders[i]].view(x.shape)

    return _changed(name, seed, data, train_size, [permute(i) for i in range(tasks)])


def rotated(
    name: str,
    seed: int,
    data_dir: DataDir,
    *,
    tasks: int | None = None,
    train_size: int | None = None,
    angles: Sequence[float] = ANGLES,
) -> LazyStream:
    """All ten classes in every task; the pictures of a task are turned by an angle, in degrees."""
    turns = [plain(angle) for angle in angles] if isinstance(angles, list | tuple | np.ndarray) else []
    if not turns or not all(map(is_number, turns)):
        raise SettingError(f"angles={shown(angles)}; expected a list of degrees, one a task")
    tasks = _at_most(len(turns) if tasks is None else check_count("tasks", tasks), len(turns))

    def turn(angle: float) -> Callable[[Tensor], Tensor]:
        return lambda x: rotate(x, angle)

    return _changed(name, seed, _pictures(name, data_dir), train_size, [turn(a) for a in turns[:tasks]])


def _at_most(tasks: int, most: int) -> int:
    if tasks > most:
        raise SettingError(f"tasks={tasks}; expected at most {most:,}")
    return tasks


def _changed(
    name: str,
    seed: int,
    data: Labelled,
    train_size: int | None,
    changes: Sequence[Callable[[Tensor], Tensor]],
) -> LazyStream:
    """All classes in every task, with its pictures (n, channels, height, width) changed in the task's way."""
    same = of_class_lists(name, seed, data, [list(range(len(data.names)))] * len(changes), train_size)

    def make(i: int) -> Task:
        task = same[i]
        changed: dict[str, Any] = {part: Split(changes[i](s.x), s.y) for part, s in task.splits()}
        return replace(task, **changed)

    return MadeStream(name, seed, len(changes), make)


def rotate(x: Tensor, angle: float) -> Tensor:
    """Square pictures (n, channels, height, width) of bytes, turned counter-clockwise about their middle.

    Between pixels it is interpolated (bilinear); what comes in from outside is 0.
    """
    if angle % 360 == 0:
        return x
    turn = np.deg2rad(angle)
    matrix = torch.tensor([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0]])
    turned = torch.empty_like(x)
    for rows in torch.arange(len(x)).split(4096):  # as floats they take much memory
        pictures = x[rows].double()
        grid = torch.nn.functional.affine_grid(
            matrix.expand(len(rows), 2, 3), list(pictures.shape), align_corners=False
        )
        pictures = torch.nn.functional.grid_sample(pictures, grid, align_corners=False)
        turned[rows] = pictures.round().clamp(0, 255).to(torch.uint8)
    return turned
