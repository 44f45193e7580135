"""The learning step: gradients of one run's loss, their correction, and Adam.

The loss is a pure function of one run's tensors. For a cohort, every tensor gets a leading run
axis and the loss is vmapped over it; the gradient of the summed losses holds each run's own
gradient. Adam is elementwise, so it takes tensors with or without a run axis as they are. It
writes into the tensors it is given (which the caller owns): at a few hundred kilobytes a tensor,
allocating new ones costs more than the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from piaget.method.adaptation import Adaptation
from piaget.method.model import BatchLoss
from piaget.method.trees import Tree, leaves, map_tree

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # PyTorch's defaults


@dataclass(frozen=True)
class Step:
    """One batch in one pass. A pure function of tensors, up to writing into `trained` and `moments`.

    With `cohort`, all tensors have a leading run axis.
    """

    loss: BatchLoss
    adaptation: Adaptation
    rate: float
    cohort: bool

    def __call__(
        self,
        trained: Tree,  # parameter groups by role; these learn
        moments: Tree,  # Adam's, of the same roles
        constants: Tree,  # frozen, fixed, memory: see `Part`
        rows: Tree,  # the batch
        weight: Tensor,  # (B,): 1, or 0 for padding
        noise: Tensor,  # packed dropout bits
        touched: Tree,  # by role: what moves; of the shape of the step count
    ) -> None:
        frozen, fixed, memory = constants["frozen"], constants["fixed"], constants["memory"]
        gradient = gradients(self.loss, trained, frozen, fixed, rows, weight, noise, cohort=self.cohort)
        if memory:
            correct = torch.func.vmap(self.adaptation.correct) if self.cohort else self.adaptation.correct
            components = correct(memory, trained["components"], gradient["components"])
            gradient = gradient | {"components": components}
        for role, params in trained.items():
            adam_(params, gradient[role], moments[role], touched[role], self.rate)


def new_moments(params: Tree, count_shape: tuple[int, ...] = (), device: str = "cpu") -> Tree:
    """Adam's state before the first step. The step count has one entry a component, or one."""
    return {
        "mean": map_tree(torch.zeros_like, params),
        "square": map_tree(torch.zeros_like, params),
        "count": torch.zeros(count_shape, dtype=torch.float64, device=device),
    }


def gradients(loss: Callable[..., Tensor], trained: Tree, frozen: Tree, *args: Any, cohort: bool) -> Tree:
    """Gradients of `loss(trained | frozen, *args)` with respect to `trained` alone.

    With `cohort`, all tensors have a leading run axis.
    """
    variables = map_tree(lambda p: p.detach().requires_grad_(), trained)
    if not any(True for _ in leaves(variables)):
        return trained  # nothing to learn (a single linear model, frozen)

    def one_run(trained: Tree, frozen: Tree, *args: Any) -> Tensor:
        return loss(trained | frozen, *args)

    function = torch.func.vmap(one_run) if cohort else one_run
    value = function(variables, frozen, *args)
    found = iter(torch.autograd.grad(value.sum(), list(leaves(variables)), materialize_grads=True))
    return map_tree(lambda _: next(found), trained)


def adam_(params: Tree, gradient: Tree, moments: Tree, touched: Tensor, rate: float) -> None:
    """One step of Adam, in place, on the parameters of one group.

    touched: bool, of the shape of the step count: () or (k,), after a run axis if there is one.
    What is not touched keeps its value, its moments and its count.
    """
    live = touched.to(torch.float64)
    moments["count"].add_(live)
    count = moments["count"].clamp(min=1)  # an untouched count may be 0
    scale = rate * live / (1 - BETA1**count)
    correction = (1 - BETA2**count).rsqrt()
    dtype = next((p.dtype for p in leaves(params)), torch.float32)
    factors = torch.stack([live * (1 - BETA1), live * (1 - BETA2), scale, correction]).to(dtype).unbind()

    def update(p: Tensor, g: Tensor, mean: Tensor, square: Tensor) -> None:
        shape = touched.shape + (1,) * (p.ndim - touched.ndim)  # (k,) -> (k, 1, ..), to go with p
        first, second, scale, correction = (factor.view(shape) for factor in factors)
        mean.lerp_(g, first)
        square.lerp_(g.square(), second)
        # sqrt(v) as v / sqrt(v): the library's sqrt takes seven times longer over zeros, and most
        # weights of an image's dark pixels have v = 0. `tiny` only keeps 0 / 0 away.
        root = (square + torch.finfo(p.dtype).tiny).rsqrt_().mul_(square)
        denominator = root.mul_(correction).add_(EPSILON)
        p.addcdiv_(mean * scale, denominator, value=-1)

    with torch.no_grad():
        map_tree(update, params, gradient, moments["mean"], moments["square"])
