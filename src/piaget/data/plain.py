"""Numbers as users give them: Python's own, or numpy's and PyTorch's single ones. No heavy imports."""

from __future__ import annotations

import math
import numbers
import re
from typing import Any

from piaget.errors import SettingError, type_of

Label = str | int | float | bool  # of a class, as users have it
Fractions = tuple[float, float, float]  # of training, validation and test samples
BEYOND = 2**63  # torch takes whole numbers below it


def plain(value: Any) -> Any:
    """A single number of numpy or PyTorch (also an array without dimensions) as Python's own."""
    if getattr(value, "ndim", None) != 0 or not hasattr(value, "item") or getattr(value, "mask", False):
        return value
    value = value.item()
    return float(value) if hasattr(value, "item") else value  # numpy's long doubles stay themselves


def is_whole(value: Any) -> bool:
    """A whole number; True and False are none."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """A finite number; True and False are none."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def whole_from(text: str) -> int | None:
    """A text of the digits 0 to 9 as a number; None if it is none. (² is a digit, too, to Python.)"""
    return int(text) if re.fullmatch("[0-9]{1,4000}", text) else None


def shown(value: Any) -> str:
    """A value for a message: short, whatever it is."""
    try:
        text = repr(value)
    except Exception:  # such as a whole number of more digits than Python writes
        text = type_of(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def printable(text: str) -> str:
    """A user's text for a terminal or a line of a log: control characters as \\n, \\x1b and the like."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def check_count(name: str, count: Any, least: int = 1) -> int:
    """A whole number, 1 or more (or whatever is the least)."""
    count = plain(count)
    if not is_whole(count) or count < least:
        raise SettingError(f"{name}={shown(count)}; expected a whole number, {least} or more")
    return int(count)


def check_seed(seed: Any) -> int:
    """A seed, as Python's own number."""
    seed = plain(seed)
    if not is_whole(seed) or not 0 <= seed < BEYOND:
        raise SettingError(f"seed={shown(seed)}; expected a whole number, 0 or more, below 2^63")
    return int(seed)


def check_fractions(fractions: Any) -> Fractions:
    """Three shares that add to 1, as Python's own numbers."""
    listed = isinstance(fractions, tuple | list) or getattr(fractions, "ndim", 0) == 1
    shares = [plain(share) for share in fractions] if listed else []
    right = len(shares) == 3 and all(is_number(share) and share >= 0 for share in shares)
    if not right or shares[0] == 0 or abs(sum(shares) - 1) > 1e-6:
        raise SettingError(
            f"fractions={shown(fractions)}; expected three shares (training, validation, test) adding to 1"
        )
    return float(shares[0]), float(shares[1]), float(shares[2])
