"""A run over a table, over the years: later tables are learned, groups are forgotten.

Rows and learner are changed together: after a crash, the same command again does what is left.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from piaget.data.plain import printable
from piaget.errors import LoadError, SettingError, note
from piaget.files import write_atomically
from piaget.knowledge.storage import remove_leftovers
from piaget.lab import deep_tables, folder
from piaget.lab.configuration import split_column
from piaget.lab.deep_tables import Say as Say
from piaget.lab.folder import DONE, RunFolder
from piaget.lab.locks import only_one
from piaget.lab.row_file import HEADER, Extent, as_csv
from piaget.learner import Learner, load
from piaget.prior_learner import PriorLearner
from piaget.scoring.rows import PRIOR_METHOD, Row
from piaget.streams.table_notes import some
from piaget.table_life import Arrival, arrival_rows, learn_table


def only_run(path: Path) -> RunFolder:
    """The run of a folder, which may be that of a command with a single seed."""
    runs = folder.runs_in(path)
    if len(runs) > 1:
        raise SettingError(f"{path} has {len(runs)} runs; give one of them, such as {runs[0].path}")
    return runs[0] if runs else RunFolder(path)


def done_run(path: Path) -> RunFolder:
    """The run of a folder, which must be done, one over a table, and have the learner that it saved."""
    one = only_run(path)
    if not (one.path / "run.json").is_file():
        raise folder.no_runs(path)
    if one.status != DONE:
        raise LoadError(f"{one.path} is {one.status}: only a run that is done has a learner")
    if one.configuration["table"] is None:
        raise SettingError(
            f"{one.path} is a run over {one.configuration['stream']}; expected one over a table"
        )
    one.saved_learner()
    return one


def learn(
    path: Path,
    table: Path,
    again: bool = False,
    keep: bool = True,
    skip_known: bool = False,
    say: Say = lambda _: None,
) -> tuple[list[Arrival], Learner | PriorLearner, Path]:
    """A later table; what it brought of each group, the learner that knows it, and the run's folder. Unless
    it is to be kept, nothing of that is written."""
    place = done_run(path).path
    with only_one([place]):
        run, learner = _opened(place)
        before = run.description.get("forgotten") or []

        def kept(learned: Sequence[Arrival], rows: Sequence[Row], notes: dict[str, Any]) -> None:
            for arrival in learned:
                folder.log(run.path, f"{table.name}: {printable(arrival.group)}: {arrival.told()}")
            commit(run.path, learner, rows, **notes)
            deep_tables.remove_old(RunFolder(run.path))

        if isinstance(learner, Learner):
            arrivals = deep_tables.learn(
                run,
                learner,
                table,
                again=again,
                skip_known=skip_known,
                commit=kept if keep else None,
                say=say,
            )
        else:
            columns = run.description.get("columns")
            arrivals = learn_table(
                learner,
                table,
                again=again,
                skip_known=skip_known,
                columns=columns,
                split=split_column(run.configuration),
            )
            if keep and any(arrival.rows for arrival in arrivals):
                stream = table.name.split(".")[0]
                kept(arrivals, arrival_rows(arrivals, stream, PRIOR_METHOD, learner.seed, epoch=1), {})
        for arrival in arrivals if keep else ():
            if arrival.left_out is not None:
                folder.log(run.path, f"{table.name}: {printable(arrival.group)}: {arrival.told()}")
        gone = [one.group for one in arrivals if one.rows and not one.known and one.group in before]
        if gone:
            note(f"groups that were forgotten come again: {some(gone)}")
    return arrivals, learner, run.path


def forget(path: Path, groups: Sequence[str]) -> tuple[Path, list[str], Learner | PriorLearner]:
    """Groups are forgotten; the run's folder, each of the groups once, and the learner. Those that were
    forgotten before are noted: a command that was broken off may be given again."""
    place = done_run(path).path
    with only_one([place]):
        one, learner = _opened(place)
        groups, before = list(dict.fromkeys(groups)), one.description.get("forgotten") or []
        gone = [group for group in groups if group in before and group not in learner.tasks]
        left = [group for group in groups if group not in gone]
        if left:
            learner.forget(*left)
            for group in left:
                folder.log(one.path, f"forgets {printable(group)}")
            notes: dict[str, Any] = {"forgotten": list(dict.fromkeys([*before, *left]))}
            if (data := one.description.get("data")) is not None:
                notes["data"] = {name: mark for name, mark in data.items() if name not in left}
            if isinstance(learner, Learner) and one.description.get("learned_rows") is not None:
                book = deep_tables.read_book(one, learner).without(left)
                notes["learned_rows"] = deep_tables.write_book(one.path, book)
            commit(one.path, learner, [], **notes)
            deep_tables.remove_old(RunFolder(one.path))
        if gone:
            note(f"forgotten before: {some(gone)}")
    return one.path, groups, learner


def _opened(place: Path) -> tuple[RunFolder, Learner | PriorLearner]:
    """A run as it is when nothing is left undone, and its learner. By whoever holds the folder's lock."""
    _finish(place)
    run = done_run(place)
    return run, load(run.saved_learner())


def _finish(place: Path) -> None:
    """What a change that was broken off left undone. Files that nothing names are removed: they may hold
    what was to be forgotten."""
    remove_leftovers(place / "learner", "learner")
    folder.finish_change(place)
    deep_tables.remove_old(run := RunFolder(place))
    if run.description.get("rows") is None:  # version 0.1: other columns, and nobody noted what is there
        text = HEADER + as_csv(list(run.rows()))
        write_atomically(run.rows_file, text)
        folder.note(place, rows=_extent(text), saved=folder.learner_mark(place))


def commit(
    place: Path, learner: Learner | PriorLearner, rows: Sequence[Row], begin: bool = False, **notes: Any
) -> None:
    """Rows and learner, changed together. Which ones they will be is noted first: whatever is there after a
    crash is known, and what is done again is the same."""
    before = HEADER if begin else _row_text(place)
    text = before + as_csv(rows)
    extent = _extent(text)
    with tempfile.TemporaryDirectory() as beside:
        learner.save(Path(beside) / "learner")
        mark = folder.learner_mark(Path(beside))
    folder.note(place, next={"rows": extent, "saved": mark, "notes": {} if begin else notes})
    write_atomically(place / "rows.csv", text)
    learner.save(place / "learner")
    folder.note(place, rows=extent, saved=mark, next=None, **notes)


def _extent(text: bytes) -> dict[str, Any]:
    return Extent(len(text), hashlib.sha256(text).hexdigest())._asdict()


def _row_text(place: Path) -> bytes:
    """The rows that go with the learner that is there: not those of a change that was not finished."""
    run = RunFolder(place)
    text, noted = run.row_text(), run.description["rows"]
    unfinished = folder.learner_mark(place) == run.description.get("saved")
    return text[: noted["size"]] if unfinished and noted is not None else text


def as_plain(arrival: Arrival) -> dict[str, Any]:
    """For machines."""
    plain = asdict(arrival)
    explained = arrival.explained
    return plain | {"explained": None if explained is None else explained._asdict()}
