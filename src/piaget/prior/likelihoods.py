"""What all tasks say of their weights, as quadratics in standardised features; refreshed as beliefs move.

Two things are not Gaussian and are found by turns with the components: a regression's noise, and the weights
at which labels' likelihood is approximated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from piaget.prior.features import Frame
from piaget.prior.gaussian import (
    Components,
    Posterior,
    Quadratic,
    beliefs,
    beside,
    infer,
    integrate,
    task_means,
    task_posterior,
)
from piaget.prior.labels import expand, log_likelihood
from piaget.prior.records import Labels, Values

LEAST_NOISE = 1e-6  # of the variance, in units of the values' own
STEPS, MOST_STEPS, NEAR = 3, 50, 0.1  # of Newton's method for labels; by how much weights move near the mode
CHUNK = 2**22  # numbers in a batch of features


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


class Batch(NamedTuple):
    """Rows of some tasks, padded to one length."""

    features: Tensor  # (t, n, d)
    y: Tensor  # (t, n)
    mask: Tensor  # (t, n)


@dataclass(frozen=True, eq=False)
class LabelTerms:
    """Of classifications: rows, what was settled, and the weights about which the rows are approximated."""

    batches: tuple[Batch, ...]
    settled: Quadratic  # (T, C, ...)
    w: Tensor  # (T, C, d)
    mu: Tensor  # (C, d)
    terms: Quadratic  # (T, C, ...): of w

    def refreshed(self, parts: Components) -> tuple[LabelTerms, float]:
        """Newton steps to the joint mode of mu and all tasks' weights: a few, once it is near. Far from it,
        the quadratics of rows that are answered wrongly, and surely, would promise likelihoods beyond 1."""
        now, moved = self, 0.0
        for step in range(1, MOST_STEPS + 1):
            now, moved = now._stepped(parts.root, parts.width)
            if moved < 1e-9 or (step >= STEPS and moved < NEAR):
                break
        return now, moved

    def _stepped(self, root: Tensor, width: Tensor) -> tuple[LabelTerms, float]:
        """One step, as far as the joint density, which has one peak, rises."""
        found = infer(self.terms, root, width)
        there = task_means(found.messages, root, found.mu.mean)
        before, share = self._height(self.w, self.mu, root, width), 1.0
        while share > 1e-4:
            w, mu = self.w + share * (there - self.w), self.mu + share * (found.mu.mean - self.mu)
            if bool(self._height(w, mu, root, width) >= before - 1e-9 * (1 + before.abs())):
                moved = max(float((w - self.w).abs().max()), float((mu - self.mu).abs().max()))
                return replace(self, w=w, mu=mu, terms=_terms(self.batches, self.settled, w)), moved
            share /= 2
        return self, 0.0

    def apart(self, root: Tensor, width: Tensor, others: Quadratic) -> LabelTerms:
        """Newton steps to each task's own mode, as far as its density rises."""

        def height(w: Tensor, mu: Tensor) -> Tensor:
            return self._densities(w, mu, root) + (others.at(mu) - (mu / width).square().sum(-1) / 2).sum(-1)

        w, mu, terms = self.w, self.mu.expand(self.w.shape), self.terms
        for _ in range(MOST_STEPS):
            messages = integrate(terms, root).message
            there = beside(messages, others, width).mu
            to_w, to_mu = task_means(messages, root, there.mean) - w, there.mean - mu
            before, share = height(w, mu), torch.ones(len(w), 1, 1, dtype=w.dtype)
            while True:
                falls = height(w + share * to_w, mu + share * to_mu) < before - 1e-9 * (1 + before.abs())
                if not falls.any():
                    break
                share = torch.where(falls[:, None, None], share / 2, share)
                share = torch.where(share > 1e-4, share, 0.0)  # such a step changes nothing, and never falls
            w, mu = w + share * to_w, mu + share * to_mu
            terms = _terms(self.batches, self.settled, w)
            if float((share * to_w).abs().max()) < 1e-6:
                break
        return replace(self, w=w, terms=terms)

    def _height(self, w: Tensor, mu: Tensor, root: Tensor, width: Tensor) -> Tensor:
        """(): log p(y | w) + log p(w | mu) + log p(mu), but for constants."""
        return self._densities(w, mu, root).sum() - (mu / width).square().sum() / 2

    def _densities(self, w: Tensor, mu: Tensor, root: Tensor) -> Tensor:
        """(T,): log p(y | w) + log p(w | mu), but for constants."""
        parts = zip(self.batches, self._split(w), strict=True)
        rows = torch.cat([log_likelihood(*batch, part) for batch, part in parts])
        z = torch.linalg.solve_triangular(root, (w - mu).unsqueeze(-1), upper=False)
        return rows + self.settled.at(w).sum(-1) - z.square().sum((1, 2, 3)) / 2

    def _split(self, w: Tensor) -> tuple[Tensor, ...]:
        return w.split([len(batch.y) for batch in self.batches])


def _terms(batches: Sequence[Batch], settled: Quadratic, w: Tensor) -> Quadratic:
    parts = w.split([len(batch.y) for batch in batches])
    found = [expand(*batch, part) for batch, part in zip(batches, parts, strict=True)]
    return Quadratic(*(s + torch.cat(p) for s, p in zip(settled, zip(*found, strict=True), strict=True)))


def value_terms(records: Sequence[Values], log_noise: Tensor, noise: Noise) -> ValueTerms:
    """Of records in standardised features and values."""
    n, square = (
        torch.stack(part) for part in zip(*((r.moments.n, r.moments.values[1]) for r in records), strict=True)
    )
    gram, cross = (torch.stack(part) for part in zip(*((r.gram, r.cross) for r in records), strict=True))
    return ValueTerms(n, gram, cross, square, log_noise, noise)


def label_terms(records: Sequence[Labels], frame: Frame, w: Tensor) -> LabelTerms:
    """Of records in the frame's features; w: (T, C, d) weights to begin with."""
    batches, start = [], 0
    longest = [max(len(record.y), 1) for record in records]
    while start < len(records):
        end, most = start + 1, longest[start]
        while end < len(records) and max(most, longest[end]) * (end + 1 - start) * frame.width <= CHUNK:
            most = max(most, longest[end])
            end += 1
        batches.append(_batch(records[start:end], most, frame))
        start = end
    settled = _settled(records, w)
    return LabelTerms(tuple(batches), settled, w, w.mean(0), _terms(batches, settled, w))


def _batch(records: Sequence[Labels], n: int, frame: Frame) -> Batch:
    features = torch.zeros(len(records), n, frame.width, dtype=torch.float64)
    y = torch.zeros(len(records), n, dtype=torch.int64)
    mask = torch.zeros(len(records), n, dtype=torch.float64)
    for i, record in enumerate(records):
        rows = len(record.y)
        features[i, :rows] = frame.features(record.x)
        y[i, :rows] = record.y
        mask[i, :rows] = 1
    return Batch(features, y, mask)


def _settled(records: Sequence[Labels], w: Tensor) -> Quadratic:
    """Zero where nothing was settled."""
    precision = torch.zeros(*w.shape, w.shape[-1], dtype=w.dtype)
    linear, constant = torch.zeros_like(w), torch.zeros(w.shape[:2], dtype=w.dtype)
    for i, record in enumerate(records):
        if record.settled is not None:
            precision[i], linear[i], constant[i] = record.settled
    return Quadratic(precision, linear, constant)
