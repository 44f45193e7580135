"""A learner's settings, without a gap; and whether they fit together. From what was chosen: resolving.py."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any

import torch

from piaget.errors import SettingError, type_of
from piaget.method.acceptance import Acceptance
from piaget.method.adaptation import Adaptation
from piaget.method.choices import SETTINGS, CompileMode
from piaget.method.components import Components
from piaget.method.encoders import Decoder, Encoder, LinearEncoder
from piaget.method.expansion import Expansion, NoExpansion
from piaget.method.inference import Inference
from piaget.method.model import Model
from piaget.method.optimizer import Optimizer
from piaget.method.parameters import PAST_ROLES, SHARED_ROLES, Role
from piaget.method.rates import RateSchedule
from piaget.method.reduction import Reduction
from piaget.method.registry import FAMILIES
from piaget.method.schedule import (
    ASSIMILATION,
    INITIALIZATION,
    SEPARATE_INITIALIZATION,
    WHOLE_INITIALIZATION,
    Schedule,
    StageKind,
)
from piaget.method.starting import CandidateStart, Start
from piaget.method.stopping import KeptEpoch, StopRule
from piaget.method.structures import Alone, LinearCombination, Monolithic, Structure
from piaget.method.values import COUNT, POSITIVE, STAGES, TEXT, UP_TO_ONE, WHOLE, check_fields, or_none


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
            found = type_of(getattr(parts, name))
            raise SettingError(f"{name} is {found}; expected an object of class {kind.__name__}")


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
    calibration: str  # of probabilities: "none" or "temperature"
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

    @property
    def attempts(self) -> int:
        """How many there may be at a task."""
        return 2 if self.algorithm.expansion.in_second_attempt else 1

    @property
    def most_epochs(self) -> int:
        """Of a task, in all attempts that there may be at it. When a task has been learned, so many count as
        done, however many were needed."""
        return len(self.stages()) * self.attempts

    @property
    def changes_common(self) -> bool:
        """Does learning a task change what other tasks depend on?"""
        common = {"components", *SHARED_ROLES, *PAST_ROLES}
        return any(kind.trains & common for kind in self.stages())

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


def check_linear(structure: Structure, components: Components) -> None:
    """Raises an error if linear components and linear combinations do not go together."""
    linear = isinstance(structure, LinearCombination)
    if linear != components.whole_model and not isinstance(structure, Monolithic | Alone):
        raise SettingError(
            f"structure {structure.name!r} with {type(components).__name__} components; linear "
            "combinations go with linear components, and other structures with other ones"
        )


NUMBERS = {
    "initial_components": WHOLE,
    "depth": WHOLE,
    "components_from": or_none(TEXT),
    "initial_tasks": COUNT,  # 0: it began with a library
    "initial_epochs": STAGES,
    "batch_size": or_none(WHOLE),
    "learning_rate": POSITIVE,
    "averaging": UP_TO_ONE,
} | {name: SETTINGS[name].about.values for name in ("calibration", "seed", "device", "dtype", "compile")}


def check_fit(settings: Settings) -> None:
    """Raises an error if a setting is none, or some do not fit together."""
    kinds = {role: family.base for role, family in FAMILIES.items() if role != "expansion"}
    _check_kinds(settings, algorithm=Algorithm, **kinds)
    check_fields(settings, **NUMBERS)
    check_linear(settings.structure, settings.components)
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


def differing(one: Settings, other: Settings, free: Collection[str]) -> str:
    """In which settings two learners differ, but for those in which they may; empty: in none. Parts of one's
    own that are no dataclasses are the same only if they are one object."""
    names = [field.name for field in fields(Settings) if field.name not in free]
    told = [_difference(name, getattr(one, name), getattr(other, name)) for name in names]
    return ", ".join(difference for differences in told for difference in differences)


def _difference(name: str, one: Any, other: Any) -> list[str]:
    """What differs in a setting: of parts of one class, the fields that do; empty: nothing."""
    if one == other:
        return []
    inside = fields(one) if is_dataclass(one) and type(one) is type(other) else ()
    pairs = [(f"{name}.{f.name}", getattr(one, f.name), getattr(other, f.name)) for f in inside]
    told = [difference for pair in pairs for difference in _difference(*pair)]
    return told or [f"{name}: {one!r} and {other!r}"]


def check_device(device: str) -> None:
    """Raises an error if nothing can be computed there."""
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        message = str(error).splitlines()[0]
        raise SettingError(f"device={device!r} cannot be used here: {message}") from error
