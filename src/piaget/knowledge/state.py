"""What a learner knows: everything that has to survive a save."""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from piaget.data.encoding import Encoding, Scaling
from piaget.data.tasks import Kind, Split, Task
from piaget.errors import NotFinite
from piaget.method.adaptation import Memory
from piaget.method.components import Shape
from piaget.method.model import Model
from piaget.method.objective import output_width
from piaget.method.parameters import Moments, Params, Role, SharedParams, TaskParams
from piaget.method.settings import Settings
from piaget.method.stopping import ValidationScores
from piaget.method.trees import Tensors, check_finite, map_tree


@dataclass
class TaskRecord:
    """A task the learner has met: what it is, and its own parameters."""

    name: str
    kind: Kind
    classes: int
    labels: tuple[Any, ...] | None
    input_shape: Shape
    stream: str
    k: int  # it may use the first k components
    params: TaskParams
    scaling: Scaling = Scaling()  # noqa: RUF009  (frozen, without state)
    encoding: Encoding | None = None
    usage: Tensor | None = None  # (k, depths), how it weighs the components
    temperature: float = 1.0  # its logits are divided by it (method/calibration.py)
    note: Tensors | None = None  # by what its inputs are told from others' (knowledge/noting.py)

    @property
    def outputs(self) -> int:
        """How many output columns it needs."""
        return output_width(self.kind, self.classes)

    def visible(self, k: int) -> Tensor:
        """Which of k components it may use: (k,) bool."""
        return torch.arange(k) < self.k


class Best(NamedTuple):
    """What a task's own parameters, and the candidate's, were after the best epoch of a stage so far."""

    epoch: int  # of the task
    params: TaskParams
    moments: dict[Role, Moments]
    candidate: tuple[Tensors, Moments] | None


class Common(NamedTuple):
    """What several tasks depend on, with the optimizer's numbers: all that adaptation may change of what was
    known before the current task."""

    components: Tensors
    moments: Moments
    shared: SharedParams
    shared_moments: dict[Role, Moments]
    past: dict[str, TaskParams]  # of tasks that go on learning; their structures do not
    past_moments: dict[str, dict[Role, Moments]]

    def towards(self, after: Common, share: float) -> Common:
        """What lies between: 0, as here, to 1, as there. The optimizer's numbers, and how often it was asked,
        lie between, too: as if so much of the way had been gone."""
        if share in (0, 1):
            return after if share else self
        return map_tree(lambda a, b: torch.lerp(a, b, share), self, after)


class Attempt(NamedTuple):
    """What a first attempt at a task came to, while a second one is made."""

    params: TaskParams
    moments: dict[Role, Moments]
    common: Common
    generator: Tensor  # the generator's state after it


@dataclass
class Progress:
    """A task (or the initial tasks) being learned: how far it is."""

    tasks: list[str]
    moments: dict[str, dict[Role, Moments]]  # the optimizer's, of each task's own parameters
    generator: Tensor  # the generator's state at that point
    fingerprints: dict[str, str]  # of each task
    epoch: int = 0
    candidate: bool = False  # the last component is on trial
    gains: list[float] = field(default_factory=list)  # validation scores in the current stage, if watched
    stopped: bool = False  # the current stage ended early
    counts: dict[str, float] = field(default_factory=dict)  # what the adaptation counted
    reduced: bool = False  # components were removed or merged, as far as they could be
    # Of each task, in the current stage, if the epoch to keep is chosen: what was seen, and the best so far.
    validated: dict[str, list[ValidationScores]] = field(default_factory=dict)
    best: dict[str, Best] = field(default_factory=dict)
    before: Common | None = None  # the current stage adapts, and how much of it is kept is to be judged
    # Where a second attempt at the task would begin, if the first one changes what several tasks depend on.
    origin: Common | None = None
    first: Attempt | None = None  # this is the second attempt


@dataclass(frozen=True)
class Update:
    """What training changed. Parameters and moments are in the sizes of the state, and its own to keep."""

    groups: dict[Role, tuple[Tensors, Moments]]  # of components, and of what all tasks share
    tasks: dict[str, dict[Role, tuple[Tensors, Moments]]]  # of each task's own
    steps: int
    counts: dict[str, float]


@dataclass(frozen=True)
class Origin:
    """Where a learner began that was merged into another."""

    seed: int
    started_from: str | None  # the hash of the library of its first components; None: they were its own


@dataclass
class State:
    """All that a learner knows. Tensors in it are replaced, never written into.

    One thread may change it while others look at snapshots of it: changes and snapshots hold its lock.
    """

    generator: torch.Generator
    components: Tensors = field(default_factory=dict)  # stacked (k, ...); empty before initialization
    moments: Moments = field(default_factory=lambda: Moments({}, torch.zeros(0)))  # of the components
    shared: SharedParams = field(default_factory=lambda: SharedParams({}, {}))
    shared_moments: dict[Role, Moments] = field(default_factory=dict)
    past_moments: dict[str, dict[Role, Moments]] = field(default_factory=dict)  # of tasks that go on learning
    memory: Memory = field(default_factory=dict)
    records: dict[str, TaskRecord] = field(default_factory=dict)
    pending: dict[str, Task] = field(default_factory=dict)
    progress: Progress | None = None
    steps: int = 0  # batches x passes that were trained in all
    merged: tuple[Origin, ...] = ()  # of other learners whose components are among these
    before: State | None = field(default=None, repr=False)  # while a task is learned here: as it was, unsaved

    def __post_init__(self) -> None:
        self.lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "lock"}

    def __setstate__(self, fields: dict[str, Any]) -> None:
        vars(self).update(fields)
        self.lock = threading.RLock()  # a copy has its own

    def snapshot(self) -> State:
        """The state as it is at this moment, whatever becomes of this one.

        Records of the tasks that are being learned may change. All others are replaced, if ever: with
        hundreds of tasks, to copy every record would take longer than a short epoch.
        """
        with self.lock:
            still = copy.copy(self)
            still.generator = torch.Generator()
            still.generator.set_state(self.generator.get_state())
            still.records, still.pending = dict(self.records), dict(self.pending)
            if self.progress is not None:
                still.records |= {name: copy.copy(self.records[name]) for name in self.progress.tasks}
                still.progress = replace(self.progress, moments=dict(self.progress.moments))
            return still

    def restore(self, snapshot: State) -> None:
        """Puts everything back to what it was."""
        with self.lock:
            vars(self).update(snapshot.__getstate__())

    @property
    def k(self) -> int:
        """How many components there are, with one on trial."""
        return len(self.moments.updates)

    def relearned(self, settings: Settings) -> set[int]:
        """The places of past tasks whose own parameters go on learning, from samples that join batches."""
        joins = bool(settings.past_roles) and settings.adaptation.references == 0
        return {stored.task for stored in settings.adaptation.replay(self.memory)} if joins else set()

    def params(self, record: TaskRecord, model: Model) -> Params:
        """All parameters that a task's network has, with its own ones in the current size."""
        task = model.resized(record.params, self.k, record.outputs)
        return Params(self.components, task, self.shared)

    @property
    def common(self) -> Common:
        """What several tasks depend on."""
        past = {name: self.records[name].params._replace(structure={}) for name in self.past_moments}
        return Common(
            self.components, self.moments, self.shared, self.shared_moments, past, self.past_moments
        )

    def put(self, common: Common) -> None:
        """What several tasks depend on becomes this."""
        self.components, self.moments = common.components, common.moments
        self.shared, self.shared_moments = common.shared, common.shared_moments
        self.past_moments = common.past_moments
        for name, params in common.past.items():
            record = self.records[name]
            self.records[name] = replace(record, params=params._replace(structure=record.params.structure))

    def take(self, update: Update, epoch: int) -> None:
        """Takes over what training changed, up to this epoch of the task."""
        progress = self.progress
        assert progress is not None
        self._check(update)
        for role, (params, moments) in update.groups.items():
            if role == "components":
                self.components, self.moments = params, moments
            elif role == "candidate":
                self._put_candidate(params, moments)
            else:
                self.shared = self.shared._replace(**{role.removeprefix("shared "): params})
                self.shared_moments = self.shared_moments | {role: moments}
        for name, groups in update.tasks.items():
            record = self.records[name]
            own = record.params._replace(**{role: params for role, (params, _) in groups.items()})
            changed = {role: moments for role, (_, moments) in groups.items()}
            if name in self.past_moments:
                self.records[name] = replace(record, params=own)
                self.past_moments = self.past_moments | {name: self.past_moments[name] | changed}
            else:
                record.params = own
                progress.moments[name] = progress.moments[name] | changed
        self.steps += update.steps
        sums = {name: progress.counts.get(name, 0.0) + count for name, count in update.counts.items()}
        progress.counts = progress.counts | sums
        progress.epoch, progress.generator = epoch, self.generator.get_state()

    def _put_candidate(self, params: Tensors, moments: Moments) -> None:
        self.components = {n: _with_last(p, params[n]) for n, p in self.components.items()}
        self.moments = map_tree(_with_last, self.moments, moments)

    def note_best(self, name: str) -> None:
        """A task's own parameters, and the candidate's, are the best of the current stage so far."""
        progress, candidate = self.progress, None
        assert progress is not None
        if progress.candidate:
            candidate = map_tree(lambda t: t[-1].clone(), (self.components, self.moments))
        best = Best(progress.epoch, self.records[name].params, progress.moments[name], candidate)
        progress.best = progress.best | {name: best}

    def return_to_best(self) -> None:
        """To what was noted last, if anything was."""
        progress = self.progress
        assert progress is not None
        for name, best in progress.best.items():
            self.records[name].params, progress.moments[name] = best.params, best.moments
            if best.candidate is not None:
                self._put_candidate(*best.candidate)
        progress.best, progress.validated = {}, {}

    def return_to_first(self) -> None:
        """The second attempt at the task leaves no trace, but for the steps that it took."""
        progress = self.progress
        assert progress is not None
        assert progress.first is not None
        first, record = progress.first, self.records[progress.tasks[-1]]
        self.put(first.common)
        record.params, record.k = first.params, self.k
        progress.moments[record.name] = first.moments
        progress.generator, progress.first = first.generator, None
        self.generator.set_state(first.generator)

    def _check(self, update: Update) -> None:
        """Nothing that is not finite is taken over."""
        old = {
            "components": self.components,
            "candidate": {name: p[-1] for name, p in self.components.items()},
            "shared encoder": self.shared.encoder,
            "shared decoder": self.shared.decoder,
        }
        for role, changed in update.groups.items():
            _check_group(f"of the {role}", changed, old[role])
        for name, groups in update.tasks.items():
            for role, changed in groups.items():
                own = getattr(self.records[name].params, role)
                _check_group(f"of the {role} of task {name!r}", changed, own)
        if not all(map(math.isfinite, update.counts.values())):
            raise NotFinite(f"the adaptation's counts, {update.counts}, are not finite")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing: an exception inside (an interrupt, too) puts everything back, and no other thread
        sees the state in between."""
        with self.lock, self._restored_after_errors():
            yield

    @contextmanager
    def _restored_after_errors(self) -> Iterator[None]:
        """Tensors in the state are replaced, never written into; so shallow copies are enough."""
        learning = [] if self.progress is None else self.progress.tasks
        changing = (self, *(self.records[name] for name in learning))
        kept: list[tuple[Any, Any]] = [(x, dict(vars(x))) for x in changing]
        inner: list[tuple[Any, Any]] = [(d, dict(d)) for d in (self.records, self.pending)]
        if self.progress is not None:
            kept.append((self.progress, dict(vars(self.progress))))
            inner.append((self.progress.moments, dict(self.progress.moments)))
        generator = self.generator.get_state()
        try:
            yield
        except BaseException:
            for x, fields in kept:
                vars(x).update(fields)
            for d, items in inner:
                d.clear()
                d.update(items)
            self.generator.set_state(generator)
            raise


def _check_group(whose: str, changed: tuple[Tensors, Moments], old: Tensors) -> None:
    """A structure may have infinite parameters from the start (logits of components that are not used): those
    stay as they are."""
    params, moments = changed
    for name, new in params.items():
        if not bool((torch.isfinite(new) | (new == old[name])).all()):
            raise NotFinite(f"parameters {whose} are not finite")
    check_finite(f"moments {whose}", moments)


def _with_last(stack: Tensor, last: Tensor) -> Tensor:
    """The stack (k, ...) with another last entry."""
    stack = stack.clone()
    stack[-1] = last
    return stack


def tensors(settings: Settings, split: Split, scaling: Scaling) -> tuple[Tensor, Tensor]:
    """A split's inputs and targets, where and as the learner computes."""
    y = scaling.targets(split.y)
    y = y.to(settings.torch_dtype) if y.is_floating_point() else y
    return scaling.inputs(split.x, settings.device, settings.torch_dtype), y.to(settings.device)
