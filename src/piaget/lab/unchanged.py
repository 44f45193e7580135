"""A run that goes on has the configuration, library and data that it began with; else it is an error."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from piaget.errors import DataError, SettingError


def check_data(
    folder: Path, then: dict[str, str] | None, now: dict[str, str] | None, done: bool = False
) -> None:
    """Nothing is mixed: a run ends with the data that it began with. Both: the fingerprint of each task."""
    if then is None or now is None or list(then.items()) == list(now.items()):
        return
    changes = {
        "has other data": [name for name in now if name in then and then[name] != now[name]],
        "is new": [name for name in now if name not in then],
        "is gone": [name for name in then if name not in now],
    }
    told = [f"task {_some(names)} {what}" for what, names in changes.items() if names]
    began, order = "finished" if done else "began", "tasks are in another order"
    raise DataError(
        f"{folder}: the data is not what the run {began} with: {'; '.join(told) or order}. Nothing was "
        "changed: give another folder for a new run, or the data as it was"
    )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:3]))
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def check_configuration(
    folder: Path, description: dict[str, Any], wanted: dict[str, Any], learner: dict[str, Any] | None
) -> None:
    """A setting that is given now, and was the default then, is no difference."""
    there, used = description["configuration"], description.get("learner")
    differing = _differing(there, wanted)
    if differing == ["settings"] and learner is not None and used is not None:
        there, wanted = used, json.loads(json.dumps(learner))
        differing = _differing(there, wanted)
    if differing:
        shown = ", ".join(f"{key}: {there.get(key)!r} there, {wanted.get(key)!r} now" for key in differing)
        raise SettingError(f"{folder} holds a run with another configuration ({shown}); give another folder")


def _differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return sorted(key for key in {*one, *other} if one.get(key) != other.get(key))


def check_library(folder: Path, then: dict[str, Any], now: dict[str, Any]) -> None:
    """A run ends with the components that it began with."""
    if then and now and then.get("components_from") != now.get("components_from"):
        raise DataError(
            f"{folder}: the library's components are not those with which the run began, by their hash. "
            "Nothing was changed: give another folder for a new run, or the library as it was"
        )
