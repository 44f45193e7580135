"""What can be asked of a learner: also while it learns in another thread."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from piaget.data.columns import as_text
from piaget.data.encoding import Encoding
from piaget.data.tasks import Task
from piaget.errors import SettingError, TaskError, UnknownTaskError, unknown_task
from piaget.knowledge.checks import as_tasks
from piaget.knowledge.sizes import Sizes, sizes
from piaget.knowledge.state import State, TaskRecord
from piaget.method.model import Model
from piaget.method.settings import Settings
from piaget.scoring import inferring
from piaget.scoring.inferring import Inferred
from piaget.scoring.rows import EVALUATION, Row
from piaget.scoring.scores import TaskNetwork
from piaget.scoring.task_module import TaskModule
from piaget.scoring.watch import Watch
from piaget.streams.table_notes import note_other_groups
from piaget.streams.table_predictions import predict_table


class Asking:
    """Settings, and a state that is known: what answers need. Each answer is of one moment."""

    settings: Settings
    state: State

    def __init__(self, settings: Settings, state: State) -> None:
        self.settings, self.state = settings, state

    @property
    def model(self) -> Model:
        """The network, without parameters."""
        return self.settings.model

    def _still(self) -> Asking:
        """The learner as it is at this moment."""
        return Asking(self.settings, self.state.snapshot())

    @property
    def tasks(self) -> list[str]:
        """The names of the tasks that have been learned."""
        with self.state.lock:
            busy = self.state.progress.tasks if self.state.progress else []
            return [name for name in self.state.records if name not in busy]

    @property
    def pending(self) -> list[str]:
        """The names of the tasks that wait for initialization."""
        return list(self.state.pending)

    @property
    def components(self) -> int:
        """How many components there are."""
        return self.state.k

    def sizes(self) -> Sizes:
        """How many numbers it holds: components, structures, encoders, decoders, memory; and `parameters`,
        all but the memory."""
        return sizes(self.state.snapshot())

    def predict(self, x: Any, task: str | Task | None = None, *, together: bool = False) -> Any:
        """Class labels or values for inputs x (n, *shape), of a task that was learned.

        x is like the task's own inputs; bytes may be given as fractions, divided as in training. For a
        task from a table, x may be rows of a table.

        Without a task, it is inferred (`infer`), for each input, or for all `together`: then the answers are
        an array of objects, with None for inputs of none of the tasks.
        """
        if task is None:
            return inferring.inferred_labels(self._recognition(), x, together)
        network = self._network(task, together)
        note_other_groups(x, network.record.encoding, network.record.name)
        answer = inferring.labels_of(network.record, network.outputs(network.inputs(x)))
        keeps = isinstance(x, Tensor) and not network.record.labels
        return torch.from_numpy(answer) if keeps else answer

    def predict_proba(self, x: Any, task: str | Task | None = None, *, together: bool = False) -> Any:
        """Class probabilities (n, classes), in the order of the labels.

        Without a task, it is inferred, as in `predict`: then a list of {label: probability}, or None.
        """
        if task is None:
            return inferring.inferred_probabilities(self._recognition(), x, together)
        network = self._network(task, together)
        note_other_groups(x, network.record.encoding, network.record.name)
        answer = inferring.probabilities_of(network.record, network.outputs(network.inputs(x)))
        return answer if isinstance(x, Tensor) else answer.numpy()

    def predict_table(self, rows: Any, *, proba: bool = False, threshold: float | None = None) -> Any:
        """The rows (a table or its path) with one more column: what is predicted for each, by its group.
        Rows of groups that were not learned get no prediction, with a note. proba: also the probability of
        each class. threshold: of two classes, the second one from this probability on."""
        return predict_table(self._still(), rows, proba=proba, threshold=threshold)

    def infer(
        self, x: Any, *, together: bool = False, false_alarm: float = inferring.FALSE_ALARM
    ) -> Inferred:
        """Of which of the tasks that were learned inputs x (n, *shape) are; or of none of them.

        together: all of them are of one task, which is told more surely from many inputs than from one.
        false_alarm: the share of a task's own inputs that may be taken for those of none; 0: the likeliest
        task is answered whatever the input is. What is needed is noted while learning, with a setting such as
        inference="inputs", or by `note_inputs`. docs/inference.md has how sure it is.
        """
        return self._recognition().infer(x, together, false_alarm)

    def _recognition(self) -> inferring.Recognition:
        still = self._still()
        return inferring.Recognition(still.settings, still.state, still.tasks)

    def evaluate(
        self, tasks: Task | Iterable[Task], split: str = "test", *, infer: bool = False
    ) -> list[Row]:
        """Rows for all of the given tasks that the learner has learned.

        infer: also how well their inputs are told from those of all other tasks, and are answered without a
        task being named; and how well inputs of given tasks that it has not learned are noticed.
        """
        given = as_tasks("to be evaluated", tasks)
        if not given:
            raise TaskError("to be evaluated: no task at all; expected a task or several")
        if split not in ("train", "validation", "test"):
            raise SettingError(f"split={split!r}; expected train, validation or test")
        still = self._still()
        known = [task for task in given if task.name in still.tasks]
        if not known:
            still.record(given[0])  # says what is known
        watch = Watch(still.settings, still.state, known)
        rows = watch.evaluate(EVALUATION, 0, still.tasks[-1], split)
        if infer:
            unknown = [task for task in given if task.name not in still.state.records]
            watch.inference(still._recognition(), EVALUATION, 0, unknown, split)
        return rows

    def module(self, task: str | Task) -> TaskModule:
        """The task's network as a plain `nn.Module`, in eval mode: `module(x)` are the probabilities of
        `predict_proba(x, task)`, or a regression's values, for a tensor x of inputs (of a table:
        `learner.encoding(task).encode(rows)`). `torch.export` and `torch.onnx.export` take it."""
        return TaskModule(self._network(task)).eval()

    def encoding(self, task: str | Task) -> Encoding | None:
        """How rows of a table become the task's inputs, if it came from a table."""
        return self.record(task).encoding

    def structures(self) -> dict[str, Tensor]:
        """How each task weighs each component at each depth: {task: (components, depths)}.

        Soft gating depends on the input: its mean over training samples, when the task was
        learned. Linear combinations have one column an output instead of a depth.
        """
        still = self._still()
        usages = ((name, still.state.records[name].usage) for name in still.tasks)
        return {name: usage.clone() for name, usage in usages if usage is not None}

    def record(self, task: str | Task) -> TaskRecord:
        """What the learner knows of a task that it has learned."""
        state, name = self.state, task.name if isinstance(task, Task) else as_text(task)
        if name in state.pending:
            left = max(self.settings.initial_tasks - len(state.pending), 0)
            raise UnknownTaskError(
                f"task {name!r} is pending: the first {self.settings.initial_tasks} tasks are "
                f"initialized together, and {left} more must come; or call initialize() now"
            )
        if name not in self.tasks:
            raise unknown_task(name, self.tasks)
        return state.records[name]

    def _network(self, task: str | Task, together: bool = False) -> TaskNetwork:
        if together:
            raise SettingError(
                "together=True is for inputs whose task is not known; leave out one of the two"
            )
        still = self._still()
        return TaskNetwork(still.settings, still.state, still.record(task))
