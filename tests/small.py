"""Small tasks and learners for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch

import piaget
from piaget.data.tasks import Kind
from piaget.scoring.rows import Row

if TYPE_CHECKING:

    class Complete(piaget.Task):
        """A task that has all its splits."""

        validation: piaget.Split
        test: piaget.Split


def make_row(
    stream: str = "s",
    method: str = "m",
    seed: int = 0,
    trained: str = "t1",
    epoch: int = 1,
    stage: str = "joint",
    evaluated: str = "t0",
    split: str = "test",
    metric: str = "accuracy",
    component: int | None = None,
    depth: int | None = None,
    value: float = 0.0,
) -> Row:
    return Row(
        stream=stream,
        method=method,
        seed=seed,
        trained=trained,
        epoch=epoch,
        stage=stage,
        evaluated=evaluated,
        split=split,
        metric=metric,
        component=component,
        depth=depth,
        value=value,
    )


def make_task(
    name: str,
    kind: str = "multiclass",
    classes: int = 3,
    features: int | tuple[int, ...] = 6,
    n: int = 30,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> Complete:
    """A learnable task: the label is a random linear function of the input."""
    g = torch.Generator().manual_seed(seed)
    shape = (features,) if isinstance(features, int) else features
    classes = {"binary": 2, "regression": 0}.get(kind, classes)
    x = torch.randn(3 * n, *shape, generator=g, dtype=dtype)
    if len(shape) == 1:
        x[:, seed % 3] = 0  # a feature that is always zero
    w = torch.randn(x[0].numel(), max(classes, 1), generator=g, dtype=dtype)
    score = x.flatten(1) @ w
    if kind == "regression":
        y = score[:, 0] / score.std()
    else:
        y = score.argmax(1) if classes > 1 else (score[:, 0] > 0).long()
    splits = [piaget.Split(x[i::3], y[i::3]) for i in range(3)]
    for split in splits:
        if kind != "regression":
            split.y[:classes] = torch.arange(classes)  # every class is there
    train, validation, test = splits
    task = piaget.Task(name, cast(Kind, kind), train, validation, test, classes=classes)
    return cast("Complete", task)


def mixed_tasks(count: int = 6, n: int = 30) -> list[Complete]:
    """Tasks of all kinds, with different numbers of features and classes."""
    kinds = [("multiclass", 3, 6), ("binary", 2, 5), ("regression", 0, 6), ("multiclass", 4, 7)]
    return [make_task(f"task {i}", *kinds[i % len(kinds)], n=n, seed=i) for i in range(count)]


def binary_tasks(count: int = 6, n: int = 30, features: int | tuple[int, ...] = 6) -> list[Complete]:
    return [make_task(f"task {i}", "binary", 2, features, n=n, seed=i) for i in range(count)]


def image_tasks(count: int = 5, n: int = 12, side: int = 12) -> list[Complete]:
    return [make_task(f"task {i}", "multiclass", 3, (2, side, side), n=n, seed=i) for i in range(count)]


# --- what a task has, for sure --------------------------------------------------------------------------


def validation_of(task: piaget.Task) -> piaget.Split:
    assert task.validation is not None
    return task.validation


def held_out_of(task: piaget.Task) -> piaget.Split:
    assert task.test is not None
    return task.test


def labels_of(task: piaget.Task) -> tuple[Any, ...]:
    assert task.labels is not None
    return task.labels
