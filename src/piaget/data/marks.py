"""Rows that were learned are known again by their marks, hashes of 64 bits: they themselves may be gone."""

from __future__ import annotations

import bisect
import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

DISTINCT = 0.9  # of rows that tell themselves apart: a share, at least, of different ones
PART = 0.5  # of rows learned before that come again: with more, it is no coincidence
FEW = 30  # rows: so many or more say themselves whether rows are often alike


def marks_of(x: Tensor, y: Tensor) -> Tensor:
    """(n,) int64, of rows x (n, inputs) with their targets y (n,)."""
    inputs, targets = x.float().contiguous().numpy(), y.double().contiguous().numpy()
    size = inputs.shape[1] * inputs.itemsize
    rows, values = inputs.tobytes(), targets.tobytes()
    found = [
        int.from_bytes(
            hashlib.blake2b(
                rows[i * size : (i + 1) * size] + values[8 * i : 8 * i + 8], digest_size=8
            ).digest(),
            "little",
            signed=True,
        )
        for i in range(len(y))
    ]
    return torch.tensor(found, dtype=torch.int64)


def is_batch(marks: Tensor, batches: Sequence[Tensor]) -> bool:
    """Are these exactly the rows that were learned once?"""
    found = marks.sort().values
    return any(torch.equal(batch.sort().values, found) for batch in batches)


def tell_apart(batches: Iterable[Tensor]) -> bool:
    """Do rows of the same batch differ, so that it is no coincidence if one is there again?"""
    listed = list(batches)
    return sum(len(batch.unique()) for batch in listed) > DISTINCT * sum(map(len, listed))


def overlap_of(new: Tensor, group: str, learned: Mapping[str, Sequence[Tensor]]) -> Overlap:
    """The marks of a group's new rows beside what was learned, {group: batches}."""
    own = learned[group]
    everything = (batch for batches in learned.values() for batch in batches)
    enough = sum(map(len, own)) >= FEW
    return Overlap(new, own, tell_apart(own) and (enough or tell_apart(everything)))


class Overlap:
    """A group's new rows beside those that were learned, batch by batch. apart: do rows differ, by all
    batches? One of few rows may have different ones by chance."""

    def __init__(self, new: Tensor, batches: Sequence[Tensor], apart: bool = True) -> None:
        self.new, self.batches = new.tolist(), [Counter(batch.tolist()) for batch in batches]
        self.there, self.apart = Counter(self.new), apart

    @property
    def contained(self) -> bool:
        """Was every new row learned before?"""
        return bool(self.new) and not self.there - sum(self.batches, Counter[int]())

    @property
    def known(self) -> bool:
        """Was every new row learned before, and is that no coincidence?"""
        return self.whole or (self.contained and self.sure)

    @property
    def sure(self) -> bool:
        """Do the rows differ that were learned, in all batches that have some of the new ones?"""
        return all(self.distinct(batch) for batch in self.batches if batch & self.there)

    @property
    def whole(self) -> bool:
        """Are the new rows just those of a batch, or of several that came one after another? (A first table
        is learned in two: rows that were held out come last.)"""
        ends = [0, *itertools.accumulate(batch.total() for batch in self.batches)]
        for first, begin in enumerate(ends[:-1]):
            last = bisect.bisect_left(ends, begin + len(self.new))
            there = sum(self.batches[first:last], Counter[int]())
            if there == self.there:
                return True
        return False

    @property
    def grown(self) -> bool:
        """Is every row that was learned among the new ones?"""
        return not sum(self.batches, Counter[int]()) - self.there

    def distinct(self, batch: Counter[int]) -> bool:
        """Do its rows differ, so that it is no coincidence if they are there again?"""
        return len(batch) > DISTINCT * batch.total() and (self.apart or batch.total() >= FEW)

    def changed(self) -> tuple[int, int] | None:
        """If a large part of what was learned is there again, or of a batch of it, and a batch is there in
        part only: (rows there, rows in all)."""
        known = sum(self.batches, Counter[int]())
        most = (known & self.there).total() > PART * known.total()
        for batch in self.batches:
            again = (batch & self.there).total()
            part = again > PART * batch.total() or (most and again > 0)
            if self.distinct(batch) and part and again < batch.total():
                return (known & self.there).total(), known.total()
        return None

    def alike(self, unseen: Tensor) -> int:
        """How many of the rows that are taken for new equal rows that were learned."""
        known = sum(self.batches, Counter[int]())
        return sum(known[mark] > 0 for mark, fresh in zip(self.new, unseen.tolist(), strict=True) if fresh)

    def unseen(self, all_grown: bool) -> Tensor:
        """(n,) bool: which rows are new. all_grown: the whole table holds what was learned of its groups.
        Equal rows are known ones where rows tell themselves apart, and where all of them are there."""
        left, taken = Counter(self.there), Counter[int]()
        for batch in self.batches:
            if self.distinct(batch) or (all_grown and not batch - left):
                left, taken = left - batch, taken + (batch & left)
        fresh = []
        for mark in self.new:
            fresh.append(taken[mark] == 0)
            taken[mark] -= not fresh[-1]
        return torch.tensor(fresh, dtype=torch.bool)
