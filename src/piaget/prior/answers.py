"""What knowledge answers, with how sure it is; for tasks that are known and for those that are not."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from piaget.errors import SettingError
from piaget.prior.correcting import moderated, spread_of
from piaget.prior.knowledge import Knowledge
from piaget.prior.labels import chances


class Values(NamedTuple):
    """Predicted values (n,), and the standard deviation of a new measurement from them (n,).

    >>> from piaget import prior
    >>> prior.Values(torch.zeros(3), torch.ones(3)).deviation
    tensor([1., 1., 1.])
    """

    mean: Tensor
    deviation: Tensor


def values(known: Knowledge, x: Tensor, task: str | None) -> Values:
    """Of a regression's rows x (n, inputs), in its own units. A task that is not known gets the prior's
    mean.

    >>> from piaget import prior
    >>> x, y = torch.eye(6).double(), torch.arange(6).double()
    >>> known = prior.learn(prior.begin("regression", trees=False), "a", x, y)
    >>> [tuple(part.shape) for part in prior.values(known, x, "never seen")]
    [(6,), (6,)]
    """
    if known.form.kind != "regression":
        raise SettingError(f"the tasks are {known.form.kind}: they have probabilities, no values")
    out, variance = _outputs(known, x, task)
    own = None if task is None else known.structures.get(task)
    noise = known.noise.level if own is None else own.log_noise
    origin, unit = known.standard_frame.origin, known.standard_frame.unit
    deviation = ((variance[:, 0] + math.exp(noise)) * known.ratio).sqrt()
    return Values(origin + unit * _corrected(known, x, out, task)[:, 0], unit * deviation)


def probabilities(known: Knowledge, x: Tensor, task: str | None) -> Tensor:
    """(n, classes), with what is not known of the weights integrated out.

    >>> from piaget import prior
    >>> x, y = torch.eye(6).double(), torch.arange(6) % 2
    >>> known = prior.learn(prior.begin("binary", 2, trees=False), "a", x, y)
    >>> prior.probabilities(known, x, "a").shape
    torch.Size([6, 2])
    """
    if known.form.kind == "regression":
        raise SettingError("the tasks are regressions: they have values, no probabilities")
    p = chances(_corrected(known, x, moderated(*_outputs(known, x, task)), task))
    return torch.cat([1 - p, p], 1) if p.shape[1] == 1 else p


def _outputs(known: Knowledge, x: Tensor, task: str | None) -> tuple[Tensor, Tensor]:
    """Mean and variance by the task's weights: (n, C) each."""
    belief = known.posterior(task if task in known.records else None)
    features = known.standard_frame.features(x)
    return features @ belief.mean.mT, spread_of(features, belief.covariance)


def _corrected(known: Knowledge, x: Tensor, out: Tensor, task: str | None) -> Tensor:
    """What the weights say, within reach, and corrected by trees."""
    out = out.clamp(*known.reach)
    if known.correction is None:
        return out
    level = known.posterior(task if task in known.records else None).mean[:, 0]
    inputs = torch.cat([x.float().double(), out, level.expand(len(x), -1)], 1)  # x as rows are kept
    added = torch.from_numpy(np.asarray(known.correction.answer(inputs.numpy())))
    return (out + added).clamp(*known.reach)
