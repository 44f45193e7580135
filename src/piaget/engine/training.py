"""Training one run, or many runs at once: the run axis is made and undone here.

A run asks for work by yielding a `Stage`. Stages of the same form are stacked along a leading run
axis, and each step is computed for all of them together.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from piaget.engine.batches import PartPlan
from piaget.engine.compiled import Compiled, compiled
from piaget.engine.stages import Part, Size, Stage, Work
from piaget.engine.step import Step
from piaget.method.trees import Tree, leaves, map_tree, resize
from piaget.scoring.rows import Row

BLOCK = 2**22  # bytes of rows taken at a time: what stays in a processor's cache

Run = Generator[Stage, None, list[Row]]  # yields stages to be trained; returns the run's rows


class Keeper(Protocol):
    """Keeps the states of runs while they learn."""

    def due(self) -> bool:
        """After an epoch: are states to be brought up to date, and kept?"""

    def keep(self) -> None:
        """All states are consistent now."""


def advance(runs: Sequence[Run], rate: float, keeper: Keeper | None = None) -> list[list[Row]]:
    """Drives all runs to their ends, training together what can be trained together."""
    results: list[list[Row]] = [[] for _ in runs]
    waiting: dict[int, Stage] = {}

    def resume(i: int) -> None:
        try:
            waiting[i] = next(runs[i])
        except StopIteration as end:
            results[i] = end.value

    for i in range(len(runs)):
        resume(i)
    while waiting:
        for members in _alike(waiting):
            stages = [waiting.pop(i) for i in members]
            train(stages, rate, keeper)
            for i in members:
                resume(i)
    return results


def _alike(waiting: dict[int, Stage]) -> list[list[int]]:
    """Groups runs by the form of the stage they wait for."""
    groups: dict[Any, list[int]] = {}
    for i, stage in waiting.items():
        inputs = tuple(record.input_shape for record, _, _ in stage.data)
        stored = tuple((int(s["task"]), s["h"].shape[1:]) for s in stage.replay)
        seen = len(stage.state.records)  # memories grow with it
        form = (
            stage.name, stage.epochs, stage.model, stage.batch is None, inputs, stored, stage.passes, seen
        )  # fmt: skip
        groups.setdefault(form, []).append(i)
    return list(groups.values())


def train(stages: Sequence[Stage], rate: float, keeper: Keeper | None = None) -> None:
    """Trains stages of one form together, and leaves the results in the runs' states."""
    together = _Together(stages, rate)
    for _ in range(stages[0].epochs):
        together.epoch()
        due = keeper is not None and keeper.due()
        for run, stage in enumerate(stages):
            stage.after_epoch(partial(together.commit, run), due)
        if due and keeper is not None:
            keeper.keep()  # only now: all of them are at the same epoch


class _Together:
    """Stages of one form, stacked. A single one is left as it is, without a run axis."""

    def __init__(self, stages: Sequence[Stage], rate: float) -> None:
        self.stages, self.cohort = stages, len(stages) > 1
        self.size = Size.of(stages)
        self.works = [stage.work(self.size) for stage in stages]
        self.work = _stack_works(self.works) if self.cohort else self.works[0]
        mode, pays = stages[0].compile, any(stage.worth_compiling for stage in stages)
        self.compile = mode == "always" or (mode == "auto" and pays)
        self.passes = [
            [self._prepare(part, hide, rate) for hide in stages[0].passes] for part in self.work.parts
        ]  # of each part
        self.alike: list[tuple[Batch | None, ...]] | None = None  # one epoch, if all are the same

    def _prepare(self, part: Part, hide: bool, rate: float) -> _Pass:
        """A step with all that stays the same during the stage: what learns, and constants."""
        work, first = self.work, self.stages[0]
        params = {role: work.groups[name] for role, name in part.roles.items()}
        learning = [role for role in part.trained if not (hide and role == "candidate")]
        trained = {role: params[role] for role in learning}
        moments = {role: work.moments[part.roles[role]] for role in learning}
        frozen = {role: tree for role, tree in params.items() if role not in trained}
        constants = {"frozen": frozen, "fixed": part.fixed, "memory": part.memory}
        step = Step(replace(part.loss, hide=hide), first.adaptation, rate, self.cohort)
        stays: Tree = {"trained": trained, "moments": moments, "constants": constants}
        return _Pass(step, stays, learning, self.compile)

    def epoch(self) -> None:
        """One epoch; where there are several parts, their batches take turns."""
        turns = self.alike or self._turns()
        if self.stages[0].epochs_alike:
            self.alike = turns = list(turns)
        for turn in turns:
            for batch, passes in zip(turn, self.passes, strict=True):
                if batch is not None:
                    for number, step in enumerate(passes):
                        step(batch, number)

    def _turns(self) -> Iterator[tuple[Batch | None, ...]]:
        """A new epoch: the next batch of each part."""
        first = self.stages[0]
        plans = [stage.plan(work) for stage, work in zip(self.stages, self.works, strict=True)]
        slots, noise_slots = self.size.slots, first.noise_slots(self.size.slots)
        device = first.data[0][1].device
        epochs = [
            _Epoch(part.bank, part_plans, slots, noise_slots, self.cohort, device).batches()
            for part, part_plans in zip(self.work.parts, zip(*plans, strict=True), strict=True)
        ]
        return itertools.zip_longest(*epochs)

    def commit(self, run: int) -> None:
        """Takes one run's results over into its state."""

        def own(tree: Tree) -> Tree:
            return map_tree(lambda t: t[run], tree) if self.cohort else tree

        groups, moments = self.work.groups, self.work.moments
        self.stages[run].commit(
            {name: own(groups[name]) for name in moments}, {name: own(m) for name, m in moments.items()}
        )


@dataclass(eq=False)
class Batch:
    """One batch of all runs: what `Step` takes of it."""

    rows: Tree
    weight: Tensor  # ([R,] B)
    active: Tensor  # ([R]): has the run such a batch?
    own: Tensor  # ([R]): does it hold a sample of the current task?
    components: Tensor  # (P, [R,] k): those that may be used in each pass
    noise: Callable[[], Tensor]  # the next packed dropout bits

    def inputs(self, number: int, learning: Sequence[str]) -> Tree:
        """What `Step` takes of it, in a pass in which these roles learn."""
        touched = {
            "components": self.components[number], "candidate": self.active, "own": self.own,
            "io": self.active,
        }  # fmt: skip
        return {
            "rows": self.rows, "weight": self.weight, "noise": self.noise(),
            "touched": {role: touched[role] for role in learning},
        }  # fmt: skip


class _Pass:
    """A step with what stays the same; as machine code, if it is to be and can be compiled."""

    def __init__(self, step: Step, stays: Tree, learning: Sequence[str], compile: bool) -> None:
        self.step, self.stays, self.learning, self.compile = step, stays, learning, compile
        self.code: Compiled | None = None  # made when the first batch shows its form
        self.batch: Batch | None = None

    def __call__(self, batch: Batch, number: int) -> None:
        if batch is not self.batch:  # else all epochs are alike, and it is the only one
            self.batch, self.inputs = batch, batch.inputs(number, self.learning)
            if self.compile:
                self.code, self.compile = compiled(self.step, self.stays | self.inputs), False
                self.flat = list(leaves(self.stays))
            if self.code is not None:
                self.all = [*self.flat, *leaves(self.inputs)]
        if self.code is None:
            self.step(**self.stays, **self.inputs)
        else:
            self.code(self.all)


class _Epoch:
    """One epoch's plans of all runs over one part, padded to one form."""

    def __init__(
        self,
        bank: Tree,
        plans: Sequence[PartPlan],
        slots: int,
        noise_slots: int,
        cohort: bool,
        device: torch.device,
    ) -> None:
        self.steps = max(len(plan.index) for plan in plans)
        self.width = width = max(plan.index.shape[1] for plan in plans)
        self.bank, self.plans, self.noise_slots = bank, plans, noise_slots
        self.cohort, self.device = cohort, device

        def gather(name: str, *sizes: tuple[int, int]) -> Tensor:
            padded = []
            for plan in plans:
                tensor = resize(getattr(plan, name), 0, self.steps)
                for axis, size in sizes:
                    tensor = resize(tensor, axis, size)
                padded.append(tensor)
            return (torch.stack(padded, 1) if cohort else padded[0]).to(device)

        self.index = gather("index", (1, width))  # (S, [R,] B)
        self.weight = gather("weight", (1, width))
        self.touched = gather("touched", (2, slots)).movedim(-2, 1).contiguous()  # (S, P, [R,] k)
        self.own = gather("own")  # (S, [R])
        self.active = self.weight.any(-1)  # (S, [R])
        self.weight = self.weight.to(bank["value"].dtype)

    def batches(self) -> Iterator[Batch]:
        """Rows are taken for many steps at once: one large copy instead of many small ones."""
        bytes_a_step = sum(
            self.index[0].numel() * rows[0].numel() * rows.element_size() // (len(rows) if self.cohort else 1)
            for rows in self.bank.values()
        )
        block = max(1, BLOCK // max(bytes_a_step, 1))
        for start in range(0, self.steps, block):
            index = self.index[start : start + block]
            rows = {name: self._take(bank, index).unbind() for name, bank in self.bank.items()}
            for i in range(len(index)):
                s = start + i
                yield Batch(
                    {name: of[i] for name, of in rows.items()}, self.weight[s], self.active[s], self.own[s],
                    self.touched[s], partial(self._noise, s),
                )  # fmt: skip

    def _take(self, bank: Tensor, index: Tensor) -> Tensor:
        """Rows ([R,] n, ...) by index (S, [R,] B) -> (S, [R,] B, ...)."""
        if self.cohort:
            runs, n = bank.shape[:2]
            bank = bank.flatten(0, 1)
            index = index + torch.arange(0, runs * n, n, device=index.device)[:, None]
        return bank.index_select(0, index.flatten()).view(*index.shape, *bank.shape[1:])

    def _noise(self, batch: int) -> Tensor:
        """The next packed bits of every run that has such a batch: ([R,] B, slots, bytes)."""
        if self.plans[0].noise is None:
            return torch.zeros(
                *self.index[0].shape, self.noise_slots, 0, dtype=torch.uint8, device=self.device
            )
        drawn = [next(plan.noise) if plan.noise and batch < len(plan.index) else None for plan in self.plans]
        like = next(bits for bits in drawn if bits is not None)
        padded = [
            resize(resize(like[:0] if bits is None else bits, 1, self.noise_slots), 0, self.width)
            for bits in drawn
        ]
        return (torch.stack(padded) if self.cohort else padded[0]).to(self.device)


def _stack_works(works: Sequence[Work]) -> Work:
    def stack(*trees: Tree) -> Tree:
        return map_tree(lambda *t: torch.stack(t), *trees)

    def stack_rows(*banks: Tree) -> Tree:
        """Banks may have different numbers of rows (what is added is never drawn), and one may
        be too large for `first`, which can be done without."""
        rows = max(len(bank["column"]) for bank in banks)
        common = [name for name in banks[0] if all(name in bank for bank in banks)]
        return {name: torch.stack([resize(bank[name], 0, rows) for bank in banks]) for name in common}

    first = works[0]
    return Work(
        groups={name: stack(*(w.groups[name] for w in works)) for name in first.groups},
        moments={name: stack(*(w.moments[name] for w in works)) for name in first.moments},
        parts=[
            replace(
                part,
                fixed=stack(*(w.parts[p].fixed for w in works)),
                memory=stack(*(w.parts[p].memory for w in works)),
                bank=stack_rows(*(w.parts[p].bank for w in works)),
            )
            for p, part in enumerate(first.parts)
        ],
    )
