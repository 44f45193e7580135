"""Learner: the paper's Algorithm 1, for one run."""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from piaget.data.columns import as_text
from piaget.data.encoding import Encoding
from piaget.data.tasks import Task
from piaget.engine.compiled import CompileMode
from piaget.engine.stages import Stage
from piaget.engine.training import Run, advance
from piaget.errors import SettingError, UnknownTaskError
from piaget.knowledge import lifecycle, storage
from piaget.knowledge.checks import check_same, check_task
from piaget.knowledge.state import Progress, State, TaskRecord
from piaget.method import objective
from piaget.method.adaptation import Adaptation, Frozen
from piaget.method.components import Components
from piaget.method.expansion import NoExpansion
from piaget.method.model import DecoderMode, EncoderMode
from piaget.method.schedule import StageName
from piaget.method.settings import Algorithm, Settings, resolve
from piaget.method.structures import Structure
from piaget.scoring.rows import Row
from piaget.scoring.watch import OnEpoch, OnRow, Watch, inputs_of, outputs, tensors


class Learner:
    """Learns one task after another with reusable components.

    Strings choose the paper's parts, objects one's own. The defaults are the paper's settings:
    4 components, depth 4, dense layers of 64 units with dropout 0.5, a learned linear encoder,
    Adam with rate 1e-3, batches of 32, 100 epochs a task, of which the last adapts. With
    structure="linear": linear components, all samples in one batch, 10,000 epochs.

    structure: "linear", "soft-ordering", "soft-gating", "monolithic", or a `Structure`
    adaptation: "nft", "er", "ewc", "fm", or an `Adaptation`, such as `Replay(size=5)`
    algorithm: "dynamic", "compositional", "joint", "no-components", or an `Algorithm`
    components: "dense", "conv", "linear", or a `Components`, such as `Dense(width=128)`
    encoder: "learned" or "fixed" (one a task), "shared" (by all tasks), "none"
    initial_tasks: so many tasks are initialized together
    compile: "auto" (where there is enough work for it to pay), "always", or "never"
    """

    def __init__(
        self,
        structure: str | Structure = "soft-ordering",
        adaptation: str | Adaptation = "er",
        algorithm: str | Algorithm = "dynamic",
        *,
        components: str | Components | None = None,
        initial_components: int = 4,
        depth: int | None = None,
        encoder: EncoderMode | None = None,
        decoder: DecoderMode = "learned",
        epochs: int | None = None,
        initial_tasks: int = 4,
        initial_epochs: int | None = None,
        batch_size: int | Literal["all"] | None = None,
        learning_rate: float = 1e-3,
        seed: int = 0,
        device: str = "cpu",
        dtype: str = "float32",
        compile: CompileMode = "auto",
    ) -> None:
        settings = resolve(
            structure=structure,
            adaptation=adaptation,
            algorithm=algorithm,
            components=components,
            initial_components=initial_components,
            depth=depth,
            encoder=encoder,
            decoder=decoder,
            epochs=epochs,
            initial_tasks=initial_tasks,
            initial_epochs=initial_epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            seed=seed,
            device=device,
            dtype=dtype,
            compile=compile,
        )
        self._set(settings, State(torch.Generator().manual_seed(seed)))

    def _set(self, settings: Settings, state: State) -> None:
        self.settings, self.model, self._state = settings, settings.model, state

    # --- learning: Algorithm 1 -----------------------------------------------------------------

    def learn(
        self,
        task: Task,
        *,
        evaluate_on: Iterable[Task] | None = None,
        every: int | None = None,
        on_epoch: OnEpoch | None = None,
    ) -> list[Row]:
        """Learns a task, and returns record rows.

        The first `initial_tasks` tasks are pending until the last of them arrives; then all are
        initialized together. When the task is done (and every `every` epochs, if given), the
        learner is evaluated on those tasks of `evaluate_on` that it knows (by default, on what
        was just learned). Interrupted, call it again with the same task to carry on.
        """
        run = self.learning(task, evaluate_on=evaluate_on, every=every, on_epoch=on_epoch)
        return advance([run], self.settings.learning_rate)[0]

    def check(self, task: Task) -> None:
        """Raises an error if the task could not be learned now. `learn` asks this first."""
        state = self._state
        if state.progress is not None and task.name in state.progress.tasks:
            check_same(state.progress, task)
        else:
            expanding = self._initialized and self.settings.algorithm.expansion.proposes
            check_task(self.settings, state, task, expanding)

    @property
    def _initialized(self) -> bool:
        return bool(self._state.components) and not self._state.pending

    def initialize(self, *, on_epoch: OnEpoch | None = None) -> list[Row]:
        """Initializes the components now, with the tasks that are pending."""
        if not self._state.pending:
            raise SettingError("no task is pending: learn(task) first, or initialization is done")
        watch = Watch(self.settings, self._state, self._state.pending.values(), on_epoch=on_epoch)
        run = self._initialization(self._state.pending, watch)
        return advance([run], self.settings.learning_rate)[0]

    def learning(
        self,
        task: Task,
        *,
        evaluate_on: Iterable[Task] | None = None,
        every: int | None = None,
        on_epoch: OnEpoch | None = None,
        on_row: OnRow | None = None,
    ) -> Run:
        """`learn`, as a run that yields the stages to be trained: for cohorts."""
        state, settings = self._state, self.settings
        self.check(task)
        waiting = {} if self._initialized else state.pending | {task.name: task}
        new = list(waiting.values()) or [task]
        watched = new if evaluate_on is None else evaluate_on
        watch = Watch(settings, state, watched, every, on_epoch, on_row)
        if self._initialized:
            return self._task(task, watch)
        complete = state.progress is not None or len(waiting) >= settings.initial_tasks
        return self._initialization(waiting, watch) if complete else self._wait(waiting)

    def _wait(self, pending: dict[str, Task]) -> Run:
        """Not all initial tasks are there yet: nothing to train."""
        self._state.pending = pending
        return []
        yield

    def _initialization(self, pending: dict[str, Task], watch: Watch) -> Run:
        """The initial tasks together: with fixed random structures, only components learn."""
        settings, state = self.settings, self._state
        tasks, epochs = list(pending.values()), settings.initial_epochs
        if state.progress is None:
            with state.transaction():
                state.pending = pending
                lifecycle.begin_initialization(settings, state, tasks)
        progress = self._resume()
        if progress.epoch < epochs:
            yield self._stage("initialization", tasks, epochs - progress.epoch, epochs, watch)
        rows = watch.evaluate("initialization", epochs, tasks[-1].name)
        with state.transaction():
            for task in tasks:
                lifecycle.finish(settings, state, task)
            state.pending, state.progress = {}, None
        return rows

    def _task(self, task: Task, watch: Watch) -> Run:
        """Assimilation and adaptation by the schedule, then expansion, then what to remember."""
        settings, state = self.settings, self._state
        if state.progress is None:
            with state.transaction():
                lifecycle.begin(settings, state, task, candidate=settings.algorithm.expansion.proposes)
        progress, stages = self._resume(), settings.stages()
        for stage, epochs in itertools.groupby(stages[progress.epoch :]):
            yield self._stage(stage, [task], len(list(epochs)), len(stages), watch)
        if progress.candidate:
            with state.transaction():
                lifecycle.decide(settings, state, task, watch)
        rows = watch.evaluate(stages[-1] if stages else "none", len(stages), task.name)
        with state.transaction():
            lifecycle.finish(settings, state, task)
            state.progress = None
        return rows

    def _stage(self, name: StageName, tasks: list[Task], epochs: int, total: int, watch: Watch) -> Stage:
        """A stage to be trained for some epochs, out of `total` ones on the task."""
        settings, state = self.settings, self._state
        progress = state.progress
        assert progress is not None
        end, done = progress.epoch + epochs, itertools.count(progress.epoch + 1)

        def after_epoch(commit: Callable[[], None], keeping: bool) -> None:
            epoch = next(done)
            if epoch == end or watch.due(epoch) or keeping:
                with state.transaction():
                    commit()
                    state.steps += (epoch - progress.epoch) * stage.steps
                    progress.epoch, progress.generator = epoch, state.generator.get_state()
            watch.epoch(name, tasks[-1].name, epoch, total)

        stage = Stage(
            name=name,
            epochs=epochs,
            epochs_in_all=total if name == "initialization" else settings.stages().count(name),
            epochs_on_task=total,
            model=self.model,
            adaptation=settings.adaptation,
            expansion=settings.algorithm.expansion,
            batch=settings.batch_size,
            state=state,
            data=[(state.records[task.name], *tensors(settings, task.train, task.scaling)) for task in tasks],
            after_epoch=after_epoch,
            compile=settings.compile,
        )
        return stage

    def _resume(self) -> Progress:
        """After an interruption the generator may be ahead of the committed state."""
        progress = self._state.progress
        assert progress is not None
        self._state.generator.set_state(progress.generator)
        return progress

    # --- asking ----------------------------------------------------------------------------------

    @property
    def tasks(self) -> list[str]:
        """The names of the tasks that have been learned."""
        busy = self._state.progress.tasks if self._state.progress else []
        return [name for name in self._state.records if name not in busy]

    @property
    def pending(self) -> list[str]:
        """The names of the tasks that wait for initialization."""
        return list(self._state.pending)

    @property
    def components(self) -> int:
        """How many components there are."""
        return self._state.k

    def predict(self, x: Any, task: str | Task) -> Any:
        """Class labels or values for inputs x (n, *shape), of a task that was learned.

        x is like the task's own inputs; bytes may be given as fractions, divided as in training. For a
        task from a table, x may be rows of a table.
        """
        record = self._record(task)
        answer = record.scaling.values(objective.predict(record.kind, self._outputs(record, x)).cpu())
        if record.labels is not None:
            return np.asarray(record.labels)[answer.numpy()]
        return answer if isinstance(x, Tensor) else answer.numpy()

    def predict_proba(self, x: Any, task: str | Task) -> Any:
        """Class probabilities (n, classes), in the order of the labels."""
        record = self._record(task)
        if record.kind == "regression":
            raise SettingError(f"task {record.name!r} is a regression: it has values, no probabilities")
        answer = objective.probabilities(record.kind, self._outputs(record, x)).cpu()
        return answer if isinstance(x, Tensor) else answer.numpy()

    def evaluate(self, tasks: Task | Sequence[Task], split: str = "test") -> list[Row]:
        """Rows for all of the given tasks that the learner has learned."""
        given = [tasks] if isinstance(tasks, Task) else list(tasks)
        if split not in ("train", "validation", "test"):
            raise SettingError(f"split={split!r}; expected train, validation or test")
        known = [task for task in given if task.name in self.tasks]
        if not known:
            self._record(given[0].name if given else "")  # says what is known
        return Watch(self.settings, self._state, known).evaluate("evaluation", 0, self.tasks[-1], split)

    def try_task(self, task: Task, *, on_epoch: OnEpoch | None = None) -> list[Row]:
        """How well existing components would do: assimilates the task on the side.

        The learner is not changed; its components are used as they are.
        """
        if not self.tasks:
            raise SettingError("try_task needs components: learn the initial tasks first")
        check_task(self.settings, self._state, task, expanding=False)
        algorithm = replace(self.settings.algorithm, expansion=NoExpansion())
        settings = replace(self.settings, adaptation=Frozen(), algorithm=algorithm)
        state = copy.copy(self._state)
        state.generator = torch.Generator()
        state.generator.set_state(self._state.generator.get_state())
        state.records, state.memory = dict(state.records), {}
        trial = Learner.__new__(Learner)
        trial._set(settings, state)
        return trial.learn(task, on_epoch=on_epoch)

    def encoding(self, task: str | Task) -> Encoding | None:
        """How rows of a table become the task's inputs, if it came from a table."""
        return self._record(task).encoding

    def structures(self) -> dict[str, Tensor]:
        """How each task weighs each component at each depth: {task: (components, depths)}.

        Soft gating depends on the input: its mean over training samples, when the task was
        learned. Linear combinations have one column an output instead of a depth.
        """
        usages = ((name, self._state.records[name].usage) for name in self.tasks)
        return {name: usage.clone() for name, usage in usages if usage is not None}

    def _record(self, task: str | Task) -> TaskRecord:
        state, name = self._state, task.name if isinstance(task, Task) else as_text(task)
        if name in state.pending:
            left = max(self.settings.initial_tasks - len(state.pending), 0)
            raise UnknownTaskError(
                f"task {name!r} is pending: the first {self.settings.initial_tasks} tasks are "
                f"initialized together, and {left} more must come; or call initialize() now"
            )
        if name not in self.tasks:
            known = ", ".join(map(repr, self.tasks)) or "none yet"
            raise UnknownTaskError(f"task {name!r} is not known; known tasks: {known}")
        return state.records[name]

    def _outputs(self, record: TaskRecord, x: Any) -> Tensor:
        return outputs(self.settings, self._state, record, inputs_of(self.settings, record, x))

    # --- files -----------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Saves the learner (safetensors and JSON); a crash leaves the old or the new one."""
        storage.save(folder, self.settings, self._state)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], **parts: Any) -> Learner:
        """Loads a learner, to carry on exactly. Parts of one's own are passed again by name:
        `Learner.load(folder, structure=MyStructure())`; likewise another `device`."""
        learner = cls.__new__(cls)
        learner._set(*storage.load(folder, parts))
        return learner
