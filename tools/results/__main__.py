"""python -m tools.results: writes docs/results.md, docs/results.csv and the figures in them."""

from __future__ import annotations

import argparse
import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib

from piaget.files import write_atomically
from piaget.lab.collection import collections_below
from piaget.lab.row_file import HEADER
from piaget.report.canvas import STYLE
from piaget.report.contents import Contents
from piaget.report.reading import Results, read, read_rows
from piaget.report.selection import Selection
from tools.results.figures import FIGURES
from tools.results.text import as_csv, page

PICTURES = "pictures"


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes everything anew; figures that cannot be drawn any more are removed."""
    parser = argparse.ArgumentParser(prog="python -m tools.results", description=__doc__)
    parser.add_argument("results", nargs="?", type=Path, default=Path("results/paper"))
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="where it goes (default: docs)")
    parser.add_argument("--notes", type=Path, default=Path("docs/results-notes"), help="written by hand")
    options = parser.parse_args(arguments)
    selection = Selection(Contents(_read(options.results)))
    pictures = options.docs / PICTURES
    pictures.mkdir(parents=True, exist_ok=True)
    drawn = {}
    for name, (draw, caption) in FIGURES.items():
        path = pictures / f"results-{name}.svg"
        path.unlink(missing_ok=True)
        with matplotlib.rc_context(STYLE):
            figure = draw(selection)
            if figure is not None:
                file = io.BytesIO()
                figure.savefig(file, format="svg", metadata={"Date": None})
                write_atomically(path, file.getvalue())
                drawn[f"{PICTURES}/{path.name}"] = caption
    notes = {path.stem: path.read_text() for path in sorted(options.notes.glob("*.md"))}
    write_atomically(options.docs / "results.md", page(selection, drawn, notes).encode())
    write_atomically(options.docs / "results.csv", as_csv(selection).encode())
    for note in selection.contents.results.notes:
        print(f"note: {note}")
    return 0


def _read(folder: Path) -> Results:
    if collections_below(folder):
        return read([folder])
    return Results([], read_rows(folder, HEADER).assign(run=""), [])


if __name__ == "__main__":
    raise SystemExit(main())
