"""What several commands share."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from piaget.method.choices import parse


def positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 1 or more")
    return int(text)


def add_data_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR",
        help="where data files are looked for first (then: $PIAGET_DATA, the user's cache folder)",
    )  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--option", type=pair, action="append", default=[], metavar="KEY=VALUE", dest="options",
        help="an option of the stream, such as train_size=50, tasks=5 or features=NAME (docs/streams.md); "
        "may be given several times",
    )  # fmt: skip


def add_every(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--every", type=positive, metavar="N", help="evaluate every N epochs (default: when a task is done)"
    )


def add_set(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--set", type=pair, action="append", default=[], metavar="KEY=VALUE", dest="changes",
        help=f"{what}; may be given several times",
    )  # fmt: skip


def pair(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, parse(value)


def options_for(stream: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Those options that a stream has."""
    from piaget.streams import stream_options

    return {key: value for key, value in pairs if key in stream_options(stream)}


def check_options(streams: list[str], pairs: list[tuple[str, Any]]) -> None:
    """An option that none of the streams has is a mistake."""
    from piaget.errors import SettingError
    from piaget.streams import stream_options

    known = list(dict.fromkeys(option for stream in streams for option in stream_options(stream)))
    for key, _ in pairs:
        if key not in known:
            raise SettingError(f"{', '.join(streams)}: no option {key!r}; expected {', '.join(known)}")


def seeds_text(seeds: Sequence[int]) -> str:
    """[0, 1, 2] -> "seeds 0-2" """
    together = list(range(seeds[0], seeds[-1] + 1)) == list(seeds)
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    return f"seeds {seeds[0]}-{seeds[-1]}" if together else f"seeds {','.join(map(str, seeds))}"


def seed_list(text: str) -> list[int]:
    """ "0-2,5" -> [0, 1, 2, 5]"""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()) or (dash and int(last) < int(first)):
            raise argparse.ArgumentTypeError(f"{text!r} is not a list of seeds such as 3, 0-9 or 0,2,5")
        found += range(int(first), int(last or first) + 1)
    return list(dict.fromkeys(found))


def no_runs(out: Path) -> str:
    """Why a folder holds no runs."""
    return (
        f"{out} holds no runs: there is no run.json in it or below it"
        if out.is_dir()
        else (f"{out} does not exist, or is no folder")
    )


def print_json(event: dict[str, Any]) -> None:
    """One line. What is not a number (the error of a single seed) is null: NaN is no JSON."""
    print(json.dumps(_finite(event), allow_nan=False), flush=True)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(table: Any) -> None:
    """A rich table: as wide as the terminal, and unbroken elsewhere."""
    from rich.console import Console

    console = Console()
    (console if console.is_terminal else Console(width=200)).print(table)
