"""Means with standard errors, and tests, over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ENOUGH = 5  # seeds, to say anything beside the paper's numbers
LEVEL = 0.05


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error (nan for a single value)."""
    array = np.asarray(values, float)
    if not len(array):
        return math.nan, math.nan
    error = float(array.std(ddof=1) / math.sqrt(len(array))) if len(array) > 1 else math.nan
    return float(array.mean()), error


def welch(mean: float, error: float, n: int, other: float, other_error: float, other_n: int) -> float:
    """The two-sided p-value of Welch's test, from means and standard errors."""
    from scipy import stats

    joint = math.hypot(error, other_error)
    if joint == 0:
        return 1.0 if mean == other else 0.0
    freedom = joint**4 / (error**4 / (n - 1) + other_error**4 / (other_n - 1))
    return float(2 * stats.t.sf(abs(mean - other) / joint, freedom))


def verdict(
    values: Sequence[float],
    paper: tuple[float, float] | None,
    trials: int,
    higher_is_better: bool,
    digits: int = 1,
) -> str:
    """Beside the paper's number (of so many digits): matches, better or worse by Welch's test (5 %,
    two-sided)."""
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
    from scipy import stats

    common = [
        s for s in sorted(set(ours) & set(theirs)) if math.isfinite(ours[s]) and math.isfinite(theirs[s])
    ]
    if len(common) < 3:
        return None
    differences = np.array([ours[seed] - theirs[seed] for seed in common])
    mean, error = mean_and_error(list(differences))
    if not differences.any():
        return Paired(len(common), 0.0, 0.0, 1.0, 1.0)
    t_test = 0.0 if error == 0 else float(2 * stats.t.sf(abs(mean / error), len(common) - 1))
    return Paired(len(common), mean, error, t_test, float(stats.wilcoxon(differences).pvalue))


def holm(values: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm's step-down method)."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    corrected, least = [0.0] * len(values), 0.0
    for place, i in enumerate(order):
        least = max(least, min(1.0, (len(values) - place) * values[i]))
        corrected[i] = least
    return corrected


def spread(count: int, most: int) -> list[int]:
    """So many positions of `count` at most, from the first to the last."""
    if count <= most:
        return list(range(count))
    return [round(i * (count - 1) / (most - 1)) for i in range(most)]
