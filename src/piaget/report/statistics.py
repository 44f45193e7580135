"""Means with standard errors, and tests, over seeds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from piaget.lab.final_table import mean_and_error

ENOUGH = 5  # seeds, to say anything beside the paper's numbers
LEVEL = 0.05
LEAST = 3  # seeds, for a test
POWER = 0.8
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
class Tested:
    """A mean over seeds against 0, such as of differences between two methods on the same seeds: its standard
    error, and two-sided p-values of the t-test and of Wilcoxon's signed-rank test; `p` is the former, by
    Holm's method if it is one of several."""

    seeds: int
    mean: float
    error: float
    t_test: float
    wilcoxon: float
    p: float = math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Of 95 %, by the t-distribution; for this mean alone, not corrected for others."""
        half = float(stats.t.ppf(1 - LEVEL / 2, self.seeds - 1)) * self.error
        return self.mean - half, self.mean + half


def paired(ours: dict[int, float], theirs: dict[int, float]) -> Tested | None:
    """Of the first method minus the second; None with fewer than three common seeds with numbers."""
    return tested([ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())])


def tested(values: Sequence[float]) -> Tested | None:
    """One number a seed, against 0; None with fewer than three that are numbers."""
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < LEAST:
        return None
    mean, error = mean_and_error(finite)
    if error == 0:  # the same everywhere: no test is defined
        certain = float(mean == 0)
        return Tested(len(finite), mean, error, certain, certain, certain)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # numbers that are nearly all the same
        t_test, wilcoxon = float(stats.ttest_1samp(finite, 0.0).pvalue), signed_rank(finite)
    return Tested(len(finite), mean, error, t_test, wilcoxon, t_test)


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


def least_signed_rank(seeds: int) -> float:
    """The least p-value that Wilcoxon's signed-rank test can reach: all differences have the same sign."""
    return min(1.0, 2.0 ** (1 - seeds))


def detectable(seeds: int, tests: int = 1) -> float:
    """The mean, in standard deviations over seeds, that the two-sided t-test finds with a probability of
    80 %, at 5 % divided by the number of tests (what Holm's method asks of the smallest p-value)."""
    free, level = seeds - 1, LEVEL / max(tests, 1)
    bound = float(stats.t.ppf(1 - level / 2, free))

    def missing(effect: float) -> float:
        found = stats.nct.sf(bound, free, effect * math.sqrt(seeds))
        return POWER - float(found)

    highest = 2.0
    while missing(highest) > 0:
        highest *= 2
    return float(optimize.brentq(missing, 0.0, highest, xtol=1e-6))


def holm(values: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm's step-down method); those that are no numbers stay so."""
    order = sorted((i for i, p in enumerate(values) if not math.isnan(p)), key=lambda i: values[i])
    corrected, least = [math.nan] * len(values), 0.0
    for place, i in enumerate(order):
        least = max(least, min(1.0, (len(order) - place) * values[i]))
        corrected[i] = least
    return corrected


def spread(count: int, most: int) -> list[int]:
    """At most `most` positions out of `count`, evenly spread from the first to the last."""
    if count <= most:
        return list(range(count))
    return [round(i * (count - 1) / (most - 1)) for i in range(most)]
