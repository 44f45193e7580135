"""Every cell of the paper's tables of results, one after the other. No heavy imports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from piaget.paper.names import trials
from piaget.paper.results import component_numbers, results

TRIALS = 10  # but for Objects

# Each table by what it shows: {name: title}.
TABLES = {
    "linear": "Linear combinations of models",
    "soft-ordering": "Soft layer ordering",
    "soft-gating": "Soft gating",
    "combined": "Very different tasks in one stream (Combined)",
    "objects": "The compositional data set (Objects)",
    "components": "Number of learned components",
    "reuse": "Tasks that reuse a component",
}


@dataclass(frozen=True)
class PaperCell:
    """One number of the paper.

    `part`: of which it is, if not of all: tasks of one kind ("mnist"), or the place of a component ("0").
    """

    table: str
    structure: str
    stream: str
    base: str
    algorithm: str
    part: str
    mean: float
    error: float
    trials: int = TRIALS

    @property
    def digits(self) -> int:
        """After the point, as the paper rounds."""
        return 2 if self.stream == "schools" or self.table == "reuse" else 1


@cache
def cells() -> tuple[PaperCell, ...]:
    """All of them, in the paper's order."""
    return *_final(), *_combined(), *_components(), *_reuse()


def _final() -> Iterator[PaperCell]:
    for structure, streams in results().items():
        for stream, bases in streams.items() if structure != "source" else ():
            table = "objects" if stream.startswith("objects") else structure
            for base, algorithms in bases.items():
                for algorithm, (mean, error) in algorithms.items():
                    place = "combined" if stream == "combined" else table
                    known = structure, stream, base, algorithm, "", mean, error, trials(stream)
                    yield PaperCell(place, *known)


def _combined() -> Iterator[PaperCell]:
    """By kinds of tasks."""
    for base, algorithms in component_numbers()["combined"].items():
        for algorithm, kinds in algorithms.items():
            for kind, (mean, error) in kinds.items():
                yield PaperCell("combined", "soft-ordering", "combined", base, algorithm, kind, mean, error)


def _components() -> Iterator[PaperCell]:
    for structure, streams in component_numbers()["components"].items():
        for stream, bases in streams.items():
            for base, (mean, error) in bases.items():
                yield PaperCell("components", structure, stream, base, "dynamic", "", mean, error)


def _reuse() -> Iterator[PaperCell]:
    """The most reused component of each trial is at place 0."""
    for algorithm, streams in component_numbers()["reuse"].items():
        for stream, places in streams.items():
            for place, (mean, error) in enumerate(places):
                known = "soft-ordering", stream, "er", algorithm, str(place), mean, error
                yield PaperCell("reuse", *known)
