"""A table that comes later: new groups are learned, known ones get their new rows, and rows that were learned
before are not counted twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from piaget import prior
from piaget.errors import DataError, SettingError, UnknownTaskError, note
from piaget.knowledge.common import Rows
from piaget.prior_learner import PriorLearner
from piaget.scoring.rows import ARRIVAL, EXPLAINED, USUAL_SPREAD, USUALLY, Row
from piaget.streams.table_notes import note_alike
from piaget.streams.table_rows import rows_by_group
from piaget.table_copies import learned_batches, new_rows, note_copies

FAR_RANGES = 10  # how many times the range that was learned a value may lie outside it without a note


@dataclass(frozen=True)
class Arrival:
    """What a table brought of one group, and how well its rows were answered before they were learned."""

    group: str
    known: bool  # before
    rows: int  # that are new
    seen: int  # that were learned before
    before: dict[str, float] = field(default_factory=dict)  # scores
    explained: prior.Appraisal | None = None  # of a new group: how well others explain it
    left_out: str | None = None  # why its new rows cannot be learned
    diverged: bool = False  # the reason is that learning it led to numbers that are not finite

    def told(self) -> str:
        """In words."""
        again = f"; {self.seen:,} rows were learned before" if self.seen and self.rows else ""
        if self.left_out is not None:
            return f"left out: {self.left_out}"
        if not self.rows:
            return f"nothing new: its {self.seen:,} rows were learned before"
        scores = ", ".join(f"{name} {value:.3f}" for name, value in self.before.items())
        if self.known:
            return f"updated with {self.rows:,} rows{again}; these were answered with {scores}"
        if not scores:  # nobody could answer
            return f"new, {self.rows:,} rows{again}"
        fit = ""
        if self.explained is not None:
            found, usual, _ = self.explained
            fit = (
                f"; unlike other groups ({found:.2f} a row, usually {usual:.2f})"
                if is_unusual(*self.explained)
                else "; like other groups"
            )
        return f"new, {self.rows:,} rows{again}{fit}; before, others alone answered with {scores}"


def is_unusual(found: float, usual: float, spread: float) -> bool:
    """Is a group unlike the others? found: how well these explain its rows; usual, spread: the mean and the
    standard deviation of that among them."""
    return found < usual - 2 * spread


def learn_table(
    learner: PriorLearner,
    table: Any,
    *,
    again: bool = False,
    skip_known: bool = False,
    columns: Sequence[str] | None = None,
    split: str | None = None,
) -> list[Arrival]:
    """Learns all rows of a table (or its path) that are new. again: also those that were learned before.
    skip_known: all but those, whatever else is missing. columns: those of the first table, if they are
    known. split: the column that tells test rows, which are not learned."""
    if again and skip_known:
        raise SettingError("again and skip_known: expected one of them, since known rows count or do not")
    try:
        encoding = learner.encoding()
    except UnknownTaskError as error:
        raise UnknownTaskError(
            "nothing is known yet, so that it is not clear how columns are to be read: learn a first table "
            "as a stream, learner.learn_all(stream); then learn_table learns later ones, and rows that were "
            "held out"
        ) from error
    if encoding is None:
        raise DataError("the learner has learned no task from a table: it has no columns to go by")
    groups, source = rows_by_group(table, encoding, learner.labels, columns, split)
    note_alike(groups, learner.tasks)
    if not learner.labels:
        _note_far(learner, encoding.target, groups)
    fresh = groups
    if not again:
        fresh = new_rows(learned_batches(learner), groups, source, skip_known)
        note_copies(learner, fresh, source)
    new = {g: rows for g, rows in fresh.items() if len(rows[1]) and learner.tasks and g not in learner.tasks}
    explained = prior.appraise_many(learner.known, new) if new else {}
    arrivals = [
        _arrival(learner, group, fresh[group], len(rows[1]) - len(fresh[group][1]), explained.get(group))
        for group, rows in groups.items()
    ]
    learner.absorb({group: rows for group, rows in fresh.items() if len(rows[1])}, source)
    return arrivals


def _note_far(learner: PriorLearner, target: str, groups: dict[str, Rows]) -> None:
    """A regression's values that are far beyond all that were learned, as far as rows are kept."""
    kept = [record.y for record in learner.known.records.values() if len(record.y)] if learner.tasks else []
    if not kept:
        return
    low, high = min(float(y.min()) for y in kept), max(float(y.max()) for y in kept)
    reach = FAR_RANGES * (high - low)
    for group, (_, y) in groups.items():
        far = y[(y < low - reach) | (y > high + reach)]
        if reach and len(far):
            note(
                f"column {target!r} holds {float(far[0]):g} ({group!r}), and learned were {low:g} to "
                f"{high:g}: is it in the same unit? (forget the group, if not)"
            )
            return


def _arrival(
    learner: PriorLearner, group: str, rows: Rows, seen: int, explained: prior.Appraisal | None
) -> Arrival:
    x, y = rows
    known = group in learner.tasks
    if not len(y):
        return Arrival(group, known, 0, seen)
    if not learner.tasks:  # all were forgotten
        return Arrival(group, known, len(y), seen)
    scores = learner.answers(x, group).scores(y)
    return Arrival(group, known, len(y), seen, scores, explained)


def arrival_rows(arrivals: Sequence[Arrival], stream: str, method: str, seed: int, epoch: int) -> list[Row]:
    """As rows, for the record. epoch: of a task, the last one."""
    rows = []
    for one in arrivals:
        values = dict(one.before) | {"samples": float(one.rows)}
        if one.explained is not None:
            values |= dict(zip((EXPLAINED, USUALLY, USUAL_SPREAD), one.explained, strict=True))
        for metric, value in values.items() if one.rows else ():
            rows.append(
                Row(
                    stream=stream,
                    method=method,
                    seed=seed,
                    trained=one.group,
                    epoch=epoch,
                    stage=ARRIVAL,
                    evaluated=one.group,
                    split="new",
                    metric=metric,
                    component=None,
                    depth=None,
                    value=value,
                )
            )
    return rows
