"""One component less: all that has a place for each component, without one of them."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from piaget.knowledge.state import State, TaskRecord
from piaget.method.combining import Structure
from piaget.method.parameters import Moments, Role
from piaget.method.reduction import Change
from piaget.method.settings import Settings
from piaget.method.trees import map_tree, without_place


def reduced(settings: Settings, state: State, change: Change) -> State:
    """The state after a change; the one that is given stays as it is. (It is for trying.)"""
    trial = state.snapshot()
    reduce(settings, trial, change)
    return trial


def reduce(settings: Settings, state: State, change: Change) -> None:
    """Carries a change out. Records are replaced, not written into: snapshots share them."""
    structure, component = settings.structure, change.component

    def fewer(stack: Tensor) -> Tensor:
        """Components, their moments or counts of updates: (k, ...) -> (k - 1, ...)"""
        if change.into is not None:
            stack = stack.clone()
            stack[change.into] = torch.lerp(stack[change.into], stack[component], change.share)
        return without_place(stack, 0, component)

    state.components, state.moments = map_tree(fewer, (state.components, state.moments))
    state.memory = settings.adaptation.reduced(state.memory, change, state.components)
    for name, record in list(state.records.items()):
        if component < record.k:
            state.records[name] = _without(structure, record, change)
            progress = state.progress
            if progress is not None and name in progress.moments:
                progress.moments[name] = _own_moments(structure, progress.moments[name], component)
            if name in state.past_moments:
                own = _own_moments(structure, state.past_moments[name], component)
                state.past_moments = state.past_moments | {name: own}


def _without(structure: Structure, record: TaskRecord, change: Change) -> TaskRecord:
    """A task that might use the component."""
    own, usage = record.params.structure, record.usage
    assert usage is not None
    if change.into is None:
        own = structure.removed(own, change.component)
    else:
        own = structure.merged(own, change.component, change.into, usage)
    params = record.params._replace(structure=own)
    return replace(record, k=record.k - 1, params=params, usage=_usage(structure, usage, change))


def _usage(structure: Structure, usage: Tensor, change: Change) -> Tensor:
    """How a task weighs the components that are left, (k - 1, depths)."""
    if change.into is not None:
        usage = usage.clone()
        usage[change.into] += usage[change.component]
    left = without_place(usage, 0, change.component)
    if not structure.shares:
        return left
    whole = left.sum(0)
    return torch.where(whole > 0, left / whole.clamp(min=1e-12), 1 / len(left))


def _own_moments(structure: Structure, moments: dict[Role, Moments], component: int) -> dict[Role, Moments]:
    kept = moments["structure"]
    slots = {slot: structure.removed(tensors, component) for slot, tensors in kept.slots.items()}
    return moments | {"structure": Moments(slots, kept.updates)}
