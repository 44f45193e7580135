"""Rows of a later table that were learned before: which ones, and what only looks like them."""

from __future__ import annotations

from piaget.data.marks import PART, Overlap, marks_of, overlap_of
from piaget.errors import DataError, note
from piaget.knowledge.common import Rows
from piaget.prior_learner import PriorLearner
from piaget.streams.table_notes import some


def new_rows(learner: PriorLearner, groups: dict[str, Rows], source: str) -> dict[str, Rows]:
    """Those that were not learned before, of each group."""
    learned = {group: one.batches for group, one in learner.lessons.items()}
    overlaps = {
        group: overlap_of(marks_of(*rows), group, learned)
        for group, rows in groups.items()
        if group in learned
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
            "rows only: forget the group first, or say that all rows are to count again (--again, "
            "again=True)"
        )


def _note_equal(alike: dict[str, int], rows: int, source: str) -> None:
    """alike: how many rows of a group are taken for new, and equal to learned ones."""
    if sum(alike.values()) > rows / 2:
        note(
            f"{source}: {sum(alike.values())} of {rows} rows that are taken for new are equal to rows that "
            f"were learned before ({some([group for group, count in alike.items() if count])}): rows are "
            "often alike in this table, so that it may be chance. If they are the same cases, leave them out"
        )
