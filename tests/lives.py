"""What every part promises: a learner with it is carried on after a break, and is the same in a cohort."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

import piaget
from tests.test_extending import assert_same, everything, killed_at


def check_carried_on(
    make: Callable[..., piaget.Learner], tasks: Sequence[piaget.Task], folder: Path, epoch: int = 2
) -> None:
    """Broken off in the last task, saved and loaded, it ends with the same bits."""
    whole, part = make(), make()
    for task in tasks:
        whole.learn(task)
    for task in tasks[:-1]:
        part.learn(task)
    killed_at(epoch, part, tasks[-1])
    part.save(folder)
    part = piaget.Learner.load(folder)
    assert part.settings == whole.settings
    part.learn(tasks[-1])
    assert_same(whole, part)


def check_in_company(
    make: Callable[..., piaget.Learner], tasks: Sequence[piaget.Task], runs: int = 2
) -> None:
    """Trained together with other seeds, it ends with the same numbers."""
    together = piaget.Cohort([make(seed=seed) for seed in range(runs)])
    for task in tasks:
        together.learn([task] * runs)
    for seed, other in enumerate(together.learners):
        alone = make(seed=seed)
        for task in tasks:
            alone.learn(task)
        assert alone.components == other.components
        theirs = everything(other)
        for key, tensor in everything(alone).items():
            torch.testing.assert_close(theirs[key], tensor, rtol=1e-7, atol=1e-9, msg=key)
