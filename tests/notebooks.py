"""Texts of the documentation, and the code in them."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^```(\{code-cell\} )?(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
OPTIONS = re.compile(r"(:\w+: .*\n+)*")  # of a cell, such as :tags: [hide-input]


@dataclass(frozen=True)
class Block:
    """A fenced block of code, with the line that it begins on."""

    language: str
    code: str
    line: int
    is_cell: bool  # of a notebook


def blocks(path: Path) -> list[Block]:
    """All fenced blocks of a page."""
    text, found = path.read_text(), []
    for match in FENCE.finditer(text):
        cell, language, code = match.groups()
        options = OPTIONS.match(code).end() if cell else 0  # type: ignore[union-attr]  # it may be empty
        line = text.count("\n", 0, match.start(3) + options) + 1
        found.append(Block(language, code[options:], line, bool(cell)))
    return found


def python_blocks(path: str) -> list[str]:
    """The code of a page's blocks ```python, which are not cells of a notebook."""
    return [b.code for b in blocks(ROOT / path) if b.language == "python" and not b.is_cell]


def notebooks() -> list[Path]:
    """All pages that are run when the site is built."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    return [p for p in pages if "_build" not in p.parts and "{code-cell}" in p.read_text()]


def run(path: Path) -> None:
    """Runs all cells of a notebook, one after the other."""
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in (block for block in blocks(path) if block.is_cell):
        exec(compile("\n" * (cell.line - 1) + cell.code, str(path), "exec"), names)
