"""Schedules: which stage each epoch of a task is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

from piaget.errors import SettingError

StageName = Literal["initialization", "assimilation", "adaptation", "joint"]


def default_epochs(linear: bool) -> int:
    """The paper's: linear models take a full-batch step an epoch."""
    return 10_000 if linear else 100


class Schedule(ABC):
    @abstractmethod
    def stages(self) -> list[StageName]:
        """The stage of every epoch on one task."""


@dataclass(frozen=True)
class Staged(Schedule):
    """Algorithm 1: after every `adapt_freq` of `struct_updates` epochs of assimilation, the
    components adapt for `comp_updates` epochs."""

    struct_updates: int = 99
    adapt_freq: int = 99
    comp_updates: int = 1

    def __post_init__(self) -> None:
        for name, least in (("struct_updates", 0), ("adapt_freq", 1), ("comp_updates", 0)):
            if getattr(self, name) < least:
                raise SettingError(f"{name}={getattr(self, name)}; expected {least} or more")

    def stages(self) -> list[StageName]:
        stages: list[StageName] = []
        for i in range(1, self.struct_updates + 1):
            stages.append("assimilation")
            if i % self.adapt_freq == 0:
                stages += ["adaptation"] * self.comp_updates
        return stages


@dataclass(frozen=True)
class Joint(Schedule):
    """Components and structure learn together in every epoch."""

    epochs: int = 100

    def __post_init__(self) -> None:
        if self.epochs < 0:
            raise SettingError(f"epochs={self.epochs}; expected 0 or more")

    def stages(self) -> list[StageName]:
        return ["joint"] * self.epochs
