"""Learner: learns one task after another, answers, and is saved. How it learns: lesson.py."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import torch

from piaget.asking import Asking
from piaget.data.columns import as_text
from piaget.data.tasks import Stream, Task
from piaget.engine.training import Learning, advance
from piaget.errors import SettingError, TaskError
from piaget.knowledge import library, library_writing, lifecycle, storage
from piaget.knowledge.checks import as_tasks, check_idle, check_is_task, check_same, check_task, check_update
from piaget.knowledge.state import State
from piaget.lesson import Lesson
from piaget.method.acceptance import TakeAll
from piaget.method.adaptation import Adaptation, Frozen
from piaget.method.choices import SETTINGS, Choices, adaptation_of, structure_for
from piaget.method.expansion import NoExpansion
from piaget.method.inference import Inference
from piaget.method.reduction import NoReduction
from piaget.method.resolving import resolve
from piaget.method.settings import Algorithm, Settings
from piaget.method.structures import Structure
from piaget.scoring.epoch_bar import epoch_bar
from piaget.scoring.rows import Row
from piaget.scoring.watch import OnEpoch, OnRow, Watch

if TYPE_CHECKING:
    from piaget.prior_learner import PriorLearner


class Learner(Asking):
    """Learns one task after another with reusable components.

    Strings choose the paper's parts, objects one's own. The defaults are the paper's settings:
    4 components, depth 4, dense layers of 64 units with dropout 0.5, a learned linear encoder,
    Adam with rate 1e-3, batches of 32, 100 epochs a task, of which the last adapts. With
    structure="linear": linear components, all samples in one batch, 10,000 epochs.

    structure: "linear", "soft-ordering", "soft-gating", "monolithic", "alone", or a `Structure`;
    "soft-ordering-scaled", "soft-gating-scaled": each task also has a scale and a shift at each depth
    (default: "soft-ordering"; with the algorithm "recommended": "soft-ordering-scaled")
    adaptation: "nft", "er", "er-diluted", "der++", "a-gem", "ewc", "ewc-merged", "fm", or an `Adaptation`:
    `Replay(size=5)`, say (default: "er"; with the algorithm "recommended": "fm")
    algorithm: "dynamic", "compositional", "joint", or an `Algorithm`; "recommended", dynamic with parts that
    the paper does not have (docs/recommended.md); or a baseline: "no-components" (one
    network), "no-components-frozen" (in which what is a past task's own stays as it is), "alone" (each task
    from scratch)
    settings: `width=128`, `epochs=50`, `encoder="fixed"`, ...: all that `piaget.method.choices.Choices` lists

    Attributes: `settings`, all of them resolved; `state`, all that the learner knows; `tasks_in_all`, which
    you may set if you know how many tasks there will be: with many, compiling pays for shorter ones, too.

    Raises `SettingError` for settings that do not fit each other, with what is expected.

    >>> stream = piaget.stream("digits", seed=0)
    >>> learner = piaget.Learner(epochs=2, width=8)
    >>> for task in stream[:5]:
    ...     rows = learner.learn(task)
    >>> learner
    Learner(soft-ordering/er/dynamic, 5 tasks learned, 4 components)
    >>> learner.predict(stream[4].test.x, task="digits-04").shape  # inputs (n, 1, 8, 8) -> labels (n,)
    (74,)
    """

    tasks_in_all: int = 1
    _busy = False

    def __init__(
        self,
        structure: str | Structure | None = None,
        adaptation: str | Adaptation | None = None,
        algorithm: str | Algorithm = "dynamic",
        **settings: Unpack[Choices],
    ) -> None:
        folder = settings.pop("components_from", None)
        structure = structure_for(algorithm) if structure is None else structure
        method = structure, adaptation_of(algorithm) if adaptation is None else adaptation, algorithm
        source = None if folder is None else library.named(folder, settings.get("components"))
        self.settings = resolve(*method, settings) if source is None else source.settings(*method, settings)
        self.state = State(torch.Generator().manual_seed(self.settings.seed))
        if source is not None:
            source.begin(self.settings, self.state)

    def __repr__(self) -> str:
        pending = f", {len(self.pending)} pending" if self.pending else ""
        return (
            f"{type(self).__name__}({self.settings.method}, {len(self.tasks)} tasks learned{pending}, "
            f"{self.components} components)"
        )

    @staticmethod
    def for_stream(stream: Stream, **settings: Any) -> Learner | PriorLearner:
        """A learner with the parts and settings that suit a stream's data; `settings` go first.

        Tables, and arrays with groups: a `PriorLearner`. Streams of the paper: its settings, as the command
        line has them. Other data of one's own, or with a structure, adaptation or algorithm: a `Learner` that
        stops early by validation rows.
        """
        from piaget.suited import suited

        return suited(stream, settings)

    # --- learning -----------------------------------------------------------------

    def learn(
        self,
        task: Task,
        *,
        evaluate_on: Iterable[Task] | None = None,
        every: int | None = None,
        on_epoch: OnEpoch | None = None,
        progress: bool = False,
    ) -> list[Row]:
        """Learns a task, and returns record rows.

        The first `initial_tasks` tasks are pending until the last of them arrives; then all are
        initialized together. When the task is done (and every `every` epochs, if given), the
        learner is evaluated on those tasks of `evaluate_on` that it knows (by default, on what
        was just learned). Interrupted, call it again with the same task to carry on. `progress` shows a
        bar of epochs.

        Raises `TaskError` if the task does not fit, before anything is trained, and `Diverged` if numbers are
        not finite any more: then the learner is as it was before.
        """
        bar = epoch_bar(on_epoch) if progress else contextlib.nullcontext(on_epoch)
        with self.busy(), bar as told:
            return advance([self.learning(task, evaluate_on=evaluate_on, every=every, on_epoch=told)])[0]

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Inside, it cannot begin to learn something else (from `on_epoch` or another thread, say)."""
        with self.state.lock:
            if self._busy:
                raise TaskError("the learner is learning a task already; wait until it has ended")
            self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def check(self, task: Task) -> None:
        """Raises an error if the task could not be learned now. `learn` asks this first."""
        state = self.state
        check_is_task(task)
        with state.lock:
            if state.progress is not None and task.name in state.progress.tasks:
                check_same(state.progress, task)
            else:
                expanding = self._initialized and self.settings.algorithm.expansion.proposes
                check_task(self.settings, state, task, expanding)

    @property
    def _initialized(self) -> bool:
        return bool(self.state.components) and not self.state.pending

    def initialize(self, *, on_epoch: OnEpoch | None = None) -> list[Row]:
        """Initializes the components now, with the tasks that are pending."""
        with self.busy():
            if not self.state.pending:
                raise SettingError("no task is pending: learn(task) first, or initialization is done")
            watch = Watch(self.settings, self.state, self.state.pending.values(), on_epoch=on_epoch)
            lesson = Lesson(self.settings, self.state, watch, self.tasks_in_all)
            return advance([lesson.initialize(self.state.pending)])[0]

    def learning(
        self,
        task: Task,
        *,
        evaluate_on: Iterable[Task] | None = None,
        every: int | None = None,
        on_epoch: OnEpoch | None = None,
        on_row: OnRow | None = None,
    ) -> Learning:
        """`learn`, as a run that yields the stages to be trained: for cohorts."""
        state, settings = self.state, self.settings
        self.check(task)
        waiting = {} if self._initialized else state.pending | {task.name: task}
        new = list(waiting.values()) or [task]
        watched = new if evaluate_on is None else as_tasks("evaluate_on", evaluate_on)
        lesson = Lesson(
            settings, state, Watch(settings, state, watched, every, on_epoch, on_row), self.tasks_in_all
        )
        if self._initialized:
            return lesson.learn(task)
        complete = state.progress is not None or len(waiting) >= settings.initial_tasks
        return lesson.initialize(waiting) if complete else self._wait(waiting)

    def _wait(self, pending: dict[str, Task]) -> Learning:
        """Not all initial tasks are there yet: nothing to train."""
        self.state.pending = pending
        return []
        yield

    def update(
        self,
        task: Task,
        *,
        evaluate_on: Iterable[Task] | None = None,
        every: int | None = None,
        on_epoch: OnEpoch | None = None,
        progress: bool = False,
    ) -> list[Row]:
        """Goes on learning a task that is known, with its data as it is now, and returns record rows.

        Its network begins as it is, with the components that it may use, and is trained as that of a new task
        is, adaptation included; no component is added. Rows that are to count are to be among the task's
        data: of earlier ones, only what the network knows is left. Inputs are scaled as before. Interrupted,
        the learner is as it was.

        Raises `TaskError` if the task is not known, or its inputs or classes are others than before, and
        `Diverged` if numbers are not finite any more.
        """
        check_is_task(task)
        bar = epoch_bar(on_epoch) if progress else contextlib.nullcontext(on_epoch)
        with self.busy(), bar as told:
            check_idle(self.state, task.name)
            self.record(task)  # says what is known
            settings = replace(
                self.settings, algorithm=replace(self.settings.algorithm, expansion=NoExpansion())
            )
            state = self.state.snapshot()
            task = check_update(settings, state, task)
            watched = [task] if evaluate_on is None else as_tasks("evaluate_on", evaluate_on)
            watch = Watch(settings, state, watched, every, told)
            lifecycle.begin_update(settings, state, task)
            rows = advance([Lesson(settings, state, watch, self.tasks_in_all).learn(task)])[0]
            self.state.restore(state)
        return rows

    def forget(self, *tasks: str | Task) -> None:
        """Tasks are gone: what is their own in the network, samples that were stored of them, notes on their
        inputs. What components learned from them stays in the components, unless no task is left: then these
        go, too, but not those that began as a library's. Notes on the inputs of later tasks, which were made
        beside theirs, stay; `note_inputs` makes them anew. (A `PriorLearner` forgets without a trace; or
        learn the other tasks anew.)

        Raises `UnknownTaskError` for tasks that are not known.
        """
        names = [task.name if isinstance(task, Task) else as_text(task) for task in tasks]
        with self.busy(), self.state.transaction():
            for name in names:
                check_idle(self.state, name)
                if name not in self.state.pending:
                    self.record(name)  # says what is known
            lifecycle.forget(self.settings, self.state, names)

    def try_task(self, task: Task, *, on_epoch: OnEpoch | None = None) -> list[Row]:
        """How well existing components would do: assimilates the task on the side.

        The learner is not changed; its components are used as they are.
        """
        check_is_task(task)
        state = self.state.snapshot()
        if not self._initialized:
            raise SettingError("try_task needs components: learn the initial tasks first")
        settings = replace(
            self.settings,
            adaptation=Frozen(),
            acceptance=TakeAll(),
            algorithm=replace(self.settings.algorithm, expansion=NoExpansion()),
            reduction=NoReduction(),
            calibration="none" if task.validation is None else self.settings.calibration,
        )
        check_task(settings, state, task, expanding=False)
        state.memory = {}
        return learner_of(Learner, settings, state).learn(task, on_epoch=on_epoch)

    def note_inputs(self, tasks: Task | Iterable[Task], inference: str | Inference | None = None) -> None:
        """Notes of tasks that were learned what `infer` needs, from their data: for learners that were made
        without it.

        inference: how tasks are to be told from each other, from now on (default: as before; if nothing was
        noted before, "inputs"). What was noted in another way is dropped.
        """
        given = as_tasks("to be noted", tasks)
        for task in given:
            self.record(task)
        with self.busy(), self.state.transaction():
            self.settings = lifecycle.note_inputs(self.settings, self.state, given, inference)

    # --- files -----------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Saves the learner (safetensors and JSON); a crash leaves the old or the new one."""
        storage.save(folder, self.settings, self.state.snapshot())

    def export_components(
        self, folder: str | os.PathLike[str], *, licence: str | None = None, note: str = ""
    ) -> None:
        """Writes the components into a folder that is new or empty (else: `SettingError`), with a card that
        says what they are and where they come from. Others begin with it: `Learner(components_from=folder)`.

        licence: under which others may use them. note: whatever they should know.
        """
        library_writing.export(folder, self.settings, self.state.snapshot(), versions(), licence, note)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], **parts: Any) -> Learner:
        """Loads a learner, to carry on exactly. Parts of one's own are passed again by name:
        `Learner.load(folder, structure=MyStructure())`; likewise another `device`."""
        return learner_of(cls, *storage.load(folder, parts))


def versions() -> dict[str, str]:
    """Of the software that components were trained with."""
    import piaget

    return {"piaget": piaget.__version__, "torch": str(torch.__version__)}


def load(folder: str | os.PathLike[str]) -> Learner | PriorLearner:
    """A learner of whatever class that was saved in a folder.

    Raises `LoadError` if there is none, or its files are damaged.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp() + "/learner"
    >>> piaget.Learner(width=8).save(folder)
    >>> piaget.load(folder)
    Learner(soft-ordering/er/dynamic, 0 tasks learned, 0 components)
    """
    from piaget.prior_learner import PriorLearner

    return PriorLearner.load(folder) if storage.holds_prior(folder) else Learner.load(folder)


L = TypeVar("L", bound=Learner)


def learner_of(cls: type[L], settings: Settings, state: State) -> L:
    """A learner with these settings, which knows this."""
    learner = cls.__new__(cls)
    learner.settings, learner.state = settings, state
    return learner


def _signature() -> inspect.Signature:
    """With all settings by name, for `help(Learner)`."""
    method = list(inspect.signature(Learner.__init__).parameters.values())[1:4]
    names = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in SETTINGS]
    return inspect.Signature([*method, *names])


Learner.__signature__ = _signature()  # type: ignore[attr-defined]
