"""Expansion: whether a new component is tried for a task, and whether it is kept."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

from piaget.data.arrays import Kind
from piaget.method import objective
from piaget.method.values import NUMBER, SHARE, check_fields


@dataclass(frozen=True, eq=False)
class Evidence:
    """A task's validation data, with the candidate component and without it, sample by sample.

    with_candidate, without: outputs (n, columns); targets: (n,), class numbers or values.

    >>> logits = torch.tensor([[2.0], [-1.0], [3.0]])
    >>> evidence = piaget.Evidence("binary", logits, -logits, torch.tensor([1, 0, 0]))
    >>> [round(score, 2) for score in evidence.scores]
    [0.67, 0.33]
    """

    kind: Kind
    with_candidate: Tensor
    without: Tensor
    targets: Tensor

    @property
    def scores(self) -> tuple[float, float]:
        """Accuracy, or root mean squared error: with the candidate, and without it."""
        with_candidate = objective.score(self.kind, self.with_candidate, self.targets)
        return with_candidate, objective.score(self.kind, self.without, self.targets)

    @property
    def errors(self) -> tuple[float, float]:
        """The share of wrong answers, or the mean squared error: with the candidate, and without it."""
        with_candidate, without = self.scores
        if self.kind == "regression":
            return with_candidate**2, without**2
        return 1 - with_candidate, 1 - without

    @property
    def right(self) -> tuple[Tensor, Tensor]:
        """Which samples (n,) are predicted rightly, with the candidate and without it; of a regression,
        better than the other way."""
        pair = (self.with_candidate, self.without)
        if self.kind == "regression":
            with_candidate, without = ((out[:, 0] - self.targets).abs() for out in pair)
            return with_candidate < without, without < with_candidate
        with_candidate, without = (objective.predict(self.kind, out) == self.targets for out in pair)
        return with_candidate, without

    @staticmethod
    def at_best(kind: Kind, without: Tensor, targets: Tensor) -> Evidence:
        """What there would be if a candidate made every sample right."""
        return Evidence(kind, objective.perfect(kind, targets, without.shape[1]), without, targets)


class Expansion(ABC):
    """Whether a candidate component is trained along with each new task, and whether it is kept.

    >>> class Always(piaget.Expansion):
    ...     def keeps(self, evidence):
    ...         return True
    >>> piaget.Learner(expansion=Always()).settings.algorithm.expansion.proposes
    True
    """

    proposes: bool = True  # is one trained?
    # Each batch is used once a pass; True: with the candidate hidden. Both, as here, is component dropout.
    passes: tuple[bool, ...] = (False, True)
    # The task is learned without a candidate first. Then, if a perfect one would be kept, it is learned from
    # the start again, with a candidate; one that is not kept leaves no trace.
    in_second_attempt: bool = False

    @abstractmethod
    def keeps(self, evidence: Evidence) -> bool:
        """The decision, when the task has been learned."""


@dataclass(frozen=True)
class NoExpansion(Expansion):
    """The set of components stays as it is.

    >>> piaget.NoExpansion().proposes
    False
    """

    proposes = False
    passes = (False,)

    def keeps(self, evidence: Evidence) -> bool:
        return False


@dataclass(frozen=True)
class ComponentDropout(Expansion):
    """Every batch is used with the candidate and with it hidden; it is kept if it improves the
    validation score by at least `threshold`, relative.

    Raises `SettingError` if `threshold` is no number.

    >>> logits = torch.tensor([[2.0], [-1.0], [3.0]])
    >>> evidence = piaget.Evidence("binary", logits, -logits, torch.tensor([1, 0, 0]))
    >>> piaget.ComponentDropout(threshold=0.05).keeps(evidence)
    True
    """

    threshold: float = 0.05

    def __post_init__(self) -> None:
        check_fields(self, threshold=NUMBER)

    def keeps(self, evidence: Evidence) -> bool:
        return objective.improvement(evidence.kind, *evidence.scores) >= self.threshold


@dataclass(frozen=True)
class McNemar(Expansion):
    """Component dropout, with a keep rule on errors instead of scores, which can fire however good the score
    is: the candidate is kept if it lowers the validation error by at least `least`, relative, and if it mends
    significantly more samples than it spoils, by McNemar's exact one-sided test at `level`.

    Of a regression, the error is the mean squared one, and a sample is mended if its own squared error gets
    smaller, spoilt if it gets larger: the sign test on paired errors.

    Raises `SettingError` if `level` or `least` is no share.

    >>> targets, without = torch.ones(20), torch.ones(20, 1)
    >>> without[:6] = -1  # 6 of 20 samples are wrong without the candidate, which mends 4 or all of them
    >>> with_candidate = torch.cat([-torch.ones(2, 1), torch.ones(18, 1)])
    >>> piaget.McNemar().keeps(piaget.Evidence("binary", with_candidate, without, targets))
    False
    >>> piaget.McNemar().keeps(piaget.Evidence("binary", torch.ones(20, 1), without, targets))
    True
    """

    level: float = 0.05
    least: float = 0.05

    def __post_init__(self) -> None:
        check_fields(self, level=SHARE, least=SHARE)

    def keeps(self, evidence: Evidence) -> bool:
        return fewer_errors(evidence, self.level, self.least)


@dataclass(frozen=True)
class SecondAttempt(Expansion):
    """A task is learned with the components that there are. If it then has so many validation errors that a
    component could lower them significantly, it is learned once more, from the start, by component dropout.
    The candidate is kept by the rule of `McNemar`, against what has fewer validation errors without it: the
    first attempt, or the second with the candidate hidden. That is also what stays if it is not kept; and if
    it is the first attempt, the learner is as if there had been no other.

    Component dropout trains a task for both cases at once, which takes twice as many steps, and costs
    accuracy where samples are few: there, one attempt is nearly always enough. Where training is short, the
    second attempt's steps are needed, and a candidate is not to be kept for having had them.

    Raises `SettingError` if `level` or `least` is no share.

    >>> targets, first = torch.ones(20), torch.ones(20, 1)
    >>> first[:4] = -1  # 4 errors: even if a candidate mended them all, that could be by chance
    >>> piaget.SecondAttempt().keeps(piaget.Evidence.at_best("binary", first, targets))
    False
    """

    level: float = 0.05
    least: float = 0.05
    in_second_attempt = True

    def __post_init__(self) -> None:
        check_fields(self, level=SHARE, least=SHARE)

    def keeps(self, evidence: Evidence) -> bool:
        return fewer_errors(evidence, self.level, self.least)


def fewer_errors(evidence: Evidence, level: float, least: float) -> bool:
    """Does the candidate lower the error by at least `least`, relative, and mend significantly more samples
    than it spoils?"""
    new, old = evidence.errors
    with_candidate, without = evidence.right
    mended = int((with_candidate & ~without).sum())
    spoilt = int((without & ~with_candidate).sum())
    lower = old - new >= least * old
    return lower and mended + spoilt > 0 and fair_tail(mended, mended + spoilt) <= level


def fair_tail(heads: int, throws: int) -> float:
    """The probability of so many heads or more, if a coin is fair: an exact binomial tail."""

    def log_probability(i: int) -> float:
        ways = math.lgamma(throws + 1) - math.lgamma(i + 1) - math.lgamma(throws - i + 1)
        return ways - throws * math.log(2)

    return min(1.0, math.fsum(math.exp(log_probability(i)) for i in range(heads, throws + 1)))


EXPANSIONS: dict[str, Expansion] = {
    "none": NoExpansion(),
    "dropout": ComponentDropout(),
    "mcnemar": McNemar(),
    "second-attempt": SecondAttempt(),
}
