"""How good answers are that come with probabilities, or as values: scores, and calibration."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from piaget.data.class_weight import chosen
from piaget.data.plain import is_number, plain
from piaget.errors import SettingError
from piaget.method.objective import auc
from piaget.prior.answers import Values
from piaget.scoring.rows import BY_CLASS, R2_ROWS

SMALLEST = 1e-12  # probability that is counted, in log-loss
BINS = 10


def class_scores(p: Tensor, y: Tensor, weights: Tensor | None = None) -> dict[str, float]:
    """Of probabilities (n, classes) and class numbers (n,). AUC: where rows are of more than one class.
    weights: of classes, (classes,), by which a class is answered: accuracy depends on them."""
    right = p[torch.arange(len(y)), y].double().clamp(min=SMALLEST)
    said = chosen(p, weights)
    scores = {"accuracy": float((said == y).double().mean()), "loss": float(-right.log().mean())}
    area = auc(p[:, 1].double(), y) if p.shape[1] == 2 else mean_auc(p, y)
    return scores if area is None else scores | {"auc": area}


def mean_auc(p: Tensor, y: Tensor) -> float | None:
    """Each class against all others, in the mean over classes that some rows are of and some are not. None:
    there is no such class."""
    areas = [auc(p[:, c].double(), (y == c).long()) for c in range(p.shape[1])]
    known = [area for area in areas if area is not None]
    return statistics.fmean(known) if known else None


class ClassScores(NamedTuple):
    """Of one class. None: there is nothing to divide by."""

    rows: int  # that are of the class
    answered: int  # that are said to be
    precision: float | None  # the share of those said to be of the class that are
    recall: float | None  # the share of those of the class that are said to be
    f1: float | None  # the harmonic mean of both
    auc: float | None  # the class against all others

    def found(self) -> dict[str, float]:
        """Those scores that there are."""
        return {name: value for name in BY_CLASS if (value := getattr(self, name)) is not None}


def scores_by_class(p: Tensor, y: Tensor, weights: Tensor | None = None) -> list[ClassScores]:
    """Of probabilities (n, classes) and class numbers (n,), each class against all others."""
    said, found = chosen(p, weights), []
    for c in range(p.shape[1]):
        rows, answered, both = (int(n.sum()) for n in (y == c, said == c, (y == c) & (said == c)))
        precision, recall = (both / n if n else None for n in (answered, rows))
        f1 = 2 * both / (rows + answered) if rows + answered else None
        area = auc(p[:, c].double(), (y == c).long())
        found.append(ClassScores(rows, answered, precision, recall, f1, area))
    return found


def value_scores(mean: Tensor, y: Tensor) -> dict[str, float]:
    """Of values (n,). R2, the share of the variance that is explained: only if they differ, and are enough.
    Of few values the variance is sometimes nearly 0 by chance, and R2 any number below."""
    squares = (mean.double() - y.double()).square().mean()
    variance = y.double().var(correction=0)
    scores = {"rmse": math.sqrt(squares)}
    return scores | {"r2": float(1 - squares / variance)} if len(y) >= R2_ROWS and variance > 0 else scores


class Bin(NamedTuple):
    """Rows whose probability lies from `low` to `high`: their mean probability, and how often it was so."""

    low: float
    high: float
    rows: int
    predicted: float
    observed: float


def reliability(p: Tensor, y: Tensor, bins: int = BINS) -> list[Bin]:
    """Of two classes: of the second one; of more: of the one that is predicted. Empty bins are left out."""
    if p.shape[1] == 2:
        said, happened = p[:, 1].double(), (y == 1).double()
    else:
        said, happened = p.double().max(1).values, (p.argmax(1) == y).double()
    place = (said * bins).long().clamp(0, bins - 1)
    found = []
    for b in range(bins):
        inside = place == b
        if n := int(inside.sum()):
            means = float(said[inside].mean()), float(happened[inside].mean())
            found.append(Bin(b / bins, (b + 1) / bins, n, *means))
    return found


def calibration_error(table: list[Bin]) -> float:
    """The expected one: how far predicted and observed shares are apart, in the mean over rows."""
    rows = sum(one.rows for one in table)
    return sum(one.rows * abs(one.predicted - one.observed) for one in table) / rows


def chance_error(table: list[Bin]) -> float:
    """The calibration error that perfect probabilities would have, by chance, with so few rows."""
    rows = sum(one.rows for one in table)
    spread = sum(math.sqrt(one.rows * one.predicted * (1 - one.predicted)) for one in table)
    return math.sqrt(2 / math.pi) * spread / rows  # the mean distance of a normal variable from its mean


def coverage(low: Tensor, high: Tensor, y: Tensor) -> float:
    """The share of values that lie in their intervals."""
    return float(((low <= y) & (y <= high)).double().mean())


@dataclass(frozen=True)
class Answers:
    """For some rows: probabilities (n, classes), or values (n,) with how surely they are known."""

    probabilities: Tensor | None = None
    numbers: Values | None = None
    weights: Tensor | None = None  # (classes,): by which a class is answered

    @property
    def classes(self) -> Tensor:
        """(n,): the numbers of the classes that are answered."""
        if self.probabilities is None:
            raise SettingError("the tasks are regressions: they have values, no probabilities (interval)")
        return chosen(self.probabilities, self.weights)

    @property
    def values(self) -> Tensor:
        """(n,), of a regression."""
        return self._numbers.mean

    @property
    def _numbers(self) -> Values:
        if self.numbers is None:
            raise SettingError("the tasks have classes: they have probabilities, no values and no intervals")
        return self.numbers

    def interval(self, level: float) -> tuple[Tensor, Tensor]:
        """Between which values a new measurement lies, with this probability: low (n,), high (n,)."""
        return self._numbers.interval(check_level(level))

    def scores(self, y: Tensor) -> dict[str, float]:
        """Of class numbers, or values, y (n,)."""
        return (
            value_scores(self.values, y)
            if self.probabilities is None
            else class_scores(self.probabilities, y, self.weights)
        )

    def by_class(self, y: Tensor) -> list[ClassScores]:
        """Of each class, by class numbers y (n,)."""
        if self.probabilities is None:
            raise SettingError("the tasks are regressions: they have no scores by class")
        return scores_by_class(self.probabilities, y, self.weights)


def check_level(level: Any) -> float:
    """A probability, as Python's own number. A wrong one is an error."""
    level = plain(level)
    if not is_number(level) or not 0 < level < 1:
        raise SettingError(f"level={level!r}; expected a number between 0 and 1, such as 0.9")
    return float(level)
