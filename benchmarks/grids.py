"""Growth to hundreds of tasks on the stream of grids: time, memory, components, old tasks, transfer.

    python -m benchmarks.grids --out results/grids                    # goes on where it stopped
    python -m benchmarks.grids --out results/grids --methods soft-ordering/er/dynamic --tasks 300
    python -m benchmarks.grids --out results/grids --draw docs/pictures/growth.png   # what is there

A method is a structure, an adaptation and an algorithm, by the names that `piaget.Learner` takes; `--set`
gives further settings, and `--label` another name for a method with them. Each method and seed has a folder:

    setting.json  how it was made
    tasks.csv     of each task: processor seconds to learn it, memory, components, accuracy just learned
    scores.csv    now and then: the accuracy on every task so far
    few.csv       of each few-shot task: its accuracy, learned by a copy of the learner after training
    learner/      the learner, kept every few tasks

Processor time is of the learning alone: evaluating every past task takes longer with each, and is not part
of learning.
"""

from __future__ import annotations

import argparse
import copy
import csv
import io
import json
import resource
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

import piaget
from benchmarks.grid_figures import Line, draw, measured, read, table
from piaget.files import write_atomically
from piaget.method.choices import parse
from piaget.method.trees import leaves
from piaget.scoring.rows import Row
from piaget.streams.grids import FEW_SHOT, TRAINING, Grids

METHODS = (
    "soft-ordering/er/dynamic",
    "soft-ordering/fm/dynamic",
    "monolithic/er/no-components-frozen",  # no-components trains every past encoder in every step
    "alone/fm/alone",
)
SETTINGS: dict[str, Any] = {
    "epochs": 20,
    "initial_epochs": 60,
    "batch_size": 64,
    "learning_rate": 3e-3,
    "dropout": 0.0,
    "replay_size": 8,
    "compile": "never",  # else some tasks take longer than others
}
TEST_EPOCHS = 100  # of few-shot tasks, whose samples fit one batch: about as many steps as of others
KEEP_EVERY, SCORE_EVERY = 10, 25  # tasks


def accuracies(rows: Iterable[Row]) -> dict[str, float]:
    """The last test accuracy of each task."""
    return {row["evaluated"]: row["value"] for row in rows if row["metric"] == "accuracy"}


def held(learner: piaget.Learner) -> float:
    """Megabytes of all that the learner knows."""
    state = learner.state
    trees: list[Any] = [state.components, state.moments, state.shared, state.shared_moments, state.memory]
    trees += [record.params for record in state.records.values()]
    trees += list(state.past_moments.values())
    return sum(t.numel() * t.element_size() for tree in trees for t in leaves(tree)) / 2**20


class Run:
    """One method and seed, in its folder."""

    def __init__(self, folder: Path, stream: Grids, setting: dict[str, Any], stop: int | None) -> None:
        self.folder, self.stream, self.setting = folder, stream, setting
        training = [i for i, planned in enumerate(stream.plan) if planned.part == TRAINING]
        self.training = training[:stop]
        few = range(len(training), len(stream))
        each = len(few) // len(FEW_SHOT)
        self.tests = [
            i
            for i in sorted(few, key=lambda i: (i - len(training)) % max(1, each))  # parts take turns
            if (stream.plan[i].base or 0) < len(self.training)  # made from a task that was learned
        ]
        folder.mkdir(parents=True, exist_ok=True)
        there = folder / "setting.json"
        if there.exists() and json.loads(there.read_text()) != setting:
            raise SystemExit(f"{folder} has another setting: {there.read_text()}; expected {setting}")
        there.write_text(json.dumps(setting, indent=1) + "\n")

    def new(self, **settings: Any) -> piaget.Learner:
        """A learner that knows nothing. settings: others than the run's."""
        structure, adaptation, algorithm = self.setting["method"].split("/")
        settings = self.setting["settings"] | settings
        return piaget.Learner(structure, adaptation, algorithm, seed=self.setting["seed"], **settings)

    def learner(self) -> piaget.Learner:
        """The one that was kept, or a new one."""
        if (self.folder / "learner" / "learner.json").exists():
            return piaget.Learner.load(self.folder / "learner")
        return self.new()

    def train(self) -> None:
        learner = self.learner()
        learner.tasks_in_all = len(self.training)
        known = {*learner.tasks, *learner.pending}
        done = len(known)
        tasks = [line for line in read(self.folder / "tasks.csv") if int(line["number"]) < done]
        scores = [line for line in read(self.folder / "scores.csv") if int(line["after"]) <= done]
        for i in self.training[done:]:
            task = self.stream[i]
            start = time.process_time()
            rows = learner.learn(task)
            seconds = time.process_time() - start
            tasks.append(
                {
                    "number": i,
                    "task": task.name,
                    "seconds": f"{seconds:.4f}",
                    "held": f"{held(learner):.4f}",
                    "peak": f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.1f}",
                    "components": learner.components,
                    "accuracy": accuracies(rows).get(task.name, ""),
                }
            )
            last = i == self.training[-1]
            if (i + 1) % SCORE_EVERY == 0 or last:
                on = (self.stream[j] for j in self.training[: i + 1])
                found = accuracies(learner.evaluate(list(on)))
                scores += [{"after": i + 1, "task": name, "accuracy": a} for name, a in found.items()]
            if (i + 1) % KEEP_EVERY == 0 or last:
                write(self.folder / "tasks.csv", tasks)
                write(self.folder / "scores.csv", scores)
                learner.save(self.folder / "learner")
                print(
                    f"{self.folder.parent.name}: {i + 1} tasks, {learner.components} components", flush=True
                )

    def test(self) -> None:
        """Few-shot tasks, each by a copy of the learner: none has learned another."""
        lines = read(self.folder / "few.csv")
        done = {line["task"] for line in lines}
        trained = self.learner()
        for i in self.tests:
            task, planned = self.stream[i], self.stream.plan[i]
            if task.name in done:
                continue
            learner = self.new(epochs=TEST_EPOCHS)
            learner.state = copy.deepcopy(trained.state)
            accuracy = accuracies(learner.learn(task))[task.name]
            lines.append(
                {
                    "task": task.name,
                    "part": planned.part,
                    "accuracy": accuracy,
                    "chance": 1 / task.classes,
                    "new": learner.components - trained.components,
                }
            )
            write(self.folder / "few.csv", lines)


def write(path: Path, lines: Sequence[Line]) -> None:
    """Whole or not at all."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]) if lines else [])
    writer.writeheader()
    writer.writerows(lines)
    write_atomically(path, text.getvalue().encode())


def setting(value: str) -> tuple[str, Any]:
    """NAME=VALUE"""
    name, _, text = value.partition("=")
    return name, parse(text)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--methods", nargs="+", default=METHODS, metavar="STRUCTURE/ADAPTATION/ALGORITHM")
    parser.add_argument("--label", help="what one method with other settings is called")
    parser.add_argument("--set", nargs="+", type=setting, default=[], metavar="NAME=VALUE")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--stop", type=int, help="after so many of the tasks, and test then")
    parser.add_argument("--tests", type=int, default=10, help="few-shot tasks of each part")
    parser.add_argument("--shots", type=int, default=10)
    parser.add_argument("--glyphs", default="digits")
    parser.add_argument("--draw", type=Path, help="only draw what is there, into this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.draw is not None:
        methods = measured(options.out)
        draw(methods, options.draw)
        print(table(methods))
        return
    if options.label and len(options.methods) > 1:
        parser.error("--label is of one method")
    cut = {name: getattr(options, name) for name in ("tasks", "tests", "shots", "glyphs")}
    for seed in options.seeds:
        stream = piaget.stream("grids", seed, **cut)
        assert isinstance(stream, Grids)
        for method in options.methods:
            adaptation = method.split("/")[1]
            settings = {n: v for n, v in SETTINGS.items() if n != "replay_size" or adaptation == "er"}
            described = {
                "method": method,
                "seed": seed,
                "stream": cut,
                "settings": settings | dict(options.set),
            }
            label = options.label or method.replace("/", " ")
            run = Run(options.out / label / f"seed-{seed}", stream, described, options.stop)
            run.train()
            run.test()


if __name__ == "__main__":
    main()
