"""Expansion: whether a new component is tried for a task, and whether it is kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from piaget.data.tasks import Kind
from piaget.method.objective import improvement


class Expansion(ABC):
    proposes: bool  # is a candidate component trained along with each new task?
    passes: tuple[bool, ...]  # each batch is used once a pass; True: with the candidate hidden

    @abstractmethod
    def keeps(self, kind: Kind, with_candidate: float, without: float) -> bool:
        """The decision, from the two validation scores."""


@dataclass(frozen=True)
class NoExpansion(Expansion):
    """The set of components stays as it is."""

    proposes = False
    passes = (False,)

    def keeps(self, kind: Kind, with_candidate: float, without: float) -> bool:
        return False


@dataclass(frozen=True)
class ComponentDropout(Expansion):
    """Every batch is used with the candidate and with it hidden; it is kept if it improves the
    validation score by at least `threshold`, relative."""

    threshold: float = 0.05
    proposes = True
    passes = (False, True)

    def keeps(self, kind: Kind, with_candidate: float, without: float) -> bool:
        return improvement(kind, with_candidate, without) >= self.threshold
