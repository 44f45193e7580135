"""Acceptance: how much of what an adaptation changed is taken over.

After a stage that adapts, components (and what else earlier tasks depend on: shared and past encoders and
decoders) are put on the line between what they were before it and what they are after it. Where on that line
is a part's decision: all of it, as in the paper, or what data that was not trained on speaks for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from piaget.method.adaptation import Stored
from piaget.method.trees import Tensors
from piaget.method.values import NOT_NEGATIVE, SHARE, WHOLE, check_fields, one_of


class Judgement(NamedTuple):
    """How a task is answered, sample by sample: the current task on validation data, a past one on stored
    samples.

    >>> judgement = piaget.Judgement("site 1", torch.tensor([0.1, 2.3]), torch.tensor([0.0, 1.0]))
    >>> float(judgement.errors.mean())
    0.5
    """

    task: str
    losses: Tensor  # (n,): cross-entropy, or squared error
    errors: Tensor  # (n,): 1 where the predicted class is wrong, else 0; of a regression, squared error


@dataclass(frozen=True, eq=False)
class Adapted:
    """An adaptation that has just ended, as an acceptance sees it.

    >>> def judge(share):  # the more is taken over, the better for the new task, the worse for the old one
    ...     losses = {"new": torch.tensor([1 - share]), "old": torch.tensor([0.2 * share])}
    ...     return [piaget.Judgement(task, loss, loss) for task, loss in losses.items()]
    >>> before, after = {"weight": torch.zeros(4, 8, 8)}, {"weight": torch.ones(4, 8, 8)}
    >>> adapted = piaget.Adapted(before, after, judge)
    >>> [judgement.task for judgement in adapted.judge(0.5)]
    ['new', 'old']
    """

    before: Tensors  # components (k, ...)
    after: Tensors
    judge: Callable[[float], list[Judgement]] = field(
        repr=False
    )  # of a share: the current task, then past ones


class Acceptance(ABC):
    """How much of an adaptation is taken over.

    A learner that is told a share outside of 0 to 1 raises `SettingError`.

    >>> class Harmless(piaget.Acceptance):  # all of it, if no task is answered worse than before
    ...     def share(self, adapted):
    ...         pairs = zip(adapted.judge(0.0), adapted.judge(1.0))
    ...         return float(all(new.losses.mean() <= old.losses.mean() for old, new in pairs))
    >>> def judge(share):
    ...     return [piaget.Judgement("old", torch.tensor([share]), torch.tensor([0.0]))]
    >>> Harmless().share(piaget.Adapted({}, {}, judge))
    0.0
    >>> piaget.Learner(acceptance=Harmless()).settings.acceptance.judges
    True
    """

    judges: bool = True  # False: everything is taken over, and nobody is asked
    held_out: float = 0.0  # the share of each task's stored samples that is judged by, and not replayed

    @abstractmethod
    def share(self, adapted: Adapted) -> float:
        """0: components stay as they were before; 1: they are as adaptation left them; or in between."""


@dataclass(frozen=True)
class TakeAll(Acceptance):
    """Components are as adaptation left them. This is the default, and what the paper does.

    >>> piaget.Learner(acceptance="all").settings.acceptance
    TakeAll()
    """

    judges = False

    def share(self, adapted: Adapted) -> float:
        return 1.0


@dataclass(frozen=True)
class Validated(Acceptance):
    """The share, out of 0, 1/steps, ..., 1, that does best on the current task's validation data and on past
    tasks' stored samples; each task counts the same, whatever its number of samples.

    by: the mean "loss", which few samples tell well, or the share of "error"s.
    margin: in standard errors of the difference. The smallest share is taken that is within it of the best
    one; 0: of equal ones, the smallest.
    held_out: this share of each task's stored samples is judged by instead of being replayed: samples that
    were just trained on would speak for any adaptation. Those of a task that has only one do both.

    Raises `SettingError` for numbers that make no sense.

    >>> def judge(share):  # the new task is best at share 1, the old one at 0
    ...     losses = {"new": torch.tensor([(1 - share) ** 2]), "old": torch.tensor([share**2])}
    ...     return [piaget.Judgement(task, loss, loss) for task, loss in losses.items()]
    >>> piaget.Validated(steps=4).share(piaget.Adapted({}, {}, judge))
    0.5
    """

    steps: int = 4
    by: str = "loss"
    margin: float = 0.0
    held_out: float = 0.25

    def __post_init__(self) -> None:
        check_fields(self, steps=WHOLE, by=one_of("loss", "error"), margin=NOT_NEGATIVE, held_out=SHARE)

    def share(self, adapted: Adapted) -> float:
        shares = [step / self.steps for step in range(self.steps + 1)]
        costs = [self._costs(adapted.judge(share)) for share in shares]
        means = [mean_and_error(one)[0] for one in costs]
        best = means.index(min(means))
        for share, cost in zip(shares, costs, strict=True):
            worse, error = mean_and_error([a - b for a, b in zip(cost, costs[best], strict=True)])
            if worse <= self.margin * error:
                return share
        return shares[best]

    def _costs(self, judgements: Sequence[Judgement]) -> list[Tensor]:
        return [(one.losses if self.by == "loss" else one.errors).double() for one in judgements]


def mean_and_error(tasks: Sequence[Tensor]) -> tuple[float, float]:
    """The mean over tasks of the means of their samples (n,), and its standard error."""
    means = torch.stack([values.mean() for values in tasks])
    variances = torch.stack(
        [values.var(correction=min(1, len(values) - 1)) / len(values) for values in tasks]
    )
    return float(means.mean()), float(variances.sum().sqrt()) / len(tasks)


def replayed(samples: Sequence[Stored], held_out: float) -> list[Stored]:
    """Stored samples without those that are judged by."""
    return [_rows(stored, slice(0, len(stored.y) - _held(stored, held_out))) for stored in samples]


def judged(samples: Sequence[Stored], held_out: float) -> list[Stored]:
    """Those that are judged by: the last ones of each task, since they were stored in random order. If there
    are none, all of them."""
    return [_rows(stored, slice(-_held(stored, held_out), None)) for stored in samples]


def _held(stored: Stored, share: float) -> int:
    """How many, of a task's: at least one, if there are two and any are held out at all."""
    n = len(stored.y)
    return min(n - 1, max(1, round(share * n))) if share > 0 else 0


def _rows(stored: Stored, rows: slice) -> Stored:
    fields = {name: values[rows] for name, values in stored.fields.items()}
    return Stored(stored.task, stored.h[rows], stored.y[rows], fields)


ACCEPTANCES: dict[str, Acceptance] = {"all": TakeAll(), "validated": Validated()}
