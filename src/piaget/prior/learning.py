"""Learning: a task is assimilated with components as they are; components adapt by the evidence of all
tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from piaget.errors import TaskError, unknown_task
from piaget.prior.adapting import adapt, anew, standard_all, taken
from piaget.prior.bending import correct
from piaget.prior.correcting import GROWTH, LEAST_ROWS, SOON, wants_trees
from piaget.prior.evidence import first_scales
from piaget.prior.features import frame_of
from piaget.prior.gaussian import Quadratic, combine, integrate
from piaget.prior.knowledge import Knowledge, Structure
from piaget.prior.records import record_of, together, within

ALWAYS, SHARE = 10, 0.1  # components adapt at each of the first tasks, then when that share of rows is new
LARGEST_INPUT, LARGEST_VALUE = 1e37, 1e100  # rows are kept with 32 bits, values are squared
MANY, WORK = 100, 3e7  # tasks, and tasks x features^3: beyond, directions are reconsidered when it is settled


def learn(known: Knowledge, task: str, x: Tensor, y: Tensor) -> Knowledge:
    """Learns a new task from its rows x (n, inputs) and y (n,), values or class numbers.

    Assimilation is the posterior of its weights, components as they are: of a regression exactly, of labels
    with what other tasks' rows were taken to say before. Components adapt to all tasks' records when enough
    is new; `settled` makes them.

    Raises `TaskError` if the task is known, or its rows cannot be learned.

    >>> from piaget import prior
    >>> x, y = torch.eye(6).double(), torch.arange(6).double()
    >>> known = prior.learn(prior.begin("regression", trees=False), "a", x, y)
    >>> known.tasks
    ['a']
    """
    if task in known.records:
        raise TaskError(f"task {task!r} is known; update it with new rows, or forget it first")
    return _added(known, task, x, y)


def update(known: Knowledge, task: str, x: Tensor, y: Tensor) -> Knowledge:
    """More rows of a task that is known. For a regression, the same as if they had been there at once.

    Raises `UnknownTaskError` if it is not known, `TaskError` if its rows cannot be learned.

    >>> from piaget import prior
    >>> x, y = torch.eye(6).double(), torch.arange(6).double()
    >>> known = prior.learn(prior.begin("regression", trees=False), "a", x, y)
    >>> prior.update(known, "a", x, y).rows
    12
    """
    _check_known(known, task)
    return _added(known, task, x, y)


def forget(known: Knowledge, *tasks: str) -> Knowledge:
    """As if the tasks had never been learned: their records are gone, and what was drawn from them is
    estimated anew, from the beginning, by the records of the others.

    Raises `UnknownTaskError` if one is not known.

    >>> from piaget import prior
    >>> x, y = torch.eye(6).double(), torch.arange(6).double()
    >>> known = prior.learn(prior.begin("regression", trees=False), "a", x, y)
    >>> prior.forget(prior.learn(known, "b", x, y), "a").tasks
    ['b']
    """
    for task in tasks:
        _check_known(known, task)
    left = {name: record for name, record in known.records.items() if name not in tasks}
    return settled(anew(replace(known, records=left))) if left else Knowledge(known.form)


def _check_known(known: Knowledge, task: str) -> None:
    if task not in known.records:
        raise unknown_task(task, known.tasks)


def _added(known: Knowledge, task: str, x: Tensor, y: Tensor) -> Knowledge:
    x, y = checked(known, task, x, y)
    if known.frame is None:
        known = replace(known, frame=frame_of(x, y))
    known = _tended(assimilate(known, task, x, y), task)
    least = max(GROWTH * known.corrected, LEAST_ROWS)
    if wants_trees(known) and least <= known.rows <= SOON:
        # Bends are looked for when knowledge is settled: on the way, it would take too long each time.
        known = correct(known, bends=known.bent is not None).holding(known.held)
    return known


def _tended(known: Knowledge, task: str) -> Knowledge:
    """After rows of a task came: adapted, if that is due, and with no more of its rows than are kept."""
    if _due(known):
        tasks, features = len(known.records), known.begun[0].width
        known = adapt(known, thorough=tasks <= MANY and tasks * features**3 <= WORK)
    held = known.held  # what follows does not change what tasks say
    known = _trimmed(known, task)
    if known.bent is not None:
        known = replace(known, bent=known.bent._replace(known=_tended(known.bent.known, task)))
    return known.holding(held)


def _due(known: Knowledge) -> bool:
    return len(known.records) <= ALWAYS or known.rows >= known.adapted.rows * (1 + SHARE)


def assimilate(known: Knowledge, task: str, x: Tensor, y: Tensor) -> Knowledge:
    """With the task's rows in its record, components as they are: what `try_task` asks about. What others say
    is taken as it is, so that it takes no longer the more of them there are.

    >>> from piaget import prior
    >>> x, y = torch.eye(6).double(), torch.arange(6).double()
    >>> known = prior.learn(prior.begin("regression", trees=False), "a", x, y)
    >>> prior.assimilate(known, "b", x[:2], y[:2]).tasks
    ['a', 'b']
    """
    assert known.frame is not None
    frame, record = known.frame, record_of(known.frame, x, y)
    if task in known.records:
        record = together(known.records[task], record)
    alone = replace(
        known,
        records={task: record},
        structures={task: known.structures.get(task) or expected(known)},
        standard=known.standard or standard_all({task: record}),
        scales=known.scales or first_scales(frame.blocks),
    )
    root, width = alone.components.root, alone.components.width
    number = known.tasks.index(task) if task in known.records else len(known.records)
    before, after = known.messages(number)
    others = Quadratic(*(a.sum(0) + b.sum(0) for a, b in zip(before, after, strict=True)))
    likelihoods = alone.likelihoods.apart(root, width, others)
    message = integrate(likelihoods.terms, root).message
    messages = Quadratic(*(torch.cat(parts) for parts in zip(before, message, after, strict=True)))
    structures = taken(alone, likelihoods).structures
    bent = known.bent
    if bent is not None:
        bent = bent._replace(known=assimilate(bent.known, task, bent.bumps.beside(x), y))
    return replace(
        alone,
        records={**known.records, task: record},
        structures={**known.structures, **structures},
        bent=bent,
    ).holding(combine(messages, width))


def expected(known: Knowledge) -> Structure:
    """Of a task that is not known: mu, and the usual noise."""
    assert known.frame is not None
    w = torch.zeros(known.form.outputs, known.frame.width, dtype=torch.float64)
    if known.records:
        w = known.inference.mu.mean @ known.begun[1].map.mT
    return Structure(w, known.noise.level)


def _trimmed(known: Knowledge, task: str) -> Knowledge:
    """With no more rows of the task than are to be kept; labels are settled as what they are taken to say."""
    record = known.records[task]
    if len(record.y) <= known.form.rows:
        return known
    structure = known.structures[task]
    shorter, sites = within(record, known.begun[0], known.form.rows, structure.sites)
    return replace(
        known,
        records={**known.records, task: shorter},
        structures={**known.structures, task: structure._replace(sites=sites)},
    )


def settled(known: Knowledge) -> Knowledge:
    """With components and correction adapted to all that was learned: for knowledge that is used for long.

    >>> from piaget import prior
    >>> x, y = torch.eye(6).double(), torch.arange(6).double()
    >>> known = prior.learn(prior.begin("regression", trees=False), "a", x, y)
    >>> prior.settled(known).tasks
    ['a']
    """
    if known.records and known.adapted != (len(known.records), known.rows, True):
        known = adapt(known)
    if known.records and wants_trees(known) and {known.corrected, known.looked} != {known.rows}:
        known = correct(known)
    return known


def checked(known: Knowledge, task: str, x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """A task's rows, if they can be learned."""
    x, y = torch.as_tensor(x), torch.as_tensor(y)
    where = f"task {task!r}"
    if x.ndim != 2 or y.shape != x.shape[:1] or not len(x):
        raise TaskError(
            f"{where}: inputs {tuple(x.shape)}, targets {tuple(y.shape)}; expected (n, inputs), (n,)"
        )
    if known.frame is not None and x.shape[1] != len(known.frame.center):
        raise TaskError(
            f"{where}: {x.shape[1]} inputs; expected {len(known.frame.center)}, as in other tasks"
        )
    if not torch.isfinite(x.double()).all() or not torch.isfinite(y.double()).all():
        raise TaskError(f"{where}: NaN or infinite numbers; expected finite ones")
    if (x.double().abs() > LARGEST_INPUT).any() or (y.double().abs() > LARGEST_VALUE).any():
        raise TaskError(
            f"{where}: inputs beyond {LARGEST_INPUT:g}, or targets beyond {LARGEST_VALUE:g}: too large to "
            "compute with"
        )
    if known.form.classes and (
        y.is_floating_point() or int(y.min()) < 0 or int(y.max()) >= known.form.classes
    ):
        raise TaskError(f"{where}: labels are not 0 to {known.form.classes - 1}; expected class numbers")
    return x, y.double() if known.form.kind == "regression" else y.long()
