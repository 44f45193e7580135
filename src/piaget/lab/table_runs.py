"""Runs over tables with a prior over structures: learned in seconds, and then for years.

A run's folder is that of any run, with summary.json beside: what was found of each group, to decide by. There
is no checkpoint: a run that was killed begins anew, and ends with the same numbers. What comes later:
table_lives.py.
"""

from __future__ import annotations

import contextlib
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from piaget.data.class_weight import ClassWeight, check_classes, from_text
from piaget.data.plain import Label
from piaget.data.tasks import Stream
from piaget.errors import DataError, DataNote, SettingError
from piaget.files import write_json
from piaget.lab import folder
from piaget.lab.configuration import Configuration, learns_held_out
from piaget.lab.folder import DONE, has_ended, seed_folders
from piaget.lab.locks import only_one
from piaget.lab.making import make_stream
from piaget.lab.parts import NOTHING, Trusted
from piaget.lab.runs import fingerprints, peak_memory
from piaget.lab.table_lives import Say, commit
from piaget.lab.table_summary import decision_rows, summary_of
from piaget.prior_learner import PriorLearner
from piaget.scoring.worth import check_metric
from piaget.streams.table_stream import TableStream
from piaget.suited import all_labels, why_not
from piaget.table_life import learn_table

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
            try:
                learner = {"seed": seed, **configuration["settings"]}
                folder.begin(place, configuration, seed, learner, fingerprints(stream), **begun)
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
    held = isinstance(stream, TableStream) and learns_held_out(configuration)
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
