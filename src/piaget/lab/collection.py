"""Collected results: what matters of many finished runs, in two small files a stream, to be kept for good.

    STREAM/results.json         the settings and software of runs, and what is to be said of each; sealed
    STREAM/rows-HASH.csv.xz     their rows (essence.py); `run` is a position in the list of runs

The same runs give the same files, byte for byte, in whatever order and parts they were added. No heavy
imports.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import lzma
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from piaget.data.typed_data import read, read_fields
from piaget.data.unpacking import LARGEST
from piaget.errors import LoadError, SettingError
from piaget.files import read_described, write_atomically, write_json
from piaget.lab.essence import essential, shortened
from piaget.lab.folder import CONFIGURATION, DIVERGED, DONE, RunFolder
from piaget.lab.locks import only_one
from piaget.lab.row_file import Extent, csv_text
from piaget.scoring.rows import Row

FORMAT, VERSION = "collection of results", 1
FILE = "results.json"
MEMORY = 1 << 26  # bytes that unpacking rows may take, beside the rows
COLUMNS = ("trained", "epoch", "stage", "evaluated", "split", "metric", "component", "depth", "value")
# Settings that do not change what comes out: runs that differ in nothing else are the same.
IRRELEVANT = ("compile", "device")

_SETUP: dict[str, Any] = {
    "method": str,  # as rows have it
    "reduced": str | None,  # in what its data is less than the paper's, if the options do not say it
    "configuration": dict[str, Any],
    "learner": dict[str, Any] | None,
}
_SOFTWARE: dict[str, Any] = {
    "commit": str | None,
    "versions": dict[str, Any] | None,
    "machine": dict[str, Any] | None,
}
_RUN: dict[str, Any] = {
    "setup": int,
    "seed": int,
    "software": int,
    "status": str,
    "error": str | None,
    "data": str | None,  # a hash of its tasks' fingerprints
    "seconds": float | None,  # of all runs that were trained together
    "together": int,
    "steps": float | None,
    "peak_memory": float | None,
}
_WHOLE: dict[str, Any] = {
    "format": str,
    "version": int,
    "stream": str,
    "rows": dict[str, Any],  # of their text, unpacked: its size and hash
    "setups": list[dict[str, Any]],
    "software": list[dict[str, Any]],
    "runs": list[dict[str, Any]],
}


Lines = tuple[tuple[str, ...], ...]  # rows as texts, in the order of COLUMNS


@dataclass(frozen=True)
class CollectedRun:
    """A run of a collection: like a RunFolder, but without a learner."""

    place: Path  # the folder of its stream
    stream: str
    setup: dict[str, Any]
    software: dict[str, Any]
    noted: dict[str, Any]

    @cached_property
    def path(self) -> Path:
        """A name of its own; there is no such folder."""
        settings = hashlib.sha256(_text(self.setup).encode()).hexdigest()[:6]
        method = self.setup["method"].replace("/", "_")
        return self.place / f"{method}.{settings}" / f"seed-{self.seed}"

    @property
    def file(self) -> Path:
        """Where it is described."""
        return self.place / FILE

    @cached_property
    def description(self) -> dict[str, Any]:
        """What its run.json said."""
        together = [self.seed] * self.noted["together"]  # only their number is known
        described = self.software | self.noted | self.setup
        return described | {"configuration": self.configuration, "together": together, "data": None}

    @cached_property
    def configuration(self) -> dict[str, Any]:
        """What was asked for, and the seed."""
        return self.setup["configuration"] | {"seed": self.seed}

    @property
    def seed(self) -> int:
        """Its seed."""
        return self.noted["seed"]

    @property
    def method(self) -> str:
        """As its rows have it."""
        return self.setup["method"]

    @property
    def status(self) -> str:
        """Done, or diverged."""
        return self.noted["status"]

    def saved_learner(self) -> Path:
        """There is none."""
        raise LoadError(f"{self.place} has results only, no learners")

    @cached_property
    def identity(self) -> str:
        """What a run has in common with it that takes its place: method, settings and seed."""
        # A single network is the same, whatever structure it was asked for beside.
        told = ("every", "structure")
        configuration = {name: value for name, value in self.configuration.items() if name not in told}
        settings = {n: value for n, value in configuration["settings"].items() if n not in IRRELEVANT}
        return _text([self.method, configuration | {"settings": settings}])

    def tells_less_than(self, other: CollectedRun) -> str | None:
        """Why it should not take the place of another one, if so."""
        if self.status != DONE and other.status == DONE:
            return "it diverged, and the one that is there did not"
        if self.setup["reduced"] and not other.setup["reduced"]:
            return "it is of reduced data, and the one that is there is not"
        if self.configuration["every"] is None and other.configuration["every"] is not None:
            return "it has no learning curves, and the one that is there has"
        return None


@dataclass(frozen=True)
class Collection:
    """The runs on one stream, and their rows as the file has them, unpacked."""

    stream: str
    runs: list[CollectedRun]
    text: bytes

    def lines(self) -> list[Lines]:
        """The rows of each run."""
        lines: list[list[tuple[str, ...]]] = [[] for _ in self.runs]
        reader = csv.reader(io.StringIO(self.text.decode(), newline=""))
        next(reader)
        for number, *fields in reader:
            lines[int(number)].append(tuple(fields))
        return list(map(tuple, lines))


# --- reading ------------------------------------------------------------------------------------------


def collections_below(root: Path) -> list[Path]:
    """The folders of collected results in a folder and below it, one a stream."""
    return [path.parent for path in sorted(root.rglob(FILE))]


def read_collection(place: Path) -> Collection:
    """The results on one stream, verified."""
    path = place / FILE
    described = read_described(path, FORMAT, [VERSION])
    try:
        whole = read_fields(_WHOLE, described, "it")
        extent = Extent(**read_fields({"size": int, "sha256": str}, whole["rows"], "rows"))
        setups = [read_fields(_SETUP, setup, "a setup") for setup in whole["setups"]]
        for setup in setups:
            for name, hint in CONFIGURATION.items():
                read(hint, setup["configuration"].get(name, 0 if name == "seed" else None), name)
        software = [read_fields(_SOFTWARE, one, "software") for one in whole["software"]]
        noted = [read_fields(_RUN, run, "a run") for run in whole["runs"]]
        runs = [
            CollectedRun(place, whole["stream"], setups[run.pop("setup")], software[run.pop("software")], run)
            for run in noted
        ]
    except (ValueError, IndexError) as error:
        raise LoadError(f"{path} does not describe collected results: {error}") from error
    return Collection(whole["stream"], runs, _read_rows(_rows_file(place, extent), extent))


def _rows_file(place: Path, extent: Extent) -> Path:
    """Its name changes with what is in it: until results.json names it, the old one is there."""
    return place / f"rows-{(extent.sha256 or '')[:8]}.csv.xz"


def _read_rows(path: Path, extent: Extent) -> bytes:
    """A packed file may say that it needs, or holds, very much: it gets so much memory, and has that size."""
    try:
        unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)
        text = unpacker.decompress(path.read_bytes(), max_length=min(extent.size, LARGEST) + 1)
    except (OSError, lzma.LZMAError) as error:
        raise LoadError(f"{path} cannot be read: {error}") from error
    if Extent(len(text), hashlib.sha256(text).hexdigest()) != extent:
        raise LoadError(f"{path} is damaged: its rows are not those that {FILE} beside it names")
    return text


# --- adding -------------------------------------------------------------------------------------------


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


def folder_of(stream: str, to: Path) -> Path:
    """Where the results on a stream are."""
    return to / re.sub(r"[^A-Za-z0-9._=-]+", "-", stream)


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
    software = {name: noted.get(name) for name in _SOFTWARE}
    lines = tuple(_as_texts(row) for row in essential(rows))
    return CollectedRun(folder_of(stream, to), stream, setup, software, of_run), lines


def data_mark(fingerprints: Any) -> str | None:
    """A hash of all that tells what a run has learned from, by which runs on the same data are known."""
    if fingerprints is None:
        return None
    return hashlib.sha256(json.dumps(fingerprints).encode()).hexdigest()[:16]


def _as_texts(row: Row) -> tuple[str, ...]:
    fields: list[Any] = [row[name] for name in COLUMNS[:-1]]  # type: ignore[literal-required]
    return (*("" if value is None else str(value) for value in fields), shortened(row))


def _write(place: Path, stream: str, runs: list[tuple[CollectedRun, Lines]]) -> None:
    """Nothing is written where the same is there: another version of xz may pack it otherwise."""
    runs.sort(key=lambda one: (_text(one[0].setup), one[0].seed))
    numbered = ((number, *line) for number, (_, lines) in enumerate(runs) for line in lines)
    text = csv_text([("run", *COLUMNS), *numbered])
    extent = Extent(len(text), hashlib.sha256(text).hexdigest())
    described = _described(stream, [run for run, _ in runs]) | {"rows": extent._asdict()}
    if (place / FILE).is_file() and read_described(place / FILE, FORMAT, [VERSION]) == described:
        return
    place.mkdir(parents=True, exist_ok=True)
    write_atomically(_rows_file(place, extent), lzma.compress(text))
    write_json(place / FILE, described)
    for old in set(place.glob("rows-*.csv.xz")) - {_rows_file(place, extent)}:
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
                "setup": list(setups).index(_text(run.setup)),
                "software": list(software).index(_text(run.software)),
                **run.noted,
            }
            for run in runs
        ],
    }


def _distinct(values: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return dict(sorted((_text(value), value) for value in values))


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
