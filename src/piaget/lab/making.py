"""Streams and learners of a configuration."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from typing import Any

import torch

from piaget.data.tasks import Stream
from piaget.errors import SettingError
from piaget.knowledge.checks import check_task
from piaget.knowledge.state import State
from piaget.lab.configuration import Configuration
from piaget.lab.defaults import SIZES
from piaget.learner import Learner
from piaget.method.adaptation import named_adaptation
from piaget.method.components import named_components
from piaget.method.expansion import ComponentDropout
from piaget.method.schedule import Staged
from piaget.method.settings import Algorithm, named_algorithm
from piaget.streams import from_table, stream


def make_stream(configuration: Configuration, seed: int, data_dir: str | os.PathLike[str] | None) -> Stream:
    if configuration["table"] is not None:
        return from_table(**configuration["table"], seed=seed)
    return stream(configuration["stream"], seed, data_dir, **configuration["options"])


def make_learner(configuration: Configuration, seed: int, tasks: int) -> Learner:
    """`tasks`: how many there will be; with fewer than four, all are initial."""
    structure, epochs = configuration["structure"], configuration["epochs"]
    given = {"initial_tasks": min(4, tasks)} | configuration["settings"]
    adaptation = named_adaptation(configuration["adaptation"])
    adaptation = _changed(adaptation, given, {"replay_size": "size", "ewc_strength": "strength"})
    algorithm = _algorithm(configuration["algorithm"], epochs, given)
    components = named_components(given.pop("components", "linear" if structure == "linear" else "dense"))
    components = _changed(components, given, {size: size for size in SIZES})
    return Learner(
        structure, adaptation, algorithm, components=components, epochs=epochs, seed=seed, **given
    )  # fmt: skip


def make(
    configuration: Configuration, seeds: list[int], data_dir: str | os.PathLike[str] | None
) -> tuple[list[Learner], list[Stream]]:
    """The learners and streams of a cohort; raises an error if a task could not be learned."""
    streams = [make_stream(configuration, seed, data_dir) for seed in seeds]
    learners = [make_learner(configuration, seed, len(streams[0])) for seed in seeds]
    initial = learners[0].settings.initial_tasks
    if initial > len(streams[0]):
        raise SettingError(
            f"initial_tasks={initial}, but the stream has {len(streams[0])} tasks; expected no more"
        )
    _check_stream(learners[0], streams[0])
    return learners, streams


def _check_stream(learner: Learner, tasks: Stream) -> None:
    """Raises an error if a task could not be learned, before any of them is. The learner is new."""
    settings = learner.settings
    proposes = settings.algorithm.expansion.proposes
    for i in range(len(tasks)):
        check_task(settings, State(torch.Generator()), tasks[i], proposes and i >= settings.initial_tasks)


def _changed(part: Any, given: dict[str, Any], names: dict[str, str]) -> Any:
    """A part with the values that are given for it, by its fields' names. They are taken out of `given`."""
    changes = {field: given.pop(name) for name, field in names.items() if name in given}
    unknown = [field for field in changes if field not in {f.name for f in fields(part)}]
    if unknown:
        raise SettingError(f"{unknown[0]} is no setting of {type(part).__name__}")
    return replace(part, **changes) if changes else part


def _algorithm(name: str, epochs: int, given: dict[str, Any]) -> Algorithm:
    """By name, with adaptation in every so-manieth epoch, or another threshold."""
    made = named_algorithm(name, epochs)
    every, threshold = given.pop("adapt_every", None), given.pop("threshold", None)
    if every is not None:
        if not isinstance(made.schedule, Staged):
            raise SettingError(
                f"adapt_every is no setting of the algorithm {name!r}: it adapts in every epoch"
            )
        if every < 2 or epochs % every:
            allowed = ", ".join(str(n) for n in range(2, epochs + 1) if epochs % n == 0)
            raise SettingError(f"adapt_every={every} with {epochs} epochs; expected one of {allowed}")
        schedule = Staged(struct_updates=epochs - epochs // every, adapt_freq=every - 1, comp_updates=1)
        made = replace(made, schedule=schedule)
    if threshold is not None:
        if not isinstance(made.expansion, ComponentDropout):
            raise SettingError(f"threshold is no setting of the algorithm {name!r}: it does not expand")
        made = replace(made, expansion=ComponentDropout(threshold))
    return made
