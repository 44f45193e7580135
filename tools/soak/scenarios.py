"""The commands of the soak: all stages, structures, adaptations and algorithms, and all ways to run them."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SMALL = "--option tasks=6 --option train_size=40 --epochs 4 --every 1 --quiet"
SWEEP = "sweep digits --seeds 2 --cohort 1 --workers 2"


@dataclass(frozen=True)
class Scenario:
    """A command without its --out, in which {table} stands for a file of the soak."""

    name: str
    command: str
    share: int = 4  # of the lives, relatively
    workers: bool = False  # it has processes of its own, which are killed, too
    spawned: bool = False  # they are started as users' are, not forked: that takes seconds
    environment: dict[str, str] = field(default_factory=dict)

    def words(self, table: Path, out: Path) -> list[str]:
        """For `piaget.cli.main`."""
        return [*(word.format(table=table) for word in self.command.split()), "--out", str(out)]


ALL = (
    Scenario("dynamic, soft ordering, er", f"run digits {SMALL} --algorithm dynamic --adaptation er"),
    Scenario(
        "dynamic, soft gating, ewc",
        f"run digits {SMALL} --structure soft-gating --algorithm dynamic --adaptation ewc",
    ),
    Scenario("recommended, er", f"run digits {SMALL} --algorithm recommended"),
    Scenario(
        "dynamic, scaled ordering, mcnemar, er",
        f"run digits {SMALL} --structure soft-ordering-scaled --expansion mcnemar --set expansion.level=0.5",
    ),
    Scenario(
        "compositional, scaled gating, nft",
        f"run digits {SMALL} --structure soft-gating-scaled --algorithm compositional --adaptation nft",
    ),
    Scenario(
        "dynamic, own parts, nft",
        f"run digits {SMALL} --structure examples.scale_and_shift:ScaleAndShift --adaptation nft"
        " --expansion examples.mcnemar:McNemar",
    ),
    Scenario(
        "compositional, own adaptation",
        f"run digits {SMALL} --adaptation examples.der_plus_plus:DERPlusPlus --algorithm compositional",
    ),
    Scenario("inference of tasks", f"run digits {SMALL} --adaptation nft --inference features"),
    Scenario(
        "compositional, learned encoder, fm",
        f"run digits {SMALL} --adaptation fm --algorithm compositional --encoder learned --adapt-every 2",
    ),
    Scenario(
        "joint, shared encoder and decoder, nft",
        f"run digits {SMALL} --adaptation nft --algorithm joint --encoder shared --decoder shared",
    ),
    Scenario(
        "joint, linear, er",
        "run digits --option tasks=6 --option train_size=40 --epochs 40 --every 10 --quiet --structure linear"
        " --algorithm joint --adaptation er",
    ),
    Scenario(
        "no components, monolithic, ewc",
        f"run digits {SMALL} --structure monolithic --adaptation ewc --algorithm no-components",
    ),
    Scenario(
        "no components, past encoders learn, er",
        f"run digits {SMALL} --adaptation er --algorithm no-components --encoder learned",
    ),
    Scenario(
        "no components, past frozen, er as the authors weigh it",
        f"run digits {SMALL} --adaptation er-diluted --algorithm no-components-frozen --encoder learned",
    ),
    Scenario(
        "stored outputs, balanced, validated",
        f"run digits {SMALL} --adaptation der++ --replay-share 0.5 --acceptance validated --adapt-every 2",
    ),
    Scenario("projected gradients", f"run digits {SMALL} --adaptation a-gem --algorithm joint"),
    Scenario("merged ewc", f"run digits {SMALL} --adaptation ewc-merged --adapt-every 2"),
    Scenario("tasks alone", f"run digits {SMALL} --structure alone --algorithm alone --encoder learned"),
    Scenario(
        "convolutional components",
        "run digits --option tasks=5 --option train_size=24 --epochs 3 --every 1 --quiet --components conv"
        " --encoder none --set channels=4 --set depth=2 --set initial_components=2",
    ),
    Scenario(
        "early stopping, cosine rate, sgd",
        "run digits --option tasks=6 --option train_size=40 --epochs 12 --every 1 --quiet --stop patience"
        " --patience 1 --rate-schedule cosine --adapt-every 4 --optimizer sgd --learning-rate 0.05",
    ),
    Scenario(
        "best epoch, early stopping, component dropout",
        "run digits --option tasks=6 --option train_size=40 --epochs 12 --every 1 --quiet --patience 2"
        " --kept-epoch best --adapt-every 4 --learning-rate 0.05",
    ),
    Scenario(
        "starts near the most similar task and the most used component",
        f"run digits {SMALL} --start similar --candidate-start most-used --encoder learned",
    ),
    Scenario(
        "components removed and merged",
        f"run digits {SMALL} --reduction prune-and-merge --set reduction.tolerance=0.5 --threshold -9",
    ),
    Scenario(
        "cohort of three, float64",
        f"run digits {SMALL} --seeds 3-5 --algorithm compositional --set dtype=float64",
    ),
    Scenario(
        "cohort, table, linear, ewc",
        "run --table {table} --group site --target cost --seeds 0-1 --structure linear --adaptation ewc"
        " --algorithm compositional --epochs 40 --every 10 --quiet",
    ),
    Scenario("table, prior", "run --table {table} --group site --target ill --seeds 0-1 --quiet"),
    Scenario("table, dynamic", "run --table {table} --group site --target ill --epochs 4 --every 1 --quiet"),
    Scenario(
        "compiled steps",
        "run digits --option tasks=5 --option train_size=40 --structure linear --algorithm joint --epochs 60"
        " --every 20 --compile always --quiet",
    ),
    Scenario(
        "sweep, two workers",
        f"{SWEEP} {SMALL} --algorithms dynamic joint --adaptations er nft",
        8,
        workers=True,
    ),
    Scenario(
        "sweep, own adaptation",
        f"{SWEEP} {SMALL} --algorithms compositional --adaptations fm examples.a_gem:AGEM",
        workers=True,
    ),
    Scenario(
        "sweep, spawned workers",
        f"{SWEEP} {SMALL} --algorithms compositional --adaptations ewc",
        1,
        workers=True,
        spawned=True,
    ),
    Scenario(
        "sweep, Ray",
        f"{SWEEP} {SMALL} --algorithms compositional --adaptations er --executor ray",
        1,
        workers=True,
        spawned=True,
        environment={"RAY_AUTH_MODE": "disabled"},
    ),
)


def possible() -> list[Scenario]:
    """Those that this machine can run: Ray is an extra."""
    return [one for one in ALL if "ray" not in one.command or importlib.util.find_spec("ray") is not None]


def order(scenarios: Sequence[Scenario], seed: int) -> Iterator[Scenario]:
    """The scenario of each life, without end: rounds in which each has its share."""
    rng = random.Random(seed)
    while True:
        lives = [one for one in scenarios for _ in range(one.share)]
        rng.shuffle(lives)
        yield from lives


def write_table(path: Path) -> None:
    """Sites with a number and a class to predict, for the scenarios with a table."""
    rng, lines = random.Random(0), ["site,age,ward,cost,ill"]
    for site in range(6):
        for _ in range(40):
            age, ward = rng.gauss(50, 10), rng.choice(["red", "green", "blue"])
            score = age + {"red": 0, "green": 12, "blue": -12}[ward]
            cost = 1000 + 3 * score + 100 * site + rng.gauss(0, 1)
            lines.append(f"site {site},{age:.4f},{ward},{cost:.4f},{'yes' if score > 50 else 'no'}")
    path.write_text("\n".join(lines) + "\n")
