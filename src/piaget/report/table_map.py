"""Groups of a table by what they share: a map, with what its directions mean."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from piaget.prior_learner import PriorLearner
from piaget.report.table_data import DirectionData, MapData
from piaget.report.table_inputs import NUMBER, inputs_of

DIRECTIONS, LEAST = 4, 0.02  # that are told, at most; the share of all differences from which on
LEAST_GROUPS = 3
NOTICED = 1e-3  # from which on, as a deviation of weights among groups, a difference is one
NEAR = 3  # groups that are named as like another
LEVEL = "level"  # what a weight is of, if it is not of an input
NAMED, CLEAR = 4, 0.35  # inputs that a direction is told by, at most; compared with its strongest one


def map_of(learner: PriorLearner, target: str) -> MapData | None:
    """target: what a regression's values are called. None: groups share nothing in which they differ, or
    there are too few of them."""
    known = learner.known.answering
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
    weights, subjects = _weights(learner), subjects_of(learner, target)
    is_class = bool(learner.labels)
    return MapData(
        groups=list(known.tasks),
        places=[[round(value, 4) for value in place] for place in places[:, kept].tolist()],
        near=_near(known.tasks, shared),
        directions=[_direction(shares[i].item(), loadings[i], weights, subjects, is_class) for i in kept],
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


def subjects_of(learner: PriorLearner, target: str) -> list[str]:
    """What each output (C of them) is about."""
    labels = [str(label) for label in learner.labels]
    return labels[1:] if len(labels) == 2 else labels or [target]


class Weight(NamedTuple):
    """What a weight is of."""

    kind: str
    name: str = ""  # of the input, unless it is the level
    opposite: str = ""  # of a category with two values, the input of the other one
    along: str = ""  # a column along which the group bends: the weight counts near a place there
    place: str = ""


def _direction(
    share: float, loadings: Tensor, weights: list[Weight], subjects: list[str], is_class: bool
) -> DirectionData:
    """loadings: (C d,), the weights of the direction. That a category points to a class, and the other one
    of two away from it, is said once; and so is what is said of several inputs, or of several places."""
    d = len(weights)
    values, order = loadings.abs().sort(descending=True, stable=True)
    alike: dict[_Saying, list[int]] = {}
    for i in order[values >= CLEAR * values[0]][:NAMED].tolist():
        one, subject, more = weights[i % d], subjects[i // d], bool(loadings[i] > 0)
        said = _Saying(subject, more, one.kind, one.along, one.name if one.along else "")
        against = alike.get(said._replace(more=not more), ())
        if not one.opposite or one.opposite not in [weights[other].name for other in against]:
            alike.setdefault(said, []).append(i % d)
    words = [
        # Places are in order; inputs are told with the strongest first.
        _words(said, [weights[i] for i in (sorted(numbers) if said.along else numbers)], is_class)
        for said, numbers in alike.items()
    ]
    return DirectionData(share=round(share, 4), words=words)


class _Saying(NamedTuple):
    """What is said alike of several weights."""

    subject: str
    more: bool
    kind: str
    along: str
    name: str  # of the input, if it is said of places


def _words(said: _Saying, weights: list[Weight], is_class: bool) -> str:
    names = [one.name for one in weights]
    if not said.along:
        return _told(said.subject, said.more, said.kind, names, is_class)
    places = _listed([one.place for one in weights])
    what = _told(said.subject, said.more, said.kind, names[:1], is_class)
    return f"{what} where {said.along} is near {places}"


def _weights(learner: PriorLearner) -> list[Weight]:
    """Of all that answers: the level, inputs, and bumps over them."""
    known = learner.known
    inputs = inputs_of(learner, len(known.standard_frame.center))
    weights = [Weight(LEVEL), *(Weight(one.kind, one.name, one.opposite) for one in inputs)]
    if known.bent is not None:
        bumps = known.bent.bumps
        for (column, other), middle in zip(bumps.bends, bumps.middle.tolist(), strict=True):
            what = Weight(LEVEL) if other is None else weights[1 + other]._replace(opposite="")
            weights.append(what._replace(along=inputs[column].name, place=inputs[column].told(middle)))
    return weights


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _told(subject: str, more: bool, kind: str, names: list[str], is_class: bool) -> str:
    """names: of inputs, unless it is of the level."""
    if kind == LEVEL:
        now = ("more frequent" if more else "rarer") if is_class else ("higher" if more else "lower")
        return f"{subject} is {now}"
    one, listed = len(names) == 1, _listed(names)
    if is_class:
        what = f"higher {listed}" if kind == NUMBER else listed
        return f"{what} {'points' if one else 'point'} {'more' if more else 'less'} towards {subject}"
    return f"{listed} {'raise' if more else 'lower'}{'s' * one} {subject} more"
