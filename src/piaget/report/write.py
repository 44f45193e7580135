"""A report on disk: report.html, tables/ and figures/."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from piaget.report import pixels
from piaget.report.contents import Contents
from piaget.report.describe import describe
from piaget.report.explorer import explorers
from piaget.report.figures import figures
from piaget.report.page import page
from piaget.report.reading import read
from piaget.report.tables import FORMS, Table
from piaget.storage import write_atomically

Say = Callable[[str], None]


def report(
    folders: Sequence[Path],
    out: Path,
    *,
    title: str,
    command: str,
    data_dir: str | None = None,
    say: Say = lambda _: None,
) -> tuple[list[Table], list[str]]:
    """Writes the report of all runs in these folders; its tables, and what is to be said about it."""
    say("reading runs")
    results = read(folders)
    contents = Contents(results)
    made = contents.tables()
    for table in made:
        for ending, form in FORMS.items():
            _write(out / "tables" / f"{_plain(table.name)}.{ending}", form(table).encode())
    _write(out / "tables.md", "\n".join(FORMS["md"](table) for table in made).encode())
    say("drawing figures")
    for name, figure in figures(contents):
        _save(figure, out / "figures" / _plain(name))
    say("exploring components")
    for name, figure in pixels.figures(contents.groups, data_dir):
        _save(figure, out / "figures" / _plain(name))
    found = explorers(contents.groups, data_dir, results.notes)
    described = describe(contents, made, found, title=title, command=command, place=out)
    _write(out / "report.html", page(described).encode())
    return made, results.notes


def _save(figure: object, path: Path) -> None:
    for ending in ("svg", "pdf"):
        file = io.BytesIO()
        # Without the date: the same runs give the same files.
        figure.savefig(file, format=ending, metadata={"Date" if ending == "svg" else "CreationDate": None})  # type: ignore[attr-defined]
        _write(path.with_name(f"{path.name}.{ending}"), file.getvalue())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)


def _plain(text: str) -> str:
    """For a file's name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)
