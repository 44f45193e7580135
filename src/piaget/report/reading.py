"""Run folders, read for a report, also those of unfinished runs; and collected results."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from piaget.errors import LoadError, SettingError
from piaget.lab.collection import (
    COLUMNS as KEPT_COLUMNS,
    collections_below,
    read_collection,
)
from piaget.lab.folder import DIVERGED, RunFolder, runs_below
from piaget.paper.names import ALGORITHMS, BASES
from piaget.report.reported_run import ReportedRun
from piaget.scoring.rows import COLUMNS, OLD_COLUMNS, upgrade


@dataclass(frozen=True)
class Results:
    """Runs, and the tidy rows of all of them (see metrics.py)."""

    runs: list[ReportedRun]
    rows: pd.DataFrame
    notes: list[str]


class _NoScores(LoadError):
    """A run is as it should be, but has no scores."""


def read(folders: Sequence[Path]) -> Results:
    """All runs in these folders and below."""
    for folder in folders:
        if not folder.is_dir():
            raise SettingError(
                f"{folder} is no folder; expected one that piaget run, sweep or collect wrote to"
            )
    disks = {run.path: run for folder in folders for run in runs_below(folder)}
    places = dict.fromkeys(place for folder in folders for place in collections_below(folder))
    if not disks and not places:
        raise SettingError(
            f"no run in {', '.join(map(str, folders))}; expected folders that piaget run, sweep or collect "
            "wrote to"
        )
    runs, tables, reasons, unread = [], [], [], False
    for disk in disks.values():
        try:
            run, rows = _read_run(disk)
        except LoadError as error:
            reasons.append(str(error))
            unread |= not isinstance(error, _NoScores)
            continue
        runs.append(run)
        tables.append(rows.assign(run=run.name))
    for place in places:
        try:
            collected, rows = _read_collected(place)
        except LoadError as error:
            reasons.append(str(error))
            unread = True
            continue
        runs += collected
        tables.append(rows)
    if not runs:
        none = "there are no scores that can be read" if unread else "no run has scores yet"
        raise SettingError(f"{none}: {'; '.join(reasons)}")
    notes = [f"left out: {reason}" for reason in reasons]
    notes += [f"{run.name}: {DIVERGED}: {run.description['error']}" for run in runs if run.diverged]
    runs.sort(key=_order)
    return Results(runs, pd.concat(tables, ignore_index=True), notes)


def _read_run(disk: RunFolder) -> tuple[ReportedRun, pd.DataFrame]:
    path, rows = disk.path, read_rows(disk.rows_file, disk.row_text())
    if rows.empty:
        what = (
            f": {DIVERGED}: {disk.description['error']}" if disk.status == DIVERGED else " has no scores yet"
        )
        raise _NoScores(f"{path}{what}")
    rows["method"] = rows["method"].map(disk.method_now)
    stream, method = map(str, rows.iloc[0][["stream", "method"]])
    if method.count("/") != 2:
        raise LoadError(f"{path} has the method {method!r}; expected structure/adaptation/algorithm")
    return ReportedRun(disk, stream, method), rows


def _read_collected(place: Path) -> tuple[list[ReportedRun], pd.DataFrame]:
    """The runs on one stream, and the rows of all of them."""
    collection = read_collection(place)
    runs = [ReportedRun(run, run.stream, run.method) for run in collection.runs]
    if wrong := [run.method for run in runs if run.method.count("/") != 2]:
        raise LoadError(f"{place} has the method {wrong[0]!r}; expected structure/adaptation/algorithm")
    rows = _parsed(place, collection.text)
    if list(rows.columns) != ["run", *KEPT_COLUMNS] or not rows["run"].between(0, len(runs) - 1).all():
        raise LoadError(f"{place} has rows of no run, or with the columns {', '.join(rows.columns)}")
    told = {name: [getattr(run, name) for run in runs] for name in ("stream", "method", "seed", "name")}
    told_of = pd.DataFrame(told).iloc[rows["run"]].set_index(rows.index)
    rows = rows.drop(columns="run").join(told_of).rename(columns={"name": "run"})
    return runs, rows[[*COLUMNS, "run"]]


def _order(run: ReportedRun) -> tuple[Any, ...]:
    """As in the paper's tables; after them, parts that the paper does not have, by name."""
    structure, base, algorithm = run.parts
    places = (_place(base, BASES), _place(algorithm, ALGORITHMS))
    return run.stream, *places, structure, run.variant, run.seed, run.name


def _place(name: str, known: Mapping[str, str]) -> tuple[int, str]:
    return list(known).index(name) if name in known else len(known), name


def read_rows(path: Path, text: bytes) -> pd.DataFrame:
    """The rows of a file's text, as a table."""
    rows = _parsed(path, text)
    if tuple(rows.columns) == OLD_COLUMNS:
        rows = _upgraded(rows)
    if tuple(rows.columns) != COLUMNS:
        raise LoadError(f"{path} has the columns {', '.join(rows.columns)}; expected {', '.join(COLUMNS)}")
    return rows


def _parsed(path: Path, text: bytes) -> pd.DataFrame:
    numbers = {"run": int, "seed": int, "epoch": int, "component": "Int64", "depth": "Int64", "value": float}
    kinds: dict[str, Any] = dict.fromkeys(COLUMNS, str) | numbers
    empty = {"value": ["", "nan"], "component": [""], "depth": [""]}
    try:
        return pd.read_csv(io.BytesIO(text), dtype=kinds, keep_default_na=False, na_values=empty)
    except ValueError as error:  # pandas' own errors are ValueErrors, too
        raise LoadError(f"{path} is no file of rows: {error}") from error


def _upgraded(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of version 0.1 with today's columns. Each metric's name is upgraded once: there are few."""
    names, codes = np.unique(rows["metric"].to_numpy(str), return_inverse=True)
    columns = ["metric", "component", "depth"]
    upgraded = pd.DataFrame([upgrade({"metric": name}) for name in names.tolist()], columns=columns).iloc[
        codes
    ]
    for name in ("component", "depth"):
        upgraded[name] = pd.to_numeric(upgraded[name]).astype("Int64")
    return rows.drop(columns="metric").join(upgraded.set_index(rows.index))[list(COLUMNS)]
