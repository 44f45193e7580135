"""What a finished run's rows tell of its components: structures, scores without each, consistency."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Container, Iterator, Sequence
from functools import cached_property, partial

import torch
from torch import Tensor

from piaget.data.tasks import Task
from piaget.method.objective import metric_name
from piaget.scoring.inferring import Recognition
from piaget.scoring.probing import (
    SAMPLES,
    Learned,
    consistency,
    effects,
    removed,
    sample,
    scores_with,
    weights,
)
from piaget.scoring.rows import CONSISTENCY, INFERENCE, REMOVAL, STRUCTURE, Row
from piaget.scoring.watch import Watch

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
    add = partial(watch.add, learned[-1].name, settings.most_epochs)
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
    if settings.inference.notes and (INFERENCE, learned[0].name) not in done:
        of_tasks = Watch(settings, state, learned)
        recognition = Recognition(settings, state, [task.name for task in learned])
        yield of_tasks.inference(recognition, INFERENCE, settings.most_epochs, [])
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
