"""Reduction: which components might be done without when a task has been learned.

What is proposed is tried, and done only if no known task loses more than a tolerance by it, on stored samples
(scoring/bounding.py). What becomes of everything that has a place for each component: knowledge/reducing.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from piaget.method.trees import Tensors
from piaget.method.values import COUNT, NOT_NEGATIVE, WHOLE, check_fields, or_none


class Change(NamedTuple):
    """One component less. Those after it move up by one place, so a task still may use the first ones.

    >>> piaget.Change(3).first, piaget.Change(3, into=1, share=0.5).first
    (3, 1)
    """

    component: int  # this one goes
    into: int | None = None  # it is merged into this one, which comes before it; None: it is removed
    share: float = 0.0  # of its parameters in those of the merged one

    @property
    def first(self) -> int:
        """The first component that is another one afterwards: tasks that may only use those before it are as
        they were."""
        return self.component if self.into is None else self.into


class Reduction(ABC):
    """Which components might be done without. The least harmful proposal is carried out, and then others are
    asked for, as long as there is one within the tolerance.

    A learner that is told of a component that it does not have raises `SettingError`.

    >>> class WithoutTheUnused(piaget.Reduction):
    ...     tolerance = 0.01
    ...     def proposals(self, components, usage):
    ...         return [piaget.Change(i) for i, used in enumerate(usage.tolist()) if used < 0.1]
    >>> WithoutTheUnused().proposals({"weight": torch.zeros(3, 8, 8)}, torch.tensor([2.0, 0.05, 1.0]))
    [Change(component=1, into=None, share=0.0)]
    """

    tries: bool = True
    tolerance: float  # by how much the loss of each known task may rise in all, each time
    least: int | None = None  # so many components stay; None: as many as there were at first

    @abstractmethod
    def proposals(self, components: Tensors, usage: Tensor) -> list[Change]:
        """What might be done. components: (k, ...). usage: how much all tasks together use each, (k,)."""


@dataclass(frozen=True)
class NoReduction(Reduction):
    """All components stay. This is the default, and what the paper does.

    >>> piaget.Learner(reduction="none").settings.reduction
    NoReduction()
    """

    tries = False
    tolerance = 0.0

    def proposals(self, components: Tensors, usage: Tensor) -> list[Change]:
        return []


@dataclass(frozen=True)
class PruneAndMerge(Reduction):
    """The least used components might be removed, and the most similar pairs be merged: into either of the
    two, or into their mean, weighed by how much they are used.

    Similar are those whose parameters differ little, relative to their size: all components write into the
    same space, so there is no order of units to be matched first.

    removals, pairs: how many of them are tried at a time.

    Raises `SettingError` for numbers that make no sense.

    >>> components = {"weight": torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.1, 1.0]])}  # (k, ...)
    >>> usage = torch.tensor([1.0, 6.0, 2.0])  # (k,)
    >>> for change in piaget.PruneAndMerge(pairs=1).proposals(components, usage):
    ...     print(change)
    Change(component=0, into=None, share=0.0)
    Change(component=2, into=1, share=0.0)
    Change(component=2, into=1, share=0.25)
    Change(component=2, into=1, share=1.0)
    """

    tolerance: float = 0.02
    removals: int = 1
    pairs: int = 3
    least: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, tolerance=NOT_NEGATIVE, removals=COUNT, pairs=COUNT, least=or_none(WHOLE))

    def proposals(self, components: Tensors, usage: Tensor) -> list[Change]:
        changes = [Change(int(c)) for c in usage.argsort(stable=True)[: self.removals]]
        for into, component in self._similar(components):
            pair = usage[component] + usage[into]
            mean = float(usage[component] / pair) if pair > 0 else 0.5
            changes += [Change(component, into, share) for share in sorted({0.0, mean, 1.0})]
        return changes

    def _similar(self, components: Tensors) -> list[tuple[int, int]]:
        """The pairs that differ least, the first of a pair being the one that comes first."""
        flat = torch.cat([p.flatten(1) for p in components.values()], 1).double()  # (k, numbers)
        first, second = torch.triu_indices(len(flat), len(flat), 1)
        sizes = flat[first].norm(dim=1) + flat[second].norm(dim=1)
        differences = (flat[first] - flat[second]).norm(dim=1) / sizes.clamp(min=1e-12)
        nearest = differences.argsort(stable=True)[: self.pairs]
        return [(int(first[i]), int(second[i])) for i in nearest]


REDUCTIONS: dict[str, Reduction] = {"none": NoReduction(), "prune-and-merge": PruneAndMerge()}
