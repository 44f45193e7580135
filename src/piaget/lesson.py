"""One lesson: a task is learned, or the initial tasks together. The paper's Algorithm 1, for one run.

A lesson is a generator. It yields a stage for every epoch to be trained, receives what came of it, and takes
that over into the learner's state: so many lessons can be trained at once (engine/training.py), and one that
was interrupted goes on where its state is.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator
from dataclasses import replace
from functools import partial

from torch import Tensor

from piaget.data.tasks import Task
from piaget.engine.stage import Idle, Stage, TaskData
from piaget.engine.training import Learning, Trained
from piaget.errors import NotFinite, SettingError
from piaget.knowledge import lifecycle
from piaget.knowledge.state import Common, Progress, State
from piaget.method.expansion import Evidence
from piaget.method.schedule import StageKind
from piaget.method.settings import Settings
from piaget.scoring.bounding import reduce_all
from piaget.scoring.judging import accepted_share
from piaget.scoring.rows import ADAPTED, BEST_EPOCH
from piaget.scoring.scores import TaskNetwork
from piaget.scoring.watch import Watch, diverged

Epochs = Generator[Stage | Idle, Trained | None, None]  # a part of a lesson


class Lesson:
    """Algorithm 1, with the paper's line numbers. Who is frozen in an epoch is data: `StageKind.trains`."""

    def __init__(self, settings: Settings, state: State, watch: Watch, tasks_in_all: int = 1) -> None:
        self.settings, self.state, self.watch = settings, state, watch
        self.tasks_left = max(1, tasks_in_all - settings.initial_tasks)  # after initialization
        self.epoch = 0  # of the task, the last one that was trained
        self.stage = "begin"  # it was in this stage
        self.trained: Trained | None = None  # what came of that epoch, until the stage is over

    def initialize(self, pending: dict[str, Task]) -> Learning:
        """The initial tasks together. Numbers that are not finite end it with `Diverged`."""
        return self._noticing(list(pending)[-1], self._initialize(pending))

    def learn(self, task: Task) -> Learning:
        """A new task. Numbers that are not finite end it with `Diverged`."""
        return self._noticing(task.name, self._learn(task))

    def _noticing(self, task: str, learning: Learning) -> Learning:
        """The learner is then as it was before the task, which would only diverge again. (Not one that was
        loaded in the middle of the task: what was before is not in its files.)"""
        if self.state.progress is None:
            self.state.before = self.state.snapshot()
        try:
            rows = yield from learning
        except NotFinite as error:
            if self.state.before is not None:
                self.state.restore(self.state.before)
            raise diverged(self.settings, task, self.stage, self.epoch, error) from None
        self.state.before = None
        return rows

    def _initialize(self, pending: dict[str, Task]) -> Learning:
        """Line 1: the initial tasks together; with fixed random structures, only components learn."""
        settings, state, tasks = self.settings, self.state, list(pending.values())
        if state.progress is None:
            with state.transaction():
                state.pending = pending
                lifecycle.begin_initialization(settings, state, tasks)
        self._resume()
        kinds = [settings.initialization] * settings.initial_epochs
        yield from self._train(tasks, kinds)
        self._calibrate(tasks)
        self.watch.majorities("initialization", len(kinds), tasks[-1].name, tasks)
        rows = self.watch.evaluate("initialization", len(kinds), tasks[-1].name)
        with state.transaction():
            for task in tasks:
                lifecycle.finish(settings, state, task)
            state.pending, state.progress = {}, None
        return rows

    def _learn(self, task: Task) -> Learning:
        """Lines 3 to 12: a new task, with components that exist."""
        settings, state, expansion = self.settings, self.state, self.settings.algorithm.expansion
        if state.progress is None:
            at_once = expansion.proposes and not expansion.in_second_attempt
            with state.transaction():
                lifecycle.begin(settings, state, task, candidate=at_once)
        progress, kinds = self._resume(), settings.stages()
        if progress.first is None:
            yield from self._train([task], kinds)  # 3 to 10: assimilation and adaptation, by the schedule
            progress = self._decide_on_second_attempt(task, progress, len(kinds))
        if progress.first is not None:
            yield from self._train([task], kinds, before=len(kinds))
        if progress.candidate:
            with state.transaction():
                self._expand(task, progress)  # 11
        if settings.reduction.tries and not progress.reduced:
            with state.transaction():
                self.watch.reductions(task.name, reduce_all(settings, state, task))
                progress.reduced = True
        self._calibrate([task])
        last, epochs = kinds[-1].name if kinds else "none", settings.most_epochs
        self.watch.counts(last, epochs, task.name, progress.counts)
        self.watch.majorities(last, epochs, task.name, [task])
        rows = self.watch.evaluate(last, epochs, task.name)
        with state.transaction():
            lifecycle.finish(settings, state, task)  # 12: what future adaptation needs
            state.progress = None
        return rows

    # --- lines 3 to 10 ------------------------------------------------------------------------------

    def _train(self, tasks: list[Task], kinds: list[StageKind], before: int = 0) -> Epochs:
        """All epochs: those of one kind that follow each other are one stage. before: epochs of the task that
        an earlier attempt had."""
        settings, state, progress = self.settings, self.state, self.state.progress
        assert progress is not None
        start = before
        for kind, epochs in itertools.groupby(kinds):
            end = start + len(list(epochs))
            if progress.epoch < end:
                stage = Stage(
                    kind=kind,
                    settings=settings,
                    state=state,
                    data=tuple(TaskData(state.records[t.name], t.train) for t in tasks),
                    done=kinds[: progress.epoch - before].count(kind),
                    epochs=kinds.count(kind),
                    left=end - progress.epoch,
                    repeats=1 if kind == settings.initialization else self.tasks_left,
                    epochs_in_all=settings.initial_tasks * settings.initial_epochs
                    + self.tasks_left * settings.most_epochs,
                )
                if self._is_judged(stage) and progress.before is None:
                    progress.before = state.common
                most = len(kinds) if kind == settings.initialization else settings.most_epochs
                yield from self._epochs(stage, tasks, start, end, most)
            if progress.before is not None and progress.epoch == end:
                self._accept(tasks[-1], kind, progress.before)
            start = end

    def _epochs(self, stage: Stage, tasks: list[Task], start: int, end: int, epochs: int) -> Epochs:
        """One stage: the epochs of the task after `start`, up to `end`, or until it stops early."""
        settings, state, watch, progress = self.settings, self.state, self.watch, self.state.progress
        assert progress is not None
        self.epoch = epoch = progress.epoch
        self.stage = stage.kind.name
        chooses, every = settings.kept_epoch.watches and stage.own_only, settings.kept_epoch.every
        while epoch < end and not self._stops(progress):
            self.trained = trained = yield stage
            self.epoch = epoch = epoch + 1
            assert trained is not None
            if not trained.finite:
                raise NotFinite("parameters are not finite")
            looks = chooses and (epoch == end or (epoch - start) % every == 0)
            refresh = partial(self._refresh, epoch, looks, tasks, end)
            if epoch == end or watch.due(epoch) or trained.keep or settings.stop.watches or looks:
                refresh()
            if watch.epoch(stage.kind.name, tasks, epoch, epochs, refresh):
                refresh()
                progress.stopped = True
        self.trained = None
        if epoch < end:
            yield Idle(stage)
            watch.add(tasks[-1].name, epoch, stage.kind.name, "stopped", float(end - epoch))
        with state.transaction():
            self._close(progress, end)

    def _refresh(self, at: int, looks: bool, tasks: list[Task], end: int) -> None:
        """Brings the state up to date with an epoch of the stage. (Who keeps this for later does not keep the
        data that was trained on.)"""
        state, progress = self.state, self.state.progress
        if at != self.epoch:
            raise SettingError(f"the report of epoch {at} cannot tell scores after that epoch")
        if progress is None or progress.epoch == at:
            return
        assert self.trained is not None
        with state.transaction():
            state.take(self.trained.update(), at)
            if self.settings.stop.watches:
                progress.gains = [*progress.gains, self.watch.gain(tasks)]
            if looks:
                self._look(tasks, progress)
            if at == end:
                self._close(progress, end)

    def _look(self, tasks: list[Task], progress: Progress) -> None:
        """Is this epoch, for each of the tasks, the one to keep so far?"""
        for task in tasks:
            seen = [*progress.validated.get(task.name, []), self.watch.validated(task)]
            progress.validated = progress.validated | {task.name: seen}
            if self.settings.kept_epoch.prefers(seen):
                self.state.note_best(task.name)

    def _close(self, progress: Progress, end: int) -> None:
        """The stage is over. (Closing it once more changes nothing.)"""
        for name, best in progress.best.items():
            last, epoch = progress.tasks[-1], float(best.epoch)
            self.watch.add(last, end, self.stage, BEST_EPOCH, epoch, name, "validation")
        self.state.return_to_best()
        progress.epoch, progress.stopped, progress.gains = end, False, []

    def _stops(self, progress: Progress) -> bool:
        """Does the stage end early? Told by what is kept: a run that goes on decides as it would have."""
        gains = progress.gains
        return progress.stopped or (bool(gains) and self.settings.stop.stops(gains))

    def _is_judged(self, stage: Stage) -> bool:
        """Is it a stage of which not all may be taken over?"""
        return stage.kind.adapts and self.settings.acceptance.judges and "components" in stage.trained

    def _accept(self, task: Task, kind: StageKind, before: Common) -> None:
        """Takes over as much of an adaptation as is judged to be good. (In the paper, everything.)"""
        state, progress = self.state, self.state.progress
        assert progress is not None
        share = accepted_share(self.settings, state, task, before)
        with state.transaction():
            state.put(before.towards(state.common, share))
            progress.before = None
        self.watch.add(task.name, progress.epoch, kind.name, ADAPTED, share)

    # --- line 11 ------------------------------------------------------------------------------------

    def _decide_on_second_attempt(self, task: Task, progress: Progress, epochs: int) -> Progress:
        """Begins a second attempt at the task, after `epochs` of the first, if a component that made all
        validation samples right would be kept; the progress of the attempt that goes on."""
        settings, state = self.settings, self.state
        if not settings.algorithm.expansion.in_second_attempt or progress.epoch != epochs:
            return progress
        assert task.validation is not None
        network = TaskNetwork(settings, state, state.records[task.name])
        h, y = network.encoded(task.validation)
        evidence = Evidence.at_best(task.kind, network.outputs_of_encoded(h), y)
        with state.transaction():
            if settings.algorithm.expansion.keeps(evidence):
                lifecycle.begin_again(settings, state, task)
                self.watch.forget(task.name)
            else:
                progress.epoch, progress.origin = settings.most_epochs, None
        assert state.progress is not None
        return state.progress

    def _expand(self, task: Task, progress: Progress) -> None:
        """Keeps the candidate component or discards it, by its effect on validation data."""
        record = self.state.records[task.name]
        assert task.validation is not None
        evidence = TaskNetwork(self.settings, self.state, record).evidence(task.validation)
        if progress.first is not None:
            first = replace(evidence, without=self._first_outputs(task))
            if any(self.settings.algorithm.expansion.passes) and evidence.errors[1] < first.errors[1]:
                progress.first = None  # the second attempt is better, even with the candidate hidden
            else:
                evidence = first
        kept = self.settings.algorithm.expansion.keeps(evidence)
        self.watch.decision(record, evidence, kept)
        if not kept:
            lifecycle.discard_candidate(self.settings, self.state, task)
        progress.candidate, progress.first = False, None
        self.watch.forget(task.name)

    def _first_outputs(self, task: Task) -> Tensor:
        """What the first attempt answers to the validation data."""
        state = self.state.snapshot()
        state.return_to_first()
        assert task.validation is not None
        network = TaskNetwork(self.settings, state, state.records[task.name])
        return network.outputs_of_encoded(network.encoded(task.validation).h)

    # --- beyond the paper -----------------------------------------------------------------------------

    def _calibrate(self, tasks: list[Task]) -> None:
        """How sure the probabilities of tasks are that have been learned."""
        if self.settings.calibration == "none":
            return
        with self.state.transaction():
            for task in tasks:
                record = self.state.records[task.name]
                if record.kind != "regression" and task.validation is not None:
                    network = TaskNetwork(self.settings, self.state, record)
                    record.temperature = network.temperature(task.validation)

    def _resume(self) -> Progress:
        """After an interruption the generator may be ahead of the state that was taken over."""
        progress = self.state.progress
        assert progress is not None
        self.state.generator.set_state(progress.generator)
        return progress
