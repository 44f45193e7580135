"""piaget data: which streams there are, getting their files, checking them, looking at them."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from piaget.cli.common import add_data_dir, add_options, check_options, options_for, positive, print_table


def add(commands: Any) -> None:
    """The command and its flags."""
    parser = commands.add_parser(
        "data",
        help="list streams, download and check their files, draw their first tasks",
        description="Files are looked for in --data-dir, then in the folder that PIAGET_DATA names, then "
        "in the user's cache folder; what is absent is downloaded to the first of these that is writable.",
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    for name, run, text in (
        ("list", _list, "the streams: tasks, size, licence, and whether their files are there"),
        ("fetch", _fetch, "download what is absent or damaged of a stream's files"),
        ("verify", _verify, "check files by their hashes and by reading them"),
        ("draw", _draw, "draw the first tasks of streams as pictures"),
    ):
        action = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if name != "list":
            nargs, rest = ("*", " (default: all whose files are there)") if name == "verify" else ("+", "")
            action.add_argument("streams", nargs=nargs, metavar="STREAM", help=f"see piaget data list{rest}")
        if name == "draw":
            action.add_argument(
                "--out", type=Path, default=Path("."), metavar="DIR", help="for STREAM.png (default: .)"
            )
            action.add_argument("--seed", type=int, default=0, help="of the streams (default: 0)")
            action.add_argument(
                "--tasks", type=positive, default=4, metavar="N", help="how many (default: 4)"
            )
            add_options(action)
        add_data_dir(action)
        action.set_defaults(run=run)


def _list(options: argparse.Namespace) -> int:
    from rich.table import Table

    from piaget.streams import STREAMS
    from piaget.streams.fetch import find, folders
    from piaget.streams.sources import CUB, other_features

    places = folders(options.data_dir)
    shown = Table()
    for column in ("stream", "tasks", "what one task is", "size", "licence", "files"):
        numbers = column in ("tasks", "size")
        shown.add_column(
            column, justify="right" if numbers else "left", no_wrap=numbers or column == "stream"
        )
    for stream in STREAMS.values():
        files = [file for source in stream.sources for file in source.files]
        there = sum(find(file, places) is not None for file in files)
        state = "built in" if not files else "present" if there == len(files) else f"{there} of {len(files)}"
        if CUB in stream.sources and other_features(places):
            state += f"; features: {', '.join(other_features(places))}"
        size = f"{sum(file.size for file in files) / 1e6:.1f} MB" if files else ""
        licence = "; ".join(dict.fromkeys(source.licence for source in stream.sources))
        shown.add_row(stream.name, str(stream.tasks), stream.what, size, licence, state)
    print_table(shown)
    print("Folders:", ", ".join(str(folder) for folder in places))
    return 0


def _sources(names: list[str]) -> dict[str, Any]:
    from piaget.streams import lookup

    return {source.name: source for name in names for source in lookup(name).sources}


def _fetch(options: argparse.Namespace) -> int:
    from piaget.streams.fetch import fetch_source, find as find_file, folders

    for source in _sources(options.streams).values():
        fetch_source(source, options.data_dir)
        for file in source.files:
            print(f"{file.path}: {find_file(file, folders(options.data_dir))}")
    for name in options.streams:
        if not _sources([name]):
            print(f"{name}: comes with the package, nothing to fetch")
    return 0


def _verify(options: argparse.Namespace) -> int:
    from piaget.errors import DataError
    from piaget.streams import STREAMS
    from piaget.streams.fetch import check, find, folders, matches
    from piaget.streams.sources import CUB, cub_features, other_features

    places, bad = folders(options.data_dir), 0
    sources = list(_sources(options.streams or list(STREAMS)).values())
    if CUB in sources:
        sources += [replace(cub_features(f), name=f"cub/{f}") for f in other_features(places)]
    for name in options.streams:
        if not _sources([name]):
            print(f"{name}: comes with the package")
    for source in sources:
        paths = [find(file, places) for file in source.files]
        present = [path for path in paths if path is not None]
        if len(present) < len(paths):
            absent = [file.path for file, path in zip(source.files, paths, strict=True) if path is None]
            if present or source.name in options.streams:
                print(f"{source.name}: MISSING {', '.join(absent)} (piaget data fetch {source.name})")
                bad += 1
            continue
        public = all(matches(path, file.hash) for path, file in zip(present, source.files, strict=True))
        try:
            check(source, present)
        except DataError as error:
            print(f"{source.name}: DAMAGED {error}")
            bad += 1
            continue
        which = "the public files" if public else "but not the public files, by their hashes"
        which = which if source.files[0].hash else "with no public files to compare with"
        print(f"{source.name}: sound, {which}")
    return 1 if bad else 0


def _draw(options: argparse.Namespace) -> int:
    import piaget
    from piaget.streams import lookup
    from piaget.streams.pictures import draw

    for name in options.streams:
        lookup(name)
    check_options(options.streams, options.options)
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.streams:
        path = options.out / f"{name}.png"
        stream = piaget.stream(name, options.seed, options.data_dir, **options_for(name, options.options))
        draw(stream, path, options.tasks)
        print(path)
    return 0
