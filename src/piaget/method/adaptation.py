"""Adaptations: how components take in what a task taught, and what is stored for that.

Four hooks, all optional: which stored samples an adaptation epoch sees beside the task's own (`replay`), what
the loss of a sample is (`losses`), what becomes of the components' gradient (`correct`), and what is stored
when a task ends (`remember`). `losses` and `correct` are pure functions of tensors of one run: the engine
batches them over runs, and compiles them. Memory is a tree of tensors, so it can be saved, and stacked for a
cohort. Those that store samples are in replay.py, those that hold components near earlier values in
consolidation.py; all of them by name in registry.py.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from piaget.data.arrays import Kind
from piaget.errors import SettingError
from piaget.method.model import Model
from piaget.method.objective import OutputForm, Targets, output_width
from piaget.method.parameters import Params
from piaget.method.reduction import Change
from piaget.method.trees import Tensors
from piaget.recording import observed

Memory = dict[str, Tensors]  # what an adaptation keeps, under names of its own


class Stored(NamedTuple):
    """Samples of a past task.

    h: (n, *shape), what enters depth 0; raw inputs where an encoder goes on learning.
    y: (n,) targets. fields: whatever else was stored with each sample, (n, ...).

    >>> piaget.Stored(0, torch.zeros(3, 8), torch.tensor([0, 1, 1]), {}).h.shape
    torch.Size([3, 8])
    """

    task: int  # its place among all tasks
    h: Tensor
    y: Tensor
    fields: Tensors


@dataclass(frozen=True, eq=False)
class Finished:
    """A task that has just been learned, as an adaptation sees it.

    >>> class Recent(piaget.Adaptation):
    ...     def remember(self, memory, finished):  # `finished` is one of these
    ...         return finished.store({}, finished.sample(8))
    """

    index: int
    kind: Kind
    classes: int
    x: Tensor
    y: Tensor
    model: Model
    params: Params
    visible: Tensor  # (k,): the components that the task may use
    batch: int  # samples in a mini-batch
    generator: torch.Generator
    stores_inputs: bool  # an encoder goes on learning: stored samples are kept as inputs

    def sample(self, count: int) -> Tensor:
        """Row numbers of `count` training samples (or all), drawn uniformly."""
        order = torch.randperm(len(self.x), generator=self.generator)
        return observed("sample", order[:count].to(self.x.device))

    def outputs(self, rows: Tensor) -> Tensor:
        """The network's outputs (n, columns) for these training samples, without dropout."""
        out = self.model.outputs(self.params, self.x[rows], self.visible)
        return out[:, : output_width(self.kind, self.classes)]

    def store(self, memory: Memory, rows: Tensor, **fields: Tensor) -> Memory:
        """The memory with these training samples in it, and what is to be known of each beside its target."""
        for name, value in fields.items():
            if name in ("task", "h", "y") or not isinstance(value, Tensor) or len(value) != len(rows):
                kind = f"a tensor of {len(value)} rows" if isinstance(value, Tensor) else type(value).__name__
                raise SettingError(
                    f"stored field {name!r} is {kind} for {len(rows)} samples; expected a tensor with a row "
                    "for each, under another name than task, h or y"
                )
        x = self.x[rows]
        # Where a finished task's encoder never changes, its samples are stored encoded.
        h = x if self.stores_inputs else self.model.encode(self.params.encoder, x)
        stored = {"task": torch.tensor(self.index), "h": h, "y": self.y[rows]}
        return memory | {str(self.index): stored | fields}


def stored_samples(memory: Memory) -> list[Stored]:
    """All that `Finished.store` put into the memory, in the order of tasks.

    >>> memory = {"0": {"task": torch.tensor(0), "h": torch.zeros(3, 8), "y": torch.zeros(3)}}
    >>> [(stored.task, len(stored.y)) for stored in piaget.stored_samples(memory)]
    [(0, 3)]
    """
    samples = [
        Stored(int(s["task"]), s["h"], s["y"], {n: t for n, t in s.items() if n not in ("task", "h", "y")})
        for s in memory.values()
        if "task" in s  # else it is something else that the adaptation keeps
    ]
    return sorted(samples, key=lambda stored: stored.task)


class Replayed(NamedTuple):
    """A batch in which stored samples have joined the current task's.

    Tasks may have different numbers of classes, so outputs are padded to the widest one's columns, and a
    binary task has one: its logit. `probabilities` takes care of that.

    >>> class Gentle(piaget.Replay):
    ...     def losses(self, losses, outputs, replayed):  # `replayed` is one of these
    ...         return torch.where(replayed.past, 0.5 * losses, losses)
    """

    past: Tensor  # (B,) bool: is it a stored sample?
    fields: Tensors  # (B, ...): what was stored with it; zeros for the current task's samples
    targets: Targets  # (B,)
    form: OutputForm  # (B, ...): which columns are each sample's own
    tasks: Tensor | int = 1  # (): of how many tasks the batch has samples

    def probabilities(self, outputs: Tensor) -> Tensor:
        """Class probabilities (B, columns + 1) of outputs (B, columns); 0 in columns that are not its own.

        Of a binary task: column 0 is class 1, and the last column class 0.
        """
        logits = torch.cat([outputs, torch.zeros_like(outputs[:, :1])], 1)
        return logits.masked_fill(~self.form.allowed, float("-inf")).softmax(1)


class Correction(NamedTuple):
    """A gradient (of the components) as it is to be used, and numbers () to be summed over a task's steps.

    >>> piaget.Correction({"weight": torch.zeros(4, 8, 8)}).counts
    {}
    """

    gradient: Tensors
    counts: Tensors = {}  # noqa: RUF012  (never written to)


@dataclass(frozen=True, eq=False)
class StepContext:
    """One step, as an adaptation sees it. All tensors are of one run.

    >>> class Slow(piaget.Adaptation):
    ...     def correct(self, context):  # `context` is one of these
    ...         return piaget.Correction({name: 0.1 * g for name, g in context.gradient.items()})
    """

    components: Tensors  # as they are now, (k, ...)
    gradient: Tensors  # of the batch's loss, with respect to the components
    memory: Memory  # what `Adaptation.constants` made of it
    reference: Tensors | None  # the gradient of the loss of stored samples, where `Adaptation.references` > 0
    reference_loss: Tensor | None  # (): the loss itself
    inputs: Tensor  # (B, ...): what enters depth 0 or, where an encoder learns, the inputs before it
    targets: Targets  # (B,)
    task: Tensor | None  # (B,): 0 for the current task's samples; None: there are no others
    weight: Tensor  # (B,): 1, or 0 for rows that only fill the batch up
    step: Tensor  # (): how many steps of this kind of stage came before, on the task
    random: Tensor  # (Adaptation.randoms,), uniform in [0, 1), from the run's own generator
    loss: Callable[[Tensors], Tensor] = field(repr=False)  # components -> the batch's loss ()
    outputs: Callable[[Tensors], Tensor] = field(repr=False)  # components -> the batch's outputs (B, columns)

    @property
    def past(self) -> Tensor:
        """Which are stored samples: (B,) bool."""
        return torch.zeros_like(self.weight, dtype=torch.bool) if self.task is None else self.task > 0


class Join(NamedTuple):
    """Where the tasks and components of a second learner come to stand among those of a first.

    >>> join = piaget.Join(tasks=3, components=6, places=torch.tensor([1, 4, 5]))
    >>> later = {"0": {"task": torch.tensor(0), "h": torch.zeros(3, 8), "y": torch.zeros(3)}}
    >>> list(piaget.Replay().merged({}, later, join))  # its first task is now the fourth one
    ['3']
    """

    tasks: int  # so many tasks are before its own
    components: int  # so many there are in all
    places: Tensor  # (k,): those of its own components


class Adaptation(ABC):
    """How components take in new knowledge.

    >>> class Keeping(piaget.Adaptation):
    ...     name = "keeping"
    ...     def remember(self, memory, finished):
    ...         return finished.store(memory, finished.sample(8))
    ...     def replay(self, memory):
    ...         return piaget.stored_samples(memory)
    >>> piaget.Learner(adaptation=Keeping())
    Learner(soft-ordering/keeping/dynamic, 0 tasks learned, 0 components)
    """

    name: str
    trains_components: bool = True
    # Stored samples join the batches; or, with references > 0, so many of them are drawn beside each batch,
    # and `correct` is given the gradient of their loss.
    references: int = 0
    # Of each batch, the share that is of stored samples, past tasks counting alike; None: they are mixed in,
    # and each is seen once an epoch. Where they join the batches.
    share: float | None = None
    randoms: int = 0  # random numbers that `correct` is given
    counts: tuple[str, ...] = ()  # names of the numbers that `correct` gives; their sums become rows
    output_fields: tuple[str, ...] = ()  # stored fields (n, columns) that go with outputs column by column

    def replay(self, memory: Memory) -> list[Stored]:
        """The stored samples that an adaptation epoch sees."""
        return []

    def losses(self, losses: Tensor, outputs: Tensor, replayed: Replayed) -> Tensor:
        """The loss of each sample (B,), from the usual one and the outputs (B, columns).

        Asked only where stored samples join.
        """
        return losses

    def constants(self, memory: Memory, k: int) -> Memory:
        """What `correct` needs of the memory, for k component slots."""
        return {}

    def correct(self, context: StepContext) -> Correction:
        """The gradient of the components, with what guards past tasks."""
        return Correction(context.gradient)

    def remember(self, memory: Memory, finished: Finished) -> Memory:
        """The memory after a task."""
        return memory

    def reduced(self, memory: Memory, change: Change, components: Tensors) -> Memory:
        """The memory when there is one component less. components: those that are left, (k, ...).

        Stored samples stay as they are. Who keeps numbers of each component says here what becomes of them.
        """
        if all("task" in stored for stored in memory.values()):
            return memory
        raise SettingError(
            f"{type(self).__name__} keeps more than stored samples, and does not say what becomes of it when "
            "components are removed or merged; expected reduction='none', or a method `reduced`"
        )

    def forgotten(self, memory: Memory, place: int) -> Memory:
        """The memory without a task that is forgotten, by its place among all tasks; later ones move up.

        Stored samples go. Who keeps anything else says here what becomes of it.
        """
        if not all("task" in stored for stored in memory.values()):
            raise SettingError(
                f"{type(self).__name__} keeps more than stored samples, and does not say what becomes of it "
                "when a task is forgotten (`forgotten`)"
            )
        left = {}
        for name, stored in memory.items():
            before = int(stored["task"])
            now = before - (before > place)
            if before != place:
                left[str(now) if name == str(before) else name] = stored | {"task": torch.tensor(now)}
        return left

    def recognizes(self, memory: Memory, tasks: int, components: Tensors) -> bool:
        """Is this what it keeps after so many tasks, for components (k, ...)? Asked of what a file holds."""
        return bool(type(self).remember is not Adaptation.remember or not memory)

    def merged(self, one: Memory, other: Memory, join: Join) -> Memory:
        """The memory of two learners whose tasks and components become one's."""
        if not all("task" in stored for memory in (one, other) for stored in memory.values()):
            raise SettingError(
                f"{type(self).__name__} does not say how what it keeps of two learners is merged (`merged`)"
            )
        later = {
            str(int(s["task"]) + join.tasks): s | {"task": s["task"] + join.tasks} for s in other.values()
        }
        return one | later

    @property
    def corrects(self) -> bool:
        """Does it change gradients?"""
        return type(self).correct is not Adaptation.correct

    @property
    def has_losses(self) -> bool:
        """Does it change the losses of samples?"""
        return type(self).losses is not Adaptation.losses


@dataclass(frozen=True)
class NaiveFineTuning(Adaptation):
    """Components learn from the current task alone.

    >>> piaget.NaiveFineTuning().replay({})
    []
    """

    name = "nft"


@dataclass(frozen=True)
class Frozen(Adaptation):
    """Components never change after initialization.

    >>> piaget.Frozen().trains_components
    False
    """

    name = "fm"
    trains_components = False
