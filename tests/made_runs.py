"""Run folders with made-up rows: nothing is trained."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from piaget.files import write_json
from piaget.lab.configuration import configure
from piaget.lab.row_file import HEADER, as_csv
from piaget.paper.defaults import structure_of
from piaget.scoring.rows import (
    CONSISTENCY,
    EXPANSION,
    FALSE_ALARMS,
    IN_TENS,
    INFERENCE,
    REMOVAL,
    STRUCTURE,
    TAKEN_FOR,
    TASK_INFERRED,
    Row,
)

INITIAL = 4
Score = Callable[[int, int], float]  # of the j-th task after the i-th was learned


def rows_of(
    stream: str,
    method: str,
    seed: int,
    score: Score,
    tasks: int = 6,
    *,
    metric: str = "accuracy",
    epochs: int = 100,
    every: int | None = None,
    components: int = 4,
    depth: int = 4,
    kept: Sequence[int] = (),
    needed: Callable[[int, int], bool] = lambda j, c: True,
    names: Sequence[str] = (),
    majority: float | None = None,
    taken: Callable[[int, int], float] | None = None,
) -> list[Row]:
    """All rows of a run. kept: tasks with which a component came; needed: does task j need component c?
    majority: the accuracy of every task's most frequent class. taken: the share of task i's inputs that are
    taken for those of task j; the rest, for those of none."""
    names = names or [f"{stream.partition('/')[0]}-{j:02}" for j in range(tasks)]
    first = min(INITIAL, tasks) - 1
    rows: list[Row] = []

    def add(trained: str, epoch: int, stage: str, measure: str, value: float, **more: Any) -> None:
        about = {"evaluated": "", "split": "", "component": None, "depth": None} | more
        row: Any = {"stream": stream, "method": method, "seed": seed, "trained": trained, "epoch": epoch}
        row |= {"stage": stage, "metric": measure, "value": value} | about
        ordered: Any = {name: row[name] for name in Row.__annotations__}
        rows.append(ordered)

    structured = not method.startswith(("monolithic", "alone"))
    count = components
    for i in range(first, tasks):
        stage = "initialization" if i == first else "adaptation"
        if structured and "dynamic" in method and i > first:
            for measure, value in {"with candidate": 0.9, "without candidate": 0.8}.items():
                add(names[i], epochs, EXPANSION, f"{metric} {measure}", value, evaluated=names[i])
            add(names[i], epochs, EXPANSION, "kept", float(i in kept), evaluated=names[i])
            count += i in kept
        for epoch in [*(range(every, epochs, every) if every else ()), epochs]:
            for j in range(i + 1):
                learned = score(i, j) * (epoch / epochs if j == i else 1.0)
                add(names[i], epoch, stage, metric, learned, evaluated=names[j], split="test")
                add(names[i], epoch, stage, "loss", 1 - learned, evaluated=names[j], split="test")
            add(names[i], epoch, stage, "components", float(count))
    for name in names if majority is not None else ():
        add(name, epochs, "evaluation", "majority", majority or 0.0, evaluated=name, split="test")
    for i in range(tasks) if taken is not None else ():
        shares = [taken(i, j) for j in range(tasks)] if taken is not None else []
        told = {TASK_INFERRED: shares[i], IN_TENS: 1.0, FALSE_ALARMS: 1 - math.fsum(shares)}
        told |= {f"{metric} with {TASK_INFERRED}": 0.7}
        told |= {TAKEN_FOR.format(names[j]): share for j, share in enumerate(shares) if share}
        for measure, value in told.items():
            add(names[-1], epochs, INFERENCE, measure, value, evaluated=names[i], split="test")
    if not structured:
        return rows
    for j in range(tasks):
        final = score(tasks - 1, j)
        for c in range(count):
            for d in range(depth):
                weight = 1 / count + 1e-6 * (j - d)
                add(names[-1], epochs, STRUCTURE, "weight", weight, evaluated=names[j], component=c, depth=d)
            without = final * (0.8 if needed(j, c) else 1.0)
            about = {"evaluated": names[j], "split": "test", "component": c}
            add(names[-1], epochs, REMOVAL, f"{metric} without component", without, **about)
    for c in range(count):
        add(names[-1], epochs, CONSISTENCY, "consistency", 0.123456, component=c)
    return rows


def constant(level: float) -> Score:
    """The same for all tasks, at all times."""
    return lambda i, j: level


def write_run(
    out: Path,
    stream: str,
    method: str,
    seed: int,
    score: Score,
    *,
    options: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
    status: str = "done",
    epochs: int | None = None,
    every: int | None = None,
    parameters: int | None = None,
    **more: Any,
) -> Path:
    """A run's folder, as the lab writes it; the stream's rows are called as `stream` is."""
    structure, adaptation, algorithm = method.split("/")
    named, _, features = stream.partition("/")
    known = structure if structure not in ("monolithic", "alone") else structure_of(named)
    options = (options or {}) | ({"features": features} if features else {})
    asked: dict[str, Any] = {
        "stream": named,
        "options": options,
        "structure": known,
        "adaptation": adaptation,
    }
    configuration = configure(
        **asked, algorithm="compositional", epochs=epochs, every=every, settings=settings
    )
    if algorithm not in ("dynamic", "compositional"):
        configuration["settings"].pop("adapt_every", None)
    configuration |= {"algorithm": algorithm, "seed": seed}
    rows = rows_of(stream, method, seed, score, epochs=configuration["epochs"], every=every, **more)
    variant = "_".join(f"{name}-{value}" for name, value in {**options, **(settings or {})}.items())
    folder = out / stream.replace("/", "-") / f"{method.replace('/', '_')}_{variant}" / f"seed-{seed}"
    folder.mkdir(parents=True)
    (folder / "rows.csv").write_bytes(HEADER + as_csv(rows))
    write_json(
        folder / "run.json",
        {
            "configuration": configuration,
            "learner": {"depth": 4, "seed": seed},
            "data": {"a": f"{stream} {seed}"},
            "status": status,
            "error": None if status == "done" else "task 'a' diverged",
            "machine": {"system": "Linux", "processor": "x86_64", "cores": 2},
            "versions": {"piaget": "0.1.0", "torch": "2.13.0", "python": "3.11.7"},
            "commit": "abc",
            "data_dir": "/somewhere/else",
            "together": [seed],
            "seconds": 1.5,
            "steps": 10,
            "peak_memory": 1000,
            "parameters": parameters,
        },
    )
    return folder
