"""The report's tables, and their forms: text, Markdown, CSV, LaTeX."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from piaget.lab.final_table import escaped


@dataclass(frozen=True)
class Cell:
    """Text, or a number with its standard error, if it has one."""

    text: str = ""
    value: float | None = None
    error: float | None = None
    best: bool = False


@dataclass
class Table:
    """A table of the report. `groups`: what each row is about, as a position in the report's list of groups,
    if it is about one of them."""

    name: str
    title: str
    caption: str
    columns: list[str]
    rows: list[list[Cell]] = field(default_factory=list)
    groups: list[int | None] = field(default_factory=list)

    def add(self, group: int | None, *cells: Cell | str) -> None:
        self.rows.append([cell if isinstance(cell, Cell) else Cell(cell) for cell in cells])
        self.groups.append(group)

    def is_numeric(self, column: int) -> bool:
        return any(row[column].value is not None for row in self.rows)


def number(value: float, error: float = math.nan, digits: int = 1) -> Cell:
    """97.6 ± 0.2; nothing, if there is no number."""
    if not math.isfinite(value):
        return Cell() if math.isnan(value) else Cell("∞" if value > 0 else "-∞")
    text = f"{value:,.{digits}f}" if digits == 0 else f"{value:.{digits}f}"
    if math.isnan(error):
        return Cell(text, value)
    return Cell(f"{text} ± {error:.{digits}f}", value, error)


def share_of(some: Mapping[int, float], every: Mapping[int, float]) -> str:
    """How many tasks (by seed) a mean is of, and of how many: "29 tasks", "27 of 29 tasks, 2 of 3 seeds"."""
    if not some:
        return ""

    def counts(by_seed: Mapping[int, float]) -> str:
        least, most = (f"{end(by_seed[seed] for seed in some):.0f}" for end in (min, max))
        return least if least == most else f"{least} to {most}"

    same = all(some[seed] == every[seed] for seed in some)
    tasks = f"{counts(every)} tasks" if same else f"{counts(some)} of {counts(every)} tasks"
    return tasks if len(some) == len(every) else f"{tasks}, {len(some)} of {len(every)} seeds"


def mark_best(table: Table, column: int, higher: bool, rows: Iterable[int]) -> None:
    """In bold: the best of these rows, and those that round to the same."""
    cells = {row: table.rows[row][column] for row in rows}
    values = {row: cell.value for row, cell in cells.items() if cell.value is not None}
    if len(values) > 1:
        best = cells[(max if higher else min)(values, key=values.__getitem__)]
        for row in values:
            same = cells[row].text.split(" ")[0] == best.text.split(" ")[0]
            table.rows[row][column] = replace(cells[row], best=same)


# --- forms ------------------------------------------------------------------------------------------------


def as_markdown(table: Table) -> str:
    """A table as Markdown."""

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    def shown(cell: Cell) -> str:
        return f"**{escaped(cell.text)}**" if cell.best else escaped(cell.text)

    aligned = ["--:" if table.is_numeric(i) else "---" for i in range(len(table.columns))]
    rows = [line(shown(cell) for cell in row) for row in table.rows]
    head = [line(map(escaped, table.columns)), line(aligned)]
    return "\n".join([f"## {escaped(table.title)}", "", escaped(table.caption), "", *head, *rows, ""])


def as_csv(table: Table) -> str:
    """Numbers in full; standard errors in columns of their own."""
    errors = [any(row[i].error is not None for row in table.rows) for i in range(len(table.columns))]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    head: list[str] = []
    for column, has_error in zip(table.columns, errors, strict=True):
        head += [_plain(column), f"{_plain(column)} s.e."] if has_error else [_plain(column)]
    writer.writerow(head)
    for row in table.rows:
        cells: list[object] = []
        for i, cell in enumerate(row):
            cells.append(_plain(cell.text) if cell.value is None else cell.value)
            cells += ["" if cell.error is None else cell.error] if errors[i] else []
        writer.writerow(cells)
    return text.getvalue()


def _plain(text: str) -> str:
    """A name that a spreadsheet would take for a formula, and run, is a text with an apostrophe before it."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def as_latex(table: Table) -> str:
    """For booktabs."""

    def shown(cell: Cell) -> str:
        text = _latex(cell.text)
        if cell.value is not None and re.fullmatch(r"[-\d. ±]+", cell.text):
            text = cell.text.replace("±", r"\pm")
            return rf"$\mathbf{{{text}}}$" if cell.best else f"${text}$"
        return rf"\textbf{{{text}}}" if cell.best else text

    columns = "".join("r" if table.is_numeric(i) else "l" for i in range(len(table.columns)))
    body = "\n".join(" & ".join(map(shown, row)) + r" \\" for row in table.rows)
    head = " & ".join(map(_latex, table.columns)) + r" \\"
    return rf"""\begin{{table}}
\centering
\caption{{{_latex(table.title)}. {_latex(table.caption)}}}
\label{{tab:{table.name}}}
\begin{{tabular}}{{{columns}}}
\toprule
{head}
\midrule
{body}
\bottomrule
\end{{tabular}}
\end{{table}}
"""


FORMS: dict[str, Callable[[Table], str]] = {"md": as_markdown, "csv": as_csv, "tex": as_latex}


_LATEX = {letter: rf"\{letter}" for letter in "&%$#_{}"}
_LATEX |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {"±": r"$\pm$", "<": r"$<$", ">": r"$>$"}


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)
