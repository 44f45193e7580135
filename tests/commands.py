"""The command line, for tests: in this process, or in one of its own; and sweeps without workers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from piaget.cli import main

# A sweep long enough to be disturbed on its way.
DISTURBED = (
    "sweep digits --algorithms compositional joint --seeds 2 --cohort 2 --epochs 30"
    " --option tasks=6 --option train_size=40 --quiet"
)


def words(text: str, *more: Any, out: Path | None = None) -> list[str]:
    """A command's words: of a text, and more that may hold spaces."""
    return [*text.split(), *map(str, more), *(["--out", str(out)] if out is not None else [])]


def command(*arguments: Any) -> list[str]:
    """The command, to be run in a process of its own."""
    return [sys.executable, "-m", "piaget", *map(str, arguments)]


def in_a_process(*arguments: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=300)


class Said(NamedTuple):
    code: int
    out: str
    err: str


def said(capsys: pytest.CaptureFixture[str], *arguments: Any) -> Said:
    """What the command says, in this process."""
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    return Said(code, *capsys.readouterr())


def rows_of(out: Path) -> dict[Path, bytes]:
    """All row files of a sweep."""
    return {path.relative_to(out): path.read_bytes() for path in out.rglob("rows.csv")}
