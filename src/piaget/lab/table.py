"""The table of final accuracies, beside the paper's."""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from piaget.scoring.rows import Row

BASES = {"er": "ER", "ewc": "EWC", "nft": "NFT", "fm": "FM"}
ALGORITHMS = {
    "dynamic": "Dyn. + Comp.",
    "compositional": "Compositional",
    "joint": "Joint",
    "no-components": "No Comp.",
}
UNITS = {"accuracy": "accuracy in %", "rmse": "rmse"}


@dataclass(frozen=True)
class Line:
    """One method on one stream: accuracy in percent, or rmse. `paper`: mean and standard error, if any."""

    stream: str
    metric: str
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


@cache
def paper() -> dict[str, Any]:
    """The paper's numbers: {structure: {stream: {base: {algorithm: (mean, standard error)}}}}."""
    return json.loads(files("piaget.lab").joinpath("paper.json").read_text())


def reported(structure: str, stream: str, base: str, algorithm: str) -> tuple[float, float] | None:
    """What the paper reports. Without components, the structure does not matter.

    A stream of other features ("cub/NAME") is set beside the paper's.
    """
    stream = stream.partition("/")[0]
    for name, streams in paper().items():
        if name == structure or (structure == "monolithic" and name != "source" and stream in streams):
            found = streams.get(stream, {}).get(base, {}).get(algorithm)
            return (found[0], found[1]) if found else None
    return None


def final_by_seed(rows: Iterable[Row]) -> dict[tuple[str, str, str], dict[int, float]]:
    """{(stream, method, metric): {seed: mean over tasks of the last test score}}."""
    last: dict[tuple[str, str, str, int, str], float] = {}
    for row in rows:
        if row["split"] == "test" and row["metric"] in ("accuracy", "rmse"):
            last[row["stream"], row["method"], row["metric"], row["seed"], row["evaluated"]] = row["value"]
    grouped: dict[tuple[str, str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (stream, method, metric, seed, _), value in last.items():
        grouped[stream, method, metric][seed].append(value)
    return {
        key: {seed: statistics.fmean(values) for seed, values in seeds.items()}
        for key, seeds in grouped.items()
    }


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """The mean and its standard error (nan for a single value)."""
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return statistics.fmean(values), error


def lines(rows: Iterable[Row]) -> list[Line]:
    """The table, ordered as the paper's."""
    found = []
    for (stream, method, metric), seeds in final_by_seed(rows).items():
        structure, base, algorithm = method.split("/")
        unit = 100 if metric == "accuracy" else 1
        mean, error = mean_and_error([unit * value for value in seeds.values()])
        known = reported(structure, stream, base, algorithm)
        found.append(Line(stream, metric, base, algorithm, len(seeds), mean, error, known))
    bases, algorithms = list(BASES), list(ALGORITHMS)
    return sorted(found, key=lambda l: (l.stream, bases.index(l.base), algorithms.index(l.algorithm)))


def with_error(mean: float, error: float, metric: str = "accuracy") -> str:
    digits = 1 if metric == "accuracy" else 2
    return f"{mean:.{digits}f}" if math.isnan(error) else f"{mean:.{digits}f} ± {error:.{digits}f}"


def markdown(table: list[Line]) -> str:
    """The table as Markdown."""
    text = [
        "| stream | base | algorithm | seeds | metric | piaget | paper | difference in joint s.e. |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for line in table:
        theirs = with_error(*line.paper, line.metric) if line.paper else ""
        off = "" if math.isnan(line.off) else f"{line.off:+.1f}"
        text.append(
            f"| {line.stream} | {BASES[line.base]} | {ALGORITHMS[line.algorithm]} | {line.seeds} | "
            f"{UNITS[line.metric]} | {with_error(line.mean, line.error, line.metric)} | {theirs} | {off} |"
        )
    return "\n".join(text) + "\n"
