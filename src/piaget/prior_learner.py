"""PriorLearner: what suits tables with groups. Little data a group, exact, and in seconds."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from piaget import prior
from piaget.data.class_weight import check_class_weight, check_classes
from piaget.data.marks import is_batch, marks_of, overlap_of, usual_repeats
from piaget.data.plain import check_count, check_seed
from piaget.data.tasks import Task
from piaget.errors import SettingError, TaskError, UnknownTaskError, note
from piaget.knowledge import prior_storage
from piaget.knowledge.checks import as_tasks, check_is_task
from piaget.knowledge.common import Label, Rows, check_labels, common_of
from piaget.knowledge.prior_storage import Lessons, PriorState
from piaget.prior.many import learn_many
from piaget.prior_answers import NOTHING, PriorAnswers
from piaget.scoring.rows import BY_CLASS, EVALUATION, EXPLAINED, TRIAL, USUALLY, Row
from piaget.scoring.worth import check_metric

if TYPE_CHECKING:
    from piaget.table_life import Arrival

LEARNED = ("train", "validation")  # splits that are learned from: no validation rows are needed


class PriorLearner(PriorAnswers):
    """Learns one task after another with a prior over structures that is learned from all of them.

    A task's weights are what all tasks have in common, what some share (the components), and a rest of its
    own; how much of each there is, the evidence of all tasks says. Trees correct what is not linear, if
    that surely helps. For vectors of numbers, such as rows of a table; `Learner.for_stream` makes one.

    labels: all classes that there will be (default: those of the first task)
    rows: how many are kept of a task, at most; of the others, sums
    trees: correct answers by boosted trees
    class_weight: how much errors count, by the true class: "balanced" (each class the same, whatever its
        number of rows) or {label: weight}. It changes which class is answered, and no probability
    seed: only noted in rows; nothing is drawn

    Raises `SettingError` for settings that do not fit, and where it is asked something that is not known,
    `UnknownTaskError`.

    >>> x = np.random.default_rng(0).normal(size=(90, 2))
    >>> stream = piaget.streams.from_arrays(x, x[:, 0] + 0.5, groups=np.repeat(["a", "b", "c"], 30))
    >>> learner = piaget.PriorLearner(trees=False)
    >>> rows = learner.learn_all(stream)
    >>> learner
    <PriorLearner: 3 tasks, regression, 72 rows, 0 components>
    >>> learner.predict(np.array([[1.0, 0.0]]), task="b").round(1)
    array([1.5])
    >>> low, high = learner.interval(np.array([[1.0, 0.0]]), task="b", level=0.9)  # (n,) each
    >>> bool(low[0] < 1.5 < high[0])
    True
    """

    def __init__(
        self,
        labels: Sequence[Label] | None = None,
        *,
        rows: int = 500,
        trees: bool = True,
        class_weight: Any = None,
        seed: int = 0,
    ) -> None:
        if not isinstance(trees, bool):
            raise SettingError(f"trees={trees!r}; expected True or False")
        self._state = PriorState(
            check_labels(labels), check_count("rows", rows, 0), trees, check_seed(seed), None, None, {},
            check_class_weight(class_weight),
        )  # fmt: skip
        self._settled = None

    # --- learning -----------------------------------------------------------------

    def learn(
        self, task: Task, *, evaluate_on: Iterable[Task] | None = None, progress: bool = False
    ) -> list[Row]:
        """Learns a new task from its training and validation rows, and returns rows of scores on test rows
        (of `evaluate_on`, as far as these tasks are known; default: of the task). progress: also in words."""
        x, y = self._rows(task)
        watched = self._watched(task, evaluate_on)
        known = self._begun(task)
        self._take(prior.learn(known, task.name, x, y), {task.name: (x, y)}, {task.name: task.stream}, task)
        return self._told(task, watched, progress)

    def learn_all(self, tasks: Iterable[Task], *, progress: bool = False) -> list[Row]:
        """Learns many new tasks, as `learn` does; but components adapt once, to all of them, at the end."""
        new = as_tasks("to be learned", tasks)
        if not new:
            raise TaskError("to be learned: no task at all; expected several")
        for task, times in Counter(task.name for task in new).items():
            if task in self.tasks or times > 1:
                raise TaskError(f"task {task!r} is known, or given twice; update it with new rows")
        common = self._state.common or common_of(new[0], self._state.labels)
        rows = {task.name: common.rows(task, LEARNED) for task in new}
        known = learn_many(self._begun(new[0]), rows)
        self._take(known, rows, {task.name: task.stream for task in new}, new[0])
        return self._told(new[-1], new, progress)

    def update(
        self, task: Task, *, evaluate_on: Iterable[Task] | None = None, again: bool = False
    ) -> list[Row]:
        """Learns more rows of a task that is known. For a regression, its sums are the same as if they had
        been there at once; components adapt from where they were. Rows that were all learned before are
        refused, unless they are to count `again`."""
        check_is_task(task)
        self._known_name(task)
        x, y = self._rows(task)
        watched = self._watched(task, evaluate_on)
        learned = {name: one.batches for name, one in self.lessons.items()}
        overlap = overlap_of(marks_of(x, y), learned[task.name], lambda: usual_repeats(learned))
        if not again and overlap.known:
            raise TaskError(f"task {task.name!r}: these {len(y)} rows were learned before; expected new ones")
        known = prior.update(self._known, task.name, x, y)
        self._take(known, {task.name: (x, y)}, {}, None)
        return self._told(task, watched, False)

    def absorb(self, rows: Mapping[str, Rows], stream: str = "") -> None:
        """Learns rows of tasks, new and known, {task: (x (n, inputs), y (n,))}, as `common` has them."""
        streams = dict.fromkeys((task for task in rows if task not in self.tasks), stream)
        known = self._state.known  # without tasks, if all were forgotten
        if known is None:
            raise UnknownTaskError(NOTHING)
        self._take(learn_many(known, rows), rows, streams, None)

    def learn_table(
        self, table: Any, *, again: bool = False, skip_known: bool = False, split: str | None = None
    ) -> list[Arrival]:
        """Learns all rows of a table (or its path) that are new, and tells what it brought of each group.
        split: a column that says "train", "validation" or "test"; test rows are not learned.

        A table with a part of the rows that were learned, the others being changed or gone, is refused,
        unless rows that equal learned ones are to be skipped (`skip_known`), or to count `again`."""
        from piaget.table_life import learn_table

        return learn_table(self, table, again=again, skip_known=skip_known, split=split)

    def forget(self, *tasks: str | Task) -> None:
        """Their rows and sums are gone, and all that was drawn from them is estimated anew from the others.
        (How columns of a table are scaled stays as it was.)"""
        names = [self._known_name(task) for task in tasks]
        known = prior.forget(self._known, *names)
        lessons = {one: told for one, told in self._state.lessons.items() if one not in names}
        self._state = replace(self._state, known=known, lessons=lessons)

    def settle(self) -> None:
        """Adapts all to all that was learned: before a save. Whoever asks is answered like that, anyway."""
        if self.tasks:
            self._state = replace(self._state, known=self.known)

    def _begun(self, task: Task) -> prior.Knowledge:
        state = self._state
        common = state.common or common_of(task, state.labels)
        check_classes(state.class_weight, common.labels)
        empty = prior.begin(common.kind, len(common.labels), rows=state.rows, trees=state.trees)
        return state.known or empty

    def _rows(self, task: Task, splits: Sequence[str] = LEARNED) -> Rows:
        check_is_task(task)
        common = self._state.common or common_of(task, self._state.labels)
        return common.rows(task, splits)

    def _take(
        self, known: prior.Knowledge, rows: Mapping[str, Rows], streams: Mapping[str, str], first: Task | None
    ) -> None:
        """The one place where something new becomes known."""
        state = self._state
        lessons = dict(state.lessons)
        for name, (x, y) in rows.items():
            before = lessons.get(name, Lessons(streams.get(name, ""), ()))
            lessons[name] = replace(before, batches=(*before.batches, marks_of(x, y)))
        common = state.common if first is None or state.common else common_of(first, state.labels)
        self._state = replace(state, known=known, lessons=lessons, common=common)

    def _watched(self, task: Task, given: Iterable[Task] | None) -> list[Task]:
        """The tasks to evaluate when the task is learned; checked before that."""
        watched = [task] if given is None else as_tasks("evaluate_on", given)
        common = self._state.common or common_of(task, self._state.labels)
        for one in watched:
            if one.name == task.name or one.name in self.tasks:
                common.check(one)
        return watched

    def _told(self, task: Task, watched: Sequence[Task], progress: bool) -> list[Row]:
        rows = self._evaluated(self._known, watched, "adaptation", task, "test")
        if progress:
            own = {r["metric"]: r["value"] for r in rows if r["evaluated"] == task.name}
            scores = ", ".join(f"{metric} {value:.3f}" for metric, value in own.items())
            print(f"{task.name}: {scores or 'no test rows'}; {self!r}", file=sys.stderr, flush=True)
        return rows

    # --- scores ----------------------------------------------------------------------------

    def evaluate(
        self,
        tasks: Task | Iterable[Task],
        split: str = "test",
        *,
        metric: str | None = None,
        by_class: bool = False,
    ) -> list[Row]:
        """Rows of scores for all of the given tasks that are known.

        metric: only this one: accuracy, loss, auc; rmse, r2. by_class: also precision, recall, f1 and auc of
        each class, as "recall of yes".
        """
        check_metric(metric, self.common.kind, BY_CLASS if by_class else ())
        given = as_tasks("to be evaluated", tasks)
        if split not in ("train", "validation", "test"):
            raise SettingError(f"split={split!r}; expected train, validation or test")
        known = [task for task in given if task.name in self.tasks]
        if not given:
            raise TaskError("to be evaluated: no task at all; expected a task or several")
        if not known:
            self._known_name(given[0])  # says what is known
        seen = [task.name for task in known if split == "test" and task.test and self._was_learned(task)]
        if seen:
            text = (
                f"test rows of {len(seen)} tasks, such as {seen[0]!r}, were learned, too: scores are too good"
            )
            note(text)
        if by_class and not self.labels:
            raise SettingError("by_class: the tasks are regressions; expected classes")
        rows = self._evaluated(self.known, known, EVALUATION, None, split, by_class)
        return [row for row in rows if metric is None or row["metric"].split(" of ")[0] == metric]

    def _was_learned(self, task: Task) -> bool:
        return is_batch(marks_of(*self.common.rows(task, ["test"])), self.lessons[task.name].batches)

    def try_task(self, task: Task) -> list[Row]:
        """How well existing components explain a new task: its test scores if it were learned with
        components as they are, and the log-density of a row beside what is usual. Nothing is learned."""
        check_is_task(task)
        if task.name in self.tasks:
            raise TaskError(f"task {task.name!r} is known already; evaluate it")
        x, y = self._rows(task)
        found = prior.appraise(self.known, x, y)
        tried = prior.assimilate(self.known, task.name, x, y)
        rows = self._evaluated(tried, [task], TRIAL, task, "test")
        for metric, value in ((EXPLAINED, found.found), (USUALLY, found.usual)):
            rows.append(self.row(task.name, TRIAL, metric, value, task.name, "train", task.stream))
        return rows

    # --- files -----------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Settles, and saves (safetensors and JSON); a crash leaves the old learner or the new one."""
        self.settle()
        prior_storage.save(folder, self._state)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> PriorLearner:
        """Loads a learner, to carry on exactly."""
        learner = cls.__new__(cls)
        learner._state, learner._settled = prior_storage.load(folder), None
        return learner
