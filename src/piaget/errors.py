"""The errors that piaget raises about what it was given."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable, Sequence

SHOWN = 20  # known names in a message, at most


class PiagetError(Exception):
    """Anything a user can put right; its text says what was found and what was expected.

    >>> try:
    ...     piaget.Learner(structure="soft ordering")
    ... except piaget.PiagetError as error:
    ...     print(type(error).__name__)
    SettingError
    """


class TaskError(PiagetError, ValueError):
    """A task's data is not usable.

    >>> issubclass(piaget.TaskError, ValueError)
    True
    """


class SettingError(PiagetError, ValueError):
    """A setting has a wrong value, or settings do not fit together.

    >>> piaget.Learner(epochs=-1)
    Traceback (most recent call last):
    piaget.errors.SettingError: epochs=-1; expected ...
    """


class UnknownTaskError(PiagetError, KeyError):
    """A task's name is not known to the learner, or the task is still pending.

    >>> piaget.Learner().predict(np.zeros((1, 4)), task="site 1")
    Traceback (most recent call last):
    piaget.errors.UnknownTaskError: task 'site 1' is not known; known tasks: none yet
    """

    def __str__(self) -> str:  # KeyError would show the text in quotes
        return str(self.args[0])


def with_article(name: str) -> str:
    """A type's name with its article: an int, a uint8, an ndarray."""
    vowel = name[:1].lower() in set("aeio") or name.startswith("nd")
    return f"{'an' if vowel else 'a'} {name}"


def type_of(value: object) -> str:
    """The type of a value for a message: an int, a list, None."""
    return "None" if value is None else with_article(type(value).__name__)


def suggestion(name: str, known: Iterable[str]) -> str:
    """The known name that looks most like one that is not known, in brackets; empty if none does."""
    near = difflib.get_close_matches(name, list(known), 1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def unknown_task(name: str, known: Sequence[str]) -> UnknownTaskError:
    """The error about a name that is none of the known ones: it lists some, and those that look alike."""
    listed = ", ".join(map(repr, known[:SHOWN])) or "none yet"
    more = f", and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
    alike = difflib.get_close_matches(name, known) or [one for one in known if name in one][:3]
    meant = f"; did you mean {' or '.join(map(repr, alike))}?" if alike and more else ""
    return UnknownTaskError(f"task {name!r} is not known; known tasks: {listed}{more}{meant}")


class NotFinite(PiagetError, ArithmeticError):
    """A number that is infinite, or none at all, where an answer or a parameter was to be.

    >>> issubclass(piaget.NotFinite, ArithmeticError)
    True
    """


class Diverged(NotFinite):
    """Learning, or what was learned, led to numbers that are not finite.

    The learner is as it was before the task; if the task had been interrupted, as it was last, and finite.

    >>> issubclass(piaget.Diverged, piaget.NotFinite)
    True
    """

    def __init__(self, text: str, task: str, stage: str, epoch: int, seed: int) -> None:
        super().__init__(text, task, stage, epoch, seed)  # all of them: it travels between processes
        self.task, self.stage, self.epoch, self.seed = task, stage, epoch, seed

    def __str__(self) -> str:
        return str(self.args[0])


class LoadError(PiagetError):
    """A folder does not hold a learner that can be loaded.

    >>> piaget.load("no such folder")
    Traceback (most recent call last):
    piaget.errors.LoadError: ...
    """


class DataError(PiagetError, ValueError):
    """A data file or table that is missing, damaged, or not what is expected.

    >>> piaget.streams.from_folder("no such folder")
    Traceback (most recent call last):
    piaget.errors.DataError: no such folder does not exist, or is no folder
    """


class DataNote(UserWarning):
    """Something about the data that a user should know, and that was dealt with.

    To be silent about them: `warnings.simplefilter("ignore", piaget.DataNote)`.

    >>> issubclass(piaget.DataNote, UserWarning)
    True
    """


def note(text: str) -> None:
    """Warns of something about the data, at the line of the user's own code that led to it."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "piaget":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, DataNote, stacklevel=level)


class PackageError(PiagetError):
    """A package that is an optional extra is needed, and not installed."""


class CompileNote(UserWarning):
    """A step runs slower than it could."""
