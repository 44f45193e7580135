"""Every setting of a learner, listed once: its name, its values, and what it is for. No heavy imports.

`Learner(...)`, the flags of the command line, its help, TOML files and run.json all take their settings from
`Choices`. What is not chosen is the paper's.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, get_args, get_type_hints

from piaget.data.plain import plain, shown
from piaget.errors import SettingError
from piaget.method.values import (
    BATCH,
    COUNT,
    EPOCHS,
    NUMBER,
    PLACE,
    SEED,
    TEXT,
    UP_TO_ONE,
    WHOLE,
    Values,
    one_of,
)

if TYPE_CHECKING:
    from piaget.method.acceptance import Acceptance
    from piaget.method.components import Components
    from piaget.method.encoders import Decoder, Encoder
    from piaget.method.expansion import Expansion
    from piaget.method.inference import Inference
    from piaget.method.optimizer import Optimizer
    from piaget.method.rates import RateSchedule
    from piaget.method.reduction import Reduction
    from piaget.method.schedule import Schedule
    from piaget.method.starting import CandidateStart, Start
    from piaget.method.stopping import KeptEpoch, StopRule

METHOD = ("structure", "adaptation", "algorithm")
COMBINING = ("linear", "soft-ordering", "soft-gating", "soft-ordering-scaled", "soft-gating-scaled")
SINGLE = ("monolithic", "alone")  # networks that combine no components
STRUCTURES = (*COMBINING, *SINGLE)
REPLAYING = ("er", "er-diluted", "der++")  # stored samples join the batches
STORING = (*REPLAYING, "a-gem")
ADAPTATIONS = (*STORING, "ewc", "ewc-merged", "nft", "fm")
EXPANDING = ("dynamic", "recommended")  # the algorithms that try a new component with every task
STAGED = (*EXPANDING, "compositional")  # those that assimilate first, and adapt then
ALGORITHMS = (*STAGED, "joint", "no-components", "no-components-frozen", "alone")
FREEZING = ("recommended", "alone")  # those whose components stay as they are, if no adaptation is chosen
SCALING = ("recommended",)  # those whose tasks have a scale and a shift, if no structure is chosen
CompileMode = Literal["auto", "always", "never"]


MODEL, TRAINING, NUMBERS, MACHINE = "the model", "training", "the method's numbers", "where it is computed"


@dataclass(frozen=True)
class About:
    """What is said of a setting where it is declared."""

    values: Values
    group: str  # the heading under which it is explained
    help: str
    part: bool = False  # an object of one's own may be given instead of a name


class Choices(TypedDict, total=False):
    """The settings of a learner beside its structure, adaptation and algorithm."""

    components: Annotated[
        str | Components, About(one_of("dense", "conv", "linear"), MODEL, "the kind of components", part=True)
    ]
    components_from: Annotated[
        str,
        About(PLACE, MODEL, "a library of components to begin with (docs/components-library.md)"),
    ]
    initial_components: Annotated[int, About(WHOLE, MODEL, "how many there are at first (4)")]
    depth: Annotated[
        int, About(WHOLE, MODEL, "how many of them are applied one after the other (as many as at first)")
    ]
    width: Annotated[int, About(WHOLE, MODEL, "units of dense components (64; cub, combined: 256)")]
    channels: Annotated[int, About(WHOLE, MODEL, "channels of convolutional ones (50; omniglot: 53)")]
    padding: Annotated[int, About(COUNT, MODEL, "around images, for convolutional ones (1; omniglot: 0)")]
    dropout: Annotated[float, About(NUMBER, MODEL, "share of units that are dropped in training (0.5)")]
    encoder: Annotated[
        str | Encoder,
        About(
            one_of("learned", "fixed", "shared", "none"),
            MODEL,
            "a task's input map (learned; mnist, fashion, digits: fixed; pixel-mnist: shared)",
            part=True,
        ),
    ]
    decoder: Annotated[
        str | Decoder,
        About(
            one_of("learned", "shared"),
            MODEL,
            "a task's output map (learned; pixel-mnist: shared)",
            part=True,
        ),
    ]
    epochs: Annotated[int, About(EPOCHS, TRAINING, "epochs a task (100; linear: 10,000)")]
    batch_size: Annotated[
        int | Literal["all"], About(BATCH, TRAINING, "samples a step, or all (32; linear: all)")
    ]
    optimizer: Annotated[
        str | Optimizer, About(one_of("adam", "sgd"), TRAINING, "how parameters move (adam)", part=True)
    ]
    learning_rate: Annotated[float, About(NUMBER, TRAINING, "of the optimizer (0.001)")]
    weight_decay: Annotated[float, About(NUMBER, TRAINING, "decoupled, of the optimizer (0)")]
    rate_schedule: Annotated[
        str | RateSchedule,
        About(
            one_of("constant", "cosine", "adaptation-cosine"),
            TRAINING,
            "how the rate changes within a stage; adaptation-cosine: by step, where components adapt "
            "(constant)",
            part=True,
        ),
    ]
    averaging: Annotated[
        float,
        About(
            UP_TO_ONE,
            TRAINING,
            "where components adapt, they become their average over this share of the last steps (0)",
        ),
    ]
    stop: Annotated[
        str | StopRule,
        About(
            one_of("never", "patience"),
            TRAINING,
            "when a stage ends early, by validation scores (never)",
            part=True,
        ),
    ]
    patience: Annotated[
        int, About(WHOLE, TRAINING, "epochs without a better validation score that end a stage")
    ]
    kept_epoch: Annotated[
        str | KeptEpoch,
        About(
            one_of("last", "best"),
            TRAINING,
            "which epoch of a stage on what is a task's own is kept, by validation loss (last)",
            part=True,
        ),
    ]
    initial_tasks: Annotated[int, About(WHOLE, TRAINING, "how many tasks are initialized together (4)")]
    initial_epochs: Annotated[int, About(EPOCHS, TRAINING, "for how many epochs (as on any task)")]
    schedule: Annotated[
        str | Schedule,
        About(one_of("staged", "joint"), NUMBERS, "which stage each epoch is (the algorithm's)", part=True),
    ]
    expansion: Annotated[
        str | Expansion,
        About(
            one_of("none", "dropout", "mcnemar", "second-attempt"),
            NUMBERS,
            "how components are added: by their gain, or by a test on errors, in each task's epochs or in a "
            "second attempt at it (the algorithm's)",
            part=True,
        ),
    ]
    start: Annotated[
        str | Start,
        About(
            one_of("drawn", "similar"),
            NUMBERS,
            "a new task's structure begins as it is drawn, or near the most similar past task's (drawn)",
            part=True,
        ),
    ]
    candidate_start: Annotated[
        str | CandidateStart,
        About(
            one_of("drawn", "most-used"),
            NUMBERS,
            "a new component begins as it is drawn, or near the most used one (drawn)",
            part=True,
        ),
    ]
    reduction: Annotated[
        str | Reduction,
        About(
            one_of("none", "prune-and-merge"),
            NUMBERS,
            "how components are removed or merged when a task has been learned (none)",
            part=True,
        ),
    ]
    adapt_every: Annotated[
        int,
        About(
            WHOLE, NUMBERS, "components adapt in every N-th epoch; a divisor of the epochs (only in the last)"
        ),
    ]
    replay_size: Annotated[int, About(WHOLE, NUMBERS, "er: stored samples a task (a batch; objects: 5)")]
    replay_share: Annotated[
        float,
        About(
            NUMBER,
            NUMBERS,
            "er: share of each batch that is of stored samples, past tasks alike (all are mixed in, once)",
        ),
    ]
    ewc_strength: Annotated[float, About(NUMBER, NUMBERS, "ewc: how strongly components are held (0.001)")]
    acceptance: Annotated[
        str | Acceptance,
        About(
            one_of("all", "validated"),
            NUMBERS,
            "how much of an adaptation is taken over; validated: what does best on validation data "
            "and stored samples (all)",
            part=True,
        ),
    ]
    held_out: Annotated[
        float,
        About(NUMBER, NUMBERS, "validated: share of stored samples that judge, and are not replayed (0.25)"),
    ]
    threshold: Annotated[
        float, About(NUMBER, NUMBERS, "dynamic: relative gain that keeps a component (0.05)")
    ]
    calibration: Annotated[
        str,
        About(
            one_of("none", "temperature"),
            NUMBERS,
            "how sure a task's probabilities are; temperature: as validation data tells (none)",
        ),
    ]
    inference: Annotated[
        str | Inference,
        About(
            one_of("none", "inputs", "encoded", "features", "energy", "confidence"),
            NUMBERS,
            "what is noted of each task, so that inputs can be asked about without naming theirs (none)",
            part=True,
        ),
    ]
    compile: Annotated[
        CompileMode,
        About(
            one_of(*get_args(CompileMode)),
            MACHINE,
            "steps as machine code (auto: where there is enough work for it to pay)",
        ),
    ]
    device: Annotated[str, About(TEXT, MACHINE, "cpu, cuda, ... (cpu)")]
    dtype: Annotated[str, About(one_of("float32", "float64"), MACHINE, "of all numbers (float32)")]
    seed: Annotated[int, About(SEED, MACHINE, "of all that is drawn (0)")]


@dataclass(frozen=True)
class Setting:
    """One setting, by its name."""

    name: str
    about: About

    @property
    def flag(self) -> str:
        """As the command line has it."""
        return "--" + self.name.replace("_", "-")


def _declared() -> dict[str, Setting]:
    classes = "Acceptance CandidateStart Components Decoder Encoder Expansion KeptEpoch Optimizer Reduction "
    classes += "RateSchedule StopRule Schedule Start Inference"
    unknown: dict[str, Any] = dict.fromkeys(classes.split(), object)  # loaded only with PyTorch
    hints = get_type_hints(Choices, localns=unknown, include_extras=True)
    return {name: Setting(name, hint.__metadata__[0]) for name, hint in hints.items()}


SETTINGS = _declared()


def unknown_setting(name: str, known: Mapping[str, Any]) -> SettingError:
    """The error about a setting that does not exist, with the nearest name that does."""
    near = difflib.get_close_matches(name, known, 1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return SettingError(f"setting {name!r} is not known{hint}; known: {', '.join(known)}")


def check_settings(settings: Mapping[str, Any], own: str = "an object") -> dict[str, Any]:
    """The same settings, without those that are None; a wrong name or value is an error that says what is
    allowed. own: what a part of one's own is given as. It is checked when the parts are put together."""
    checked = {}
    for name, value in settings.items():
        if name not in SETTINGS:
            if name in METHOD:
                raise SettingError(f"{name} is chosen by itself, not among the settings (--{name})")
            raise unknown_setting(name, dict.fromkeys((*METHOD, *SETTINGS)))
        about, value = SETTINGS[name].about, plain(value)
        if value is None or (about.part and not isinstance(value, str)):
            checked[name] = value
            continue
        if not about.values.allows(value):
            objects = f", or {own}" if about.part else ""
            raise SettingError(f"{name}={shown(value)}: expected {about.values.expected}{objects}")
        checked[name] = value
    return {name: value for name, value in checked.items() if value is not None}


def parse(text: str) -> Any:
    """A value from the command line: a number, True, ... or else a text."""
    try:
        return ast.literal_eval(text)
    except (
        ValueError,
        TypeError,
        SyntaxError,
        MemoryError,
        RecursionError,
    ):  # also nested too deeply
        return text


# Settings that are numbers of a part: which part's, and which field.
NUMBERS_OF_PARTS = {
    "width": ("components", "width"),
    "channels": ("components", "channels"),
    "padding": ("components", "padding"),
    "dropout": ("components", "dropout"),
    "weight_decay": ("optimizer", "weight_decay"),
    "patience": ("stop", "epochs"),
    "replay_size": ("adaptation", "size"),
    "replay_share": ("adaptation", "share"),
    "ewc_strength": ("adaptation", "strength"),
    "held_out": ("acceptance", "held_out"),
    "threshold": ("expansion", "threshold"),
}


def upgraded_algorithm(algorithm: Any, adaptation: Any) -> Any:
    """An algorithm as plain data, as it is written now.

    In version 0.1 past tasks' own parameters never learned: that is called "no-components-frozen" now, where
    it makes a difference, which is with adaptations that store samples.
    """
    schedule = algorithm.get("schedule") if isinstance(algorithm, dict) else None
    if not isinstance(schedule, dict) or schedule.get("part") != "Joint" or "past" in schedule:
        return algorithm
    part = adaptation.get("part") if isinstance(adaptation, dict) else None
    alike = part in ("NaiveFineTuning", "KroneckerEWC", "Frozen")
    without = algorithm.get("name") == "no-components"
    name = {"name": "no-components-frozen"} if without and not alike else {}
    return algorithm | {"schedule": schedule | {"past": without and alike}} | name


def default_epochs(linear: bool) -> int:
    """The paper's epochs a task: linear models take one full-batch step an epoch."""
    return 10_000 if linear else 100


def structure_for(algorithm: object, usual: str = "soft-ordering") -> str:
    """What an algorithm has if no structure is chosen: the usual one of the stream, or the same with a scale
    and a shift."""
    scaled = f"{usual}-scaled"
    scales = isinstance(algorithm, str) and algorithm in SCALING
    return scaled if scales and scaled in COMBINING else usual


def adaptation_of(algorithm: object) -> str:
    """What an algorithm has if no adaptation is chosen: replay, or components that stay frozen."""
    return "fm" if isinstance(algorithm, str) and algorithm in FREEZING else "er"
