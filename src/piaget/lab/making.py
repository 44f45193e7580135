"""Streams and learners of a configuration."""

from __future__ import annotations

import os
from typing import Any

import torch

from piaget.data.tasks import Stream
from piaget.errors import SettingError
from piaget.knowledge.checks import check_task
from piaget.knowledge.state import State
from piaget.lab.configuration import Configuration
from piaget.learner import Learner
from piaget.streams import from_table, stream


def make_stream(configuration: Configuration, seed: int, data_dir: str | os.PathLike[str] | None) -> Stream:
    if configuration["table"] is not None:
        return from_table(**configuration["table"], seed=seed)
    return stream(configuration["stream"], seed, data_dir, **configuration["options"])


def make_learner(configuration: Configuration, seed: int, tasks: int) -> Learner:
    """`tasks`: how many there will be; with fewer than four, all are initial."""
    settings: Any = {"initial_tasks": min(4, tasks)} | configuration["settings"]
    method = (configuration[part] for part in ("structure", "adaptation", "algorithm"))
    return Learner(*method, epochs=configuration["epochs"], seed=seed, **settings)


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
