"""How well tasks are inferred, by each method: python -m benchmarks.inference [--streams ...] [--seeds 0-4]

A learner is trained on all but the last fifth of a stream's tasks, with short epochs, and few samples where
data is large (`CASES`): what is compared is inference, not how good a learner can become. Then each method
notes what it needs of the learned tasks, and is asked about test samples of all tasks. The last fifth are
unknown tasks.

The table is that of docs/inference.md. Without data in PIAGET_DATA, give `--streams objects digits`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import piaget
from piaget.cli.common import seed_list
from piaget.errors import DataNote, TaskError
from piaget.files import write_atomically
from piaget.knowledge.noting import HELD
from piaget.method.inference import INFERENCES
from piaget.scoring.rows import FALSE_ALARMS, IN_TENS, TASK_INFERRED, UNKNOWN_AUC, UNKNOWN_NOTICED

Found = dict[str, dict[str, dict[str, dict[str, float]]]]  # {stream: {seed: {method: {metric: value}}}}
METHODS = [name for name, part in INFERENCES.items() if part.notes]


@dataclass(frozen=True)
class Case:
    """A stream as it is cut here, and what is not the paper's in how it is learned."""

    options: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    names_classes: bool = True  # do labels say what an input is, so that tasks that share one are ambiguous?
    score: str = "accuracy"


CASES = {
    "objects": Case({}, {"epochs": 20}),
    "digits": Case({}, {"epochs": 20}),
    "mnist": Case({"train_size": 1000}, {"epochs": 5}),
    "fashion": Case({"train_size": 1000}, {"epochs": 5}),
    "cub": Case({"features": "resnet18_approx"}, {"epochs": 10}),
    "combined": Case({"features": "resnet18_approx"}, {"epochs": 2}),
    # Fewer channels than the paper's 53 and 50, or an epoch takes minutes.
    "omniglot": Case({"tasks": 10}, {"epochs": 10, "channels": 8}, names_classes=False),
    "cifar100": Case({"tasks": 10}, {"epochs": 20, "channels": 16}),
    "landmine": Case({}, {"epochs": 500}, names_classes=False),
    "schools": Case({}, {"epochs": 100}, names_classes=False, score="rmse"),
}
SCORE = "SCORE"  # stands for the stream's own
COLUMNS = {
    TASK_INFERRED: "task inferred",
    IN_TENS: "in tens",
    SCORE: "score, task named",
    f"{SCORE} with {TASK_INFERRED}": "inferred",
    f"{SCORE} with {IN_TENS}": "inferred in tens",
    FALSE_ALARMS: "false alarms",
    UNKNOWN_NOTICED: "unknown noticed",
    UNKNOWN_AUC: "unknown AUC",
}


def bounds(tasks: Sequence[piaget.Task]) -> tuple[float, float]:
    """How often a task can be inferred by one who knows each input's class, and nothing else that would tell
    tasks apart: from one input, and from so many that all classes of the task are among them."""
    shares: dict[Any, list[float]] = {}
    for task in tasks:
        assert task.test is not None
        for number, label in enumerate(task.labels or ()):
            shares.setdefault(label, []).append(float((task.test.y == number).double().mean()))
    alike = len({frozenset(task.labels or ()) for task in tasks})
    return sum(map(max, shares.values())) / len(tasks), alike / len(tasks)


def measure(stream: str, seed: int, methods: Sequence[str]) -> dict[str, dict[str, float]]:
    """{method: {metric: mean over tasks}}; under "bound", what cannot be exceeded."""
    case = CASES[stream]
    cut = piaget.stream(stream, seed=seed, **case.options)
    tasks = [cut[i] for i in range(len(cut))]
    known = tasks[: len(tasks) - max(2, len(tasks) // 5)]
    learner = piaget.Learner.for_stream(cut, seed=seed, **case.settings)
    assert isinstance(learner, piaget.Learner)
    for task in known:
        learner.learn(task)
    found: dict[str, dict[str, float]] = {}
    if case.names_classes:
        found["bound"] = dict(zip((TASK_INFERRED, IN_TENS), bounds(known), strict=True))
    for method in methods:
        try:
            learner.note_inputs(known, method)
        except TaskError:  # outputs of a regression do not tell how sure it is
            continue
        rows = learner.evaluate(tasks, infer=True)
        found[method] = {}
        for column in COLUMNS:
            metric = column.replace(SCORE, case.score)
            found[method][column] = statistics.fmean(row["value"] for row in rows if row["metric"] == metric)
        notes = [record.note or {} for record in learner.state.records.values()]
        sizes = [sum(t.numel() * t.element_size() for n, t in note.items() if n != HELD) for note in notes]
        found[method]["kB"] = statistics.fmean(sizes) / 1000
    return found


def cell(values: Sequence[float], scale: float = 100) -> str:
    """Mean and standard error, times `scale`: shares are shown in %."""
    if not values:
        return ""
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else None
    mean = f"{scale * statistics.fmean(values):.1f}"
    return mean if error is None else f"{mean} ± {scale * error:.1f}"


def table(found: Found) -> str:
    """As Markdown."""
    lines = ["| stream | method | " + " | ".join(COLUMNS.values()) + " | kB a task |"]
    lines.append("|---|---|" + "---:|" * (len(COLUMNS) + 1))
    for stream, by_seed in found.items():
        seeds = list(by_seed.values())
        for method in seeds[0]:
            cells = []
            for name in COLUMNS:
                values = [one[method][name] for one in seeds if name in one[method]]
                cells.append(cell(values, 1 if SCORE in name and CASES[stream].score == "rmse" else 100))
            size = seeds[0][method].get("kB")
            cells.append("" if size is None else f"{size:.1f}")
            lines.append(f"| {stream} | {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--streams", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--seeds", type=seed_list, default=[0, 1, 2, 3, 4], metavar="LIST")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all numbers there, and go on with it")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", DataNote)
    there = options.json is not None and options.json.is_file()
    found: Found = json.loads(options.json.read_text()) if there else {}
    for stream in options.streams:
        for seed in map(str, options.seeds):
            if seed in found.setdefault(stream, {}):
                continue
            found[stream][seed] = measure(stream, int(seed), options.methods)
            print(f"{stream}, seed {seed}", file=sys.stderr, flush=True)
            if options.json:
                write_atomically(options.json, json.dumps(found, indent=1).encode())
    print(table(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
