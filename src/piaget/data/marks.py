"""Rows that were learned are known again by their marks, hashes of 64 bits: they themselves may be gone."""

from __future__ import annotations

import bisect
import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

CHANCE = 0.2  # of a row being there again by coincidence: with less, rows tell themselves apart
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


def repeats(batches: Sequence[Tensor]) -> float:
    """How probably two rows of the same batch are equal, by all batches."""
    sizes = [len(batch) for batch in batches]
    if not sum(sizes):
        return 0.0
    batch, marks = np.repeat(np.arange(len(sizes)), sizes), torch.cat(list(batches)).numpy()
    order = np.lexsort((marks, batch))
    other = (np.diff(marks[order]) != 0) | (np.diff(batch[order]) != 0)
    ends = np.flatnonzero(np.concatenate([other, [True]])) + 1
    return _chance(np.diff(ends, prepend=0).tolist(), sizes)


def usual_repeats(learned: Mapping[str, Sequence[Tensor]]) -> float:
    """How probably two rows that were learned of a group at once are equal, by the batches of all groups."""
    return repeats([batch for batches in learned.values() for batch in batches])


def _chance(counts: Iterable[int], sizes: Iterable[int]) -> float:
    """The share of pairs that are equal. counts: of rows that are equal; sizes: of batches."""
    equal, pairs = (sum(n * (n - 1) for n in numbers) for numbers in (counts, sizes))
    return equal / max(pairs, 1)


def overlap_of(new: Tensor, own: Sequence[Tensor], usual: Callable[[], float]) -> Overlap:
    """The marks of a group's new rows beside its own batches. usual: how probably two rows of a group are
    equal, by all groups; asked for if the group has few rows itself."""
    few = sum(map(len, own)) < FEW
    return Overlap(new, own, max(repeats(own), usual() if few else 0.0))


def origins(new: Mapping[str, Tensor], learned: Mapping[str, Sequence[Tensor]]) -> dict[str, str]:
    """For new groups that have rows of known ones: the one of which there are most. new: marks."""
    names, sizes = list(learned), [sum(map(len, batches)) for batches in learned.values()]
    if not sum(sizes):
        return {}
    marks, order = torch.cat([batch for batches in learned.values() for batch in batches]).sort()
    owner = torch.arange(len(names)).repeat_interleave(torch.tensor(sizes))[order]
    found = {}
    for group, rows in new.items():
        places = torch.searchsorted(marks, rows).clamp(max=len(marks) - 1)
        there = places[marks[places] == rows]
        if len(there):
            found[group] = names[int(owner[there].mode().values)]
    return found


class Overlap:
    """A group's new rows beside those that were learned, batch by batch. usual: how probably two rows are
    equal, by all batches: of a batch of few rows, all may differ by chance."""

    def __init__(self, new: Tensor, batches: Sequence[Tensor], usual: float = 0.0) -> None:
        self.new, self.batches = new.tolist(), [Counter(batch.tolist()) for batch in batches]
        self.there, self.usual = Counter(self.new), usual

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
        """Do rows differ, in all batches that have some of the new ones?"""
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

    def distinct(self, batch: Counter[int], rows: int | None = None) -> bool:
        """Is it no coincidence if a row of the batch is there again? rows: among which one may be equal to
        it (default: all that were learned)."""
        counts = itertools.chain(batch.values(), self.there.values())
        equal = _chance(counts, (batch.total(), self.there.total()))
        if batch.total() < FEW:
            equal = max(equal, self.usual)
        among = sum(map(Counter.total, self.batches)) if rows is None else rows
        return equal * max(among, FEW) < CHANCE

    def changed(self) -> tuple[int, int] | None:
        """If a large part of what was learned is there again, or of a batch of it, and a batch is there in
        part only: (rows there, rows in all)."""
        known = sum(self.batches, Counter[int]())
        most = (known & self.there).total() > PART * known.total()
        for batch in self.batches:
            again = (batch & self.there).total()
            part = again > PART * batch.total() or (most and again > 0)
            if part and again < batch.total() and self.distinct(batch, len(self.new)):
                return (known & self.there).total(), known.total()
        return None

    def alike(self, unseen: Tensor) -> int:
        """How many of the rows that are taken for new equal rows that were learned."""
        known = sum(self.batches, Counter[int]())
        return sum(known[mark] > 0 for mark, fresh in zip(self.new, unseen.tolist(), strict=True) if fresh)

    def beyond(self) -> Tensor:
        """(n,) bool: which rows are new if every one that equals a learned row is that one."""
        return self._without(sum(self.batches, Counter[int]()) & self.there)

    def unseen(self, all_grown: bool) -> Tensor:
        """(n,) bool: which rows are new. all_grown: the whole table holds what was learned of its groups.
        Equal rows are known ones where rows tell themselves apart, and where all of them are there."""
        left, taken = Counter(self.there), Counter[int]()
        for batch in self.batches:
            if self.distinct(batch) or (all_grown and not batch - left):
                left, taken = left - batch, taken + (batch & left)
        return self._without(taken)

    def _without(self, taken: Counter[int]) -> Tensor:
        fresh = []
        for mark in self.new:
            fresh.append(taken[mark] == 0)
            taken[mark] -= not fresh[-1]
        return torch.tensor(fresh, dtype=torch.bool)
