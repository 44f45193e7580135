"""What components do: a learner with a task's structure changed, to see what changes with it.

A change is a function of a depth and the weights at that depth, (k,), (B, k) or, for linear combinations,
(k, outputs), that returns others. The learner itself stays as it is.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from piaget.data.tasks import Split, Task
from piaget.knowledge.state import State
from piaget.method.components import Components
from piaget.method.objective import metric_name
from piaget.method.settings import Settings
from piaget.method.structures import Frame, Structure
from piaget.method.trees import Tensors
from piaget.scoring.rows import CONSISTENCY, REMOVAL, STRUCTURE, Row
from piaget.scoring.scores import Encoded, TaskNetwork
from piaget.scoring.watch import Watch

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


@torch.no_grad()
def effects(learner: Learned, task: Task) -> Tensor:
    """What each component does at each depth: (k, depths, features); nan for those that the task may not use.

    The effect is how much the features that leave the last depth change, on average over samples, when the
    component has all the weight of that depth, compared with having none of it.
    """
    settings, state, record = learner.settings, learner.state, learner.state.records[task.name]
    h, _ = sample(learner, task)
    params = state.params(record, settings.model)
    visible = record.visible(state.k).to(h.device)

    def features(change: Change) -> Tensor:
        structure = Altered(settings.structure, change)
        keep = [None] * settings.depth
        left = structure.body(settings.components, params.components, params.task.structure, h, keep, visible)
        return left.flatten(2).mean(2).mean(0) if left.ndim > 2 else left.mean(0)

    found = []
    for component in range(state.k):
        at = [
            features(at_intensity(settings.structure, component, 1.0, depth, record.k))
            - features(at_intensity(settings.structure, component, 0.0, depth, record.k))
            for depth in range(settings.depth)
        ]
        allowed = torch.stack(at) if visible[component] else torch.full_like(torch.stack(at), torch.nan)
        found.append(allowed)
    return torch.stack(found).cpu()


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


def rows(learner: Learned, tasks: Sequence[Task]) -> Iterator[Row]:
    """What a finished run's rows tell of its components: structures, scores without each of them,
    consistency."""
    settings, state = learner.settings, learner.state
    busy = state.progress.tasks if state.progress is not None else []
    known = [task for task in tasks if task.name in state.records and task.name not in busy]
    if not settings.structure.axes or not known or not state.k:
        return  # no components to choose from
    watch, last, epoch = Watch(settings, state, []), known[-1].name, len(settings.stages())
    for task in known:
        used = weights(learner, task).T[: state.records[task.name].k]
        for component, of_depths in enumerate(used.tolist()):
            for depth, weight in enumerate(of_depths):
                yield watch.add(last, epoch, STRUCTURE, "weight", weight, task.name, "", component, depth)
    for task in known:
        record = state.records[task.name]
        if task.test is not None:
            data = network(learner, task).encoded(task.test)
            metric = f"{metric_name(record.kind)} without component"
            for component in range(record.k):
                value = score(learner, task, data, removed(settings.structure, component))
                yield watch.add(last, epoch, REMOVAL, metric, value, task.name, "test", component)
    if settings.structure.shares:
        everywhere = [weights(learner, task).T for task in known]
        of_components = consistency([effects(learner, task) for task in known], everywhere)
        for component, value in enumerate(of_components):
            if not math.isnan(value):
                yield watch.add(last, epoch, CONSISTENCY, "consistency", value, component=component)
