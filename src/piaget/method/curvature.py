"""Kronecker-factored curvature of the components: measured here, used by EWC (consolidation.py).

A component is applied once per depth, and every application counts: the factors are taken from
the gradient of a whole sample with respect to the component, which sums over all depths (and
image positions). For samples n with gradients G_n (out, in), the Fisher block of one component is
F = 1/N sum_n vec(G_n) vec(G_n)^T. The factors L (out, out) and R (in, in) are those of the
Kronecker product nearest to F in the Frobenius norm (Van Loan & Pitsianis), found by alternating
least squares: with R fixed, the best L is mean_n G_n R G_n^T / |R|^2, and the other way round.
Weight and bias of a layer form one matrix [weight | bias].
"""

from __future__ import annotations

import torch
from torch import Tensor

from piaget.data.tasks import Kind
from piaget.method.model import Model
from piaget.method.objective import (
    Targets,
    output_form,
    output_width,
    probabilities,
    sample_losses,
    targets,
)
from piaget.method.parameters import Params
from piaget.method.trees import Tensors, check_finite, map_tree
from piaget.recording import observed

Factors = tuple[Tensor, Tensor]  # L (k, out, out), R (k, in, in): a Kronecker product for each component


def as_matrices(params: Tensors, lead: int = 1) -> dict[str, Tensor]:
    """Parameters -> matrices (*lead axes, out, in), biases joined to their weights."""
    matrices = {}
    for name, p in params.items():
        if _joined_weight(name, params) is not None:
            continue  # a bias that goes with its weight
        rows = p.shape[lead] if p.ndim > lead else 1
        matrix = p.reshape(*p.shape[:lead], rows, -1)
        bias = params.get(_bias_name(name))
        if bias is not None and _joined_weight(_bias_name(name), params) == name:
            matrix = torch.cat([matrix, bias.unsqueeze(-1)], -1)
        matrices[name] = matrix
    return matrices


def from_matrices(matrices: dict[str, Tensor], like: Tensors, lead: int = 1) -> Tensors:
    """The inverse of `as_matrices`, for parameters shaped as `like`."""
    params = {}
    for name, p in like.items():
        weight = _joined_weight(name, like)
        if weight is not None:
            params[name] = matrices[weight][..., -1]
        else:
            columns = p[(0,) * (lead + 1)].numel() if p.ndim > lead else 1
            params[name] = matrices[name][..., :columns].reshape(p.shape)
    return params


def _bias_name(weight: str) -> str:
    return weight.removesuffix("weight") + "bias"


def _joined_weight(name: str, params: Tensors) -> str | None:
    """The weight that the bias `name` is joined to, if it is such a bias."""
    weight = name.removesuffix("bias") + "weight"
    joins = name.endswith("bias") and weight in params and params[weight].ndim > params[name].ndim
    return weight if joins else None


def nearest_kronecker(gradients: Tensor, rounds: int = 200) -> Factors:
    """Gradients (N, k, out, in) of N samples -> factors L (k, out, out), R (k, in, in)."""
    n, _, _, inputs = gradients.shape
    tolerance = 100 * torch.finfo(gradients.dtype).eps
    right = torch.eye(inputs, dtype=gradients.dtype, device=gradients.device).expand(
        gradients.shape[1], -1, -1
    )
    left = None
    for _ in range(rounds):
        old = left
        left = torch.einsum("nkoi,kij,nkpj->kop", gradients, right, gradients) / n / _norm2(right)
        right = torch.einsum("nkoi,kop,nkpj->kij", gradients, left, gradients) / n / _norm2(left)
        if old is not None and bool((left - old).norm() <= tolerance * left.norm()):
            break
    return left, right  # type: ignore[return-value]


def nearest_to_sum(one: Factors, other: Factors) -> Factors:
    """The Kronecker product nearest to the sum of two, in the Frobenius norm: exact, and without forming any.

    Rearranged (Van Loan & Pitsianis), L_1 (x) R_1 + L_2 (x) R_2 is a matrix of rank 2, sum_i l_i r_i^T with
    l_i = vec L_i and r_i = vec R_i; wanted is its leading singular pair. L lies in the span of the L_i: L =
    sum_i x_i L_i, where x is the leading eigenvector of the 2 x 2 matrix K = <r_i, r_j> <l_j, l_k>. Inner
    products of positive semidefinite matrices are not negative, so neither is x, and L and R are positive
    semidefinite again.
    """
    lefts, rights = (torch.stack(pair, 1) for pair in zip(one, other, strict=True))  # (k, 2, out, out)
    grams = [torch.einsum("kiab,kjab->kij", stack, stack).clamp(min=0).double() for stack in (lefts, rights)]
    k = grams[1] @ grams[0]  # (k, 2, 2)
    a, b, c, d = k[:, 0, 0], k[:, 0, 1], k[:, 1, 0], k[:, 1, 1]
    largest = ((a + d) + ((a - d).square() + 4 * b * c).sqrt()) / 2
    first = a >= d  # of two forms of the eigenvector, the one in which nothing is cancelled
    x = torch.where(first[:, None], torch.stack([largest - d, c], 1), torch.stack([b, largest - a], 1))
    x = torch.where(x.sum(1, keepdim=True) == 0, torch.tensor([1.0, 0.0], dtype=x.dtype, device=x.device), x)
    x = x / x.sum(1, keepdim=True)
    along = torch.einsum("ki,kij->kj", x, grams[0])  # <L, L_j>
    norm2 = (along * x).sum(1, keepdim=True)
    y = along / torch.where(norm2 == 0, 1.0, norm2)  # R = sum_j <L, L_j> R_j / |L|^2
    left, right = (
        torch.einsum("ki,kiab->kab", weight.to(stack.dtype), stack)
        for weight, stack in ((x, lefts), (y, rights))
    )
    # Both of the same norm, so that neither grows or vanishes over many tasks.
    scale = (_norm2(right) / _norm2(left)).sqrt().sqrt()
    return left * scale, right / scale


def _norm2(matrix: Tensor) -> Tensor:
    """Squared Frobenius norms (k, 1, 1); 1 for a zero matrix, whose partner is zero too."""
    norm2 = matrix.square().sum((-2, -1), keepdim=True)
    return torch.where(norm2 == 0, 1.0, norm2)


def draw_labels(kind: Kind, out: Tensor, generator: torch.Generator) -> Tensor:
    """Labels (N,) drawn from the predictions; regression needs none."""
    labels = torch.zeros(len(out), dtype=out.dtype)
    if kind != "regression":
        check_finite("outputs for samples from which the curvature is measured", out)
        chances = probabilities(kind, out).cpu().double()
        labels = torch.multinomial(chances, 1, generator=generator)[:, 0]
    return observed("labels", labels.to(out.device))


def sample_gradients(
    model: Model,
    params: Params,
    visible: Tensor,
    kind: Kind,
    classes: int,
    x: Tensor,
    generator: torch.Generator,
) -> Tensors:
    """Gradients (N, k, ...) whose mean outer product estimates the Fisher information.

    Labels are drawn from the model's own predictions, one a sample. Squared error is the
    negative log-likelihood of a Gaussian of variance 1/2, whose Fisher information 2 J J^T is
    exact without drawing.
    """
    width = output_width(kind, classes)
    labels = draw_labels(kind, model.outputs(params, x, visible)[:, :width], generator)
    column, value = targets(kind, labels, width, x.dtype)
    form = map_tree(lambda t: t.to(x.device), output_form(kind, classes, width))

    def scored(components: Tensors, x: Tensor, column: Tensor, value: Tensor) -> Tensor:
        h = model.encode(params.encoder, x[None])
        out = model.forward(params._replace(components=components), h, [None] * model.depth, visible)
        out = out[:, :width]  # a shared decoder may have more
        if kind == "regression":
            return 2**0.5 * out[0, 0]
        return sample_losses(out, Targets(column[None], value[None]), form)[0]

    per_sample = torch.func.vmap(torch.func.grad(scored), in_dims=(None, 0, 0, 0))
    return per_sample(params.components, x, column, value)
