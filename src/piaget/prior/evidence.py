"""Components by evidence: how much tasks differ, in which directions, and how many directions that is worth.

    Sigma = Phi Phi' + diag(D)        Phi: (d, k) directions that tasks share; D: what is a task's own
    D = spread exp(own)               own ~ N(0, 1): inputs differ in it, but not without reason
    Phi = sqrt(spread) directions     directions ~ N(0, 1)
    mu's variance = common            spread and common are a block's of features, log-normal and wide

The values that maximise evidence x prior are found by L-BFGS with the exact gradient. For directions a
maximum says little: with every direction it rises. What a direction is worth is its evidence with its own
weights integrated out (Laplace; their curvature is that of a regression on the tasks' coordinates): one
is added if that is higher, and left out if it is higher without.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from piaget.prior.climbing import climb
from piaget.prior.gaussian import Components, Inference, coordinates, infer, slopes, stiffness
from piaget.prior.likelihoods import Likelihoods

WIDE = 3.0  # deviation of the logarithms of scales
COMMON, SPREAD = (0.0, math.log(0.1)), (math.log(0.1), math.log(0.02))  # expected, of the blocks
TURNS, STEPS = 8, 15  # of components and likelihoods; of L-BFGS in a turn
CLOSE, SMALL = 1e-2, 0.02  # when it has converged: how much likelihoods still change, and the evidence gains
MOST_DIRECTIONS = 12


class Scales(NamedTuple):
    """Logarithms of variances, and directions."""

    common: Tensor  # (blocks,)
    spread: Tensor  # (blocks,)
    own: Tensor  # (d,)
    directions: Tensor  # (d, k)

    @property
    def k(self) -> int:
        return self.directions.shape[1]

    def flat(self) -> Tensor:
        return torch.cat([part.flatten() for part in self])

    def like(self, flat: Tensor) -> Scales:
        """The same shapes, with these numbers."""
        parts = flat.split([part.numel() for part in self])
        return Scales(*(new.reshape(old.shape) for new, old in zip(parts, self, strict=True)))


def components_of(scales: Scales, blocks: Tensor) -> Components:
    """blocks: (d,) int64."""
    unit = (scales.spread[blocks] / 2).exp()
    own = unit.square() * scales.own.exp()
    phi = unit[:, None] * scales.directions
    root = torch.linalg.cholesky(phi @ phi.mT + torch.diag(own))
    return Components((scales.common[blocks] / 2).exp(), phi, own, root, unit)


def first_scales(blocks: Tensor) -> Scales:
    """Before any task: the prior's own means, and no directions."""
    d = len(blocks)
    common, spread = (torch.tensor(part, dtype=torch.float64) for part in (COMMON, SPREAD))
    return Scales(common, spread, torch.zeros(d, dtype=torch.float64), torch.zeros(d, 0, dtype=torch.float64))


def height(scales: Scales, likelihoods: Likelihoods, blocks: Tensor) -> tuple[Tensor, Scales, Inference]:
    """log evidence + log prior (directions' normaliser left out: see `occam`), and its gradient."""
    parts = components_of(scales, blocks)
    found = infer(likelihoods.terms, parts.root, parts.width)
    slope = slopes(found)
    by_own = slope.diagonal() * parts.own
    by_phi = 2 * slope.times(parts.phi)
    by_block = torch.zeros_like(scales.spread)
    first = first_scales(blocks)
    off = Scales(
        (scales.common - first.common) / WIDE**2,
        (scales.spread - first.spread) / WIDE**2,
        scales.own,
        scales.directions,
    )
    gradient = Scales(
        by_block.index_add(0, blocks, slope.width * parts.width.square()) - off.common,
        by_block.index_add(0, blocks, by_own + (by_phi * parts.phi).sum(1) / 2) - off.spread,
        by_own - off.own,
        by_phi * parts.unit[:, None] - off.directions,
    )
    differences = (scales.common - first.common, scales.spread - first.spread, scales.own, scales.directions)
    prior = -sum((gap * part).sum() for gap, part in zip(differences, off, strict=True)) / 2
    return found.evidence + prior, gradient, found


def occam(scales: Scales, found: Inference, blocks: Tensor) -> float:
    """What the freedom of the directions costs: log det(their curvature, in units of their prior's) / 2."""
    parts = components_of(scales, blocks)
    inner = stiffness(found, parts, coordinates(found, parts.phi).square())
    return float(torch.linalg.slogdet(inner)[1].sum() / 2) if scales.k else 0.0


class Fit(NamedTuple):
    """Scales and likelihoods that suit each other, and what they are worth."""

    scales: Scales
    likelihoods: Likelihoods
    worth: float


def fit(
    scales: Scales,
    likelihoods: Likelihoods,
    blocks: Tensor,
    turns: int = TURNS,
    steps: int = STEPS,
    to_beat: float = -math.inf,
) -> Fit:
    """With as many directions as there are: components and likelihoods by turns. Given up where further
    turns, were each to gain as much as the last one, would not lead to a worth `to_beat`."""
    highest = -math.inf
    for left in reversed(range(turns)):

        def objective(
            flat: Tensor, like: Scales = scales, given: Likelihoods = likelihoods
        ) -> tuple[Tensor, Tensor]:
            try:
                value, gradient, _ = height(like.like(flat), given, blocks)
            except torch.linalg.LinAlgError:  # type: ignore[attr-defined]  # variances beyond rounding
                return torch.tensor(-math.inf, dtype=torch.float64), torch.zeros_like(flat)
            return value, gradient.flat()

        scales = scales.like(climb(objective, scales.flat(), steps))
        parts = components_of(scales, blocks)
        likelihoods, change = likelihoods.refreshed(parts)
        value, _, found = height(scales, likelihoods, blocks)
        gain, worth = float(value) - highest, float(value) - occam(scales, found, blocks)
        if (change < CLOSE and gain < SMALL) or worth + left * max(gain, 0) < to_beat:
            break
        highest = max(highest, float(value))
    return Fit(scales, likelihoods, worth)


def grown(best: Fit, blocks: Tensor, patience: int = 1) -> Fit:
    """Directions are added as long as that is worth it: each begins where the evidence rises most."""
    at, failures = best, 0
    while at.scales.k < min(MOST_DIRECTIONS, len(blocks)) and failures < patience:
        at = fit(_with_direction(at, blocks), at.likelihoods, blocks, to_beat=best.worth)
        if at.worth > best.worth + 0.1:
            best, failures = at, 0
        else:
            failures += 1
    return best


def _with_direction(at: Fit, blocks: Tensor) -> Scales:
    unit = components_of(at.scales, blocks).unit
    found = height(at.scales, at.likelihoods, blocks)[2]
    steep = unit[:, None] * slopes(found).times(torch.diag(unit))
    upward = torch.linalg.eigh((steep + steep.mT) / 2)[1][:, -1]
    return at.scales._replace(directions=torch.cat([at.scales.directions, 0.7 * upward[:, None]], 1))


def pruned(best: Fit, blocks: Tensor) -> Fit:
    """Without the directions that are no longer worth it, the weakest first."""
    while best.scales.k:
        weakest = int(best.scales.directions.square().sum(0).argmin())
        rest = [j for j in range(best.scales.k) if j != weakest]
        less = best.scales._replace(directions=best.scales.directions[:, rest])
        without = fit(less, best.likelihoods, blocks, to_beat=best.worth)
        if without.worth < best.worth:
            break
        best = without
    return best
