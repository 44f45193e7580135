"""What all tasks say of their weights, as quadratics in standardised features; refreshed as beliefs move.

Two things are not Gaussian and are found by turns with the components: a regression's noise (here), and what
labels say (label_terms.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from piaget.prior.gaussian import (
    Components,
    Posterior,
    Quadratic,
    beliefs,
    beside,
    infer,
    integrate,
    task_posterior,
)
from piaget.prior.records import Values

LEAST_NOISE = 1e-6  # of the variance, in units of the values' own


class Likelihoods(Protocol):
    """All tasks' terms, and how they are refreshed."""

    @property
    def terms(self) -> Quadratic:
        """(T, C, ...)"""

    def refreshed(self, parts: Components) -> tuple[Likelihoods, float]:
        """Adapted to these components; and by how much it changed."""

    def apart(self, root: Tensor, width: Tensor, others: Quadratic) -> Likelihoods:
        """Each task adapted to these components alone with others, which say this of mu (C, ...): what is
        said of a task does not depend on the tasks that it came with."""


class Noise(NamedTuple):
    """How noise varies among tasks: log-variances around `level`, as firmly as `dof` rows would say."""

    level: float
    dof: float


@dataclass(frozen=True, eq=False)
class ValueTerms:
    """Of regressions: sums, and each task's noise."""

    n: Tensor  # (T,)
    gram: Tensor  # (T, d, d)
    cross: Tensor  # (T, d)
    square: Tensor  # (T,)
    log_noise: Tensor  # (T,): of the variance
    noise: Noise

    @property
    def terms(self) -> Quadratic:
        variance = self.log_noise.exp()
        constant = -(self.square / variance + self.n * (math.log(2 * math.pi) + self.log_noise)) / 2
        precision, linear = self.gram / variance[:, None, None], self.cross / variance[:, None]
        return Quadratic(precision[:, None], linear[:, None], constant[:, None])

    def refreshed(self, parts: Components) -> tuple[ValueTerms, float]:
        """Noise: each task's own, drawn towards the others' as far as they agree."""
        found = infer(self.terms, parts.root, parts.width)
        miss, unsure = self._misses(beliefs(self.terms, found, parts))
        free = self._left(unsure)
        least = LEAST_NOISE * (self.square.sum() / self.n.sum()).clamp(min=1)  # less: all values are equal
        noise = agreement((miss / free).clamp(min=least), free)
        log_noise = self._drawn(noise, miss + unsure, least)
        change = float((log_noise - self.log_noise).abs().max())
        return replace(self, log_noise=log_noise, noise=noise), change

    def apart(self, root: Tensor, width: Tensor, others: Quadratic) -> ValueTerms:
        """Noise: each task's own, drawn towards what is usual."""
        messages = integrate(self.terms, root).message
        belief = task_posterior(self.terms, root, beside(messages, others, width).mu)
        least = LEAST_NOISE * (self.square / self.n).clamp(min=1)
        miss, unsure = self._misses(belief)
        return replace(self, log_noise=self._drawn(self.noise, miss + unsure, least))

    def free(self, belief: Posterior) -> Tensor:
        """(T,): how many rows of each task no weight has used up."""
        return self._left(self._misses(belief)[1])

    def _left(self, unsure: Tensor) -> Tensor:
        return (self.n - unsure / self.log_noise.exp()).clamp(min=0.5)

    def _misses(self, belief: Posterior) -> tuple[Tensor, Tensor]:
        """(T,): squared errors of the expected weights, and what comes on top since they are unsure."""
        mean, covariance = belief.mean[:, 0], belief.covariance[:, 0]
        miss = self.square - 2 * (self.cross * mean).sum(-1)
        miss = (miss + torch.einsum("ti,tij,tj->t", mean, self.gram, mean)).clamp(min=0)
        return miss, (self.gram * covariance).sum((-2, -1))

    def _drawn(self, noise: Noise, squares: Tensor, least: Tensor) -> Tensor:
        """(T,): log-variances by squared errors, drawn towards the usual noise."""
        variance = (noise.dof * math.exp(noise.level) + squares) / (noise.dof + self.n)
        return variance.clamp(min=least).log()


def agreement(variance: Tensor, free: Tensor) -> Noise:
    """From tasks' variances, each by `free` rows: how log-variances scatter beyond what chance would do.

    By moments (Smyth 2004): a log-variance of chi-squared rows has known mean and variance.
    """
    half = free / 2
    centred = variance.log() - torch.digamma(half) + half.log()
    weight = free / free.sum()
    level = float((weight * centred).sum())
    count = len(free)
    scatter = 0.0
    if count > 2:
        beyond = (centred - level).square() - torch.polygamma(1, half)
        scatter = float((weight * beyond).sum()) * count / (count - 1)
    dof = 2 * inverse_trigamma(max(scatter, 2e-3))
    return Noise(level + float(torch.digamma(torch.tensor(dof / 2))) - math.log(dof / 2), dof)


def inverse_trigamma(y: float) -> float:
    """By Newton's method, which converges from this start."""
    x = torch.tensor(0.5 + 1 / y, dtype=torch.float64)
    for _ in range(50):
        at = torch.polygamma(1, x)
        step = at * (1 - at / y) / torch.polygamma(2, x)
        x = x + step
        if abs(float(step / x)) < 1e-10:
            break
    return float(x)


def value_terms(records: Sequence[Values], log_noise: Tensor, noise: Noise) -> ValueTerms:
    """Of records in standardised features and values."""
    n, square = (
        torch.stack(part) for part in zip(*((r.moments.n, r.moments.values[1]) for r in records), strict=True)
    )
    gram, cross = (torch.stack(part) for part in zip(*((r.gram, r.cross) for r in records), strict=True))
    return ValueTerms(n, gram, cross, square, log_noise, noise)
