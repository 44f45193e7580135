"""How well tasks are told from each other by their inputs, and answered without being named."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from piaget.data.arrays import as_labels
from piaget.data.tasks import Split, Task
from piaget.method import objective
from piaget.scoring.inferring import FALSE_ALARM, Recognition, answers, labels_of
from piaget.scoring.rows import (
    FALSE_ALARMS,
    IN_TENS,
    TAKEN_FOR,
    TASK_INFERRED,
    UNKNOWN_AUC,
    UNKNOWN_NOTICED,
)

TOGETHER = 10  # inputs of one task, in rows about inference from several


@dataclass(frozen=True, eq=False)
class _Known:
    """A known task's held-out inputs, and what is inferred of them."""

    task: Task
    split: Split
    scores: Tensor  # (n, tasks)
    known: Tensor  # (n,): the largest p-values


def agnostic_scores(
    recognition: Recognition, known: Sequence[Task], unknown: Sequence[Task], split: str
) -> Iterator[tuple[str, dict[str, float]]]:
    """What is to be said of each task: {metric: value}. Tasks are told from each other among all that the
    learner knows, and `unknown` ones, which it does not know, from these."""
    of_known = []
    for task in known:
        data = getattr(task, split)
        if data is None:
            continue
        scores = recognition.scores(data.x)
        compared, p_values = recognition.of_each(scores)
        one = _Known(task, data, scores, p_values.max(1).values)
        of_known.append(one)
        alarms = float((one.known <= FALSE_ALARM).double().mean())
        values = _of_task(recognition, one, compared) | {FALSE_ALARMS: alarms}
        yield task.name, values | _taken(recognition, compared, p_values)
    for task in unknown:
        data = getattr(task, split)
        if data is None or not of_known:
            continue
        compared, p_values = recognition.of_each(recognition.scores(data.x))
        new = p_values.max(1).values
        old = torch.cat([one.known for one in of_known])
        told = objective.auc(torch.cat([old, new]), torch.cat([torch.ones(len(old)), torch.zeros(len(new))]))
        assert told is not None
        noticed = float((new <= FALSE_ALARM).double().mean())
        values = {UNKNOWN_AUC: told, UNKNOWN_NOTICED: noticed}
        yield task.name, values | _taken(recognition, compared, p_values)


def _taken(recognition: Recognition, compared: Tensor, p_values: Tensor) -> dict[str, float]:
    """The shares of a task's inputs that are taken for those of each task: only of tasks that some are."""
    found = recognition.answered(compared, p_values, FALSE_ALARM).answers
    counts = Counter(found)
    return {TAKEN_FOR.format(name): counts[name] / len(found) for name in recognition.tasks if counts[name]}


def _of_task(recognition: Recognition, one: _Known, compared: Tensor) -> dict[str, float]:
    """The shares that are inferred rightly, and scores of the answers that follow from it."""
    right = list(recognition.tasks).index(one.task.name)
    found = compared.argmax(1)
    values = {TASK_INFERRED: float((found == right).double().mean())}
    values |= _scored(recognition, one, found, torch.arange(len(found)), TASK_INFERRED)
    groups = len(found) // TOGETHER
    if groups:
        order = torch.randperm(len(found), generator=torch.Generator().manual_seed(0))[: groups * TOGETHER]
        in_tens, _ = recognition.of_groups(one.scores[order].unflatten(0, (groups, TOGETHER)))
        best = in_tens.argmax(1)
        values[IN_TENS] = float((best == right).double().mean())
        values |= _scored(recognition, one, best.repeat_interleave(TOGETHER), order, IN_TENS)
    return values


def _scored(recognition: Recognition, one: _Known, found: Tensor, rows: Tensor, how: str) -> dict[str, float]:
    """The score of what the inferred tasks answer to these rows. A classification that is taken for a
    regression is wrong; of a regression that is taken for a classification there is no error."""
    record = recognition.state.records[one.task.name]
    names = [recognition.tasks[column] for column in found.tolist()]
    truth = one.split.y[rows]
    metric = f"{objective.metric_name(record.kind)} with {how}"
    right, squares = 0, 0.0
    for places, other, out in answers(recognition, one.split.x[rows], names):
        told = labels_of(other, out)
        if record.kind == "regression":
            if other.kind != "regression":
                return {}
            squares += float(np.square(told - truth[places].numpy()).sum())
        elif other.kind != "regression":
            expected = truth[places].numpy()
            expected = as_labels(record.labels)[expected] if record.labels else expected
            right += int(sum(a == b for a, b in zip(told.tolist(), expected.tolist(), strict=True)))
    if record.kind == "regression":
        return {metric: math.sqrt(squares / len(rows))}
    return {metric: right / len(rows)}
