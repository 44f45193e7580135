"""Evaluating a learner while it learns, and collecting the rows."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from piaget.data.tasks import Split, Task
from piaget.errors import Diverged, NotFinite, SettingError, TaskError
from piaget.knowledge.state import State, TaskRecord
from piaget.method import objective
from piaget.method.expansion import Evidence
from piaget.method.reduction import Change
from piaget.method.settings import Settings
from piaget.method.stopping import ValidationScores
from piaget.method.values import WHOLE, check_number
from piaget.scoring.agnostic import agnostic_scores
from piaget.scoring.inferring import Recognition
from piaget.scoring.rows import EXPANSION, MAJORITY, MERGED, REDUCTION, REMOVED, RISE, Row
from piaget.scoring.scores import Encoded, TaskNetwork

KEPT = 2**29  # bytes of encoded test data kept while a task is learned


@dataclass(frozen=True)
class EpochReport:
    """What is told after each epoch.

    `components` is how many there are, without one on trial: 0 of a single network, which combines none.
    `score("validation")`, or of "train" or "test", is the score of the tasks being learned (their mean, if
    they are several): accuracy, or error in the user's units. It is computed when it is asked for.

    >>> def until_good(report):  # given as `learner.learn(task, on_epoch=until_good)`
    ...     return report.stage == "assimilation" and report.score("validation") > 0.99
    """

    seed: int
    task: str
    stage: str
    epoch: int
    epochs: int
    components: int
    score: Callable[[str], float] = field(repr=False, compare=False)


OnEpoch = Callable[[EpochReport], bool | None]  # True: the current stage ends here
OnRow = Callable[[Row], None]


def diverged(settings: Settings, task: str, stage: str, epoch: int, error: NotFinite) -> Diverged:
    """The error about numbers that are not finite, as one about a task that diverged."""
    if isinstance(error, Diverged):
        return error
    text = (
        f"task {task!r} diverged: {error}, noticed after epoch {epoch} in the stage {stage!r} (seed "
        f"{settings.seed}); try a smaller learning_rate than {settings.learning_rate:g}, or inputs and "
        "targets of ordinary size"
    )
    return Diverged(text, task, stage, epoch, settings.seed)


def _gain(task: Task, score: float) -> float:
    """A task's score, more being better."""
    return -score / task.scaling.spread if task.kind == "regression" else score


class Watch:
    """Evaluates a learner while it learns, and collects the rows."""

    def __init__(
        self,
        settings: Settings,
        state: State,
        tasks: Iterable[Task],
        every: int | None = None,
        on_epoch: OnEpoch | None = None,
        on_row: OnRow | None = None,
    ) -> None:
        self.settings, self.state = settings, state
        self.tasks, self.on_epoch, self.on_row = list(tasks), on_epoch, on_row
        self.every = check_number("every", every, WHOLE)
        if on_epoch is not None and not callable(on_epoch):
            raise SettingError(f"on_epoch={on_epoch!r}; expected a function of an EpochReport")
        for task in self.tasks:
            self._check(task)
        self.rows: list[Row] = []
        # Of tasks whose encoder does not change any more; with the data, which is told by its address.
        self._kept: dict[tuple[str, str, int], tuple[Split, Encoded]] = {}
        self._kept_bytes = 0

    def _check(self, task: Task) -> None:
        """Is it the task that was learned?"""
        record = self.state.records.get(task.name)
        if record is None:
            return
        if tuple(record.input_shape) != task.input_shape:
            raise TaskError(
                f"task {task.name!r}: it is to be evaluated on inputs of shape {task.input_shape}, "
                f"but was learned with {tuple(record.input_shape)}"
            )
        # Data is scaled as the learner recorded it. Only what was done to it before must be the same.
        if (record.scaling.divisor, record.encoding) != (task.scaling.divisor, task.encoding):
            raise TaskError(
                f"task {task.name!r}: it is to be evaluated on data that is scaled or encoded otherwise "
                "than what it was learned with; give from_table the learner's encoding"
            )

    # --- while a task is learned ------------------------------------------------------------------

    def due(self, epoch: int) -> bool:
        """Is an evaluation due after this epoch?"""
        return self.every is not None and epoch % self.every == 0

    def epoch(
        self, stage: str, tasks: Sequence[Task], epoch: int, epochs: int, refresh: Callable[[], None]
    ) -> bool:
        """After each epoch; True: the stage is to end here. `refresh` brings the state up to date."""
        last = tasks[-1].name
        if self.due(epoch) and epoch < epochs:
            self.evaluate(stage, epoch, last)
        if self.on_epoch is None:
            return False
        progress = self.state.progress
        candidates = int(progress is not None and progress.candidate)  # not yet a component

        def score(split: str) -> float:
            refresh()
            return self.mean_score(tasks, split)

        k = self.state.k - candidates if self.settings.structure.axes else 0
        return bool(self.on_epoch(EpochReport(self.settings.seed, last, stage, epoch, epochs, k, score)))

    def mean_score(self, tasks: Sequence[Task], split: str) -> float:
        """The mean score of these tasks on a split that they all have."""
        scores = []
        for task in tasks:
            data = getattr(task, split, None)
            if not isinstance(data, Split):
                raise TaskError(f"task {task.name!r} has no {split} data to score")
            record = self.state.records[task.name]
            scores.append(self._network(record).score(self._encoded(task.name, record, split, data)))
        return statistics.fmean(scores)

    def gain(self, tasks: Sequence[Task]) -> float:
        """The validation score of the tasks being learned, more being better."""
        return statistics.fmean(_gain(task, self.mean_score([task], "validation")) for task in tasks)

    def validated(self, task: Task) -> ValidationScores:
        """What validation data says of a task that is being learned. With a component on trial, the mean over
        the passes in which batches are used: so with it and with it hidden, as whether it is kept is open."""
        record, progress = self.state.records[task.name], self.state.progress
        assert progress is not None
        assert task.validation is not None
        passes = self.settings.algorithm.expansion.passes if progress.candidate else (False,)
        data = self._encoded(task.name, record, "validation", task.validation)
        scores = [self._network(record).scores(data, self.state.k - hide) for hide in passes]
        metric = objective.metric_name(task.kind)
        return ValidationScores(
            statistics.fmean(_gain(task, each[metric]) for each in scores),
            statistics.fmean(each["loss"] for each in scores),
        )

    # --- rows ---------------------------------------------------------------------------------------

    def evaluate(self, stage: str, epoch: int, trained: str, split: str = "test") -> list[Row]:
        """Scores on all tasks that are watched and known, and the number of components."""
        for task in self.tasks:
            record, data = self.state.records.get(task.name), getattr(task, split)
            if record is not None and data is not None:
                try:
                    scores = self._network(record).scores(self._encoded(task.name, record, split, data))
                except NotFinite as error:
                    raise diverged(self.settings, trained, stage, epoch, error) from None
                for metric, value in scores.items():
                    self.add(trained, epoch, stage, metric, value, task.name, split)
        components = self.state.k if self.settings.structure.uses_components else 0
        self.add(trained, epoch, stage, "components", float(components))
        return self.rows

    def inference(
        self, recognition: Recognition, stage: str, epoch: int, unknown: Sequence[Task], split: str = "test"
    ) -> list[Row]:
        """How well the tasks that are watched are told from each other and from `unknown` ones, and answered
        without being named."""
        last, rows = recognition.tasks[-1], []
        known = [task for task in self.tasks if task.name in recognition.tasks]
        for name, values in agnostic_scores(recognition, known, unknown, split):
            rows += [
                self.add(last, epoch, stage, metric, value, name, split) for metric, value in values.items()
            ]
        return rows

    def decision(self, record: TaskRecord, evidence: Evidence, kept: bool) -> None:
        """The rows about a candidate component."""
        metric, spread = objective.metric_name(record.kind), record.scaling.spread
        with_candidate, without = (score * spread for score in evidence.scores)
        values = {
            f"{metric} with candidate": with_candidate,
            f"{metric} without candidate": without,
            "kept": float(kept),
        }
        epoch, name = self.settings.most_epochs, record.name
        for metric, value in values.items():
            self.add(name, epoch, EXPANSION, metric, value, name, "validation", self.state.k - 1)

    def reductions(self, trained: str, done: Sequence[tuple[float, Change]]) -> None:
        """The rows about components that were removed or merged."""
        for rise, change in done:
            values = {REMOVED: rise} if change.into is None else {MERGED: float(change.into), RISE: rise}
            for metric, value in values.items():
                epoch = self.settings.most_epochs
                self.add(trained, epoch, REDUCTION, metric, value, component=change.component)

    def majorities(self, stage: str, epoch: int, trained: str, tasks: Sequence[Task]) -> None:
        """What the most frequent class alone would score, of tasks just learned: later, their training data
        may be gone."""
        tests = {task.name: task.test for task in self.tasks}
        for task in tasks:
            test = tests.get(task.name)
            if task.kind != "regression" and test is not None:
                value = objective.majority(task.train.y, test.y)
                self.add(trained, epoch, stage, MAJORITY, value, task.name, "test")

    def counts(self, stage: str, epoch: int, trained: str, counts: dict[str, float]) -> None:
        """What the adaptation counted while a task was learned."""
        for name, count in counts.items():
            self.add(trained, epoch, stage, name, count)

    def add(
        self,
        trained: str,
        epoch: int,
        stage: str,
        metric: str,
        value: float,
        evaluated: str = "",
        split: str = "",
        component: int | None = None,
        depth: int | None = None,
    ) -> Row:
        """One row."""
        row = Row(
            stream=self.state.records[evaluated if evaluated in self.state.records else trained].stream,
            method=self.settings.method,
            seed=self.settings.seed,
            trained=trained,
            epoch=epoch,
            stage=stage,
            evaluated=evaluated,
            split=split,
            metric=metric,
            component=component,
            depth=depth,
            value=value,
        )
        self.rows.append(row)
        if self.on_row is not None:
            self.on_row(row)
        return row

    def forget(self, name: str) -> None:
        """What was kept of a task that begins again, or goes back: its encoder is another one."""
        self._kept = {key: kept for key, kept in self._kept.items() if key[0] != name}
        self._kept_bytes = sum(e.h.numel() * e.h.element_size() for _, e in self._kept.values())

    def _network(self, record: TaskRecord) -> TaskNetwork:
        return TaskNetwork(self.settings, self.state, record)

    def _encoded(self, name: str, record: TaskRecord, split: str, data: Split) -> Encoded:
        """Encoded once, where that stays the same, and while there is room."""
        kept = self._kept.get((name, split, id(data)))
        if kept is not None:
            return kept[1]
        encoded = self._network(record).encoded(data)
        busy = self.state.progress.tasks if self.state.progress is not None else []
        encoder, goes_on = self.settings.encoder, "past encoder" in self.settings.past_roles
        constant = not encoder.learns or (not encoder.shared and not goes_on and name not in busy)
        size = self._kept_bytes + encoded.h.numel() * encoded.h.element_size()
        if constant and size <= KEPT:
            self._kept[name, split, id(data)], self._kept_bytes = (data, encoded), size
        return encoded
