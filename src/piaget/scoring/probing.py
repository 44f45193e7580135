"""What components do: a learner with a task's structure changed, to see what changes with it.

A change is a function of a depth and the weights at that depth, (k,), (B, k) or, for linear combinations,
(k, outputs), that returns others. The learner itself stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from piaget.data.tasks import Split, Task
from piaget.knowledge.state import params_of
from piaget.learner import Learner
from piaget.method.components import Components, Shape
from piaget.method.objective import metric_name
from piaget.method.structures import Structure
from piaget.method.trees import Tree
from piaget.scoring import watch as evaluation
from piaget.scoring.rows import CONSISTENCY, REMOVAL, STRUCTURE, Row
from piaget.scoring.watch import Watch

Change = Callable[[int, Tensor], Tensor]

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

    def draw(
        self, generator: torch.Generator, kind: Components, shapes: Sequence[Shape], k: int, outputs: int,
        dtype: torch.dtype,
    ) -> Tree:  # fmt: skip
        return self.inner.draw(generator, kind, shapes, k, outputs, dtype)

    def prepare(self, own: Tree, visible: Tensor) -> Tree:
        return self.inner.prepare(own, visible)

    def weights(self, kind: Components, own: Tree, depth: int, h: Tensor, visible: Tensor) -> Tensor:
        return self.change(depth, self.inner.weights(kind, own, depth, h, visible))

    def mix(self, kind: Components, outputs: Tensor, weights: Tensor) -> Tensor:
        return self.inner.mix(kind, outputs, weights)


def altered(learner: Learner, change: Change) -> Learner:
    """A learner with the same knowledge, whose structures are changed. It is for looking only."""
    made = Learner.__new__(Learner)
    settings = replace(learner.settings, structure=Altered(learner.settings.structure, change))
    made._set(settings, learner._state)
    return made


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

Data = tuple[Tensor, Tensor]  # what enters depth 0, and targets


def sample(learner: Learner, task: Task, samples: int = SAMPLES) -> Data:
    """A task's test data (or what it has), encoded; so many samples at most, evenly spaced."""
    split = task.test or task.validation or task.train
    if len(split) > samples:
        chosen = torch.linspace(0, len(split) - 1, samples).long()
        split = Split(split.x[chosen], split.y[chosen])
    record = learner._record(task)
    return evaluation.encoded(learner.settings, learner._state, record, split)


def score(learner: Learner, task: Task, data: Data, change: Change | None = None) -> float:
    """The task's accuracy, or error, with its structure changed."""
    settings = learner.settings if change is None else altered(learner, change).settings
    record = learner._record(task)
    return evaluation.scores(settings, learner._state, record, data)[metric_name(record.kind)]


def weights(learner: Learner, task: Task) -> Tensor:
    """How the task weighs components, (depths, k), as `Learner.structures` has it; 0 for later components."""
    usage = learner.structures()[task.name].T  # (depths, k when it was learned)
    if len(usage) != learner.settings.depth:  # linear combinations with several outputs: one depth
        usage = usage.abs().mean(0, keepdim=True)
    return torch.nn.functional.pad(usage, (0, learner.components - usage.shape[1]))


@torch.no_grad()
def effects(learner: Learner, task: Task) -> Tensor:
    """What each component does at each depth: (k, depths, features); nan for those that the task may not use.

    The effect is how much the features that leave the last depth change, on average over samples, when the
    component has all the weight of that depth, compared with having none of it.
    """
    settings, state, record = learner.settings, learner._state, learner._record(task)
    h, _ = sample(learner, task)
    params = params_of(state, record, settings.structure)
    visible = record.visible(state.k).to(h.device)

    def features(change: Change) -> Tensor:
        structure = Altered(settings.structure, change)
        keep = [None] * settings.depth
        own = params["own"]["structure"]
        found = structure.body(settings.components, params["components"], own, h, keep, visible)
        return found.flatten(2).mean(2).mean(0) if found.ndim > 2 else found.mean(0)

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


def rows(learner: Learner, tasks: Sequence[Task]) -> Iterator[Row]:
    """What a finished run's table tells of its components: structures, scores without each of them,
    consistency."""
    structure, state = learner.settings.structure, learner._state
    known = [task for task in tasks if task.name in learner.tasks]
    if not structure.axes or not known or not learner.components:
        return  # no components to choose from
    watch, last = Watch(learner.settings, state, []), known[-1].name
    epoch = len(learner.settings.stages())

    def add(
        stage: str, task: str, split: str, metric: str, value: float, component: int, depth: int | None = None
    ) -> Row:
        stream = state.records[last].stream
        watch.add(stream, last, epoch, stage, task, split, metric, value, component, depth)
        return watch.rows[-1]

    for task in known:
        used = weights(learner, task).T[: learner._record(task).k]
        for component, of_depths in enumerate(used.tolist()):
            for depth, weight in enumerate(of_depths):
                yield add(STRUCTURE, task.name, "", "weight", weight, component, depth)
    for task in known:
        record = learner._record(task)
        if task.test is not None:
            data = evaluation.encoded(learner.settings, state, record, task.test)
            for component in range(int(record.visible(state.k).sum())):
                value = score(learner, task, data, removed(structure, component))
                metric = f"{metric_name(record.kind)} without component"
                yield add(REMOVAL, task.name, "test", metric, value, component)
    if structure.shares:
        everywhere = [weights(learner, task).T for task in known]
        found = consistency([effects(learner, task) for task in known], everywhere)
        for component, value in enumerate(found):
            if not math.isnan(value):
                yield add(CONSISTENCY, "", "", "consistency", value, component)
