"""What each row of labels is taken to say of its outputs: a quadratic, so that tasks stay Gaussian.

A logistic likelihood is no Gaussian. One of two quadratics takes its place. The first touches it at given
outputs (Laplace), which is right where rows are many. With twenty rows a task, or a rare class, large weights
seem less likely than they are, and tasks more alike. The second (of two classes) matches moments: with all
other rows as they are taken, the row has the same probability, and its output the same mean and variance, as
by its true likelihood (expectation propagation, Minka 2001). What is said of a row's output does not depend
on the units of its inputs, so it stays true when features are standardised anew.

Shapes: n rows, C outputs; any number of axes before them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from piaget.prior.gaussian import Quadratic
from piaget.prior.labels import misses, row_likelihood

NODES, REACH = 31, 6.0  # of sums over an output, and how many deviations they go to each side
NEWTON = 8  # steps to the place that such sums are centred at; it need not be exact
LEAST = 1e-10  # of a precision: rows that say nothing


class Sites(NamedTuple):
    """constant + linear'f - precision f**2 / 2, summed over outputs f, for each row."""

    precision: Tensor  # (..., n, C)
    linear: Tensor  # (..., n, C)
    constant: Tensor  # (..., n)

    def rows(self, chosen: Tensor | slice) -> Sites:
        """Of some rows, where there is no axis before them."""
        return Sites(*(part[chosen] for part in self))


def touching(outputs: Tensor, y: Tensor) -> Sites:
    """What agrees with the log-likelihood at outputs (..., n, C) in value and slope; in curvature, too, but
    for what outputs have in common."""
    slope, curve = misses(outputs, y)
    at = row_likelihood(outputs, y) - (slope * outputs).sum(-1) - (curve * outputs.square()).sum(-1) / 2
    return Sites(curve, slope + curve * outputs, at)


def matching(mean: Tensor, variance: Tensor, y: Tensor, old: Sites) -> Sites:
    """What gives outputs the moments that the likelihood would give them, beside what other rows say. Of two
    classes.

    mean, variance: (..., n), what is believed of the outputs, with what the rows were taken to say.
    """
    precision = (1 / variance - old.precision[..., 0]).clamp(min=LEAST)  # without the row itself
    center = (mean / variance - old.linear[..., 0]) / precision
    log_mass, new_mean, new_variance = moments(center, 1 / precision, torch.where(y == 1, 1.0, -1.0))
    curve = (1 / new_variance - precision).clamp(min=LEAST)
    linear = new_mean / new_variance - precision * center
    both = precision + curve
    gaussian = (precision / both).log() / 2
    gaussian = gaussian + ((precision * center + linear).square() / both - precision * center.square()) / 2
    return Sites(curve[..., None], linear[..., None], log_mass - gaussian)


def moments(center: Tensor, variance: Tensor, sign: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of N(f; center, variance) sigmoid(sign f): the logarithm of its mass, its mean and its variance, by
    sums over nodes about its peak. They are dense where it bends, and reach as far as the Gaussian alone
    would: it falls at least as fast."""
    # From where the sigmoid bends, or from the center beyond it, steps lead to the peak without turning.
    peak = sign * (sign * center).clamp(min=0)
    for _ in range(NEWTON):
        wrong = torch.sigmoid(-sign * peak)
        peak = peak + (sign * wrong - (peak - center) / variance) / (wrong * (1 - wrong) + 1 / variance)
    wrong = torch.sigmoid(-sign * peak)
    width = (wrong * (1 - wrong) + 1 / variance).rsqrt()
    far = torch.asinh(REACH * variance.sqrt() / width)
    grown = (far[..., None] * torch.linspace(-1, 1, NODES, dtype=far.dtype, device=far.device)).exp()
    f = peak[..., None] + width[..., None] * (grown - 1 / grown) / 2  # (..., nodes): a sinh
    log_density = functional.logsigmoid(sign[..., None] * f) - (f - center[..., None]).square() / (
        2 * variance[..., None]
    )
    top = log_density.amax(-1, keepdim=True)
    weight = (log_density - top).exp() * (grown + 1 / grown)
    mass = weight.sum(-1)
    mean = (weight * f).sum(-1) / mass
    spread = (weight * (f - mean[..., None]).square()).sum(-1) / mass
    step = width * far / (NODES - 1)
    return (mass * step).log() + top[..., 0] - (2 * math.pi * variance).log() / 2, mean, spread


def said(features: Tensor, sites: Sites, mask: Tensor | None = None) -> Quadratic:
    """What rows with these features (T, n, d) say of tasks' weights: (T, C, ...)."""
    if mask is not None:
        sites = Sites(*(part * mask.reshape(mask.shape + (1,) * (part.ndim - 2)) for part in sites))
    precision = torch.stack(
        [features.mT @ (c.unsqueeze(-1) * features) for c in sites.precision.unbind(-1)], 1
    )
    linear = (features.mT @ sites.linear).mT
    constant = torch.zeros(linear.shape[:2], dtype=linear.dtype)
    constant[:, 0] = sites.constant.sum(-1)
    return Quadratic(precision, linear, constant)
