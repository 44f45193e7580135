"""Expansion: whether a new component is tried for a task, and whether it is kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

from piaget.data.arrays import Kind
from piaget.method import objective
from piaget.method.choices import NUMBER, check_fields


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
    def right(self) -> tuple[Tensor, Tensor]:
        """Which samples (n,) are predicted rightly, with the candidate and without it; of a regression,
        better than the other way."""
        pair = (self.with_candidate, self.without)
        if self.kind == "regression":
            with_candidate, without = ((out[:, 0] - self.targets).abs() for out in pair)
            return with_candidate < without, without < with_candidate
        with_candidate, without = (objective.predict(self.kind, out) == self.targets for out in pair)
        return with_candidate, without


class Expansion(ABC):
    """Whether a candidate component is trained along with each new task, and whether it is kept.

    >>> class Always(piaget.Expansion):
    ...     proposes, passes = True, (False, True)
    ...     def keeps(self, evidence):
    ...         return True
    >>> piaget.Learner(expansion=Always()).settings.algorithm.expansion.proposes
    True
    """

    proposes: bool  # is one trained?
    passes: tuple[bool, ...]  # each batch is used once a pass; True: with the candidate hidden

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
    proposes = True
    passes = (False, True)

    def __post_init__(self) -> None:
        check_fields(self, threshold=NUMBER)

    def keeps(self, evidence: Evidence) -> bool:
        return objective.improvement(evidence.kind, *evidence.scores) >= self.threshold


EXPANSIONS: dict[str, Expansion] = {"none": NoExpansion(), "dropout": ComponentDropout()}
