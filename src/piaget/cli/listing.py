"""piaget list: what there is to choose from."""

from __future__ import annotations

import argparse
from typing import Any

CHOICES = {
    "structures": {
        "prior": "a prior over linear models, learned from all groups: for tables, in seconds",
        "linear": "linear combinations of models",
        "soft-ordering": "soft layer ordering: a weight for each component at each depth",
        "soft-gating": "soft gating: weights computed from the input",
        "soft-ordering-scaled": "soft ordering, with a scale and a shift for each task at each depth",
        "soft-gating-scaled": "soft gating, with a scale and a shift for each task at each depth",
        "monolithic": "a single network",
        "alone": "a network of its own for each task",
    },
    "adaptations": {
        "nft": "naive fine-tuning: components learn from the new task alone",
        "er": "experience replay: and from stored samples of earlier tasks",
        "er-diluted": "the same, but batches with stored samples count less, as in the authors' code",
        "der++": "replay, with the outputs that stored samples had when their task was finished",
        "a-gem": "gradients that would raise the loss of stored samples are projected",
        "ewc": "Kronecker-factored elastic weight consolidation: held near earlier values",
        "ewc-merged": "the same with one memory for all tasks, which does not grow",
        "fm": "frozen: components do not change after initialization",
    },
    "algorithms": {
        "dynamic": "assimilation, adaptation, and expansion by component dropout",
        "recommended": "the same with parts that the paper does not have: docs/recommended.md",
        "compositional": "assimilation, then adaptation",
        "joint": "structure and components learn together",
        "no-components": "a single network for all tasks, all of which learns in every epoch",
        "no-components-frozen": "the same, but what is a past task's own stays as it is",
        "alone": "each task from scratch, nothing shared: does sharing help at all?",
    },
}


def add(commands: Any) -> None:
    """The command."""
    parser = commands.add_parser(
        "list", help="streams, structures, adaptations, algorithms, and presets: the paper's experiments"
    )
    parser.set_defaults(run=_list)


def _list(options: argparse.Namespace) -> int:
    from piaget.lab.expected_times import expected_time
    from piaget.paper.presets import PRESETS
    from piaget.streams.catalog import STREAMS

    described = {"streams": {stream.name: stream.what for stream in STREAMS.values()}} | CHOICES
    width = 2 + max(map(len, [*(name for names in described.values() for name in names), *PRESETS]))
    for title, names in described.items():
        print(title)
        for name, what in names.items():
            print(f"  {name:<{width}}{what}")
    print("presets (piaget sweep NAME)")
    for preset in PRESETS.values():
        print(f"  {preset.name:<{width}}{preset.what}: {preset.runs:,} runs, {expected_time(preset)}")
        print(f"  {'':<{width}}expected: {preset.expected}")
    print("Files of streams: piaget data list")
    return 0
