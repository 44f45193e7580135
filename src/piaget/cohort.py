"""Cohort: several learners of one method, trained as one batched computation."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Protocol

from piaget.data.tasks import Task
from piaget.engine.training import Keeper, advance
from piaget.errors import Diverged, SettingError
from piaget.knowledge.checks import as_tasks
from piaget.learner import Learner
from piaget.method.settings import differing
from piaget.scoring.rows import Row
from piaget.scoring.watch import OnEpoch, OnRow


class CohortKeeper(Keeper, Protocol):
    """Keeps the states of a cohort's learners, and takes note of those that diverge."""

    def diverged(self, learner: Learner, error: Diverged) -> None:
        """The learner is set aside; the others go on."""


class Cohort:
    """Learners that differ in their seeds only.

    Each run's result is the same, to floating-point tolerance, as when it is trained alone.

    Raises `SettingError` if they differ in anything else.

    >>> streams = [piaget.stream("digits", seed=seed, tasks=4) for seed in range(2)]
    >>> cohort = piaget.Cohort([piaget.Learner(seed=seed, epochs=2, width=8) for seed in range(2)])
    >>> for tasks in zip(*streams):
    ...     rows = cohort.learn(tasks)
    >>> [learner.tasks == ["digits-00", "digits-01", "digits-02", "digits-03"] for learner in cohort.learners]
    [True, True]
    """

    def __init__(self, learners: Iterable[Learner]) -> None:
        learners = list(learners) if isinstance(learners, Iterable) else []
        if not learners or not all(isinstance(learner, Learner) for learner in learners):
            raise SettingError("a cohort needs at least one learner, and nothing but learners")
        for learner in learners[1:]:
            if told := differing(learners[0].settings, learner.settings, ["seed"]):
                raise SettingError(f"the learners of a cohort may differ in their seeds only; here: {told}")
        if len({id(learner) for learner in learners}) < len(learners):
            raise SettingError("a learner is in the cohort twice; expected different ones")
        self.learners = learners

    def learn(
        self,
        tasks: Iterable[Task],
        *,
        evaluate_on: Sequence[Iterable[Task]] | None = None,
        every: int | None = None,
        on_epoch: OnEpoch | None = None,
        on_row: OnRow | None = None,
        keeper: CohortKeeper | None = None,
    ) -> list[list[Row]]:
        """Run i learns tasks[i] and is evaluated on evaluate_on[i]; returns each run's rows.

        See `Learner.learn`. `on_row` is told of each row at once; `keeper` keeps the learners' states
        while they learn. If a learner diverges, the others learn the task to its end; then `Diverged` is
        raised, unless there is a keeper, which is told at once.
        """
        tasks = as_tasks("to be learned", tasks)
        if len(tasks) != len(self.learners):
            raise SettingError(f"{len(tasks)} tasks for {len(self.learners)} learners")
        if evaluate_on is not None and not (
            isinstance(evaluate_on, Sequence) and len(evaluate_on) == len(self.learners)
        ):
            raise SettingError(f"evaluate_on: expected a list of {len(self.learners)}: tasks of each learner")
        with contextlib.ExitStack() as busy:
            for learner in self.learners:
                busy.enter_context(learner.busy())
            return self._learn(tasks, evaluate_on, every, on_epoch, on_row, keeper)

    def _learn(
        self,
        tasks: Sequence[Task],
        evaluate_on: Sequence[Iterable[Task]] | None,
        every: int | None,
        on_epoch: OnEpoch | None,
        on_row: OnRow | None,
        keeper: CohortKeeper | None,
    ) -> list[list[Row]]:
        pairs = list(zip(self.learners, tasks, strict=True))
        # After an interruption some runs may have finished the task already: they are only evaluated.
        finished = [task.name in learner.tasks for learner, task in pairs]
        if all(finished):
            finished = [False] * len(pairs)  # given twice: an error
        for (learner, task), done in zip(pairs, finished, strict=True):
            if not done:
                learner.check(task)  # all of them, before any learner changes
        watched: Sequence[Iterable[Task] | None] = evaluate_on or [None] * len(tasks)
        results: list[list[Row]] = [
            learner.evaluate([task] if seen is None else seen) if done else []
            for (learner, task), seen, done in zip(pairs, watched, finished, strict=True)
        ]
        runs = {
            i: learner.learning(task, evaluate_on=watched[i], every=every, on_epoch=on_epoch, on_row=on_row)
            for i, (learner, task) in enumerate(pairs)
            if not finished[i]
        }
        learners = [self.learners[i] for i in runs]
        set_aside = None if keeper is None else lambda run, error: keeper.diverged(learners[run], error)
        rows = advance(list(runs.values()), keeper, set_aside)
        for i, new in zip(runs, rows, strict=True):
            results[i] = new
        return results
