"""Every public name of piaget, with its parameters: what docs/versions.md promises to keep.

    python -m tools.public_names            # compare with tests/public_names.txt: what is gone, what is new
    python -m tools.public_names --write    # write them there

Names: all that `__all__` of piaget, piaget.streams, piaget.lab and piaget.sklearn lists, with public methods
and fields of classes, and parameters of what can be called; and the commands, with their flags.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent.parent / "tests" / "public_names.txt"
MODULES = ("piaget", "piaget.streams", "piaget.lab", "piaget.sklearn")


def names() -> list[str]:
    """All of them, sorted."""
    found = set(_of_command_line())
    for module in MODULES:
        content = importlib.import_module(module)
        for name in content.__all__:
            found.update(_of(f"{module}.{name}", getattr(content, name)))
    return sorted(found)


def _of(path: str, value: Any) -> Iterator[str]:
    yield path
    if not callable(value) or not hasattr(value, "__module__"):
        return
    yield from _parameters(path, value)
    if inspect.isclass(value):
        for name, member in inspect.getmembers(value):
            if not name.startswith("_") and _is_ours(value, name):
                yield f"{path}.{name}"
                yield from _parameters(f"{path}.{name}", member) if callable(member) else ()
        if dataclasses.is_dataclass(value):
            yield from (f"{path}.{field.name}" for field in dataclasses.fields(value) if field.name[0] != "_")


def _is_ours(kind: type, name: str) -> bool:
    """Not of Python's or another library's classes."""
    owners = [base for base in kind.__mro__ if name in vars(base)]
    return bool(owners) and owners[0].__module__.split(".")[0] == "piaget"


def _parameters(path: str, value: Any) -> Iterator[str]:
    """path(1 a), path(b=): with its place, if it needs no name; with =, if it can be left out."""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return
    named = [one for one in parameters if one.name not in ("self", "cls") and not one.name.startswith("_")]
    for place, one in enumerate(named, 1):
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        by_place = f"{place} " if one.kind == one.POSITIONAL_OR_KEYWORD else ""
        optional = "=" if one.default is not one.empty and not stars else ""
        yield f"{path}({by_place}{stars}{one.name}{optional})"


def _of_command_line() -> Iterator[str]:
    from piaget.cli import make_parser

    def walk(words: str, parser: argparse.ArgumentParser) -> Iterator[str]:
        yield words
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, inner in action.choices.items():
                    yield from walk(f"{words} {name}", inner)
            elif action.option_strings:
                yield from (
                    f"{words} {flag}" for flag in action.option_strings if flag not in ("-h", "--help")
                )

    yield from (f"$ {line}" for line in walk("piaget", make_parser()))


def main() -> int:
    """Compares, or writes."""
    parser = argparse.ArgumentParser(
        description="Compares piaget's public names with tests/public_names.txt."
    )
    parser.add_argument("--write", action="store_true", help="write them there")
    if parser.parse_args().write:
        FILE.write_text("\n".join(names()) + "\n", encoding="utf-8")
        return 0
    now, before = set(names()), set(FILE.read_text(encoding="utf-8").splitlines())
    for sign, lines in (("-", before - now), ("+", now - before)):
        for line in sorted(lines):
            print(sign, line)
    return 0 if now == before else 1


if __name__ == "__main__":
    sys.exit(main())
