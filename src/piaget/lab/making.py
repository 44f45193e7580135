"""Streams and learners of a configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, overload

import torch

from piaget.data.encoding import Encoding
from piaget.data.tasks import Stream, Task
from piaget.errors import SettingError, type_of
from piaget.knowledge.checks import check_task
from piaget.knowledge.state import State
from piaget.lab.configuration import Configuration, is_prior
from piaget.lab.parts import NOTHING, PARTS, Trusted, as_flag, field_names, is_reference, make_part
from piaget.learner import Learner
from piaget.method.choices import METHOD
from piaget.method.registry import FAMILIES
from piaget.streams import from_table, stream

DataDir = str | os.PathLike[str] | None


def make(
    configuration: Configuration, seeds: Sequence[int], data_dir: DataDir, trusted: Trusted = NOTHING
) -> tuple[list[Learner], list[Stream]]:
    """The learners and streams of a cohort; raises an error if a task could not be learned."""
    streams = make_streams(configuration, seeds, data_dir, trusted)
    return learners_for(streams, configuration, seeds, trusted), streams


def learners_for(
    streams: Sequence[Stream], configuration: Configuration, seeds: Sequence[int], trusted: Trusted = NOTHING
) -> list[Learner]:
    """The learners of streams, one each; raises an error if a task could not be learned."""
    learners = make_learners(configuration, seeds, len(streams[0]), trusted)
    initial = learners[0].settings.initial_tasks
    if initial > len(streams[0]):
        raise SettingError(
            f"initial_tasks={initial}, but the stream has {len(streams[0])} tasks; expected no more"
        )
    _check_stream(learners[0], streams[0])
    return learners


def _check_stream(learner: Learner, tasks: Stream) -> None:
    """Raises an error if a task could not be learned, before any of them is. The learner is new."""
    settings = learner.settings
    proposes = settings.algorithm.expansion.proposes
    state = State(torch.Generator(), components=learner.state.components)
    for i in range(len(tasks)):
        check_task(settings, state, tasks[i], proposes and i >= settings.initial_tasks)


# --- streams ------------------------------------------------------------------------------------------


def make_streams(
    configuration: Configuration, seeds: Sequence[int], data_dir: DataDir, trusted: Trusted = NOTHING
) -> list[Stream]:
    """The stream of each seed."""
    return [make_stream(configuration, seed, data_dir, trusted) for seed in seeds]


def make_stream(
    configuration: Configuration,
    seed: int,
    data_dir: DataDir,
    trusted: Trusted = NOTHING,
    keep: bool = True,
    encoding: Encoding | None = None,
) -> Stream:
    """The stream of a run: the paper's by name, one's own by reference, or that of a table. keep: a prior's
    has groups that lack a class or rows, too. encoding: how a table's columns were read before."""
    if configuration["table"] is not None:
        deep = not is_prior(configuration)
        settings: dict[str, Any] = {"stratified": deep, "seed": seed}  # deep methods: as in version 0.1
        if encoding is not None:
            settings |= {"encoding": encoding, "categorical": (), "ignore": ()}
        unusable = "keep" if keep and not deep else "skip"
        return from_table(**{"on_unusable": unusable} | configuration["table"] | settings)
    name, options = configuration["stream"], configuration["options"]
    if is_reference(name):
        return _call(name, seed, options, trusted)
    return stream(name, seed, data_dir, **options)


def takes_option(reference: str, option: str, trusted: Trusted) -> bool:
    """Does a function that makes a stream take an option?"""
    _, *parameters = signature(_function(reference, trusted)).parameters.values()
    return any(p.name == option or p.kind == p.VAR_KEYWORD for p in parameters)


def _function(reference: str, trusted: Trusted) -> Callable[..., Any]:
    function = trusted("stream", reference)
    if not callable(function) or not signature(function).parameters:
        kind = type_of(function)
        raise SettingError(f"stream {reference}: it is {kind}; expected a function (seed, **options)")
    return function


def _call(reference: str, seed: int, options: dict[str, Any], trusted: Trusted) -> Stream:
    """A stream from a function (seed, **options) of one's own."""
    function = _function(reference, trusted)
    for option in options:
        if not takes_option(reference, option, trusted):
            known = ", ".join(list(signature(function).parameters)[1:]) or "none"
            raise SettingError(f"stream {reference} has no option {option!r}; its options: {known}")
    tasks = function(seed, **options)
    listed = hasattr(tasks, "__getitem__") and hasattr(tasks, "__len__") and not isinstance(tasks, Mapping)
    if not listed or not len(tasks):
        kind = f"{type_of(tasks)} without tasks" if listed else type_of(tasks)
        raise SettingError(f"stream {reference}: it made {kind}; expected a list of tasks, or the like")
    return NamedStream(tasks, reference)


@dataclass(frozen=True)
class NamedStream(Sequence[Task]):
    """Tasks of a stream of one's own. Those that say of no stream that they are its own, are this one's."""

    tasks: Stream
    reference: str

    def __len__(self) -> int:
        return len(self.tasks)

    @overload
    def __getitem__(self, index: int) -> Task: ...

    @overload
    def __getitem__(self, index: slice) -> list[Task]: ...

    def __getitem__(self, index: int | slice) -> Task | list[Task]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        task = self.tasks[index]
        if not isinstance(task, Task):
            raise SettingError(f"stream {self.reference}: {type_of(task)} is in it; expected piaget.Task")
        return task if task.stream else replace(task, stream=re.split(r"[:.]", self.reference)[-1])


# --- learners -----------------------------------------------------------------------------------------


def make_learner(configuration: Configuration, seed: int, tasks: int, trusted: Trusted = NOTHING) -> Learner:
    """One learner. `tasks`: how many there will be; with fewer than four, all are initial."""
    return make_learners(configuration, [seed], tasks, trusted)[0]


def make_learners(
    configuration: Configuration, seeds: Sequence[int], tasks: int, trusted: Trusted = NOTHING
) -> list[Learner]:
    """Learners that differ in their seeds only: parts of one's own are the same objects in all of them."""
    chosen = make_parts(configuration, trusted)
    if "components_from" not in chosen:
        chosen = {"initial_tasks": min(4, tasks)} | chosen
    return [Learner(**chosen, seed=seed) for seed in seeds]


def make_parts(configuration: Configuration, trusted: Trusted) -> dict[str, Any]:
    """All that is chosen for a learner; parts of one's own, and those whose fields are set, as objects."""
    chosen = {name: configuration[name] for name in (*METHOD, "epochs")} | configuration["settings"]
    plain = {name: value for name, value in chosen.items() if "." not in name and value is not None}
    for role in PARTS:
        values = {
            name.partition(".")[2]: value for name, value in chosen.items() if name.startswith(f"{role}.")
        }
        name: Any = plain.get(role)
        if is_reference(name):
            plain[role] = make_part(role, trusted(role, name), values, as_flag(role, name))
        elif values:
            name = name or _usual(role, configuration)
            plain[role] = make_part(role, _papers(role, name), values, f"{role} {name!r}")
    return plain


def has_field(role: str, name: str | None, field: str, trusted: Trusted) -> bool:
    """Whether a method's part has such a field. Of parts that it does not name: yes, if it may be so."""
    if name is None or role not in FAMILIES:
        return True
    part = trusted(role, name) if is_reference(name) else FAMILIES[role].parts.get(name)
    return field in field_names(part)


def _usual(role: str, configuration: Configuration) -> str:
    """Which part it is that fields are set of, if nothing else is said."""
    if role == "components":
        return "linear" if configuration["structure"] == "linear" else "dense"
    usual = FAMILIES[role].usual if role in FAMILIES else None
    if usual is not None:
        return usual
    raise SettingError(
        f"fields of {role} are set, but not which one it is: give --{role.replace('_', '-')}, too"
    )


def _papers(role: str, name: str) -> Any:
    parts = FAMILIES[role].parts if role in FAMILIES else {}
    if name not in parts:
        known = f"expected {', '.join(parts)}" if parts else "only a part of one's own has fields"
        raise SettingError(f"{role} {name!r} has no fields that can be set; {known}")
    return parts[name]
