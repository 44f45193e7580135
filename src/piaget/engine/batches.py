"""The batches of an epoch: shuffles and noise of each run, from its own generator, padded to one form."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from piaget.engine.layout import Part
from piaget.engine.loss import Noise, Rows
from piaget.engine.noise import draw_bits, of_chosen, packed_bytes, unpack
from piaget.engine.orders import draw_order
from piaget.engine.stage import Stage
from piaget.engine.step import Draws, Inputs
from piaget.method.trees import leaves, map_tree, resize
from piaget.recording import observed

NOISE_BLOCK = 2**25  # bytes of dropout bits drawn at a time
ROWS_BLOCK = 2**22  # bytes of rows taken at a time: what stays in a processor's cache
BITS_BLOCK = 64  # passes whose bits are put together at a time
MASKS_BLOCK = 2**20  # bytes of dropout multipliers unpacked at a time


@dataclass(frozen=True, eq=False)
class Plan:
    """One epoch of one run over one part: S batches of B rows, each used once a pass (P)."""

    index: Tensor  # (S, B)
    weight: Tensor  # (S, B) bool: False for padding
    components: Tensor  # (S, P, k): those that some sample of the batch may use
    tasks: Tensor  # (S, 1 + T): does the batch hold a sample of the current task, of past task t?
    noise: Iterator[Tensor] | None  # packed dropout bits (n, B, slots, bytes), of S * P in all; None: without
    references: Tensor | None  # (S, P, references): rows of the stored samples beside each batch
    random: Tensor | None  # (S, P, randoms)


def draw_plan(stage: Stage, part: Part) -> Plan:
    """Draws one epoch of a run, for its own components and rows alone."""
    settings, state = stage.settings, stage.state
    generator, k, passes = state.generator, state.k, stage.passes
    (bank,) = part.banks
    index, weight = draw_order(stage, part)
    steps, size = index.shape
    seen = part.fixed.visible[..., :k].cpu()
    tasks = torch.ones(steps, 1, dtype=torch.bool)
    if bank.task is not None:
        whose = bank.task.cpu()[index]  # (S, B)
        known = len(seen)  # 1 + T
        seen = (seen[whose] & weight[:, :, None]).any(1)  # (S, k)
        nobody = whose.masked_fill(~weight, known)
        tasks = torch.zeros(steps, known + 1, dtype=torch.bool).scatter_(1, nobody, True)[:, :known]
    hidden = torch.tensor(passes)[:, None] & part.fixed.slot[:k].cpu()  # (P, k)
    components = seen.expand(steps, k)[:, None] & ~hidden
    references, random = _draw_for_adaptation(stage, part, steps)
    dropout = settings.components.dropout
    shapes = part.loss.shapes[1:]
    shape = (size, settings.structure.noise_slots(k), packed_bytes(shapes))
    drawn = _draw_noise(generator, steps * len(passes), shape, dropout)
    if part.fixed.chosen is not None:
        # By `map`, which does not hold the bits of all components while those of the chosen ones are used.
        drawn = map(partial(of_chosen, chosen=part.fixed.chosen.argmax(-1).cpu(), shapes=shapes), drawn)
    noise = drawn if dropout else None
    plan = Plan(index, weight, components, tasks, noise, references, random)
    return observed("plan", plan, stage=stage, part=part)


def _draw_for_adaptation(stage: Stage, part: Part, steps: int) -> tuple[Tensor | None, Tensor | None]:
    """The stored samples beside each batch, drawn with replacement, and random numbers; if wanted."""
    adaptation, generator = stage.settings.adaptation, stage.state.generator
    references = random = None
    if part.reference is not None:
        stored = len(part.reference.banks[0].targets.column)
        shape = (steps, len(stage.passes), adaptation.references)
        references = torch.randint(stored, shape, generator=generator)
    if adaptation.randoms and stage.kind.adapts:
        random = torch.rand(steps, len(stage.passes), adaptation.randoms, generator=generator)
    return references, random


def _draw_noise(
    generator: torch.Generator, steps: int, shape: tuple[int, int, int], dropout: float
) -> Iterator[Tensor]:
    """Packed bits (S, B, slots, bytes), a block of steps at a time."""
    block = max(1, NOISE_BLOCK // math.prod(shape))
    for start in range(0, steps, block):
        yield draw_bits(generator, (min(block, steps - start), *shape), dropout)


def empty_plan(plan: Plan) -> Plan:
    """No batch at all: for a run that waits while others train."""
    nothing = {name: getattr(plan, name)[:0] for name in ("index", "weight", "components", "tasks")}
    return Plan(
        **nothing,
        noise=None if plan.noise is None else iter(()),
        references=None if plan.references is None else plan.references[:0],
        random=None if plan.random is None else plan.random[:0],
    )


@dataclass(frozen=True, eq=False)
class Batch:
    """One batch of all runs. With several of them, tensors have a run axis [R]."""

    active: Tensor  # ([R]): 1, or 0 for a run that has no such batch
    inputs: list[Tensor]  # the leaves of the step's inputs
    form: Inputs  # a tree of their form, with other tensors


class Epoch:
    """One epoch's plans of all runs over one part, padded to one form."""

    def __init__(
        self,
        part: Part,
        plans: Sequence[Plan],
        slots: int,
        noise_slots: Sequence[int],  # of each pass
        cohort: bool,
        moves: Sequence[Sequence[tuple[str, int]]],  # of each pass and group: what moves its counts
    ) -> None:
        self.part, self.plans, self.cohort = part, plans, cohort
        self.noise_slots = noise_slots if part.fixed.chosen is None else [1] * len(noise_slots)
        self.device = part.fixed.slot.device
        self.steps = max(len(plan.index) for plan in plans)
        self.width = width = max(plan.index.shape[1] for plan in plans)
        self.index = self._gather([plan.index for plan in plans], (1, width))  # (S, [R,] B)
        mask = self._gather([plan.weight for plan in plans], (1, width))
        components = self._gather([plan.components for plan in plans], (2, slots)).movedim(-2, 1)
        tasks = self._gather([plan.tasks for plan in plans])
        active = mask.any(-1)[..., None]
        signs = {"current": tasks[..., :1], "past": tasks[..., 1:], "active": active}
        never = torch.zeros_like(active)
        self.touched = [  # of each pass, (S, [R,] n): which groups of parameters move, as they are counted
            torch.cat(
                [never[..., :0]]
                + [
                    (signs | {"components": components[:, p]}).get(move, never.expand(*never.shape[:-1], n))
                    for move, n in of_pass
                ],
                -1,
            )
            for p, of_pass in enumerate(moves)
        ]
        self.active = active[..., 0].double()
        self.weight = mask.to(part.banks[0].targets.value.dtype)
        self.references = self._for_passes([plan.references for plan in plans])
        self.random = self._for_passes([plan.random for plan in plans])

    def _gather(self, tensors: Sequence[Tensor], *sizes: tuple[int, int]) -> Tensor:
        """Each run's (S, ...), padded -> (S, [R,] ...)."""
        padded = []
        for tensor in tensors:
            tensor = resize(tensor, 0, self.steps)
            for axis, size in sizes:
                tensor = resize(tensor, axis, size)
            padded.append(tensor)
        return (torch.stack(padded, 1) if self.cohort else padded[0]).to(self.device)

    def _for_passes(self, tensors: Sequence[Tensor | None]) -> Tensor | None:
        """(S, P, n) of each run -> (S, P, [R,] n)."""
        there = [tensor for tensor in tensors if tensor is not None]
        return self._gather(there).movedim(-2, 1).contiguous() if there else None

    def batches(self) -> Iterator[Batch]:
        """Rows are taken for many steps at once: one large copy instead of many small ones."""
        banks, reference, noise = self.part.banks, self.part.reference, self._noise()
        a_row = sum(rows[0].numel() * rows.element_size() for rows in leaves(banks[0]))
        block = max(1, ROWS_BLOCK // max(self.index[0].numel() * a_row, 1))
        blank = () if self.plans[0].noise is None else (self.weight,) * self.part.loss.model.depth
        for start in range(0, self.steps, block):
            steps = slice(start, start + block)
            rows, beside = self._take(banks, self.index[steps]), None
            if reference is not None and self.references is not None:
                beside = self._take(reference.banks, self.references[steps])  # (S, P, [R,] references, ...)
            known = Inputs(rows, self.weight[steps], ())
            draws = [self._draws(p, steps, beside) for p in range(len(self.touched))]
            form = known._replace(draws=tuple(one._replace(noise=blank) for one in draws))
            flat, *flat_draws = ([leaf.unbind() for leaf in leaves(tree)] for tree in (known, *draws))
            for i, active in enumerate(self.active[steps].unbind()):
                inputs = [leaf[i] for leaf in flat]
                for of_pass in flat_draws:
                    inputs += [*(leaf[i] for leaf in of_pass), *next(noise)]
                yield Batch(active, inputs, form)

    def _draws(self, number: int, steps: slice, beside: Rows | None) -> Draws:
        """What is new in one pass of these steps, (S, ...), but for the noise."""
        return Draws(
            touched=self.touched[number][steps],
            random=None if self.random is None else self.random[steps, number],
            reference=None if beside is None else map_tree(lambda t: t[:, number], beside),
        )

    def _take(self, banks: Sequence[Rows], index: Tensor) -> Rows:
        """Rows (n, ...) of each run by index (S, ..., [R,] B) -> (S, ..., [R,] B, ...)."""
        if not self.cohort:
            return _taken(banks[0], index)
        taken = [_taken(bank, own) for bank, own in zip(banks, index.unbind(-2), strict=True)]
        return map_tree(lambda *rows: torch.stack(rows, index.ndim - 2), *taken)

    def _noise(self) -> Iterator[Noise]:
        """The dropout multipliers ([R,] B, slots, *shape) of every pass of every batch.

        Bits are drawn only when a run needs them, since all parts of a stage draw from its generator; those
        that are there are unpacked for as many passes as fit a cache.
        """
        if self.plans[0].noise is None:
            yield from itertools.repeat(())
        kind, shapes = self.part.loss.model.components, self.part.loss.shapes[1:]
        numbers = self.index[0].numel() * max(self.noise_slots) * sum(map(math.prod, shapes))
        most = max(1, MASKS_BLOCK // (numbers * self.weight.element_size()))
        passes, used = len(self.noise_slots), 0
        for bits in self._bits():
            for some in bits.split(most):
                masks: list[Noise] = [()] * len(some)
                for first in range(min(passes, len(some))):
                    slots = self.noise_slots[(used + first) % passes]
                    unpacked = unpack(some[first::passes, ..., :slots, :], shapes, kind, self.weight.dtype)
                    masks[first::passes] = zip(*(depth.unbind() for depth in unpacked), strict=True)
                used += len(some)
                yield from masks

    def _bits(self) -> Iterator[Tensor]:
        """The packed bits of all runs, padded, of some passes at a time: (n, [R,] B, slots, bytes)."""
        sources = [plan.noise or iter(()) for plan in self.plans]
        size = packed_bytes(self.part.loss.shapes[1:])
        drawn = [torch.zeros(0, 0, 0, size, dtype=torch.uint8)] * len(sources)  # and not yet used
        while True:
            drawn = [b if len(b) else next(source, b) for b, source in zip(drawn, sources, strict=True)]
            there = [len(bits) for bits in drawn if len(bits)]
            if not there:
                return
            n = min(BITS_BLOCK, *there)
            padded = [
                resize(resize(resize(bits[:n], 2, max(self.noise_slots)), 1, self.width), 0, n)
                for bits in drawn
            ]
            drawn = [bits[n:] for bits in drawn]
            yield (torch.stack(padded, 1) if self.cohort else padded[0]).to(self.device)


def _taken(bank: Rows, index: Tensor) -> Rows:
    """Rows (n, ...) by index (...) -> (..., ...)."""
    flat = index.flatten()
    return map_tree(lambda rows: rows.index_select(0, flat).view(*index.shape, *rows.shape[1:]), bank)
