"""PriorLearner: what suits tables with groups. Little data a group, exact, and in seconds."""

from __future__ import annotations

import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from piaget import prior
from piaget.data.arrays import as_labels
from piaget.data.columns import as_text
from piaget.data.encoding import Encoding
from piaget.data.marks import is_batch, marks_of
from piaget.data.plain import check_count, check_seed
from piaget.data.tasks import Task
from piaget.errors import DataNote, SettingError, TaskError, UnknownTaskError
from piaget.knowledge import prior_storage
from piaget.knowledge.checks import as_tasks, check_is_task
from piaget.knowledge.common import Common, Label, Rows, check_labels, common_of
from piaget.knowledge.prior_storage import Lessons, PriorState
from piaget.prior.many import learn_many
from piaget.scoring.answer_scores import Answers
from piaget.scoring.rows import COLUMNS, EVALUATION, EXPLAINED, PRIOR_METHOD, TRIAL, USUALLY, Row

if TYPE_CHECKING:
    from piaget.table_life import Arrival

NOTHING = "nothing is known yet; learn a task first"
LEARNED = ("train", "validation")  # splits that are learned from: no validation rows are needed


class PriorLearner:
    """Learns one task after another with a prior over structures that is learned from all of them.

    A task's weights are what all tasks have in common, what some share (the components), and a rest of its
    own; how much of each there is, the evidence of all tasks says. Trees correct what is not linear, if
    that surely helps. For vectors of numbers, such as rows of a table; `Learner.for_stream` makes one.

    labels: all classes that there will be (default: those of the first task)
    rows: how many are kept of a task, at most; of the others, sums
    trees: correct answers by boosted trees
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
        seed: int = 0,
    ) -> None:
        if not isinstance(trees, bool):
            raise SettingError(f"trees={trees!r}; expected True or False")
        self._state = PriorState(
            check_labels(labels), check_count("rows", rows, 0), trees, check_seed(seed), None, None, {}
        )
        self._settled: tuple[prior.Knowledge, prior.Knowledge] | None = None

    def __repr__(self) -> str:
        common, known = self._state.common, self._state.known
        if common is None or known is None:
            return "<PriorLearner: no task yet>"
        tasks, k = len(known.tasks), self.components
        told = f"{tasks} task{'s' * (tasks != 1)}, {common.kind}, {known.rows:,} rows"
        return f"<PriorLearner: {told}, {k} component{'s' * (k != 1)}>"

    # --- learning -----------------------------------------------------------------

    def learn(
        self, task: Task, *, evaluate_on: Iterable[Task] | None = None, progress: bool = False
    ) -> list[Row]:
        """Learns a new task from its training and validation rows, and returns rows of scores on test rows
        (of `evaluate_on`, as far as these tasks are known; default: of the task). progress: also in words."""
        watched = [task] if evaluate_on is None else as_tasks("evaluate_on", evaluate_on)
        x, y = self._rows(task)
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
        """Learns more rows of a task that is known. For a regression, the same as if they had been there at
        once. Rows that were learned before are refused, unless they are to count `again`."""
        watched = [task] if evaluate_on is None else as_tasks("evaluate_on", evaluate_on)
        check_is_task(task)
        self._known_name(task)
        x, y = self._rows(task)
        if not again and is_batch(marks_of(x, y), self.lessons[task.name].batches):
            raise TaskError(f"task {task.name!r}: these {len(y)} rows were learned before; expected new ones")
        known = prior.update(self._known, task.name, x, y)
        self._take(known, {task.name: (x, y)}, {}, None)
        return self._told(task, watched, False)

    def absorb(self, rows: Mapping[str, Rows], stream: str = "") -> None:
        """Learns rows of tasks, new and known, {task: (x (n, inputs), y (n,))}, as `common` has them."""
        streams = dict.fromkeys((task for task in rows if task not in self.tasks), stream)
        self._take(learn_many(self._known, rows), rows, streams, None)

    def learn_table(self, table: Any, *, again: bool = False) -> list[Arrival]:
        """Learns all rows of a table (or its path) that are new, and tells what it brought of each group."""
        from piaget.table_life import learn_table

        return learn_table(self, table, again=again)

    def forget(self, task: str | Task) -> None:
        """As if it had never been learned: all that was drawn from it is estimated anew from the others. (How
        columns of a table are scaled stays as it was.)"""
        name = self._known_name(task)
        known = prior.forget(self.known, name)
        lessons = {one: told for one, told in self._state.lessons.items() if one != name}
        self._state = replace(self._state, known=known, lessons=lessons)

    def settle(self) -> None:
        """Adapts all to all that was learned: before a save. Whoever asks is answered like that, anyway."""
        if self.tasks:
            self._state = replace(self._state, known=self.known)

    def _begun(self, task: Task) -> prior.Knowledge:
        state = self._state
        common = state.common or common_of(task, state.labels)
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

    def _told(self, task: Task, watched: Sequence[Task], progress: bool) -> list[Row]:
        rows = self._evaluated(self._known, watched, "adaptation", task, "test")
        if progress:
            own = {r["metric"]: r["value"] for r in rows if r["evaluated"] == task.name}
            scores = ", ".join(f"{metric} {value:.3f}" for metric, value in own.items())
            print(f"{task.name}: {scores or 'no test rows'}; {self!r}", file=sys.stderr, flush=True)
        return rows

    # --- asking ---------------------------------------------------------------------

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
        """How many directions tasks share."""
        known = self._state.known
        return 0 if known is None or known.scales is None else known.scales.k

    @property
    def labels(self) -> tuple[Label, ...]:
        """Of the classes, in the order of `predict_proba`'s columns; a regression has none."""
        return self.common.labels

    def encoding(self, task: str | Task | None = None) -> Encoding | None:
        """How rows of a table become inputs, the same for all tasks; None: they came from no table."""
        return self.common.encoding

    def structures(self) -> dict[str, Tensor]:
        """Where each task lies along the directions that tasks share: {task: (components, outputs)}."""
        return {name: psi.mT.clone() for name, psi in self.known.coordinates().items()} if self.tasks else {}

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
            return Answers(prior.probabilities(known, x, task))
        return Answers(None, *prior.values(known, x, task))

    def predict(self, x: Any, task: str | Task) -> Any:
        """Class labels or values for inputs x (n, *shape), or rows of a table. A task that is not known is
        answered by what tasks have in common, with a note."""
        said, labels = self.answers(x, self._name(task)), self.common.labels
        if said.mean is not None:
            return said.mean if isinstance(x, Tensor) else said.mean.numpy()
        assert said.probabilities is not None
        number = said.probabilities.argmax(1)
        if isinstance(x, Tensor) and labels == tuple(range(len(labels))):
            return number
        return as_labels(labels)[number.numpy()]

    def predict_proba(self, x: Any, task: str | Task) -> Any:
        """Class probabilities (n, classes), in the order of `labels`."""
        said = self.answers(x, self._name(task)).probabilities
        if said is None:
            raise SettingError("the tasks are regressions: they have values, no probabilities (interval)")
        return said if isinstance(x, Tensor) else said.numpy()

    def interval(self, x: Any, task: str | Task, level: float = 0.9) -> tuple[Any, Any]:
        """Between which values a new measurement lies, with the probability `level`: low (n,), high (n,)."""
        low, high = self.answers(x, self._name(task)).interval(level)
        return (low, high) if isinstance(x, Tensor) else (low.numpy(), high.numpy())

    def _name(self, task: str | Task) -> str:
        name = task.name if isinstance(task, Task) else as_text(task)
        if name not in self._known.tasks:
            how = "it is answered by what the others have in common, less sure"
            warnings.warn(f"task {name!r} was never seen: {how}", DataNote, stacklevel=3)
        return name

    def _known_name(self, task: str | Task) -> str:
        name = task.name if isinstance(task, Task) else as_text(task)
        if name not in self.tasks:
            known = ", ".join(map(repr, self.tasks[:20])) or "none yet"
            raise UnknownTaskError(f"task {name!r} is not known; known tasks: {known}")
        return name

    def evaluate(self, tasks: Task | Iterable[Task], split: str = "test") -> list[Row]:
        """Rows of scores for all of the given tasks that are known."""
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
            warnings.warn(text, DataNote, stacklevel=2)
        return self._evaluated(self.known, known, EVALUATION, None, split)

    def _was_learned(self, task: Task) -> bool:
        return is_batch(marks_of(*self.common.rows(task, ["test"])), self.lessons[task.name].batches)

    def try_task(self, task: Task) -> list[Row]:
        """How well existing components explain a new task: its test scores if it were learned with
        components as they are, and the log-density of a row beside what is usual. Nothing is learned."""
        if task.name in self.tasks:
            raise TaskError(f"task {task.name!r} is known already; evaluate it")
        x, y = self._rows(task)
        found = prior.appraise(self.known, x, y)
        tried = prior.assimilate(self.known, task.name, x, y)
        rows = self._evaluated(tried, [task], TRIAL, task, "test")
        for metric, value in ((EXPLAINED, found.found), (USUALLY, found.usual)):
            rows.append(self.row(task.name, TRIAL, metric, value, task.name, "train", task.stream))
        return rows

    def _evaluated(
        self, known: prior.Knowledge, tasks: Iterable[Task], stage: str, trained: Task | None, split: str
    ) -> list[Row]:
        rows = []
        last = trained.name if trained is not None else self.tasks[-1]
        for task in tasks:
            if task.name in known.tasks and getattr(task, split) is not None:
                x, y = self.common.rows(task, [split])
                for metric, value in self._answered(known, x, task.name).scores(y).items():
                    rows.append(self.row(last, stage, metric, value, task.name, split, task.stream))
        assert known.scales is not None
        rows.append(self.row(last, stage, "components", float(known.scales.k)))
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
