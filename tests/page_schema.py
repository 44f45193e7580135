"""The types of the pages' data (piaget.report.page_data, table_data): values are checked against them, and
they are written as TypeScript, against which the pages' scripts are checked (make js).

    python -m tests.page_schema     # after a change of these: writes tools/js/data.d.ts
"""

from __future__ import annotations

import types
import typing
from pathlib import Path
from typing import Any

from piaget.report import page_data, table_data

FILE = Path(__file__).parent.parent / "tools" / "js" / "data.d.ts"
PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null", Any: "any"}


def check(value: Any, hint: Any = page_data.ReportData, place: str = "report") -> None:
    """Raises AssertionError, with the place, at the first value that is not what its type says."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return
    if origin in (types.UnionType, typing.Union):
        assert any(_fits(value, choice, place) for choice in arguments), f"{place} is {value!r}, not {hint}"
    elif origin is list:
        assert isinstance(value, list), f"{place} is {value!r}, not a list"
        for i, each in enumerate(value):
            check(each, arguments[0], f"{place}[{i}]")
    elif origin is tuple:
        assert isinstance(value, list | tuple), f"{place} is {value!r}, not {hint}"
        assert len(value) == len(arguments), f"{place} is {value!r}, not {hint}"
        for i, (each, kind) in enumerate(zip(value, arguments, strict=True)):
            check(each, kind, f"{place}[{i}]")
    elif origin is dict or typing.is_typeddict(hint):
        assert isinstance(value, dict), f"{place} is {value!r}, not a dictionary"
        fields = (
            typing.get_type_hints(hint) if typing.is_typeddict(hint) else dict.fromkeys(value, arguments[1])
        )
        assert value.keys() == fields.keys(), f"{place} has {sorted(value)}; expected {sorted(fields)}"
        for name, kind in fields.items():
            check(value[name], kind, f"{place}.{name}")
    else:
        kinds = (int, float) if hint is float else hint
        right = isinstance(value, kinds) and isinstance(value, bool) == (hint is bool)
        assert right, f"{place} is {value!r}, not {hint.__name__}"


def _fits(value: Any, hint: Any, place: str) -> bool:
    try:
        check(value, hint, place)
    except AssertionError:
        return False
    return True


def typescript() -> str:
    """All types of page_data.py and table_data.py."""
    lines = ["// Written by tests/page_schema.py from src/piaget/report/page_data.py and table_data.py."]
    for name, kind in (vars(page_data) | vars(table_data)).items():
        if typing.is_typeddict(kind):
            fields = typing.get_type_hints(kind).items()
            lines += [f"interface {name} {{", *(f"  {field}: {_typed(hint)};" for field, hint in fields), "}"]
    return "\n".join(lines) + "\n"


def _typed(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return " | ".join(map(_typed, arguments))
    if origin is list:
        return f"({_typed(arguments[0])})[]"
    if origin is tuple:
        return f"[{', '.join(map(_typed, arguments))}]"
    if origin is dict:
        return f"Record<{', '.join(map(_typed, arguments))}>"
    return PLAIN.get(hint) or hint.__name__


if __name__ == "__main__":
    FILE.write_text(typescript())
