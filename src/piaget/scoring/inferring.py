"""Of which task are these inputs? And what is the answer to inputs whose task nobody names?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from piaget.data.arrays import as_labels, as_tensor
from piaget.data.columns import is_table
from piaget.data.plain import is_number, plain, shown
from piaget.errors import DataError, PiagetError, SettingError, TaskError
from piaget.knowledge import noting
from piaget.knowledge.state import State, TaskRecord
from piaget.method import objective
from piaget.method.settings import Settings
from piaget.scoring.scores import TaskNetwork

TIE = 1e-9  # relative difference of scores that are the same
FALSE_ALARM = 0.05  # the share of a known task's inputs that may be taken for those of none


@dataclass(frozen=True, eq=False)
class Inferred:
    """Of which tasks some inputs are.

    answers: the name of a task for each input (or one in all, if they were asked about together); None: it is
    of none of the tasks.
    tasks: the names of all tasks, in the order of the columns of both that follow.
    scores: (n, tasks), the higher, the likelier; minus infinity, where an input cannot be one of the task's.
    p_values: (n, tasks), the share of the task's own inputs that are as unlikely as this one.

    >>> x = np.random.default_rng(0).normal(size=(400, 2)) + np.repeat([[0.0], [20.0]], 200, axis=0)
    >>> tasks = piaget.streams.from_arrays(x, np.arange(400) % 2, groups=np.repeat(["north", "south"], 200))
    >>> learner = piaget.Learner(inference="inputs", initial_tasks=2, epochs=2, width=8)
    >>> for task in tasks:
    ...     rows = learner.learn(task)
    >>> inferred = learner.infer(np.array([[0.0, 0.0], [20.0, 20.0], [90.0, -90.0]]))
    >>> inferred
    Inferred('north': 1, 'south': 1, None: 1)
    >>> inferred.answers
    ['north', 'south', None]
    >>> inferred.p_values.shape, bool(inferred.known[2] < 0.05)
    ((3, 2), True)
    """

    answers: list[str | None]
    tasks: list[str]
    scores: np.ndarray
    p_values: np.ndarray

    @property
    def known(self) -> np.ndarray:
        """(n,): the largest p-value. The lower, the more an input looks like one of no known task."""
        return self.p_values.max(1)

    def __repr__(self) -> str:
        counts = {name: self.answers.count(name) for name in [*self.tasks, None] if name in self.answers}
        return f"Inferred({', '.join(f'{name!r}: {count}' for name, count in counts.items())})"


@dataclass(frozen=True, eq=False)
class Recognition:
    """Tells of which of a learner's finished tasks inputs are, by what was noted when these ended."""

    settings: Settings
    state: State
    tasks: Sequence[str]

    def __post_init__(self) -> None:
        if not self.tasks:
            raise SettingError("no task has been learned yet; expected one or more to infer")
        part, missing = self.settings.inference, noting.missing(self.state, self.tasks)
        if not part.notes:
            raise SettingError(
                "nothing was noted of the tasks' inputs, so no task can be inferred: name it (task=...), "
                "make learners with inference='inputs', or give this one the tasks that it has learned: "
                "note_inputs(tasks)"
            )
        if missing:
            raise SettingError(f"of {_some(missing)} nothing was noted: call note_inputs(tasks) with them")

    def infer(self, x: Any, together: bool = False, false_alarm: float = FALSE_ALARM) -> Inferred:
        """Of which tasks the inputs x (n, *shape) are; together: all are of one."""
        if not isinstance(together, bool):
            raise SettingError(f"together={together!r}; expected True or False")
        false_alarm = plain(false_alarm)
        if not is_number(false_alarm) or not 0 <= false_alarm < 1:
            raise SettingError(f"false_alarm={shown(false_alarm)}; expected a share, at least 0 and below 1")
        return self._infer(self.scores(x), together, false_alarm)

    def infer_each(self, x: Any, together: bool) -> list[str | None]:
        """The answer for each input, also where they are all asked about together."""
        scores = self.scores(x)
        answers = self._infer(scores, together, FALSE_ALARM).answers
        return answers * len(scores) if together else answers

    def _infer(self, scores: Tensor, together: bool, false_alarm: float) -> Inferred:
        if together and not len(scores):
            raise TaskError("together: there is no input; expected at least one")
        both = self.of_groups(scores[None]) if together else self.of_each(scores)
        return self.answered(*both, false_alarm)

    def scores(self, x: Any) -> Tensor:
        """(n, tasks), float64, by what each task's note says; minus infinity: x cannot be of the task."""
        columns: list[Tensor | None] = []
        refused: list[PiagetError] = []
        for name in self.tasks:
            record = self.state.records[name]
            try:
                columns.append(self._scores(record, x))
            except (TaskError, DataError) as error:
                refused.append(error)
                columns.append(None)
        n = next((len(column) for column in columns if column is not None), None)
        if n is None:  # no task has such inputs: is it at least something that could be an input?
            n = len(_as_inputs(x, refused[0]))
        none = torch.full((n,), -math.inf, dtype=torch.float64)
        return torch.stack([none if column is None else column for column in columns], 1)

    def _scores(self, record: TaskRecord, x: Any) -> Tensor:
        network = TaskNetwork(self.settings, self.state, record)
        network.inputs(x)  # says what is wrong with them
        if record.encoding is not None and is_table(x):
            x = record.encoding.encode(x)
        return self.scores_of(record, as_tensor(f"task {record.name!r}", x, "fiub"))

    def scores_of(self, record: TaskRecord, x: Tensor) -> Tensor:
        """(n,): of inputs as the task's own are given."""
        assert record.note is not None
        seen = noting.seen(self.settings, self.state, record, x)
        return noting.scored(self.settings.inference, noting.statistics_of(record.note), seen)

    # --- from scores to tasks ---------------------------------------------------------------------------

    def of_each(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (n, tasks) that can be compared, and p-values: the share of held-out samples and the input
        itself that score no higher. Of a task's own inputs, at most a share `a` has a p-value up to `a`."""
        p_values = torch.empty_like(scores)
        for column, held in enumerate(self._held):
            below = sum(_ranks(held, scores[:, column]))
            p_values[:, column] = (below + 1) / (len(held) + 1)
        return self._compared(scores), p_values.masked_fill(scores == -math.inf, 0.0)

    def of_groups(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """The same of groups (g, n, tasks) of n inputs of one task each: (g, tasks) both.

        P-values are those of the rank-sum test of Mann and Whitney, which holds whatever the distribution of
        scores: of all pairs of one of the n inputs and one of m held-out ones, in how many is the input's
        score the higher one? Of a known task's inputs, in nearly normally many, around n m / 2, with the
        variance n m (n + m + 1) / 12.
        """
        n = scores.shape[1]
        if n == 1:
            return self.of_each(scores[:, 0])
        p_values = torch.empty(len(scores), len(self.tasks), dtype=torch.float64)
        for column, held in enumerate(self._held):
            pairs = n * len(held)
            lower, ties = _ranks(held, scores[:, :, column])
            higher = (lower + ties / 2).sum(1)
            deviation = math.sqrt(pairs * (n + len(held) + 1) / 12)
            p_values[:, column] = torch.special.ndtr((higher + 0.5 - pairs / 2) / deviation)
        impossible = (scores == -math.inf).any(1)
        return self._compared(scores).mean(1), p_values.masked_fill(impossible, 0.0)

    def answered(self, scores: Tensor, p_values: Tensor, false_alarm: float) -> Inferred:
        """The likeliest of the tasks that do not refuse an input."""
        refused = (p_values <= false_alarm) & (false_alarm > 0)  # with 0, nothing that fits is refused
        best = scores.masked_fill(refused, -math.inf)
        answers = [
            self.tasks[column] if score > -math.inf else None
            for score, column in zip(best.max(1).values.tolist(), best.argmax(1).tolist(), strict=True)
        ]
        return Inferred(answers, list(self.tasks), scores.numpy(), p_values.numpy())

    @property
    def _held(self) -> list[Tensor]:
        notes = [self.state.records[name].note for name in self.tasks]
        return [note[noting.HELD] for note in notes if note is not None]

    def _compared(self, scores: Tensor) -> Tensor:
        """Where each task has a scale of its own: how far a score is above the mean of its held-out ones, in
        standard deviations."""
        if self.settings.inference.comparable:
            return scores
        means = torch.stack([held.mean() for held in self._held])
        spreads = torch.tensor([_spread(held) for held in self._held], dtype=torch.float64)
        return (scores - means) / spreads


def _ranks(held: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    """How many of the held-out scores are lower than each of these, and how many are the same: up to
    rounding, which depends on how many inputs are computed together."""
    near = TIE * (1 + scores.abs())
    least, most = (torch.searchsorted(held, edge.contiguous()) for edge in (scores - near, scores + near))
    return least.double(), (most - least).double()


def _spread(held: Tensor) -> float:
    return float(held.std()) + 1e-9 if len(held) > 1 else 1.0


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:3])) + (", ..." if len(names) > 3 else "")
    return f"task{'s' * (len(names) > 1)} {shown}"


def _as_inputs(x: Any, refused: PiagetError) -> np.ndarray:
    """Inputs that no task could take, if they are finite numbers with a sample axis; else it is said why."""
    array = None if is_table(x) else np.asarray(x)
    if array is None or array.ndim < 2 or array.dtype.kind not in "fiub" or not np.isfinite(array).all():
        raise refused
    return array


# --- answers without a task -------------------------------------------------------------------------------


def answers(
    recognition: Recognition, x: Any, inferred: Sequence[str | None]
) -> Iterator[tuple[list[int], TaskRecord, Tensor]]:
    """For each task that was inferred: the places of its inputs, the task, its network's outputs for them."""
    for name in dict.fromkeys(inferred):
        if name is None:
            continue
        places = [i for i, other in enumerate(inferred) if other == name]
        network = TaskNetwork(recognition.settings, recognition.state, recognition.state.records[name])
        yield places, network.record, network.outputs(network.inputs(x)[places])


def labels_of(record: TaskRecord, out: Tensor) -> np.ndarray:
    """What the task answers, by its outputs (n, columns): labels, or values in the user's units."""
    answer = record.scaling.values(objective.predict(record.kind, out).cpu())
    return as_labels(record.labels)[answer.numpy()] if record.labels else answer.numpy()


def probabilities_of(record: TaskRecord, out: Tensor) -> Tensor:
    """Of a classification's outputs (n, columns): (n, classes)."""
    if record.kind == "regression":
        raise SettingError(f"task {record.name!r} is a regression: it has values, no probabilities")
    return objective.probabilities(record.kind, out).cpu()


def inferred_labels(recognition: Recognition, x: Any, together: bool) -> np.ndarray:
    """What the inferred tasks answer: (n,) objects, None for inputs of none of the tasks."""
    found = recognition.infer_each(x, together)
    told = np.full(len(found), None, dtype=object)
    for places, record, out in answers(recognition, x, found):
        told[places] = labels_of(record, out).tolist()
    return told


def inferred_probabilities(recognition: Recognition, x: Any, together: bool) -> list[dict[Any, float] | None]:
    """The inferred tasks' labels with their probabilities, for each input."""
    found = recognition.infer_each(x, together)
    told: list[dict[Any, float] | None] = [None] * len(found)
    for places, record, out in answers(recognition, x, found):
        labels = record.labels or range(record.classes)
        for place, row in zip(places, probabilities_of(record, out).tolist(), strict=True):
            told[place] = dict(zip(labels, row, strict=True))
    return told
