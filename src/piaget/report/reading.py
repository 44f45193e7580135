"""Run folders, read for a report: also those of unfinished runs."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from piaget.errors import LoadError, SettingError
from piaget.lab.configuration import configure
from piaget.lab.folder import at_work, read_description
from piaget.lab.table import ALGORITHMS, BASES, reported
from piaget.scoring.rows import COLUMNS, OLD_COLUMNS, upgrade

IRRELEVANT = ("compile", "device")  # settings that do not change results (much)
TRIALS = {"objects": 50}  # of the paper; of all other streams 10


@dataclass(frozen=True)
class Run:
    """One run: its folder, its description (run.json), and its stream's name as its rows have it."""

    name: str  # of the folder, unique in a report
    folder: Path
    description: dict[str, Any] = field(repr=False)
    stream: str
    method: str

    @property
    def configuration(self) -> dict[str, Any]:
        return self.description["configuration"]

    @property
    def seed(self) -> int:
        return int(self.configuration["seed"])

    @cached_property
    def status(self) -> str:
        status = str(self.description["status"])
        return "interrupted" if status == "running" and not at_work(self.folder) else status

    @cached_property
    def changes(self) -> dict[str, Any]:
        """What is not the paper's: options of the stream, epochs, settings."""
        given = self.configuration
        names = {name: given[name] for name in ("structure", "adaptation", "algorithm")}
        usual = configure(stream=given["stream"], table=given.get("table"), **names)
        changes = dict(given["options"])
        if given["epochs"] != usual["epochs"]:
            changes["epochs"] = given["epochs"]
        for name in sorted({*given["settings"], *usual["settings"]} - {*IRRELEVANT}):
            if given["settings"].get(name) != usual["settings"].get(name):
                changes[name] = given["settings"].get(name, "default")
        return changes

    @property
    def data(self) -> str:
        """What it learned from. (The stream of a table is only called as its file is.)"""
        given = self.configuration
        return json.dumps([self.stream, given.get("table"), given["options"]], sort_keys=True)

    @property
    def work(self) -> tuple[str, int]:
        """What it has in common with other methods that it can be compared with: data and epochs."""
        return self.data, self.configuration["epochs"]

    @property
    def told_apart_by(self) -> dict[str, Any]:
        """What may tell it from other runs of its stream and method."""
        return (self.configuration.get("table") or {}) | self.changes

    @property
    def has_components(self) -> bool:
        """Which a task can choose from."""
        return self.parts[0] != "monolithic"

    @property
    def variant(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.changes.items())

    @property
    def parts(self) -> tuple[str, str, str]:
        """structure, base and algorithm, by their names in the code."""
        structure, base, algorithm = self.method.split("/")
        return structure, base, algorithm

    @property
    def paper(self) -> tuple[float, float] | None:
        """The paper's final performance, if this is the paper's experiment."""
        return None if self.changes else reported(self.parts[0], self.stream, self.parts[1], self.parts[2])

    @property
    def trials(self) -> int:
        return TRIALS.get(self.stream.partition("-")[0], 10)

    @property
    def command(self) -> str:
        """Makes this run again."""
        given = self.configuration
        words = ["piaget", "run", *self._source()]
        words += ["--structure", given["structure"], "--adaptation", given["adaptation"]]
        words += ["--algorithm", given["algorithm"], "--epochs", str(given["epochs"])]
        words += ["--every", str(given["every"])] if given.get("every") else []
        for name, value in given["options"].items():
            words += ["--option", f"{name}={value}"]
        for name, value in given["settings"].items():
            words += ["--set", f"{name}={value}"]
        words += ["--seeds", str(self.seed), "--out", "again"]
        return shlex.join(words)

    def _source(self) -> list[str]:
        """The stream, or the table with its columns."""
        table = self.configuration.get("table")
        if table is None:
            return [str(self.configuration["stream"])]
        words = ["--table", str(table["table"])]
        for name in ("group", "target", "kind", "split", "categorical", "ignore"):
            value = table.get(name)
            if value:
                words += [f"--{name}", *(value if isinstance(value, list) else [str(value)])]
        return words


@dataclass(frozen=True)
class Results:
    """Runs, and the tidy table of all their rows (see metrics.py)."""

    runs: list[Run]
    table: pd.DataFrame
    notes: list[str]


def read(folders: Sequence[Path]) -> Results:
    """All runs in these folders and below."""
    runs, tables, notes = [], [], []
    for folder in folders:
        if not folder.is_dir():
            raise SettingError(
                f"{folder} is no folder; expected one that piaget run or piaget sweep wrote to"
            )
    paths = dict.fromkeys(path.parent for folder in folders for path in sorted(folder.rglob("run.json")))
    if not paths:
        raise SettingError(
            f"no run in {', '.join(map(str, folders))}; expected folders that piaget run or piaget sweep "
            "wrote to"
        )
    for path in paths:
        try:
            description, rows = read_description(path), read_rows(path / "rows.csv")
        except LoadError as error:
            notes.append(f"left out: {error}")
            continue
        if rows.empty:
            notes.append(f"left out: {path} has no scores yet")
            continue
        first = rows.iloc[0]
        run = Run(str(path), path, description, str(first["stream"]), str(first["method"]))
        if run.method.count("/") != 2:
            notes.append(
                f"left out: {path} has the method {run.method!r}; expected structure/adaptation/algorithm"
            )
            continue
        runs.append(run)
        tables.append(rows.assign(run=run.name))
    if not runs:
        raise SettingError("no run has scores yet: " + "; ".join(notes))
    runs.sort(key=_order)
    return Results(runs, pd.concat(tables, ignore_index=True), notes)


def _order(run: Run) -> tuple[Any, ...]:
    """As in the paper's tables."""
    structure, base, algorithm = run.parts
    bases, algorithms = list(BASES), list(ALGORITHMS)
    known = bases.index(base) if base in bases else len(bases)
    place = algorithms.index(algorithm) if algorithm in algorithms else len(algorithms)
    return run.stream, known, place, structure, run.variant, run.seed, run.name


def read_rows(path: Path) -> pd.DataFrame:
    """A row file as a table. The last line may be half written, by a run that is at work or was killed."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error.strerror}") from error
    whole = text[: text.rfind(b"\n") + 1]
    kinds: dict[str, Any] = dict.fromkeys(COLUMNS, str) | {"seed": int, "epoch": int, "value": float}
    kinds |= {"component": "Int64", "depth": "Int64"}
    empty = {"value": ["", "nan"], "component": [""], "depth": [""]}
    try:
        rows = pd.read_csv(io.BytesIO(whole), dtype=kinds, keep_default_na=False, na_values=empty)
    except (ValueError, pd.errors.ParserError) as error:
        raise LoadError(f"{path} is no file of rows: {error}") from error
    if tuple(rows.columns) == OLD_COLUMNS:
        rows = _upgraded(rows)
    if tuple(rows.columns) != COLUMNS:
        raise LoadError(f"{path} has the columns {', '.join(rows.columns)}; expected {', '.join(COLUMNS)}")
    return rows


def _upgraded(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of version 0.1, with the columns of now."""
    names = {name: upgrade({"metric": name}) for name in rows["metric"].unique()}
    new = pd.DataFrame(
        [names[name] for name in rows["metric"]], index=rows.index, columns=["metric", "component", "depth"]
    )
    numbers = {name: pd.to_numeric(new[name]).astype("Int64") for name in ("component", "depth")}
    return rows.assign(metric=new["metric"], **numbers)[list(COLUMNS)]
