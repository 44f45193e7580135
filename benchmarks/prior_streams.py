"""The prior over structures on the paper's linear streams, beside the methods in results/paper, seed by seed.

    python -m benchmarks.prior_streams            # landmine and schools, seeds 0 to 9: half a minute

A learner has the defaults for tables and nothing else. Needs PIAGET_DATA, and results/paper of this project.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import torch

import piaget
from piaget.lab.collection import COLUMNS, read_collection
from piaget.lab.final_table import mean_and_error

RESULTS = Path(__file__).parent.parent / "results" / "paper"
SEEDS = range(10)
ALGORITHMS = ("compositional", "joint", "no-components")  # the paper's, of linear models


class Metric(NamedTuple):
    """How a score is read."""

    sign: int  # 1: more is better
    scale: int  # shown times this
    digits: int


STREAMS = {
    "landmine": {"accuracy": Metric(1, 100, 2), "auc": Metric(1, 1, 3)},
    "schools": {"rmse": Metric(-1, 1, 2)},
}

Scores = dict[int, float]  # by seed


def ours(stream: str) -> tuple[dict[str, Scores], list[float]]:
    """Scores by metric, the mean over tasks; and the processor's seconds of each run."""
    scores: dict[str, Scores] = defaultdict(dict)
    seconds = []
    for seed in SEEDS:
        tasks = piaget.stream(stream, seed=seed)
        labels = None if tasks[0].kind == "regression" else [0, 1]
        start = time.process_time()
        learner = piaget.PriorLearner(labels=labels, seed=seed)
        learner.learn_all(tasks)
        seconds.append(time.process_time() - start)
        rows = learner.evaluate(tasks)
        for metric in STREAMS[stream]:
            values = [row["value"] for row in rows if row["metric"] == metric and row["split"] == "test"]
            scores[metric][seed] = statistics.fmean(values)
    return scores, seconds


def theirs(stream: str) -> dict[str, dict[str, Scores]]:
    """Of each method in results/paper: the same, after the last task."""
    collection = read_collection(RESULTS / stream)
    scores: dict[str, dict[str, Scores]] = defaultdict(lambda: defaultdict(dict))
    for run, lines in zip(collection.runs, collection.lines(), strict=True):
        final: dict[tuple[str, str], float] = {}  # of a metric and a task: the last one
        for line in lines:
            row = dict(zip(COLUMNS, line, strict=True))
            if row["split"] == "test" and row["metric"] in STREAMS[stream]:
                final[row["metric"], row["evaluated"]] = float(row["value"])
        for metric in STREAMS[stream]:
            values = [value for (name, _), value in final.items() if name == metric]
            if values:
                scores[run.method][metric][run.seed] = statistics.fmean(values)
    return scores


def table() -> str:
    """Markdown: the prior, the best of the paper's methods in the mean, and each task alone, paired."""
    lines = [
        "| stream | score | prior | best of the paper's | better by | alone | better by | s a run |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for stream, metrics in STREAMS.items():
        (found, seconds), others = ours(stream), theirs(stream)
        for name, metric in metrics.items():
            scores = {method: of[name] for method, of in others.items()}
            (alone,) = (method for method in scores if method.endswith("/alone"))
            of_paper = {
                m: metric.sign * statistics.fmean(s.values())
                for m, s in scores.items()
                if m.split("/")[-1] in ALGORITHMS
            }
            cells = [stream, name, _shown(metric, found[name].values())]
            for method in (max(of_paper, key=lambda m: of_paper[m]), alone):
                gains = [metric.sign * (found[name][seed] - scores[method][seed]) for seed in SEEDS]
                cells += [f"{_shown(metric, scores[method].values())} ({method})", _shown(metric, gains)]
            lines.append(f"| {' | '.join(cells)} | {statistics.fmean(seconds):.1f} |")
    return "\n".join(lines)


def _shown(metric: Metric, values: Iterable[float]) -> str:
    mean, error = mean_and_error([metric.scale * value for value in values])
    return f"{mean:.{metric.digits}f} ± {error:.{metric.digits}f}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(table())
