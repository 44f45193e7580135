"""Settings as plain data, and back: nothing in it can run code.

The library's own parts are described by the names of their classes and their fields. Parts of the user's own
are only named, with those of their fields that are plain values; who loads the settings gives them again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from piaget.errors import LoadError, PiagetError
from piaget.method.choices import upgraded_algorithm
from piaget.method.components import Components
from piaget.method.encoders import DECODERS, ENCODERS, NoDecoder
from piaget.method.optimizer import OPTIMIZERS
from piaget.method.rates import RATE_SCHEDULES
from piaget.method.registry import FAMILIES
from piaget.method.schedule import Joint, Staged
from piaget.method.settings import Algorithm, Settings, check_fit
from piaget.method.stopping import STOP_RULES

PARTS: dict[str, type] = {"Settings": Settings, "Algorithm": Algorithm, "Staged": Staged, "Joint": Joint}
for kinds in (*(family.parts for family in FAMILIES.values()), {"none": NoDecoder()}):
    PARTS |= {type(part).__name__: type(part) for part in kinds.values()}


# Fields that parts have had since files were first written, as plain data that does nothing new. They are not
# written where they have that value: then a description is what it was, and a method known by it the same.
ADDED: dict[str, dict[str, Any]] = {
    "Settings": {
        "acceptance": {"part": "TakeAll"},
        "averaging": 0.0,
        "kept_epoch": {"part": "LastEpoch"},
        "start": {"part": "AsDrawn"},
        "candidate_start": {"part": "FreshCandidate"},
        "reduction": {"part": "NoReduction"},
        "calibration": "none",
        "inference": {"part": "NoInference"},
        "components_from": None,
    },
    "Replay": {"share": None},
    "DilutedReplay": {"share": None},
}


def _completed(part: Any) -> Any:
    """A part as plain data, with what is not written."""
    return ADDED.get(str(part.get("part")), {}) | part if isinstance(part, dict) else part


def is_plain(value: Any) -> bool:
    """Can JSON hold it as it is?"""
    return value is None or isinstance(value, bool | int | float | str)


def _field(value: Any) -> Any:
    """A field of a part of the user's own, as far as it can be told apart later."""
    if isinstance(value, tuple | list):
        return [_field(one) for one in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return to_json(value)
    return value if is_plain(value) else {"type": f"{type(value).__module__}.{type(value).__qualname__}"}


def to_json(part: Any) -> Any:
    """A part, or all settings, as plain data."""
    if is_plain(part):
        return part
    if dataclasses.is_dataclass(part):
        fields = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
    else:
        fields = dict(getattr(part, "__dict__", {}))
    if is_described(part):
        name, described = type(part).__name__, {field: to_json(value) for field, value in fields.items()}
        neutral = ADDED.get(name, {})
        kept = {f: value for f, value in described.items() if f not in neutral or value != neutral[f]}
        return {"part": name} | kept
    described = {name: _field(value) for name, value in fields.items()}
    return {"custom": f"{type(part).__module__}.{type(part).__qualname__}", "fields": described}


def from_json(data: Any, own: Mapping[str, Any]) -> Settings:
    """The inverse. `own`: parts of the user's own by the names of settings; or another device, or compile."""
    if not isinstance(data, dict):
        raise LoadError("the settings are incomplete or unknown")
    data = upgraded(data)
    if set(data) - {"part"} != {field.name for field in dataclasses.fields(Settings)}:
        raise LoadError("the settings are incomplete or unknown")
    custom = dict(_custom_parts(data))
    refused = set(own) - set(custom) - {"device", "compile"}
    if refused:
        raise LoadError(
            f"{', '.join(sorted(refused))} cannot be given when loading: only the device, and parts of one's "
            f"own that the learner was made with ({', '.join(sorted(custom)) or 'none here'})"
        )
    settings = _build(data, "settings", own)
    changes = {name: own[name] for name in ("device", "compile") if name in own}
    settings = dataclasses.replace(settings, **changes)
    check_fit(settings)
    return settings


def is_described(part: Any) -> bool:
    """Is it one of the library's own parts, so that plain data says all of it?"""
    return PARTS.get(type(part).__name__) is type(part)


def components_from_json(data: Mapping[str, Any], own: Components | None) -> Components:
    """A kind of components. own: the user's own, if the data only names one."""
    if "custom" in data:
        if own is None:
            raise LoadError(
                f"components={data['custom']} is not part of piaget; give it, too: "
                "Learner(components_from=folder, components=...)"
            )
        return _checked(dict(data), "components", own)
    kind = _build(data, "components", {})
    if not isinstance(kind, Components):
        raise LoadError(f"{data.get('part')} is no kind of components")
    return kind


def upgraded(data: dict[str, Any]) -> dict[str, Any]:
    """Settings as older versions wrote them, in the current form."""
    data = _completed({name: _completed(value) for name, value in data.items()})
    data = data | {"algorithm": upgraded_algorithm(data.get("algorithm"), data.get("adaptation"))}
    if "optimizer" in data:
        return data
    data = data | {"optimizer": to_json(OPTIMIZERS["adam"])}
    data |= {"rate_schedule": to_json(RATE_SCHEDULES["constant"]), "stop": to_json(STOP_RULES["never"])}
    linear = isinstance(data["components"], dict) and data["components"].get("part") == "Linear"
    decoder = NoDecoder() if linear else DECODERS.get(str(data["decoder"]))
    data |= {"encoder": to_json(ENCODERS.get(str(data["encoder"]))), "decoder": to_json(decoder)}
    if isinstance(data["algorithm"], dict):
        data["algorithm"] = {name: v for name, v in data["algorithm"].items() if name != "monolithic"}
    return data


def _custom_parts(data: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The user's own parts, by the names under which they can be given: those of settings, and, of an
    algorithm, of its schedule and expansion; then the algorithm itself, too."""
    found: list[tuple[str, dict[str, Any]]] = []
    for name, value in data.items():
        if isinstance(value, dict) and "custom" in value:
            found.append((name, value))
        elif isinstance(value, dict) and (inside := _custom_parts(value)):
            found += [*inside, (name, inside[0][1])]
    return found


def _build(value: Any, name: str, own: Mapping[str, Any]) -> Any:
    if not isinstance(value, dict):
        return value
    if name in own and name not in ("device", "compile"):
        return _checked(value, name, own[name])
    if "custom" in value:
        raise LoadError(
            f"the learner was made with {name}={value['custom']}, which is not part of piaget; pass it "
            f"again: Learner.load(folder, {name}=...)"
        )
    part = PARTS.get(str(value.get("part")))
    if part is None:
        raise LoadError(f"{name}: unknown part {value.get('part')!r}")
    fields = {field: _build(v, field, own) for field, v in value.items() if field != "part"}
    expected = {field.name for field in dataclasses.fields(part)}
    if fields.keys() != expected:  # a default in place of what is not there would be another method
        raise LoadError(f"{name}: {', '.join(fields.keys() ^ expected)} is missing, or not known")
    try:
        return part(**fields)
    except (TypeError, PiagetError) as error:
        raise LoadError(f"{name}: {error}") from error


def _checked(value: dict[str, Any], name: str, part: Any) -> Any:
    """A part that is given again must be what it was."""
    now = to_json(part)
    difference = _difference(value, now) if isinstance(now, dict) else f"it is {part!r}"
    if difference is None:
        return part
    raise LoadError(
        f"{name}: the learner was made with {value.get('custom') or value.get('part')}, and what is given "
        f"differs: {difference}; pass it as it was"
    )


def _difference(then: Any, now: Any) -> str | None:
    """In words; None: they are the same. A class may have moved to another module."""
    if not isinstance(then, dict) or not isinstance(now, dict):
        return None if then == now else f"{now!r} instead of {then!r}"
    if "custom" in then:
        classes = [str(one.get("custom", one.get("part"))).rpartition(".")[2] for one in (then, now)]
        if classes[0] != classes[1]:
            return f"{classes[1]} instead of {classes[0]}"
        then, now = then.get("fields", {}), now.get("fields", {})
    for field, value in then.items():
        if (difference := _difference(value, now.get(field))) is not None:
            return f"{field}: {difference}"
    return None
