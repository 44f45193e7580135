"""Means with standard errors, and tests, over seeds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from piaget.lab.final_table import mean_and_error

ENOUGH = 5  # seeds, to say anything beside the paper's numbers
LEVEL = 0.05
FEW = 12  # differences of which all signs are tried


def welch(mean: float, error: float, n: int, other: float, other_error: float, other_n: int) -> float:
    """The two-sided p-value of Welch's test, from means and standard errors."""
    ours, theirs = (mean, error * math.sqrt(n), n), (other, other_error * math.sqrt(other_n), other_n)
    return float(stats.ttest_ind_from_stats(*ours, *theirs, equal_var=False).pvalue)


def verdict(
    values: Sequence[float],
    paper: tuple[float, float] | None,
    trials: int,
    higher_is_better: bool,
    digits: int = 1,
) -> str:
    """Beside the paper's number, which is rounded to `digits`: matches, better or worse by Welch's two-sided
    test at 5 %."""
    if paper is None:
        return ""
    if len(values) < ENOUGH:
        return "too few seeds"
    mean, error = mean_and_error(values)
    if not math.isfinite(mean):
        return "diverged"
    half = 0.5 * 10.0**-digits  # the paper's numbers are rounded: also standard errors of 0.0
    other, other_error = paper[0], max(paper[1], half)
    if abs(mean - other) <= half or welch(mean, error, len(values), other, other_error, trials) >= LEVEL:
        return "matches"
    return "better" if (mean > paper[0]) == higher_is_better else "worse"


@dataclass(frozen=True)
class Paired:
    """Two methods on the same seeds: the mean difference, its standard error, and two-sided p-values of the
    paired t-test and of Wilcoxon's signed-rank test; `p` is the former, by Holm's method for all pairs."""

    seeds: int
    difference: float
    error: float
    t_test: float
    wilcoxon: float
    p: float = math.nan


def paired(ours: dict[int, float], theirs: dict[int, float]) -> Paired | None:
    """None with fewer than three common seeds with numbers."""
    differences = [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]
    differences = [difference for difference in differences if math.isfinite(difference)]
    if len(differences) < 3:
        return None
    mean, error = mean_and_error(differences)
    if error == 0:  # the same difference everywhere: no test is defined
        certain = float(mean == 0)
        return Paired(len(differences), mean, error, certain, certain)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # differences that are nearly all the same
        t_test, wilcoxon = stats.ttest_1samp(differences, 0.0), signed_rank(differences)
    return Paired(len(differences), mean, error, float(t_test.pvalue), wilcoxon)


def signed_rank(differences: Sequence[float]) -> float:
    """The two-sided p-value of Wilcoxon's signed-rank test. For few numbers it is that of all signs that they
    could have had, also with ties: as scipy has it, which takes seconds for that."""
    signed = np.array([difference for difference in differences if difference != 0])
    if len(signed) > FEW:
        return float(stats.wilcoxon(differences).pvalue)
    ranks = stats.rankdata(abs(signed))
    positive = np.arange(2 ** len(signed))[:, None] >> np.arange(len(signed)) & 1  # (2^n, n): who is
    sums, seen = positive @ ranks, ranks[signed > 0].sum()
    return min(1.0, 2 * min(float((sums <= seen).mean()), float((sums >= seen).mean())))


def holm(values: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm's step-down method)."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    corrected, least = [0.0] * len(values), 0.0
    for place, i in enumerate(order):
        least = max(least, min(1.0, (len(values) - place) * values[i]))
        corrected[i] = least
    return corrected


def spread(count: int, most: int) -> list[int]:
    """At most `most` positions out of `count`, evenly spread from the first to the last."""
    if count <= most:
        return list(range(count))
    return [round(i * (count - 1) / (most - 1)) for i in range(most)]
