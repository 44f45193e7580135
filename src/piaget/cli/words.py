"""What flags, TOML files and --set may say of a run, declared once."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from piaget.data.class_weight import pairs_in
from piaget.data.plain import BEYOND, shown, whole_from
from piaget.lab.parts import PARTS, ROLES, Trusted, as_flag, is_reference
from piaget.method.choices import ADAPTATIONS, ALGORITHMS, METHOD, SETTINGS, STRUCTURES, parse

MOST_SEEDS, MOST_TEXT = 10_000, 1 << 20  # of a run; bytes of a TOML file


def positive(text: str) -> int:
    """A whole number, 1 or more, from the command line."""
    number = whole_from(text)
    if not number or number >= BEYOND:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a whole number, 1 or more, below 2^63")
    return number


def seed_list(text: str) -> list[int]:
    """ "0-2,5" -> [0, 1, 2, 5]"""
    seeds: dict[int, None] = {}
    for part in text.split(","):
        start, dash, end = part.partition("-")
        first, last = whole_from(start), whole_from(end if dash else start)
        if first is None or last is None or last < first:
            raise argparse.ArgumentTypeError(f"{shown(text)} is not a list of seeds such as 3, 0-9 or 0,2,5")
        if last >= BEYOND or len(seeds) + last - first >= MOST_SEEDS:
            raise argparse.ArgumentTypeError(
                f"{shown(text)} are too many seeds, or too large ones; expected at most {MOST_SEEDS:,}, "
                "below 2^63"
            )
        seeds |= dict.fromkeys(range(first, last + 1))
    return list(seeds)


# Readers of a value: a text from the command line, or what a file has.


def _path(value: Any) -> Path:
    if not isinstance(value, str) or "\0" in value:
        raise argparse.ArgumentTypeError(f"{value!r} is no path")
    return Path(value)


def _texts(value: Any) -> list[str]:
    if not isinstance(value, str | list | tuple):
        raise argparse.ArgumentTypeError("expected names of columns")
    return [value] if isinstance(value, str) else [str(one) for one in value]


def _seeds(value: Any) -> list[int]:
    return seed_list(",".join(map(str, value)) if isinstance(value, list | tuple) else str(value))


def _number(value: Any) -> int:
    return positive(str(value))


def _setting(value: Any) -> Any:
    return parse(value) if isinstance(value, str) else value


@dataclass(frozen=True)
class Word:
    """One thing that can be said: as a flag, as a key of a file, and as KEY=VALUE of --set."""

    name: str
    metavar: str
    help: str
    read: Callable[[Any], Any] = str
    group: str | None = None  # the heading in the help

    @property
    def flag(self) -> str:
        """As the command line has it."""
        return "--" + self.name.replace("_", "-")


def _class_weight(value: Any) -> str:
    try:
        pairs_in(str(value))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return str(value)


TABLE = "a table of your own, instead of a stream"
ANSWERS = "of a table's classes"
CHOICE = "the method (default: the paper's for the stream; package.module:Name is a part of your own)"
DATA_DIR = "where data files are looked for first (then: $PIAGET_DATA, the user's cache folder)"
WORDS = {
    word.name: word
    for word in (
        Word("stream", "NAME", "the same as STREAM"),
        Word("seeds", "LIST", "3, 0-9 or 0,2,5; they are trained together (default: 0)", _seeds),
        Word("every", "N", "evaluate every N epochs (default: when a task is done)", _number),
        Word("out", "DIR", "output folder, with one folder a seed (default: results/run)", _path),
        Word("data_dir", "DIR", DATA_DIR, _path),
        Word("table", "FILE", "CSV, TSV or Parquet", _path, TABLE),
        Word("group", "COLUMN", "one task for each of its values", group=TABLE),
        Word("target", "COLUMN", "what is to be predicted", group=TABLE),
        Word("kind", "KIND", "regression, binary or multiclass (default: by the target)", group=TABLE),
        Word("split", "COLUMN", "train, validation or test (default: at random)", group=TABLE),
        Word("categorical", "COLUMN", "numbers that are categories", _texts, TABLE),
        Word("ignore", "COLUMN", "columns to leave out", _texts, TABLE),
        Word(
            "class_weight",
            "WEIGHTS",
            "balanced, or CLASS=WEIGHT,CLASS=WEIGHT: how much errors count by the true class, when one is "
            "answered; probabilities stay as they are (default: the same)",
            _class_weight,
            ANSWERS,
        ),
        Word(
            "structure",
            "NAME",
            f"prior (default with --table), {', '.join(STRUCTURES)} (default: the paper's for the stream; "
            "recommended: scaled)",
            group=CHOICE,
        ),
        Word("adaptation", "NAME", f"{', '.join(ADAPTATIONS)} (default: er; recommended: fm)", group=CHOICE),
        Word(
            "algorithm",
            "NAME",
            f"{', '.join(ALGORITHMS)} (default: dynamic, with linear: compositional)",
            group=CHOICE,
        ),
        *(
            Word(
                name,
                about.values.shown + "|MODULE:NAME" * about.part,
                about.help,
                _setting,
                f"{about.group} (in brackets: the default)",
            )
            for name, about in ((name, setting.about) for name, setting in SETTINGS.items())
            if name != "seed"  # runs have their seeds from the list
        ),
    )
}
OF_TABLE = tuple(word.name for word in WORDS.values() if word.group == TABLE and word.name != "table")
PART_SETTINGS = tuple(name for name in PARTS if name not in METHOD)


def add_flags(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """Flags for some words, under their headings."""
    groups: dict[str | None, Any] = {None: parser}
    for word in (WORDS[name] for name in names):
        if word.group not in groups:
            groups[word.group] = parser.add_argument_group(word.group)
        how: dict[str, Any] = {"nargs": "+"} if word.read is _texts else {"type": word.read}
        groups[word.group].add_argument(
            word.flag, dest=word.name, metavar=word.metavar, help=word.help, **how
        )


def apply(options: argparse.Namespace, values: Mapping[str, Any]) -> None:
    """What a file or --set says, as if it were flags.

    Beside words: `options.NAME` is an option of the stream, `adaptation.NAME` a field of a part.
    """
    from piaget.errors import SettingError, suggestion

    for name, value in values.items():
        first, dot, rest = name.partition(".")
        if dot and first == "options":
            options.options = [*options.options, (rest, value)]
        elif dot and first in PARTS:
            options.fields = options.fields | {name: value}
        elif name in WORDS:
            try:
                setattr(options, name, WORDS[name].read(value))
            except (TypeError, argparse.ArgumentTypeError) as error:
                raise SettingError(f"{name}={value!r}: {error}") from None
        else:
            raise SettingError(
                f"{name!r} is not known{suggestion(name, WORDS)}; known: {', '.join(WORDS)}, options.NAME "
                "for options of the stream, and PART.NAME for fields of a part, such as adaptation.size"
            )


def trusted(options: argparse.Namespace) -> Trusted:
    """The code that the command's own words name."""
    values = [getattr(options, role, None) for role in ROLES]
    values += [value for name, value in getattr(options, "changes", []) if name in ROLES]
    for name in ("streams", *(f"{role}s" for role in METHOD)):
        values += getattr(options, name, None) or []
    return Trusted.named(one for value in values for one in (value if isinstance(value, list) else [value]))


def read_file(options: argparse.Namespace, path: Path) -> None:
    """Takes from a TOML file what flags do not say. It cannot name code that flags do not name."""
    import tomllib

    from piaget.errors import SettingError

    try:
        with open(path, "rb") as handle:
            text = handle.read(MOST_TEXT)
            whole = not handle.read(1)
        content = tomllib.loads(text.decode()) if whole else {}
    except FileNotFoundError:
        raise SettingError(f"{path} does not exist") from None
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror or error}") from None
    except RecursionError:
        raise SettingError(f"{path} is no TOML file of settings: it is nested too deeply") from None
    except ValueError as error:  # no TOML, no UTF-8, a number of too many digits
        raise SettingError(f"{path} is no TOML file: {error}") from None
    if not whole:
        raise SettingError(f"{path} is no file of settings: it has more than {MOST_TEXT >> 10:,} KB")
    stream_options = content.pop("options", {})
    if not isinstance(stream_options, dict):
        raise SettingError(
            f"{path}: options={stream_options!r}; expected a section [options] with names and values"
        )
    options.options = [*stream_options.items(), *options.options]
    allowed = trusted(options).references
    values = {}
    for name, value in _flat(content).items():
        first, dot, _ = name.partition(".")
        flag = getattr(options, first, None) if first in WORDS else None
        if flag is not None and (not dot or flag != _flat(content).get(first)):
            continue  # flags go first; fields are of the part that the file names
        if name in ROLES and is_reference(value) and value not in allowed:
            raise SettingError(
                f"{path}: {name} = {value!r} names code, and code is only run if you name it yourself: "
                f"give {as_flag(name, value)}, too"
            )
        values[name] = value
    apply(options, values)


def _flat(content: Mapping[str, Any]) -> dict[str, Any]:
    """A section [adaptation] with a name and fields as adaptation = NAME, adaptation.FIELD = VALUE."""
    flat: dict[str, Any] = {}
    for name, value in content.items():
        if name in PARTS and isinstance(value, dict):
            flat |= {name if key == "name" else f"{name}.{key}": field for key, field in value.items()}
        else:
            flat[name] = value
    return flat
