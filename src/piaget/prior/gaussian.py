"""The hierarchical model as algebra of Gaussians: exact evidence, posteriors and gradients.

    w_t = mu + root z_t,  z_t ~ N(0, I)       a task's weights;  root root' = Sigma
    mu = width m,         m ~ N(0, I)         what all tasks have in common; width is diagonal
    log p(y_t | w) = constant_t + linear_t'w - w'precision_t w / 2

For a regression the last line is exact, for classes it is Laplace's approximation. Integrating w_t out gives
the same form in mu, so the two levels are one operation (`integrate`). No matrix is inverted but I + root'
precision root, whose eigenvalues are at least 1: it is stable for weak and for overwhelming evidence, and for
variances of zero.

Shapes: (T, C, d, d) for T tasks, C outputs (one, or one a class) and d inputs; mu is an output's own, Sigma
is shared by all outputs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Quadratic(NamedTuple):
    """constant + linear'w - w'precision w / 2: the logarithm of a Gaussian in w, not normalised."""

    precision: Tensor  # (..., d, d)
    linear: Tensor  # (..., d)
    constant: Tensor  # (...)

    def at(self, w: Tensor) -> Tensor:
        """Its value at w (..., d)."""
        curved = (w.unsqueeze(-2) @ self.precision @ w.unsqueeze(-1))[..., 0, 0]
        return self.constant + (self.linear * w).sum(-1) - curved / 2


class Integrated(NamedTuple):
    """What is left of quadratics in w = center + root z when z ~ N(0, I) is integrated out."""

    message: Quadratic  # in the center
    left: Tensor  # (..., d, q): covariance of w given the center is left left'
    gain: Tensor  # (..., d): mean of w given the center is gain + (I - Sigma precision) center


class Posterior(NamedTuple):
    """Gaussian beliefs: mean (..., d) and covariance (..., d, d)."""

    mean: Tensor
    covariance: Tensor


class Inference(NamedTuple):
    """All that follows from all tasks' quadratics."""

    evidence: Tensor  # (): log p(all y)
    mu: Posterior  # (C, d), (C, d, d)
    messages: Quadratic  # (T, C): what each task says of mu
    total: Quadratic  # (C): their sum


def integrate(term: Quadratic, root: Tensor) -> Integrated:
    """Integrates z out of the term at w = center + root z. root: (..., d, q)."""
    seen = term.precision @ root  # (..., d, q)
    inner = root.mT @ seen
    inner = torch.eye(root.shape[-1], dtype=root.dtype) + (inner + inner.mT) / 2
    factor, failed = torch.linalg.cholesky_ex(inner)
    half = torch.linalg.solve_triangular(factor, seen.mT, upper=False)  # (..., q, d)
    left = torch.linalg.solve_triangular(factor, root.mT.expand(half.shape), upper=False).mT
    pulled = torch.linalg.solve_triangular(factor, (root.mT @ term.linear.unsqueeze(-1)), upper=False)
    precision = term.precision - half.mT @ half
    linear = term.linear - (half.mT @ pulled)[..., 0]
    logdet = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    constant = term.constant + pulled[..., 0].square().sum(-1) / 2 - logdet
    constant = constant.masked_fill(failed > 0, -math.inf)  # beyond rounding: such components are not taken
    message = Quadratic((precision + precision.mT) / 2, linear, constant)
    return Integrated(message, left, (left @ pulled)[..., 0])


def infer(terms: Quadratic, root: Tensor, width: Tensor) -> Inference:
    """The whole model from its tasks. terms: (T, C, ...); root: (d, q); width: (d,)."""
    messages = integrate(terms, root).message
    return combine(messages, width)


def combine(messages: Quadratic, width: Tensor) -> Inference:
    """mu, from what all tasks say of it."""
    total = Quadratic(*(part.sum(0) for part in messages))
    over_mu = integrate(total, torch.diag(width))
    mu = Posterior(over_mu.gain, over_mu.left @ over_mu.left.mT)
    return Inference(over_mu.message.constant.sum(), mu, messages, total)


class Beside(NamedTuple):
    """What follows from each task's message beside what others say of mu."""

    evidence: Tensor  # (T,): log p(y_t | the others' y)
    mu: Posterior  # (T, C, d), (T, C, d, d): the belief with the task's message in it


def beside(messages: Quadratic, others: Quadratic, width: Tensor) -> Beside:
    """Each task alone with the others. messages: (T, C, ...); others: the sum of theirs, (C, ...) or, for
    each task its own, (T, C, ...)."""
    without = integrate(others, torch.diag(width))
    joint = Quadratic(*(a + b for a, b in zip(messages, others, strict=True)))
    both = integrate(joint, torch.diag(width))
    evidence = (both.message.constant - without.message.constant).sum(-1)
    return Beside(evidence, Posterior(both.gain, both.left @ both.left.mT))


def others_of(messages: Quadratic) -> Quadratic:
    """The sum of all messages but a task's own: (T, C, ...). Nothing is subtracted: where one task says by
    far the most, what is left of the others would be rounding."""

    def rest(part: Tensor) -> Tensor:
        zero = torch.zeros_like(part[:1])
        before = torch.cat([zero, part[:-1].cumsum(0)])
        return before + torch.cat([part.flip(0)[:-1].cumsum(0).flip(0), zero])

    return Quadratic(*map(rest, messages))


def task_posterior(
    term: Quadratic, root: Tensor, mu: Posterior, message: Quadratic | None = None
) -> Posterior:
    """A task's weights. mu: the belief with the task's own message in it, or, for a task that said
    nothing (`term` is zero), the belief of the others.

    Given mu, w has mean gain + J mu and covariance left left', J = I - Sigma C; and mu is uncertain, too.
    """
    own = integrate(term, root)
    message = own.message if message is None else message
    through = torch.eye(root.shape[0], dtype=root.dtype) - (root @ root.mT) @ message.precision
    mean = own.gain + (through @ mu.mean.unsqueeze(-1))[..., 0]
    return Posterior(mean, own.left @ own.left.mT + through @ mu.covariance @ through.mT)


class Slopes(NamedTuple):
    """How the evidence changes."""

    sigma: Tensor  # (d, d): with Sigma
    width: Tensor  # (d,): with mu's variances, width**2


def slopes(found: Inference) -> Slopes:
    """The evidence's exact gradient: with K the covariance of all tasks' weights, estimates included,
    (K^-1 r r'K^-1 - K^-1) / 2, of which blocks on the diagonal are summed for Sigma, all blocks for mu."""
    C, c, _ = found.messages
    V = found.mu.covariance
    residual = c - (C @ found.mu.mean.unsqueeze(-1))[..., 0]  # (T, C, d)
    kept = C.sum((0, 1)) - torch.einsum("tcij,cjk,tckl->il", C, V, C)
    sigma = (torch.einsum("tci,tcj->ij", residual, residual) - kept) / 2
    whole = found.total.linear - (found.total.precision @ found.mu.mean.unsqueeze(-1))[..., 0]
    left = found.total.precision - found.total.precision @ V @ found.total.precision
    width = (whole.square() - left.diagonal(dim1=-2, dim2=-1)).sum(0) / 2
    return Slopes((sigma + sigma.mT) / 2, width)
