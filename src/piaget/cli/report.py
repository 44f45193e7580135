"""piaget report: tables, figures and a page, of any runs."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from piaget.cli.common import add_data_dir, print_table

if TYPE_CHECKING:
    from piaget.report.forms import Table

SHOWN = (
    "summary",
    "final",
    "transfer",
    "components",
    "claims",
    "against",
    "models",
)  # in the terminal; all are in the files


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "report",
        help="tables, figures and a page of runs, also of unfinished ones",
        description="Turns folders of runs into the paper's tables (Markdown, CSV, LaTeX) and figures (SVG, "
        "PDF), and into one page, report.html, which opens in any browser and needs no network. Runs may be "
        "unfinished; the same command again makes the report anew.",
    )
    parser.add_argument(
        "folders",
        nargs="+",
        type=Path,
        metavar="DIR",
        help="output folders of piaget run or piaget sweep, or results that piaget collect has kept",
    )
    parser.add_argument(
        "--against",
        nargs="+",
        type=Path,
        default=[],
        metavar="DIR",
        help="other results of the same experiments, to compare with: one more table",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where it goes (default: report in the first DIR)"
    )
    parser.add_argument("--title", help="of the page (default: the names of the folders)")
    parser.add_argument(
        "--no-figures",
        action="store_true",
        help="no figures as files, which take most of the time (the page has its own)",
    )
    parser.add_argument("--all", action="store_true", help="print all tables, not only the first ones")
    parser.add_argument("--quiet", action="store_true", help="print nothing but where the page is")
    add_data_dir(parser)
    parser.set_defaults(run=_report)


def _report(options: argparse.Namespace) -> int:
    from piaget.extras import need

    for package in ("pandas", "scipy", "matplotlib"):
        need(package, "reports", "report")
    from piaget.report.write import report

    out = options.out or options.folders[0] / "report"
    words = ["piaget", "report", *map(str, options.folders)]
    words += ["--against", *map(str, options.against)] if options.against else []
    words += ["--no-figures"] if options.no_figures else []
    for name in ("out", "title", "data_dir"):
        value = getattr(options, name)
        words += [f"--{name.replace('_', '-')}", str(value)] if value is not None else []

    def say(what: str) -> None:
        if not options.quiet:
            print(f"piaget: {what} ...", file=sys.stderr)

    tables, notes = report(
        options.folders,
        out,
        title=options.title or ", ".join(folder.resolve().name for folder in options.folders),
        command=shlex.join(words),
        data_dir=None if options.data_dir is None else str(options.data_dir),
        others=options.against,
        drawn=not options.no_figures,
        say=say,
    )
    if not options.quiet:
        for table in tables:
            if options.all or table.name.split(" ")[0] in SHOWN:
                _show(table)
        for note in notes:
            print(f"piaget: note: {note}", file=sys.stderr)
        figures = f"  Figures: {out / 'figures'}" if any((out / "figures").glob("*")) else ""
        print(f"Tables: {out / 'tables'}{figures}")
    print(f"Report: {out / 'report.html'}")
    return 0


def _show(table: Table) -> None:
    from rich.table import Table as Rich
    from rich.text import Text

    shown = Rich(title=table.title)
    filled = [i for i in range(len(table.columns)) if any(row[i].text for row in table.rows)]
    for i in filled:
        shown.add_column(Text(table.columns[i]), justify="right" if table.is_numeric(i) else "left")
    for row in table.rows:
        shown.add_row(*(Text(row[i].text, style="bold" if row[i].best else "") for i in filled))
    print_table(shown)
