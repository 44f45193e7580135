"""How many tasks reuse each component, by several readings of "when the component is dropped".

    python -m benchmarks.reuse results/mnist results/cub

The paper does not say what becomes of a component's weight when it is removed from a model. For finished runs
of dynamic or compositional replay with soft ordering, each reading is tried on the saved learners, and set
beside the paper's table (mean and standard error over runs; from the most to the least reused component).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

import piaget
from benchmarks.command import ended
from piaget.errors import SettingError
from piaget.lab.final_table import mean_and_error, with_error
from piaget.lab.folder import DONE, RunFolder, runs_below
from piaget.lab.making import make_stream
from piaget.method.structures import Structure
from piaget.paper.results import component_numbers
from piaget.report.metrics import DROP
from piaget.scoring import probing

Reading = Callable[[Structure, int], probing.Change]


def lost(structure: Structure, component: int) -> probing.Change:
    """Its weight is 0 at all depths, and the others stay as they are."""

    def change(depth: int, weights: Tensor) -> Tensor:
        return weights.index_fill(structure.component_axis, torch.tensor([component]), 0.0)

    return change


def equally_shared(structure: Structure, component: int) -> probing.Change:
    """Its weight at each depth goes to the others in equal parts, as far as the task may use them."""

    def change(depth: int, weights: Tensor) -> Tensor:
        others = (weights > 0).index_fill(0, torch.tensor([component]), False)
        share = others / others.sum().clamp(min=1)
        return weights.index_fill(0, torch.tensor([component]), 0.0) + share * weights[component]

    return change


READINGS: dict[str, Reading] = {
    "the others share its weight in proportion (piaget's)": probing.removed,
    "its weight is lost": lost,
    "the others share its weight equally": equally_shared,
}


def reused(run: RunFolder, reading: Reading) -> list[int]:
    """Of one finished run: how many tasks need each component, the most reused first."""
    learner = piaget.Learner.load(run.saved_learner())
    counts = [0] * learner.components
    for task in make_stream(run.description["configuration"], run.seed, None):
        assert task.test is not None
        data, known = probing.network(learner, task).encoded(task.test), learner.state.records[task.name].k
        changes = [reading(learner.settings.structure, component) for component in range(known)]
        whole, *without = probing.scores_with(learner, task, data, [lambda depth, weights: weights, *changes])
        for component, score in enumerate(without):
            counts[component] += whole - score > DROP * whole + 1e-9
    return sorted(counts, reverse=True)


def groups(folders: list[Path]) -> Iterator[tuple[str, str, list[RunFolder]]]:
    """Stream, algorithm, and their finished runs. Raises an error if there are none."""
    if missing := [str(folder) for folder in folders if not folder.is_dir()]:
        raise SettingError(f"no folder: {', '.join(missing)}; expected those of piaget run or sweep")
    found: dict[tuple[str, str], list[RunFolder]] = {}
    for run in (run for folder in folders for run in runs_below(folder) if run.status == DONE):
        chosen = run.description["configuration"]
        staged = chosen["algorithm"] in ("dynamic", "compositional")
        if staged and (chosen["structure"], chosen["adaptation"]) == ("soft-ordering", "er"):
            found.setdefault((str(chosen["stream"]), chosen["algorithm"]), []).append(run)
    if not found:
        raise SettingError(
            f"no finished run of dynamic or compositional replay with soft ordering in "
            f"{', '.join(map(str, folders))}"
        )
    for (stream, algorithm), runs in found.items():
        yield stream, algorithm, runs


def main(arguments: Sequence[str] | None = None) -> int:
    """The command, and its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reuse",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="with finished runs")
    options = parser.parse_args(arguments)
    return ended("benchmarks.reuse", lambda: show(options.folders))


def show(folders: list[Path]) -> None:
    """The table of all readings."""
    torch.set_num_threads(1)
    found = list(groups(folders))
    print("| stream | algorithm | runs | reading | 0 | 1 | 2 | 3 |\n|---|---|---|---|---|---|---|---|")
    for stream, algorithm, runs in found:
        for name, reading in READINGS.items():
            counts = [reused(run, reading) for run in runs]
            shown = [mean_and_error([float(one[rank]) for one in counts]) for rank in range(4)]
            cells = " | ".join(with_error(*pair) for pair in shown)
            print(f"| {stream} | {algorithm} | {len(runs)} | {name} | {cells} |")
        papers = component_numbers()["reuse"].get(algorithm, {}).get(stream, [])[:4]
        print(f"| {stream} | {algorithm} | | the paper's | {' | '.join(with_error(*p) for p in papers)} |")


if __name__ == "__main__":
    raise SystemExit(main())
