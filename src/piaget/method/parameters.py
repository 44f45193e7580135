"""The parameters of a network, by what they belong to. Each group is a flat dictionary of tensors."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from piaget.method.trees import Tensors

Role = Literal[
    "components",
    "candidate",  # the component on trial, while the others are frozen
    "encoder",  # the current task's ...
    "structure",
    "decoder",
    "shared encoder",  # of all tasks, where they share it
    "shared decoder",
    "past encoder",  # those of past tasks, where they go on learning: one after the other, (T, ...)
    "past decoder",
]
TASK_ROLES: tuple[Role, ...] = ("encoder", "structure", "decoder")
SHARED_ROLES: tuple[Role, ...] = ("shared encoder", "shared decoder")
PAST_ROLES: dict[Role, Role] = {"past encoder": "encoder", "past decoder": "decoder"}  # and what each was
STACKED_ROLES: tuple[Role, ...] = ("components", *PAST_ROLES)  # several of a kind, which count apart


class TaskParams(NamedTuple):
    """One task's own parameters. A part that the task does not have is empty."""

    encoder: Tensors
    structure: Tensors
    decoder: Tensors


class SharedParams(NamedTuple):
    """An encoder or a decoder that all tasks share. What they do not share is empty."""

    encoder: Tensors
    decoder: Tensors


class Params(NamedTuple):
    """All that one task's network is computed from. components: stacked, (k, ...)."""

    components: Tensors
    task: TaskParams
    shared: SharedParams

    @property
    def encoder(self) -> Tensors:
        """The encoder that the task uses: the shared one, if there is one."""
        return self.shared.encoder or self.task.encoder

    @property
    def decoder(self) -> Tensors:
        """The decoder that the task uses."""
        return self.shared.decoder or self.task.decoder


class Moments(NamedTuple):
    """What an optimizer keeps of one group of parameters.

    slots: for each name (Adam: mean, square), a tensor for each parameter.
    updates: how many there were: () or, where several are stacked (components), (k,).
    """

    slots: dict[str, Tensors]
    updates: Tensor


def new_moments(slots: tuple[str, ...], params: Tensors, components: int | None = None) -> Moments:
    """Before the first step: zeros."""
    device = next((p.device for p in params.values()), torch.device("cpu"))
    shape = () if components is None else (components,)
    zeros = {slot: {name: torch.zeros_like(p) for name, p in params.items()} for slot in slots}
    return Moments(zeros, torch.zeros(shape, dtype=torch.float64, device=device))


def task_moments(slots: tuple[str, ...], params: TaskParams) -> dict[Role, Moments]:
    """Those of a task's own parameters."""
    return {role: new_moments(slots, group) for role, group in zip(TASK_ROLES, params, strict=True)}


def shared_moments(slots: tuple[str, ...], params: SharedParams) -> dict[Role, Moments]:
    """Those of what all tasks share."""
    return {role: new_moments(slots, group) for role, group in zip(SHARED_ROLES, params, strict=True)}
