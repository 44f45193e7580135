"""A hook for those who want to see what a run draws: tests hold the library against a plain implementation.

An observer is called with an event, what was drawn, and what for, and returns what is to be used:

    begin    the state, right after a task (or the initial tasks) began, with all that was drawn for it
    plan     one epoch of one run over one part of its data; about: stage, part
    sample   row numbers of a finished task's training samples
    labels   labels drawn from a network's predictions, for the Fisher information
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Observer = Callable[..., Any]  # (event, value, **about) -> value
T = TypeVar("T")

_observers: list[Observer] = []


@contextmanager
def observed_by(observer: Observer) -> Iterator[None]:
    """Inside, the observer sees all that is drawn in this process."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def observed(event: str, value: T, **about: Any) -> T:
    """Tells all observers, if there are any."""
    for observer in _observers:
        value = observer(event, value, **about)
    return value
