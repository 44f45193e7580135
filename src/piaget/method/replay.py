"""Adaptations that store samples of each task, and see them again while later ones are learned."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from piaget.method.adaptation import (
    Adaptation,
    Correction,
    Finished,
    Memory,
    Replayed,
    StepContext,
    Stored,
    stored_samples,
)
from piaget.method.trees import Tensors
from piaget.method.values import NOT_NEGATIVE, PART, WHOLE, check_fields, or_none


@dataclass(frozen=True)
class SampleMemory(Adaptation):
    """Keeps `size` training samples of each task (None: one batch). What becomes of them is for classes that
    derive from it.

    Raises `SettingError` if `size` is not a whole number from 1 on.

    >>> class Half(piaget.SampleMemory):  # of what is stored, every other sample is replayed
    ...     name = "half"
    ...     def replay(self, memory):
    ...         return [piaget.Stored(s.task, s.h[::2], s.y[::2], {}) for s in super().replay(memory)]
    >>> memory = {"0": {"task": torch.tensor(0), "h": torch.zeros(6, 8), "y": torch.zeros(6)}}
    >>> [len(stored.y) for stored in Half(size=6).replay(memory)]
    [3]
    """

    size: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, size=or_none(WHOLE))

    def replay(self, memory: Memory) -> list[Stored]:
        return stored_samples(memory)

    def remember(self, memory: Memory, finished: Finished) -> Memory:
        return finished.store(memory, self._chosen(finished))

    def _chosen(self, finished: Finished) -> Tensor:
        """Which training samples are kept."""
        return finished.sample(finished.batch if self.size is None else self.size)

    def recognizes(self, memory: Memory, tasks: int, components: Tensors) -> bool:
        return type(self).remember is not SampleMemory.remember or _holds(memory, tasks)


def _holds(memory: Memory, tasks: int, *fields: str) -> bool:
    """Does it have samples of so many tasks, and of nothing else, each with these fields?"""
    expected = [str(i) for i in range(tasks)]
    return sorted(memory) == sorted(expected) and all(
        memory[name].keys() == {"task", "h", "y", *fields} and int(memory[name]["task"]) == int(name)
        for name in expected
    )


@dataclass(frozen=True)
class Replay(SampleMemory):
    """Experience replay: stored samples join the batches.

    share: None, as in the paper: an epoch runs over the union of the task's samples and all stored ones. Else
    each batch has this share of stored samples, and past tasks count alike; an epoch sees each of the task's
    own samples once, and stored ones as often as that takes.

    Raises `SettingError` if `size` is not a whole number from 1 on.

    >>> piaget.Learner(adaptation=piaget.Replay(size=5)).settings.adaptation.size
    5
    """

    share: float | None = None
    name = "er"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, share=or_none(PART))


@dataclass(frozen=True)
class DilutedReplay(Replay):
    """Experience replay as in the authors' public code: a batch's loss is divided by the number of tasks that
    it has samples of, so that batches with stored samples count less. The paper does not say so.

    >>> piaget.DilutedReplay(size=5).name
    'er-diluted'
    """

    name = "er-diluted"

    def losses(self, losses: Tensor, outputs: Tensor, replayed: Replayed) -> Tensor:
        return losses / replayed.tasks


@dataclass(frozen=True)
class DERPlusPlus(Replay):
    """Dark experience replay (DER++; Buzzega et al., 2020): stored samples keep the outputs that they had
    when their task was finished, and are held near them.

    The loss of a stored sample is beta times its usual one, plus alpha times the squared distance of its
    outputs to those kept. alpha = 0, beta = 1: experience replay.

    Raises `SettingError` if `alpha` or `beta` is negative, or as `Replay` does.

    >>> x, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    >>> learner = piaget.Learner(adaptation=piaget.DERPlusPlus(size=5), initial_tasks=1, epochs=2, width=8)
    >>> rows = learner.learn(piaget.Task.from_arrays("site 1", x, y))
    >>> piaget.stored_samples(learner.state.memory)[0].fields["logits"].shape  # (n, columns)
    torch.Size([5, 1])
    """

    alpha: float = 0.5
    beta: float = 1.0
    name = "der++"
    output_fields = ("logits",)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, alpha=NOT_NEGATIVE, beta=NOT_NEGATIVE)

    def remember(self, memory: Memory, finished: Finished) -> Memory:
        rows = self._chosen(finished)
        return finished.store(memory, rows, logits=finished.outputs(rows))

    def losses(self, losses: Tensor, outputs: Tensor, replayed: Replayed) -> Tensor:
        drift = (outputs - replayed.fields["logits"]).square().sum(1)
        return torch.where(replayed.past, self.beta * losses + self.alpha * drift, losses)

    def recognizes(self, memory: Memory, tasks: int, components: Tensors) -> bool:
        return type(self).remember is not DERPlusPlus.remember or _holds(memory, tasks, "logits")


@dataclass(frozen=True)
class AGEM(SampleMemory):
    """Averaged gradient episodic memory (A-GEM; Chaudhry et al., 2019): `references` stored samples are drawn
    beside each batch, instead of joining it, and a gradient that would raise their loss is projected to the
    nearest one that does not.

    g - min(0, <g, r>) / |r|^2 r, with the gradient r of the loss of stored samples. Steps in which that
    happened are counted in rows "projected".

    Raises `SettingError` if `references` or `size` is not a whole number from 1 on.

    >>> x, y = np.arange(80.0).reshape(40, 2), np.arange(40) % 2
    >>> tasks = piaget.streams.from_arrays(x, y, groups=["north"] * 20 + ["south"] * 20)
    >>> agem = piaget.AGEM(size=5, references=4)
    >>> learner = piaget.Learner(adaptation=agem, initial_tasks=1, epochs=2, width=8)
    >>> rows = [row for task in tasks for row in learner.learn(task)]
    >>> [(row["trained"], row["stage"]) for row in rows if row["metric"] == "projected"]
    [('south', 'adaptation')]
    """

    references: int = 32
    name = "a-gem"
    counts = ("projected",)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, references=WHOLE)

    def correct(self, context: StepContext) -> Correction:
        gradient, reference = context.gradient, context.reference
        assert reference is not None
        dot = torch.stack([(g * reference[n]).sum() for n, g in gradient.items()]).sum()
        size = torch.stack([r.square().sum() for r in reference.values()]).sum()
        excess = (dot / size.clamp(min=1e-12)).clamp(max=0)
        return Correction({n: g - excess * reference[n] for n, g in gradient.items()}, {"projected": dot < 0})
