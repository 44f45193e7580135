"""Training one run, or many runs at once: the run axis is made and undone here.

A run asks for work by yielding a `Stage`. Stages of the same form are stacked along a leading run
axis, and each step is computed for all of them together.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from piaget.batches import PartPlan
from piaget.evaluation import Row
from piaget.stages import Part, Size, Stage, Work
from piaget.step import adam_, gradients
from piaget.trees import Tree, map_tree, resize

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
        self.stages, self.rate, self.cohort = stages, rate, len(stages) > 1
        self.size = Size(*(max(sizes) for sizes in zip(*(stage.size for stage in stages), strict=True)))
        self.works = [stage.work(self.size) for stage in stages]
        self.work = _stack_works(self.works) if self.cohort else self.works[0]

    def epoch(self) -> None:
        """One epoch; where there are several parts, their batches take turns."""
        first = self.stages[0]
        plans = [stage.plan(work) for stage, work in zip(self.stages, self.works, strict=True)]
        slots, noise_slots = self.size.slots, first.noise_slots(self.size.slots)
        device = first.data[0][1].device
        epochs = [
            _Epoch(part_plans, slots, noise_slots, self.cohort, device)
            for part_plans in zip(*plans, strict=True)
        ]
        for batch in range(max(epoch.steps for epoch in epochs)):
            for part, epoch in zip(self.work.parts, epochs, strict=True):
                if batch < epoch.steps:
                    for number, hide in enumerate(first.passes):
                        self._step(part, epoch, batch, number, hide)

    def _step(self, part: Part, epoch: _Epoch, batch: int, number: int, hide: bool) -> None:
        """One batch in one pass: gradients, correction, Adam."""
        groups, moments = self.work.groups, self.work.moments
        params = {role: groups[name] for role, name in part.roles.items()}
        learning = [role for role in part.trained if not (hide and role == "candidate")]
        trained = {role: params[role] for role in learning}
        frozen = {role: tree for role, tree in params.items() if role not in trained}
        active = epoch.active[batch]
        weight = epoch.weight[batch].to(part.bank["value"].dtype)
        hidden = torch.full_like(active, hide)
        noise = epoch.noise(batch)

        def loss(params: Tree, fixed: Tree, bank: Tree, index: Tensor, *rest: Tensor) -> Tensor:
            rows = {name: rows[index] for name, rows in bank.items()}
            return part.loss(params, fixed, rows, *rest)

        index = epoch.index[batch]
        gradient = gradients(
            loss, trained, frozen, part.fixed, part.bank, index, weight, noise, hidden, cohort=self.cohort
        )
        if part.memory:
            correct = self.stages[0].adaptation.correct
            correct = torch.func.vmap(correct) if self.cohort else correct
            gradient["components"] = correct(part.memory, params["components"], gradient["components"])
        touched = {
            "components": epoch.touched[batch].select(-2, number),
            "candidate": active,
            "own": epoch.own[batch],
            "io": active,
        }
        for role in learning:
            name = part.roles[role]
            adam_(groups[name], gradient[role], moments[name], touched[role], self.rate)

    def commit(self, run: int) -> None:
        """Takes one run's results over into its state."""

        def own(tree: Tree) -> Tree:
            return map_tree(lambda t: t[run], tree) if self.cohort else tree

        groups, moments = self.work.groups, self.work.moments
        self.stages[run].commit(
            {name: own(groups[name]) for name in moments}, {name: own(m) for name, m in moments.items()}
        )


class _Epoch:
    """One epoch's plans of all runs over one part, padded to one form."""

    def __init__(
        self,
        plans: Sequence[PartPlan],
        slots: int,
        noise_slots: int,
        cohort: bool,
        device: torch.device,
    ) -> None:
        self.steps = max(len(plan.index) for plan in plans)
        self.rows = rows = max(plan.index.shape[1] for plan in plans)
        self.plans, self.noise_slots, self.cohort, self.device = plans, noise_slots, cohort, device

        def gather(name: str, *sizes: tuple[int, int]) -> Tensor:
            padded = []
            for plan in plans:
                tensor = resize(getattr(plan, name), 0, self.steps)
                for axis, size in sizes:
                    tensor = resize(tensor, axis, size)
                padded.append(tensor)
            return (torch.stack(padded, 1) if cohort else padded[0]).to(device)

        self.index = gather("index", (1, rows))  # (S, [R,] B)
        self.weight = gather("weight", (1, rows))
        self.touched = gather("touched", (2, slots))  # (S, [R,] P, k)
        self.own = gather("own")  # (S, [R])
        self.active = self.weight.any(-1)  # (S, [R])

    def noise(self, batch: int) -> Tensor:
        """The next packed bits of every run that has such a batch: ([R,] B, slots, bytes)."""
        drawn = [next(plan.noise) if batch < len(plan.index) else None for plan in self.plans]
        like = next(bits for bits in drawn if bits is not None)
        padded = [
            resize(resize(like[:0] if bits is None else bits, 1, self.noise_slots), 0, self.rows)
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
