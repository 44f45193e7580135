"""What several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 1 or more")
    return int(text)


def add_data_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR",
        help="where data files are looked for first (then: $PIAGET_DATA, the user's cache folder)",
    )  # fmt: skip


def print_table(table: Any) -> None:
    """A rich table: as wide as the terminal, and unbroken elsewhere."""
    from rich.console import Console

    console = Console()
    (console if console.is_terminal else Console(width=200)).print(table)
