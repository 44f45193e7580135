"""What knowledge answers, with how sure it is; for tasks that are known and for those that are not."""

from __future__ import annotations

import functools
import math
import statistics
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from piaget.data.plain import is_number, shown
from piaget.errors import SettingError
from piaget.prior.correcting import moderated, seen, spread_of
from piaget.prior.knowledge import Knowledge
from piaget.prior.labels import chances


class Values(NamedTuple):
    """Predicted values, how far new measurements are from them, and how surely that is known: all (n,). They
    are of Student's distribution: with few degrees of freedom, far ones are more frequent than normal.

    >>> from piaget import prior
    >>> low, high = prior.Values(torch.zeros(1), torch.ones(1), torch.full((1,), 3.0)).interval(0.9)
    >>> high.round(decimals=2)
    tensor([2.3500])
    """

    mean: Tensor
    deviation: Tensor
    dof: Tensor

    def interval(self, level: float) -> tuple[Tensor, Tensor]:
        """Between which values a new measurement lies, with this probability: low (n,), high (n,)."""
        if not is_number(level) or not 0 < level < 1:
            raise SettingError(f"level={shown(level)}; expected a probability between 0 and 1")
        half = student(level, self.dof) * self.deviation
        return self.mean - half, self.mean + half


def student(level: float, dof: Tensor) -> Tensor:
    """So many deviations to each side hold a variable of Student's distribution with this probability."""
    known, place = dof.unique(return_inverse=True)
    return torch.tensor([_student(level, float(f"{one:.3g}")) for one in known.tolist()])[place].to(dof)


@functools.lru_cache(10_000)
def _student(level: float, dof: float) -> float:
    """With t = sqrt(dof) tan(a), the density of the angle a is cos(a)**(dof - 1)."""
    if dof > 1000:
        return statistics.NormalDist().inv_cdf((1 + level) / 2)
    edges = np.linspace(0, math.pi / 2, 20_001)
    share = np.cumsum(np.cos((edges[1:] + edges[:-1]) / 2) ** (dof - 1))
    angle = np.interp(level, share / share[-1], edges[1:])
    return math.sqrt(dof) * math.tan(angle)


def values(known: Knowledge, x: Tensor, task: str | None) -> Values:
    """Of a regression's rows x (n, inputs), in its own units. A task that is not known gets the prior's
    mean.

    >>> from piaget import prior
    >>> x, y = torch.eye(6).double(), torch.arange(6).double()
    >>> known = prior.learn(prior.begin("regression", trees=False), "a", x, y)
    >>> [tuple(part.shape) for part in prior.values(known, x, "never seen")]
    [(6,), (6,), (6,)]
    """
    if known.form.kind != "regression":
        raise SettingError(f"the tasks are {known.form.kind}: they have probabilities, no values")
    if known.bent is not None:
        return values(known.bent.known, known.bent.bumps.beside(x), task)
    out, variance = _outputs(known, x, task)
    own = None if task is None else known.structures.get(task)
    noise = known.noise.level if own is None else own.log_noise
    origin, unit = known.standard_frame.origin, known.standard_frame.unit
    deviation = ((variance[:, 0] + math.exp(noise)) * known.ratio).sqrt()
    dof = torch.full_like(deviation, known.dof(task))
    return Values(origin + unit * _corrected(known, x, out, task)[:, 0], unit * deviation, dof)


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
    if known.bent is not None:
        return probabilities(known.bent.known, known.bent.bumps.beside(x), task)
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
    inputs = seen(known.correction.edges, x, out, level)
    added = torch.from_numpy(np.asarray(known.correction.answer(inputs.numpy())))
    return (out + added).clamp(*known.reach)
