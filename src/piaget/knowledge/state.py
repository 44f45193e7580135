"""What a learner knows: everything that has to survive a save."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from piaget.data.encoding import Encoding, Scaling
from piaget.data.tasks import Kind, Task
from piaget.method.components import Shape
from piaget.method.objective import output_width
from piaget.method.structures import Structure
from piaget.method.trees import Tree, map_tree, resize


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
    own: Tree
    scaling: Scaling = Scaling()  # noqa: RUF009  (frozen, without state)
    encoding: Encoding | None = None
    usage: torch.Tensor | None = None  # (k, depths), how it weighs the components

    @property
    def outputs(self) -> int:
        return output_width(self.kind, self.classes)

    def visible(self, k: int) -> torch.Tensor:
        return torch.arange(k) < self.k


@dataclass
class Progress:
    """A task (or the initial tasks) being learned: how far it is."""

    tasks: list[str]
    moments: dict[str, Tree]  # Adam's state of each task's own parameters
    generator: torch.Tensor  # the generator's state at that point
    fingerprints: dict[str, str]  # of each task's training data
    epoch: int = 0
    candidate: bool = False  # the last component is on trial


@dataclass
class State:
    generator: torch.Generator
    components: Tree = field(default_factory=dict)  # stacked (k, ...); empty before initialization
    moments: Tree = field(default_factory=dict)
    io: Tree = field(default_factory=dict)
    io_moments: Tree = field(default_factory=dict)
    memory: Tree = field(default_factory=dict)
    records: dict[str, TaskRecord] = field(default_factory=dict)
    pending: dict[str, Task] = field(default_factory=dict)
    progress: Progress | None = None
    steps: int = 0  # batches x passes that were trained in all

    @property
    def k(self) -> int:
        return len(self.moments["count"]) if self.moments else 0

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing: an exception inside (an interrupt, too) puts everything back.

        Tensors in the state are replaced, never written into; so shallow copies are enough.
        """
        kept: list[tuple[Any, Any]] = [(x, dict(vars(x))) for x in (self, *self.records.values())]
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


def resize_own(own: Tree, structure: Structure, k: int, outputs: int) -> Tree:
    """A task's own parameters (or their moments) for k components and so many outputs."""
    sized = {}
    for name, p in own["structure"].items():
        if isinstance(p, dict):
            sized[name] = p
            continue
        if name in structure.axes:
            p = resize(p, structure.axes[name], k)
        if name in structure.output_axes:
            p = resize(p, structure.output_axes[name], outputs)
        sized[name] = p
    decoder = map_tree(lambda p: resize(p, -1, outputs), own["decoder"])
    return own | {"structure": sized, "decoder": decoder}


def resize_moments(moments: Tree, change: Any) -> Tree:
    """Applies a change of shape of the parameters to Adam's moments of them."""
    return moments | {part: change(moments[part]) for part in ("mean", "square")}


def params_of(state: State, record: TaskRecord, structure: Structure) -> Tree:
    """All parameters that a task's network has, with its own ones in the size of now."""
    own = resize_own(record.own, structure, state.k, record.outputs)
    return {"components": state.components, "own": own, "io": state.io}
