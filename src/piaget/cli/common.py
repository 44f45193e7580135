"""What several commands share."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from piaget.cli.words import add_flags, positive as positive, seed_list as seed_list
from piaget.lab.parts import is_reference
from piaget.method.choices import parse

if TYPE_CHECKING:
    from piaget.lab.parts import Trusted


def add_data_dir(parser: argparse.ArgumentParser) -> None:
    """The flag --data-dir."""
    add_flags(parser, ["data_dir"])


def add_options(parser: argparse.ArgumentParser) -> None:
    """The flag --option, for options of streams."""
    parser.add_argument(
        "--option",
        type=pair,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="options",
        help="an option of the stream, such as train_size=50, tasks=5 or features=NAME (docs/streams.md); "
        "may be given several times",
    )


def add_set(parser: argparse.ArgumentParser, what: str) -> None:
    """The flag --set, for everything that can be said."""
    parser.add_argument(
        "--set",
        type=pair,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="changes",
        help=f"{what}; PART.FIELD=VALUE sets a field of a part, such as adaptation.size=5; may be given "
        "several times",
    )


def pair(text: str) -> tuple[str, Any]:
    """ "width=8" -> ("width", 8)"""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, parse(value)


def _takes(stream: str, option: str, trusted: Trusted | None) -> bool:
    """Does a stream take an option?"""
    from piaget.streams import stream_options

    if trusted is None or not is_reference(stream):
        return option in stream_options(stream)
    from piaget.lab.making import takes_option

    return takes_option(stream, option, trusted)


def options_for(
    stream: str, pairs: Sequence[tuple[str, Any]], trusted: Trusted | None = None
) -> dict[str, Any]:
    """Those options that a stream takes."""
    return {key: value for key, value in pairs if _takes(stream, key, trusted)}


def check_options(
    streams: Sequence[str], pairs: Sequence[tuple[str, Any]], trusted: Trusted | None = None
) -> None:
    """An option that none of the streams takes is a mistake."""
    from piaget.errors import SettingError
    from piaget.streams import stream_options

    for key, _ in pairs:
        if not any(_takes(stream, key, trusted) for stream in streams):
            known = [option for s in streams if not is_reference(s) for option in stream_options(s)]
            expected = f"; expected {', '.join(dict.fromkeys(known))}" if known else ""
            raise SettingError(f"{', '.join(streams)}: no option {key!r}{expected}")


def seeds_text(seeds: Sequence[int]) -> str:
    """[0, 1, 2] -> "seeds 0-2" """
    together = [seeds[0] + i for i in range(len(seeds))] == list(seeds)
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    return f"seeds {seeds[0]}-{seeds[-1]}" if together else f"seeds {','.join(map(str, seeds))}"


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
    """A rich table: as wide as the terminal, and unbroken elsewhere. Brackets in texts are no markup."""
    from rich.console import Console

    console = Console(markup=False)
    (console if console.is_terminal else Console(width=200, markup=False)).print(table)
