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
from typing import Any

from piaget.evaluation import Row

BASES = {"er": "ER", "ewc": "EWC", "nft": "NFT", "fm": "FM"}
ALGORITHMS = {
    "dynamic": "Dyn. + Comp.",
    "compositional": "Compositional",
    "joint": "Joint",
    "no-components": "No Comp.",
}


@dataclass(frozen=True)
class Line:
    """One method on one stream, in percent. `paper`: mean and standard error, if it has it."""

    stream: str
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
    text = files("piaget.lab").joinpath("paper.json").read_text()
    return json.loads(text)["soft-ordering"]


def final_by_seed(rows: Iterable[Row]) -> dict[tuple[str, str], dict[int, float]]:
    """{(stream, method): {seed: mean over tasks of the last test accuracy}}."""
    last: dict[tuple[str, str, int, str], float] = {}
    for row in rows:
        if row["split"] == "test" and row["metric"] == "accuracy":
            last[row["stream"], row["method"], row["seed"], row["evaluated"]] = row["value"]
    grouped: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (stream, method, seed, _), value in last.items():
        grouped[stream, method][seed].append(value)
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
    for (stream, method), seeds in final_by_seed(rows).items():
        structure, base, algorithm = method.split("/")
        mean, error = mean_and_error([100 * value for value in seeds.values()])
        known = paper().get(stream, {}) if structure in ("soft-ordering", "monolithic") else {}
        reported = known.get(base, {}).get(algorithm)
        found.append(
            Line(stream, base, algorithm, len(seeds), mean, error, tuple(reported) if reported else None)
        )
    bases, algorithms = list(BASES), list(ALGORITHMS)
    return sorted(found, key=lambda l: (l.stream, bases.index(l.base), algorithms.index(l.algorithm)))


def with_error(mean: float, error: float) -> str:
    return f"{mean:.1f}" if math.isnan(error) else f"{mean:.1f} ± {error:.1f}"


def markdown(table: list[Line]) -> str:
    """The table as Markdown."""
    text = [
        "| stream | base | algorithm | seeds | accuracy | paper | difference in joint s.e. |",
        "|---|---|---|---|---|---|---|",
    ]
    for line in table:
        reported = with_error(*line.paper) if line.paper else ""
        off = "" if math.isnan(line.off) else f"{line.off:+.1f}"
        text.append(
            f"| {line.stream} | {BASES[line.base]} | {ALGORITHMS[line.algorithm]} | {line.seeds} | "
            f"{with_error(line.mean, line.error)} | {reported} | {off} |"
        )
    return "\n".join(text) + "\n"
