"""What is measured: the rows of docs/performance.md, and their data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

import piaget
from piaget.data.tasks import Split, Task

PAST, BATCH = 10, 32


@dataclass(frozen=True)
class Case:
    """One row: what is trained, and how much of it. `wanted`: the ratios to reach, alone and in a cohort."""

    name: str
    wanted: tuple[float, float | None]
    structure: str = "soft-ordering"
    adaptation: str = "er"
    algorithm: str = "compositional"
    stage: str = "assimilation"
    shape: tuple[int, ...] = (784,)
    classes: int = 2
    batches: int = 40
    kind: str = "dense"  # of components
    past: int = 5  # tasks that were learned before


CASES = [
    Case("soft ordering, assimilation", (8, 15)),
    Case("soft ordering, component dropout", (8, 15), algorithm="dynamic"),
    Case("soft gating, assimilation", (6, 12), structure="soft-gating"),
    Case("adaptation, NFT", (5, 8), stage="adaptation", adaptation="nft", past=PAST),
    Case("adaptation, ER", (5, 8), stage="adaptation", past=PAST),
    Case("adaptation, EWC", (5, 8), stage="adaptation", adaptation="ewc", past=PAST),
    Case("joint training, NFT", (5, 8), stage="joint", algorithm="joint", adaptation="nft", past=PAST),
    Case("joint training, ER", (5, 8), stage="joint", algorithm="joint", past=PAST),
    Case("joint training, EWC", (5, 8), stage="joint", algorithm="joint", adaptation="ewc", past=PAST),
    Case("no components, ER", (4, 8), stage="joint", algorithm="no-components", past=PAST),
    Case("linear, full batch", (10, 50), structure="linear", shape=(27,), kind="linear", batches=4, past=8),
    Case("conv soft ordering, CIFAR-100", (5, None), shape=(3, 32, 32), classes=5, batches=6, kind="cifar"),
    Case(
        "conv soft ordering, Omniglot", (5, None), shape=(1, 105, 105), classes=20, batches=3, kind="omniglot"
    ),
    Case(
        "conv soft gating, CIFAR-100",
        (2.5, None),
        "soft-gating",
        shape=(3, 32, 32),
        classes=5,
        batches=6,
        kind="cifar",
    ),
]
COMPONENTS = {
    "dense": piaget.Dense(),
    "linear": piaget.Linear(),
    "cifar": piaget.Conv(50, 1),
    "omniglot": piaget.Conv(53, 0),
}


def data(case: Case, number: int, seed: int, samples: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(1000 * seed + number)
    x = torch.rand(samples, *case.shape, generator=draw)
    return x, torch.arange(samples) % case.classes


def task(case: Case, number: int, seed: int, samples: int) -> piaget.Task:
    x, y = data(case, number, seed, samples)
    small = Split(x[: 2 * case.classes], y[: 2 * case.classes])
    kind: Literal["binary", "multiclass"] = "binary" if case.classes == 2 else "multiclass"
    return Task(f"task {number}", kind, Split(x, y), small, small, case.classes)
