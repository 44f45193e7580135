"""Training one run, or many runs at once: the run axis is made and undone here.

A run is a generator. It yields a stage for every epoch that it wants trained, and receives what came of it.
Stages of the same form are stacked along a leading run axis, and each step is computed for all of them
together.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from piaget.engine.averaging import Tail
from piaget.engine.banks import Size
from piaget.engine.batches import Batch, Epoch, Plan, draw_plan, empty_plan
from piaget.engine.compiled import pays
from piaget.engine.heap import give_back
from piaget.engine.layout import Layout, Part, of_run, stacked
from piaget.engine.outcome import outcome
from piaget.engine.part_step import PartStep
from piaget.engine.stage import Idle, Stage
from piaget.engine.step import Standing, Step
from piaget.errors import Diverged
from piaget.knowledge.state import Update
from piaget.method.parameters import PAST_ROLES, TASK_ROLES, Role
from piaget.method.rates import ConstantRate, Moment
from piaget.scoring.rows import Row


@dataclass(frozen=True, eq=False)
class Trained:
    """What a run receives after an epoch. `keep`: its state is about to be kept, and must be up to date."""

    training: Training
    place: int  # of the run, among those that are trained together
    keep: bool

    @property
    def finite(self) -> bool:
        """As far as has been looked, its parameters are finite."""
        return self.training.finite[self.place]

    def update(self) -> Update:
        """All that changed since the last update, as copies."""
        return self.training.update(self.place)


# How a run learns a task: it yields a stage for each epoch to be trained, or that it only waits for the
# others of its stage (then it receives None when the stage is over); it returns its rows.
Learning = Generator[Stage | Idle, Trained | None, list[Row]]


class Keeper(Protocol):
    """Keeps the states of runs while they learn."""

    def due(self) -> bool:
        """After an epoch: are states to be brought up to date, and kept?"""

    def keep(self) -> None:
        """All states are consistent now."""


LOOK_EVERY = 300  # steps, at least: so looking takes about a hundredth of the shortest steps' time

# --- many runs ----------------------------------------------------------------------------------------------


def advance(
    runs: Sequence[Learning],
    keeper: Keeper | None = None,
    set_aside: Callable[[int, Diverged], None] | None = None,
) -> list[list[Row]]:
    """Drives all runs to their ends, training together what can be trained together.

    A run that diverges is left where it is, and the others go on. `set_aside` is told of it at once; without
    it, the error is raised when the others have ended.
    """
    results: list[list[Row]] = [[] for _ in runs]
    waiting: dict[int, Stage | Idle] = {}
    errors: list[Diverged] = []

    def resume(i: int, trained: Trained | None) -> None:
        """The run goes on to its next wish, or to its end."""
        waiting.pop(i, None)
        try:
            waiting[i] = runs[i].send(trained)
        except StopIteration as end:
            results[i] = end.value
        except Diverged as error:
            errors.append(error)
            if set_aside is not None:
                set_aside(i, error)

    for i in range(len(runs)):
        resume(i, None)

    def together(members: list[int]) -> None:
        """One stage of these runs, to its end. Nothing of it is left when the next one is laid out."""
        stages = [_stage_of(waiting[i]) for i in members]
        give_back()  # what earlier stages had
        training = Training(stages)
        give_back()  # what laying it out needed for a moment
        while True:
            # The same object again: one more epoch of the stage. Others have left it.
            active = [waiting.get(i) is stage for i, stage in zip(members, stages, strict=True)]
            if not any(active):
                break
            training.epoch(active)
            keep = keeper is not None and keeper.due()
            for place, i in enumerate(members):
                if active[place]:
                    resume(i, Trained(training, place, keep))
            if keep and keeper is not None:
                keeper.keep()  # only now: all of them are at the same epoch

    while waiting:
        for members in alike(waiting):
            together(members)
            for i in members:
                if isinstance(waiting.get(i), Idle):
                    resume(i, None)
    if errors and set_aside is None:
        raise _all_of(errors)
    return results


def _all_of(errors: Sequence[Diverged]) -> Diverged:
    """The first one, which tells of all seeds."""
    first, *others = errors
    if not others:
        return first
    seeds = ", ".join(str(error.seed) for error in others)
    return Diverged(f"{first}; likewise the seeds {seeds}", first.task, first.stage, first.epoch, first.seed)


def _stage_of(wish: Stage | Idle) -> Stage:
    return wish.stage if isinstance(wish, Idle) else wish


def alike(waiting: dict[int, Stage | Idle]) -> list[list[int]]:
    """Groups runs by the form of the stage they wait for."""
    groups: dict[Any, list[int]] = {}
    for i, wish in waiting.items():
        stage = _stage_of(wish)
        inputs = tuple(tuple(data.record.input_shape) for data in stage.data)
        stored = tuple((s.task, tuple(s.h.shape[1:])) for s in stage.samples)
        seen = len(stage.state.records)  # memories grow with it
        chosen = tuple(stage.chosen(data.record) is not None for data in stage.data)
        form = (stage.kind, stage.settings.model, inputs, stored, stage.passes, seen, chosen)
        groups.setdefault(form, []).append(i)
    return list(groups.values())


# --- stages of one form -------------------------------------------------------------------------------------


class Training:
    """Stages of one form, trained together. A single one is left as it is, without a run axis."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.stages, self.cohort = stages, len(stages) > 1
        self.layouts = [Layout(stage) for stage in stages]
        self.size = Size.of([layout.size for layout in self.layouts])
        self.works = [layout.work(self.size) for layout in self.layouts]
        self.work = stacked(self.works) if self.cohort else self.works[0]
        self.compile = pays(stages)
        counts = self.work.counts
        self.rate = torch.zeros_like(counts.sum(-1, keepdim=True))  # ([R,] 1)
        self.steps = torch.zeros_like(counts.sum(-1))  # ([R])
        self.part_steps = [self._step(part) for part in self.work.parts]
        self.epochs = 0
        self.epochs_alike = stages[0].epochs_alike
        self.steps_an_epoch: list[int] = []  # of each run
        self.turns_an_epoch: list[int] = []  # the same, counting all parts and passes of a turn as one
        self.active: Sequence[bool] = ()
        self.repeated: list[tuple[Batch | None, ...]] | None = None  # an epoch, if all are the same
        self.unread = [0] * len(stages)  # steps since the last update of each run
        self.unseen = 0  # steps since it was last looked whether all is finite
        self.finite = [True] * len(stages)
        # Parameters that are infinite from the start (of a structure) are looked at when they are taken over.
        learning = (p for key in self.work.slots for p in self.work.groups[key].values())
        self.learning = [p for p in learning if bool(torch.isfinite(p).all())]

    def _step(self, part: Part) -> PartStep:
        """A step with all that stays the same during the stage."""
        work, stage = self.work, self.stages[0]
        settings = stage.settings
        params = {role: work.groups[key] for role, key in part.keys.items()}
        standing = Standing(
            trained={role: params[role] for role in part.trained},
            slots={role: work.slots[part.keys[role]] for role in part.trained},
            counts=work.counts,
            totals=work.totals,
            rate=self.rate,
            steps=self.steps,
            frozen={role: tensors for role, tensors in params.items() if role not in part.trained},
            fixed=part.fixed,
            memory=part.memory,
            reference=None if part.reference is None else part.reference.fixed,
        )
        slices = {role: work.places[part.keys[role]] for role in part.trained}
        adaptation = settings.adaptation
        # References of another form than the batch's cannot be compared with it.
        informed = adaptation.references == 0 or part.reference is not None
        step = Step(
            loss=part.loss,
            passes=stage.passes,
            optimizer=settings.optimizer,
            places=tuple((role, place.start, place.stop) for role, place in slices.items()),
            corrects=stage.kind.adapts and "components" in part.trained and adaptation.corrects and informed,
            cohort=self.cohort,
        )
        return PartStep(step, standing, self.compile)

    def _moves(self, part: Part, hide: bool) -> list[tuple[str, int]]:
        """What moves each group of parameters in a pass over a part, and how many counts it has."""
        roles = {part.keys[role]: role for role in part.trained if not (hide and role == "candidate")}
        return [
            (MOVES.get(roles[key], "active") if key in roles else "never", place.stop - place.start)
            for key, place in self.work.places.items()
        ]

    # --- an epoch ---------------------------------------------------------------------------------

    def epoch(self, active: Sequence[bool]) -> None:
        """One epoch of the runs that are active; where there are several parts, their batches take turns."""
        if active != self.active:
            self.active, self.repeated = list(active), None
            for step in self.part_steps:
                step.renew()
        turns, tail = self._turns(), self._tail()
        by_step = self.stages[0].settings.rate_schedule.by_step
        for number, turn in enumerate(turns):
            if number == 0 or by_step:
                self._set_rates(number)
            for batch, step in zip(turn, self.part_steps, strict=True):
                if batch is not None:
                    step(batch)
            if tail is not None:
                tail.add(number)
        if tail is not None:
            tail.put()
        self.epochs += 1
        for place, steps in enumerate(self.steps_an_epoch):
            self.unread[place] += steps
        self.unseen += max(self.steps_an_epoch)
        if self.unseen >= LOOK_EVERY:
            self._look()

    def _tail(self) -> Tail | None:
        """What is averaged in this epoch: the last one of a stage that adapts. None: nothing."""
        share = self.stages[0].settings.averaging
        last = [stage.kind.adapts and self.epochs == stage.left - 1 for stage in self.stages]
        if share == 0 or not any(last):
            return None
        return Tail(self.learning, self.turns_an_epoch, [share * one for one in last], self.cohort)

    def _look(self) -> None:
        """Which runs are still finite? What is not stays so: it is enough to look now and then.

        In float64 no sum of finite numbers of a network overflows; a sum with any other number is not finite.
        """
        self.unseen = 0
        if self.learning:
            runs = len(self.stages)
            sums = [p.reshape(runs, -1).sum(1, dtype=torch.float64) for p in self.learning]
            self.finite = torch.isfinite(torch.stack(sums).sum(0)).tolist()

    def _set_rates(self, step: int) -> None:
        """Each run's own: one that waited, or was interrupted at another moment, may be at another epoch; and
        one that has fewer steps an epoch is further on after the same number."""
        settings = self.stages[0].settings
        if self.epochs > 0 and isinstance(settings.rate_schedule, ConstantRate):
            return
        moments = [
            Moment(
                stage=stage.kind.name,
                adapts=stage.kind.adapts,
                epoch=min(stage.done + self.epochs, stage.epochs - 1),
                epochs=stage.epochs,
                step=min(step, max(turns - 1, 0)),
                steps=turns,
            )
            for stage, turns in zip(self.stages, self.turns_an_epoch, strict=True)
        ]
        rates = [settings.learning_rate * settings.rate_schedule.at(moment) for moment in moments]
        self.rate.copy_(torch.tensor(rates, dtype=torch.float64).view_as(self.rate))

    def _turns(self) -> Iterable[tuple[Batch | None, ...]]:
        """The next batch of each part, of an epoch that is drawn now, or of the same one again."""
        if self.repeated is not None:
            return self.repeated
        turns = self._drawn()
        if not self.epochs_alike:
            return turns
        self.repeated = list(turns)
        return self.repeated

    def _drawn(self) -> Iterator[tuple[Batch | None, ...]]:
        """A new epoch."""
        plans_of_runs = self._plans(self.active)
        passes = self.stages[0].passes
        self.steps_an_epoch = [
            len(passes) * sum(len(plan.index) for plan in plans) for plans in plans_of_runs
        ]
        self.turns_an_epoch = [max(len(plan.index) for plan in plans) for plans in plans_of_runs]
        if self.epochs == 0:  # the steps of epochs before an interruption count, too
            steps = zip(self.stages, self.steps_an_epoch, strict=True)
            before = [float(stage.done * count) for stage, count in steps]
            self.steps.copy_(torch.tensor(before if self.cohort else before[0], dtype=torch.float64))
        slots = self.size.slots
        structure = self.stages[0].settings.structure
        noise_slots = [structure.noise_slots(slots - hide) for hide in passes]
        epochs = []
        for part, plans in zip(self.work.parts, zip(*plans_of_runs, strict=True), strict=True):
            moves = [self._moves(part, hide) for hide in passes]
            epochs.append(Epoch(part, plans, slots, noise_slots, self.cohort, moves).batches())
        return itertools.zip_longest(*epochs)

    def _plans(self, active: Sequence[bool]) -> list[list[Plan]]:
        """Of each run, of each part. A run that waits draws nothing."""
        drawn = [
            [draw_plan(stage, part) for part in work.parts] if draws else []
            for stage, work, draws in zip(self.stages, self.works, active, strict=True)
        ]
        idle = [empty_plan(plan) for plan in next(filter(None, drawn))]
        return [plans or idle for plans in drawn]

    def update(self, place: int) -> Update:
        """One run's results since it last took them."""
        work = of_run(self.work, place) if self.cohort else self.work
        update = outcome(self.layouts[place], work, self.unread[place])
        self.unread[place] = 0
        for total in work.totals.values():
            total.zero_()
        return update


# What moves a group of parameters: a batch with a sample that may use the component, or one of the current
# task's samples, or of the past task's, or any batch at all.
MOVES: dict[Role, str] = {
    "components": "components",
    **dict.fromkeys(TASK_ROLES, "current"),
    **dict.fromkeys(PAST_ROLES, "past"),
}
