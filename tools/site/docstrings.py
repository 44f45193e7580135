"""Docstrings as they are written here, for Sphinx. Their text is plain: stars and underscores mean
themselves, code stands in backticks or indented, and a line `name: what it is` is about an argument."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ARGUMENT = re.compile(r"^(\w+(?:, \w+)*): (.+)$")
CODE = re.compile(r"(`[^`]*`)")
MARKS = re.compile(r"([*|\\]|_(?!\w))")


def adapt(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """In place, as Sphinx wants it."""
    lines[:] = list(restructured(lines, _arguments(thing)))


def restructured(lines: Iterable[str], arguments: set[str]) -> Iterator[str]:
    """The lines of a docstring as reStructuredText. arguments: the names of the function's."""
    before, field = "", False  # the line before; is it about an argument?
    for line in lines:
        match = ARGUMENT.match(line)
        if match and set(match[1].split(", ")) <= arguments:
            if before and not field:
                yield ""
            field = True
            yield f":param {match[1]}: {escaped(match[2])}"
        elif field and line.strip():
            yield f"    {escaped(line.strip())}"
        elif line.startswith((">>>", "...")):
            yield line
        elif line.startswith("    "):
            if not before.strip():  # else it goes on with code, or with the text above
                yield from ("::", "")
            yield line
        else:
            field = field and bool(line.strip())
            yield line if before.startswith((">>>", "...")) else escaped(line)
        before = line


def escaped(text: str) -> str:
    """With nothing outside backticks that has a meaning in reStructuredText."""
    parts = CODE.split(text)
    return "".join(part if part.startswith("`") else MARKS.sub(r"\\\1", part) for part in parts)


def _arguments(thing: Any) -> set[str]:
    """Names of a function's arguments, or of a class's, with its attributes."""
    try:
        names = set(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        return set()
    return names | set(getattr(thing, "__annotations__", {}))


def setup(app: Sphinx) -> dict[str, bool]:
    """Called for each docstring that is shown."""
    app.connect("autodoc-process-docstring", adapt)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
