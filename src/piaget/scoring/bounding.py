"""Which component can be done without: by how much the loss of each known task would rise."""

from __future__ import annotations

import math
from dataclasses import replace

from piaget.data.tasks import Task
from piaget.errors import NotFinite, SettingError
from piaget.knowledge.lifecycle import total_usage, usage_of
from piaget.knowledge.reducing import reduce, reduced
from piaget.knowledge.state import State
from piaget.method.adaptation import stored_samples
from piaget.method.reduction import Change
from piaget.method.settings import Settings
from piaget.scoring.scores import Encoded, TaskNetwork


class Guard:
    """The tasks that are known when one has just been learned, with samples, and losses before any change.

    Past tasks are guarded by their stored samples, and the new one by its validation data, or else by its
    training data.
    """

    def __init__(self, settings: Settings, state: State, task: Task) -> None:
        self.settings, self.state = settings, state
        model, records = settings.model, list(state.records.values())
        self.samples: dict[str, Encoded] = {}
        for stored in stored_samples(state.memory):
            record, h = records[stored.task], stored.h
            if settings.stores_inputs:
                h = model.encode(state.params(record, model).encoder, h)
            self.samples[record.name] = Encoded(h, stored.y)
        new = TaskNetwork(settings, state, state.records[task.name])
        self.samples[task.name] = new.encoded(task.validation or task.train)
        self.before = {name: self._loss(state, name) for name in self.samples}

    def _loss(self, state: State, name: str) -> float:
        network = TaskNetwork(self.settings, state, state.records[name]).uncalibrated
        return network.scores(self.samples[name])["loss"]

    def rise(self, change: Change) -> float:
        """The largest rise since before any change of the loss of a task that it touches. Infinite, if one is
        touched of which there are no samples, or that would have no component left, or no finite outputs."""
        touched = {name: record.k for name, record in self.state.records.items() if record.k > change.first}
        if not touched.keys() <= self.samples.keys() or (change.into is None and 1 in touched.values()):
            return math.inf
        trial = reduced(self.settings, self.state, change)
        try:
            rises = [self._loss(trial, name) - self.before[name] for name in touched]
        except NotFinite:
            return math.inf
        return max(rises, default=0.0)

    def least_harm(self) -> tuple[float, Change] | None:
        """The proposal that makes losses rise least, and by how much; None: there is none."""
        rule, state = self.settings.reduction, self.state
        proposals = rule.proposals(state.components, total_usage(state))
        for component, into, _ in proposals:
            if not 0 <= component < state.k or (into is not None and not 0 <= into < component):
                raise SettingError(
                    f"{type(rule).__name__} proposes component={component}, into={into} of {state.k} "
                    "components; expected one of them, and one before it, or None"
                )
        return min(
            ((self.rise(change), change) for change in proposals), key=lambda found: found[0], default=None
        )


def reduce_all(settings: Settings, state: State, task: Task) -> list[tuple[float, Change]]:
    """Carries out what can be done within the tolerance, in order. The task has just been learned."""
    done: list[tuple[float, Change]] = []
    rule, record = settings.reduction, state.records[task.name]
    state.records[task.name] = replace(record, usage=usage_of(settings, state, task))
    guard = Guard(settings, state, task)
    least = settings.initial_components if rule.least is None else rule.least
    while state.k > least:
        found = guard.least_harm()
        if found is None or found[0] > rule.tolerance:
            break
        reduce(settings, state, found[1])
        done.append(found)
    state.records[task.name] = replace(state.records[task.name], usage=None)  # until the task is finished
    return done
