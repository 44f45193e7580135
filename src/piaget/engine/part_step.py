"""The step of one part of a stage, as Python or as machine code."""

from __future__ import annotations

import torch

from piaget.engine.batches import Batch
from piaget.engine.compiled import Compiled, compiled
from piaget.engine.step import Inputs, Standing, Step
from piaget.method.trees import leaves, rebuild


class PartStep:
    """The step of one part with what stays the same; as machine code, if it is to be and can be compiled."""

    def __init__(self, step: Step, standing: Standing, compile: bool) -> None:
        self.step, self.standing, self.compile = step, standing, compile
        self.code: Compiled | None = None
        self.known = False  # whether there is code: seen when a batch shows its form
        self.flat = list(leaves(standing))

    def renew(self) -> None:
        """Batches may have another form from now on: without the run that has the most samples, they are
        narrower. Machine code does not check what it is given."""
        self.code, self.known = None, False

    def __call__(self, batch: Batch) -> None:
        if self.compile and not self.known:
            with torch.enable_grad():
                self.code, self.known = compiled(self.step, self._arguments(batch)), True
        if self.code is not None:
            self.code([*self.flat, *batch.inputs])
        else:
            with torch.enable_grad():  # whoever called may have it off
                self.step(*self._arguments(batch))
        if self.step.corrects:
            self.standing.steps.add_(len(self.step.passes) * batch.active)

    def _arguments(self, batch: Batch) -> tuple[Standing, Inputs]:
        """As trees, what machine code gets as leaves."""
        return self.standing, rebuild(batch.form, batch.inputs)
