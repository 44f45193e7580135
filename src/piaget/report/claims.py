"""What the paper says in words, as functions of results: compared over seeds, and judged by one rule."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from scipy import stats

from piaget.lab.final_table import mean_and_error
from piaget.paper.names import ALGORITHMS, base_name
from piaget.report.groups import other_data
from piaget.report.selection import Changes, Measure, Selection, components, final, forward
from piaget.report.statistics import LEAST, LEVEL, holm

HOLDS, FAILS, UNTESTED = "holds", "does not hold", "not tested"


@dataclass(frozen=True)
class Comparison:
    """One number a seed of which a claim says that it is above 0, such as the difference of two methods.

    `p`: of the two-sided t-test of their mean against 0.
    """

    what: str  # for people: "mnist: ER Compositional against Joint"
    values: tuple[float, ...]
    reduced: str = ""  # why it is of less than the paper's experiment
    of: str = "scores"  # what is compared: numbers of one thing have a common mean

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def error(self) -> float:
        """The mean's standard error."""
        return mean_and_error(self.values)[1]

    @property
    def effect(self) -> float:
        """Cohen's d of paired numbers: the mean in standard deviations over seeds."""
        spread = statistics.stdev(self.values)
        return self.mean / spread if spread > 0 else math.copysign(math.inf, self.mean) if self.mean else 0.0

    @property
    def p(self) -> float:
        if self.error == 0:
            return float(self.mean == 0)
        return float(stats.t.sf(abs(self.mean) / self.error, len(self.values) - 1)) * 2


@dataclass(frozen=True)
class Finding:
    """What came out about a claim: its comparisons, with p-values corrected for their number (Holm)."""

    comparisons: tuple[Comparison, ...]
    corrected: tuple[float, ...]

    @property
    def verdict(self) -> str:
        """It holds if the numbers are above 0 on average, significantly so in at least one comparison, and
        in none significantly below 0; where scores and numbers of components are compared, both are."""
        if not self.comparisons:
            return UNTESTED
        for thing in {one.of for one in self.comparisons}:
            means = [one.mean for one in self.comparisons if one.of == thing]
            if statistics.fmean(means) <= 0 or thing not in {one.of for one in self.supporting}:
                return FAILS
        return FAILS if self.against else HOLDS

    @property
    def supporting(self) -> list[Comparison]:
        return [one for one in self._significant if one.mean > 0]

    @property
    def against(self) -> list[Comparison]:
        return [one for one in self._significant if one.mean < 0]

    @property
    def undecided(self) -> list[Comparison]:
        return [one for one in self.comparisons if one not in self._significant]

    @property
    def _significant(self) -> list[Comparison]:
        return [one for one, p in zip(self.comparisons, self.corrected, strict=True) if p < LEVEL]


Compare = Callable[[Selection], Iterable[Comparison]]


@dataclass(frozen=True)
class Claim:
    """A sentence, where it stands, and what is compared to see whether it holds."""

    sentence: str
    where: str
    reading: str  # how it is read here
    compare: Compare
    unit: str = ""  # of the numbers that are compared

    def check(self, selection: Selection) -> Finding:
        """What the runs say. A comparison needs three seeds."""
        found = tuple(one for one in self.compare(selection) if len(one.values) >= LEAST)
        return Finding(found, tuple(holm([one.p for one in found])))


# --- what is compared -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """A method of a comparison; `changes`: settings in which it is not the usual one."""

    base: str
    algorithm: str
    structure: str = "soft-ordering"
    changes: Changes = ()

    @property
    def label(self) -> str:
        changes = "".join(f" {name}={value}" for name, value in self.changes)
        return ALGORITHMS.get(self.algorithm, self.algorithm) + changes

    @property
    def full_label(self) -> str:
        """With the adaptation."""
        return f"{base_name(self.base, self.algorithm)} {self.label}".strip()


def difference(
    selection: Selection,
    stream: str,
    ours: Side,
    theirs: Side,
    measure: Measure = final,
    unit: float | None = None,
    *,
    fewer: bool = False,
) -> Iterator[Comparison]:
    """How much better the first is than the second, on the same seeds, data and epochs.

    fewer: lower numbers are better.
    """
    first, second = (
        selection.find(stream, side.structure, side.base, side.algorithm, side.changes)
        for side in (ours, theirs)
    )
    if first is None or second is None or first.group.first.work != second.group.first.work:
        return
    if first.reduced != second.reduced:  # networks of other sizes
        return
    one, two = (each.values(selection.contents, measure, unit) for each in (first, second))
    apart = other_data(first.group, second.group)
    fewer = fewer or (measure in (final, forward) and not first.group.higher_is_better)
    sign = -1.0 if fewer else 1.0
    values = [sign * (one[seed] - two[seed]) for seed in sorted((one.keys() & two.keys()) - apart)]
    labels = [side.full_label for side in (ours, theirs)]
    if ours.base == theirs.base:
        labels[1] = theirs.label
    if ours.structure != theirs.structure:
        labels = [f"{label} ({side.structure})" for label, side in zip(labels, (ours, theirs), strict=True)]
    what = f"{stream}: {' against '.join(labels)}" + (", components" if measure is components else "")
    of = "components" if measure is components else "scores"
    yield Comparison(what, tuple(filter(math.isfinite, values)), first.reduced or second.reduced, of)


def all_pairs(
    streams: Sequence[str],
    ours: Sequence[str],
    theirs: Sequence[str],
    bases: Sequence[str] = ("er", "ewc", "nft"),
    structure: str = "soft-ordering",
    changes: Changes = (),
    measure: Measure = final,
) -> Compare:
    """Each of these algorithms against each of those, on every stream with every adaptation."""

    def compare(selection: Selection) -> Iterator[Comparison]:
        for stream in streams:
            for base in bases:
                for one in ours:
                    for two in theirs:
                        sides = Side(base, one, structure, changes), Side(base, two, structure, changes)
                        yield from difference(selection, stream, *sides, measure)

    return compare


def beyond(
    selection: Selection,
    stream: str,
    side: Side,
    measure: Measure,
    bound: float,
    unit: float | None = None,
    *,
    below: bool = False,
) -> Iterator[Comparison]:
    """How far a method's own numbers are above a bound (or below it)."""
    chosen = selection.find(stream, side.structure, side.base, side.algorithm, side.changes)
    if chosen is None:
        return
    values = chosen.values(selection.contents, measure, unit)
    sign = -1.0 if below else 1.0
    what = f"{stream}: {side.full_label}"
    apart = [sign * (values[seed] - bound) for seed in sorted(values)]
    yield Comparison(what, tuple(filter(math.isfinite, apart)), chosen.reduced)
