"""Groups of a table by what they share: a map, with what its directions mean."""

from __future__ import annotations

import torch
from torch import Tensor

from piaget.prior_learner import PriorLearner
from piaget.report.table_data import DirectionData, MapData

DIRECTIONS, LEAST = 4, 0.02  # that are told, at most; the share of all differences from which on
NEAR = 3  # groups that are named as like another
NAMED, CLEAR = 4, 0.35  # inputs that a direction is told by, at most; compared with its strongest one


def map_of(learner: PriorLearner) -> MapData | None:
    """None: groups share nothing in which they differ, or there are too few of them."""
    known = learner.known
    if learner.components == 0 or len(known.tasks) < 3:
        return None
    psi = torch.stack(list(known.coordinates().values()))  # (T, C, k)
    shared = (psi @ known.components.phi.mT).flatten(1)  # (T, C d): what components add to weights
    shared = shared - shared.mean(0)
    # Components themselves are known up to a rotation; principal directions are not.
    left, size, right = torch.linalg.svd(shared, full_matrices=False)
    shares = size.square() / size.square().sum().clamp(min=1e-30)
    kept = [i for i, share in enumerate(shares[:DIRECTIONS].tolist()) if share >= LEAST]
    if not kept:
        return None
    strongest = right.abs().argmax(1, keepdim=True)
    sign = right.gather(1, strongest)[:, 0].sign()
    places, loadings = left * size * sign, right * sign[:, None]
    names = _names(learner)
    return MapData(
        groups=list(known.tasks),
        places=[[round(value, 4) for value in place] for place in places[:, kept].tolist()],
        near=_near(known.tasks, shared),
        directions=[_direction(shares[i].item(), loadings[i], names) for i in kept],
    )


def _near(tasks: list[str], shared: Tensor) -> list[list[str]]:
    """Of each task, those whose shared weights are nearest."""
    distances = torch.cdist(shared, shared).fill_diagonal_(torch.inf)
    order = distances.argsort(dim=1, stable=True)[:, : min(NEAR, len(tasks) - 1)]
    return [[tasks[i] for i in row] for row in order.tolist()]


def _names(learner: PriorLearner) -> list[str]:
    """Of all weights, (C d) of them: the level, and the inputs; for each class, if there are many."""
    encoding = learner.encoding()
    count = torch.Size(learner.common.input_shape).numel()
    inputs = encoding.inputs if encoding is not None else [f"input {i}" for i in range(count)]
    names = ["the level", *inputs]
    if len(learner.labels) <= 2:
        return names
    return [f"{name} for {label}" for label in learner.labels for name in names]


def _direction(share: float, loadings: Tensor, names: list[str]) -> DirectionData:
    values, order = loadings.abs().sort(descending=True, stable=True)
    named = [i for value, i in zip(values.tolist(), order.tolist(), strict=True) if value >= CLEAR * values[0]]
    more = [names[i] for i in named[:NAMED] if loadings[i] > 0]
    less = [names[i] for i in named[:NAMED] if loadings[i] < 0]
    return DirectionData(share=round(share, 4), more=more, less=less)
