"""Runs over tables with a prior over structures: learned in seconds, and then for years.

A run's folder is that of any run, with summary.json beside: what was found of each group, to decide by. There
is no checkpoint: a run that was killed begins anew, and ends with the same numbers. Later tables, and what is
to be forgotten, change rows and learner together: after a crash, the same command again does what is left.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from piaget.data.class_weight import ClassWeight, check_classes, from_text
from piaget.data.plain import Label, printable
from piaget.data.tasks import Stream
from piaget.errors import DataError, DataNote, LoadError, SettingError, note
from piaget.files import write_atomically, write_json
from piaget.knowledge.storage import holds_prior, remove_leftovers
from piaget.lab import folder
from piaget.lab.configuration import Configuration
from piaget.lab.folder import DONE, RunFolder, has_ended, seed_folders
from piaget.lab.locks import only_one
from piaget.lab.making import make_stream
from piaget.lab.parts import NOTHING, Trusted
from piaget.lab.row_file import HEADER, Extent, as_csv
from piaget.lab.runs import fingerprints, peak_memory
from piaget.lab.table_summary import decision_rows, summary_of
from piaget.prior_learner import PriorLearner
from piaget.scoring.rows import Row
from piaget.scoring.worth import check_metric
from piaget.streams.table_notes import some
from piaget.streams.table_stream import TableStream
from piaget.suited import all_labels, why_not
from piaget.table_life import Arrival, arrival_rows, learn_table

Say = Callable[[str], None]  # what is going on, in words
KEEPS = "keeps"  # in a run's description: groups that lack a class or rows are tasks, too
LONG = 3e8  # groups x inputs^3 that take half a minute


def run(
    configuration: Configuration,
    seeds: Sequence[int],
    out: Path,
    say: Say = lambda _: None,
    data_dir: str | None = None,
    trusted: Trusted = NOTHING,
    metric: str | None = None,
) -> list[Path]:
    """A run for each seed; finished, it does nothing. The folders. metric: one that will be asked for, which
    must suit the tasks."""
    folders = seed_folders(out, seeds)
    streams = [
        make_stream(configuration, seed, data_dir, trusted, keep=_keeps(place))
        for seed, place in zip(seeds, folders, strict=True)
    ]
    for stream in streams:
        if (why := why_not(stream)) is not None:
            raise SettingError(f"structure 'prior' does not suit these tasks: {why}")
        labels = all_labels(stream)
        _class_weight(configuration, labels)
        kind = {0: "regression", 2: "binary"}.get(len(labels or ()), "multiclass")
        check_metric(metric, kind, what="--metric ")
    for seed, stream, place in zip(seeds, streams, folders, strict=True):
        ended = has_ended(place)
        with contextlib.nullcontext() if ended else only_one([place]):
            begun: dict[str, Any] = {"data_dir": data_dir, "columns": getattr(stream, "columns", None)}
            begun[KEEPS] = True
            gone = _forgotten(place)
            data = {name: mark for name, mark in fingerprints(stream).items() if name not in gone}
            try:
                learner = {"seed": seed, **configuration["settings"]}
                folder.begin(place, configuration, seed, learner, data, **begun)
            except DataError as error:
                if not ended:
                    raise
                table = configuration["table"] or {}
                raise DataError(
                    f"{error}; or learn what is new: piaget learn {out} {table.get('table')}"
                ) from error
            if not ended:
                with _noted(place):
                    _train(place, configuration, seed, stream, say)
    return folders


def _keeps(place: Path) -> bool:
    """Are groups that lack something among the tasks? An older version left them out."""
    return not (place / "run.json").is_file() or KEEPS in folder.readable(place)


def _forgotten(place: Path) -> list[str]:
    """Groups that are not to be missed."""
    there = (place / "run.json").is_file()
    return list(folder.readable(place).get("forgotten") or []) if there else []


@contextlib.contextmanager
def _noted(place: Path) -> Iterator[None]:
    """How it ended, if it did not end well."""
    folder.note(place, status="running", error=None)
    folder.log(place, "begins")
    try:
        yield
    except BaseException as error:
        failed = isinstance(error, Exception)
        with contextlib.suppress(OSError):
            trace = traceback.format_exc() if failed else None
            folder.note(place, status="failed" if failed else "interrupted", error=trace)
            folder.log(place, f"failed\n{trace}" if failed else "interrupted")
        raise


def _train(place: Path, configuration: Configuration, seed: int, stream: Stream, say: Say) -> None:
    start = time.monotonic()
    labels = all_labels(stream)
    learner = PriorLearner(labels, class_weight=_class_weight(configuration, labels), seed=seed)
    tasks = list(stream)
    inputs = tasks[0].input_shape[0]
    long = len(tasks) * inputs**3 > LONG
    say(f"learning {len(tasks)} groups" + f" of {inputs} inputs, which may take minutes" * long)
    learner.learn_all(tasks)
    learner.settle()
    rows = learner.evaluate(tasks)
    say("comparing with simple models")
    rows += decision_rows(learner, tasks)
    summary = summary_of(learner, tasks, rows)
    held = _held_out(configuration, stream)
    if held:
        say("learning the rows that were held out, too")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataNote)  # all was said when the table was read
            learn_table(learner, configuration["table"]["table"])
    write_json(place / "summary.json", summary)
    seconds = round(time.monotonic() - start, 3)
    folder.log(place, f"done in {seconds:.1f} s: {len(tasks)} groups{', held-out rows learned, too' * held}")
    commit(place, learner, rows, begin=True, status=DONE, finished=folder.now(), seconds=seconds,
           peak_memory=peak_memory(), together=[seed])  # fmt: skip


def _class_weight(configuration: Configuration, labels: Sequence[Label] | None) -> ClassWeight | None:
    """As the learner takes it; an error, if it does not suit the classes."""
    weight = from_text(configuration["settings"].get("class_weight"), labels or ())
    check_classes(weight, labels or ())
    return weight


def _held_out(configuration: Configuration, stream: Stream) -> bool:
    """Are test rows to be learned, too, when all is scored? Not if the user said which are for what."""
    table = configuration["table"]
    if table is None or not isinstance(stream, TableStream):
        return False
    return not table.get("split") and table.get("train_size") is None


# --- a life of years ----------------------------------------------------------------------------------------


def only_run(path: Path) -> RunFolder:
    """The run of a folder, which may be that of a command with a single seed."""
    runs = folder.runs_in(path)
    if len(runs) > 1:
        raise SettingError(f"{path} has {len(runs)} runs; give one of them, such as {runs[0].path}")
    return runs[0] if runs else RunFolder(path)


def opened(path: Path) -> tuple[RunFolder, PriorLearner]:
    """The run of a folder, and its learner."""
    one = only_run(path)
    if not (one.path / "run.json").is_file():
        raise folder.no_runs(path)
    if one.status != DONE:
        raise LoadError(f"{one.path} is {one.status}: only a run that is done has a learner")
    place = one.saved_learner()
    if not holds_prior(place):
        raise SettingError(
            f"{one.path} has a deep learner ({one.configuration['structure']}), which learns no table later; "
            "expected a run of a table without --structure, --adaptation and --algorithm"
        )
    return one, PriorLearner.load(place)


def learn(
    path: Path, table: Path, again: bool = False, keep: bool = True, skip_known: bool = False
) -> tuple[list[Arrival], PriorLearner, Path]:
    """A later table; what it brought of each group, the learner that knows it, and the run's folder. Unless
    it is to be kept, nothing of that is written."""
    run, _ = opened(path)
    with only_one([run.path]):
        _finish(run.path)
        run, learner = opened(run.path)
        columns = run.description.get("columns")
        arrivals = learn_table(learner, table, again=again, skip_known=skip_known, columns=columns)
        gone = [one.group for one in arrivals if not one.known and one.group in _forgotten(run.path)]
        if gone:
            note(f"groups that were forgotten come again: {some(gone)}")
        if keep and any(arrival.rows for arrival in arrivals):
            rows = arrival_rows(learner, arrivals, table.name.split(".")[0])
            for arrival in arrivals:
                folder.log(run.path, f"{table.name}: {printable(arrival.group)}: {arrival.told()}")
            commit(run.path, learner, rows)
    return arrivals, learner, run.path


def forget(path: Path, groups: Sequence[str]) -> tuple[Path, list[str]]:
    """Groups as if they had never been learned; the run's folder, and each of the groups once. Those that
    were forgotten before are noted: a command that was broken off may be given again."""
    one, _ = opened(path)
    with only_one([one.path]):
        _finish(one.path)
        one, learner = opened(one.path)
        groups, before = list(dict.fromkeys(groups)), _forgotten(one.path)
        gone = [group for group in groups if group in before and group not in learner.tasks]
        left = [group for group in groups if group not in gone]
        if left:
            learner.forget(*left)
            for group in left:
                folder.log(one.path, f"forgets {printable(group)}")
            data = {
                name: mark for name, mark in (one.description.get("data") or {}).items() if name not in left
            }
            commit(one.path, learner, [], data=data, forgotten=list(dict.fromkeys([*before, *left])))
        if gone:
            note(f"forgotten before: {some(gone)}")
    return one.path, groups


def _finish(place: Path) -> None:
    """What a change that was broken off left undone. Files that nothing names are removed: they may hold
    what was to be forgotten."""
    remove_leftovers(place / "learner", "learner")
    folder.finish_change(place)


def commit(
    place: Path, learner: PriorLearner, rows: Sequence[Row], begin: bool = False, **notes: Any
) -> None:
    """Rows and learner, changed together. Which ones they will be is noted first: whatever is there after a
    crash is known, and what is done again is the same."""
    before = HEADER if begin else _row_text(place)
    text = before + as_csv(rows)
    extent = Extent(len(text), hashlib.sha256(text).hexdigest())._asdict()
    with tempfile.TemporaryDirectory() as beside:
        learner.save(Path(beside) / "learner")
        mark = folder.learner_mark(Path(beside))
    folder.note(place, next={"rows": extent, "saved": mark, "notes": {} if begin else notes})
    write_atomically(place / "rows.csv", text)
    learner.save(place / "learner")
    folder.note(place, rows=extent, saved=mark, next=None, **notes)


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
