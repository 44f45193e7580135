"""Which values numbers, words and flags may have, and errors that say so. No heavy imports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from piaget.data.plain import is_number, is_whole, plain, shown
from piaget.errors import SettingError


@dataclass(frozen=True)
class Values:
    """Which values a setting takes: as help texts show them, as a check, and in words."""

    shown: str
    allows: Callable[[Any], bool]
    expected: str


def one_of(*words: str) -> Values:
    """One of some words."""
    return Values(
        "|".join(words),
        lambda value: isinstance(value, str) and value in words,
        f"{', '.join(words[:-1])} or {words[-1]}",
    )


def or_none(values: Values) -> Values:
    """These, or None."""
    return Values(values.shown, lambda v: v is None or values.allows(v), f"{values.expected}, or None")


def _whole(value: Any, least: int, most: int = 2**31 - 1) -> bool:
    return is_whole(value) and least <= int(value) <= most


MOST_EPOCHS = 10**7

WHOLE = Values("N", lambda value: _whole(value, 1), "a whole number, 1 or more (below 2^31)")
COUNT = Values("N", lambda value: _whole(value, 0), "a whole number, 0 or more (below 2^31)")
EPOCHS = Values(
    "N", lambda v: _whole(v, 1, MOST_EPOCHS), f"a whole number, 1 or more (at most {MOST_EPOCHS:,})"
)
STAGES = Values(
    "N", lambda v: _whole(v, 0, MOST_EPOCHS), f"a whole number, 0 or more (at most {MOST_EPOCHS:,})"
)
NUMBER = Values("X", is_number, "a finite number")
POSITIVE = Values("X", lambda value: is_number(value) and value > 0, "a positive number")
NOT_NEGATIVE = Values("X", lambda value: is_number(value) and value >= 0, "a number, 0 or more")
SHARE = Values("X", lambda value: is_number(value) and 0 <= value < 1, "a number, at least 0 and below 1")
PART = Values("X", lambda value: is_number(value) and 0 < value < 1, "a number above 0 and below 1")
UP_TO_ONE = Values("X", lambda value: is_number(value) and 0 <= value <= 1, "a number from 0 to 1")
BATCH = Values(
    "N|all", lambda v: (isinstance(v, str) and v == "all") or _whole(v, 1), f"{WHOLE.expected}, or all"
)
SEED = Values("N", lambda v: _whole(v, 0, 2**63 - 1), "a whole number, 0 or more, below 2^63")
FLAG = Values("", lambda value: isinstance(value, bool), "True or False")
PLACE = Values("FOLDER", lambda value: isinstance(value, str), "the path of a folder")
TEXT = Values("NAME", lambda value: isinstance(value, str), "a name")


def check_number(name: str, value: Any, values: Values) -> Any:
    """A number, also numpy's, as Python's own; None stays None. A wrong one is an error."""
    return None if value is None else check_given(name, value, values)


def check_given(name: str, value: Any, values: Values) -> Any:
    """The same, but None is an error, too."""
    value = plain(value)
    if not values.allows(value):
        raise SettingError(f"{name}={shown(value)}: expected {values.expected}")
    return value


def check_fields(part: Any, **fields: Values) -> None:
    """The same of the fields of a frozen dataclass."""
    for name, values in fields.items():
        object.__setattr__(part, name, check_given(name, getattr(part, name), values))
