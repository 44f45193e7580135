"""Knowledge: all tasks' records, and the components that explain them. It never changes: learning.py returns
new knowledge, which shares what stayed the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from piaget.data.arrays import Kind
from piaget.data.plain import check_count, plain
from piaget.errors import SettingError, UnknownTaskError
from piaget.prior.boosting import Correction
from piaget.prior.evidence import Scales, components_of
from piaget.prior.features import Bumps, Frame, Standard
from piaget.prior.gaussian import (
    Components,
    Inference,
    Posterior,
    Quadratic,
    beliefs,
    coordinates,
    doubt,
    infer,
    task_posterior,
)
from piaget.prior.label_terms import label_terms
from piaget.prior.labels import by_class, contrasts
from piaget.prior.likelihoods import Likelihoods, Noise, value_terms
from piaget.prior.records import Labels, Record, added, standardised
from piaget.prior.sites import Sites


@dataclass(frozen=True)
class Form:
    """What the tasks are, and what is kept of them.

    Raises `SettingError` if kind and classes do not fit.

    >>> from piaget import prior
    >>> prior.Form("multiclass", 5).outputs
    4
    """

    kind: Kind
    classes: int = 0
    rows: int = 500  # that are kept of a task; 0: none, sums only
    trees: bool = True  # a correction by boosted trees, from rows that are kept

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", check_count("rows", self.rows, 0))
        object.__setattr__(self, "trees", plain(self.trees))
        if not isinstance(self.trees, bool):
            raise SettingError(f"trees={self.trees!r}; expected True or False")
        if (self.kind == "regression") != (self.classes == 0) or (self.kind == "binary") != (
            self.classes == 2
        ):
            raise SettingError(f"kind {self.kind} with {self.classes} classes; expected 0 for regression, 2 "
                               "for binary, 3 or more for multiclass")  # fmt: skip

    @property
    def outputs(self) -> int:
        """Columns of weights: one, or, of several classes, one less than these (`labels.contrasts`)."""
        return max(self.classes - 1, 1)

    @property
    def columns(self) -> int:
        """Columns of answers: one, or one a class."""
        return self.classes if self.classes > 2 else 1


class Structure(NamedTuple):
    """What is believed of a task beside its posterior, which follows from all."""

    w: Tensor  # (C, d): weights of the frame's features, as expected
    log_noise: float  # of a regression
    sites: Sites | None = None  # what rows of labels are taken to say; rows that came later are not in it


class Adapted(NamedTuple):
    """What components were adapted to."""

    tasks: int
    rows: int
    thorough: bool


BEYOND = 0.25  # of the range of values that were learned: how far answers may lie outside it
USUAL, NEVER = Noise(-0.7, 10.0), Adapted(0, 0, False)


@dataclass(frozen=True, eq=False)
class Knowledge:
    """All that is known. Made by `begin`; tasks are named.

    >>> from piaget import prior
    >>> x, y = torch.eye(6).double(), torch.arange(6).double()
    >>> known = prior.learn(prior.begin("regression", trees=False), "a", x, y)
    >>> known.tasks, known.rows
    (['a'], 6)
    """

    form: Form
    frame: Frame | None = None
    records: Mapping[str, Record] = field(default_factory=dict)
    structures: Mapping[str, Structure] = field(default_factory=dict)
    standard: Standard | None = None
    scales: Scales | None = None
    noise: Noise = USUAL
    adapted: Adapted = NEVER
    correction: Correction | None = None
    corrected: int = 0  # rows that the correction was learned from
    ratio: float = 1.0  # of the variance of a regression's errors, with the correction and without
    looked: int = 0  # rows in which bends of tasks' own were looked for
    bent: Bent | None = None  # what answers instead, where tasks have bends of their own

    @property
    def answering(self) -> Knowledge:
        """What answers: this, or the same tasks with bends of their own."""
        return self if self.bent is None else self.bent.known

    @property
    def tasks(self) -> list[str]:
        """Names, in the order in which they came."""
        return list(self.records)

    @property
    def rows(self) -> int:
        """How many rows were learned from, in all."""
        return sum(record.n for record in self.records.values())

    @property
    def class_counts(self) -> Tensor:
        """How many rows of each class were learned from: (classes,)."""
        return added([r.counts for r in self.records.values() if isinstance(r, Labels)], self.form.classes)

    @property
    def begun(self) -> tuple[Frame, Standard, Scales]:
        """What is there as soon as there is a task."""
        if self.frame is None or self.standard is None or self.scales is None:
            raise UnknownTaskError("nothing is known yet; learn a task first")
        return self.frame, self.standard, self.scales

    @cached_property
    def standard_frame(self) -> Frame:
        """From inputs to standardised features, at once."""
        frame, standard, _ = self.begun
        return standard.frame(frame)

    @cached_property
    def components(self) -> Components:
        """In standardised features."""
        frame, _, scales = self.begun
        return components_of(scales, frame.blocks)

    @cached_property
    def likelihoods(self) -> Likelihoods:
        """What all tasks say, in standardised features."""
        _, standard, _ = self.begun
        own = [self.structures[name] for name in self.records]
        records: Any = [standardised(record, standard) for record in self.records.values()]
        if self.form.kind == "regression":
            log_noise = torch.tensor([structure.log_noise for structure in own], dtype=torch.float64)
            return value_terms(records, log_noise, self.noise)
        w = torch.stack([structure.w for structure in own]) @ torch.linalg.inv(standard.map).mT
        return label_terms(records, self.standard_frame, w, [structure.sites for structure in own])

    @cached_property
    def inference(self) -> Inference:
        """mu, and all tasks' messages."""
        return infer(self.likelihoods.terms, self.components.root, self.components.width)

    def holding(self, inference: Inference | None) -> Knowledge:
        """The same, with what follows from all tasks' terms, if that is known already."""
        same = replace(self)
        if inference is not None:
            same.__dict__["inference"] = inference
        return same

    @property
    def held(self) -> Inference | None:
        """What follows from all tasks' terms, if it was asked for before."""
        return self.__dict__.get("inference")

    def messages(self, number: int) -> tuple[Quadratic, Quadratic]:
        """What tasks say of mu: those before a task, by its number, and those after it."""
        if self.records:
            found = self.inference.messages
        else:
            d, outputs = 0 if self.frame is None else self.frame.width, self.form.outputs
            shapes = (0, outputs, d, d), (0, outputs, d), (0, outputs)
            found = Quadratic(*(torch.zeros(shape, dtype=torch.float64) for shape in shapes))
        before, after = slice(number), slice(number + 1, None)
        return Quadratic(*(part[before] for part in found)), Quadratic(*(part[after] for part in found))

    @cached_property
    def posteriors(self) -> Posterior:
        """Of all tasks' weights of standardised features: (T, C, d), (T, C, d, d). Labels say little of
        directions: few are found, and probabilities that doubted these were no better."""
        terms, found = self.likelihoods.terms, self.inference
        if self.form.classes:
            return task_posterior(terms, self.components.root, found.mu)
        return beliefs(terms, found, self.components)

    @cached_property
    def _free(self) -> dict[str, float]:
        """Of a regression: how many rows of each task no weight has used up, so that they tell its noise."""
        terms: Any = self.likelihoods
        return dict(zip(self.records, terms.free(self.posteriors).tolist(), strict=True))

    def dof(self, task: str | None) -> float:
        """How surely a regression's noise is known, as a number of rows: by the task's own, and by what is
        usual, as far as tasks are alike in it and there are others. None: of a task that is not known."""
        own = 0.0 if task is None else self._free.get(task, 0.0)
        others = sum(self._free.values()) - own
        usual = 1 / (1 / self.noise.dof + 1 / others) if others > 0 else 0.0
        return max(own + usual, 1.0)

    @cached_property
    def reach(self) -> tuple[float, float]:
        """Between which standardised values a regression's answers lie. Where inputs are slips of the pen,
        or far from all others, a line leads to values that there are not. The largest and the smallest value
        are always among the rows that are kept; without rows, there is no limit."""
        rows = [self.standard_frame.targets(record.y) for record in self.records.values() if len(record.y)]
        if self.form.classes or not rows or self.form.rows < 2:
            return -math.inf, math.inf
        low, high = min(float(y.min()) for y in rows), max(float(y.max()) for y in rows)
        return low - BEYOND * (high - low), high + BEYOND * (high - low)

    def posterior(self, task: str | None) -> Posterior:
        """Of one task's weights, of several classes those of each: (K, d), (K, d, d). None: of a task that
        is not known."""
        if task is not None:
            number = self.tasks.index(task)
            return by_class(Posterior(*(part[number] for part in self.posteriors)))
        found, parts = self.inference, self.components
        covariance = found.mu.covariance + parts.root @ parts.root.mT
        if not self.form.classes:
            covariance = covariance + doubt(found, parts).covariance.sum(0)
        return by_class(Posterior(found.mu.mean, covariance))

    def coordinates(self) -> dict[str, Tensor]:
        """Each task's psi, its place along the directions that tasks share: {task: (K, k)}, expected
        values; of several classes, one of each."""
        psi = contrasts(self.form.outputs).mT @ coordinates(self.inference, self.components.phi)
        return dict(zip(self.records, psi, strict=True))


class Bent(NamedTuple):
    """The same tasks, known by more inputs: with bumps over some, so that each task may bend its own way."""

    bumps: Bumps
    known: Knowledge  # its tasks are the same, in the same order


def begin(kind: Kind, classes: int = 0, **settings: Any) -> Knowledge:
    """Before any task. settings: see `Form`.

    Raises `SettingError` if kind and classes do not fit.

    >>> from piaget import prior
    >>> prior.begin("binary", 2).tasks
    []
    """
    return Knowledge(Form(kind, classes or (2 if kind == "binary" else 0), **settings))
