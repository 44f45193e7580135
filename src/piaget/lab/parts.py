"""Parts of one's own, by reference: `package.module:Name` names a class or an object.

A file never causes an import. Whatever a run.json, a sweep.json or a TOML file names, only code that the user
named on the command line, or handed over in Python, is used: that is what `Trusted` holds. No heavy imports.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
import os
import re
import sys
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from piaget.data.plain import is_whole, plain, shown
from piaget.errors import PiagetError, SettingError, suggestion, type_of
from piaget.method.choices import (
    ADAPTATIONS,
    ALGORITHMS,
    METHOD,
    NUMBERS_OF_PARTS,
    SETTINGS,
    STRUCTURES,
    check_settings,
    unknown_setting,
)
from piaget.method.values import FLAG, NUMBER, Values

NAMES = dict(zip(METHOD, (STRUCTURES, ADAPTATIONS, ALGORITHMS), strict=True))  # the library's
OWN = "package.module:Name of a part of your own"
PARTS = (*METHOD, *(name for name, setting in SETTINGS.items() if setting.about.part))
ROLES = ("stream", *PARTS)  # what a reference can stand for
CLASSES = {
    "structure": "structures:Structure",
    "adaptation": "adaptation:Adaptation",
    "algorithm": "settings:Algorithm",
    "components": "components:Components",
    "encoder": "encoders:Encoder",
    "decoder": "encoders:Decoder",
    "optimizer": "optimizer:Optimizer",
    "rate_schedule": "rates:RateSchedule",
    "acceptance": "acceptance:Acceptance",
    "stop": "stopping:StopRule",
    "inference": "inference:Inference",
    "kept_epoch": "stopping:KeptEpoch",
    "reduction": "reduction:Reduction",
    "start": "starting:Start",
    "candidate_start": "starting:CandidateStart",
    "schedule": "schedule:Schedule",
    "expansion": "expansion:Expansion",
}  # of piaget.method: what a part of one's own must be
# Fields of the paper's parts that are settings under a name of their own.
SETTING_OF = {f"{part}.{field}": name for name, (part, field) in NUMBERS_OF_PARTS.items()}


def is_reference(value: Any) -> bool:
    """Does it name code, and not a choice of the paper's?"""
    return isinstance(value, str) and ":" in value


def as_flag(role: str, reference: str) -> str:
    """How the command line names it."""
    return f"--{role.replace('_', '-')} {reference}"


def check_choices(method: Mapping[str, str], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run, checked without importing anything.

    Beside those of a learner there may be references to parts, and fields of parts: "adaptation.alpha".
    """
    for role, chosen in method.items():
        if chosen not in NAMES[role] and not is_reference(chosen):
            near = suggestion(str(chosen), NAMES[role])
            raise SettingError(f"{role}={shown(chosen)}: expected {', '.join(NAMES[role])}, or {OWN}{near}")
    plain, rest = {}, {}
    for name, value in settings.items():
        part, dot, _ = name.partition(".")
        if name == "seed":
            raise SettingError("seed: a run has its seed from the list of seeds (--seeds)")
        if dot and part not in PARTS:
            raise unknown_setting(name, SETTINGS)
        if dot and not is_reference({**method, **settings}.get(part)) and name in SETTING_OF:
            plain[SETTING_OF[name]] = value
        elif dot:
            rest[name] = as_plain_data(name, value)
        elif name in PARTS and is_reference(value):
            rest[name] = value
        else:
            plain[name] = value
    return check_settings(plain, OWN) | rest


def as_plain_data(name: str, value: Any) -> Any:
    """A field of a part, which is kept in run.json; an error, if that is not possible."""
    finite = not isinstance(value, float) or math.isfinite(value)
    if not finite or not isinstance(value, str | int | float | bool | None):
        raise SettingError(f"{name}={value!r}: expected a finite number, a text, True, False or None")
    return value


def references(configuration: Mapping[str, Any]) -> dict[str, str]:
    """The references in the configuration of a run: {role: reference}."""
    chosen = {**configuration["settings"], **{name: configuration[name] for name in ("stream", *METHOD)}}
    return {role: chosen[role] for role in ROLES if is_reference(chosen.get(role))}


@dataclass(frozen=True)
class Trusted:
    """The code that the user has named or handed over; nothing else is used."""

    references: frozenset[str] = frozenset()
    folder: str | None = None  # importable, as with python -m
    objects: Mapping[str, Any] = field(default_factory=dict)  # handed over: {reference: class or object}

    @classmethod
    def named(cls, words: Iterable[Any]) -> Trusted:
        """What the words of a command name; modules in the working directory can be imported."""
        return cls(frozenset(word for word in words if is_reference(word)), os.getcwd())

    def __call__(self, role: str, reference: str) -> Any:
        """What a reference names."""
        if reference in self.objects:
            return self.objects[reference]
        if reference not in self.references:
            raise SettingError(
                f"{role} {reference} names code, and code is only run if you name it yourself: "
                f"give {as_flag(role, reference)}"
            )
        return _load(as_flag(role, reference), reference, self.folder)


NOTHING = Trusted()


def _load(where: str, reference: str, folder: str | None) -> Any:
    """Imports what a reference names. `where`: the beginning of error messages."""
    match = re.fullmatch(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*(?:\.[^\W\d]\w*)*)", reference)
    if match is None:
        raise SettingError(f"{where}: expected package.module:Name")
    module_name, path = match.groups()
    if folder is not None and folder not in sys.path:
        sys.path.insert(0, folder)
    importlib.invalidate_caches()  # the module may have been written just now
    try:
        target = importlib.import_module(module_name)
    except Exception as error:
        absent = error.name if isinstance(error, ModuleNotFoundError) else None
        if absent is not None and f"{module_name}.".startswith(f"{absent}."):
            places = f"in {folder} or among the installed packages"
            raise SettingError(f"{where}: there is no module {absent!r} {places}") from error
        told = f"{type(error).__name__}: {error}{_line(error, folder)}"
        raise SettingError(f"{where}: {module_name} cannot be imported: {told}") from error
    for name in path.split("."):
        if not hasattr(target, name):
            names = [known for known in vars(target) if not known.startswith("_")]
            raise SettingError(f"{where}: {module_name} has no {name!r}{suggestion(name, names)}")
        target = getattr(target, name)
    return target


def _line(error: Exception, folder: str | None) -> str:
    """The last line of the user's own code on the way to an error, in brackets, if there is one."""
    if isinstance(error, SyntaxError):
        return ""  # it names the file and the line itself
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)[1:]  # the first one is here
        if folder is not None
        and Path(folder) in Path(frame.filename).parents
        and "site-packages" not in frame.filename
    ]
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""


def base_class(role: str) -> Any:
    """What a part of one's own must be."""
    module, _, name = CLASSES[role].partition(":")
    return getattr(importlib.import_module(f"piaget.method.{module}"), name)


def make_part(role: str, target: Any, fields: Mapping[str, Any], where: str) -> Any:
    """A part from a class or an object, with some fields set; an error begins with `where`."""
    base = base_class(role)
    is_class = isinstance(target, type)
    if not (issubclass(target, base) if is_class else isinstance(target, base)):
        kind = f"the class {target.__name__}" if is_class else type_of(target)
        raise SettingError(f"{where}: it is {kind}; expected a class or an object of {base.__name__}")
    known = field_names(target)
    for name in fields:
        if name not in known:
            have = f"its fields: {', '.join(known)}" if known else "it has no fields"
            raise SettingError(
                f"{role}.{name}: {where} has no field {name!r}{suggestion(name, known)}; {have}"
            )
    check_types(role, target, fields, where)
    try:
        part = target(**fields) if is_class else dataclasses.replace(target, **fields) if fields else target
    except PiagetError:
        raise
    except Exception as error:
        raise SettingError(f"{where}: it cannot be made: {type(error).__name__}: {error}") from error
    return part


# What fields of a part may be annotated with, to be checked.
KINDS: Mapping[Any, Values] = {
    bool: FLAG,
    int: Values("N", is_whole, "a whole number"),
    float: NUMBER,
    str: Values("TEXT", lambda value: isinstance(value, str), "a text (a number as a text: \"'1'\")"),
    type(None): Values("None", lambda value: value is None, "None"),
}


def check_types(role: str, target: Any, fields: Mapping[str, Any], where: str) -> None:
    """Raises an error if a field is annotated as a number, a text or the like, and given something else."""
    hints, defaults = _hints(target if isinstance(target, type) else type(target))
    for name, value in fields.items():
        hint = hints.get(name)
        allowed = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        own_default = value is None and defaults.get(name, 0) is None  # n: int = None
        if not own_default and not any(kind not in KINDS or _is_a(kind, value) for kind in allowed):
            expected = " or ".join(KINDS[kind].expected for kind in allowed)
            raise SettingError(f"{role}.{name}={shown(value)}: expected {expected} ({where})")


def _is_a(kind: Any, value: Any) -> bool:
    """Is it of this type, or a number that is the same in it: 2.0 is a whole number, 1 is True?"""
    value = plain(value)
    if kind in (bool, int) and isinstance(value, int | float) and not isinstance(value, bool):
        return value in (0, 1) if kind is bool else value % 1 == 0
    return KINDS[kind].allows(value)


def _hints(target: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the fields of a dataclass are annotated with, and their defaults; nothing, if its annotations
    cannot be read."""
    if not dataclasses.is_dataclass(target):
        return {}, {}
    try:
        hints = get_type_hints(target)
    except Exception:  # names that are imported for type checkers only, and whatever else stands there
        return {}, {}
    return hints, {one.name: one.default for one in dataclasses.fields(target)}


def field_names(target: Any) -> list[str]:
    """What can be set when a part is made."""
    if dataclasses.is_dataclass(target):
        return [one.name for one in dataclasses.fields(target) if one.init]
    return list(inspect.signature(target).parameters) if isinstance(target, type) else []
