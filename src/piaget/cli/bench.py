"""piaget bench: how much faster than the plain implementation, on this machine."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    """The command and its flags."""
    parser = commands.add_parser(
        "bench",
        help="measure the library against the plain implementation",
        description="Trains the same with benchmarks/naive.py and with the library, in one process and one "
        "thread, and prints how much faster the library is. It needs a checkout of the project.",
    )
    parser.add_argument("only", nargs="?", default="", metavar="WORDS", help="only rows whose name has these")
    parser.add_argument("--quick", action="store_true", help="a few rows, and less of each")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="write the numbers there, too")
    parser.set_defaults(run=_bench)


def _bench(options: argparse.Namespace) -> int:
    from piaget.errors import SettingError

    root = Path(__file__).parents[3]
    if not (root / "benchmarks" / "speed.py").is_file():
        raise SettingError("piaget bench needs a checkout of the project, installed with pip install -e")
    sys.path.insert(0, str(root))
    from benchmarks import cases, end_to_end, speed

    names = [case.name for case in (*cases.CASES, end_to_end.CASE)]
    if not any(options.only in name for name in names):
        raise SettingError(f"no row has {options.only!r}; rows: {'; '.join(names)}")
    speed.main(options.quick, options.only, options.out)
    return 0
