"""Which rows are in which batch of an epoch, drawn from the run's own generator.

Plain replay runs over the shuffled union of the task's own samples and all stored ones. With a share, each
batch has that share of stored samples, and all past tasks count alike, however many samples each has stored:
the task's own samples are seen once each, stored ones as often as there is room for.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from piaget.engine.layout import Part
from piaget.engine.stage import Stage
from piaget.method.trees import resize, rounded


class Order(NamedTuple):
    """The rows of an epoch: S batches of B places, of which the first ones are filled."""

    rows: Tensor  # (S, B)
    weight: Tensor  # (S, B) bool: False for padding


def draw_order(stage: Stage, part: Part) -> Order:
    """One epoch over one part."""
    settings, generator = stage.settings, stage.state.generator
    (bank,) = part.banks
    if bank.task is None or settings.adaptation.share is None:
        return shuffled(len(bank.targets.column), settings.batch_size, generator)
    whose = bank.task.cpu()
    own, past = (torch.nonzero(rows).flatten() for rows in (whose == 0, whose > 0))
    lengths = whose[past].bincount()[1:]  # of each past task; those of a part are numbered one by one
    # Stored samples of another form have a part of their own: each part has its tasks' portion of the places.
    places = stage.stored_rows * len(lengths) / len(stage.replay)
    counts = batch_counts(len(own), places, settings.batch_size)
    replayed = past[balanced(lengths, sum(stored for _, stored in counts), generator)]
    return _filled(own[torch.randperm(len(own), generator=generator)], replayed, counts, settings.batch_size)


def shuffled(n: int, batch_size: int | None, generator: torch.Generator) -> Order:
    """All of n rows, once each."""
    size = batch_size or rounded(n, 2)
    steps = math.ceil(n / size)
    # All samples in one batch need no shuffling.
    order = torch.arange(n) if batch_size is None else torch.randperm(n, generator=generator)
    index = resize(order, 0, steps * size).view(steps, size)
    return Order(index, (torch.arange(steps * size) < n).view(steps, size))


def batch_counts(own: int, places: float, batch_size: int | None) -> list[tuple[int, int]]:
    """How many of a task's own rows and of stored ones each batch has.

    own: the task's rows; 0: the part has stored ones alone. places: for stored ones, over the whole epoch, up
    to rounding: each batch has at least one of them, and one of the task's own, if there are any.
    """
    if own == 0:
        stored = max(1, round(places))
        size = batch_size or stored
        return [(0, min(size, stored - start)) for start in range(0, stored, size)]
    if batch_size is None:
        return [(own, max(1, round(places)))]
    stored = min(max(1, round(batch_size * places / (own + places))), batch_size - 1)
    fresh = batch_size - stored
    whole, left = divmod(own, fresh)
    # A last batch with fewer of the task's own has fewer stored ones, too: its share is the same.
    return [(fresh, stored)] * whole + ([(left, -(-stored * left // fresh))] if left else [])


def balanced(lengths: Tensor, places: int, generator: torch.Generator) -> Tensor:
    """Stored rows for so many places, numbered task by task: (places,).

    lengths (T,): how many each task has. The tasks take turns, in a new order each round, so that no task has
    two places more than another; a task's rows take turns, too, in an order that is drawn once.
    """
    tasks, rounds = len(lengths), math.ceil(places / len(lengths))
    turn = torch.rand(rounds, tasks, generator=generator).argsort(1)  # (rounds, T)
    whose = torch.arange(tasks).repeat_interleave(lengths)
    drawn = torch.rand(len(whose), generator=generator, dtype=torch.float64)
    order = (whose + drawn).argsort()  # a task's rows stay together, and are shuffled
    first = lengths.cumsum(0) - lengths
    rows = order[first[turn] + torch.arange(rounds)[:, None] % lengths[turn]]
    return rows.flatten()[:places]


def _filled(own: Tensor, stored: Tensor, counts: list[tuple[int, int]], batch_size: int | None) -> Order:
    """Batches of so many of both, the stored ones first."""
    of_own, of_stored = torch.tensor(counts).unbind(1)
    size = batch_size or rounded(int((of_own + of_stored).max()), 2)
    place = torch.arange(size)  # (B,)
    from_stored = place < of_stored[:, None]  # (S, B)
    weight = place < (of_own + of_stored)[:, None]
    index = torch.zeros(len(counts), size, dtype=torch.int64)
    index[from_stored] = stored
    index[weight & ~from_stored] = own
    return Order(index, weight)
