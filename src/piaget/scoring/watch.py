"""Scores of a learner, as tidy record rows: one number each, with all it depends on beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from piaget.data.columns import is_table
from piaget.data.encoding import Scaling
from piaget.data.tasks import Split, Task
from piaget.errors import SettingError, TaskError
from piaget.knowledge.state import State, TaskRecord, params_of
from piaget.method import objective
from piaget.method.schedule import StageName
from piaget.method.settings import Settings
from piaget.method.trees import map_tree
from piaget.scoring.rows import EXPANSION, Row

KEPT = 2**29  # bytes of encoded test data kept while a task is learned


@dataclass(frozen=True)
class EpochReport:
    """What a progress display is told after each epoch."""

    seed: int
    task: str
    stage: StageName
    epoch: int
    epochs: int
    components: int


OnEpoch = Callable[[EpochReport], None]
OnRow = Callable[[Row], None]


def tensors(settings: Settings, split: Split, scaling: Scaling) -> tuple[Tensor, Tensor]:
    """A split's inputs and targets, where and as the learner computes."""
    y = scaling.targets(split.y)
    y = y.to(settings.torch_dtype) if y.is_floating_point() else y
    return scaling.inputs(split.x, settings.device, settings.torch_dtype), y.to(settings.device)


def inputs_of(settings: Settings, record: TaskRecord, x: Any) -> Tensor:
    """A user's inputs for a task that was learned: checked, encoded, and as the learner computes."""
    if record.encoding is not None and is_table(x):
        x = record.encoding.encode(x)
    try:
        inputs = torch.as_tensor(x if isinstance(x, Tensor) else np.asarray(x))
    except (TypeError, ValueError, RuntimeError) as error:
        raise TaskError(f"task {record.name!r}: inputs are no array of numbers: {error}") from error
    if tuple(inputs.shape[1:]) != tuple(record.input_shape):
        raise TaskError(
            f"task {record.name!r}: inputs have shape {tuple(inputs.shape)}; expected "
            f"(samples, {', '.join(map(str, record.input_shape))})"
        )
    if record.scaling.divisor != 1 and inputs.is_floating_point() and bool((inputs > 1).any()):
        raise TaskError(
            f"task {record.name!r}: inputs are fractions up to {float(inputs.max()):g}; expected bytes, "
            f"as in training, or fractions that are divided by {record.scaling.divisor:g}"
        )
    inputs = record.scaling.inputs(inputs, settings.device, settings.torch_dtype)
    if not bool(torch.isfinite(inputs).all()):
        raise TaskError(f"task {record.name!r}: NaN or infinite inputs; expected finite numbers")
    return inputs


def outputs(settings: Settings, state: State, record: TaskRecord, x: Tensor) -> Tensor:
    """A task's output columns (n, columns)."""
    return _outputs(settings, state, record, encode(settings, state, record, x))


def encode(settings: Settings, state: State, record: TaskRecord, x: Tensor) -> Tensor:
    """What enters depth 0."""
    model = settings.model
    with torch.no_grad():
        return model.encode(model.encoder_of(params_of(state, record, model.structure)), x)


def _outputs(
    settings: Settings, state: State, record: TaskRecord, h: Tensor, components: int | None = None
) -> Tensor:
    visible = record.visible(state.k)
    if components is not None:
        visible &= torch.arange(state.k) < components
    model = settings.model
    out = model.outputs_of_encoded(params_of(state, record, model.structure), h, visible.to(h.device))
    return out[:, : record.outputs]  # a shared decoder may have more


Encoded = tuple[Tensor, Tensor]  # what enters depth 0, and targets


def encoded(settings: Settings, state: State, record: TaskRecord, split: Split) -> Encoded:
    x, y = tensors(settings, split, record.scaling)
    return encode(settings, state, record, x), y


def scores(
    settings: Settings, state: State, record: TaskRecord, data: Encoded, components: int | None = None
) -> dict[str, float]:
    """A task's score (in the user's units) and loss; `components`: with only the first so many of them."""
    h, y = data
    out = _outputs(settings, state, record, h, components)
    width = out.shape[1]
    rows = objective.target_rows(record.kind, y, width, out.dtype)
    task = map_tree(lambda t: t.to(h.device), objective.describe(record.kind, record.classes, width))
    losses = objective.sample_losses(out, rows["column"], rows["value"], task)
    return {
        objective.metric_name(record.kind): objective.score(record.kind, out, y) * record.scaling.spread,
        "loss": float(losses.mean()),
    }


class Watch:
    """Evaluates a learner while it learns, and collects the rows."""

    def __init__(
        self,
        settings: Settings,
        state: State,
        tasks: Iterable[Task],
        every: int | None = None,
        on_epoch: OnEpoch | None = None,
        on_row: OnRow | None = None,
    ) -> None:
        self.settings, self.state = settings, state
        self.tasks, self.every, self.on_epoch, self.on_row = list(tasks), every, on_epoch, on_row
        if every is not None and every < 1:
            raise SettingError(f"every={every}; expected a number of epochs, 1 or more")
        for task in self.tasks:
            record = state.records.get(task.name)
            if record is None:
                continue
            if tuple(record.input_shape) != task.input_shape:
                raise TaskError(
                    f"task {task.name!r}: it is to be evaluated on inputs of shape {task.input_shape}, "
                    f"but was learned with {tuple(record.input_shape)}"
                )
            if (record.scaling, record.encoding) != (task.scaling, task.encoding):
                raise TaskError(
                    f"task {task.name!r}: it is to be evaluated on data that is scaled or encoded otherwise "
                    "than what it was learned with; give from_table the learner's encoding"
                )
        self.rows: list[Row] = []
        self._kept: dict[tuple[str, str], Encoded] = {}  # of tasks whose encoder does not change any more

    def due(self, epoch: int) -> bool:
        return self.every is not None and epoch % self.every == 0

    def epoch(self, name: StageName, task: str, epoch: int, epochs: int) -> None:
        """After each epoch; if an evaluation is due, the state must be up to date."""
        if self.due(epoch) and epoch < epochs:
            self.evaluate(name, epoch, task)
        if self.on_epoch is not None:
            progress = self.state.progress
            candidates = int(progress is not None and progress.candidate)  # not yet a component
            k = self.state.k - candidates
            report = EpochReport(self.settings.seed, task, name, epoch, epochs, k)
            self.on_epoch(report)

    def evaluate(self, stage: str, epoch: int, trained: str, split: str = "test") -> list[Row]:
        """Scores on all tasks that are watched and known, and the number of components."""
        for task in self.tasks:
            record, data = self.state.records.get(task.name), getattr(task, split)
            if record is not None and data is not None:
                seen = self._encoded(task.name, record, split, data)
                for metric, value in scores(self.settings, self.state, record, seen).items():
                    self.add(record.stream, trained, epoch, stage, task.name, split, metric, value)
        stream = self.state.records[trained].stream
        self.add(stream, trained, epoch, stage, "", "", "components", float(self.state.k))
        return self.rows

    def _encoded(self, name: str, record: TaskRecord, split: str, data: Split) -> Encoded:
        """Encoded once, where that stays the same, and while there is room."""
        if (name, split) in self._kept:
            return self._kept[name, split]
        found = encoded(self.settings, self.state, record, data)
        busy = self.state.progress.tasks if self.state.progress is not None else []
        mode = self.settings.encoder
        constant = mode in ("fixed", "none") or (mode == "learned" and name not in busy)
        size = sum(h.numel() * h.element_size() for h, _ in [*self._kept.values(), found])
        if constant and size <= KEPT:
            self._kept[name, split] = found
        return found

    def decision(self, record: TaskRecord, with_it: float, without: float, kept: bool) -> None:
        """The rows about a candidate component."""
        metric, epoch = objective.metric_name(record.kind), len(self.settings.stages())
        values = {f"{metric} with candidate": with_it, f"{metric} without candidate": without, "kept": kept}
        for name, value in values.items():
            self.add(
                record.stream,
                record.name,
                epoch,
                EXPANSION,
                record.name,
                "validation",
                name,
                float(value),
                component=self.state.k - 1,
            )

    def add(
        self,
        stream: str,
        trained: str,
        epoch: int,
        stage: str,
        evaluated: str,
        split: str,
        metric: str,
        value: float,
        component: int | None = None,
        depth: int | None = None,
    ) -> None:
        row = Row(
            stream=stream,
            method=self.settings.method,
            seed=self.settings.seed,
            trained=trained,
            epoch=epoch,
            stage=stage,
            evaluated=evaluated,
            split=split,
            metric=metric,
            component=component,
            depth=depth,
            value=value,
        )
        self.rows.append(row)
        if self.on_row is not None:
            self.on_row(row)
