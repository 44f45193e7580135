"""The batches of one epoch of one run: shuffles and noise, from the run's own generator."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from piaget.engine.noise import draw_bits
from piaget.method.trees import Tree, resize, rounded

NOISE_BLOCK = 2**25  # bytes of dropout bits drawn at a time


@dataclass(frozen=True, eq=False)
class PartPlan:
    """One epoch over one part: S batches of B rows, each used once a pass (P)."""

    index: Tensor  # (S, B)
    weight: Tensor  # (S, B)
    touched: Tensor  # (S, P, k): the components that some sample of the batch may use
    own: Tensor  # (S,): does the batch hold a sample of the current task?
    noise: Iterator[Tensor] | None  # S * P packed dropout bits (B, slots, bytes); None without dropout


def draw_plan(
    generator: torch.Generator,
    *,
    bank: Tree,
    visible: Tensor,
    candidate: Tensor,
    batch: int | None,
    k: int,
    passes: tuple[bool, ...],
    dropout: float,
    noise_shape: tuple[int, int],
) -> PartPlan:
    """One epoch over the rows of `bank`.

    visible: (slots,) or, with replay, (1 + T, slots); candidate: (slots,); a run has only the
    first k slots. noise_shape: (slots, bytes) of the dropout bits of one sample.
    """
    n = len(bank["column"])
    size = batch or rounded(n, 2)
    steps = math.ceil(n / size)
    # All samples in one batch need no shuffling.
    order = torch.arange(n) if batch is None else torch.randperm(n, generator=generator)
    index = resize(order, 0, steps * size).view(steps, size)
    weight = (torch.arange(steps * size) < n).view(steps, size)
    seen = visible[..., :k].cpu()
    own = torch.ones(steps, dtype=torch.bool)
    if "task" in bank:
        whose = bank["task"].cpu()[index]  # (S, B)
        seen = (seen[whose] & weight[:, :, None]).any(1)  # (S, k)
        own = ((whose == 0) & weight).any(1)
    hidden = torch.tensor(passes)[:, None] & candidate[:k].cpu()  # (P, k)
    touched = seen.expand(steps, k)[:, None] & ~hidden
    noise = _draw_noise(generator, steps * len(passes), (size, *noise_shape), dropout) if dropout else None
    return PartPlan(index, weight, touched, own, noise)


def _draw_noise(
    generator: torch.Generator, steps: int, shape: tuple[int, int, int], dropout: float
) -> Iterator[Tensor]:
    """Packed bits for each step, a block of steps at a time."""
    block = max(1, NOISE_BLOCK // math.prod(shape))
    for start in range(0, steps, block):
        yield from draw_bits(generator, (min(block, steps - start), *shape), dropout)
