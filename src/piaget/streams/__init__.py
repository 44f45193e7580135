"""Streams of tasks, by name."""

from __future__ import annotations

import difflib
from typing import Any

from piaget.errors import SettingError
from piaget.streams.objects import SETTINGS, Objects
from piaget.tasks import Stream

STREAMS = ("objects", *(f"objects-{setting}" for setting in SETTINGS))


def stream(name: str, seed: int = 0, **options: Any) -> Stream:
    """A stream of tasks. "objects" is the random setting; "objects-circle" etc. hold out."""
    if name not in STREAMS:
        near = difflib.get_close_matches(name, STREAMS, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise SettingError(f"stream {name!r} is not known{hint}; known: {', '.join(STREAMS)}")
    if name != "objects":
        options["setting"] = name.removeprefix("objects-")
    try:
        return Objects(seed, **options)
    except TypeError as error:
        raise SettingError(f"stream {name!r}: {error}") from error
