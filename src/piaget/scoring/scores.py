"""How good a task's network is: its outputs and scores, as the learner knows it now."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from piaget.data.arrays import as_tensor
from piaget.data.columns import is_table
from piaget.data.tasks import Split
from piaget.errors import NotFinite, TaskError
from piaget.knowledge.state import State, TaskRecord, tensors
from piaget.method import calibration, objective
from piaget.method.expansion import Evidence
from piaget.method.settings import Settings
from piaget.method.trees import check_finite, map_tree


class Encoded(NamedTuple):
    """A split as it enters depth 0: h (n, *shape), y (n,)."""

    h: Tensor
    y: Tensor


@dataclass(frozen=True)
class TaskNetwork:
    """One task's network: the components, and the task's own encoder, structure and decoder."""

    settings: Settings
    state: State
    record: TaskRecord

    def inputs(self, x: Any) -> Tensor:
        """A user's inputs: checked, encoded if they are rows of a table, and as the learner computes."""
        record, where = self.record, f"task {self.record.name!r}"
        if record.encoding is not None and is_table(x):
            x = record.encoding.encode(x)
        inputs = as_tensor(where, x, "fiub")
        if tuple(inputs.shape[1:]) != tuple(record.input_shape):
            raise TaskError(
                f"{where}: inputs have shape {tuple(inputs.shape)}; expected "
                f"(samples, {', '.join(map(str, record.input_shape))})"
            )
        if record.scaling.divisor != 1 and inputs.is_floating_point() and bool((inputs > 1).any()):
            raise TaskError(
                f"{where}: inputs are fractions up to {float(inputs.max()):g}; expected bytes, as in "
                f"training, or fractions that are divided by {record.scaling.divisor:g}"
            )
        inputs = record.scaling.inputs(inputs, self.settings.device, self.settings.torch_dtype)
        if not bool(torch.isfinite(inputs).all()):
            raise TaskError(
                f"{where}: inputs are NaN, infinite, or too large for {self.settings.dtype}; expected finite "
                "numbers"
            )
        return inputs

    def outputs(self, x: Tensor) -> Tensor:
        """The task's output columns (n, columns)."""
        return self.outputs_of_encoded(self.encode(x))

    def encode(self, x: Tensor) -> Tensor:
        """Inputs (n, *shape) as they enter depth 0."""
        model = self.settings.model
        with torch.no_grad():
            return model.encode(self.state.params(self.record, model).encoder, x)

    def outputs_of_encoded(self, h: Tensor, components: int | None = None) -> Tensor:
        """The same from what enters depth 0; `components`: with only the first so many of them."""
        model, state, record = self.settings.model, self.state, self.record
        visible = record.visible(state.k)
        if components is not None:
            visible &= torch.arange(state.k) < components
        return self._own(model.outputs_of_encoded(state.params(record, model), h, visible.to(h.device)))

    def _own(self, out: Tensor) -> Tensor:
        """The task's columns of outputs, calibrated and checked: a shared decoder may have more."""
        out = out[:, : self.record.outputs]
        if self.record.temperature != 1:
            out = out / self.record.temperature
        check_finite(f"task {self.record.name!r}: outputs for these inputs", out)
        return out

    def encoded(self, split: Split) -> Encoded:
        """A split of the task, ready for the first depth."""
        x, y = tensors(self.settings, split, self.record.scaling)
        return Encoded(self.encode(x), y)

    def scores(self, data: Encoded, components: int | None = None) -> dict[str, float]:
        """The task's score, in the user's units, and its loss; of a binary task with samples of both classes,
        the area under the ROC curve, too. `components`: with only the first so many of them."""
        out = self.outputs_of_encoded(data.h, components)
        scores = self._scores(out, data.y)
        area = objective.auc(out[:, 0], data.y) if self.record.kind == "binary" else None
        return scores if area is None else scores | {"auc": area}

    def score_of(self, out: Tensor, y: Tensor) -> float:
        """The score of outputs as the decoder gives them, (n, columns)."""
        return self._scores(self._own(out), y)[objective.metric_name(self.record.kind)]

    def losses(self, out: Tensor, y: Tensor) -> Tensor:
        """The loss of each sample (n,), from the task's outputs (n, columns)."""
        record, width = self.record, out.shape[1]
        targets = objective.targets(record.kind, y, width, out.dtype)
        form = objective.output_form(record.kind, record.classes, width)
        return objective.sample_losses(out, targets, map_tree(lambda t: t.to(out.device), form))

    @property
    def uncalibrated(self) -> TaskNetwork:
        """With its logits as they are: what is learned does not depend on how sure probabilities are."""
        return replace(self, record=replace(self.record, temperature=1.0))

    def temperature(self, split: Split) -> float:
        """By what the logits should be divided: by data that was not trained on."""
        h, y = self.encoded(split)
        out = self.uncalibrated.outputs_of_encoded(h)
        return calibration.temperature(lambda t: float(self.losses(out / t, y).double().mean()), len(y))

    def _scores(self, out: Tensor, y: Tensor) -> dict[str, float]:
        record, losses = self.record, self.losses(out, y)
        score = objective.score(record.kind, out, y) * record.scaling.spread
        scores = {objective.metric_name(record.kind): score, "loss": float(losses.mean())}
        if not all(map(math.isfinite, scores.values())):
            raise NotFinite(f"task {record.name!r}: its scores, {scores}, are not finite")
        return scores

    def score(self, data: Encoded) -> float:
        """Accuracy, or root mean squared error in the user's units."""
        return self._scores(self.outputs_of_encoded(data.h), data.y)[objective.metric_name(self.record.kind)]

    def evidence(self, split: Split) -> Evidence:
        """What the newest component does for the task."""
        h, y = self.encoded(split)
        k = self.state.k
        with_candidate, without = (self.outputs_of_encoded(h, components) for components in (k, k - 1))
        return Evidence(self.record.kind, with_candidate, without, y)
