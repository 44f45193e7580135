"""Rows of a later table that were learned before: which ones, and what only looks like them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from piaget.data.marks import PART, Overlap, marks_of, origins, overlap_of, usual_repeats
from piaget.errors import DataError, note
from piaget.knowledge.common import Rows
from piaget.prior_learner import PriorLearner
from piaget.streams.table_notes import some

NEAR = 0.05  # spreads of a column, by which a value may differ that was rounded
NOT_FEW = 5  # rows: with fewer, it may be chance
SAMPLED = 50, 100  # groups, and rows of each, that are looked at


Learned = Mapping[str, Sequence[Tensor]]  # of each group, the marks of the rows that were learned at once


def learned_batches(learner: PriorLearner) -> Learned:
    """What a learner has learned."""
    return {group: one.batches for group, one in learner.lessons.items()}


def new_rows(
    learned: Learned, groups: dict[str, Rows], source: str, skip_known: bool = False
) -> dict[str, Rows]:
    """Those that were not learned before, of each group. learned: what was. skip_known: whatever equals a row
    that was learned is that row, also if others are missing, or rows are often alike."""
    usual = functools.cache(lambda: usual_repeats(learned))
    overlaps = {
        group: overlap_of(marks_of(*rows), learned[group], usual)
        for group, rows in groups.items()
        if group in learned
    }
    if skip_known:
        masks = {group: overlap.beyond() for group, overlap in overlaps.items()}
        return groups | {
            group: (groups[group][0][mask], groups[group][1][mask]) for group, mask in masks.items()
        }
    contained = len(overlaps) == len(groups) and all(one.contained for one in overlaps.values())
    if contained and _is_copy(list(overlaps.values())):
        return {group: (x[:0], y[:0]) for group, (x, y) in groups.items()}
    all_grown = all(one.grown for one in overlaps.values())
    fresh, alike = dict(groups), {}
    for group, overlap in overlaps.items():
        if not contained:
            _check_unchanged(group, overlap, source)
        x, y = groups[group]
        mask = overlap.unseen(all_grown)
        fresh[group] = x[mask], y[mask]
        alike[group] = overlap.alike(mask)
    _note_equal(alike, sum(len(y) for _, y in fresh.values()), source)
    return fresh


def _is_copy(overlaps: list[Overlap]) -> bool:
    """Rows that were all learned before: is that no coincidence? Not if most of them cannot be told from
    others; but whole batches that come again are, since chance would change their numbers."""
    sure = sum(len(one.new) for one in overlaps if one.sure)
    return all(one.known for one in overlaps) or sure > PART * sum(len(one.new) for one in overlaps)


def _check_unchanged(group: str, overlap: Overlap, source: str) -> None:
    """Raises an error if rows that were learned are there again in part only."""
    found = overlap.changed()
    if found is not None:
        raise DataError(
            f"{source}: of {found[1]} rows of {group!r} that were learned before, {found[0]} are there "
            "again, and the others are not: they were changed or removed. Expected all of them, or new "
            "rows only. If rows were removed, as in an export of the last weeks: skip those that are known, "
            "and learn the rest (--skip-known, skip_known=True). If rows were changed: forget the group "
            "first. Or say that all rows are to count again (--again, again=True)"
        )


def _note_equal(alike: dict[str, int], rows: int, source: str) -> None:
    """alike: how many rows of a group are taken for new, and equal to learned ones."""
    if sum(alike.values()) > rows / 2:
        note(
            f"{source}: {sum(alike.values())} of {rows} rows that are taken for new are equal to rows that "
            f"were learned before ({some([group for group, count in alike.items() if count])}): rows are "
            "often alike in this table, so that it may be chance. If they are the same cases, leave them out"
        )


# --- what only looks new ------------------------------------------------------------------------------------


def note_copies(learner: PriorLearner, fresh: dict[str, Rows], source: str) -> None:
    """Notes rows that are taken for new and may not be: known ones with other digits, known groups with other
    names."""
    there = {group: rows for group, rows in fresh.items() if len(rows[1])}
    if learner.tasks:
        _note_near({group: rows for group, rows in there.items() if group in learner.tasks}, learner, source)
        note_renamed(learned_batches(learner), there, source)


def _note_near(fresh: dict[str, Rows], learner: PriorLearner, source: str) -> None:
    """Beside rows that are kept. By chance, a new row is as near to one of them as they are to each other."""
    groups, most = SAMPLED
    names, found, needed = [], 0.0, 0.0
    for group in _some_of(list(fresh), groups):
        record = learner.known.records[group]
        if len(record.y) < 2:
            continue
        kept, new = _points(learner, record.x, record.y), _points(learner, *fresh[group])
        new, others = _some_of(new, most), _some_of(torch.arange(len(kept)), most)
        apart = torch.cdist(kept[others], kept, p=torch.inf)
        apart[torch.arange(len(others)), others] = torch.inf  # from itself
        near, chance = _near(torch.cdist(new, kept, p=torch.inf)), _near(apart)
        enough = PART * len(kept) / record.n + 2 * chance
        found, needed = found + len(new) * near, needed + len(new) * enough
        names += [group] * (near > enough)
    if found >= NOT_FEW and found > needed:
        note(
            f"{source}: rows that are taken for new are nearly equal to rows that were learned before "
            f"({some(names)}), as if the same table had been written with other digits. If they are the same "
            "cases, they count twice: leave them out, or forget these groups and learn them anew"
        )


def _some_of(listed: Any, most: int) -> Any:
    """At most so many, from beginning to end."""
    return listed[:: -(-len(listed) // most) or 1]


def _points(learner: PriorLearner, x: Tensor, y: Tensor) -> Tensor:
    """Rows with their targets, (n, inputs + 1): numbers in units of their spread, classes apart."""
    encoding = learner.encoding()
    spread = 1.0 if learner.labels or encoding is None else encoding.scaling.spread
    return torch.cat([x.double(), y.double()[:, None] / spread], 1)


def _near(distances: Tensor) -> float:
    """The share of rows with a neighbour. distances: (n, m)."""
    return float((distances.min(1).values <= NEAR).double().mean())


def note_renamed(learned: Learned, fresh: dict[str, Rows], source: str) -> None:
    """Notes new groups that have only rows of a known one, where rows differ."""
    new = {group: marks_of(*rows) for group, rows in fresh.items() if len(rows[1]) and group not in learned}
    usual = functools.cache(lambda: usual_repeats(learned))
    same = {}
    for group, origin in origins(new, learned).items():
        overlap = overlap_of(new[group], learned[origin], usual)
        if overlap.contained and overlap.sure:
            same[group] = origin
    if sum(len(new[group]) for group in same) >= NOT_FEW:
        note(
            f"{source}: new groups ({some(list(same))}) have only rows that were learned before, of "
            f"{some(list(dict.fromkeys(same.values())))}. If groups were renamed, these cases count twice: "
            "give them their old names, or forget the old ones first"
        )
