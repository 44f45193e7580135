"""A stage: what the learner asks the engine to train. Frozen data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from piaget.data.tasks import Split
from piaget.knowledge.state import State, TaskRecord, tensors
from piaget.method.acceptance import replayed
from piaget.method.adaptation import Stored
from piaget.method.parameters import TASK_ROLES, Role
from piaget.method.schedule import StageKind
from piaget.method.settings import Settings


@dataclass(frozen=True, eq=False)
class TaskData:
    """A task that learns, and its training data as it was given: bytes take a quarter of the memory."""

    record: TaskRecord
    split: Split

    def tensors(self, settings: Settings) -> tuple[Tensor, Tensor]:
        """x (n, ...) and y (n,), as the learner computes."""
        return tensors(settings, self.split, self.record.scaling)


@dataclass(frozen=True, eq=False)
class Stage:
    """Who learns, on what, for how long. The engine reads the state when it begins, and draws from its
    generator; it changes nothing else. What is asked for every past task is looked up once."""

    kind: StageKind
    settings: Settings
    state: State
    data: tuple[TaskData, ...]  # several only in initialization
    done: int  # epochs of this kind that the task has had before
    epochs: int  # of this kind in all, on the task
    left: int  # epochs of this stage that are to come, unless it stops early
    repeats: int  # on how many tasks there will be such a stage, as far as that is known
    epochs_in_all: int  # of all kinds, on all tasks, as far as they are known

    @property
    def candidate(self) -> bool:
        """Is a component on trial?"""
        progress = self.state.progress
        return progress is not None and progress.candidate

    @property
    def passes(self) -> tuple[bool, ...]:
        """Each batch is used once a pass; True: with the candidate hidden."""
        return self.settings.algorithm.expansion.passes if self.candidate else (False,)

    @cached_property
    def trained(self) -> tuple[Role, ...]:
        """The groups of parameters that learn, as far as the method has them."""
        encoder, decoder = self.settings.encoder, self.settings.decoder
        present: dict[Role, bool] = {
            "components": True,
            "candidate": self.candidate,
            "encoder": encoder.learns and not encoder.shared,
            "structure": True,
            "decoder": not decoder.shared,
            "shared encoder": encoder.learns and encoder.shared,
            "shared decoder": decoder.shared,
        }
        past = self.settings.past_roles if self.replay else ()
        present |= dict.fromkeys(past, True)
        return tuple(role for role, there in present.items() if there and role in self.kind.trains)

    @property
    def own_only(self) -> bool:
        """Does nothing learn but what is a task's own, and the candidate?"""
        return {*self.trained} <= {*TASK_ROLES, "candidate"}

    @property
    def encoder_learns(self) -> bool:
        """Does an encoder learn: of the current task, of past ones, or of all? Then each step encodes."""
        return any(role in self.trained for role in ("encoder", "past encoder", "shared encoder"))

    @cached_property
    def samples(self) -> list[Stored]:
        """The stored samples that take part."""
        if not self.kind.adapts:
            return []
        settings = self.settings
        return replayed(settings.adaptation.replay(self.state.memory), settings.acceptance.held_out)

    @property
    def replay(self) -> list[Stored]:
        """Those of them that join the task's own in its batches."""
        return self.samples if self.settings.adaptation.references == 0 else []

    @property
    def references(self) -> list[Stored]:
        """Those that are drawn beside each batch."""
        return self.samples if self.settings.adaptation.references > 0 else []

    @property
    def stored_rows(self) -> int:
        """How often an epoch sees a stored sample, up to rounding."""
        share = self.settings.adaptation.share
        if share is None:
            return sum(len(stored.y) for stored in self.replay)
        own = sum(len(data.split) for data in self.data)
        return round(own * share / (1 - share)) if self.replay else 0

    def past(self, stored: Stored) -> TaskRecord:
        """Whose samples these are."""
        return self._records[stored.task]

    @cached_property
    def _records(self) -> list[TaskRecord]:
        """Of all tasks, by their places."""
        return list(self.state.records.values())

    def past_features(self, stored: Stored) -> Tensor | None:
        """The features that a past task's encoder learns from, if not from all."""
        return self._features(stored.h)

    def features(self, data: TaskData) -> Tensor | None:
        """The same of a task that is being learned."""
        if not {"encoder", "past encoder"} & set(self.trained):
            return None
        return self._features(data.tensors(self.settings)[0])

    def _features(self, x: Tensor) -> Tensor | None:
        """Those that are not zero in all samples (n, ...). The weights of the others have no gradient, so
        they stay as they are, and need no work."""
        return None if self.whole_inputs else torch.nonzero(x.flatten(1).any(0)).flatten()

    @property
    def whole_inputs(self) -> bool:
        """Do encoders learn from all features, also from those that are zero?"""
        return self.settings.encoder.feature_weight is None or self.settings.optimizer.moves_without_gradient

    def chosen(self, record: TaskRecord) -> Tensor | None:
        """The one component that a task needs at each depth while components learn, if known: (depth,)."""
        fixed = "components" in self.trained and "structure" not in self.trained
        if not fixed or self.candidate or self.kind.adapts:
            return None
        return self.settings.structure.path(record.params.structure)

    @property
    def epochs_alike(self) -> bool:
        """All samples in one batch, and no noise: each epoch does the same."""
        settings = self.settings
        draws = settings.adaptation.corrects and (settings.adaptation.randoms or self.references)
        chooses = settings.adaptation.share is not None and self.replay  # among stored samples
        return settings.batch_size is None and settings.components.dropout == 0 and not (draws or chooses)


@dataclass(frozen=True, eq=False)
class Idle:
    """A run that stopped before the end of a stage, and waits for those that it trains with."""

    stage: Stage
