"""Streams that make a task when it is asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import overload

from piaget.data.tasks import Task


class LazyStream(Sequence[Task], ABC):
    """A stream made from a seed. A task asked for twice is made twice, and is the same."""

    name: str
    seed: int

    @abstractmethod
    def make(self, i: int) -> Task:
        """Task i, 0 <= i < len(self)."""

    @overload
    def __getitem__(self, i: int) -> Task: ...
    @overload
    def __getitem__(self, i: slice) -> list[Task]: ...
    def __getitem__(self, i: int | slice) -> Task | list[Task]:
        if isinstance(i, slice):
            return [self.make(j) for j in range(*i.indices(len(self)))]
        if not -len(self) <= i < len(self):
            raise IndexError(f"task {i} of {len(self)} tasks")
        return self.make(i % len(self))

    def __repr__(self) -> str:
        return f"<stream {self.name!r}, {len(self)} tasks, seed {self.seed}>"


class MadeStream(LazyStream):
    """A stream from a function that makes task i."""

    def __init__(self, name: str, seed: int, length: int, make: Callable[[int], Task]) -> None:
        self.name, self.seed, self._length, self._make = name, seed, length, make

    def __len__(self) -> int:
        return self._length

    def make(self, i: int) -> Task:
        return self._make(i)
