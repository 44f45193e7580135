"""Settings from what was chosen: names and numbers are resolved to parts that fit together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from piaget.data.plain import shown
from piaget.errors import SettingError
from piaget.method.adaptation import Adaptation, Frozen
from piaget.method.choices import (
    ALGORITHMS,
    EXPANDING,
    NUMBERS_OF_PARTS,
    STAGED,
    check_settings,
    default_epochs,
)
from piaget.method.encoders import NoDecoder
from piaget.method.expansion import ComponentDropout, NoExpansion
from piaget.method.inference import Inference
from piaget.method.registry import FAMILIES, Family
from piaget.method.replay import SampleMemory
from piaget.method.schedule import Joint, Schedule, Staged
from piaget.method.settings import Algorithm, Settings, check_device, check_fit, check_linear
from piaget.method.structures import Alone, LinearCombination, Monolithic, Structure

# The structure of algorithms that have no components to combine, whatever structure is chosen beside them.
BASELINES: dict[str, Structure] = {
    "no-components": Monolithic(),
    "no-components-frozen": Monolithic(),
    "alone": Alone(),
}


# What algorithms have where nothing else is chosen and that is not the paper's (docs/recommended.md); their
# structure and adaptation: choices.py.
DEFAULTS: dict[str, dict[str, Any]] = {
    "recommended": {
        "rate_schedule": "cosine",
        "learning_rate": 3e-3,
        "acceptance": "validated",
        "expansion": "second-attempt",
    }
}


def named_algorithm(name: str, epochs: int, adapt_every: int | None = None) -> Algorithm:
    """The paper's algorithms for so many epochs a task; the last one (or every N-th) adapts."""
    if name not in STAGED:
        if adapt_every is not None:
            raise SettingError(
                f"adapt_every is not a setting of the algorithm {name!r}: all its epochs are alike"
            )
        return Algorithm(Joint(epochs, past=name == "no-components"), name=name)
    if epochs < 2:
        raise SettingError(f"epochs={epochs} with {name!r}; expected 2 or more, since the last one adapts")
    every = epochs if adapt_every is None else adapt_every
    if every < 2 or epochs % every:
        allowed = ", ".join(str(n) for n in range(2, epochs + 1) if epochs % n == 0)
        raise SettingError(f"adapt_every={every} with {epochs} epochs; expected one of {allowed}")
    schedule = Staged(struct_updates=epochs - epochs // every, adapt_freq=every - 1, comp_updates=1)
    expansion = ComponentDropout() if name in EXPANDING else NoExpansion()
    return Algorithm(schedule, expansion, name=name)


def resolve(
    structure: str | Structure,
    adaptation: str | Adaptation,
    algorithm: str | Algorithm,
    choices: Mapping[str, Any],  # see choices.py
) -> Settings:
    """Fills in the paper's values for what is not chosen, and checks that all fits together."""
    defaults = DEFAULTS.get(algorithm, {}) if isinstance(algorithm, str) else {}
    chosen = {**defaults, **check_settings(choices)}
    numbers = {name: chosen.pop(name) for name in NUMBERS_OF_PARTS if name in chosen}
    parts = _method(structure, adaptation, algorithm, chosen)
    components = parts["components"]
    linear = components.whole_model
    epochs = chosen.pop("epochs", None)
    algorithm = _algorithm(algorithm, epochs or default_epochs(linear), chosen)
    parts["expansion"] = algorithm.expansion
    usual = {
        "encoder": "none" if components.hidden is None else "learned",
        "stop": "patience" if "patience" in numbers else "never",
        "acceptance": "validated" if "held_out" in numbers else "all",
    }
    for role, family in FAMILIES.items():
        if role not in parts:
            parts[role] = _part(role, chosen.pop(role, usual.get(role, family.usual)))
    if linear:
        parts["decoder"] = NoDecoder()
    for name, value in numbers.items():
        role, field = NUMBERS_OF_PARTS[name]
        parts[role] = _changed(parts[role], name, field, value)
    if linear and isinstance(parts["adaptation"], SampleMemory) and parts["adaptation"].size is None:
        # With all samples in one batch, "one batch" would be all of them.
        parts["adaptation"] = replace(parts["adaptation"], size=10)
    initial_components = chosen.pop("initial_components", 4)
    depth = chosen.pop("depth", 1 if linear else initial_components)
    batch_size = chosen.pop("batch_size", "all" if linear else 32)
    settings = Settings(
        algorithm=replace(algorithm, expansion=parts.pop("expansion")),
        **parts,
        components_from=None,
        initial_components=_least_components(parts["structure"], depth) or initial_components,
        depth=depth,
        initial_tasks=chosen.pop("initial_tasks", 4),
        initial_epochs=chosen.pop("initial_epochs", epochs or len(algorithm.schedule.stages())),
        batch_size=None if batch_size == "all" else batch_size,
        learning_rate=chosen.pop("learning_rate", 1e-3),
        averaging=chosen.pop("averaging", 0.0),
        calibration=chosen.pop("calibration", "none"),
        seed=chosen.pop("seed", 0),
        device=chosen.pop("device", "cpu"),
        dtype=chosen.pop("dtype", "float32"),
        compile=chosen.pop("compile", "auto"),
    )
    assert not chosen, f"settings that nobody reads: {chosen}"
    check_fit(settings)
    check_device(settings.device)
    return settings


def _method(
    structure: str | Structure, adaptation: Any, algorithm: str | Algorithm, chosen: dict[str, Any]
) -> dict[str, Any]:
    """Structure, adaptation and components, which go together or do not."""
    combining: Structure = _part("structure", structure)
    adapting: Adaptation = _part("adaptation", adaptation)
    usual = "linear" if isinstance(combining, LinearCombination) else "dense"
    components = _part("components", chosen.pop("components", usual))
    check_linear(combining, components)
    baseline = BASELINES.get(algorithm) if isinstance(algorithm, str) else None
    if baseline is not None and not isinstance(structure, str | type(baseline)):
        raise SettingError(
            f"structure={type(structure).__name__}(...) with the algorithm {algorithm!r}, which has none; "
            "leave out the structure"
        )
    if isinstance(baseline, Alone):
        adapting = Frozen()  # nothing is shared that could adapt
    return {"structure": baseline or combining, "adaptation": adapting, "components": components}


def with_inference(settings: Settings, inference: str | Inference) -> Settings:
    """The same settings with another way to infer tasks, which is to note something."""
    part = _part("inference", inference)
    if not part.notes:
        raise SettingError(f"inference={part.name!r} notes nothing; expected another one")
    return replace(settings, inference=part)


def _part(role: str, value: Any) -> Any:
    """A part by its name, or the object itself."""
    return _known(role, value, FAMILIES[role])


def _known(role: str, value: Any, family: Family) -> Any:
    part: Any = family.parts.get(value) if isinstance(value, str) else value
    base = family.base
    if isinstance(part, base):
        if part is not family.parts.get(getattr(part, "name", "")):
            check_own_part(role, part, family.parts)
        return part
    called = (
        f" (did you mean {value.__name__}()?)" if isinstance(value, type) and issubclass(value, base) else ""
    )
    expected = f"one of {', '.join(family.parts)}, or an object of class {base.__name__}"
    raise SettingError(f"{role}={shown(value)}; expected {expected}{called}")


def check_own_part(role: str, part: Any, known: Mapping[str, Any]) -> None:
    """Raises an error if a part of one's own cannot be compared, or told from the paper's."""
    where = f"{role}={type(part).__name__}(...)"
    dataclass_params = getattr(type(part), "__dataclass_params__", None)
    frozen = dataclass_params is None or dataclass_params.frozen
    if not frozen or type(part).__hash__ is None:
        raise SettingError(
            f"{where}: it can change; expected a frozen dataclass, so that learners can be compared and saved"
        )
    if isinstance(part, Adaptation) and part.references > 0 and not part.corrects:
        raise SettingError(
            f"{where}: references={part.references}, but no `correct` that would be given their gradient"
        )
    if role not in ("structure", "adaptation"):
        return
    name = getattr(part, "name", None)
    if not isinstance(name, str) or not name or "/" in name:
        raise SettingError(f"{where}: its name is {name!r}; expected a text without '/': name = \"mine\"")
    if name in known and type(known[name]) is not type(part):
        raise SettingError(f"{where}: its name is {name!r}, which is one of the library's; give it another")


def _changed(part: Any, name: str, field: str, value: Any) -> Any:
    settable = {f.name for f in fields(part)} if is_dataclass(part) else set()
    if field not in settable:
        raise SettingError(f"{name} is not a setting of {type(part).__name__}")
    return replace(part, **{field: value})


def _algorithm(algorithm: str | Algorithm, epochs: int, chosen: dict[str, Any]) -> Algorithm:
    """By name or as it is given, with a schedule or an expansion that was chosen instead of its own."""
    every = chosen.pop("adapt_every", None)
    if isinstance(algorithm, str) and algorithm in ALGORITHMS:
        # Another schedule than its own may have a single epoch.
        algorithm = named_algorithm(algorithm, max(epochs, 2) if "schedule" in chosen else epochs, every)
    elif not isinstance(algorithm, Algorithm):
        raise SettingError(
            f"algorithm={shown(algorithm)}; expected one of {', '.join(ALGORITHMS)}, or an object of class "
            "Algorithm"
        )
    elif every is not None:
        raise SettingError("adapt_every goes with an algorithm by name; an Algorithm has its own schedule")
    if "schedule" in chosen:
        if every is not None:
            raise SettingError("adapt_every goes with the algorithm's own schedule; leave out one of the two")
        schedules = {"staged": Staged(epochs - 1, max(epochs - 1, 1)), "joint": Joint(epochs)}
        schedule = _known("schedule", chosen.pop("schedule"), Family(Schedule, schedules))
        algorithm = replace(algorithm, schedule=schedule)
    if "expansion" in chosen:
        algorithm = replace(algorithm, expansion=_part("expansion", chosen.pop("expansion")))
    return algorithm


def _least_components(structure: Structure, depth: int) -> int | None:
    """How many components a structure has that does not choose among them; None: it does."""
    if isinstance(structure, Monolithic):
        return depth
    return None if structure.uses_components else 1  # one that nobody uses
