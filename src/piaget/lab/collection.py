"""Collected results: what matters of many finished runs, in two small files a stream, to be kept for good.

    STREAM/results.json         the settings and software of runs, and what is to be said of each; sealed
    STREAM/rows-HASH.csv.xz     their rows (essence.py); `run` is a position in the list of runs

They are read here, and written by collecting.py. No heavy imports.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import lzma
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from piaget.data.typed_data import read, read_fields
from piaget.data.unpacking import LARGEST
from piaget.errors import LoadError
from piaget.files import read_described
from piaget.lab.folder import CONFIGURATION, DONE, scaled_as_trained
from piaget.lab.row_file import Extent

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
SOFTWARE: dict[str, Any] = {
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
    "parameters": int,  # if it was noted how many
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
        settings = hashlib.sha256(as_text(self.setup).encode()).hexdigest()[:6]
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
        return scaled_as_trained(self.setup["configuration"], self.setup["learner"]) | {"seed": self.seed}

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
        return as_text([self.method, configuration | {"settings": settings}])

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
        software = [read_fields(SOFTWARE, one, "software") for one in whole["software"]]
        noted = [read_fields(_RUN, run, "a run", frozenset({"parameters"})) for run in whole["runs"]]
        runs = [
            CollectedRun(place, whole["stream"], setups[run.pop("setup")], software[run.pop("software")], run)
            for run in noted
        ]
    except (ValueError, IndexError) as error:
        raise LoadError(f"{path} does not describe collected results: {error}") from error
    return Collection(whole["stream"], runs, _read_rows(rows_file(place, extent), extent))


def rows_file(place: Path, extent: Extent) -> Path:
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


def folder_of(stream: str, to: Path) -> Path:
    """Where the results on a stream are."""
    return to / re.sub(r"[^A-Za-z0-9._=-]+", "-", stream)


def data_mark(fingerprints: Any) -> str | None:
    """A hash of all that tells what a run has learned from, by which runs on the same data are known."""
    if fingerprints is None:
        return None
    return hashlib.sha256(json.dumps(fingerprints).encode()).hexdigest()[:16]


def as_text(value: Any) -> str:
    """A text by which settings are compared: the same ones give the same."""
    return json.dumps(value, sort_keys=True)
