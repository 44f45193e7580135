"""What labels say of all tasks' weights, row by row, and how that is refreshed as beliefs move.

Of two classes, rows match the moments of their likelihood (sites.py), by sweeps over all rows at once until
nothing changes. Of more, they touch it at the joint mode of mu and all weights, which Newton's method finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from piaget.prior.features import Frame
from piaget.prior.gaussian import (
    Components,
    Posterior,
    Quadratic,
    beside,
    infer,
    integrate,
    task_means,
    task_posterior,
)
from piaget.prior.labels import log_likelihood
from piaget.prior.records import Labels
from piaget.prior.sites import Sites, matching, said, touching

STEPS, MOST_STEPS, NEAR = 3, 50, 0.1  # of Newton's method; by how much weights move near the mode
SWEEPS, CLOSE, CLOSEST = 50, 1e-3, 1e-5  # of matching; when sites, in units of what is believed, are still
PIECE = 2048  # rows that are matched at once
CHUNK = 2**22  # numbers in a batch of features


class Batch(NamedTuple):
    """Rows of some tasks, padded to one length."""

    features: Tensor  # (t, n, d)
    y: Tensor  # (t, n)
    mask: Tensor  # (t, n)


@dataclass(frozen=True, eq=False)
class LabelTerms:
    """Of classifications: rows, what they are taken to say, and what was settled."""

    batches: tuple[Batch, ...]
    settled: Quadratic  # (T, C, ...)
    sites: tuple[Sites, ...]  # of the rows of each batch
    w: Tensor  # (T, C, d): weights, where sites touch; of two classes as expected before the last sweep
    mu: Tensor  # (C, d): of more than two classes
    terms: Quadratic  # (T, C, ...): of all rows

    @property
    def matches(self) -> bool:
        """Whether rows match moments, instead of touching."""
        return self.w.shape[1] == 1

    def sites_of(self, task: int, rows: int) -> Sites:
        """Of the first rows of a task: a copy, which does not keep those of a whole batch in memory."""
        for batch, sites in zip(self.batches, self.sites, strict=True):
            if task < len(batch.y):
                return Sites(*(part[task, :rows].clone() for part in sites))
            task -= len(batch.y)
        raise IndexError(task)

    def refreshed(self, parts: Components) -> tuple[LabelTerms, float]:
        """Adapted to these components; and by how much it changed at last."""
        if not self.matches:
            return self._climbed(parts)

        def belief(terms: Quadratic) -> Posterior:
            return task_posterior(terms, parts.root, infer(terms, parts.root, parts.width).mu)

        return self._matched(belief, CLOSE)

    def apart(self, root: Tensor, width: Tensor, others: Quadratic) -> LabelTerms:
        """Each task adapted to these components alone with others, which say this of mu."""
        if not self.matches:
            return self._climbed_apart(root, width, others)

        def belief(terms: Quadratic) -> Posterior:
            return task_posterior(terms, root, beside(integrate(terms, root).message, others, width).mu)

        return self._matched(belief, CLOSEST)[0]

    # --- two classes: matching ---------------------------------------------------------------------------

    def _matched(self, belief: Callable[[Quadratic], Posterior], close: float) -> tuple[LabelTerms, float]:
        """Sweeps until sites are still. A task whose sites move more than in the sweep before goes half as
        far."""
        now, share = self, torch.ones(len(self.w), dtype=self.w.dtype)
        before = torch.full_like(share, torch.inf)
        for _ in range(SWEEPS):
            found = belief(now.terms)
            pairs = [
                matched(batch, old, Posterior(*(part[:, 0] for part in own)))
                for batch, old, own in zip(self.batches, now.sites, now._split(*found), strict=True)
            ]
            moved = torch.cat([one for _, one in pairs])
            share = torch.where(moved > before, (share / 2).clamp(min=0.1), share)
            sites = tuple(
                between(old, new, part)
                for old, (new, _), (part,) in zip(now.sites, pairs, now._split(share), strict=True)
            )
            now = replace(now, sites=sites, w=found.mean, terms=_terms(self.batches, self.settled, sites))
            before = moved
            if float(moved.max()) < close:
                break
        return now, float(moved.max())

    # --- more classes: touching at the mode --------------------------------------------------------------

    def _climbed(self, parts: Components) -> tuple[LabelTerms, float]:
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
                return self._touching(w, mu), moved
            share /= 2
        return self, 0.0

    def _touching(self, w: Tensor, mu: Tensor) -> LabelTerms:
        """At these weights."""
        parts = zip(self.batches, self._split(w), strict=True)
        sites = tuple(touching(batch.features @ part.mT, batch.y) for batch, (part,) in parts)
        return replace(self, sites=sites, w=w, mu=mu, terms=_terms(self.batches, self.settled, sites))

    def _climbed_apart(self, root: Tensor, width: Tensor, others: Quadratic) -> LabelTerms:
        """Newton steps to each task's own mode, as far as its density rises."""

        def height(w: Tensor, mu: Tensor) -> Tensor:
            return self._densities(w, mu, root) + (others.at(mu) - (mu / width).square().sum(-1) / 2).sum(-1)

        now, w, mu = self, self.w, self.mu.expand(self.w.shape)
        for _ in range(MOST_STEPS):
            messages = integrate(now.terms, root).message
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
            now = self._touching(w, self.mu)
            if float((share * to_w).abs().max()) < 1e-6:
                break
        return now

    def _height(self, w: Tensor, mu: Tensor, root: Tensor, width: Tensor) -> Tensor:
        """(): log p(y | w) + log p(w | mu) + log p(mu), but for constants."""
        return self._densities(w, mu, root).sum() - (mu / width).square().sum() / 2

    def _densities(self, w: Tensor, mu: Tensor, root: Tensor) -> Tensor:
        """(T,): log p(y | w) + log p(w | mu), but for constants."""
        parts = zip(self.batches, self._split(w), strict=True)
        rows = torch.cat([log_likelihood(*batch, part) for batch, (part,) in parts])
        z = torch.linalg.solve_triangular(root, (w - mu).unsqueeze(-1), upper=False)
        return rows + self.settled.at(w).sum(-1) - z.square().sum((1, 2, 3)) / 2

    def _split(self, *parts: Tensor) -> list[tuple[Tensor, ...]]:
        """Of each batch's tasks."""
        sizes = [len(batch.y) for batch in self.batches]
        return list(zip(*(part.split(sizes) for part in parts), strict=True))


def matched(batch: Batch, old: Sites, belief: Posterior) -> tuple[Sites, Tensor]:
    """Sites that match moments beside what is believed of weights (t, d), (t, d, d); and by how much they
    moved (t,)."""
    mean = (batch.features @ belief.mean.unsqueeze(-1))[..., 0]
    variance = ((batch.features @ belief.covariance) * batch.features).sum(-1).clamp(min=1e-12)
    new = Sites(*(part.clone() for part in old))
    for rows in batch.mask.flatten().nonzero()[:, 0].split(PIECE):  # that fit a cache
        at, spread, y = (part.flatten()[rows] for part in (mean, variance, batch.y))
        after = matching(at, spread, y, Sites(*(part.flatten(0, 1)[rows] for part in old)))
        fine = torch.stack([part.reshape(len(rows)).isfinite() for part in after]).all(0)
        for part, one in zip(new, after, strict=True):
            part.flatten(0, 1)[rows[fine]] = one[fine]
    steps = (new.precision - old.precision)[..., 0], (new.linear - old.linear)[..., 0]
    moved = torch.maximum(steps[0].abs() * variance, (steps[1] - mean * steps[0]).abs() * variance.sqrt())
    return new, (moved * batch.mask).amax(-1)


def between(old: Sites, new: Sites, share: Tensor) -> Sites:
    """So far (t,) from the old to the new. Constants are new: nothing else depends on them."""
    by = share[:, None, None]
    precision, linear = (torch.lerp(a, b, by) for a, b in zip(old[:2], new[:2], strict=True))
    return Sites(precision, linear, new.constant)


def _terms(batches: Sequence[Batch], settled: Quadratic, sites: Sequence[Sites]) -> Quadratic:
    found = [said(batch.features, own, batch.mask) for batch, own in zip(batches, sites, strict=True)]
    return Quadratic(*(s + torch.cat(p) for s, p in zip(settled, zip(*found, strict=True), strict=True)))


def label_terms(
    records: Sequence[Labels], frame: Frame, w: Tensor, known: Sequence[Sites | None]
) -> LabelTerms:
    """Of records in the frame's features. w: (T, C, d) weights to begin with; known: what each task's first
    rows were taken to say. Other rows touch at w; of two classes, at zero, since far out they would say
    nothing, or anything."""
    batches, sites, start = [], [], 0
    longest = [max(len(record.y), 1) for record in records]
    while start < len(records):
        end, most = start + 1, longest[start]
        while end < len(records) and max(most, longest[end]) * (end + 1 - start) * frame.width <= CHUNK:
            most = max(most, longest[end])
            end += 1
        batch = _batch(records[start:end], most, frame)
        batches.append(batch)
        zero = torch.zeros(*batch.y.shape, 1, dtype=w.dtype)
        outputs = zero if w.shape[1] == 1 else batch.features @ w[start:end].mT
        sites.append(_begun(touching(outputs, batch.y), known[start:end]))
        start = end
    settled = _settled(records, w)
    return LabelTerms(tuple(batches), settled, tuple(sites), w, w.mean(0), _terms(batches, settled, sites))


def _begun(sites: Sites, known: Sequence[Sites | None]) -> Sites:
    """With what is known of tasks' first rows in its place."""
    for task, own in enumerate(known):
        if own is not None:
            for part, new in zip(sites, own, strict=True):
                part[task, : len(new)] = new
    return sites


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
