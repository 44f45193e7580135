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
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

import piaget
from benchmarks.command import ended
from benchmarks.grid_figures import Line, draw, measured, read, table
from piaget.cli.common import pair, positive
from piaget.errors import SettingError
from piaget.files import write_atomically
from piaget.method.choices import METHOD
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

    def check(self) -> None:
        """Raises an error if the learners cannot be made, or the folder is of another setting."""
        self.new()
        self.new(epochs=TEST_EPOCHS)
        there = self.folder / "setting.json"
        if not there.exists():
            return
        try:
            noted = dict(told(json.loads(there.read_text())))
        except (ValueError, AttributeError) as error:
            raise SettingError(f"{there} is damaged: {error}; give another --out") from error
        now = dict(told(self.setting))
        changed = [
            f"{name}: {noted.get(name, 'nothing')} there, {now.get(name, 'nothing')} now"
            for name in noted | now
            if noted.get(name) != now.get(name)
        ]
        if changed:
            raise SettingError(
                f"{self.folder} has another setting ({', '.join(changed)}); give a method with other "
                "settings another name by --label, or all of them another --out"
            )

    def begin(self) -> None:
        """Makes the folder, which says how it was made."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "setting.json").write_text(json.dumps(self.setting, indent=1) + "\n")

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


def told(setting: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """A setting's numbers by their names, those of the stream and of the learner among them."""
    for name, value in setting.items():
        if isinstance(value, dict):
            yield from told(value)
        else:
            yield name, value


def write(path: Path, lines: Sequence[Line]) -> None:
    """Whole or not at all."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]) if lines else [])
    writer.writeheader()
    writer.writerows(lines)
    write_atomically(path, text.getvalue().encode())


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """What the command is asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.grids",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--methods", nargs="+", type=method, default=METHODS, metavar="STRUCTURE/ADAPTATION/ALGORITHM"
    )
    parser.add_argument("--label", help="what one method with other settings is called")
    parser.add_argument("--set", nargs="+", type=pair, default=[], metavar="NAME=VALUE")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--stop", type=positive, help="after so many of the tasks, and test then")
    parser.add_argument("--tests", type=int, default=10, help="few-shot tasks of each part")
    parser.add_argument("--shots", type=int, default=10)
    parser.add_argument("--glyphs", default="digits")
    parser.add_argument("--draw", type=Path, help="only draw what is there, into this file")
    options = parser.parse_args(arguments)
    if options.label and len(options.methods) > 1:
        parser.error("--label is of one method")
    for name, _ in options.set:
        if name in (*METHOD, "seed"):
            parser.error(f"--set {name}: say it by {'--seeds' if name == 'seed' else '--methods'}")
    return options


def method(text: str) -> str:
    """STRUCTURE/ADAPTATION/ALGORITHM, whose names the learner checks."""
    if text.count("/") != 2:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not STRUCTURE/ADAPTATION/ALGORITHM, such as soft-ordering/er/dynamic"
        )
    return text


def runs(options: argparse.Namespace) -> list[Run]:
    """All that are asked for. Raises an error if one of them cannot be, before any of them is trained."""
    cut = {name: getattr(options, name) for name in ("tasks", "tests", "shots", "glyphs")}
    found = []
    for seed in options.seeds:
        stream = piaget.stream("grids", seed, **cut)
        assert isinstance(stream, Grids)
        for name in options.methods:
            adaptation = name.split("/")[1]
            settings = {n: v for n, v in SETTINGS.items() if n != "replay_size" or adaptation == "er"}
            described = {
                "method": name,
                "seed": seed,
                "stream": cut,
                "settings": settings | dict(options.set),
            }
            label = options.label or name.replace("/", " ")
            found.append(Run(options.out / label / f"seed-{seed}", stream, described, options.stop))
    for run in found:
        run.check()
    return found


def work(options: argparse.Namespace) -> None:
    """What was asked for: all runs, or a figure and a table of those that are there."""
    torch.set_num_threads(1)
    if options.draw is not None:
        methods = measured(options.out)
        draw(methods, options.draw)
        print(table(methods))
        return
    for run in runs(options):
        run.begin()
        run.train()
        run.test()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command, and its exit code."""
    options = options_of(arguments)
    return ended("benchmarks.grids", lambda: work(options))


if __name__ == "__main__":
    raise SystemExit(main())
