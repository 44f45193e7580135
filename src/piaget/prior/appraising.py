"""How well what is known explains tasks that are not: before they are learned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from piaget.prior.gaussian import beside, integrate, others_of
from piaget.prior.knowledge import Knowledge
from piaget.prior.learning import checked, expected
from piaget.prior.records import record_of


class Appraisal(NamedTuple):
    """How well other tasks explain a task's rows: log-density a row, given theirs (more is better), and what
    is usual, which is that of the known tasks, each given the others, with the deviation among them.

    >>> from piaget import prior
    >>> x, y = torch.eye(6).double(), torch.arange(6).double()
    >>> known = prior.learn(prior.begin("regression", trees=False), "a", x, y)
    >>> isinstance(prior.appraise(known, x, y), prior.Appraisal)
    True
    """

    found: float
    usual: float
    deviation: float


def appraise(known: Knowledge, x: Tensor, y: Tensor) -> Appraisal:
    """Of rows of a task that is not known; nothing is learned. (`assimilate` gives knowledge that also knows
    it, components as they are: for scores on other rows of it.)

    >>> from piaget import prior
    >>> x, y = torch.eye(6).double(), torch.arange(6).double()
    >>> known = prior.learn(prior.begin("regression", trees=False), "a", x, y)
    >>> found = prior.appraise(known, x, 100 * y)
    >>> found.found < found.usual
    True
    """
    return appraise_many(known, {"the new one": (x, y)})["the new one"]


def appraise_many(known: Knowledge, rows: Mapping[str, tuple[Tensor, Tensor]]) -> dict[str, Appraisal]:
    """The same for many tasks at once, {task: (x (n, inputs), y (n,))}: each as if it came alone.

    >>> from piaget import prior
    >>> x, y = torch.eye(6).double(), torch.arange(6).double()
    >>> known = prior.learn(prior.begin("regression", trees=False), "a", x, y)
    >>> list(prior.appraise_many(known, {"b": (x, y), "c": (x, 2 * y)}))
    ['b', 'c']
    """
    if not rows:
        return {}
    frame, _, _ = known.begun
    root, width, structure = known.components.root, known.components.width, expected(known)
    new = replace(
        known,
        records={task: record_of(frame, *checked(known, task, x, y)) for task, (x, y) in rows.items()},
        structures=dict.fromkeys(rows, structure),
    )
    before = known.inference
    terms = new.likelihoods.apart(root, width, before.total).terms
    found = beside(integrate(terms, root).message, before.total, width).evidence
    usual = beside(before.messages, others_of(before.messages), width).evidence / _counts(known)
    spread = float(usual.std()) if len(usual) > 1 else math.inf
    each = (found / _counts(new)).tolist()
    return {task: Appraisal(one, float(usual.mean()), spread) for task, one in zip(rows, each, strict=True)}


def _counts(known: Knowledge) -> Tensor:
    """(T,): rows of each task."""
    return torch.tensor([float(record.n) for record in known.records.values()], dtype=torch.float64)
