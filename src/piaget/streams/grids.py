"""Grids of glyphs: a stream of any length whose tasks are combinations of a few known factors.

A picture has four cells with a glyph each. A task looks at two cells and asks two things: is the first glyph
in the first cell, is the second glyph in the second? A rule makes a class of the two answers, and all
pictures of a task are transformed alike. So a task is a combination of five factors, whose values are used
again and again: first glyph, second glyph, cells, transformation, rule.

After the tasks for training come few-shot tasks, of combinations that differ from those in a known way.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from piaget.data.encoding import Scaling
from piaget.data.tasks import Split, Task
from piaget.errors import SettingError
from piaget.streams.glyphs import SPLITS, Glyphs
from piaget.streams.lazy import LazyStream

CELLS = {  # 0 1
    "top": (0, 1),  # 2 3
    "bottom": (2, 3),
    "left": (0, 2),
    "right": (1, 3),
    "falling": (0, 3),
    "rising": (2, 1),
}
TRANSFORMATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {  # of glyphs (..., side, side)
    "none": lambda x: x,
    "rotated": lambda x: np.rot90(x, axes=(-2, -1)),  # by 90 degrees, against the clock
    "mirrored": lambda x: x[..., ::-1],
    "inverted": lambda x: 255 - x,
    "thick": lambda x: _thick(x),
}
# Of each class, the pairs of answers (is the first glyph there, is the second?) that it stands for.
RULES: dict[str, tuple[tuple[tuple[bool, bool], ...], ...]] = {
    "and": (((False, False), (False, True), (True, False)), ((True, True),)),
    "or": (((False, False),), ((False, True), (True, False), (True, True))),
    "xor": (((False, False), (True, True)), ((False, True), (True, False))),
    "count": (((False, False),), ((False, True), (True, False)), ((True, True),)),
    "which": (((False, False),), ((True, False),), ((False, True),)),  # never both
}
LABELS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("and", "or", "xor"), ("no", "yes")),
    "count": (0, 1, 2),
    "which": ("neither", "first", "second"),
}
TRAINING = "training"
FEW_SHOT = ("seen", "systematic", "substitutive", "novel")  # the parts after the training tasks
SAMPLES = {"train": 240, "validation": 60, "test": 120}  # of a training task
RESERVED = 10  # one of so many combinations is never a training task's
TRIES = 20_000  # draws of a combination


def _thick(x: np.ndarray) -> np.ndarray:
    """Each pixel as bright as the brightest of a block of four: it, the next one, and the two below."""
    padded = np.pad(x, [(0, 0)] * (x.ndim - 2) + [(0, 1), (0, 1)])
    shifted = (padded[..., i : i + x.shape[-2], j : j + x.shape[-1]] for i in (0, 1) for j in (0, 1))
    return np.maximum.reduce(list(shifted))


class Combination(NamedTuple):
    """The factors of a task."""

    first: Any  # a glyph
    second: Any  # a glyph
    cells: str  # where they are looked for: CELLS
    transformation: str
    rule: str

    def __str__(self) -> str:
        return f"{self.first} {self.rule} {self.second}, {self.cells}, {self.transformation}"


class PlannedTask(NamedTuple):
    """What a task of the stream will be."""

    part: str  # "training", or one of FEW_SHOT
    combination: Combination
    base: int | None = None  # of "seen" and "substitutive": the training task that it is made from
    changed: str | None = None  # of "substitutive" and "novel": the factor that has another, or a new value


class Grids(LazyStream):
    """`tasks` training tasks, and then `tests` few-shot tasks of each kind in FEW_SHOT.

    seen: the combination of a training task, with other pictures; systematic: a transformation and a rule
    that never came together in training; substitutive: a training task with one factor's value replaced by
    one that other training tasks have; novel: one glyph or transformation that no training task has. All
    other values of few-shot tasks are those of training tasks.

    shots: training samples of each class in a few-shot task (and as many for validation). train_size:
    training samples of a task, at most, or, of training tasks, another number than 240.

    Attributes: `plan[i]`, the factors of task i; `glyphs`, their pictures; `values`, each factor's values
    in training; `new_glyphs`, `new_transformation`: what only novel tasks have; `apart`: the transformations
    and rules that only systematic tasks bring together.
    """

    def __init__(
        self,
        name: str,
        seed: int,
        glyphs: Callable[[np.random.Generator], Glyphs],
        tasks: int,
        tests: int,
        shots: int,
        train_size: int | None,
    ) -> None:
        self.name, self.seed, self.shots, self.train_size = name, seed, shots, train_size
        self._source = [seed, zlib.crc32(b"grids")]
        rng = np.random.default_rng(self._source)
        self.glyphs = glyphs(rng)
        names = [self.glyphs.names[g] for g in rng.permutation(len(self.glyphs.names))]
        transformations = rng.permutation(list(TRANSFORMATIONS)).tolist()
        new = max(1, len(names) // 5)
        self.new_glyphs, known = names[:new], names[new:]
        self.new_transformation = transformations[0]
        self.values: dict[str, list[Any]] = {
            "first": known,
            "second": known,
            "cells": list(CELLS),
            "transformation": transformations[1:],
            "rule": list(RULES),
        }
        rules = rng.permutation(list(RULES)).tolist()
        self.apart = set(zip(transformations[1:], rules, strict=False))
        self.plan = self._training(tasks)
        self.plan += [task for part in FEW_SHOT for task in self._few_shot(part, tests)]
        self._training_tasks, self._digits = tasks, len(str(tasks - 1))

    def __len__(self) -> int:
        return len(self.plan)

    # --- which combinations -----------------------------------------------------------------------

    def _generator(self, *numbers: int) -> np.random.Generator:
        """Independent of all others."""
        return np.random.default_rng([*self._source, *numbers])

    def _reserved(self, combination: Combination) -> bool:
        """Told by the combination alone, however many there are."""
        return zlib.crc32(repr((self.seed, *combination)).encode()) % RESERVED == 0

    def _drawn(self, rng: np.random.Generator) -> Combination:
        values = (self.values[factor] for factor in Combination._fields)
        return Combination(*(of_factor[rng.integers(len(of_factor))] for of_factor in values))

    def _training(self, tasks: int) -> list[PlannedTask]:
        """No combination twice, as long as there are others."""
        rng = self._generator(0)
        plan: list[PlannedTask] = []
        used: set[Combination] = set()
        while len(plan) < tasks:
            for _ in range(TRIES):
                drawn = self._drawn(rng)
                apart = (drawn.transformation, drawn.rule) in self.apart
                if not apart and drawn not in used and not self._reserved(drawn):
                    break
            else:
                used = set()
                continue
            used.add(drawn)
            plan.append(PlannedTask(TRAINING, drawn))
        return plan

    def _few_shot(self, part: str, tests: int) -> Iterator[PlannedTask]:
        """Different combinations. Of the factors' values, only those that came in training count as seen."""
        rng = self._generator(1 + FEW_SHOT.index(part))
        training = [task.combination for task in self.plan if task.part == TRAINING]
        seen = {
            factor: list(dict.fromkeys(getattr(combination, factor) for combination in training))
            for factor in Combination._fields
        }
        used = set(training) if part != "seen" else set()
        make = getattr(self, f"_{part}")
        for number in range(tests):
            for _ in range(TRIES):
                planned = make(rng, training, seen, number)
                if planned is not None and planned.combination not in used:
                    break
            else:
                raise SettingError(
                    f"tasks={len(training)}, tests={tests}: too few combinations for {part} tasks; expected "
                    "more training tasks, or fewer tests"
                )
            used.add(planned.combination)
            yield planned

    def _seen(
        self, rng: np.random.Generator, training: list[Combination], seen: dict[str, list[Any]], number: int
    ) -> PlannedTask:
        base = int(rng.integers(len(training)))
        return PlannedTask("seen", training[base], base)

    def _systematic(
        self, rng: np.random.Generator, training: list[Combination], seen: dict[str, list[Any]], number: int
    ) -> PlannedTask | None:
        pairs = sorted(
            (transformation, rule)
            for transformation, rule in self.apart
            if transformation in seen["transformation"] and rule in seen["rule"]
        )
        if not pairs:
            return None
        transformation, rule = pairs[number % len(pairs)]
        first, second, cells = (
            seen[factor][rng.integers(len(seen[factor]))] for factor in ("first", "second", "cells")
        )
        return PlannedTask("systematic", Combination(first, second, cells, transformation, rule))

    def _substitutive(
        self, rng: np.random.Generator, training: list[Combination], seen: dict[str, list[Any]], number: int
    ) -> PlannedTask | None:
        base = int(rng.integers(len(training)))
        factor = Combination._fields[number % len(Combination._fields)]
        value = seen[factor][rng.integers(len(seen[factor]))]
        made = training[base]._replace(**{factor: value})
        apart = (made.transformation, made.rule) in self.apart
        return None if apart else PlannedTask("substitutive", made, base, factor)

    def _novel(
        self, rng: np.random.Generator, training: list[Combination], seen: dict[str, list[Any]], number: int
    ) -> PlannedTask:
        base = training[rng.integers(len(training))]
        factor = ("first", "transformation", "second", "transformation")[number % 4]
        glyph = self.new_glyphs[rng.integers(len(self.new_glyphs))]
        value = self.new_transformation if factor == "transformation" else glyph
        return PlannedTask("novel", base._replace(**{factor: value}), None, factor)

    # --- pictures ---------------------------------------------------------------------------------

    def make(self, i: int) -> Task:
        planned = self.plan[i]
        labels = LABELS[planned.combination.rule]
        sizes = dict(SAMPLES)
        if planned.part == TRAINING:
            sizes["train"] = self.train_size or sizes["train"]
            name = f"{self.name}-{i:0{self._digits}d}"
        else:
            few = self.shots * len(labels)
            sizes |= {"train": min(few, self.train_size or few), "validation": few}
            place = (i - self._training_tasks) % max(1, (len(self) - self._training_tasks) // len(FEW_SHOT))
            name = f"{self.name}-{planned.part}-{place:02d}"
        splits: dict[str, Any] = {split: self._split(i, split, sizes[split]) for split in SPLITS}
        kind: Any = "binary" if len(labels) == 2 else "multiclass"
        scaling = Scaling(255)
        return Task(
            name, kind, **splits, classes=len(labels), labels=labels, stream=self.name, scaling=scaling
        )

    def _split(self, i: int, split: str, size: int) -> Split:
        """Classes take turns. More samples are the same ones, and others."""
        combination = self.plan[i].combination
        pairs = RULES[combination.rule]
        number = {name: g for g, name in enumerate(self.glyphs.names)}
        # Other cells have glyphs of training, and a novel task's own.
        alphabet = sorted({number[g] for g in (*self.values["first"], *combination[:2])})
        asked = [number[g] for g in combination[:2]]
        random = self._generator(100 + i, SPLITS.index(split)).random((size, 9))  # a row a sample
        y = np.arange(size) % len(pairs)
        cells = _chosen(random[:, 1:5], np.array(alphabet))  # (n, 4): the glyph in each
        for c in range(len(pairs)):
            rows = np.flatnonzero(y == c)
            answers = _chosen(random[rows, 0], np.array(pairs[c]))  # (rows, 2)
            for answer, cell, glyph in zip(answers.T, CELLS[combination.cells], asked, strict=True):
                others = np.array([g for g in alphabet if g != glyph])
                cells[rows, cell] = np.where(answer, glyph, _chosen(random[rows, 1 + cell], others))
        x = self._pictures(cells, random[:, 5:], split, TRANSFORMATIONS[combination.transformation])
        return Split(torch.from_numpy(x), torch.from_numpy(y))

    def _pictures(
        self, cells: np.ndarray, random: np.ndarray, split: str, transform: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """(n, 1, 2 side, 2 side) bytes, from the glyph in each cell (n, 4)."""
        n, side = len(cells), self.glyphs.side
        shown = np.empty((n, 4, side, side), np.uint8)
        for glyph, pictures in enumerate(self.glyphs.pictures[split]):
            here = cells == glyph
            shown[here] = _chosen(random[here], pictures)
        shown = transform(shown).reshape(n, 2, 2, side, side)
        return np.ascontiguousarray(shown.transpose(0, 1, 3, 2, 4).reshape(n, 1, 2 * side, 2 * side))


def _chosen(random: np.ndarray, things: np.ndarray) -> np.ndarray:
    """One of some things for each number in [0, 1)."""
    return things[(random * len(things)).astype(np.int64)]
