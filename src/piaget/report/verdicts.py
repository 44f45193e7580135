"""A verdict for every cell of the paper's tables."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from piaget.lab.final_table import mean_and_error
from piaget.method.choices import structure_for
from piaget.paper.cells import PaperCell, cells
from piaget.paper.defaults import structure_of
from piaget.report.selection import Chosen, Measure, Selection, components, final, on_kind, reuse_at
from piaget.report.statistics import ENOUGH, verdict

MATCHES, HIGHER, LOWER, REDUCED, NOT_RUN = WORDS = ("matches", "higher", "lower", "reduced", "not run")
NOT_YET = "not run yet"


@dataclass(frozen=True)
class Verdict:
    """What became of one cell: our mean and standard error over seeds (nan: there is none), and a word."""

    cell: PaperCell
    word: str
    mean: float = math.nan
    error: float = math.nan
    seeds: int = 0
    why: str = ""  # of "reduced" and "not run"
    beside: str = ""  # of "reduced": how the number is, all the same
    command: str = ""  # makes it

    @property
    def difference(self) -> float:
        """Ours minus the paper's."""
        return self.mean - self.cell.mean


def verdicts(selection: Selection, reasons: Mapping[str, str] | None = None) -> list[Verdict]:
    """Of all cells, in the paper's order. reasons: why a stream was not run, or not in full."""
    return [judged(selection, cell, (reasons or {}).get(cell.stream, NOT_YET)) for cell in cells()]


def judged(selection: Selection, cell: PaperCell, reason: str = NOT_YET) -> Verdict:
    """By Welch's two-sided test at 5 % against the paper's mean and standard error."""
    chosen = selection.find(cell.stream, cell.structure, cell.base, cell.algorithm)
    values = [] if chosen is None else list(_values(selection, chosen, cell).values())
    if chosen is None or not values:
        return Verdict(cell, NOT_RUN, why=reason, command=command(cell))
    outcome = verdict(values, (cell.mean, cell.error), cell.trials, True, cell.digits)
    outcome = outcome.replace("better", HIGHER).replace("worse", LOWER)
    runs = chosen.group.runs
    why = [chosen.reduced] if chosen.reduced else []
    why += [f"{len(values)} seeds"] if len(values) < ENOUGH else []
    if lost := sum(run.diverged for run in runs):
        why.append(f"{lost} of {len(runs)} runs diverged and are not in the mean")
    if len(values) < len(chosen.group.counted):
        why.append(f"only {len(values)} of {len(chosen.group.counted)} runs have so many components")
    numbers = (*mean_and_error(values), len(values))
    again = command(cell, chosen)
    if why or outcome not in WORDS:
        return Verdict(cell, REDUCED, *numbers, "; ".join(why) or outcome, outcome, again)
    return Verdict(cell, outcome, *numbers, command=again)


def _values(selection: Selection, chosen: Chosen, cell: PaperCell) -> dict[int, float]:
    measure, unit = _measure(cell)
    return chosen.values(selection.contents, measure, unit)


def _measure(cell: PaperCell) -> tuple[Measure, float | None]:
    """What a cell shows, and its unit, if that is not the score's."""
    if cell.table == "components":
        return components, 1.0
    if cell.table == "reuse":
        return reuse_at(int(cell.part)), 1.0
    return (on_kind(cell.part) if cell.part else final), None


def command(cell: PaperCell, chosen: Chosen | None = None) -> str:
    """Makes a cell; with the paper's data and seeds, if it was not run."""
    seeds = cell.trials if chosen is None else len(chosen.group.counted)
    words = ["piaget", "sweep", cell.stream]
    structure = structure_for(cell.algorithm, cell.structure)
    usual = structure_of(cell.stream, cell.algorithm)
    words += ["--structures", structure] if structure != usual else []
    words += ["--adaptations", cell.base, "--algorithms", cell.algorithm, "--seeds", str(seeds)]
    if chosen is not None:
        words += chosen.flags
    return shlex.join([*words, "--out", "results/again"])


def count(all_verdicts: list[Verdict]) -> dict[str, int]:
    """How many there are of each word."""
    return {word: sum(one.word == word for one in all_verdicts) for word in WORDS}
