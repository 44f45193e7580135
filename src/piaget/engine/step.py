"""The learning step: gradients of one run's loss, their correction, and the optimizer's update.

The loss is a pure function of one run's tensors. For a cohort, every tensor gets a leading run axis and the
loss is vmapped over it; the gradient of the summed losses holds each run's own gradient. An optimizer is
elementwise, so it takes tensors with or without a run axis as they are, and writes into them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from piaget.engine.loss import BatchLoss, Fixed, Groups, Noise, Rows, check_hook
from piaget.errors import SettingError, type_of
from piaget.method.adaptation import Correction, Memory, StepContext
from piaget.method.batching import explained
from piaget.method.optimizer import Optimizer
from piaget.method.parameters import STACKED_ROLES, Role
from piaget.method.trees import Tensors, leaves, map_tree, rebuild

NOTHING = torch.zeros(0)


class Standing(NamedTuple):
    """What stays in place during a stage. The step writes into the first four."""

    trained: Groups  # these learn
    slots: dict[Role, dict[str, Tensors]]  # the optimizer's, of the same roles
    counts: Tensor  # (n,): how often each of them was updated
    totals: Tensors  # what the adaptation counts
    rate: Tensor  # ([R,] 1): the learning rate
    steps: Tensor  # ([R]): how many steps came before
    frozen: Groups
    fixed: Fixed
    memory: Memory
    reference: Fixed | None  # what goes with reference samples


class Draws(NamedTuple):
    """What is new in each pass of a step."""

    touched: Tensor  # (n,) bool: what moves, of the shape of the counts
    random: Tensor | None = None  # for the adaptation
    reference: Rows | None = None  # stored samples beside the batch
    noise: Noise = ()  # dropout multipliers


class Inputs(NamedTuple):
    """What is new in each step."""

    rows: Rows  # the batch
    weight: Tensor  # (B,): 1, or 0 for padding
    draws: tuple[Draws, ...]  # of each pass


@dataclass(frozen=True)
class Step:
    """One batch in all its passes: a function of tensors, up to writing into those that it owns.

    With `cohort`, all tensors have a leading run axis.
    """

    loss: BatchLoss
    passes: tuple[bool, ...]  # True: with the candidate hidden
    optimizer: Optimizer
    places: tuple[tuple[Role, int, int], ...]  # where each role that learns is among the counts
    corrects: bool  # does the adaptation correct the gradient?
    cohort: bool

    def __call__(self, standing: Standing, inputs: Inputs) -> None:
        try:
            self._step(standing, inputs)
        except RuntimeError as error:
            raise explained(error) from error.__cause__

    def _step(self, standing: Standing, inputs: Inputs) -> None:
        for number, (hide, draws) in enumerate(zip(self.passes, inputs.draws, strict=True)):
            one = replace(self, loss=replace(self.loss, hide=hide))
            one._pass(standing._replace(steps=standing.steps + number), inputs, draws)

    def _pass(self, standing: Standing, inputs: Inputs, draws: Draws) -> None:
        gradient = self._gradients(standing, standing.fixed, inputs.rows, inputs.weight, draws.noise)
        if self.corrects:
            gradient = gradient | {"components": self._corrected(standing, inputs, draws, gradient)}
        with torch.no_grad():
            self._update(standing, draws, gradient)

    # --- gradients --------------------------------------------------------------------------------

    def _gradients(self, standing: Standing, *batch: Any) -> Groups:
        """Gradients of the loss with respect to what learns."""
        return gradients(self.loss, standing.trained, standing.frozen, *batch, cohort=self.cohort)[0]

    def _corrected(self, standing: Standing, inputs: Inputs, draws: Draws, gradient: Groups) -> Tensors:
        """The components' gradient, after the adaptation has seen it."""
        args = (
            standing.trained | standing.frozen,
            gradient["components"],
            standing.memory,
            self._reference(standing, draws),
            standing.fixed,
            inputs._replace(draws=()),
            draws,
            standing.steps,
        )
        correction = over_runs(self._correct, *args) if self.cohort else self._correct(*args)
        for name, total in standing.totals.items():  # a run without a batch counts nothing
            total.add_(correction.counts[name] * inputs.weight.any(-1))
        return correction.gradient

    def _reference(self, standing: Standing, draws: Draws) -> tuple[Tensors, Tensor] | None:
        """The components' gradient of the loss of the stored samples beside the batch, and that loss."""
        rows, fixed = draws.reference, standing.reference
        if rows is None or fixed is None:
            return None
        weight = torch.ones_like(rows.targets.value)
        learns: Groups = {"components": standing.trained["components"]}
        others = {r: g for r, g in (standing.trained | standing.frozen).items() if r not in learns}
        batch = (fixed, rows, weight, ())
        gradient, value = gradients(self.loss, learns, others, *batch, cohort=self.cohort)
        return gradient["components"], value.detach()

    def _correct(
        self,
        groups: Groups,
        gradient: Tensors,
        memory: Memory,
        reference: tuple[Tensors, Tensor] | None,
        fixed: Fixed,
        inputs: Inputs,
        draws: Draws,
        step: Tensor,
    ) -> Correction:
        """The adaptation's correction of one run's gradient."""
        rows, weight, noise, loss = inputs.rows, inputs.weight, draws.noise, self.loss

        def outputs(components: Tensors) -> Tensor:
            return loss.outputs(groups | {"components": components}, fixed, rows, noise)[0]

        context = StepContext(
            components=groups["components"],
            gradient=gradient,
            memory=memory,
            reference=None if reference is None else reference[0],
            reference_loss=None if reference is None else reference[1],
            inputs=_given(rows),
            targets=rows.targets,
            task=rows.task,
            weight=weight,
            step=step,
            random=NOTHING if draws.random is None else draws.random,
            loss=lambda components: loss(groups | {"components": components}, fixed, rows, weight, noise),
            outputs=outputs,
        )
        correction = loss.adaptation.correct(context)
        part = loss.adaptation
        if not isinstance(correction, Correction):
            raise SettingError(
                f"{type(part).__name__}.correct returned {type_of(correction)}; expected a Correction"
            )
        check_hook(part, "correct", correction.gradient, gradient)
        check_hook(part, "correct", dict(correction.counts), dict.fromkeys(part.counts, step))
        return correction

    # --- the update ---------------------------------------------------------------------------------

    def _update(self, standing: Standing, draws: Draws, gradient: Groups) -> None:
        """One step of the optimizer. What is not touched keeps its value, its slots and its count."""
        optimizer, counts = self.optimizer, standing.counts
        live = draws.touched.to(torch.float64)
        counts.add_(live)
        factors = optimizer.factors(live, counts.clamp(min=1), standing.rate)  # an untouched count may be 0
        dtype = next((p.dtype for p in leaves(standing.trained)), torch.float32)
        every = torch.stack(factors).to(dtype).unbind() if factors else ()
        for role, start, end in self.places:
            # Components have a count each, ([R,] k), as past tasks have; all else has one, ([R]).
            if role not in STACKED_ROLES:
                of_role = [f[..., start] for f in every]
            else:
                of_role = [f[..., start:end] for f in every] if end - start < live.shape[-1] else list(every)
            slots = standing.slots[role]
            for name, p in standing.trained[role].items():
                kept = [slots[slot][name] for slot in optimizer.slots]
                shaped = [f.view(f.shape + (1,) * (p.ndim - f.ndim)) for f in of_role]  # (k,) -> (k, 1, ..)
                optimizer.update_(p, gradient[role][name], kept, shaped)


def over_runs(function: Callable[..., Any], *trees: Any) -> Any:
    """A function of one run's trees, for all runs: all their tensors have a leading run axis."""

    def of_leaves(*tensors: Tensor) -> Any:
        return function(*rebuild(trees, tensors))

    return torch.func.vmap(of_leaves)(*leaves(trees))


def gradients(
    loss: Callable[..., Tensor], trained: Groups, frozen: Groups, *batch: Any, cohort: bool
) -> tuple[Groups, Tensor]:
    """Gradients of `loss(trained | frozen, *batch)` with respect to `trained` alone, and its value ([R])."""
    variables = map_tree(lambda p: p.detach().requires_grad_(), trained)
    if not any(True for _ in leaves(variables)):
        return trained, torch.zeros(())  # nothing to learn (a single linear model, frozen)

    def one_run(trained: Groups, frozen: Groups, *batch: Any) -> Tensor:
        return loss(trained | frozen, *batch)

    args = (variables, frozen, *batch)
    value = over_runs(one_run, *args) if cohort else one_run(*args)
    grads = torch.autograd.grad(value.sum(), list(leaves(variables)), materialize_grads=True)
    return rebuild(trained, grads), value


def _given(rows: Rows) -> Tensor:
    entering = rows.h if rows.x is None else rows.x
    assert entering is not None
    return entering
