"""What the paper calls things, and which of its choices go together."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from piaget.errors import SettingError
from piaget.method.choices import (
    ADAPTATIONS,
    EXPANDING,
    REPLAYING,
    SINGLE,
    STAGED,
    adaptation_of,
    structure_for,
)

WITHOUT_REPLAY = set(ADAPTATIONS) - set(REPLAYING)
BASES = {"er": "ER", "ewc": "EWC", "nft": "NFT", "fm": "FM"}
PAPER_ALGORITHMS = {
    "dynamic": "Dyn. + Comp.",
    "compositional": "Compositional",
    "joint": "Joint",
    "no-components": "No Comp.",
}
# Baselines that the paper lacks: past tasks' own encoders and decoders stay as they are; nothing is shared.
BASELINES = {"no-components-frozen": "No Comp., past frozen", "alone": "Alone"}
COMPARED = PAPER_ALGORITHMS | BASELINES  # what a sweep of all algorithms has
ALGORITHMS = COMPARED | {"recommended": "Recommended"}
ASSIMILATING = (*STAGED, "alone")  # the algorithms in which a task can be learned with frozen components
# What names stand for, in words.
IN_WORDS = {
    "er": "experience replay: learns from new data and stored samples of past tasks",
    "ewc": "elastic weight consolidation: learns from new data, held near what past tasks need",
    "nft": "naive fine-tuning: learns from new data alone",
    "fm": "frozen: components stay as the initial tasks left them",
    "dynamic": "dynamic + compositional: structure first, components then; with every task a new component "
    "is tried, and kept if it helps",
    "recommended": "recommended: dynamic, with parts that the paper does not have",
    "compositional": "compositional: structure first, components then",
    "joint": "joint: structure and components are learned together",
    "no-components": "no components: one network for all tasks, all of it learns",
    "no-components-frozen": "no components, past frozen: one network for all tasks; past tasks' own encoders "
    "and decoders stay as they are",
    "alone": "each task alone, from scratch: nothing is shared",
    "linear": "linear combination of components",
    "soft-ordering": "soft ordering: a weighted mix of components at every depth",
    "soft-gating": "soft gating: at every depth the input decides how components are mixed",
    "prior": "a prior over structures, learned from all tasks",
}
UNITS = {"accuracy": "accuracy in %", "rmse": "rmse"}


@dataclass(frozen=True)
class Method:
    """A method by the names of its choices; a part of one's own is named `package.module:Name`.

    >>> piaget.lab.Method(adaptation="er", algorithm="dynamic").structure
    'soft-ordering'
    """

    adaptation: str
    algorithm: str
    structure: str = ""  # empty: what the algorithm has, if none is chosen

    def __post_init__(self) -> None:
        if not self.structure:
            object.__setattr__(self, "structure", structure_for(self.algorithm))

    @property
    def name(self) -> str:
        """The three names in the order of rows."""
        return f"{self.structure}/{self.adaptation}/{self.algorithm}"


def in_words(method: str) -> str:
    """What `structure/adaptation/algorithm` stands for; names of one's own parts as they are."""
    structure, adaptation, algorithm = method.split("/")
    names = [algorithm, *([] if algorithm == "alone" else [adaptation])]
    names += [] if structure in SINGLE else [structure]
    return ". ".join(words[:1].upper() + words[1:] for words in (IN_WORDS.get(name, name) for name in names))


def base_name(base: str, algorithm: str) -> str:
    """What the adaptation is called; empty for tasks alone, which adapt nothing that they share."""
    return "" if algorithm == "alone" else BASES.get(base, base)


def check_frozen(adaptation: str, algorithm: str) -> None:
    """Raises an error if components would stay frozen in a method that does nothing but train them."""
    if adaptation == "fm" and algorithm in set(ALGORITHMS) - set(ASSIMILATING):
        raise SettingError(
            f"adaptation 'fm' with the algorithm {algorithm!r}: frozen components can only be assimilated; "
            f"expected one of the algorithms {', '.join(ASSIMILATING)}, or another adaptation"
        )


def goes_together(method: Method) -> bool:
    """Frozen components can only be assimilated, linear combinations have no expansion, and tasks alone
    nothing to adapt. What is a past task's own stays as it is anyway where no samples are stored, and linear
    models have nothing of that."""
    linear, algorithm = method.structure == "linear", method.algorithm
    if method.adaptation == "fm":
        return algorithm in ASSIMILATING and not (algorithm in EXPANDING and linear)
    if algorithm == "no-components-frozen":
        return method.adaptation not in WITHOUT_REPLAY and not linear
    return algorithm != "alone" and not (linear and algorithm in EXPANDING)


def methods(structure: str, adaptations: Iterable[str] | None, algorithms: Iterable[str]) -> list[Method]:
    """All methods with one structure, as far as their choices go together; tasks alone once. Without
    adaptations, each algorithm has its own."""
    pairs = [
        (adaptation_of(algorithm) if adaptation is None or algorithm == "alone" else adaptation, algorithm)
        for adaptation, algorithm in itertools.product(
            [None] if adaptations is None else adaptations, algorithms
        )
    ]
    chosen = (Method(adaptation, algorithm, structure) for adaptation, algorithm in dict.fromkeys(pairs))
    return [method for method in chosen if goes_together(method)]


def paper_methods(structure: str) -> list[Method]:
    """The paper's methods with one structure: 14, or 10 with linear combinations."""
    return methods(structure, BASES, PAPER_ALGORITHMS)


def trials(stream: str) -> int:
    """How many times the paper trains each method on a stream."""
    return 50 if stream.startswith("objects") else 10
