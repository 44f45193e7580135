"""A report on disk: report.html, tables/ and figures/."""

from __future__ import annotations

import hashlib
import io
import itertools
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from piaget.errors import LoadError, SettingError
from piaget.files import write_atomically
from piaget.report import pixels
from piaget.report.against import against
from piaget.report.contents import Contents
from piaget.report.describe import Describer
from piaget.report.explorer import explore
from piaget.report.figures import figures
from piaget.report.forms import FORMS, Table, as_markdown
from piaget.report.page import page, table_page
from piaget.report.reading import Results, read
from piaget.report.reported_run import ReportedRun
from piaget.report.table_describe import report_data, summary
from piaget.report.table_forms import own_tables
from piaget.report.tables import tables

Say = Callable[[str], None]
LIST = ".files.txt"  # of what was written
OWN_PAGE = "groups.html"  # about tables of one's own, where there are other runs, too


def report(
    folders: Sequence[Path],
    out: Path,
    *,
    title: str,
    command: str,
    data_dir: str | None = None,
    others: Sequence[Path] = (),
    drawn: bool = True,
    say: Say = lambda _: None,
) -> tuple[list[Table], list[str]]:
    """Writes the report of all runs in these folders; returns its tables and its notes.

    others: folders of other results of the same experiments, which they are compared with; drawn: are there
    figures as files?
    """
    if out.exists() and not out.is_dir():
        raise SettingError(f"--out {out} is a file; expected a folder, or a name for a new one")
    say("reading runs")
    results = read(folders)
    own = _over_tables(results)
    described = report_data(own, results.notes, title=title, command=command)
    all_tables = own_tables(described)
    written = _Files(out)
    if len(own) == len(results.runs) and not others:
        written.write("report.html", table_page(described).encode())
        _write_tables(written, all_tables)
        written.finish()
        return all_tables, described["notes"]
    if own:
        written.write(OWN_PAGE, table_page(described).encode())
        results.notes.append(f"runs over tables of your own have a page for themselves, too: {OWN_PAGE}")
    contents = Contents(results)
    all_tables = tables(contents) + all_tables
    if others:
        compared = against(contents, Contents(read(others)))
        if compared.rows:
            all_tables.append(compared)
        else:
            results.notes.append("--against: nothing was run there with the same settings as here")
    _write_tables(written, all_tables)
    if drawn:
        say("drawing figures")
        for name, figure in itertools.chain(figures(contents), pixels.figures(contents.groups, data_dir)):
            _save(figure, written, f"figures/{_plain(name)}")
    say("exploring components")
    explorers = explore(contents, data_dir, results.notes)
    data = Describer(contents, out).report(all_tables, explorers, title=title, command=command)
    written.write("report.html", page(data).encode())
    written.finish()
    return all_tables, results.notes


class _Files:
    """What a report writes into a folder, with a list of it: what the last report wrote and this one does not
    is of runs that are not there any more, and is removed. All else in the folder is somebody else's."""

    def __init__(self, out: Path) -> None:
        self.out, self.names = out, set[str]()
        try:
            self.before = set((out / LIST).read_text(encoding="utf-8").splitlines())
        except (OSError, UnicodeDecodeError):
            self.before = set()

    def write(self, name: str, content: bytes) -> None:
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
        self.names.add(name)

    def finish(self) -> None:
        for name in self.before - self.names:
            # Whoever wrote the list: nothing elsewhere is removed.
            if name == OWN_PAGE or re.fullmatch(r"(figures|tables)/[^/\\]+\.\w+", name):
                (self.out / name).unlink(missing_ok=True)
        self.write(LIST, "\n".join(sorted(self.names)).encode())


def _over_tables(results: Results) -> list[ReportedRun]:
    """Runs over tables of one's own, which have a summary: to be told of otherwise."""
    found = []
    for run in results.runs:
        try:
            if summary(run) is not None:
                found.append(run)
        except LoadError as error:
            results.notes.append(str(error))
    return found


def _write_tables(written: _Files, all_tables: Sequence[Table]) -> None:
    for table in all_tables:
        for ending, form in FORMS.items():
            written.write(f"tables/{_plain(table.name)}.{ending}", form(table).encode())
    written.write("tables.md", "\n".join(map(as_markdown, all_tables)).encode())


def _save(figure: Figure, written: _Files, name: str) -> None:
    _lay_out(figure)
    for ending, date in (("svg", "Date"), ("pdf", "CreationDate")):
        file = io.BytesIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from font")
            figure.savefig(file, format=ending, metadata={date: None})  # the same runs give the same files
        written.write(f"{name}.{ending}", file.getvalue())


def _lay_out(figure: Figure) -> None:
    """Once for both files; larger, if long names leave no room for what is to be shown."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "constrained_layout not applied")
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # boxes, then
        for _ in range(4):
            try:
                figure.draw_without_rendering()
                break
            except UserWarning:
                width, height = figure.get_size_inches()
                figure.set_size_inches(1.5 * width, 1.5 * height)
    figure.set_layout_engine("none")


def _plain(text: str) -> str:
    """For a file's name; different ones for different texts."""
    plain = re.sub(r"[^\w.-]+", "-", text)
    return plain if plain == text else f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
