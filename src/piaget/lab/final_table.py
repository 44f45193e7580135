"""The table of final performance, beside the paper's."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from piaget.method.choices import SINGLE
from piaget.paper.names import ALGORITHMS, BASES, UNITS, base_name
from piaget.paper.results import reported
from piaget.scoring.rows import FURTHER, MAJORITY, Row, final_performance, final_scores, further_performance

METHOD = ("stream", "structure", "base", "algorithm", "seeds")
COLUMNS = (*METHOD, "metric", "piaget", "paper")
FURTHER_COLUMNS = (*METHOD, "accuracy", MAJORITY, *FURTHER.values())


class Further(NamedTuple):
    """A further score of one method on one stream, or the majority's accuracy in percent."""

    mean: float
    error: float
    seeds: int  # that it is known of
    tasks: int  # that have it: the fewest of all seeds


@dataclass(frozen=True)
class Line:
    """One method on one stream: accuracy in percent, or rmse. `paper`: mean and standard error, if any."""

    stream: str
    metric: str
    structure: str
    base: str
    algorithm: str
    seeds: int
    mean: float
    error: float
    paper: tuple[float, float] | None
    tasks: int = 0  # the fewest of all seeds
    further: dict[str, Further] = field(default_factory=dict)  # by metric, where tasks are classifications

    @property
    def off(self) -> float:
        """The difference to the paper in joint standard errors."""
        if self.paper is None:
            return math.nan
        joint = math.hypot(self.error, self.paper[1])
        return (self.mean - self.paper[0]) / joint if joint > 0 else math.nan

    def cells(self) -> dict[str, str]:
        """What a table shows, by its columns."""
        return {
            "stream": self.stream,
            "structure": self.structure,
            "base": base_name(self.base, self.algorithm),
            "algorithm": ALGORITHMS.get(self.algorithm, self.algorithm),
            "seeds": str(self.seeds),
            "metric": UNITS[self.metric],
            "piaget": with_error(self.mean, self.error, self.metric),
            "paper": with_error(*self.paper, self.metric) if self.paper else "",
            "accuracy": with_error(self.mean, self.error),
            MAJORITY: self._further(MAJORITY),
        } | {name: self._further(metric) for metric, name in FURTHER.items()}

    def _further(self, metric: str) -> str:
        """With how many tasks and seeds it is of, if not of all."""
        if (found := self.further.get(metric)) is None:
            return ""
        fewer = [f"{found.tasks} of {self.tasks} tasks"] if found.tasks < self.tasks else []
        fewer += [f"{found.seeds} of {self.seeds} seeds"] if found.seeds < self.seeds else []
        score = with_error(found.mean, found.error, "accuracy" if metric == MAJORITY else metric)
        return f"{score} ({', '.join(fewer)})" if fewer else score


DIGITS = {"accuracy": 1, "rmse": 2} | dict.fromkeys(FURTHER, 3)


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error; nan where there are too few values, or one is not a number."""
    if not values or not all(map(math.isfinite, values)):
        return math.nan, math.nan
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return statistics.fmean(values), error


def with_error(mean: float, error: float, metric: str = "accuracy") -> str:
    """ "91.8 ± 0.6": accuracies (in percent) with one digit, errors with two, further scores with three."""
    digits = DIGITS[metric]
    return f"{mean:.{digits}f}" if math.isnan(error) else f"{mean:.{digits}f} ± {error:.{digits}f}"


def lines(rows: Iterable[Row]) -> list[Line]:
    """The table of all runs that the rows are of, ordered as the paper's, with one's own methods behind."""
    runs: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        runs.setdefault((row["stream"], row["method"], row["seed"]), []).append(row)
    finals: dict[tuple[str, str, str], list[_Run]] = {}
    for (stream, method, _), own_rows in runs.items():
        scores = final_scores(own_rows)
        if final := final_performance(scores):
            metric, value = final
            tasks = sum(name == metric for name, _ in scores.values())
            one = _Run(value, tasks, further_performance(own_rows))
            finals.setdefault((stream, method, metric), []).append(one)
    return sorted((_line(*key, of_seeds) for key, of_seeds in finals.items()), key=_place)


class _Run(NamedTuple):
    final: float
    tasks: int  # that it is the mean of
    further: dict[str, tuple[float, int]]  # means, and of how many tasks


def _line(stream: str, method: str, metric: str, runs: Sequence[_Run]) -> Line:
    structure, base, algorithm = method.split("/")
    unit = 100 if metric == "accuracy" else 1
    mean, error = mean_and_error([unit * run.final for run in runs])
    further = {}
    for name in (MAJORITY, *FURTHER):
        if known := [run.further[name] for run in runs if name in run.further]:
            unit = 100 if name == MAJORITY else 1
            summary = mean_and_error([unit * value for value, _ in known])
            further[name] = Further(*summary, len(known), min(tasks for _, tasks in known))
    paper, tasks = reported(structure, stream, base, algorithm), min(run.tasks for run in runs)
    return Line(stream, metric, structure, base, algorithm, len(runs), mean, error, paper, tasks, further)


def _place(line: Line) -> tuple[Any, ...]:
    """The paper's methods first, in its order."""
    bases, algorithms = list(BASES), list(ALGORITHMS)
    base = bases.index(line.base) if line.base in bases else len(bases)
    algorithm = algorithms.index(line.algorithm) if line.algorithm in algorithms else len(algorithms)
    return line.stream, base, line.base, algorithm, line.algorithm


def columns(table: Sequence[Line], names: Sequence[str] = COLUMNS) -> list[str]:
    """Those that are of use: structures are told apart only if there are several."""
    structures = {line.structure for line in table if line.structure not in SINGLE}
    return [name for name in names if name != "structure" or len(structures) > 1]


def with_further(table: Sequence[Line]) -> list[Line]:
    """The lines that a second table is about, with FURTHER_COLUMNS: those with an AUC."""
    return [line for line in table if "auc" in line.further]


def escaped(text: str) -> str:
    """A text as Markdown shows it: names may be anything. (Inside a word, _ is only that.)"""
    return " ".join(re.sub(r"([\\`*<>|\[\]]|\b_|_\b|(?<=\W)_)", r"\\\1", text).split())


def markdown(table: Sequence[Line]) -> str:
    """The table as Markdown, and that of further scores."""
    names = columns(table)
    text = [f"| {' | '.join(names)} | difference in joint s.e. |", "|---" * (len(names) + 1) + "|"]
    for line in table:
        cells = line.cells()
        off = "" if math.isnan(line.off) else f"{line.off:+.1f}"
        text.append(f"| {' | '.join(escaped(cells[name]) for name in names)} | {off} |")
    if further := with_further(table):
        names = columns(further, FURTHER_COLUMNS)
        text += ["", f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
        text += [f"| {' | '.join(escaped(line.cells()[name]) for name in names)} |" for line in further]
    return "\n".join(text) + "\n"
