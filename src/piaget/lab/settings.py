"""The settings of a learner as flat names: for flags, files and run.json. No heavy imports."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from piaget.errors import SettingError


@dataclass(frozen=True)
class Kind:
    """A kind of values: as `--help` shows them, which are right, and what to say otherwise."""

    shown: str
    right: Callable[[Any], bool]
    expected: str


@dataclass(frozen=True)
class Setting:
    """One number or word. `group`: under which heading it is explained."""

    name: str
    kind: Kind
    group: str
    help: str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")


def _whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def one_of(*words: str) -> Kind:
    return Kind("|".join(words), lambda value: value in words, f"{', '.join(words[:-1])} or {words[-1]}")


WHOLE = Kind("N", lambda value: _whole(value, 1), "a whole number, 1 or more")
COUNT = Kind("N", lambda value: _whole(value, 0), "a whole number, 0 or more")
NUMBER = Kind("X", lambda v: isinstance(v, int | float) and not isinstance(v, bool), "a number")
BATCH = Kind("N|all", lambda v: v == "all" or _whole(v, 1), "a whole number, 1 or more, or all")
TEXT = Kind("NAME", lambda value: isinstance(value, str), "a name")

MODEL, TRAINING, METHOD, MACHINE = "the model", "training", "the method's numbers", "where it is computed"
SETTINGS = {
    setting.name: setting
    for setting in (
        Setting(
            "components",
            one_of("dense", "conv", "linear"),
            MODEL,
            "the kind of components",
        ),
        Setting("initial_components", WHOLE, MODEL, "how many there are at first (4)"),
        Setting("depth", WHOLE, MODEL, "how many of them are applied one after the other (as many)"),
        Setting("width", WHOLE, MODEL, "units of dense components (64; cub, combined: 256)"),
        Setting("channels", WHOLE, MODEL, "channels of convolutional ones (50; omniglot: 53)"),
        Setting("padding", COUNT, MODEL, "around images, for convolutional ones (1; omniglot: 0)"),
        Setting("dropout", NUMBER, MODEL, "share of units that are dropped in training (0.5)"),
        Setting(
            "encoder",
            one_of("learned", "fixed", "shared", "none"),
            MODEL,
            "a task's input map (learned; mnist, fashion, digits: fixed; pixel-mnist: shared)",
        ),
        Setting(
            "decoder",
            one_of("learned", "shared"),
            MODEL,
            "a task's output map (learned; pixel-mnist: shared)",
        ),
        Setting("batch_size", BATCH, TRAINING, "samples a step, or all (32; linear: all)"),
        Setting("learning_rate", NUMBER, TRAINING, "of Adam (0.001)"),
        Setting("initial_tasks", WHOLE, TRAINING, "so many tasks are initialized together (4)"),
        Setting("initial_epochs", WHOLE, TRAINING, "for so many epochs (as on any task)"),
        Setting(
            "adapt_every",
            WHOLE,
            METHOD,
            "components adapt in every N-th epoch; a divisor of the epochs (only in the last)",
        ),
        Setting("replay_size", WHOLE, METHOD, "er: stored samples a task (a batch; objects: 5)"),
        Setting("ewc_strength", NUMBER, METHOD, "ewc: lambda, how strongly components are held (0.001)"),
        Setting("threshold", NUMBER, METHOD, "dynamic: relative gain that keeps a component (0.05)"),
        Setting(
            "compile",
            one_of("auto", "always", "never"),
            MACHINE,
            "steps as machine code (auto: where there is enough work for it to pay)",
        ),
        Setting("device", TEXT, MACHINE, "cpu, cuda, ... (cpu)"),
        Setting("dtype", one_of("float32", "float64"), MACHINE, "of all numbers (float32)"),
    )
}


def check_settings(given: dict[str, Any]) -> dict[str, Any]:
    """The same settings; a wrong name or value is an error that says what is allowed."""
    for name, value in given.items():
        if name not in SETTINGS:
            near = difflib.get_close_matches(name, SETTINGS, 1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise SettingError(f"setting {name!r} is not known{hint}; known: {', '.join(SETTINGS)}")
        kind = SETTINGS[name].kind
        if not kind.right(value):
            raise SettingError(f"{name}={value!r}: expected {kind.expected}")
    return given


def parse(text: str) -> Any:
    """A value from the command line: a number, True, ... or else a text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
