"""Groups of a table by what they share: a map, with what its directions mean."""

from __future__ import annotations

import torch
from torch import Tensor

from piaget.prior_learner import PriorLearner
from piaget.report.table_data import DirectionData, MapData

DIRECTIONS, LEAST = 4, 0.02  # that are told, at most; the share of all differences from which on
LEAST_GROUPS = 3
NOTICED = 1e-3  # from which on, as a deviation of weights among groups, a difference is one
NEAR = 3  # groups that are named as like another
LEVEL, NUMBER, CATEGORY = "level", "number", "category"  # what a weight is of
NAMED, CLEAR = 4, 0.35  # inputs that a direction is told by, at most; compared with its strongest one


def map_of(learner: PriorLearner, target: str) -> MapData | None:
    """target: what a regression's values are called. None: groups share nothing in which they differ, or
    there are too few of them."""
    known = learner.known
    if learner.components == 0 or len(known.tasks) < LEAST_GROUPS:
        return None
    psi = torch.stack(list(known.coordinates().values()))  # (T, C, k)
    shared = (psi @ known.components.phi.mT).flatten(1)  # (T, C d): what components add to weights
    shared = shared - shared.mean(0)
    # Components themselves are known up to a rotation; principal directions are not.
    left, size, right = torch.linalg.svd(shared, full_matrices=False)
    if size[0] < NOTICED * len(known.tasks) ** 0.5:
        return None
    shares = size.square() / size.square().sum()
    kept = [i for i, share in enumerate(shares[:DIRECTIONS].tolist()) if share >= LEAST]
    if not kept:
        return None
    strongest = right.abs().argmax(1, keepdim=True)
    sign = right.gather(1, strongest)[:, 0].sign()
    places, loadings = left * size * sign, right * sign[:, None]
    subjects = _subjects(learner, target)
    return MapData(
        groups=list(known.tasks),
        places=[[round(value, 4) for value in place] for place in places[:, kept].tolist()],
        near=_near(known.tasks, shared),
        directions=[_direction(shares[i].item(), loadings[i], learner, subjects) for i in kept],
    )


def why_no_map(learner: PriorLearner) -> str:
    """A sentence, where `map_of` finds nothing to draw."""
    groups = len(learner.known.tasks)
    if groups < LEAST_GROUPS:
        return f"There is no map, since there are too few groups: {groups}, and {LEAST_GROUPS} are needed."
    return (
        "There is no map, since no direction was found in which some groups differ from others together: a "
        "group's weights are what all have in common, and a rest of its own."
    )


def _near(tasks: list[str], shared: Tensor) -> list[list[str]]:
    """Of each task, those whose shared weights are nearest."""
    distances = torch.cdist(shared, shared).fill_diagonal_(torch.inf)
    order = distances.argsort(dim=1, stable=True)[:, : min(NEAR, len(tasks) - 1)]
    return [[tasks[i] for i in row] for row in order.tolist()]


def _subjects(learner: PriorLearner, target: str) -> list[str]:
    """What each output (C of them) is about."""
    labels = [str(label) for label in learner.labels]
    return labels[1:] if len(labels) == 2 else labels or [target]


def _direction(share: float, loadings: Tensor, learner: PriorLearner, subjects: list[str]) -> DirectionData:
    """loadings: (C d,), the weights of the direction."""
    d = loadings.numel() // len(subjects)
    inputs, kinds, others = _inputs(learner, d)
    values, order = loadings.abs().sort(descending=True, stable=True)
    alike: dict[tuple[str, bool, str], list[str]] = {}  # what is said of several inputs is said once
    for i in order[values >= CLEAR * values[0]][:NAMED].tolist():
        subject, more = subjects[i // d], bool(loadings[i] > 0)
        if others[i % d] not in alike.get((subject, not more, CATEGORY), ()):
            alike.setdefault((subject, more, kinds[i % d]), []).append(inputs[i % d])
    words = [_told(*key, names, bool(learner.labels)) for key, names in alike.items()]
    return DirectionData(share=round(share, 4), words=words)


def _inputs(learner: PriorLearner, d: int) -> tuple[list[str], list[str], list[str]]:
    """Of each weight: the input that it is of, its kind, and of a category with two values, the other one:
    that the one points to a class and the other away from it is said once."""
    inputs, kinds, others = [""], [LEVEL], [""]
    encoding = learner.encoding()
    for column in encoding.columns if encoding is not None else ():
        n = 1 if column.levels is None else len(column.levels)
        inputs += column.inputs
        kinds += [NUMBER if column.levels is None else CATEGORY] * n + [CATEGORY] * (len(column.inputs) - n)
        others += column.inputs[1::-1] if n == 2 else [""] * n
        others += [""] * (len(column.inputs) - n)
    more = range(len(inputs) - 1, d - 1)  # of a learner without columns
    return inputs + [f"input {i}" for i in more], kinds + [NUMBER for _ in more], others + ["" for _ in more]


def _told(subject: str, more: bool, kind: str, names: list[str], is_class: bool) -> str:
    """names: of inputs, unless it is of the level."""
    if kind == LEVEL:
        now = ("more frequent" if more else "rarer") if is_class else ("higher" if more else "lower")
        return f"{subject} is {now}"
    one, listed = len(names) == 1, " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    if is_class:
        what = f"higher {listed}" if kind == NUMBER else listed
        return f"{what} {'points' if one else 'point'} {'more' if more else 'less'} towards {subject}"
    return f"{listed} {'raise' if more else 'lower'}{'s' * one} {subject} more"
