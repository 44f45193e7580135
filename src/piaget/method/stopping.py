"""Stop rules and kept epochs: how long a stage lasts, and which of its epochs is kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from piaget.method.values import WHOLE, check_fields, one_of


class StopRule(ABC):
    """When a stage on a task ends before its last epoch, by scores on validation data.

    >>> class Enough(piaget.StopRule):
    ...     def stops(self, gains):
    ...         return gains[-1] > 0.99
    >>> Enough().stops([0.8, 0.995])
    True
    """

    watches: bool = True  # does it need scores? They cost an evaluation after every epoch

    @abstractmethod
    def stops(self, gains: Sequence[float]) -> bool:
        """Asked after every epoch of a stage. gains: the validation score of each of its epochs so far, more
        being better (of a regression, minus the error)."""


@dataclass(frozen=True)
class NeverStop(StopRule):
    """Every stage has all its epochs.

    >>> piaget.NeverStop().stops([0.9, 0.1])
    False
    """

    watches = False

    def stops(self, gains: Sequence[float]) -> bool:
        return False


@dataclass(frozen=True)
class Patience(StopRule):
    """Stops when the best score of a stage is `epochs` epochs old.

    Raises `SettingError` if `epochs` is not a whole number from 1 on.

    >>> piaget.Patience(2).stops([0.7, 0.9, 0.8]), piaget.Patience(2).stops([0.7, 0.9, 0.8, 0.8])
    (False, True)
    """

    epochs: int = 10

    def __post_init__(self) -> None:
        check_fields(self, epochs=WHOLE)

    def stops(self, gains: Sequence[float]) -> bool:
        best = max(range(len(gains)), key=gains.__getitem__)
        return len(gains) - 1 - best >= self.epochs


class ValidationScores(NamedTuple):
    """What validation data says of a task after an epoch.

    >>> piaget.ValidationScores(gain=0.9, loss=0.3)
    ValidationScores(gain=0.9, loss=0.3)
    """

    gain: float  # its score, more being better (of a regression, minus the error)
    loss: float


class KeptEpoch(ABC):
    """Which epoch's parameters a stage ends with, if nothing learns in it but what is a task's own, and the
    candidate component: then one can go back to an epoch, and nothing changes for other tasks.

    >>> class FirstGood(piaget.KeptEpoch):
    ...     def prefers(self, seen):
    ...         return all(scores.gain < 0.9 for scores in seen[:-1])
    >>> seen = [piaget.ValidationScores(gain, 0.0) for gain in (0.8, 0.92, 0.95)]
    >>> [FirstGood().prefers(seen[:epochs]) for epochs in (1, 2, 3)]  # the second epoch stays
    [True, True, False]
    """

    watches: bool = True  # does it need validation data? An evaluation costs
    every: int = 1  # it is looked at after each so many epochs of a stage, and after the last

    @abstractmethod
    def prefers(self, seen: Sequence[ValidationScores]) -> bool:
        """Is the last one of these epochs, of one task in one stage, the one to keep so far?"""


@dataclass(frozen=True)
class LastEpoch(KeptEpoch):
    """A stage ends with what its last epoch left. This is the default, and what the paper does.

    >>> piaget.Learner(kept_epoch="last").settings.kept_epoch
    LastEpoch()
    """

    watches = False

    def prefers(self, seen: Sequence[ValidationScores]) -> bool:
        return True


@dataclass(frozen=True)
class BestEpoch(KeptEpoch):
    """A stage ends with what its best epoch on validation data left: parameters, and the optimizer's numbers.
    Of equals, the first is the best.

    by: "loss", which tells epochs apart that classify the same samples rightly; or "score", which is what is
    reported in the end, and then the loss.

    Raises `SettingError` if `every` is not a whole number from 1 on, or `by` is another word.

    >>> seen = [piaget.ValidationScores(gain=0.9, loss=0.5), piaget.ValidationScores(gain=0.8, loss=0.4)]
    >>> piaget.BestEpoch().prefers(seen), piaget.BestEpoch(by="score").prefers(seen)
    (True, False)
    """

    every: int = 1
    by: str = "loss"

    def __post_init__(self) -> None:
        check_fields(self, every=WHOLE, by=one_of("loss", "score"))

    def prefers(self, seen: Sequence[ValidationScores]) -> bool:
        *before, last = ((one.gain * (self.by == "score"), -one.loss) for one in seen)
        return not before or last > max(before)


STOP_RULES: dict[str, StopRule] = {"never": NeverStop(), "patience": Patience()}
KEPT_EPOCHS: dict[str, KeptEpoch] = {"last": LastEpoch(), "best": BestEpoch()}
