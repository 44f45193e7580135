"""What components do: a learner with a task's structure changed, to see what changes with it.

A change is a function of a depth and the weights at that depth, (k,), (B, k) or, for linear combinations,
(k, outputs), that returns others. The learner itself stays as it is.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
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


# --- at the end of a run ------------------------------------------------------------------------------------

SHARE = 0.05  # of a run's work may be spent here, ...
MOMENT = 2**25  # ... or this, whatever the run: small ones have no bound
STEP = 2**18  # of training takes this, beside what is computed (docs/performance.md)
LEAST = 20  # samples of a task are looked at in any case


class Work:
    """How much is to be looked at, in numbers that enter components: counted, not timed, so that what comes
    out is the same wherever it is done."""

    def __init__(self, learner: Learned, tasks: Sequence[Task]) -> None:
        settings, state = learner.settings, learner.state
        busy = state.progress.tasks if state.progress is not None else []
        has = settings.structure.axes and state.k  # components to choose from
        self.tasks = [t for t in tasks if has and t.name in state.records and t.name not in busy]
        self.sizes = [len(task.test or task.validation or task.train) for task in self.tasks]
        self._samples = [_a_sample(learner, task) for task in self.tasks]
        evaluations = [size * a_pass for size, (a_pass, *_) in zip(self.sizes, self._samples, strict=True)]
        evaluated = list(itertools.accumulate(evaluations))[settings.initial_tasks - 1 :]
        batch = settings.batch_size or max(self.sizes, default=0)
        a_pass = max((a_pass for a_pass, *_ in self._samples), default=0)
        self.run = state.steps * (3 * batch * a_pass + STEP) + sum(evaluated)  # a step: forward and back

    def of(self, most: int) -> int:
        """If so many samples of each task are looked at."""
        return sum(
            removals * min(size, most) + effects * min(size, most, SAMPLES)
            for size, (_, removals, effects) in zip(self.sizes, self._samples, strict=True)
        )

    @cached_property
    def most(self) -> int:
        """Samples of each task: fewer than there are, if all would take long."""
        most = max(self.sizes, default=0)
        while most > LEAST and self.of(most) > max(SHARE * self.run, MOMENT):
            most = max(LEAST, most // 2)
        return most

    @property
    def share(self) -> float:
        """Of the run's work, about."""
        return self.of(self.most) / self.run if self.run else 0.0


def _a_sample(learner: Learned, task: Task) -> tuple[int, int, int]:
    """Numbers that enter components for a sample of a task: in one pass, for scores without each component,
    and for effects (`Flow`: what comes before a change is computed once)."""
    settings, state = learner.settings, learner.state
    shapes = settings.model.shapes(tuple(state.records[task.name].input_shape))[:-1]
    numbers = state.k * torch.tensor([math.prod(shape) for shape in shapes])  # at each depth
    later = numbers.sum() - numbers.cumsum(0)  # at the depths after each one
    used = weights(learner, task) != 0  # (depths, k)
    first = used.int().argmax(0)[used.any(0)]  # the first depth of each component
    a_pass = int(numbers.sum())
    effects = a_pass + 2 * int((used.sum(1) * later).sum()) if settings.structure.shares else 0
    return a_pass, a_pass + int(later[first].sum()), effects


def parts(
    learner: Learned,
    tasks: Sequence[Task],
    done: Container[tuple[str, str]] = (),
    effects_of: list[Tensor] | None = None,
) -> Iterator[list[Row]]:
    """What a finished run's rows tell of its components: structures, scores without each of them,
    consistency. They come in parts, one a task, which may be kept.

    done: stage and task of rows that were kept before an interruption: they are left out. effects_of: what
    was measured of the first tasks, to be kept with the rows; it grows.
    """
    settings, state = learner.settings, learner.state
    effects_of = [] if effects_of is None else effects_of
    work = Work(learner, tasks)
    learned, most = work.tasks, work.most
    if not learned:
        return
    watch = Watch(settings, state, [])
    add = partial(watch.add, learned[-1].name, len(settings.stages()))
    if (STRUCTURE, learned[0].name) not in done:
        yield [
            add(STRUCTURE, "weight", weight, task.name, "", component, depth)
            for task in learned
            for component, of_depths in enumerate(weights(learner, task).T.tolist())
            if component < state.records[task.name].k
            for depth, weight in enumerate(of_depths)
        ]
    for i, task in enumerate(learned):
        measure = settings.structure.shares and i >= len(effects_of)
        if measure:
            effects_of.append(effects(learner, task, min(most, SAMPLES)))
        if task.test is not None and (REMOVAL, task.name) not in done:
            yield _removals(learner, task, most, partial(add, REMOVAL))
        elif measure:
            yield []
    if settings.structure.shares and (CONSISTENCY, "") not in done:
        everywhere = [weights(learner, task).T for task in learned]
        of_components = consistency(effects_of, everywhere)
        yield [
            add(CONSISTENCY, "consistency", value, component=component)
            for component, value in enumerate(of_components)
            if not math.isnan(value)
        ]


def _removals(learner: Learned, task: Task, most: int, add: Callable[..., Row]) -> list[Row]:
    """The task's scores without each component; beside them, if they are of fewer samples than there are,
    how many, and the score of the same ones with all components."""
    record, structure = learner.state.records[task.name], learner.settings.structure
    metric, data = metric_name(record.kind), sample(learner, task, most)
    changes = [removed(structure, component) for component in range(record.k)]
    whole, *without = scores_with(learner, task, data, [lambda depth, weights: weights, *changes])
    rows = []
    if task.test is not None and len(data.y) < len(task.test):
        rows.append(add("samples", float(len(data.y)), task.name, "test"))
        rows.append(add(f"{metric} with all components", whole, task.name, "test"))
    for component, value in enumerate(without):
        rows.append(add(f"{metric} without component", value, task.name, "test", component))
    return rows


def rows(learner: Learned, tasks: Sequence[Task]) -> Iterator[Row]:
    """All `parts`, one row after the other."""
    return itertools.chain.from_iterable(parts(learner, tasks))
