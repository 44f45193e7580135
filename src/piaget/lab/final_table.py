"""The table of final performance, beside the paper's."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from piaget.paper.names import ALGORITHMS, BASES, UNITS
from piaget.paper.results import reported
from piaget.scoring.rows import Row, final_performance, final_scores

COLUMNS = ("stream", "structure", "base", "algorithm", "seeds", "metric", "piaget", "paper")


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
            "base": BASES.get(self.base, self.base),
            "algorithm": ALGORITHMS.get(self.algorithm, self.algorithm),
            "seeds": str(self.seeds),
            "metric": UNITS[self.metric],
            "piaget": with_error(self.mean, self.error, self.metric),
            "paper": with_error(*self.paper, self.metric) if self.paper else "",
        }


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error; nan where there are too few values, or one is not a number."""
    if not values or not all(map(math.isfinite, values)):
        return math.nan, math.nan
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return statistics.fmean(values), error


def with_error(mean: float, error: float, metric: str = "accuracy") -> str:
    """ "91.8 ± 0.6": accuracies with one digit, errors with two."""
    digits = 1 if metric == "accuracy" else 2
    return f"{mean:.{digits}f}" if math.isnan(error) else f"{mean:.{digits}f} ± {error:.{digits}f}"


def lines(rows: Iterable[Row]) -> list[Line]:
    """The table of all runs that the rows are of, ordered as the paper's, with one's own methods behind."""
    runs: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        runs.setdefault((row["stream"], row["method"], row["seed"]), []).append(row)
    finals: dict[tuple[str, str, str], list[float]] = {}
    for (stream, method, _), own_rows in runs.items():
        if final := final_performance(final_scores(own_rows)):
            metric, value = final
            finals.setdefault((stream, method, metric), []).append(value)
    table = []
    for (stream, method, metric), values in finals.items():
        structure, base, algorithm = method.split("/")
        unit = 100 if metric == "accuracy" else 1
        mean, error = mean_and_error([unit * value for value in values])
        paper = reported(structure, stream, base, algorithm)
        table.append(Line(stream, metric, structure, base, algorithm, len(values), mean, error, paper))
    return sorted(table, key=_place)


def _place(line: Line) -> tuple[Any, ...]:
    """The paper's methods first, in its order."""
    bases, algorithms = list(BASES), list(ALGORITHMS)
    base = bases.index(line.base) if line.base in bases else len(bases)
    algorithm = algorithms.index(line.algorithm) if line.algorithm in algorithms else len(algorithms)
    return line.stream, base, line.base, algorithm, line.algorithm


def columns(table: Sequence[Line]) -> list[str]:
    """Those that are of use: structures are told apart only if there are several."""
    structures = {line.structure for line in table if line.structure not in ("monolithic", "alone")}
    return [name for name in COLUMNS if name != "structure" or len(structures) > 1]


def escaped(text: str) -> str:
    """A text as Markdown shows it: names may be anything. (Inside a word, _ is only that.)"""
    return " ".join(re.sub(r"([\\`*<>|\[\]]|\b_|_\b|(?<=\W)_)", r"\\\1", text).split())


def markdown(table: Sequence[Line]) -> str:
    """The table as Markdown."""
    names = columns(table)
    text = [f"| {' | '.join(names)} | difference in joint s.e. |", "|---" * (len(names) + 1) + "|"]
    for line in table:
        cells = line.cells()
        off = "" if math.isnan(line.off) else f"{line.off:+.1f}"
        text.append(f"| {' | '.join(escaped(cells[name]) for name in names)} | {off} |")
    return "\n".join(text) + "\n"
