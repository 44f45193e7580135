"""What components do: a learner with a task's structure changed, to see what changes with it.

A change is a function of a depth and the weights at that depth, (k,), (B, k) or, for linear combinations,
(k, outputs), that returns others. The learner itself stays as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from piaget.data.tasks import Split, Task
from piaget.knowledge.state import State
from piaget.method.components import Components
from piaget.method.settings import Settings
from piaget.method.structures import Frame, Structure
from piaget.method.trees import Tensors
from piaget.scoring.scores import Encoded, TaskNetwork

Change = Callable[[int, Tensor], Tensor]


class Learned(Protocol):
    """A learner, as far as it is looked at here."""

    settings: Settings
    state: State


L = TypeVar("L", bound=Learned)

SAMPLES = 200  # of a task, to measure what components do to features


@dataclass(frozen=True)
class Altered(Structure):
    """A structure whose weights are changed before components' outputs are combined."""

    inner: Structure
    change: Change

    @property
    def axes(self) -> dict[str, int]:  # type: ignore[override]
        return self.inner.axes

    @property
    def output_axes(self) -> dict[str, int]:  # type: ignore[override]
        return self.inner.output_axes

    def draw(self, generator: torch.Generator, frame: Frame) -> Tensors:
        return self.inner.draw(generator, frame)

    def prepare(self, params: Tensors, visible: Tensor) -> Tensors:
        return self.inner.prepare(params, visible)

    def weights(
        self, components: Components, params: Tensors, depth: int, h: Tensor, visible: Tensor
    ) -> Tensor:
        return self.change(depth, self.inner.weights(components, params, depth, h, visible))

    def mix(self, components: Components, outputs: Tensor, weights: Tensor) -> Tensor:
        return self.inner.mix(components, outputs, weights)

    def transform(self, params: Tensors, depth: int, mixture: Tensor) -> Tensor:
        return self.inner.transform(params, depth, mixture)


def altered(learner: L, change: Change) -> L:
    """A learner with the same knowledge, whose structures are changed. It is for looking only."""
    shown = copy.copy(learner)
    shown.settings = replace(learner.settings, structure=Altered(learner.settings.structure, change))
    return shown


def network(learner: Learned, task: Task) -> TaskNetwork:
    """A task's network, as the learner knows it now."""
    return TaskNetwork(learner.settings, learner.state, learner.state.records[task.name])


def at_intensity(structure: Structure, component: int, intensity: float, depth: int, known: int) -> Change:
    """The component's weight at one depth is `intensity`.

    Where weights sum to 1, the others share the rest as they did (if they had nothing, equally, among the
    `known` first ones, which the task may use); else, the component's own weight is multiplied by
    `intensity`.
    """

    def change(at: int, weights: Tensor) -> Tensor:
        if at != depth:
            return weights
        own = torch.zeros_like(weights).index_fill_(structure.component_axis, _index(component, weights), 1.0)
        if not structure.shares:
            return weights * (1 - own * (1 - intensity))
        others = weights * (1 - own)
        rest = others.sum(-1, keepdim=True)
        equal = (1 - own) * (torch.arange(own.shape[-1], device=own.device) < known) / max(known - 1, 1)
        shares = torch.where(rest > 0, others / rest.clamp(min=1e-12), equal)
        return own * intensity + shares * (1 - intensity)

    return change


def removed(structure: Structure, component: int) -> Change:
    """Without the component: its weight is 0 at all depths.

    Where weights sum to 1, the others have the rest in proportion. Where it was the only one, nothing is
    left: 0.
    """

    def change(at: int, weights: Tensor) -> Tensor:
        others = weights.index_fill(structure.component_axis, _index(component, weights), 0.0)
        if not structure.shares:
            return others
        rest = others.sum(-1, keepdim=True)
        return torch.where(rest > 0, others / rest.clamp(min=1e-12), 0.0)

    return change


def _index(component: int, weights: Tensor) -> Tensor:
    return torch.tensor([component], device=weights.device)


# --- measuring ----------------------------------------------------------------------------------------------


def sample(learner: Learned, task: Task, samples: int = SAMPLES) -> Encoded:
    """A task's test data (or what it has), encoded; so many samples at most, evenly spaced."""
    split = task.test or task.validation or task.train
    if len(split) > samples:
        chosen = torch.linspace(0, len(split) - 1, samples).long()
        split = Split(split.x[chosen], split.y[chosen])
    return network(learner, task).encoded(split)


def score(learner: Learned, task: Task, data: Encoded, change: Change | None = None) -> float:
    """The task's accuracy, or error, with its structure changed."""
    return network(learner if change is None else altered(learner, change), task).score(data)


def weights(learner: Learned, task: Task) -> Tensor:
    """How the task weighs components, (depths, k), as `Learner.structures` has it; 0 for later components."""
    usage = learner.state.records[task.name].usage  # (k when it was learned, depths)
    assert usage is not None
    usage = usage.T
    if len(usage) != learner.settings.depth:  # linear combinations with several outputs: one depth
        usage = usage.abs().mean(0, keepdim=True)
    return torch.nn.functional.pad(usage, (0, learner.state.k - usage.shape[1]))


class Flow:
    """Samples on their way through a task's network. What a change leaves as it is is not computed again."""

    def __init__(self, learner: Learned, task: Task, h: Tensor) -> None:
        self.settings, record = learner.settings, learner.state.records[task.name]
        self.params = learner.state.params(record, learner.settings.model)
        self.visible = record.visible(learner.state.k).to(h.device)
        self.prepared = self.settings.structure.prepare(self.params.task.structure, self.visible)
        self.outputs: list[Tensor] = []  # of all components at each depth, (B, k, *shape)
        self.weights: list[Tensor] = []  # at each depth
        self.entering = [h]  # what enters each depth, and what leaves the last one, (B, *shape)
        for depth in range(self.settings.depth):
            self.outputs.append(self._outputs(self.entering[depth]))
            self.weights.append(self._weights(depth, self.entering[depth]))
            self.entering.append(self._mixture(depth, self.outputs[depth], self.weights[depth]))

    def changed(self, change: Change) -> Tensor:
        """What leaves the last depth, (B, *shape), with other weights."""
        h = self.entering[0]
        for depth, (entering, outputs, weights) in enumerate(
            zip(self.entering[:-1], self.outputs, self.weights, strict=True)
        ):
            same = h is entering
            before = weights if same else self._weights(depth, h)
            after = change(depth, before)
            if same and torch.equal(after, before):
                h = self.entering[depth + 1]
            else:
                h = self._mixture(depth, outputs if same else self._outputs(h), after)
        return h

    def _outputs(self, h: Tensor) -> Tensor:
        return self.settings.components.apply(self.params.components, h)

    def _weights(self, depth: int, h: Tensor) -> Tensor:
        structure, components = self.settings.structure, self.settings.components
        return structure.weights(components, self.prepared, depth, h, self.visible)

    def _mixture(self, depth: int, outputs: Tensor, weights: Tensor) -> Tensor:
        structure, components = self.settings.structure, self.settings.components
        return structure.transform(self.prepared, depth, structure.mix(components, outputs, weights))


@torch.no_grad()
def scores_with(learner: Learned, task: Task, data: Encoded, changes: Sequence[Change]) -> list[float]:
    """The task's score with each of several changes."""
    model, whole = learner.settings.model, network(learner, task)
    decoder = learner.state.params(whole.record, model).decoder
    outputs: list[list[Tensor]] = [[] for _ in changes]  # of each change, of each block of samples
    for block in data.h.split(model.block(tuple(data.h.shape[1:]), learner.state.k)):
        flow = Flow(learner, task, block)
        for found, change in zip(outputs, changes, strict=True):
            found.append(model.decoder.apply(decoder, flow.changed(change)))
    return [whole.score_of(torch.cat(found), data.y) for found in outputs]


@torch.no_grad()
def effects(learner: Learned, task: Task, samples: int = SAMPLES) -> Tensor:
    """What each component does at each depth: (k, depths, features); nan where the task does not use it.

    The effect is how much the features that leave the last depth change, on average over samples, when the
    component has all the weight of that depth, compared with having none of it.
    """
    settings, record = learner.settings, learner.state.records[task.name]
    used, h = weights(learner, task).T, sample(learner, task, samples).h  # (k, depths), (n, *shape)
    features = settings.model.shapes(tuple(record.input_shape))[-1][0]
    found = torch.where(used != 0, 0.0, torch.nan).to(h.dtype)[..., None].repeat(1, 1, features)

    def effect(flow: Flow, component: int, depth: int) -> Tensor:
        changes = (at_intensity(settings.structure, component, x, depth, record.k) for x in (1.0, 0.0))
        left = (flow.changed(change) for change in changes)  # (n, features, ...)
        most, none = (h.flatten(2).mean(2).mean(0) if h.ndim > 2 else h.mean(0) for h in left)
        return most - none

    for block in h.split(settings.model.block(tuple(h.shape[1:]), learner.state.k)):
        flow = Flow(learner, task, block)
        for component, depth in used.nonzero().tolist():
            found[component, depth] += effect(flow, component, depth).cpu() * (len(block) / len(h))
    return found


def consistency(effects: Sequence[Tensor], weights: Sequence[Tensor]) -> list[float]:
    """For each component: is its effect the same in all places where it is used, and not what others do?

    effects: of each task, (k, depths, features); weights: how much it uses them, (k, depths), nothing being
    0. A place is a task and a depth; the mean cosine between the effects of the component in two different
    places, minus the mean cosine between its effects and those of other components, places weighed by how
    much the component is used there. 1: always in the same direction, and in another than the others'; 0: it
    cannot be told from the others. nan for a component in one place only, or without effect.
    """
    vectors = torch.stack(list(effects), 1).flatten(1, 2).double()  # (k, tasks * depths, features)
    used = torch.stack(list(weights), 1).flatten(1, 2).double()  # (k, tasks * depths)
    known = vectors.isfinite().all(-1) & (vectors.norm(dim=-1) > 1e-9)
    unit = torch.where(known[..., None], vectors, 0.0)
    unit = unit / unit.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    used = torch.where(known, used, 0.0)
    total, whole, same_place = (unit * used[..., None]).sum(1), used.sum(1), used.square().sum(1)
    found = []
    for c in range(len(unit)):  # sums of cosines over pairs are products of sums
        pairs, others = float(whole[c] ** 2 - same_place[c]), float(whole[c] * (whole.sum() - whole[c]))
        same = float(total[c] @ total[c] - same_place[c]) / pairs if pairs > 1e-9 else float("nan")
        other = float(total[c] @ (total.sum(0) - total[c])) / others if others > 1e-9 else 1.0
        found.append(same - other)
    return found
