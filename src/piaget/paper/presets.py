"""The paper's experiments by name: which methods each trains, on what, and what comes out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from piaget.method.choices import STAGED
from piaget.paper.defaults import algorithm_of
from piaget.paper.names import BASES, COMPARED, Method, methods
from piaget.paper.results import reported

SOME = ("mnist", "fashion", "cub")
IMAGES = (*SOME, "cifar100", "omniglot")
OBJECTS = ("objects-random", "objects-circle", "objects-top-left", "objects-orange")
TRAIN_SIZES = (10, 20, 50, 100, 200)  # the paper shows its sizes in a figure only
FREQUENCIES = (2, 5, 10, 20, 50, 100)
IN_STAGES = [name for name in COMPARED if name in STAGED]  # of the paper

Pairs = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Entry:
    """A method on a stream; options of the stream and settings of learners where they are not the usual."""

    stream: str
    method: Method
    options: Pairs = ()
    settings: Pairs = ()


@dataclass(frozen=True)
class Preset:
    """One experiment: its entries, and with how many seeds each was trained.

    `finding`: what comes out, where that is not a table of final performance.
    """

    name: str
    seeds: int
    what: str
    entries: tuple[Entry, ...]
    finding: str | None = None

    @property
    def runs(self) -> int:
        """How many runs there are in all."""
        return self.seeds * len(self.entries)

    @property
    def expected(self) -> str:
        """What the paper says comes out: a finding, or the numbers of the best of its own methods."""
        if self.finding is not None:
            return self.finding
        structure = self.entries[0].method.structure
        algorithm = algorithm_of(structure)
        streams = dict.fromkeys(entry.stream for entry in self.entries)
        results = {stream: reported(structure, stream, "er", algorithm) for stream in streams}
        numbers = ", ".join(f"{stream} {pair[0]} ± {pair[1]}" for stream, pair in results.items() if pair)
        return f"ER, {COMPARED[algorithm]}: {numbers}"


def _all_methods(streams: Iterable[str], structure: str) -> tuple[Entry, ...]:
    every = methods(structure, BASES, COMPARED)
    return tuple(Entry(stream, method) for stream in streams for method in every)


def _replay(algorithms: Iterable[str]) -> list[Method]:
    return methods("soft-ordering", ["er"], algorithms)


def _limited(size: int, method: Method) -> Pairs:
    """1,000 epochs, every tenth adapts; replay of a tenth of the samples, 1 to 32."""
    adapts: Pairs = (("adapt_every", 10),) if method.algorithm in STAGED else ()
    replays: Pairs = (("replay_size", min(max(size // 10, 1), 32)),) if method.adaptation == "er" else ()
    return ("epochs", 1000), *replays, *adapts


LIMITED_DATA = tuple(
    Entry(stream, method, (("train_size", size),), _limited(size, method))
    for stream in SOME
    for size in TRAIN_SIZES
    for method in _replay(COMPARED)
)
SCHEDULE = tuple(
    entry
    for stream in SOME
    for entry in (
        *(Entry(stream, method) for method in _replay(name for name in COMPARED if name not in STAGED)),
        *(
            Entry(stream, method, settings=(("adapt_every", every),))
            for every in FREQUENCIES
            for method in _replay(IN_STAGES)
        ),
    )
)
COMPONENTS = tuple(
    Entry(stream, method)
    for stream in IMAGES
    for method in (*_replay(IN_STAGES), *(Method(base, "dynamic") for base in ("ewc", "nft", "fm")))
)
PIXELS = tuple(Entry("pixel-mnist", method) for method in _replay(("compositional", "joint")))

PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            "linear",
            10,
            "linear models on landmine, schools and fera",
            _all_methods(("landmine", "schools", "fera"), "linear"),
        ),
        Preset(
            "soft-ordering",
            10,
            "soft layer ordering on mnist, fashion, cub, cifar100 and omniglot",
            _all_methods(IMAGES, "soft-ordering"),
        ),
        Preset(
            "soft-gating",
            10,
            "soft gating on the same but cub",
            _all_methods((stream for stream in IMAGES if stream != "cub"), "soft-gating"),
        ),
        Preset(
            "combined",
            10,
            "very different tasks in one stream",
            _all_methods(["combined"], "soft-ordering"),
        ),
        Preset(
            "objects",
            50,
            "the compositional data set with what is held out",
            _all_methods(OBJECTS, "soft-ordering"),
        ),
        Preset(
            "limited-data",
            50,
            "accuracy against the number of training samples",
            LIMITED_DATA,
            "compositional algorithms are better than the baselines even with very little data",
        ),
        Preset(
            "schedule",
            10,
            "how often components adapt",
            SCHEDULE,
            "the rarer components adapt, the better; on mnist and fashion always better than the baselines",
        ),
        Preset(
            "components",
            10,
            "how many components are learned, and reused",
            COMPONENTS,
            "dynamic ER: mnist 5.2, fashion 4.9, cub 5.9, cifar100 19.1, omniglot 9.3; all reused at first",
        ),
        Preset(
            "pixel-mnist",
            1,
            "what components do to a picture of a 4",
            PIXELS,
            "a component changes the digit in the same way, such as its thickness, whatever the task",
        ),
    )
}
