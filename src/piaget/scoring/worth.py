"""Is it worth it? A learner's scores beside those of simple models, group by group, in plain sentences.
No heavy imports."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from piaget.errors import SettingError
from piaget.scoring.rows import LOWER_IS_BETTER, MAJORITY, SHARES, SIMPLE, Row

SURE = 2.0  # standard errors, at least
FEW = 5  # groups
LEVEL = 0.95  # of Student's distribution, which asks for more of them where groups are few
NAMES = {"auc": "AUC", "loss": "log-loss", "rmse": "RMSE", "r2": "R2", "accuracy": "accuracy"}
CHOICES = {
    "binary": ("auc", "loss", "accuracy"),
    "multiclass": ("loss", "accuracy", "auc"),
    "regression": ("rmse", "r2"),
}
Scores = Mapping[str, float]  # of groups


def check_metric(
    metric: str | None, kind: str | None, more: Sequence[str] = (), what: str = "metric="
) -> None:
    """Raises an error if it is no score of tasks of this kind (None: of any)."""
    known = (*(CHOICES[kind] if kind is not None else NAMES), *more)
    if metric is not None and metric not in known:
        choices = "auc, loss or accuracy for classes; rmse or r2 for numbers"
        if kind is not None:
            choices = f"{', '.join(dict.fromkeys(known))} for a {kind} target"
        raise SettingError(f"{what}{metric}: expected {choices}")


@functools.cache
def standard_errors(groups: int) -> float:
    """How many of them a mean over so many groups must be away from 0 to be more than chance: 3.2 for four
    groups, 2 for many."""
    if groups < 2:
        return math.inf
    low, high = 0.0, 100.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, groups - 1) < LEVEL else (low, middle)
    return max(SURE, high)


def _within(t: float, freedom: int) -> float:
    """The probability that Student's t lies between -t and t, in closed form (Abramowitz & Stegun 26.7.3)."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine, odd = math.cos(angle), freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for i in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cosine**2 * (i - 1) / i
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total


@dataclass(frozen=True)
class Difference:
    """Of paired scores, more being better: the mean, its standard error (none of one group), and how often it
    is positive."""

    mean: float
    error: float | None
    better: int
    groups: int

    @property
    def verdict(self) -> str:
        """better, worse, or too close to call."""
        if self.error is None or abs(self.mean) <= standard_errors(self.groups) * self.error:
            return "unclear"
        return "better" if self.mean > 0 else "worse"


def difference(metric: str, ours: Scores, theirs: Scores) -> Difference | None:
    """Over the groups that both have; None: there are none."""
    sign = -1 if metric in LOWER_IS_BETTER else 1
    gains = [sign * (ours[group] - theirs[group]) for group in ours if group in theirs]
    if not gains:
        return None
    error = statistics.stdev(gains) / math.sqrt(len(gains)) if len(gains) > 1 else None
    return Difference(statistics.fmean(gains), error, sum(gain > 0 for gain in gains), len(gains))


def scores_of(rows: Iterable[Row], metric: str) -> dict[str, float]:
    """The last ones on test rows, of each task."""
    return {r["evaluated"]: r["value"] for r in rows if r["metric"] == metric and r["split"] == "test"}


def deciding(rows: Sequence[Row], metrics: Sequence[str]) -> str:
    """The first of the scores that at least half of the groups have of those with any: where one class is
    rare, AUC may be of a few only."""
    counts = {metric: len(scores_of(rows, metric)) for metric in metrics}
    most = max(counts.values())
    return next((metric for metric, count in counts.items() if most and 2 * count >= most), metrics[0])


def simple_scores(rows: Sequence[Row], metric: str) -> dict[str, dict[str, float]]:
    """{model: {group: score}}, of those simple models that were compared."""
    found = {model: scores_of(rows, f"{metric} by {model}") for model in SIMPLE}
    return {model: scores for model, scores in found.items() if scores}


def best_simple(metric: str, simple: Mapping[str, Scores]) -> str | None:
    """By the mean over groups on test rows: the one that is hardest to beat. None: there is none."""
    real = {model: statistics.fmean(of.values()) for model, of in simple.items() if model != "majority"}
    if not real:
        return None
    return (min if metric in LOWER_IS_BETTER else max)(real, key=lambda model: real[model])


def three(value: float) -> str:
    """With three decimals, or with three digits, where decimals say little."""
    return format(value, ".3f" if value == 0 or 0.01 <= abs(value) < 1e5 else ".3g")


def is_it_worth_it(rows: Sequence[Row], metric: str) -> str | None:
    """A sentence; None: nothing was compared."""
    ours, simple = scores_of(rows, metric), simple_scores(rows, metric)
    best = best_simple(metric, simple)
    found = difference(metric, ours, simple[best]) if best is not None else None
    if best is None or found is None:
        return None
    name, groups = NAMES[metric], found.groups
    means = [statistics.fmean(of[g] for g in ours if g in simple[best]) for of in (ours, simple[best])]
    numbers = (
        f"{name} {three(means[0])} against {three(means[1])} of the best simple model ({SIMPLE[best]}), "
        f"better in {found.better} of {groups} groups"
    )
    if found.error is None:
        return f"Too few groups to tell whether it is worth it: {numbers}."
    said = {"better": "Worth it", "worse": "Not worth it", "unclear": "No clear difference"}[found.verdict]
    chance = "may be chance" if found.verdict == "unclear" else "is more than chance"
    form = ".4f" if 0.001 <= found.error < 1e4 else ".3g"
    gap = f"{format(found.mean, '+' + form)} {chance} (standard error {format(found.error, form)})"
    return f"{said}: {numbers}; {gap}."


def at_chance(rows: Sequence[Row]) -> str | None:
    """A sentence, if tasks stay at the level of chance by every score, in the mean and within noise."""
    sentence = None
    for metric, told in (
        ("auc", "an AUC of 0.5"),
        ("loss", "shares of classes alone"),
        ("accuracy", "the most frequent class alone"),
        ("rmse", "each group's mean alone"),
    ):
        ours = scores_of(rows, metric)
        found = difference(metric, ours, _by_chance(rows, metric))
        if found is None:
            continue
        # Of a few groups, noise cannot be told: what is better in the mean is not called chance.
        noise = 0.0 if found.groups < FEW else standard_errors(found.groups) * (found.error or 0.0)
        if found.mean > noise:
            return None
        mean = statistics.fmean(ours.values())
        sentence = sentence or (
            f"At the level of chance: {NAMES[metric]} {mean:.3f} in the mean of {found.groups} tasks is no "
            f"better than {told}, within noise. Inputs may tell nothing of the target, or rows are too few."
        )
    return sentence


def _by_chance(rows: Sequence[Row], metric: str) -> Scores:
    """Of the best that can be said without inputs. Runs of older versions, and of deep methods, have each
    group's own majority only, which few rows tell badly."""
    if metric == "auc":
        return dict.fromkeys(scores_of(rows, metric), 0.5)
    own = scores_of(rows, MAJORITY if metric == "accuracy" else f"{metric} by majority")
    known = [of for of in (own, scores_of(rows, f"{metric} by {SHARES}")) if of]
    sign = 1 if metric in LOWER_IS_BETTER else -1
    return min(known, key=lambda of: sign * statistics.fmean(of.values()), default={})
