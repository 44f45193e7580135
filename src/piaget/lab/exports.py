"""Scores of runs in TensorBoard and MLflow.

Training knows nothing of them: an exporter reads what runs have written (rows.csv, which only grows), also
while they write. Each run folder keeps, in export-tensorboard.json or export-mlflow.json, how far it was sent
where: whoever exports it again sends only what is new.
"""

from __future__ import annotations

import csv
import io
import os
import re
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import filelock

from piaget.errors import LoadError, SettingError
from piaget.files import read_json, write_json
from piaget.lab.folder import ACTIVE, DONE, RunFolder, no_runs, runs_below
from piaget.lab.locks import at_work
from piaget.lab.sinks import BATCH, Exported, Point, Sink, clean, modified
from piaget.scoring.rows import downgrade, taken_for

T = TypeVar("T")
COLUMNS = {"trained", "epoch", "evaluated", "split", "metric", "value"}  # those that are needed here


@dataclass
class _Note:
    """How far a run was sent to a target."""

    place: str
    size: int = 0  # so many bytes of rows
    trained: str = ""  # the last task,
    offset: int = 0  # the step at which it began
    step: int = 0  # and the last step
    sending: float | None = None  # the time given to what is on its way; None: all has arrived
    status: str | None = None


class Exporter:
    """Sends the rows of all runs in folders and below them. Asking it again and again costs little."""

    def __init__(self, roots: Path | Sequence[Path], sink: Sink) -> None:
        self.roots = [root.resolve() for root in ([roots] if isinstance(roots, Path) else roots)]
        self.sink = sink
        self.statuses: dict[Path, str] = {}  # of all runs that can be read, at the last update
        self.damaged: dict[Path, str] = {}  # what is wrong with the others
        self.at_work = False  # was anything going on then?
        self._versions: dict[Path, tuple[int, int]] = {}  # of run.json
        self._runs: dict[Path, RunFolder] = {}
        self._owners: dict[str, Path] = {}  # of ids
        self._seen: dict[Path, tuple[int, str]] = {}  # what there was to send: the size, the status

    def update(self) -> int:
        """Sends what is new: so many rows."""
        folders = {folder: root for root in self.roots for folder in _run_folders(root)}
        # Looked at before the rows: what has ended by then has written all of them. A sweep holds a lock
        # above its runs, also while none of them is running.
        above = {p for run, root in folders.items() for p in run.parents if p.is_relative_to(root)}
        sweeping = any(at_work(folder) for folder in above)
        self.statuses = dict(self._each(folders, self._status))
        self.at_work = sweeping or any(status in ACTIVE for status in self.statuses.values())
        readable = [folder for folder in folders if folder in self.statuses]
        return sum(sent for _, sent in self._each(readable, lambda one: self._update(one, folders[one])))

    def _each(self, folders: Iterable[Path], work: Callable[[Path], T]) -> Iterator[tuple[Path, T]]:
        """What comes of work on each run; one that is damaged does not keep the others."""
        for folder in folders:
            try:
                yield folder, work(folder)
            except (LoadError, SettingError) as error:  # the second: there is another run where it would go
                self.damaged[folder] = str(error)
            else:
                self.damaged.pop(folder, None)

    def close(self) -> None:
        """Nothing more will be sent."""
        self.sink.close()

    def _status(self, folder: Path) -> str:
        status = self._describe(folder)
        if status not in ACTIVE:
            return status
        if self.statuses.get(folder) == "interrupted" or not at_work(folder):
            # It may have ended between the two looks.
            return "interrupted" if self._describe(folder) in ACTIVE else self._describe(folder)
        return status

    def _describe(self, folder: Path) -> str:
        """Reads run.json if it has changed; its status."""
        try:
            file = (folder / "run.json").stat()
        except OSError as error:
            raise LoadError(f"{folder / 'run.json'} cannot be read: {error}") from error
        version = file.st_mtime_ns, file.st_ino  # two versions may be of the same moment
        if self._versions.get(folder) != version:
            run = RunFolder(folder)
            _ = run.description  # read now, or else an error
            self._runs[folder], self._versions[folder] = run, version
            self.statuses.pop(folder, None)
        return str(self._runs[folder].description["status"])

    def _update(self, folder: Path, root: Path) -> int:
        rows, status = folder / "rows.csv", self.statuses[folder]
        there = rows.stat().st_size if rows.is_file() else 0, status
        if self._seen.get(folder) == there:
            return 0
        with filelock.FileLock(folder / f".export-{self.sink.name}.lock"):  # of two exporters, one at a time
            kept = _Kept(folder / f"export-{self.sink.name}.json", self.sink.target)
            if self._owners.setdefault(kept.id, folder) != folder:
                kept.renew()  # a copy of another run, with its note
            description = self._runs[folder].description
            run = Exported(folder, self._name(folder, root), kept.id, description, status)
            sent = self._send(run, kept)
        self._seen[folder] = there
        return sent

    def _name(self, folder: Path, root: Path) -> str:
        base = root if len(self.roots) == 1 else Path(os.path.commonpath(self.roots))
        return folder.name if folder == base else folder.relative_to(base).as_posix()

    def _send(self, run: Exported, kept: _Kept) -> int:
        rows = run.folder / "rows.csv"
        place, still_there = self.sink.begin(run, kept.note.place if kept.note else None)
        note = kept.note if kept.note and still_there else _Note(place)
        # A second attempt has the time of the first: so MLflow knows a number that it has.
        again, when = note.sending is not None, note.sending or modified(rows)
        count, waiting = 0, deque(_moments(self._runs[run.folder], note.size, run.status == DONE))
        if waiting and not again:
            note.sending = when
            kept.keep(note)
        while waiting:
            points: list[Point] = []
            while waiting and len(points) < BATCH:
                moment, end = waiting.popleft()
                points += _points(moment, note, self.sink.odd)
                note.size, count = end, count + len(moment)
            self.sink.send(place, points, when, again)
            again = False
            note.sending = when if waiting else None
            kept.keep(note)
        if note.status != run.status:
            self.sink.show(run, place)
            note.status = run.status
            kept.keep(note)
        return count


def _run_folders(root: Path) -> list[Path]:
    folders = [run.path for run in runs_below(root)]
    if not folders:
        raise no_runs(root)
    return folders


class _Kept:
    """The file in a run folder that keeps how far it was sent; `note` is about one target."""

    def __init__(self, path: Path, target: str) -> None:
        self.path, self.target = path, target
        data: dict[str, Any] = {"run": uuid.uuid4().hex, "targets": {}}
        try:
            if path.is_file():
                data = read_json(path)
            self.id, self.targets = str(data["run"]), dict(data["targets"])
            self.note = _Note(**self.targets[target]) if target in self.targets else None
        except (LoadError, ValueError, KeyError, TypeError) as error:
            raise LoadError(
                f"{path} is damaged ({error}); without this file, everything is sent again: to another "
                "place, or to this one, if what was sent there is removed"
            ) from error
        if not path.is_file():
            self._write()  # the run is known by this id before anything is sent

    def renew(self) -> None:
        """Nothing of it was sent yet."""
        self.id, self.targets, self.note = uuid.uuid4().hex, {}, None
        self._write()

    def keep(self, note: _Note) -> None:
        self.targets[self.target] = asdict(note)
        self._write()

    def _write(self) -> None:
        write_json(self.path, {"run": self.id, "targets": self.targets})


# --- rows as points -----------------------------------------------------------------------------------


class _Score(NamedTuple):
    trained: str
    epoch: int
    evaluated: str
    split: str
    metric: str
    value: float


def _moments(run: RunFolder, start: int, whole: bool) -> Iterator[tuple[list[_Score], int]]:
    """New rows, those of one epoch together, and where they end.

    An epoch is complete with the number of components, or if another follows, or if the run is `whole`.
    """
    rows: list[_Score] = []
    end = start
    for row, position in _new_rows(run, start):
        if rows and (row.trained, row.epoch) != (rows[-1].trained, rows[-1].epoch):
            yield rows, end
            rows = []
        rows.append(row)
        end = position
        if not row.evaluated:
            yield rows, end
            rows = []
    if rows and whole:
        yield rows, end


def _new_rows(run: RunFolder, start: int) -> Iterator[tuple[_Score, int]]:
    """Rows behind byte `start`, and where each ends."""
    path = run.rows_file
    if not path.is_file():
        return
    text = run.row_text()
    first = text.find(b"\n") + 1
    if not first or start > len(text):
        return  # what a crash left was cut off; it is being written again
    if start > first and text[start - 1 : start] != b"\n":
        raise LoadError(f"{path} was changed after its rows were sent: they only ever grow")
    names = text[: first - 1].decode(errors="replace").split(",")
    if not set(names) >= COLUMNS:
        raise LoadError(f"{path} has the columns {', '.join(names)}; expected {', '.join(sorted(COLUMNS))}")
    begin = max(start, first)
    for line, end in _lines(text[begin:]):
        yield _parse(path, names, line), begin + end


def _lines(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Complete lines, and where they end. A name in quotes may have line breaks."""
    start = last = quotes = 0
    while end := data.find(b"\n", last) + 1:
        quotes += data.count(b'"', last, end)
        last = end
        if quotes % 2 == 0:
            yield data[start:end], end
            start = end


def _parse(path: Path, names: Sequence[str], line: bytes) -> _Score:
    try:
        (values,) = csv.reader(io.StringIO(line.decode(), newline=""))
        row: Any = dict(zip(names, values, strict=True))
        metric = downgrade(row)["metric"] if "component" in row else row["metric"]  # with its component
        epoch, value = int(row["epoch"]), float(row["value"])
        return _Score(row["trained"], epoch, row["evaluated"], row["split"], metric, value)
    except (ValueError, csv.Error) as error:
        raise LoadError(f"{path}: the line {line!r} is no row: {error}") from error


def _points(rows: Sequence[_Score], note: _Note, odd: re.Pattern[str]) -> list[Point]:
    """All numbers of one epoch, and their means over tasks. Steps are epochs of the whole stream. What inputs
    are taken for is left out: it is of one moment, and hundreds of tasks have tens of thousands of pairs."""
    if rows[0].trained != note.trained:
        note.trained, note.offset = rows[0].trained, note.step
    note.step = note.offset + rows[0].epoch
    points, values = [], dict[str, list[float]]()
    for row in rows:
        if taken_for(row.metric) is not None:
            continue
        kind = "/".join(clean(part, odd) for part in (row.metric, row.split) if part)
        if row.evaluated:
            values.setdefault(kind, []).append(row.value)
            points.append(Point(f"{kind}/{clean(row.evaluated, odd)}", note.step, row.value))
        else:
            points.append(Point(kind, note.step, row.value))
    means = [Point(f"{kind}/mean", note.step, sum(some) / len(some)) for kind, some in values.items()]
    return points + means
