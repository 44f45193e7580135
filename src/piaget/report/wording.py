"""Numbers as they stand in sentences."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Sequence

from piaget.report.groups import Group
from piaget.report.statistics import Tested

MINUS, SPACE = "\u2212", "\u00a0"  # lines are not broken at the latter


def score(group: Group, mean: float, error: float = math.nan) -> str:
    """92.5 ± 0.6 %, or rmse 9.92 ± 0.40."""
    spread = "" if math.isnan(error) else f"{SPACE}±{SPACE}{error:.{group.digits}f}"
    text = f"{mean:.{group.digits}f}{spread}"
    return f"{text}{SPACE}%" if group.metric == "accuracy" else f"{group.metric} {text}"


def amount(group: Group, change: float, signed: bool = False) -> str:
    """A difference of scores: 0.5 points, +0.5 points, or 0.05 of an error."""
    return _number(change, group.digits, signed) + (f"{SPACE}points" if group.metric == "accuracy" else "")


def interval(group: Group, test: Tested) -> str:
    """+0.1 to +0.9."""
    low, high = test.interval
    return f"{_number(low, group.digits, True)} to {_number(high, group.digits, True)}"


def p_value(p: float) -> str:
    """p = 0.012"""
    text = "< 0.001" if p < 0.001 else f"= {p:.3f}" if p < 0.1 else f"= {p:.2f}"
    return f"p {text}".replace(" ", SPACE)


def counted(number: int, thing: str) -> str:
    """1 seed, 2 seeds."""
    return f"{number:,}{SPACE}{thing}{'' if number == 1 else 's'}"


def listed(names: Sequence[str], most: int | None = None) -> str:
    """a, b and c; a, b and 4 others."""
    if most is not None and len(names) > most + 1:
        names = [*names[:most], counted(len(names) - most, "other")]
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def sentence(text: str) -> str:
    """With a full stop, unless a name at its end has one."""
    return text if text.endswith(".") else f"{text}."


def _number(value: float, digits: int, signed: bool) -> str:
    text = f"{abs(value):.{digits}f}"
    if float(text) == 0:
        return text
    return (MINUS if value < 0 else "+" if signed else "") + text


def today() -> datetime.date:
    """Or the day that is given for files that are to come out the same on any day (SOURCE_DATE_EPOCH)."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not given.isdecimal():
        return datetime.date.today()
    return datetime.datetime.fromtimestamp(int(given), datetime.UTC).date()
