"""Streams of tasks: the paper's by name, and the user's own data."""

from __future__ import annotations

import importlib
import inspect
import os
from typing import TYPE_CHECKING, Any

from piaget.data.plain import check_count, check_fractions, check_seed
from piaget.errors import SettingError, suggestion
from piaget.streams.catalog import STREAMS, Named

if TYPE_CHECKING:
    from piaget.data.tasks import Stream
    from piaget.streams.array_stream import from_arrays as from_arrays, from_datasets as from_datasets
    from piaget.streams.avalanche_stream import from_avalanche as from_avalanche
    from piaget.streams.folder_stream import from_folder as from_folder
    from piaget.streams.huggingface_stream import from_huggingface as from_huggingface
    from piaget.streams.table_stream import from_table as from_table

_MODULE_OF = {
    "from_arrays": "array_stream",
    "from_avalanche": "avalanche_stream",
    "from_datasets": "array_stream",
    "from_folder": "folder_stream",
    "from_huggingface": "huggingface_stream",
    "from_table": "table_stream",
}
__all__ = [
    "STREAMS",
    "from_arrays",
    "from_avalanche",
    "from_datasets",
    "from_folder",
    "from_huggingface",
    "from_table",
    "stream",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'piaget.streams' has no attribute {name!r}")
    return getattr(importlib.import_module(f"piaget.streams.{_MODULE_OF[name]}"), name)


def stream(
    name: str, seed: int = 0, data_dir: str | os.PathLike[str] | None = None, **options: Any
) -> Stream:
    """A stream of tasks by name, such as "objects" or "mnist" (all: `piaget data list`).

    Files are looked for in `data_dir`, in the folder that PIAGET_DATA names, and in the user's cache
    folder; else they are downloaded. Options differ by stream: `train_size` limits the training
    samples of each task, `tasks` the number of tasks; see docs/streams.md.

    Raises `SettingError` for a name or an option that is not known, `DataError` if files are damaged or
    cannot be had.

    >>> tasks = piaget.stream("digits", seed=0, tasks=3)
    >>> len(tasks), tasks[0].name, tuple(tasks[0].train.x.shape[1:])
    (3, 'digits-00', (1, 8, 8))
    >>> piaget.stream("digit")
    Traceback (most recent call last):
    piaget.errors.SettingError: stream 'digit' is not known (did you mean 'digits'?); known: ...
    """
    known = lookup(name)
    seed = check_seed(seed)
    unknown = [option for option in options if option not in stream_options(name)]
    if unknown:
        raise SettingError(
            f"stream {name!r} has no option {unknown[0]!r}; its options are {', '.join(stream_options(name))}"
        )
    if "fractions" in options:  # before anything is downloaded
        options["fractions"] = check_fractions(options["fractions"])
    for option in ("tasks", "train_size"):
        if options.get(option) is not None:
            options[option] = check_count(option, options[option])
    return known.make(name, seed, data_dir, **options)


def stream_options(name: str) -> list[str]:
    """The options that a stream takes."""
    parameters = inspect.signature(lookup(name).make).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind == parameter.KEYWORD_ONLY]


def lookup(name: str) -> Named:
    """What is known of a stream; an unknown name is an error that suggests the nearest one."""
    if not isinstance(name, str) or name not in STREAMS:
        near = suggestion(str(name), STREAMS)
        raise SettingError(f"stream {name!r} is not known{near}; known: {', '.join(STREAMS)}")
    return STREAMS[name]
