"""The settings of a learner as flat names: for flags, files and run.json. No heavy imports."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from piaget.errors import SettingError


@dataclass(frozen=True)
class Setting:
    """One number or word. `group`: under which heading it is explained."""

    name: str
    kind: Callable[[Any], Any]
    values: str  # as `--help` shows them
    group: str
    help: str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")


def whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("expected a whole number, 1 or more")
    return value


def whole_or_none(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("expected a whole number, 0 or more")
    return value


def number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("expected a number")
    return float(value)


def batch(value: Any) -> int | str:
    return "all" if value == "all" else whole(value)


def one_of(*words: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in words:
            raise ValueError(f"expected {', '.join(words[:-1])} or {words[-1]}")
        return str(value)

    return check


MODEL, TRAINING, METHOD, MACHINE = "the model", "training", "the method's numbers", "where it is computed"
SETTINGS = {
    setting.name: setting
    for setting in (
        Setting(
            "components",
            one_of("dense", "conv", "linear"),
            "dense|conv|linear",
            MODEL,
            "the kind of components",
        ),
        Setting("initial_components", whole, "N", MODEL, "how many there are at first (4)"),
        Setting("depth", whole, "N", MODEL, "how many of them are applied one after the other (as many)"),
        Setting("width", whole, "N", MODEL, "units of dense components (64; cub, combined: 256)"),
        Setting("channels", whole, "N", MODEL, "channels of convolutional ones (50; omniglot: 53)"),
        Setting(
            "padding", whole_or_none, "N", MODEL, "around images, for convolutional ones (1; omniglot: 0)"
        ),
        Setting("dropout", number, "X", MODEL, "share of units that are dropped in training (0.5)"),
        Setting(
            "encoder",
            one_of("learned", "fixed", "shared", "none"),
            "learned|fixed|shared|none",
            MODEL,
            "a task's input map (learned; mnist, fashion, digits: fixed; pixel-mnist: shared)",
        ),
        Setting(
            "decoder",
            one_of("learned", "shared"),
            "learned|shared",
            MODEL,
            "a task's output map (learned; pixel-mnist: shared)",
        ),
        Setting("batch_size", batch, "N|all", TRAINING, "samples a step, or all (32; linear: all)"),
        Setting("learning_rate", number, "X", TRAINING, "of Adam (0.001)"),
        Setting("initial_tasks", whole, "N", TRAINING, "so many tasks are initialized together (4)"),
        Setting("initial_epochs", whole, "N", TRAINING, "for so many epochs (as on any task)"),
        Setting(
            "adapt_every",
            whole,
            "N",
            METHOD,
            "components adapt in every N-th epoch; a divisor of the epochs (only in the last)",
        ),
        Setting("replay_size", whole, "N", METHOD, "er: stored samples a task (a batch; objects: 5)"),
        Setting("ewc_strength", number, "X", METHOD, "ewc: lambda, how strongly components are held (0.001)"),
        Setting("threshold", number, "X", METHOD, "dynamic: relative gain that keeps a component (0.05)"),
        Setting(
            "compile",
            one_of("auto", "always", "never"),
            "auto|always|never",
            MACHINE,
            "steps as machine code (auto: where there is enough work for it to pay)",
        ),
        Setting("device", str, "NAME", MACHINE, "cpu, cuda, ... (cpu)"),
        Setting(
            "dtype", one_of("float32", "float64"), "float32|float64", MACHINE, "of all numbers (float32)"
        ),
    )
}


def check_settings(given: dict[str, Any]) -> dict[str, Any]:
    """The settings with proper values; a wrong name or value is an error that says what is allowed."""
    checked = {}
    for name, value in given.items():
        if name not in SETTINGS:
            near = difflib.get_close_matches(name, SETTINGS, 1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise SettingError(f"setting {name!r} is not known{hint}; known: {', '.join(SETTINGS)}")
        try:
            checked[name] = SETTINGS[name].kind(value)
        except ValueError as error:
            raise SettingError(f"{name}={value!r}: {error}") from None
    return checked


def parse(text: str) -> Any:
    """A value from the command line: a number, True, ... or else a text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
