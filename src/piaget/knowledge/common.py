"""What the tasks of a prior over structures have in common: their inputs, and what is predicted."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from piaget.data.arrays import Kind, as_tensor
from piaget.data.columns import is_table
from piaget.data.encoding import Encoding, Scaling
from piaget.data.plain import Label as Label, shown
from piaget.data.tasks import Split, Task
from piaget.data.typed_data import read
from piaget.errors import SettingError, TaskError
from piaget.knowledge.state import TaskRecord

Rows = tuple[Tensor, Tensor]  # x (n, inputs) float64; y (n,): class numbers, or values


@dataclass(frozen=True)
class Common:
    """`labels`: of the classes 0, 1, ... of all tasks; none for a regression."""

    input_shape: tuple[int, ...]
    labels: tuple[Label, ...] = ()
    divisor: float = 1.0  # of bytes
    encoding: Encoding | None = None  # of rows of a table

    @property
    def kind(self) -> Kind:
        return "multiclass" if len(self.labels) > 2 else "binary" if self.labels else "regression"

    def check(self, task: Task) -> None:
        """Raises an error if the task is of another kind than the others."""
        where = f"task {task.name!r}"
        if (task.kind == "regression") != (self.kind == "regression"):
            raise TaskError(f"{where} is {task.kind}; expected {self.kind}, as the other tasks are")
        if task.input_shape != self.input_shape:
            raise TaskError(
                f"{where}: inputs have shape {task.input_shape}; expected {self.input_shape}, as in others"
            )
        if task.encoding != self.encoding or task.scaling.divisor != self.divisor:
            raise TaskError(
                f"{where}: its inputs are encoded or scaled otherwise than those of other tasks; expected "
                "the same: give from_table encoding=learner.encoding(), or from_arrays all groups at once"
            )
        own = labels_of(task)
        if unknown := [label for label in own if label not in self.labels]:
            raise TaskError(
                f"{where}: class {unknown[0]!r} is new; expected {', '.join(map(repr, self.labels))}: make "
                "the learner with labels=..., all that there will be (or by Learner.for_stream)"
            )

    def rows(self, task: Task, splits: Iterable[str]) -> Rows:
        """Of some splits of a task, as far as it has them."""
        self.check(task)
        parts: list[Split] = [part for name, part in task.splits() if name in splits]
        if not parts:
            raise TaskError(f"task {task.name!r} has no {' or '.join(splits)} data")
        x = torch.cat([self._scaled(part.x) for part in parts])
        y = torch.cat([part.y for part in parts])
        if self.labels:
            return x, torch.tensor([self.labels.index(label) for label in labels_of(task)])[y]
        return x, y.double()

    def inputs(self, where: str, x: Any) -> Tensor:
        """A user's inputs (n, *shape), or rows of a table, as (n, inputs), checked."""
        if self.encoding is not None and is_table(x):
            x = self.encoding.encode(x)
        inputs = as_tensor(where, x, "fiub")
        if tuple(inputs.shape[1:]) != self.input_shape:
            raise TaskError(
                f"{where}: inputs have shape {tuple(inputs.shape)}; expected "
                f"(samples, {', '.join(map(str, self.input_shape))})"
            )
        scaled = self._scaled(inputs)
        if not bool(torch.isfinite(scaled).all()):
            raise TaskError(f"{where}: NaN or infinite inputs; expected finite numbers")
        return scaled

    def _scaled(self, x: Tensor) -> Tensor:
        return Scaling(self.divisor).inputs(x.detach(), "cpu", torch.float64).flatten(1)

    def describe(self) -> dict[str, Any]:
        """As plain data."""
        return dataclasses.asdict(self)


def labels_of(task: Task | TaskRecord) -> tuple[Label, ...]:
    """The names of its classes; without names, their numbers."""
    return task.labels if task.labels is not None else tuple(range(task.classes))


def common_of(task: Task, labels: Sequence[Label] | None = None) -> Common:
    """By the first task. labels: of all that will come, if they are known."""
    own = tuple(labels) if labels is not None and task.kind != "regression" else labels_of(task)
    common = Common(task.input_shape, own, task.scaling.divisor, task.encoding)
    common.check(task)
    return common


def check_labels(labels: Any) -> tuple[Label, ...] | None:
    """A user's list of classes: two or more that differ."""
    if labels is None:
        return None
    listed = tuple(labels) if isinstance(labels, list | tuple) else ()
    if len(listed) < 2 or len(set(listed)) < len(listed) or not all(isinstance(v, Label) for v in listed):
        raise SettingError(
            f"labels={shown(labels)}; expected a list of two or more different texts or numbers"
        )
    return listed


def restored(plain: Any) -> Common:
    """What `describe` gave. ValueError: it is something else."""
    return read(Common, plain, "common")
