"""A report as plain data, for the page (page_data.py)."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import piaget
from piaget.lab.final_table import DIGITS
from piaget.paper.names import ALGORITHMS, in_words
from piaget.report import metrics, page_data as data
from piaget.report.ablation import Variation, variations
from piaget.report.alerts import alerts
from piaget.report.contents import Contents, filled, mean_use
from piaget.report.explorer import rounded
from piaget.report.first_look import Look, looks, overall
from piaget.report.forms import Cell, Table
from piaget.report.groups import Group
from piaget.report.inferred import by_task, confusion
from piaget.report.lives import Life
from piaget.report.reported_run import ReportedRun
from piaget.report.statistics import LEVEL, spread
from piaget.report.tables import cost_cells
from piaget.report.wording import today
from piaget.scoring.rows import FURTHER, IN_TENS, LOWER_IS_BETTER, MAJORITY, TASK_INFERRED

POINTS = 300  # of a learning curve, at most
EXACT = 6  # digits of numbers that the page takes means of


class Describer:
    """`place`: the folder in which the page will be."""

    def __init__(self, contents: Contents, place: Path) -> None:
        self.contents, self.place = contents, place
        self.methods = list(dict.fromkeys((group.method, group.label) for group in contents.groups))

    def report(
        self, tables: Sequence[Table], explorers: list[data.ExplorerData], *, title: str, command: str
    ) -> data.ReportData:
        contents, every = self.contents, looks(self.contents)
        costs = [run.costs for group in contents.groups for run in group.runs]
        time, _, memory = cost_cells(
            sum(seconds or 0 for seconds, *_ in costs), None, max(peak or 0 for *_, peak in costs)
        )
        return data.ReportData(
            title=title,
            date=today().isoformat(),
            version=piaget.__version__,
            command=command,
            notes=list(contents.results.notes),
            alerts=self.alerts(),
            overall=overall(every),
            looks=self.looks(every),
            total_time=time.text,
            most_memory=memory.text,
            streams=[self.stream(name) for name in contents.streams],
            methods=[self.method(*key) for key in self.methods],
            scores=self.scores(),
            runs=[self.run(group, run) for group in contents.groups for run in group.runs],
            curves=[curve for group in contents.counted if (curve := self.curve(group)) is not None],
            variations=[self.variation(one) for one in variations(contents)],
            tables=[self.table(table) for table in tables],
            explorers=explorers,
            paper=[
                (*self.position(group), *group.first.paper) for group in contents.groups if group.first.paper
            ],
        )

    def position(self, group: Group) -> tuple[int, int]:
        """Of its stream and its method."""
        stream = self.contents.streams.index(group.stream)
        return stream, self.methods.index((group.method, group.label))

    def stream(self, name: str) -> data.StreamData:
        group = self.contents.first_on(name)
        return data.StreamData(
            name=name,
            metric=group.metric,
            unit=group.unit_name,
            digits=group.digits,
            higher_is_better=group.higher_is_better,
        )

    def method(self, name: str, label: str) -> data.MethodData:
        algorithm = name.split("/")[2]
        return data.MethodData(
            name=name, algorithm=ALGORITHMS.get(algorithm, algorithm), label=label, words=in_words(name)
        )

    def scores(self) -> list[data.ScoreData]:
        there = set(self.contents.compute(metrics.further_scores)["metric"])
        return [
            data.ScoreData(name=name, digits=DIGITS[metric], higher_is_better=metric not in LOWER_IS_BETTER)
            for metric, name in FURTHER.items()
            if metric in there
        ]

    def run(self, group: Group, run: ReportedRun) -> data.RunData:
        contents, (stream, method) = self.contents, self.position(group)
        scores = contents.of(run.name, metrics.forgetting_ratio)
        tasks = list(scores["evaluated"])
        weights = contents.weights(run.name)
        time, steps, memory = map(_cell_data, cost_cells(*run.costs))
        count = contents.compute(metrics.components).get(run.name) if run.has_components else None
        size = max(map(len, weights.values()), default=0)
        return data.RunData(
            stream=stream,
            method=method,
            seed=run.seed,
            status=run.status,
            counted=run in group.counted,
            folder=str(run.folder),
            link=_link(run.disk.file, self.place),
            command=run.command,
            reference=contents.positions.get(contents.references.get(run.name, "")),
            configuration=run.configuration,
            time=time,
            steps=steps,
            memory=memory,
            components=None if count is None else float(count),
            tasks=tasks,
            first=_rounded(scores["first"] * group.unit, EXACT),
            final=_rounded(scores["final"] * group.unit, EXACT),
            ratio=_rounded(scores["ratio"], EXACT),
            further=self.further(run.name, tasks),
            majority=self.majority(run.name, tasks, group.unit),
            after=_after(contents.of(run.name, metrics.after), len(tasks), group.unit),
            structures=[np.round(weights.get(task, []), 3).tolist() for task in tasks] if weights else [],
            uses=[mean_use(weights[task]).round(EXACT).tolist() if task in weights else [] for task in tasks],
            lives=[_life(life) for life in contents.lives(run.name, tasks, size)],
            threshold=run.threshold,
            candidates=self.candidates(run.name, tasks, group.unit),
            reused=self.reused(run.name, tasks),
            inference=self.inference(run.name, tasks),
        )

    def further(self, run: str, tasks: Sequence[str]) -> dict[str, data.FurtherData]:
        lines = self.contents.of(run, metrics.further_scores)
        return {
            name: data.FurtherData(
                tasks=[tasks.index(task) for task in of_score["evaluated"]],
                first=_rounded(of_score["first"], EXACT),
                final=_rounded(of_score["final"], EXACT),
            )
            for metric, name in FURTHER.items()
            if len(of_score := lines[lines["metric"] == metric])
        }

    def majority(self, run: str, tasks: Sequence[str], unit: float) -> list[data.Number]:
        lines = self.contents.of(run, metrics.further_scores)
        known = lines[lines["metric"] == MAJORITY].set_index("evaluated")["final"]
        return _rounded(known.reindex(list(tasks)) * unit, EXACT)

    def candidates(self, run: str, tasks: Sequence[str], unit: float) -> list[data.CandidateData]:
        return [
            data.CandidateData(
                task=tasks.index(line.trained),
                with_it=round(line.with_it * unit, 2),
                without=round(line.without * unit, 2),
                gain=rounded(line.gain),
                kept=bool(line.kept),
            )
            for line in self.contents.of(run, metrics.candidates).itertuples()
            if line.trained in tasks and np.isfinite([line.with_it, line.without]).all()
        ]

    def reused(self, run: str, tasks: Sequence[str]) -> list[list[bool]]:
        removals = self.contents.of(run, metrics.removals)
        if removals.empty:
            return []
        places = {task: j for j, task in enumerate(tasks)}
        known = removals[removals["evaluated"].isin(places)]
        columns, values = known["component"].to_numpy(), known["reused"].to_numpy()
        shape = len(tasks), int(removals["component"].max()) + 1
        wide = filled(known["evaluated"].map(places).to_numpy(int), columns, values, shape)
        return (wide == 1).tolist()

    def inference(self, run: str, tasks: Sequence[str]) -> data.InferenceData | None:
        contents, shares = self.contents, 100 * confusion(self.contents, run, tasks)
        if not len(shares):
            return None
        known, others = (places.tolist() for places in np.nonzero(np.nan_to_num(shares[:, :-1])))
        return data.InferenceData(
            inferred=_rounded(100 * by_task(contents, run, TASK_INFERRED, tasks)),
            in_tens=_rounded(100 * by_task(contents, run, IN_TENS, tasks)),
            none=_rounded(shares[:, -1]),
            taken=[
                (int(i), int(j), round(float(shares[i, j]), 2)) for i, j in zip(known, others, strict=True)
            ],
        )

    def curve(self, group: Group) -> data.CurveData | None:
        """Only where tasks were evaluated while they were learned."""
        curves = self.contents.mean_curves(group)
        if len(curves) <= len(curves.columns) + 1:
            return None
        thin = curves.iloc[spread(len(curves), POINTS)]
        lengths = self.contents.epochs_of(group.first)
        stream, method = self.position(group)
        return data.CurveData(
            stream=stream,
            method=method,
            seeds=len(group.counted),
            epochs=[int(at) for at in thin.index],
            starts=np.concatenate([[0], np.cumsum(lengths)[:-1]]).tolist(),
            scores=[_rounded(scores) for _, scores in thin.items()],
        )

    def looks(self, every: Sequence[Look]) -> list[data.LookData]:
        return [
            data.LookData(
                stream=self.contents.streams.index(look.stream),
                answers=[
                    data.AnswerData(
                        question=answer.question,
                        tone=answer.tone,
                        headline=answer.headline,
                        basis=answer.basis,
                        evidence=list(answer.evidence),
                        links=list(answer.links),
                    )
                    for answer in look.answers
                ],
                limits=look.limits,
            )
            for look in every
        ]

    def alerts(self) -> list[data.AlertData]:
        places = self.contents.streams
        return [
            data.AlertData(kind=alert.kind, text=alert.text, stream=places.index(alert.stream))
            for alert in alerts(self.contents)
        ]

    def variation(self, one: Variation) -> data.VariationData:
        stream, method = self.position(one.group)
        low, high = one.test.interval
        return data.VariationData(
            stream=stream,
            method=method,
            reference=self.position(one.reference)[1],
            part=one.part,
            usual=one.usual,
            other=one.other,
            seeds=one.test.seeds,
            difference=round(one.test.mean, EXACT),
            low=round(low, EXACT),
            high=round(high, EXACT),
            p=round(one.test.p, EXACT),
            significant=one.test.p < LEVEL,
            components=rounded(one.components, EXACT),
            parameters=rounded(one.parameters, EXACT),
            time=rounded(one.time, EXACT),
        )

    def table(self, table: Table) -> data.TableData:
        """Without columns in which there is nothing."""
        about = [(None, None) if i is None else self.position(self.contents.groups[i]) for i in table.groups]
        kept = [c for c in range(len(table.columns)) if any(row[c].text for row in table.rows)]
        rows = [[row[c] for c in kept] for row in table.rows]
        return data.TableData(
            id=table.name,
            title=table.title,
            caption=table.caption,
            columns=[table.columns[c] for c in kept],
            rows=[[_text_or_data(cell) for cell in row] for row in rows],
            best=[(i, j) for i, row in enumerate(rows) for j, cell in enumerate(row) if cell.best],
            stream=[stream for stream, _ in about],
            method=[method for _, method in about],
        )


def _life(life: Life) -> data.LifeData:
    return data.LifeData(born=life.born, left=life.left, into=life.into, component=life.component)


def _cell_data(cell: Cell) -> data.CellData:
    return data.CellData(text=cell.text, value=cell.value)


def _text_or_data(cell: Cell) -> str | data.CellData:
    """A cell that begins with a number is sorted by it; another unit in every row needs a value for that."""
    numeric = cell.value is None or re.fullmatch(r"[-+\d.,]+( ±.*| MB)?", cell.text)
    return cell.text if numeric else _cell_data(cell)


def _after(lines: pd.DataFrame, tasks: int, unit: float) -> list[list[data.Number]]:
    """Row i: scores after task i; empty where nothing was evaluated then."""
    places = lines["i"].to_numpy(), lines["j"].to_numpy()
    wide = filled(*places, lines["value"].to_numpy() * unit, (tasks, tasks))
    return [[] if np.isnan(row).all() else _rounded(row) for row in wide]


def _rounded(values: Any, digits: int = 2) -> list[data.Number]:
    return [rounded(float(value), digits) for value in values]


def _link(path: Path, place: Path) -> str | None:
    try:
        return Path(os.path.relpath(path.resolve(), place.resolve())).as_posix()
    except ValueError:  # another drive
        return None
