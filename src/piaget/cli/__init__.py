"""The command `piaget`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from piaget import __version__
from piaget.cli import (
    bench,
    collect,
    components,
    data,
    export,
    life,
    listing,
    predict,
    report,
    resume,
    run,
    status,
    sweep,
)


def make_parser() -> argparse.ArgumentParser:
    """Of all commands and their flags."""
    parser = argparse.ArgumentParser(
        prog="piaget", description="Lifelong learning of compositional structures."
    )
    parser.add_argument("--version", action="version", version=f"piaget {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    results = (report, collect, predict, components, listing, status, export)
    for command in (run, life, sweep, resume, *results, data, bench):
        command.add(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command, and returns its exit code."""
    parser = make_parser()
    arguments = sys.argv[1:] if arguments is None else arguments
    if any("\0" in argument for argument in arguments):  # which no file's name can have
        parser.error("an argument has a NUL character in it")
    options = parser.parse_args(arguments)
    from piaget.errors import DataNote, PiagetError

    signal.signal(signal.SIGTERM, _terminated)
    with warnings.catch_warnings():
        warnings.simplefilter("always", DataNote)
        warnings.showwarning = _note
        try:
            return int(options.run(options))
        except PiagetError as error:
            print(f"piaget: {error}", file=sys.stderr)
            return 2
        except BrokenPipeError:  # who reads has enough, as in `piaget list | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 128 + signal.SIGPIPE
        except OSError as error:
            print(f"piaget: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("\npiaget: stopped; what was done is kept: the same command goes on", file=sys.stderr)
            return 130


def _terminated(*signal_and_frame: Any) -> None:
    raise KeyboardInterrupt


def _note(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Warnings as a user of a command wants them: the text, without a place in the code."""
    print(f"piaget: note: {message}", file=sys.stderr)
