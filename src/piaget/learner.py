"""Learner: the paper's Algorithm 1, for one run."""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from piaget import objective, storage
from piaget.adaptation import Adaptation, Finished, Frozen
from piaget.cohort import Run, advance
from piaget.components import Components
from piaget.errors import SettingError, TaskError, UnknownTaskError
from piaget.evaluation import Row, row
from piaget.expansion import NoExpansion
from piaget.model import DecoderMode, EncoderMode
from piaget.schedule import Stage as StageName
from piaget.settings import Algorithm, Settings, resolve
from piaget.stages import Stage
from piaget.state import Progress, State, TaskRecord, resize_moments, resize_own
from piaget.step import new_moments
from piaget.structures import Structure
from piaget.tasks import Split, Task
from piaget.trees import Tree, map_tree, resize


@dataclass(frozen=True)
class EpochReport:
    """What a progress display is told after each epoch."""

    seed: int
    task: str
    stage: StageName
    epoch: int
    epochs: int
    components: int


OnEpoch = Callable[[EpochReport], None]


class Learner:
    """Learns one task after another with reusable components.

    Strings choose the paper's parts, objects one's own. The defaults are the paper's settings:
    4 components, depth 4, dense layers of 64 units with dropout 0.5, a learned linear encoder,
    Adam with rate 1e-3, batches of 32, 100 epochs a task, of which the last adapts. With
    structure="linear": linear components, all samples in one batch, 10,000 epochs.
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
    ) -> None:
        self._start(
            resolve(
                structure, adaptation, algorithm, components, initial_components, depth, encoder,
                decoder, epochs, initial_tasks, initial_epochs, batch_size, learning_rate, seed,
                device, dtype,
            )
        )  # fmt: skip

    def _start(self, settings: Settings, state: State | None = None) -> None:
        self.settings = settings
        self.model = settings.model
        self._state = state or State(torch.Generator().manual_seed(settings.seed))

    # --- learning ------------------------------------------------------------------------------

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
        return advance([run], self.settings.learning_rate)[0]  # type: ignore[no-any-return]

    def initialize(self, *, on_epoch: OnEpoch | None = None) -> list[Row]:
        """Initializes the components now, with the tasks that are pending."""
        if not self._state.pending:
            raise SettingError("no task is pending: learn(task) first, or initialization is done")
        watch = _Watch(self, list(self._state.pending.values()), None, on_epoch)
        return advance([self._initialization(watch)], self.settings.learning_rate)[0]  # type: ignore[no-any-return]

    def learning(
        self,
        task: Task,
        *,
        evaluate_on: Iterable[Task] | None = None,
        every: int | None = None,
        on_epoch: OnEpoch | None = None,
    ) -> Run:
        """`learn`, as a run that yields its stages: for cohorts."""
        state = self._state
        resumed = state.progress is not None and task.name in state.progress.tasks
        if not resumed:
            self._check(task)
        tasks = [task] if evaluate_on is None else list(evaluate_on)
        watch = _Watch(self, tasks, every, on_epoch)
        if state.components and not state.pending:
            return self._task(task, watch)
        state.pending[task.name] = task
        if evaluate_on is None:
            watch.tasks = list(state.pending.values())
        return self._initialization(watch) if self._complete() else _nothing()

    def _complete(self) -> bool:
        return len(self._state.pending) >= self.settings.initial_tasks

    def _initialization(self, watch: _Watch) -> Run:
        """The initial tasks together: fixed random structures, components learn."""
        state, tasks = self._state, list(self._state.pending.values())
        if state.progress is None:
            self._begin_initialization(tasks)
        progress = self._continue()
        epochs = self.settings.initial_epochs
        if progress.epoch < epochs:
            yield self._stage("initialization", tasks, epochs - progress.epoch, epochs, watch)
        for task in tasks:
            self._finish(task)
        state.pending, state.progress = {}, None
        return watch.finish("initialization", epochs, tasks[-1].name)

    def _task(self, task: Task, watch: _Watch) -> Run:
        """Algorithm 1: assimilation, adaptation, expansion; then store what later tasks need."""
        state, expansion = self._state, self.settings.algorithm.expansion
        if state.progress is None:
            self._begin(task, candidate=expansion.proposes)
        progress = self._continue()
        stages = self.settings.stages()
        for stage, group in itertools.groupby(stages[progress.epoch :]):
            yield self._stage(stage, [task], len(list(group)), len(stages), watch)
        if progress.candidate:
            self._decide(task, watch)
        self._finish(task)
        state.progress = None
        return watch.finish(stages[-1] if stages else "none", len(stages), task.name)

    def _stage(
        self, name: StageName, tasks: list[Task], epochs: int, total: int, watch: _Watch
    ) -> Stage:
        state, settings = self._state, self.settings
        data = [(state.records[t.name], *self._tensors(t.train)) for t in tasks]
        progress = state.progress
        assert progress is not None
        end, done = progress.epoch + epochs, itertools.count(progress.epoch + 1)

        def after_epoch(commit: Callable[[], None]) -> None:
            epoch = next(done)
            if epoch == end or watch.due(epoch):
                commit()
                progress.epoch, progress.generator = epoch, state.generator.get_state()
            watch.epoch(EpochReport(settings.seed, tasks[-1].name, name, epoch, total, state.k))

        return Stage(
            name, epochs, self.model, settings.adaptation, settings.algorithm.expansion,
            settings.batch_size, state, data, after_epoch,
        )  # fmt: skip

    # --- how tasks begin and end -------------------------------------------------------------------

    def _continue(self) -> Progress:
        """After an interruption the generator may be ahead of the committed state."""
        progress = self._state.progress
        assert progress is not None
        self._state.generator.set_state(progress.generator)
        return progress

    def _begin_initialization(self, tasks: list[Task]) -> None:
        state, settings, model = self._state, self.settings, self.model
        generator, dtype = state.generator, settings.torch_dtype
        first = tasks[0]
        entering = model.shapes(first.input_shape)[0]
        k = settings.initial_components
        fresh = [model.components.draw(generator, entering, dtype) for _ in range(k)]
        state.components = self._to_device(map_tree(lambda *p: torch.stack(p), *fresh))
        state.moments = new_moments(state.components, (k,))
        outputs = max(objective.output_width(t.kind, t.classes) for t in tasks)
        state.io = self._to_device(model.draw_io(generator, first.input_shape, outputs, dtype))
        state.io_moments = new_moments(state.io)
        for task in tasks:
            self._meet(task)
        records = list(state.records.values())
        drawn = [record.own["structure"] for record in records]
        for record, own in zip(
            records, model.structure.draw_initial(generator, drawn, k), strict=True
        ):
            record.own["structure"] = self._to_device(own)
        self._track([t.name for t in tasks])

    def _begin(self, task: Task, candidate: bool) -> None:
        state, model = self._state, self.model
        if candidate:
            entering = model.shapes(task.input_shape)[0]
            fresh = model.components.draw(state.generator, entering, self.settings.torch_dtype)
            state.components = map_tree(
                lambda stack, new: torch.cat([stack, new[None].to(stack.device)]),
                state.components,
                fresh,
            )
            state.moments = map_tree(lambda m: resize(m, 0, len(m) + 1), state.moments)
        self._meet(task)
        self._track([task.name], candidate)

    def _meet(self, task: Task) -> None:
        """A new task's encoder, structure and decoder come into being."""
        state = self._state
        outputs = objective.output_width(task.kind, task.classes)
        own = self.model.draw_own(
            state.generator, task.input_shape, state.k, outputs, self.settings.torch_dtype
        )
        state.records[task.name] = TaskRecord(
            task.name, task.kind, task.classes, task.labels, task.input_shape, task.stream,
            state.k, self._to_device(own),
        )  # fmt: skip

    def _track(self, names: list[str], candidate: bool = False) -> None:
        state = self._state
        moments = {name: new_moments(state.records[name].own) for name in names}
        state.progress = Progress(names, moments, state.generator.get_state(), candidate=candidate)

    def _decide(self, task: Task, watch: _Watch) -> None:
        """Keeps the candidate component or discards it, by its effect on validation data."""
        state, record = self._state, self._state.records[task.name]
        assert state.progress is not None
        k = state.k
        split = task.validation
        assert split is not None
        scores = [self._score(task.name, split, components)[0] for components in (k, k - 1)]
        keeps = self.settings.algorithm.expansion.keeps(task.kind, scores[0], scores[1])
        metric = objective.metric_name(task.kind)
        for name, value in (
            (f"{metric} with candidate", scores[0]),
            (f"{metric} without candidate", scores[1]),
            ("kept", float(keeps)),
        ):
            watch.note(task, name, value)
        if not keeps:
            state.components = map_tree(lambda p: p[:-1].clone(), state.components)
            state.moments = map_tree(lambda p: p[:-1].clone(), state.moments)
            record.k = k - 1

            def cut(tree: Tree) -> Tree:
                return resize_own(tree, self.model.structure, k - 1, record.outputs)

            record.own = map_tree(torch.clone, cut(record.own))
            moments = state.progress.moments[task.name]
            state.progress.moments[task.name] = resize_moments(moments, cut)
        state.progress.candidate = False

    def _finish(self, task: Task) -> None:
        """Stores what later adaptation and inspection need."""
        state, record = self._state, self._state.records[task.name]
        x, y = self._tensors(task.train)
        visible = record.visible(state.k).to(x.device)
        params = self._params(record)
        with torch.no_grad():
            shown = x[: self.settings.batch_size or 1024]
            inputs = list(self.model.depth_inputs(params, shown, visible))
            own = record.own["structure"]
            record.usage = self.model.structure.usage(self.model.components, own, inputs).clone()
        finished = Finished(
            index=list(state.records).index(task.name), kind=record.kind, classes=record.classes,
            x=x, y=y, model=self.model, params=params, visible=visible,
            batch=self.settings.batch_size or len(x), generator=state.generator,
        )  # fmt: skip
        state.memory = self.settings.adaptation.remember(state.memory, finished)

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

    def predict(self, x: Any, task: str) -> Any:
        """Class labels or values for inputs x (n, *shape), of a task that was learned."""
        record = self._record(task)
        answer = objective.predict(record.kind, self._outputs(record, x)).cpu()
        if record.labels is not None:
            return np.asarray(record.labels)[answer.numpy()]
        return answer if isinstance(x, Tensor) else answer.numpy()

    def predict_proba(self, x: Any, task: str) -> Any:
        """Class probabilities (n, classes), in the order of the labels."""
        record = self._record(task)
        if record.kind == "regression":
            raise SettingError(f"task {task!r} is a regression: it has values, no probabilities")
        answer = objective.probabilities(record.kind, self._outputs(record, x)).cpu()
        return answer if isinstance(x, Tensor) else answer.numpy()

    def evaluate(self, tasks: Task | Sequence[Task], split: str = "test") -> list[Row]:
        """Rows for all of the given tasks that the learner has learned."""
        tasks = [tasks] if isinstance(tasks, Task) else list(tasks)
        known = [task for task in tasks if task.name in self.tasks]
        if tasks and not known:
            self._record(tasks[0].name)  # says what is known
        return _Watch(self, known, None, None).evaluate("evaluation", 0, self.tasks[-1], split)

    def try_task(self, task: Task, *, on_epoch: OnEpoch | None = None) -> list[Row]:
        """How well existing components would do: assimilates the task on the side.

        The learner is not changed; its components are used as they are.
        """
        if not self.tasks:
            raise SettingError("try_task needs components: learn the initial tasks first")
        if self._state.progress is not None:
            raise SettingError(f"finish learning {self._state.progress.tasks[-1]!r} first")
        self._check(task, expanding=False)
        trial = Learner.__new__(Learner)
        algorithm = replace(self.settings.algorithm, expansion=NoExpansion())
        settings = replace(self.settings, adaptation=Frozen(), algorithm=algorithm)
        state = copy.copy(self._state)
        state.generator = torch.Generator()
        state.generator.set_state(self._state.generator.get_state())
        state.records, state.memory = dict(state.records), {}
        trial._start(settings, state)
        return trial.learn(task, on_epoch=on_epoch)

    def structures(self) -> dict[str, Tensor]:
        """How each task weighs each component at each depth: {task: (components, depths)}.

        Soft gating depends on the input: its mean over training samples, when the task was
        learned. Linear combinations have one column an output instead of a depth.
        """
        usages = ((name, self._state.records[name].usage) for name in self.tasks)
        return {name: usage.clone() for name, usage in usages if usage is not None}

    # --- files -----------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Saves the learner (safetensors and JSON); a crash leaves the old or the new one."""
        storage.save(folder, self.settings, self._state)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], **parts: Any) -> Learner:
        """Loads a learner, to carry on exactly. Parts of one's own are passed again by name:
        `Learner.load(folder, structure=MyStructure())`."""
        learner = cls.__new__(cls)
        learner._start(*storage.load(folder, parts))
        return learner

    # --- checks and small things -------------------------------------------------------------------

    def _check(self, task: Task, expanding: bool = True) -> None:
        state, where = self._state, f"task {task.name!r}"
        if task.name in state.records or task.name in state.pending:
            raise TaskError(f"{where}: a task of this name was given before; names must differ")
        if state.progress is not None:
            raise TaskError(
                f"{where}: the learner is in the middle of {state.progress.tasks[-1]!r}; give it "
                "that task again to finish it first"
            )
        if "/" in task.name or "\0" in task.name:
            raise TaskError(f"{where}: a name may not contain '/' or NUL")
        if expanding and self.settings.algorithm.expansion.proposes and task.validation is None:
            raise TaskError(
                f"{where}: there is no validation split, but new components are judged by it; "
                "give validation data, or use the algorithm 'compositional'"
            )
        try:
            if self.settings.encoder == "none":
                self.model.components.check_input(task.input_shape)
            self._dry_run(task)
        except (TaskError, SettingError) as error:
            raise type(error)(f"{where}: {error}") from None

    def _dry_run(self, task: Task) -> None:
        """Shapes through the whole network on two samples, so that errors come before training."""
        shapes = self.model.shapes(task.input_shape)
        if any(size < 1 for shape in shapes for size in shape):
            raise TaskError(
                f"inputs of shape {task.input_shape} shrink to {shapes} on the way through "
                f"{self.settings.depth} depths; expected larger images or less depth"
            )
        shared = {**self._state.io, **self._state.components}
        known = self._state.components or self._state.pending
        if self.model.encoder == "shared" or self.model.components.whole_model:
            first = next(iter([*self._state.records.values(), *self._state.pending.values()]), task)
            if known and tuple(first.input_shape) != task.input_shape:
                raise TaskError(
                    f"inputs have shape {task.input_shape}, but all tasks share one "
                    f"{'encoder' if shared and self.model.encoder == 'shared' else 'set of features'}"
                    f" for shape {tuple(first.input_shape)}"
                )
        probe = torch.Generator().manual_seed(0)
        outputs = objective.output_width(task.kind, task.classes)
        self.model.draw_own(probe, task.input_shape, 1, outputs, self.settings.torch_dtype)

    def _record(self, name: str) -> TaskRecord:
        state = self._state
        if name in state.pending:
            left = self.settings.initial_tasks - len(state.pending)
            raise UnknownTaskError(
                f"task {name!r} is pending: the first {self.settings.initial_tasks} tasks are "
                f"initialized together, and {left} more must come; or call initialize() now"
            )
        if name not in self.tasks:
            known = ", ".join(map(repr, self.tasks)) or "none yet"
            raise UnknownTaskError(f"task {name!r} is not known; known tasks: {known}")
        return state.records[name]

    def _outputs(self, record: TaskRecord, x: Any) -> Tensor:
        inputs = torch.as_tensor(x).to(self.settings.device, self.settings.torch_dtype)
        if tuple(inputs.shape[1:]) != tuple(record.input_shape):
            raise TaskError(
                f"task {record.name!r}: inputs have shape {tuple(inputs.shape)}; expected "
                f"(samples, {', '.join(map(str, record.input_shape))})"
            )
        if not bool(torch.isfinite(inputs).all()):
            raise TaskError(f"task {record.name!r}: NaN or infinite inputs")
        visible = record.visible(self._state.k).to(inputs.device)
        return self.model.outputs(self._params(record), inputs, visible)

    def _score(self, name: str, split: Split, components: int) -> tuple[float, float]:
        """A task's score and loss on a split, with the first so many components visible."""
        record = self._state.records[name]
        x, y = self._tensors(split)
        visible = (torch.arange(self._state.k) < min(components, record.k)).to(x.device)
        out = self.model.outputs(self._params(record), x, visible)
        outputs = out.shape[1]
        target = objective.target_rows(record.kind, y, outputs, out.dtype)
        described = self._to_device(objective.describe(record.kind, record.classes, outputs))
        loss = objective.sample_losses(out, target["column"], target["value"], described)
        return objective.score(record.kind, out, y), float(loss.mean())

    def _params(self, record: TaskRecord) -> Tree:
        state = self._state
        own = resize_own(record.own, self.model.structure, state.k, record.outputs)
        return {"components": state.components, "own": own, "io": state.io}

    def _tensors(self, split: Split) -> tuple[Tensor, Tensor]:
        dtype, device = self.settings.torch_dtype, self.settings.device
        y = split.y.to(dtype) if split.y.is_floating_point() else split.y
        return split.x.to(device, dtype), y.to(device)

    def _to_device(self, tree: Tree) -> Tree:
        return map_tree(lambda t: t.to(self.settings.device), tree)


class _Watch:
    """Evaluates a learner while it learns, and collects the rows."""

    def __init__(
        self, learner: Learner, tasks: list[Task], every: int | None, on_epoch: OnEpoch | None
    ) -> None:
        self.learner, self.tasks, self.every, self.on_epoch = learner, tasks, every, on_epoch
        self.rows: list[Row] = []

    def due(self, epoch: int) -> bool:
        return self.every is not None and epoch % self.every == 0

    def epoch(self, report: EpochReport) -> None:
        if self.due(report.epoch) and report.epoch < report.epochs:
            self.rows += self.evaluate(report.stage, report.epoch, report.task)
        if self.on_epoch is not None:
            self.on_epoch(report)

    def finish(self, stage: str, epoch: int, trained: str) -> list[Row]:
        self.rows += self.evaluate(stage, epoch, trained)
        return self.rows

    def note(self, task: Task, metric: str, value: float) -> None:
        settings = self.learner.settings
        epoch = len(settings.stages())
        self.rows.append(
            row(
                self._base(task.stream), trained=task.name, epoch=epoch, stage="expansion",
                evaluated=task.name, split="validation", metric=metric, value=value,
            )  # fmt: skip
        )

    def _base(self, stream: str) -> dict[str, Any]:
        settings = self.learner.settings
        return {"stream": stream, "method": settings.method, "seed": settings.seed}

    def evaluate(self, stage: str, epoch: int, trained: str, split: str = "test") -> list[Row]:
        learner, rows = self.learner, []
        records = learner._state.records
        for task in self.tasks:
            data: Split | None = getattr(task, split)
            if task.name not in records or data is None:
                continue
            score, loss = learner._score(task.name, data, learner.components)
            metrics = {objective.metric_name(task.kind): score, "loss": loss}
            for metric, value in metrics.items():
                rows.append(
                    row(
                        self._base(task.stream), trained=trained, epoch=epoch, stage=stage,
                        evaluated=task.name, split=split, metric=metric, value=value,
                    )  # fmt: skip
                )
        stream = records[trained].stream if trained in records else ""
        rows.append(
            row(
                self._base(stream), trained=trained, epoch=epoch, stage=stage, evaluated="",
                split="", metric="components", value=float(learner.components),
            )  # fmt: skip
        )
        return rows


def _nothing() -> Run:
    return []
    yield  # makes this a run that asks for no work


class Cohort:
    """Several learners of one method, trained as one batched computation.

    Each run's result is the same, to floating-point tolerance, as when it is trained alone.
    """

    def __init__(self, learners: Sequence[Learner]) -> None:
        if not learners:
            raise SettingError("a cohort needs at least one learner")
        forms = {replace(learner.settings, seed=0) for learner in learners}
        if len(forms) > 1:
            raise SettingError("the learners of a cohort may differ in their seeds only")
        self.learners = list(learners)

    def learn(
        self,
        tasks: Sequence[Task],
        *,
        evaluate_on: Sequence[Iterable[Task]] | None = None,
        every: int | None = None,
        on_epoch: OnEpoch | None = None,
    ) -> list[list[Row]]:
        """Run i learns tasks[i]; returns each run's rows. See `Learner.learn`."""
        if len(tasks) != len(self.learners):
            raise SettingError(f"{len(tasks)} tasks for {len(self.learners)} learners")
        others = evaluate_on if evaluate_on is not None else [None] * len(tasks)  # type: ignore[list-item]
        runs = [
            learner.learning(task, evaluate_on=seen, every=every, on_epoch=on_epoch)
            for learner, task, seen in zip(self.learners, tasks, others, strict=True)
        ]
        return advance(runs, self.learners[0].settings.learning_rate)
