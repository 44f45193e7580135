"""What the paper calls things, and which of its choices go together."""

from __future__ import annotations

from dataclasses import dataclass

BASES = {"er": "ER", "ewc": "EWC", "nft": "NFT", "fm": "FM"}
ALGORITHMS = {
    "dynamic": "Dyn. + Comp.",
    "compositional": "Compositional",
    "joint": "Joint",
    "no-components": "No Comp.",
}
UNITS = {"accuracy": "accuracy in %", "rmse": "rmse"}
STAGED = ("dynamic", "compositional")  # the algorithms that assimilate first, and adapt then


@dataclass(frozen=True)
class Method:
    """A method by the names of its choices; a part of one's own is named `package.module:Name`."""

    adaptation: str
    algorithm: str
    structure: str = "soft-ordering"

    @property
    def name(self) -> str:
        """The three names in the order of rows."""
        return f"{self.structure}/{self.adaptation}/{self.algorithm}"


def goes_together(method: Method) -> bool:
    """Frozen components can only be assimilated, and linear combinations have no expansion."""
    frozen = method.adaptation == "fm" and method.algorithm in ("joint", "no-components")
    return not frozen and not (method.structure == "linear" and method.algorithm == "dynamic")


def paper_methods(structure: str) -> list[Method]:
    """The paper's methods with one structure: 14, or 10 with linear combinations."""
    methods = [Method(base, algorithm, structure) for base in BASES for algorithm in ALGORITHMS]
    return [method for method in methods if goes_together(method)]


def trials(stream: str) -> int:
    """How many times the paper trains each method on a stream."""
    return 50 if stream.startswith("objects") else 10
