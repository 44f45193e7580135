"""Randomness of one run, drawn outside the learning step and handed in as tensors.

Dropout needs one random bit a unit: the bits are drawn as bytes (packed eight to one) for many steps, and
unpacked for a few. A run draws only for its own components and batches, so it gets the same bits alone, in
a cohort, and after a resume.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from piaget.method.components import Components, Shape
from piaget.method.trees import resize

RANDOM_BLOCK = 2**16  # bytes of bits whose random numbers are drawn at a time


def packed_bytes(shapes: Sequence[Shape]) -> int:
    """Bytes for the dropout bits of one component and one sample, over all depths."""
    return math.ceil(sum(math.prod(shape) for shape in shapes) / 8)


def draw_bits(generator: torch.Generator, shape: Shape, dropout: float) -> Tensor:
    """Packed bits (*shape, uint8), each 1 ("keep") with probability 1 - dropout."""
    if dropout == 0.5:
        words = torch.randint(-(2**63), 2**63 - 1, (math.ceil(math.prod(shape) / 8),), generator=generator)
        return words.view(torch.uint8)[: math.prod(shape)].view(shape)
    bits = torch.empty(math.prod(shape), dtype=torch.uint8)
    for some in bits.split(RANDOM_BLOCK):  # a number takes 32 times the room of its bit
        some.copy_(_pack(torch.rand(len(some), 8, generator=generator) >= dropout))
    return bits.view(shape)


def _pack(bits: Tensor) -> Tensor:
    """(..., 8) bool -> (...) uint8"""
    return (bits.to(torch.uint8) << torch.arange(8, dtype=torch.uint8)).sum(-1, dtype=torch.uint8)


def of_chosen(packed: Tensor, chosen: Tensor, shapes: Sequence[Shape]) -> Tensor:
    """Packed bits (..., k, bytes) -> those of each depth's chosen component (depth,): (..., 1, bytes)."""
    sizes = torch.tensor([math.prod(shape) for shape in shapes])
    whose = resize(chosen.repeat_interleave(sizes), 0, 8 * packed.shape[-1])  # of each bit
    masks = _pack((whose == torch.arange(packed.shape[-2])[:, None]).unflatten(-1, (-1, 8)))  # (k, bytes)
    masked = (packed & masks).unbind(-2)  # each bit is of one component, and 0 in all others
    return functools.reduce(torch.bitwise_or, masked).unsqueeze(-2)


@functools.cache
def _table(device: torch.device) -> Tensor:
    """(256,) int64: each byte's eight bits as eight bytes, 0 or 1."""
    bits = (torch.arange(256)[:, None] >> torch.arange(8)) & 1
    return bits.to(torch.uint8).view(torch.int64)[:, 0].to(device)


def unpack(packed: Tensor, shapes: Sequence[Shape], kind: Components, dtype: torch.dtype) -> list[Tensor]:
    """Packed bits (..., k, bytes) -> per depth the dropout multipliers (..., k, *shape).

    Those of a depth lie together in memory, in the order in which outputs do: else a compiled step would
    have to divide, to find the multiplier of each output.
    """
    found, start = [], 0
    for shape in shapes:
        end = start + math.prod(shape)
        some = packed[..., start // 8 : math.ceil(end / 8)]
        # One look-up a byte, instead of shifting and masking.
        keep = _table(packed.device).index_select(0, some.int().flatten()).view(torch.uint8)
        keep = keep.view(*some.shape[:-1], -1).narrow(-1, start % 8, end - start).contiguous()
        keep = keep.to(dtype).div_(1 - kind.dropout)  # what is kept makes up for what is dropped
        order = kind.in_memory(torch.empty(shape, device="meta")).shape
        found.append(kind.from_memory(keep.unflatten(-1, order)) if shape else keep[..., 0])
        start = end
    return found
