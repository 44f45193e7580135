"""What a prior learner answers: predictions, how sure they are, and scores. `PriorLearner` learns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from piaget import prior
from piaget.data.arrays import as_labels
from piaget.data.class_weight import ClassWeight, check_class_weight, check_classes, weights_of
from piaget.data.columns import as_text
from piaget.data.encoding import Encoding
from piaget.data.tasks import Task
from piaget.errors import SettingError, UnknownTaskError, note, unknown_task
from piaget.knowledge.common import Common, Label
from piaget.knowledge.prior_storage import Lessons, PriorState
from piaget.scoring.answer_scores import Answers
from piaget.scoring.rows import COLUMNS, PRIOR_METHOD, Row
from piaget.streams.table_notes import note_other_groups
from piaget.streams.table_predictions import predict_table

NOTHING = "nothing is known yet; learn a task first"


class PriorAnswers:
    """What is known, and what follows from it. Whoever learns changes `_state`."""

    _state: PriorState
    _settled: tuple[prior.Knowledge, prior.Knowledge] | None

    def __repr__(self) -> str:
        common, known = self._state.common, self._state.known
        if common is None or known is None:
            return f"<{type(self).__name__}: no task yet>"
        asked = self._settled is not None and self._settled[0] is known
        tasks, k = len(known.tasks), shared_by(self.known if asked else known)
        told = f"{tasks} task{'s' * (tasks != 1)}, {common.kind}, {known.rows:,} rows"
        return f"<{type(self).__name__}: {told}, {k} component{'s' * (k != 1)}>"

    @property
    def _known(self) -> prior.Knowledge:
        if self._state.known is None or not self._state.known.tasks:
            raise UnknownTaskError(NOTHING)
        return self._state.known

    @property
    def known(self) -> prior.Knowledge:
        """All that is known, adapted to all that was learned. (What is learned next does not depend on
        whether anybody asked.)"""
        now = self._known
        if self._settled is None or self._settled[0] is not now:
            self._settled = now, prior.settled(now)
        return self._settled[1]

    @property
    def common(self) -> Common:
        """What all tasks have in common."""
        if self._state.common is None:
            raise UnknownTaskError(NOTHING)
        return self._state.common

    @property
    def lessons(self) -> Mapping[str, Lessons]:
        """What was learned of each task, and when: its batches of rows, by their marks."""
        return self._state.lessons

    @property
    def seed(self) -> int:
        """As rows have it."""
        return self._state.seed

    @property
    def tasks(self) -> list[str]:
        """The names of the tasks that have been learned."""
        return list(self._state.lessons)

    @property
    def components(self) -> int:
        """How many directions tasks share, in what answers."""
        return shared_by(self.known) if self.tasks else 0

    @property
    def labels(self) -> tuple[Label, ...]:
        """Of the classes, in the order of `predict_proba`'s columns; a regression has none."""
        return self.common.labels

    def encoding(self, task: str | Task | None = None) -> Encoding | None:
        """How rows of a table become inputs, the same for all tasks; None: they came from no table."""
        return self.common.encoding

    @property
    def class_weight(self) -> ClassWeight | None:
        """How much errors count, by the true class: "balanced", or weights by label. It decides which class
        is answered, not how probable it is, and may be set at any time."""
        return self._state.class_weight

    @class_weight.setter
    def class_weight(self, value: Any) -> None:
        weight = check_class_weight(value)
        if self._state.common is not None:
            check_classes(weight, self.labels)
        self._state = replace(self._state, class_weight=weight)

    def class_weights(self) -> dict[Label, float]:
        """By which answers are chosen, as `class_weight` says: {label: weight}; 1, if it says nothing."""
        weights = self.answer_weights
        return (
            dict.fromkeys(self.labels, 1.0)
            if weights is None
            else dict(zip(self.labels, weights.tolist(), strict=True))
        )

    @property
    def answer_weights(self) -> Tensor | None:
        """The same, (classes,); None: all count the same."""
        return self._weights(self._known)

    def _weights(self, known: prior.Knowledge) -> Tensor | None:
        return weights_of(self.class_weight, self.labels, known.class_counts)

    def structures(self) -> dict[str, Tensor]:
        """Where each task lies along the directions that tasks share: {task: (components, outputs)}."""
        places = self.known.answering.coordinates() if self.tasks else {}
        return {name: psi.mT.clone() for name, psi in places.items()}

    def answers(self, x: Any, task: str | None) -> Answers:
        """For inputs x (n, *shape) or rows of a table. None, or a task that is not known: by what tasks
        have in common, less sure."""
        inputs = self.common.inputs(f"task {task!r}", x)
        return self.answered(inputs, task)

    def answered(self, x: Tensor, task: str | None) -> Answers:
        """The same for inputs x (n, inputs) as `common` has them."""
        return self._answered(self.known, x, task)

    def _answered(self, known: prior.Knowledge, x: Tensor, task: str | None) -> Answers:
        if self.common.labels:
            return Answers(prior.probabilities(known, x, task), weights=self._weights(known))
        return Answers(None, prior.values(known, x, task))

    def infer(self, x: Any) -> None:
        """Of which task inputs are is not modelled here: an error that says so, and what else there is."""
        raise SettingError(
            "a prior learner models what a row's target is, not how its inputs are distributed: it cannot "
            "infer of which task they are; name the task (one that was never seen is answered by what tasks "
            "have in common), or use a piaget.Learner(inference='inputs')"
        )

    def predict(self, x: Any, task: str | Task | None = None) -> Any:
        """Class labels or values for inputs x (n, *shape), or rows of a table. A task that is not known is
        answered by what tasks have in common, with a note. Classes: by `class_weight`."""
        said, labels = self._asked(x, task), self.common.labels
        if said.numbers is not None:
            return said.values if isinstance(x, Tensor) else said.values.numpy()
        number = said.classes
        if isinstance(x, Tensor) and labels == tuple(range(len(labels))):
            return number
        return as_labels(labels)[number.numpy()]

    def predict_proba(self, x: Any, task: str | Task | None = None) -> Any:
        """Class probabilities (n, classes), in the order of `labels`."""
        said = self._asked(x, task).probabilities
        if said is None:
            raise SettingError("the tasks are regressions: they have values, no probabilities (interval)")
        return said if isinstance(x, Tensor) else said.numpy()

    def predict_table(
        self,
        rows: Any,
        *,
        proba: bool = False,
        interval: float | None = None,
        threshold: float | None = None,
    ) -> Any:
        """The rows (a table or its path) with more columns: what is predicted for each, by its group, and
        whether from own rows or from other groups. proba: also the probability of each class. interval: also
        between which values a measurement lies, with this probability. threshold: of two classes, the second
        one from this probability on."""
        return predict_table(self, rows, proba=proba, interval=interval, threshold=threshold)

    def module(self, task: str | Task) -> nn.Module:
        """A plain module, from inputs (n, *shape) to what `predict_proba` says, or to a regression's values:
        with copies of all that it needs, in 64 bits, to be exported and served without the rest. Of a task
        that is not known: by what tasks have in common, with a note. (`class_weight` is not in it.)"""
        return prior.module(self.known, self._name(task), self.common.divisor)

    def interval(self, x: Any, task: str | Task, level: float = 0.9) -> tuple[Any, Any]:
        """Between which values a new measurement lies, with the probability `level`: low (n,), high (n,)."""
        low, high = self._asked(x, task).interval(level)
        return (low, high) if isinstance(x, Tensor) else (low.numpy(), high.numpy())

    def _asked(self, x: Any, task: str | Task | None) -> Answers:
        """As a user asks: with notes about a task that was never seen, and rows that are of others."""
        name = self._name(task)
        if name in self._known.records:
            note_other_groups(x, self.encoding(), name)
        return self.answers(x, name)

    def _name(self, task: str | Task | None) -> str:
        if task is None:
            self.infer(None)
        name = task.name if isinstance(task, Task) else as_text(task)
        if name not in self._known.tasks:
            how = "it is predicted from what the others share, with less certainty"
            note(f"task {name!r} was never seen: {how}")
        return name

    def _known_name(self, task: str | Task) -> str:
        name = task.name if isinstance(task, Task) else as_text(task)
        if name not in self.tasks:
            raise unknown_task(name, self.tasks)
        return name

    def _evaluated(
        self,
        known: prior.Knowledge,
        tasks: Iterable[Task],
        stage: str,
        trained: Task | None,
        split: str,
        by_class: bool = False,
    ) -> list[Row]:
        rows = []
        last = trained.name if trained is not None else self.tasks[-1]
        for task in tasks:
            if task.name in known.tasks and getattr(task, split) is not None:
                x, y = self.common.rows(task, [split])
                said = self._answered(known, x, task.name)
                scores = said.scores(y) | (named_scores(said, y, self.labels) if by_class else {})
                for metric, value in scores.items():
                    rows.append(self.row(last, stage, metric, value, task.name, split, task.stream))
        rows.append(self.row(last, stage, "components", float(shared_by(known))))
        return rows

    def row(self, trained: str, stage: str, metric: str, value: float, *about: str) -> Row:
        """One row. about: the task that it is about, the split, and the stream, if it is of one task."""
        evaluated, split, stream = about or (
            "",
            "",
            self.lessons[trained].stream if trained in self.lessons else "",
        )
        when = {"seed": self.seed, "trained": trained, "epoch": 1, "stage": stage}
        what = {"evaluated": evaluated, "split": split, "metric": metric, "value": value}
        row: Any = {"stream": stream, "method": PRIOR_METHOD, "component": None, "depth": None} | when | what
        return Row(**{name: row[name] for name in COLUMNS})  # type: ignore[typeddict-item]


def shared_by(known: prior.Knowledge) -> int:
    """How many directions tasks share, in what answers."""
    scales = known.answering.scales
    return 0 if scales is None else scales.k


def named_scores(said: Answers, y: Tensor, labels: Sequence[Label]) -> dict[str, float]:
    """Scores of each class, such as "recall of yes", as far as there are any."""
    by_class = zip(labels, said.by_class(y), strict=True)
    return {f"{score} of {label}": value for label, one in by_class for score, value in one.found().items()}
