"""A report as plain data, for the page (data.py)."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import piaget
from piaget.lab.table import ALGORITHMS, BASES
from piaget.report import metrics, page_data as data
from piaget.report.contents import Contents
from piaget.report.explorer import rounded
from piaget.report.forms import Table
from piaget.report.groups import Group
from piaget.report.statistics import spread

POINTS = 300  # of a learning curve, at most


class Describer:
    """`place`: the folder in which the page will be."""

    def __init__(self, contents: Contents, place: Path) -> None:
        self.contents, self.place = contents, place
        keys = dict.fromkeys((one.method, one.label) for one in contents.groups)
        self.methods = list(keys)
        runs = [run for one in contents.groups for run in one.runs]
        self.positions = {run.name: i for i, run in enumerate(runs)}

    def report(
        self,
        made: Sequence[Table],
        explorers: Sequence[tuple[str, data.Explorer]],
        *,
        title: str,
        command: str,
    ) -> data.Report:
        for name, explorer in explorers:
            explorer["run"] = self.positions[name]
        return data.Report(
            title=title,
            made=datetime.date.today().isoformat(),
            version=piaget.__version__,
            command=command,
            notes=list(self.contents.results.notes),
            streams=[self.stream(name) for name in self.contents.streams],
            methods=[self.method(*key) for key in self.methods],
            runs=[run for one in self.contents.groups for run in self.runs(one)],
            curves=[curve for one in self.contents.groups if (curve := self.curve(one)) is not None],
            tables=[self.table(table) for table in made],
            explorers=[explorer for _, explorer in explorers],
            paper=self.paper(),
        )

    def position(self, one: Group) -> tuple[int, int]:
        stream = self.contents.streams.index(one.stream)
        return stream, self.methods.index((one.method, one.label))

    def stream(self, name: str) -> data.Stream:
        one = self.contents.on(name)[0][1]
        return data.Stream(
            name=name, metric=one.metric, unit=one.unit_name, higher_is_better=one.higher_is_better
        )

    def method(self, name: str, label: str) -> data.Method:
        structure, base, algorithm = name.split("/")
        return data.Method(
            name=name,
            structure=structure,
            base=BASES.get(base, base),
            algorithm=ALGORITHMS.get(algorithm, algorithm),
            variant=label.partition(" [")[2].removesuffix("]"),
            label=label,
        )

    def runs(self, one: Group) -> list[data.Run]:
        contents, (stream, method) = self.contents, self.position(one)
        found = []
        for run in one.runs:
            table = contents.rows_of(run.name)
            lines = metrics.after(table)
            tasks = list(lines.drop_duplicates("evaluated").sort_values("j")["evaluated"])
            counts = metrics.components(table)
            told = run.description
            found.append(
                data.Run(
                    stream=stream,
                    method=method,
                    seed=run.seed,
                    status=run.status,
                    folder=str(run.folder),
                    link=_link(run.folder / "run.json", self.place),
                    command=run.command,
                    reference=self.positions.get(contents.references.get(run.name, "")),
                    configuration=run.configuration,
                    seconds=(told.get("seconds") or 0) / len(told.get("together") or [0]) or None,
                    steps=told.get("steps"),
                    memory=told.get("peak_memory"),
                    components=float(counts.iloc[0]) if len(counts) and run.has_components else None,
                    tasks=tasks,
                    after=_after(lines, len(tasks), one.unit),
                    structures=self.structures(run.name, tasks),
                    candidates=self.candidates(run.name, tasks, one.unit),
                    removed=self.removed(run.name, tasks, one.unit),
                )
            )
        return found

    def structures(self, run: str, tasks: Sequence[str]) -> list[list[list[float]]] | None:
        found = dict(self.contents.weights(run))
        if not found:
            return None
        return [np.round(found[task], 3).tolist() if task in found else [] for task in tasks]

    def candidates(self, run: str, tasks: Sequence[str], unit: float) -> list[data.Candidate]:
        own = self.contents.candidates_of(run)
        return [
            data.Candidate(
                task=tasks.index(line.trained),
                with_it=round(line.with_it * unit, 2),
                without=round(line.without * unit, 2),
                kept=bool(line.kept),
            )
            for line in own.itertuples()
            if line.trained in tasks and np.isfinite([line.with_it, line.without]).all()
        ]

    def removed(self, run: str, tasks: Sequence[str], unit: float) -> list[list[data.Number]] | None:
        own = self.contents.removals_of(run)
        if own.empty:
            return None
        wide = own.pivot_table(index="evaluated", columns="component", values="value", aggfunc="last") * unit
        return _rows(wide.reindex(index=list(tasks)))

    def curve(self, one: Group) -> data.Curve | None:
        """Only where tasks were evaluated while they were learned."""
        if not one.counted:
            return None
        found = self.contents.mean_curves(one)
        if len(found) <= len(found.columns) + 1:
            return None
        thin = found.iloc[spread(len(found), POINTS)]
        run = one.first
        lengths = self.contents.epochs_of(run)
        stream, method = self.position(one)
        return data.Curve(
            stream=stream,
            method=method,
            seeds=len(one.counted),
            epochs=[int(at) for at in thin.index],
            starts=np.concatenate([[0], np.cumsum(lengths)[:-1]]).tolist(),
            scores=_rows(thin.T),
        )

    def table(self, table: Table) -> data.Table:
        about = [None if i is None else self.position(self.contents.groups[i]) for i in table.groups]
        return data.Table(
            id=table.name,
            title=table.title,
            caption=table.caption,
            columns=table.columns,
            rows=[[cell.text for cell in row] for row in table.rows],
            best=[(i, j) for i, row in enumerate(table.rows) for j, cell in enumerate(row) if cell.best],
            stream=[None if one is None else one[0] for one in about],
            method=[None if one is None else one[1] for one in about],
        )

    def paper(self) -> list[tuple[int, int, float, float]]:
        return [(*self.position(one), *one.first.paper) for one in self.contents.groups if one.first.paper]


def _after(lines: pd.DataFrame, tasks: int, unit: float) -> list[list[data.Number]]:
    """Row i: scores after task i; empty where nothing was evaluated then."""
    wide = lines.pivot_table(index="i", columns="j", values="value", aggfunc="last") * unit
    rows = _rows(wide.reindex(index=range(tasks), columns=range(tasks)))
    return [[] if all(value is None for value in row) else row for row in rows]


def _rows(wide: pd.DataFrame) -> list[list[Any]]:
    return [[rounded(float(value)) for value in row] for row in wide.to_numpy()]


def _link(path: Path, place: Path) -> str | None:
    try:
        return Path(os.path.relpath(path.resolve(), place.resolve())).as_posix()
    except ValueError:  # another drive
        return None
