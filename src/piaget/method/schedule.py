"""Schedules: which stage each epoch of a task is; and stages: who learns in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import get_args

from piaget.errors import SettingError
from piaget.method.parameters import PAST_ROLES, SHARED_ROLES, TASK_ROLES, Role
from piaget.method.values import EPOCHS, FLAG, MOST_EPOCHS, STAGES, check_fields


@dataclass(frozen=True)
class StageKind:
    """Who learns in an epoch, and whether past tasks take part.

    trains: the groups of parameters that learn; groups that a method does not have are left out. The encoders
    and decoders of past tasks ("past encoder", "past decoder") learn from stored samples, if there are any.
    adapts: the adaptation's stored samples join the batches, and it corrects the components' gradient.

    Raises `SettingError` if a group is not known.

    >>> piaget.StageKind("warm-up", frozenset(["decoder"])).adapts
    False
    """

    name: str
    trains: frozenset[Role]
    adapts: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.trains, frozenset) or not isinstance(self.name, str):
            raise SettingError(
                f"stage {self.name!r} trains {self.trains!r}; expected a name, and a frozenset of groups"
            )
        unknown = sorted(map(str, self.trains - set(get_args(Role))))
        if unknown:
            raise SettingError(
                f"stage {self.name!r} trains {', '.join(unknown)}; expected some of "
                f"{', '.join(get_args(Role))}"
            )


INITIALIZATION = StageKind("initialization", frozenset(["components", *SHARED_ROLES]))
# Without a structure to protect, the initial tasks' own parameters learn, too.
WHOLE_INITIALIZATION = StageKind("initialization", INITIALIZATION.trains | {*TASK_ROLES})
# Nothing is shared: the initial tasks learn what is their own.
SEPARATE_INITIALIZATION = StageKind("initialization", frozenset(TASK_ROLES))
ASSIMILATION = StageKind("assimilation", frozenset(["candidate", *TASK_ROLES]))
ADAPTATION = StageKind("adaptation", frozenset(["components", *SHARED_ROLES]), adapts=True)
JOINT = StageKind("joint", ADAPTATION.trains | {*TASK_ROLES}, adapts=True)
WHOLE = StageKind("joint", JOINT.trains | {*PAST_ROLES}, adapts=True)


class Schedule(ABC):
    """Which stage each epoch is.

    >>> [stage.name for stage in piaget.Staged(2, 2, 1).stages()]
    ['assimilation', 'assimilation', 'adaptation']
    """

    @abstractmethod
    def stages(self) -> list[StageKind]:
        """The stage of every epoch on one task."""


@dataclass(frozen=True)
class Staged(Schedule):
    """Algorithm 1: after every `adapt_freq` of `struct_updates` epochs of assimilation, the
    components adapt for `comp_updates` epochs.

    Raises `SettingError` if there would be too many epochs.

    >>> len(piaget.Staged(struct_updates=900, adapt_freq=9, comp_updates=1).stages())
    1000
    """

    struct_updates: int = 99
    adapt_freq: int = 99
    comp_updates: int = 1

    def __post_init__(self) -> None:
        check_fields(self, struct_updates=STAGES, adapt_freq=EPOCHS, comp_updates=STAGES)
        adapted = self.struct_updates // self.adapt_freq * self.comp_updates
        if self.struct_updates + adapted > MOST_EPOCHS:
            raise SettingError(f"{adapted:,} epochs of adaptation; expected at most {MOST_EPOCHS:,} in all")

    def stages(self) -> list[StageKind]:
        stages: list[StageKind] = []
        for i in range(1, self.struct_updates + 1):
            stages.append(ASSIMILATION)
            if i % self.adapt_freq == 0:
                stages += [ADAPTATION] * self.comp_updates
        return stages


@dataclass(frozen=True)
class Joint(Schedule):
    """Components and structure learn together in every epoch; with `past`, so do the encoders and decoders of
    past tasks, from their stored samples.

    >>> {stage.name for stage in piaget.Joint(20).stages()}
    {'joint'}
    """

    epochs: int = 100
    past: bool = False

    def __post_init__(self) -> None:
        check_fields(self, epochs=STAGES, past=FLAG)

    def stages(self) -> list[StageKind]:
        return [WHOLE if self.past else JOINT] * self.epochs
