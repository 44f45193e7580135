"""A table that comes later, for a run whose learner is deep: networks of known groups go on learning, with
all rows of their group, and new groups are learned as new tasks.

A network does not keep its rows, so the run's folder does: those of the first table are taken from it when
the first later one comes. Each group is kept as soon as it is learned; after a crash, the same command again
does what is left.
"""

from __future__ import annotations

import hashlib
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors, save as save_tensors
from torch import Tensor

from piaget.data.encoding import Encoding
from piaget.data.marks import Overlap, marks_of
from piaget.data.plain import Label
from piaget.data.tasks import Split, Task, split_rows
from piaget.data.typed_data import read_fields
from piaget.errors import DataError, DataNote, Diverged, LoadError, TaskError
from piaget.files import write_atomically
from piaget.knowledge.common import Rows, labels_of
from piaget.knowledge.state import TaskRecord
from piaget.lab.configuration import learns_held_out, split_column
from piaget.lab.folder import RunFolder
from piaget.lab.making import make_stream
from piaget.lab.parts import NOTHING
from piaget.lab.unchanged import check_data
from piaget.learner import Learner
from piaget.method.schedule import ADAPTATION
from piaget.scoring.rows import EVALUATION, FURTHER, SCORES, Row
from piaget.streams.table_notes import note_alike
from piaget.streams.table_rows import rows_by_group
from piaget.streams.table_stream import TableStream
from piaget.table_copies import new_rows, note_renamed
from piaget.table_life import Arrival, arrival_rows

VALIDATION = 0.25  # of a group's new rows: they tell when to stop, and whether a new component is kept
FILES = "learned-rows-*.safetensors"
# What a run's description says of that file.
_DESCRIPTION: dict[str, Any] = {
    "file": str,
    "sha256": str,
    "labels": tuple[str | int | float | bool, ...],
    "groups": list[str],
}

Say = Callable[[str], None]  # what is going on, in words
# What arrived, as rows of the run, too, and notes on it.
Commit = Callable[[Sequence[Arrival], Sequence[Row], dict[str, Any]], None]


class GroupRows(NamedTuple):
    """The rows that a group was learned from."""

    x: Tensor  # (n, inputs)
    y: Tensor  # (n,): numbers of the book's labels, or values
    validation: Tensor  # (n,) bool: a row that was never trained on stays one
    batch: Tensor  # (n,): with which table it came, 0 being the first of the group

    def batches(self) -> tuple[Tensor, ...]:
        """Marks of the rows, table by table."""
        marks = marks_of(self.x, self.y)
        return tuple(marks[self.batch == i] for i in self.batch.unique())

    def and_rows(self, more: GroupRows) -> GroupRows:
        """Both, these first."""
        return GroupRows(*map(torch.cat, zip(self, more, strict=True)))


@dataclass(frozen=True)
class Book:
    """All rows that were learned, by group. labels: of all classes; none of a regression."""

    labels: tuple[Label, ...]
    groups: dict[str, GroupRows]

    @property
    def batches(self) -> dict[str, tuple[Tensor, ...]]:
        """Marks of all rows, by group and table."""
        return {group: rows.batches() for group, rows in self.groups.items()}

    def with_rows(self, group: str, new: Rows, seed: int) -> Book:
        """And these of a group."""
        x, y = new[0].float(), new[1]
        old = self.groups.get(group)
        number = 0 if old is None else int(old.batch.max()) + 1
        validation = _drawn(x, y, len(self.labels), f"{seed}/{group}/{number}", old)
        more = GroupRows(x, y, validation, torch.full((len(y),), number))
        return replace(self, groups=self.groups | {group: more if old is None else old.and_rows(more)})

    def without(self, groups: Sequence[str]) -> Book:
        """The book without some groups."""
        return replace(self, groups={name: rows for name, rows in self.groups.items() if name not in groups})

    def task(self, group: str, encoding: Encoding, labels: tuple[Label, ...], stream: str) -> Task:
        """A group's rows as a task with these classes; TaskError: they cannot be one."""
        x, y, validation, _ = self.groups[group]
        if self.labels:
            y = self.numbered(y, labels, group)
        kind: Any = encoding.kind if len(labels) != 2 else "binary"
        parts = [Split(x[mask], y[mask]) for mask in (~validation, validation)]
        return Task(
            group, kind, parts[0], parts[1] if len(parts[1]) else None, classes=len(labels),
            labels=labels or None, stream=stream, scaling=encoding.scaling, encoding=encoding,
        )  # fmt: skip

    def numbered(self, y: Tensor, labels: Sequence[Label], group: str) -> Tensor:
        """Numbers of the book's labels as numbers of a task's own."""
        own = [self.labels[i] for i in y.tolist()]
        if odd := [label for label in own if label not in labels]:
            known = ", ".join(map(repr, labels))
            raise TaskError(
                f"class {odd[0]!r} is new in this group, whose network answers with {known}; forget "
                f"{group!r}, and learn all its rows anew"
            )
        return torch.tensor([labels.index(label) for label in own])

    def classes(self, group: str) -> tuple[Label, ...]:
        """Those that its rows have, in the order of all labels."""
        there = set(self.groups[group].y.tolist()) if self.labels else set()
        return tuple(label for i, label in enumerate(self.labels) if i in there)


# --- the book of a run --------------------------------------------------------------------------------------


def read_book(run: RunFolder, learner: Learner) -> Book:
    """What is kept in the folder; before the first later table, the rows of the table that the run is of."""
    described = run.description.get("learned_rows")
    if described is None:
        return _first_book(run, learner)
    try:
        fields = read_fields(_DESCRIPTION, described, "learned_rows")
    except ValueError as error:
        raise LoadError(f"{run.file} does not say where the rows are that were learned: {error}") from error
    path = run.path / Path(fields["file"]).name
    if not path.is_file() or hashlib.sha256(raw := path.read_bytes()).hexdigest() != fields["sha256"]:
        raise LoadError(f"{path} is not the file that was written there, or it is gone")
    try:
        tensors = load_tensors(raw)
        groups = {
            group: GroupRows(*(tensors[f"{i}/{name}"] for name in GroupRows._fields))
            for i, group in enumerate(fields["groups"])
        }
    except (SafetensorError, KeyError) as error:
        raise LoadError(f"{path} is damaged: {error}") from error
    for group in learner.tasks:
        if group not in groups or not _fits(groups[group], learner.record(group), fields["labels"]):
            raise LoadError(f"{path} is damaged: it does not hold the rows that {group!r} was learned from")
    return Book(fields["labels"], groups)


def _fits(rows: GroupRows, record: TaskRecord, labels: tuple[Label, ...]) -> bool:
    """Can a group have been learned from these rows?"""
    n = len(rows.y) if rows.y.ndim else 0
    forms = [(tuple(tensor.shape), tensor.dtype) for tensor in rows]
    whole, number = torch.int64, torch.int64 if labels else torch.float64
    right = ((n, *record.input_shape), torch.float32), ((n,), number), ((n,), torch.bool), ((n,), whole)
    if n == 0 or forms != [*right] or not {*labels_of(record)} <= {*labels}:
        return False
    within = (rows.y >= 0) & (rows.y < len(labels)) if labels else torch.isfinite(rows.y)
    return bool(within.all()) and bool(torch.isfinite(rows.x).all())


def _first_book(run: RunFolder, learner: Learner) -> Book:
    """By the run's table, whose rows of known groups must be what they were; those of others may be gone."""
    configuration, table = run.configuration, run.configuration["table"]["table"]
    encoding = learner.record(learner.tasks[0]).encoding
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataNote)  # all was said when the table was read
            stream = make_stream(configuration, run.seed, None, NOTHING, encoding=encoding)
        known = [task for task in stream if task.name in learner.tasks]
        now, then = {task.name: task.fingerprint() for task in known}, run.description.get("data")
        if then is None:  # version 0.1 did not note it: all groups must be there, at least
            then = {name: now.get(name, "") for name in learner.tasks}
        check_data(run.path, then, now)
    except DataError as error:
        raise DataError(
            f"networks go on learning with all rows of their group, so that the first table is needed once "
            f"more, as it was: {table}. {error}"
        ) from error
    if not learns_held_out(configuration):
        known = [replace(task, test=None) for task in known]
    assert isinstance(stream, TableStream)
    return _book_of(known, tuple(stream.labels or ()), run.seed)


def _book_of(tasks: Sequence[Task], labels: tuple[Label, ...], seed: int) -> Book:
    """All rows of tasks. Those that they were tested with are trained on, too, or become validation rows."""
    groups = {}
    for task in tasks:
        numbers = torch.tensor([labels.index(label) for label in labels_of(task)] or [0])
        rows = None
        for name, split in task.splits():
            x, y = split.x.float(), numbers[split.y] if labels else split.y.double()
            validation = torch.full((len(y),), name == "validation")
            if name == "test":
                validation = _drawn(x, y, len(labels), f"{seed}/{task.name}/test", rows)
            part = GroupRows(x, y, validation, torch.zeros(len(y), dtype=torch.int64))
            rows = part if rows is None else rows.and_rows(part)
        assert rows is not None, "each task has training rows"
        groups[task.name] = rows
    return Book(labels, groups)


def _drawn(x: Tensor, y: Tensor, classes: int, what: str, old: GroupRows | None) -> Tensor:
    """(n,) bool: which of these rows are for validation, every class alike. what: they are, as a seed. A copy
    of an old row is for what that one is for; where rows are often alike, an equal one is another case."""
    seed = zlib.crc32(what.encode("utf-8", "surrogatepass"))
    _, rows, _ = split_rows(y, classes, (1 - VALIDATION, VALIDATION, 0.0), seed)
    drawn = torch.zeros(len(y), dtype=torch.bool).index_fill(0, rows, True)
    if old is None or not Overlap(marks := marks_of(x, y), old.batches()).sure:
        return drawn
    there = marks_of(old.x, old.y)
    trained, validated = (torch.isin(marks, there[old.validation == part]) for part in (False, True))
    return (drawn | validated) & ~trained


def write_book(place: Path, book: Book) -> dict[str, Any]:
    """Into a file of its own; what the run's description is to say of it."""
    tensors = {
        f"{i}/{name}": tensor.contiguous()
        for i, rows in enumerate(book.groups.values())
        for name, tensor in rows._asdict().items()
    }
    raw = save_tensors(tensors)
    digest = hashlib.sha256(raw).hexdigest()
    file = FILES.replace("*", digest[:16])
    write_atomically(place / file, raw)
    return {"file": file, "sha256": digest, "labels": list(book.labels), "groups": list(book.groups)}


def remove_old(run: RunFolder) -> None:
    """Files that the description does not name: they may hold what was to be forgotten."""
    named = (run.description.get("learned_rows") or {}).get("file")
    for path in run.path.glob(FILES):
        if path.name != named:
            path.unlink(missing_ok=True)


# --- a later table ------------------------------------------------------------------------------------------


def learn(
    run: RunFolder,
    learner: Learner,
    table: Path,
    *,
    again: bool,
    skip_known: bool,
    commit: Commit | None,
    say: Say,
) -> list[Arrival]:
    """Learns the rows of a table that are new, group by group; each is committed at once. commit: None, if
    it is only to be told what would be learned."""
    if not learner.tasks:
        raise TaskError("the learner has forgotten all tasks, and with them how columns are read: run anew")
    encoding = learner.record(learner.tasks[0]).encoding
    assert encoding is not None, "a run over a table"
    book = read_book(run, learner)
    columns, split = run.description.get("columns"), split_column(run.configuration)
    groups, source = rows_by_group(table, encoding, book.labels, columns, split)
    note_alike(groups, learner.tasks)
    fresh = groups
    if not again:
        learned = book.batches
        fresh = new_rows(learned, groups, source, skip_known)
        note_renamed(learned, fresh, source)
    arrivals, stream = [], table.name.split(".")[0]
    for i, (group, rows) in enumerate(groups.items()):
        seen = len(rows[1]) - len(fresh[group][1])
        known = group in learner.tasks
        if not len(fresh[group][1]):
            arrivals.append(Arrival(group, known, 0, seen))
            continue
        later = book.with_rows(group, fresh[group], run.seed)
        try:
            labels = labels_of(learner.record(group)) if known else later.classes(group)
            task = later.task(group, encoding, labels, stream)
            if not known:
                learner.check(task)
        except TaskError as error:
            why = str(error).removeprefix(f"task {group!r}: ")
            arrivals.append(Arrival(group, known, 0, seen, left_out=_few(later.groups[group]) + why))
            continue
        try:
            before = _scores(learner, task, later, len(fresh[group][1])) if known else {}
            if commit is not None:
                say(f"learning {group} ({i + 1} of {len(groups)})")
                (learner.update if known else learner.learn)(task)
        except Diverged as error:  # the learner is as it was before
            arrivals.append(Arrival(group, known, 0, seen, left_out=_told(error, group), diverged=True))
            continue
        arrivals.append(Arrival(group, known, len(fresh[group][1]), seen, before))
        if commit is None:
            continue
        book = later
        settings = learner.settings
        told = arrival_rows(arrivals[-1:], stream, settings.method, settings.seed, settings.most_epochs)
        commit(arrivals[-1:], told, {"learned_rows": write_book(run.path, book)})
    return arrivals


def _told(error: Diverged, group: str) -> str:
    """Why a group is left out."""
    if error.stage == EVALUATION:  # nothing was learned yet
        return "answers for its new rows, or their errors, are not finite: are they in the same units?"
    told = str(error).removeprefix(f"task {group!r} ")
    if error.stage == ADAPTATION.name:  # stored samples take part, of other groups
        told += "; or forget a group whose numbers were of another size"
    return told


def _few(rows: GroupRows) -> str:
    """If a group has no row for validation: how many it has, in words."""
    many = len(rows.y) != 1
    few = f"{len(rows.y)} row{'s' * many}, too few for some to be for validation: "
    return "" if bool(rows.validation.any()) else few


def _scores(learner: Learner, task: Task, book: Book, count: int) -> dict[str, float]:
    """How its new rows, the last ones, are answered as yet."""
    x, y, *_ = book.groups[task.name]
    if book.labels:
        y = book.numbered(y, labels_of(task), task.name)
    new = replace(task, test=Split(x[-count:], y[-count:]))
    scores = (*SCORES, *FURTHER)
    return {row["metric"]: row["value"] for row in learner.evaluate(new) if row["metric"] in scores}
