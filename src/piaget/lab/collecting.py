"""Adds finished runs to collected results (collection.py). The same runs give the same files, byte for byte,
in whatever order and parts they were added. No heavy imports."""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from piaget.errors import LoadError, SettingError
from piaget.files import read_described, write_atomically, write_json
from piaget.lab.collection import (
    COLUMNS,
    FILE,
    FORMAT,
    SOFTWARE,
    VERSION,
    CollectedRun,
    Lines,
    as_text,
    data_mark,
    folder_of,
    read_collection,
    rows_file,
)
from piaget.lab.essence import essential, shortened
from piaget.lab.folder import DIVERGED, DONE, RunFolder
from piaget.lab.locks import only_one
from piaget.lab.row_file import Extent, csv_text
from piaget.scoring.rows import Row


@dataclass
class Added:
    """What became of the runs that were to be added."""

    new: int = 0
    replaced: int = 0
    same: int = 0
    left_out: list[str] = field(default_factory=list)  # and why


def add(runs: Iterable[RunFolder], to: Path, reduced: str | None = None) -> Added:
    """Adds runs that have ended to the collection in a folder, or puts them in the place of the same ones,
    unless they tell less.

    reduced: in what their data is less than the paper's.
    """
    with only_one([to]):
        return _add(runs, to, reduced)


def _add(runs: Iterable[RunFolder], to: Path, reduced: str | None) -> Added:
    added = Added()
    by_stream: dict[str, dict[str, tuple[CollectedRun, Lines]]] = {}
    for folder in runs:
        try:
            if folder.status not in (DONE, DIVERGED):
                raise LoadError(f"{folder.path} is {folder.status}")
            run, lines = _collected(folder, to, reduced)
        except LoadError as error:
            added.left_out.append(str(error))
            continue
        of_stream = by_stream.setdefault(run.stream, {})
        if run.identity in of_stream:
            added.left_out.append(f"{folder.path} is the same run as another one of these folders")
        else:
            of_stream[run.identity] = run, lines
    for stream, here in by_stream.items():
        there = _there(stream, to)
        for identity in [one for one in here if one in there]:
            run = here[identity][0]
            if why := run.tells_less_than(there[identity][0]):
                added.left_out.append(f"{run.stream}: {run.method}, seed {run.seed}: {why}")
                del here[identity]
        known = [there.get(identity) for identity in here]
        added.new += known.count(None)
        added.same += sum(there.get(identity) == one for identity, one in here.items())
        _write(folder_of(stream, to), stream, list((there | here).values()))
    added.replaced = sum(map(len, by_stream.values())) - added.new - added.same
    return added


def _there(stream: str, to: Path) -> dict[str, tuple[CollectedRun, Lines]]:
    """The runs on a stream that were collected before."""
    place = folder_of(stream, to)
    if not (place / FILE).is_file():
        return {}
    before = read_collection(place)
    if before.stream != stream:
        raise SettingError(
            f"{place} holds results on {before.stream!r}, not on {stream!r}: give another folder"
        )
    return {run.identity: (run, own) for run, own in zip(before.runs, before.lines(), strict=True)}


def _collected(folder: RunFolder, to: Path, reduced: str | None) -> tuple[CollectedRun, Lines]:
    rows, noted = list(folder.rows()), folder.description
    if not rows:
        raise LoadError(f"{folder.path} has no scores")
    stream, learner = rows[0]["stream"], noted.get("learner") or {}
    setup = {
        "method": rows[0]["method"],
        "reduced": reduced,
        "configuration": {name: value for name, value in folder.configuration.items() if name != "seed"},
        "learner": {name: value for name, value in learner.items() if name != "seed"},
    }
    of_run = {
        "seed": folder.seed,
        "status": folder.status,
        "error": noted.get("error"),
        "data": data_mark(noted.get("data")),
        "seconds": noted.get("seconds"),
        "together": len(folder.together),
        "steps": noted.get("steps"),
        "peak_memory": noted.get("peak_memory"),
    }
    if noted.get("parameters") is not None:  # older versions did not count them
        of_run["parameters"] = noted["parameters"]
    software = {name: noted.get(name) for name in SOFTWARE}
    lines = tuple(_as_texts(row) for row in essential(rows))
    return CollectedRun(folder_of(stream, to), stream, setup, software, of_run), lines


def _as_texts(row: Row) -> tuple[str, ...]:
    fields: list[Any] = [row[name] for name in COLUMNS[:-1]]  # type: ignore[literal-required]
    return (*("" if value is None else str(value) for value in fields), shortened(row))


def _write(place: Path, stream: str, runs: list[tuple[CollectedRun, Lines]]) -> None:
    """Nothing is written where the same is there: another version of xz may pack it otherwise."""
    runs.sort(key=lambda one: (as_text(one[0].setup), one[0].seed))
    numbered = ((number, *line) for number, (_, lines) in enumerate(runs) for line in lines)
    text = csv_text([("run", *COLUMNS), *numbered])
    extent = Extent(len(text), hashlib.sha256(text).hexdigest())
    described = _described(stream, [run for run, _ in runs]) | {"rows": extent._asdict()}
    if (place / FILE).is_file() and read_described(place / FILE, FORMAT, [VERSION]) == described:
        return
    place.mkdir(parents=True, exist_ok=True)
    write_atomically(rows_file(place, extent), lzma.compress(text))
    write_json(place / FILE, described)
    for old in set(place.glob("rows-*.csv.xz")) - {rows_file(place, extent)}:
        old.unlink()


def _described(stream: str, runs: list[CollectedRun]) -> dict[str, Any]:
    """What many runs have in common is written once."""
    setups, software = _distinct(run.setup for run in runs), _distinct(run.software for run in runs)
    return {
        "format": FORMAT,
        "version": VERSION,
        "stream": stream,
        "setups": list(setups.values()),
        "software": list(software.values()),
        "runs": [
            {
                "setup": list(setups).index(as_text(run.setup)),
                "software": list(software).index(as_text(run.software)),
                **run.noted,
            }
            for run in runs
        ],
    }


def _distinct(values: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return dict(sorted((as_text(value), value) for value in values))
