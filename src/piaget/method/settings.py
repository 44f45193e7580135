"""A learner's settings: names and numbers resolved to parts that fit together."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch

from piaget.engine.compiled import CompileMode
from piaget.errors import LoadError, SettingError
from piaget.method.adaptation import (
    Adaptation,
    Frozen,
    KroneckerEWC,
    NaiveFineTuning,
    Replay,
    named_adaptation,
)
from piaget.method.components import Components, Conv, Dense, Linear, named_components
from piaget.method.expansion import ComponentDropout, Expansion, NoExpansion
from piaget.method.model import DecoderMode, EncoderMode, Model
from piaget.method.schedule import Joint, Schedule, Staged, default_epochs
from piaget.method.structures import (
    LinearCombination,
    Monolithic,
    SoftGating,
    SoftOrdering,
    Structure,
    named_structure,
)

ALGORITHMS = ("dynamic", "compositional", "joint", "no-components")


@dataclass(frozen=True)
class Algorithm:
    """A schedule and an expansion; `monolithic` replaces the structure by a single network."""

    schedule: Schedule
    expansion: Expansion = NoExpansion()  # noqa: RUF009  (frozen, without state)
    monolithic: bool = False
    name: str = "custom"


def named_algorithm(name: str, epochs: int) -> Algorithm:
    """The paper's algorithms for so many epochs a task; the last one adapts."""
    if name not in ALGORITHMS:
        raise SettingError(
            f"algorithm={name!r}; expected one of {', '.join(ALGORITHMS)}, or an Algorithm object"
        )
    if name in ("joint", "no-components"):
        return Algorithm(Joint(epochs), monolithic=name == "no-components", name=name)
    if epochs < 2:
        raise SettingError(f"epochs={epochs} with {name!r}; expected 2 or more, since the last one adapts")
    expansion = ComponentDropout() if name == "dynamic" else NoExpansion()
    return Algorithm(Staged(epochs - 1, epochs - 1, 1), expansion, name=name)


@dataclass(frozen=True)
class Settings:
    structure: Structure
    adaptation: Adaptation
    algorithm: Algorithm
    components: Components
    initial_components: int
    depth: int
    encoder: EncoderMode
    decoder: DecoderMode
    initial_tasks: int
    initial_epochs: int
    batch_size: int | None
    learning_rate: float
    seed: int
    device: str
    dtype: str
    compile: CompileMode

    @property
    def model(self) -> Model:
        return Model(self.components, self.structure, self.depth, self.encoder, self.decoder)

    @property
    def torch_dtype(self) -> torch.dtype:
        return getattr(torch, self.dtype)

    @property
    def method(self) -> str:
        return f"{self.structure.name}/{self.adaptation.name}/{self.algorithm.name}"

    def stages(self) -> list[Any]:
        """The stage of every epoch of a task; with frozen components, all of them assimilate."""
        stages = self.algorithm.schedule.stages()
        if self.adaptation.trains_components:
            return list(stages)
        return ["assimilation"] * len(stages)


def check_device(device: str) -> None:
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        message = str(error).splitlines()[0]
        raise SettingError(f"device={device!r} cannot be used here: {message}") from error


def resolve(
    *,
    structure: str | Structure,
    adaptation: str | Adaptation,
    algorithm: str | Algorithm,
    components: str | Components | None,
    initial_components: int,
    depth: int | None,
    encoder: EncoderMode | None,
    decoder: DecoderMode,
    epochs: int | None,
    initial_tasks: int,
    initial_epochs: int | None,
    batch_size: int | Literal["all"] | None,
    learning_rate: float,
    seed: int,
    device: str,
    dtype: str,
    compile: CompileMode,
) -> Settings:
    """Fills in the paper's values for what is not given, and checks that all fits together."""
    counts = {"initial_components": initial_components, "depth": depth, "epochs": epochs}
    counts |= {"initial_tasks": initial_tasks, "initial_epochs": initial_epochs}
    if compile not in get_args(CompileMode):
        raise SettingError(f"compile={compile!r}; expected auto, always or never")
    _check_counts(counts | {"batch_size": None if batch_size == "all" else batch_size})
    structure = named_structure(structure) if isinstance(structure, str) else structure
    adaptation = named_adaptation(adaptation) if isinstance(adaptation, str) else adaptation
    components = components or ("linear" if isinstance(structure, LinearCombination) else "dense")
    components = named_components(components) if isinstance(components, str) else components
    _check_classes(structure, adaptation, algorithm, components)
    linear = components.whole_model
    epochs = epochs or default_epochs(linear)
    algorithm = named_algorithm(algorithm, epochs) if isinstance(algorithm, str) else algorithm
    structure = Monolithic() if algorithm.monolithic else structure
    depth = depth or (1 if linear else initial_components)
    batch_size = batch_size or ("all" if linear else 32)
    if linear and adaptation == Replay():
        adaptation = Replay(10)  # with all samples in one batch, "one batch" would be all of them
    settings = Settings(
        structure=structure,
        adaptation=adaptation,
        algorithm=algorithm,
        components=components,
        initial_components=depth if isinstance(structure, Monolithic) else initial_components,
        depth=depth,
        encoder=encoder or ("none" if components.hidden is None else "learned"),
        decoder=decoder,
        initial_tasks=initial_tasks,
        initial_epochs=initial_epochs or epochs,
        batch_size=None if batch_size == "all" else batch_size,
        learning_rate=learning_rate,
        seed=seed,
        device=str(device),
        dtype=dtype,
        compile=compile,
    )
    _check_fit(settings)
    return settings


def _check_counts(counts: dict[str, Any]) -> None:
    for name, number in counts.items():
        whole = isinstance(number, int) and not isinstance(number, bool)
        if number is not None and (not whole or number < 1):
            raise SettingError(f"{name}={number!r}; expected a whole number, 1 or more")


def _check_classes(structure: Any, adaptation: Any, algorithm: Any, components: Any) -> None:
    for name, part, kind in (
        ("structure", structure, Structure),
        ("adaptation", adaptation, Adaptation),
        ("algorithm", algorithm, Algorithm),
        ("components", components, Components),
    ):
        if not isinstance(part, kind) and not isinstance(part, str):
            raise SettingError(f"{name}={part!r}; expected a name or an object of class {kind.__name__}")
    linear = isinstance(structure, LinearCombination)
    if linear != components.whole_model and not isinstance(structure, Monolithic):
        raise SettingError(
            f"structure {structure.name!r} with {type(components).__name__} components; linear "
            "combinations go with linear components, and other structures with other ones"
        )


def _check_fit(settings: Settings) -> None:
    if settings.algorithm.expansion.proposes and not settings.structure.expandable:
        raise SettingError(
            f"structure {settings.structure.name!r} cannot take new components; expected the algorithm "
            "'joint' or 'no-components'"
        )
    if not settings.learning_rate > 0:
        raise SettingError(f"learning_rate={settings.learning_rate!r}; expected a positive number")
    if settings.encoder not in ("learned", "fixed", "shared", "none"):
        raise SettingError(f"encoder={settings.encoder!r}; expected learned, fixed, shared or none")
    if settings.decoder not in ("learned", "shared"):
        raise SettingError(f"decoder={settings.decoder!r}; expected learned or shared")
    if settings.dtype not in ("float32", "float64"):
        raise SettingError(f"dtype={settings.dtype!r}; expected float32 or float64")
    if settings.encoder != "none" and settings.components.hidden is None:
        raise SettingError(
            f"encoder={settings.encoder!r} with {type(settings.components).__name__} components, which "
            "take raw inputs; expected encoder='none'"
        )
    check_device(settings.device)


# --- as JSON ------------------------------------------------------------------------------------

PARTS: dict[str, type] = {
    c.__name__: c
    for c in (
        LinearCombination, SoftOrdering, SoftGating, Monolithic,
        NaiveFineTuning, Replay, KroneckerEWC, Frozen,
        Algorithm, Staged, Joint, NoExpansion, ComponentDropout,
        Dense, Conv, Linear,
    )
}  # fmt: skip


def to_json(part: Any) -> Any:
    """Settings as plain data. A part of the user's own is only named."""
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        if part is None or isinstance(part, bool | int | float | str):
            return part
        return {"custom": f"{type(part).__module__}.{type(part).__qualname__}"}
    if type(part) is not Settings and PARTS.get(type(part).__name__) is not type(part):
        return {"custom": f"{type(part).__module__}.{type(part).__qualname__}"}
    fields = {f.name: to_json(getattr(part, f.name)) for f in dataclasses.fields(part)}
    return {"part": type(part).__name__, **fields}


def from_json(data: Any, given: dict[str, Any]) -> Settings:
    """The inverse. `given` holds parts of the user's own by the name of the setting, or a device."""
    names = {f.name for f in dataclasses.fields(Settings)}
    if not isinstance(data, dict) or set(data) - {"part"} != names:
        raise LoadError("the settings are incomplete or unknown")
    own = {name for name in names if _custom(data[name]) is not None}
    refused = set(given) - own - {"device", "compile"}
    if refused:
        raise LoadError(
            f"{', '.join(sorted(refused))} cannot be given when loading: only the device, and parts of one's "
            f"own that the learner was made with ({', '.join(sorted(own)) or 'none here'})"
        )
    for name in own - set(given):
        raise LoadError(
            f"the learner was made with {name}={_custom(data[name])}, which is not part of "
            f"piaget; pass it again: Learner.load(folder, {name}=...)"
        )
    return Settings(**{name: given[name] if name in given else _build(data[name], name) for name in names})


def _custom(value: Any) -> str | None:
    """The name of a part of the user's own in a setting, also inside another part."""
    if not isinstance(value, dict):
        return None
    found = value.get("custom") or next(filter(None, map(_custom, value.values())), None)
    return None if found is None else str(found)


def _build(value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        return value
    if value.get("part") not in PARTS:
        raise LoadError(f"{where}: unknown part {value.get('part')!r}")
    fields = {name: _build(v, name) for name, v in value.items() if name != "part"}
    try:
        return PARTS[value["part"]](**fields)
    except TypeError as error:
        raise LoadError(f"{where}: {error}") from error
