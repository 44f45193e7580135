"""Plain data from a file, read as its type hints say; what is anything else is refused."""

from __future__ import annotations

import dataclasses
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from piaget.data.plain import BEYOND, is_number, is_whole, shown
from piaget.errors import type_of

LATER = {"later": True}  # metadata of a field that files of older versions lack


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
        later = frozenset(field.name for field in dataclasses.fields(hint) if field.metadata.get("later"))
        return hint(**read_fields(get_type_hints(hint), value, where, later))
    if hint is Any or (hint in PLAIN and PLAIN[hint](value)):
        return value
    expected = getattr(hint, "__name__", str(hint)) if kind is None else str(hint)
    raise ValueError(f"{where} is {_told(value)}; expected {expected}")


def read_fields(
    hints: dict[str, Any], value: Any, where: str, optional: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """A dictionary with these fields, no others, and all that are not optional."""
    if not isinstance(value, dict) or set(value) - set(hints) or set(hints) - set(value) - optional:
        found = shown(list(value)) if isinstance(value, dict) else _told(value)
        raise ValueError(f"{where} has {found}; expected {', '.join(hints)}")
    return {name: read(hints[name], one, f"{where}.{name}") for name, one in value.items()}


def _read_one_of(hints: tuple[Any, ...], value: Any, where: str) -> Any:
    for hint in hints[:-1]:
        try:
            return read(hint, value, where)
        except ValueError:
            continue
    return read(hints[-1], value, where)


def _fits(value: Any) -> bool:
    return is_whole(value) and abs(value) < BEYOND


PLAIN: dict[Any, Any] = {
    bool: lambda value: isinstance(value, bool),
    int: _fits,
    float: lambda value: is_number(value) and (isinstance(value, float) or _fits(value)),
    str: lambda value: isinstance(value, str),
    types.NoneType: lambda value: value is None,
}


def _told(value: Any) -> str:
    """Lists and dictionaries by their type only: they may be large."""
    return type_of(value) if isinstance(value, list | dict) else shown(value)
