"""Runs beside other results of the same experiments: those of the repository, or of another machine."""

from __future__ import annotations

import math

from piaget.lab.final_table import mean_and_error
from piaget.report.contents import Contents
from piaget.report.forms import Cell, Table, number
from piaget.report.groups import Group
from piaget.report.statistics import ENOUGH, LEVEL, welch

SAME = 1e-6  # relative difference of scores that are kept with seven digits


def against(contents: Contents, others: Contents) -> Table:
    """Final performance here and there, of the methods that both have."""
    table = Table(
        "against",
        "Final performance beside other results",
        "Mean and standard error over seeds, here and there, of runs with the same settings. Largest "
        "difference: between runs with the same seed. The same: every common seed has the same number; else "
        f"Welch's two-sided test at 5 %, with at least {ENOUGH} seeds.",
        ["stream", "method", "seeds", "final", "other seeds", "other final", "largest difference", "verdict"],
    )
    there = {_key(group): group for group in others.counted}
    for group in contents.counted:
        other = there.get(_key(group))
        if other is not None:
            ours, theirs = group.of(contents.final, group.unit), other.of(others.final, other.unit)
            table.add(group.position, group.stream, group.label, *_cells(group, ours, theirs))
    return table


def _key(group: Group) -> tuple[str, str, str, str]:
    return group.stream, group.method, group.variant, group.first.data


def _cells(group: Group, ours: dict[int, float], theirs: dict[int, float]) -> list[Cell]:
    common = sorted(ours.keys() & theirs.keys())
    largest = max((abs(ours[seed] - theirs[seed]) for seed in common), default=float("nan"))
    cells = []
    for values in (ours, theirs):
        mean = number(*mean_and_error(list(values.values())), group.digits)
        cells += [number(len(values), digits=0), mean]
    same = bool(common) and all(abs(ours[s] - theirs[s]) <= SAME * abs(theirs[s]) for s in common)
    verdict = "the same" if same else _verdict(list(ours.values()), list(theirs.values()))
    return [*cells, number(largest, digits=group.digits + 1), Cell(verdict)]


def _verdict(ours: list[float], theirs: list[float]) -> str:
    if min(len(ours), len(theirs)) < ENOUGH:
        return "too few seeds"
    (mean, error), (other, other_error) = mean_and_error(ours), mean_and_error(theirs)
    if not math.isfinite(mean) or not math.isfinite(other):
        return "diverged"
    certain = error == other_error == 0  # then no test is defined
    p = float(mean == other) if certain else welch(mean, error, len(ours), other, other_error, len(theirs))
    if not p < LEVEL:
        return "matches"
    return "higher" if mean > other else "lower"
