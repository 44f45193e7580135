"""Plain data from a file, read as its type hints say; what is anything else is refused."""

from __future__ import annotations

import dataclasses
import math
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

LARGEST = 2**63  # of whole numbers


def read(hint: Any, value: Any, where: str) -> Any:
    """The value, with tuples and dataclasses where the hint has them. ValueError: it is something else."""
    kind, inside = get_origin(hint), get_args(hint)
    if kind in (Union, types.UnionType):
        return _read_one_of(inside, value, where)
    if kind is Literal and isinstance(value, str) and value in inside:
        return value
    if kind in (tuple, list) and isinstance(value, list):
        return kind(read(inside[0], one, f"{where}[{i}]") for i, one in enumerate(value))
    if kind is dict and isinstance(value, dict):
        return {name: read(inside[1], one, f"{where}.{name}") for name, one in value.items()}
    if isinstance(hint, type) and dataclasses.is_dataclass(hint) and isinstance(value, dict):
        return hint(**read_fields(get_type_hints(hint), value, where))
    if hint is Any or (hint in PLAIN and PLAIN[hint](value)):
        return value
    expected = getattr(hint, "__name__", str(hint)) if kind is None else str(hint)
    raise ValueError(f"{where} is {_shown(value)}; expected {expected}")


def read_fields(
    hints: dict[str, Any], value: Any, where: str, optional: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """A dictionary with these fields, no others, and all that are not optional."""
    if not isinstance(value, dict) or set(value) - set(hints) or set(hints) - set(value) - optional:
        names = ", ".join(map(str, value)) if isinstance(value, dict) else _shown(value)
        raise ValueError(f"{where} has {_shortened(names)}; expected {', '.join(hints)}")
    return {name: read(hints[name], one, f"{where}.{name}") for name, one in value.items()}


def _read_one_of(hints: tuple[Any, ...], value: Any, where: str) -> Any:
    for hint in hints[:-1]:
        try:
            return read(hint, value, where)
        except ValueError:
            continue
    return read(hints[-1], value, where)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST


PLAIN: dict[Any, Any] = {
    bool: lambda value: isinstance(value, bool),
    int: _is_whole,
    float: lambda value: _is_whole(value) or (isinstance(value, float) and math.isfinite(value)),
    str: lambda value: isinstance(value, str),
    types.NoneType: lambda value: value is None,
}


def _shown(value: Any) -> str:
    plain = isinstance(value, bool | float | str | None) or _is_whole(value)
    return _shortened(repr(value)) if plain else f"a {type(value).__name__}"


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."
