"""A learner's settings: names and numbers resolved to parts that fit together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeVar

import torch

from piaget.data.plain import shown
from piaget.errors import SettingError
from piaget.method.acceptance import ACCEPTANCES, Acceptance
from piaget.method.adaptation import Adaptation, Frozen
from piaget.method.choices import (
    ALGORITHMS,
    COUNT,
    NUMBERS_OF_PARTS,
    POSITIVE,
    SETTINGS,
    STAGED,
    STAGES,
    TEXT,
    UP_TO_ONE,
    WHOLE,
    CompileMode,
    check_fields,
    check_settings,
    default_epochs,
    or_none,
)
from piaget.method.components import KINDS, Components
from piaget.method.encoders import DECODERS, ENCODERS, Decoder, Encoder, LinearEncoder, NoDecoder
from piaget.method.expansion import EXPANSIONS, ComponentDropout, Expansion, NoExpansion
from piaget.method.inference import INFERENCES, Inference
from piaget.method.model import Model
from piaget.method.optimizer import (
    KEPT_EPOCHS,
    OPTIMIZERS,
    RATE_SCHEDULES,
    STOP_RULES,
    KeptEpoch,
    Optimizer,
    RateSchedule,
    StopRule,
)
from piaget.method.parameters import Role
from piaget.method.reduction import REDUCTIONS, Reduction
from piaget.method.registry import ADAPTATIONS
from piaget.method.replay import SampleMemory
from piaget.method.schedule import (
    ASSIMILATION,
    INITIALIZATION,
    SEPARATE_INITIALIZATION,
    WHOLE_INITIALIZATION,
    Joint,
    Schedule,
    Staged,
    StageKind,
)
from piaget.method.starting import CANDIDATE_STARTS, STARTS, CandidateStart, Start
from piaget.method.structures import STRUCTURES, Alone, LinearCombination, Monolithic, Structure


@dataclass(frozen=True)
class Algorithm:
    """When what learns: a schedule, and an expansion.

    >>> algorithm = piaget.Algorithm(schedule=piaget.Joint(50), expansion=piaget.NoExpansion())
    >>> len(piaget.Learner(algorithm=algorithm).settings.stages())
    50
    """

    schedule: Schedule
    expansion: Expansion = NoExpansion()  # noqa: RUF009  (frozen, without state)
    name: str = "custom"

    def __post_init__(self) -> None:
        _check_kinds(self, schedule=Schedule, expansion=Expansion)
        if not isinstance(self.name, str) or not self.name or "/" in self.name:
            raise SettingError(f"algorithm: its name is {self.name!r}; expected a text without '/'")


def _check_kinds(parts: Any, **kinds: type) -> None:
    """Raises an error if a field is not of its class."""
    for name, kind in kinds.items():
        if not isinstance(getattr(parts, name), kind):
            found = type(getattr(parts, name)).__name__
            raise SettingError(f"{name} is a {found}; expected an object of class {kind.__name__}")


# The structure of algorithms that have no components to combine, whatever structure is chosen beside them.
BASELINES: dict[str, Structure] = {
    "no-components": Monolithic(),
    "no-components-frozen": Monolithic(),
    "alone": Alone(),
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
    expansion = ComponentDropout() if name == "dynamic" else NoExpansion()
    return Algorithm(schedule, expansion, name=name)


@dataclass(frozen=True)
class Settings:
    """All that a learner is made of, without a gap."""

    structure: Structure
    adaptation: Adaptation
    algorithm: Algorithm
    components: Components
    components_from: str | None  # the hash of the library whose components were the first ones
    initial_components: int
    depth: int
    encoder: Encoder
    decoder: Decoder
    initial_tasks: int
    initial_epochs: int
    batch_size: int | None  # None: all samples at once
    optimizer: Optimizer
    learning_rate: float
    rate_schedule: RateSchedule
    averaging: float  # over this share of the last steps, where components adapt
    stop: StopRule
    inference: Inference
    kept_epoch: KeptEpoch
    start: Start
    candidate_start: CandidateStart
    acceptance: Acceptance
    reduction: Reduction
    seed: int
    device: str
    dtype: str
    compile: CompileMode

    @property
    def model(self) -> Model:
        """The network, without parameters."""
        return Model(self.components, self.structure, self.depth, self.encoder, self.decoder)

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype of all parameters."""
        return getattr(torch, self.dtype)

    @property
    def method(self) -> str:
        """structure/adaptation/algorithm, as rows have it."""
        return f"{self.structure.name}/{self.adaptation.name}/{self.algorithm.name}"

    @property
    def initialization(self) -> StageKind:
        """Who learns when the initial tasks are learned together."""
        if not self.structure.uses_components:
            return SEPARATE_INITIALIZATION
        return INITIALIZATION if self.structure.fixed_initially else WHOLE_INITIALIZATION

    def stages(self) -> list[StageKind]:
        """The stage of every epoch of a task; with frozen components, all of them assimilate."""
        stages = self.algorithm.schedule.stages()
        if self.adaptation.trains_components:
            return stages
        return [ASSIMILATION if "components" in kind.trains else kind for kind in stages]

    @cached_property
    def past_roles(self) -> frozenset[Role]:
        """Which of past tasks' own parameters go on learning from their stored samples."""
        learning: dict[Role, bool] = {
            "past encoder": self.encoder.learns and not self.encoder.shared,
            "past decoder": not self.decoder.shared,
        }
        trains = {role for kind in set(self.stages()) for role in kind.trains}
        return frozenset(role for role, learns in learning.items() if learns and role in trains)

    @property
    def stores_inputs(self) -> bool:
        """Are stored samples kept as inputs? Else they are kept as they enter depth 0, which is the same for
        ever if no encoder that they pass goes on learning."""
        return self.encoder.shared or "past encoder" in self.past_roles


# --- from what was chosen -------------------------------------------------------------------------------


def resolve(
    structure: str | Structure,
    adaptation: str | Adaptation,
    algorithm: str | Algorithm,
    choices: Mapping[str, Any],  # see choices.py
) -> Settings:
    """Fills in the paper's values for what is not chosen, and checks that all fits together."""
    chosen = check_settings(choices)
    numbers = {name: chosen.pop(name) for name in NUMBERS_OF_PARTS if name in chosen}
    given_structure, structure = structure, _part("structure", structure, STRUCTURES, Structure)
    adaptation = _part("adaptation", adaptation, ADAPTATIONS, Adaptation)
    usual = "linear" if isinstance(structure, LinearCombination) else "dense"
    components = _part("components", chosen.pop("components", usual), KINDS, Components)
    _check_linear(structure, components)
    linear = components.whole_model
    epochs = chosen.pop("epochs", None)
    baseline = BASELINES.get(algorithm) if isinstance(algorithm, str) else None
    if baseline is not None and not isinstance(given_structure, str | type(baseline)):
        raise SettingError(
            f"structure={type(structure).__name__}(...) with the algorithm {algorithm!r}, which has none; "
            "leave out the structure"
        )
    if isinstance(baseline, Alone):
        adaptation = Frozen()  # nothing is shared that could adapt
    algorithm = _algorithm(algorithm, epochs or default_epochs(linear), chosen)
    encoder = chosen.pop("encoder", "none" if components.hidden is None else "learned")
    decoder = chosen.pop("decoder", "learned")
    stop = chosen.pop("stop", "patience" if "patience" in numbers else "never")
    acceptance = chosen.pop("acceptance", "validated" if "held_out" in numbers else "all")
    parts: dict[str, Any] = {
        "components": components,
        "adaptation": adaptation,
        "expansion": algorithm.expansion,
        "optimizer": _part("optimizer", chosen.pop("optimizer", "adam"), OPTIMIZERS, Optimizer),
        "stop": _part("stop", stop, STOP_RULES, StopRule),
        "acceptance": _part("acceptance", acceptance, ACCEPTANCES, Acceptance),
    }
    for name, value in numbers.items():
        part, field = NUMBERS_OF_PARTS[name]
        parts[part] = _changed(parts[part], name, field, value)
    if linear and isinstance(parts["adaptation"], SampleMemory) and parts["adaptation"].size is None:
        # With all samples in one batch, "one batch" would be all of them.
        parts["adaptation"] = replace(parts["adaptation"], size=10)
    structure = baseline or structure
    initial_components = chosen.pop("initial_components", 4)
    depth = chosen.pop("depth", 1 if linear else initial_components)
    batch_size = chosen.pop("batch_size", "all" if linear else 32)
    rate_schedule = chosen.pop("rate_schedule", "constant")
    settings = Settings(
        structure=structure,
        adaptation=parts["adaptation"],
        algorithm=replace(algorithm, expansion=parts["expansion"]),
        components=parts["components"],
        components_from=None,
        initial_components=_least_components(structure, depth) or initial_components,
        depth=depth,
        encoder=_part("encoder", encoder, ENCODERS, Encoder),
        decoder=NoDecoder() if linear else _part("decoder", decoder, DECODERS, Decoder),
        initial_tasks=chosen.pop("initial_tasks", 4),
        initial_epochs=chosen.pop("initial_epochs", epochs or len(algorithm.schedule.stages())),
        batch_size=None if batch_size == "all" else batch_size,
        optimizer=parts["optimizer"],
        learning_rate=chosen.pop("learning_rate", 1e-3),
        rate_schedule=_part("rate_schedule", rate_schedule, RATE_SCHEDULES, RateSchedule),
        averaging=chosen.pop("averaging", 0.0),
        stop=parts["stop"],
        inference=_part("inference", chosen.pop("inference", "none"), INFERENCES, Inference),
        kept_epoch=_part("kept_epoch", chosen.pop("kept_epoch", "last"), KEPT_EPOCHS, KeptEpoch),
        start=_part("start", chosen.pop("start", "drawn"), STARTS, Start),
        candidate_start=_part(
            "candidate_start", chosen.pop("candidate_start", "drawn"), CANDIDATE_STARTS, CandidateStart
        ),
        acceptance=parts["acceptance"],
        reduction=_part("reduction", chosen.pop("reduction", "none"), REDUCTIONS, Reduction),
        seed=chosen.pop("seed", 0),
        device=chosen.pop("device", "cpu"),
        dtype=chosen.pop("dtype", "float32"),
        compile=chosen.pop("compile", "auto"),
    )
    assert not chosen, f"settings that nobody reads: {chosen}"
    check_fit(settings)
    check_device(settings.device)
    return settings


def with_inference(settings: Settings, inference: str | Inference) -> Settings:
    """The same settings with another way to infer tasks, which is to note something."""
    part = _part("inference", inference, INFERENCES, Inference)
    if not part.notes:
        raise SettingError(f"inference={part.name!r} notes nothing; expected another one")
    return replace(settings, inference=part)


P = TypeVar("P")


def _part(name: str, value: Any, known: Mapping[str, P], kind: Any) -> P:
    """A part by its name, or the object itself."""
    part: Any = known.get(value) if isinstance(value, str) else value
    if isinstance(part, kind):
        if part is not known.get(getattr(part, "name", "")):
            check_own_part(name, part, known)
        return part
    called = (
        f" (did you mean {value.__name__}()?)" if isinstance(value, type) and issubclass(value, kind) else ""
    )
    expected = f"one of {', '.join(known)}, or an object of class {kind.__name__}"
    raise SettingError(f"{name}={shown(value)}; expected {expected}{called}")


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
        raise SettingError(f"{where}: its name is {name!r}, which is one of the paper's; give it another")


def _changed(part: Any, name: str, field: str, value: Any) -> Any:
    if field not in {f.name for f in fields(part)}:
        raise SettingError(f"{name} is not a setting of {type(part).__name__}")
    return replace(part, **{field: value})


def _algorithm(algorithm: str | Algorithm, epochs: int, chosen: dict[str, Any]) -> Algorithm:
    """By name or as it is given, with a schedule or an expansion that was chosen instead of its own."""
    every = chosen.pop("adapt_every", None)
    if isinstance(algorithm, str) and algorithm in ALGORITHMS:
        algorithm = named_algorithm(algorithm, epochs, every)
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
        schedule = _part("schedule", chosen.pop("schedule"), schedules, Schedule)
        algorithm = replace(algorithm, schedule=schedule)
    if "expansion" in chosen:
        expansion = _part("expansion", chosen.pop("expansion"), EXPANSIONS, Expansion)
        algorithm = replace(algorithm, expansion=expansion)
    return algorithm


def _least_components(structure: Structure, depth: int) -> int | None:
    """How many components a structure has that does not choose among them; None: it does."""
    if isinstance(structure, Monolithic):
        return depth
    return None if structure.uses_components else 1  # one that nobody uses


def _check_linear(structure: Structure, components: Components) -> None:
    linear = isinstance(structure, LinearCombination)
    if linear != components.whole_model and not isinstance(structure, Monolithic | Alone):
        raise SettingError(
            f"structure {structure.name!r} with {type(components).__name__} components; linear "
            "combinations go with linear components, and other structures with other ones"
        )


PARTS: dict[str, type] = {
    "structure": Structure,
    "adaptation": Adaptation,
    "algorithm": Algorithm,
    "components": Components,
    "encoder": Encoder,
    "decoder": Decoder,
    "optimizer": Optimizer,
    "rate_schedule": RateSchedule,
    "stop": StopRule,
    "inference": Inference,
    "kept_epoch": KeptEpoch,
    "start": Start,
    "candidate_start": CandidateStart,
    "acceptance": Acceptance,
    "reduction": Reduction,
}
NUMBERS = {
    "initial_components": WHOLE,
    "depth": WHOLE,
    "components_from": or_none(TEXT),
    "initial_tasks": COUNT,  # 0: it began with a library
    "initial_epochs": STAGES,
    "batch_size": or_none(WHOLE),
    "learning_rate": POSITIVE,
    "averaging": UP_TO_ONE,
} | {name: SETTINGS[name].about.values for name in ("seed", "device", "dtype", "compile")}


def check_fit(settings: Settings) -> None:
    """Raises an error if a setting is none, or some do not fit together."""
    _check_kinds(settings, **PARTS)
    check_fields(settings, **NUMBERS)
    _check_linear(settings.structure, settings.components)
    if (settings.components_from is None) != (settings.initial_tasks > 0):
        raise SettingError(
            f"initial_tasks={settings.initial_tasks}; expected 0 if components are from a library, and "
            "1 or more otherwise"
        )
    if settings.adaptation.share is not None and settings.batch_size == 1:
        raise SettingError(
            f"batch_size=1 with share={settings.adaptation.share} of stored samples; expected 2 or more"
        )
    if settings.algorithm.expansion.proposes and not settings.structure.expandable:
        raise SettingError(
            f"structure {settings.structure.name!r} cannot take new components; expected the algorithm "
            "'joint', or a baseline"
        )
    if settings.reduction.tries and not settings.structure.axes:
        raise SettingError(
            f"structure {settings.structure.name!r} has no components of which it could do without one; "
            "expected reduction='none'"
        )
    if settings.reduction.tries and type(settings.adaptation).replay is Adaptation.replay:
        raise SettingError(
            f"adaptation {settings.adaptation.name!r} stores no samples, by which past tasks could be "
            "guarded when components are removed or merged; expected 'er', or reduction='none'"
        )
    if isinstance(settings.encoder, LinearEncoder) and settings.components.hidden is None:
        raise SettingError(
            f"an encoder with {type(settings.components).__name__} components, which take raw inputs; "
            "expected encoder='none', or one's own"
        )


def check_device(device: str) -> None:
    """Raises an error if nothing can be computed there."""
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        message = str(error).splitlines()[0]
        raise SettingError(f"device={device!r} cannot be used here: {message}") from error
