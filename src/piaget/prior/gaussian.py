"""The hierarchical model as algebra of Gaussians: exact evidence, posteriors and gradients.

    w_t = mu + root z_t,  z_t ~ N(0, I)       a task's weights;  root root' = Sigma
    mu = width m,         m ~ N(0, I)         what all tasks have in common; width is diagonal
    log p(y_t | w) = constant_t + linear_t'w - w'precision_t w / 2

For a regression the last line is exact, for classes it takes the likelihood's place (sites.py). Integrating
w_t out gives the same form in mu, so the two levels are one operation (`integrate`). No matrix is inverted
but I + root' precision root, whose eigenvalues are at least 1: it is stable for weak and for overwhelming
evidence, and for variances of zero.

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
    root: Tensor  # (..., d, q)
    factor: Tensor  # (..., q, q): lower triangular, factor factor' = I + root'precision root
    pulled: Tensor  # (..., q): factor^-1 root'linear

    @property
    def left(self) -> Tensor:
        """(..., d, q): the covariance of w given the center is left left'."""
        right = self.root.mT.expand(*self.factor.shape[:-1], self.root.shape[-2])
        return torch.linalg.solve_triangular(self.factor, right, upper=False).mT

    @property
    def posterior(self) -> Posterior:
        """Of w for a center of zero. For another one, the mean is (I - Sigma C) center farther, C the
        message's precision."""
        left = self.left
        return Posterior((left @ self.pulled.unsqueeze(-1))[..., 0], left @ left.mT)


class Posterior(NamedTuple):
    """Gaussian beliefs: mean (..., d) and covariance (..., d, d)."""

    mean: Tensor
    covariance: Tensor


class Components(NamedTuple):
    """What tasks have in common, and how they differ: Sigma = phi phi' + diag(own)."""

    width: Tensor  # (d,): deviations of mu
    phi: Tensor  # (d, k)
    own: Tensor  # (d,): variances
    root: Tensor  # (d, d): lower triangular, root root' = Sigma
    unit: Tensor  # (d,): sqrt(spread)


class Inference(NamedTuple):
    """All that follows from all tasks' quadratics."""

    evidence: Tensor  # (): log p(all y)
    mu: Posterior  # (C, d), (C, d, d)
    messages: Quadratic  # (T, C): what each task says of mu
    total: Quadratic  # (C): their sum


def integrate(term: Quadratic, root: Tensor) -> Integrated:
    """Integrates z out of the term at w = center + root z. root: (..., d, q)."""
    seen = term.precision @ root  # (..., d, q)
    inner = torch.eye(root.shape[-1], dtype=root.dtype) + root.mT @ seen
    factor, failed = torch.linalg.cholesky_ex(inner)
    half = torch.linalg.solve_triangular(factor, seen.mT, upper=False)  # (..., q, d)
    pulled = torch.linalg.solve_triangular(factor, root.mT @ term.linear.unsqueeze(-1), upper=False)
    linear = term.linear - (half.mT @ pulled)[..., 0]
    pulled = pulled[..., 0]
    logdet = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    constant = term.constant + pulled.square().sum(-1) / 2 - logdet
    constant = constant.masked_fill(failed > 0, -math.inf)  # beyond rounding: such components are not taken
    message = Quadratic(term.precision - half.mT @ half, linear, constant)
    return Integrated(message, root, factor, pulled)


def infer(terms: Quadratic, root: Tensor, width: Tensor) -> Inference:
    """The whole model from its tasks. terms: (T, C, ...); root: (d, q); width: (d,)."""
    messages = integrate(terms, root).message
    return combine(messages, width)


def combine(messages: Quadratic, width: Tensor) -> Inference:
    """mu, from what all tasks say of it."""
    total = Quadratic(*(part.sum(0) for part in messages))
    over_mu = integrate(total, torch.diag(width))
    return Inference(over_mu.message.constant.sum(), over_mu.posterior, messages, total)


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
    return Beside(evidence, both.posterior)


def others_of(messages: Quadratic) -> Quadratic:
    """The sum of all messages but a task's own: (T, C, ...). Nothing is subtracted: where one task says by
    far the most, what is left of the others would be rounding."""

    def rest(part: Tensor) -> Tensor:
        zero = torch.zeros_like(part[:1])
        before = torch.cat([zero, part[:-1].cumsum(0)])
        return before + torch.cat([part.flip(0)[:-1].cumsum(0).flip(0), zero])

    return Quadratic(*map(rest, messages))


def task_means(messages: Quadratic, root: Tensor, mu: Tensor) -> Tensor:
    """Expected weights, from what tasks say of mu (..., d): mu + Sigma (linear - precision mu)."""
    pull = messages.linear - (messages.precision @ mu.unsqueeze(-1))[..., 0]
    return mu + pull @ root @ root.mT


def task_posterior(term: Quadratic, root: Tensor, mu: Posterior) -> Posterior:
    """A task's weights. mu: the belief with the task's own message in it, or, for a task that said
    nothing (`term` is zero), the belief of the others.

    Given mu, the mean is J mu farther than for a mu of zero, J = I - Sigma C; and mu is uncertain, too.
    """
    own = integrate(term, root)
    given = own.posterior
    through = torch.eye(root.shape[0], dtype=root.dtype) - (root @ root.mT) @ own.message.precision
    mean = given.mean + (through @ mu.mean.unsqueeze(-1))[..., 0]
    return Posterior(mean, given.covariance + through @ mu.covariance @ through.mT)


def coordinates(found: Inference, phi: Tensor) -> Tensor:
    """Tasks' places psi along the directions, as expected: (T, C, k)."""
    precision, linear, _ = found.messages
    return (linear - (precision @ found.mu.mean.unsqueeze(-1))[..., 0]) @ phi


def stiffness(found: Inference, parts: Components, squares: Tensor) -> Tensor:
    """How firmly tasks hold each direction, in units of its prior: I + unit curvature unit, (k, d, d).

    Were tasks' coordinates psi known, direction j would be a regression's weights, with the curvature
    sum_t psi_tj**2 C_t, C_t the precision with which a task knows its weights, other variance included.
    squares: psi**2, (T, C, k).
    """
    curvature = torch.einsum("tck,tcij->kij", squares, found.messages.precision)
    return torch.eye(len(parts.unit), dtype=parts.unit.dtype) + curvature * parts.unit[:, None] * parts.unit


class Doubt(NamedTuple):
    """How unsure directions are: they were fitted to the same rows as tasks' coordinates."""

    covariance: Tensor  # (k, d, d): of each direction
    squares: Tensor  # (T, C, k): of tasks' coordinates, as expected

    @property
    def centers(self) -> Tensor:
        """What is added to the variance of mu + phi psi, for each task: (T, C, d, d)."""
        return torch.einsum("tck,kij->tcij", self.squares, self.covariance)


def doubt(found: Inference, parts: Components) -> Doubt:
    """Given all tasks, others' directions held as they are."""
    phi, precision = parts.phi, found.messages.precision
    squares = coordinates(found, phi).square() + 1 - (phi * (precision @ phi)).sum(-2)
    covariance = torch.linalg.inv(stiffness(found, parts, squares)) * parts.unit[:, None] * parts.unit
    return Doubt(covariance, squares)


def beliefs(terms: Quadratic, found: Inference, parts: Components) -> Posterior:
    """All tasks' weights, (T, C, ...). Where rows are few and inputs many, directions are known no better
    than mu, and the center of a task is as unsure as both."""
    unsure = found.mu.covariance + doubt(found, parts).centers
    return task_posterior(terms, parts.root, Posterior(found.mu.mean, unsure))


class Slopes(NamedTuple):
    """How the evidence changes with Sigma, a (d, d) matrix G that is seldom needed whole, and with mu's
    variances: its exact gradient. With K the covariance of all tasks' weights, estimates included, it is
    (K^-1 r r'K^-1 - K^-1) / 2, of which blocks on the diagonal are summed for Sigma, all blocks for mu."""

    precision: Tensor  # (T, C, d, d): of what tasks say of mu
    whole: Tensor  # (C, d, d): the sum over tasks
    residual: Tensor  # (T, C, d)
    covariance: Tensor  # (C, d, d): of mu
    width: Tensor  # (d,): with mu's variances, width**2

    def diagonal(self) -> Tensor:
        """(d,): of G."""
        unsure = (self.precision @ self.covariance) * self.precision
        kept = self.whole.sum(0).diagonal() - unsure.sum((0, 1, 3))
        return (self.residual.square().sum((0, 1)) - kept) / 2

    def times(self, phi: Tensor) -> Tensor:
        """(d, k): G @ phi (d, k)."""
        unsure = self.precision @ (self.covariance @ (self.precision @ phi))
        kept = self.whole.sum(0) @ phi - unsure.sum((0, 1))
        residual = self.residual.flatten(0, 1)
        return (residual.mT @ (residual @ phi) - kept) / 2


def slopes(found: Inference) -> Slopes:
    """Of the evidence, as it was found."""
    precision, linear, _ = found.messages
    whole, mu = found.total.precision, found.mu
    residual = linear - (precision @ mu.mean.unsqueeze(-1))[..., 0]
    missed = found.total.linear - (whole @ mu.mean.unsqueeze(-1))[..., 0]
    left = whole - whole @ mu.covariance @ whole
    width = (missed.square() - left.diagonal(dim1=-2, dim2=-1)).sum(0) / 2
    return Slopes(precision, whole, residual, mu.covariance, width)
