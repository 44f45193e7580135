"""Split: some samples of a task; and how samples are divided into splits."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from piaget.data.plain import Fractions, check_fractions
from piaget.errors import TaskError


@dataclass(frozen=True, eq=False)
class Split:
    """x: (n, *input shape); y: (n,), class numbers (int64) or values (float).

    Raises `TaskError` if one of them is no tensor.

    >>> len(piaget.Split(torch.zeros(5, 3), torch.zeros(5)))
    5
    """

    x: Tensor
    y: Tensor

    def __post_init__(self) -> None:
        if not isinstance(self.x, Tensor) or not isinstance(self.y, Tensor):
            found = f"{type(self.x).__name__} and {type(self.y).__name__}"
            raise TaskError(f"a split holds {found}; expected tensors (see Task.from_arrays for arrays)")

    def __len__(self) -> int:
        return len(self.x)


def split_rows(y: Tensor, classes: int, fractions: Fractions, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Row numbers of a random train / validation / test division, every class alike."""
    generator = torch.Generator().manual_seed(seed)
    groups = [torch.nonzero(y == c).flatten() for c in range(classes)] or [torch.arange(len(y))]
    parts: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
    fractions = check_fractions(fractions)
    for rows in groups:
        rows = rows[torch.randperm(len(rows), generator=generator)]
        first = round(fractions[0] * len(rows))
        second = len(rows) if fractions[2] == 0 else round((fractions[0] + fractions[1]) * len(rows))
        for part, piece in zip(parts, (rows[:first], rows[first:second], rows[second:]), strict=True):
            part.append(piece)
    return tuple(torch.cat(part) for part in parts)  # type: ignore[return-value]


def divided(name: str, data: Split, classes: int, fractions: Fractions, seed: int) -> dict[str, Split]:
    """A task's samples as its splits, by `split_rows`."""
    rows = split_rows(data.y, classes, fractions, seed)
    names = ("train", "validation", "test")
    empty = [part for part, r, share in zip(names, rows, fractions, strict=True) if share > 0 and not len(r)]
    if empty:
        raise TaskError(
            f"task {name!r}: {len(data)} samples are too few to divide by {fractions}: "
            f"nothing is left for {', '.join(empty)}"
        )
    return {
        part: Split(data.x[r], data.y[r])
        for part, r, share in zip(names, rows, fractions, strict=True)
        if share > 0
    }
