"""A task's fingerprint covers all that the task is; learning goes on only with the task that was begun."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch

import piaget
from piaget.data.encoding import Column, Encoding, Scaling
from piaget.data.tasks import Split, Task, same_fingerprint
from tests.small import make_task

ENCODING = Encoding(
    (Column("a", mean=1.0), Column("b", ("u", "v", "w", "x", "y"))), "group", "target", "multiclass"
)
TASK = replace(make_task("t", n=8), labels=("p", "q", "r"), encoding=ENCODING)


def changed(split: str, what: str) -> Task:
    """The task with the last number of one tensor changed a little."""
    tensor = getattr(getattr(TASK, split), what).clone()
    tensor[-1] = (tensor[-1] + 1) % 3 if what == "y" else tensor[-1] + 1e-9
    return replace(TASK, **{split: replace(getattr(TASK, split), **{what: tensor})})


def with_inputs(task: Task, change: Callable[[torch.Tensor], torch.Tensor]) -> Task:
    splits: dict[str, Any] = {name: Split(change(split.x), split.y) for name, split in task.splits()}
    return replace(task, **splits)


WHOLE = with_inputs(TASK, torch.Tensor.int)  # the same values in int32 and int64
OTHERS: dict[str, Callable[[], Task]] = {
    "kind": lambda: replace(make_task("t", "binary", n=8), kind="multiclass"),
    "classes": lambda: replace(TASK, classes=3, labels=None),
    "labels": lambda: replace(TASK, labels=("p", "q", "s")),
    "type of labels": lambda: replace(TASK, labels=("p", "q", 3)),
    "scaling": lambda: replace(TASK, scaling=Scaling(255)),
    "mean": lambda: replace(TASK, scaling=Scaling(mean=1e-12)),
    "no encoding": lambda: replace(TASK, encoding=None),
    "encoding": lambda: replace(TASK, encoding=replace(ENCODING, target="other")),
    "a column": lambda: replace(
        TASK, encoding=replace(ENCODING, columns=(Column("a", mean=1.5), *ENCODING.columns[1:]))
    ),
    **{f"{s} {w}": partial(changed, s, w) for s in ("train", "validation", "test") for w in "xy"},
    "shape": lambda: with_inputs(TASK, lambda x: x.reshape(-1, 2, 3)),
    "no test": lambda: replace(TASK, test=None),
    "test for validation": lambda: replace(TASK, validation=TASK.test, test=TASK.validation),
    "fewer": lambda: replace(TASK, test=Split(TASK.test.x[:-1], TASK.test.y[:-1])),
    "whole": lambda: WHOLE,
    "type": lambda: with_inputs(WHOLE, torch.Tensor.long),
    "bfloat16": lambda: with_inputs(TASK, torch.Tensor.bfloat16),
}


def test_a_change_of_anything_changes_it():
    prints = {what: make().fingerprint() for what, make in OTHERS.items()}
    assert all(re.fullmatch("2:[0-9a-f]{64}", one) for one in prints.values())
    assert len({TASK.fingerprint(), *prints.values()}) == len(OTHERS) + 1


def test_the_same_task_has_the_same_one():
    """Whatever it is called, and however its tensors lie in memory."""
    x = TASK.train.x.t().contiguous().t()
    assert not x.is_contiguous()
    same = replace(TASK, name="other", stream="s", train=Split(x, TASK.train.y))
    assert same.fingerprint() == TASK.fingerprint()


def written_by_0_1(task: Task) -> str:
    """As version 0.1 computed it."""
    described = (task.kind, task.classes, task.labels, task.train.x.shape, task.scaling)
    digest = hashlib.sha256(repr(described).encode())
    for tensor in (task.train.x, task.train.y):
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


def test_what_was_stored_is_compared_in_its_own_way():
    for task, same, same_for_0_1 in (
        (TASK, True, True),
        (OTHERS["test x"](), False, True),
        (OTHERS["train x"](), False, False),
    ):
        assert same_fingerprint(task, TASK.fingerprint()) is same
        assert same_fingerprint(task, written_by_0_1(TASK)) is same_for_0_1


class Killed(Exception):
    pass


@pytest.mark.parametrize("old", [False, True])
def test_learning_goes_on_with_the_task_that_was_begun(old, tmp_path):
    learner = piaget.Learner("soft-ordering", "er", "compositional", epochs=2, width=4, initial_tasks=1)
    learner.learn(make_task("first", n=8))

    def kill(report):
        raise Killed

    with pytest.raises(Killed):
        learner.learn(TASK, on_epoch=kill)
    progress = learner.state.progress
    assert progress is not None
    assert progress.fingerprints == {"t": TASK.fingerprint()}
    if old:
        progress.fingerprints["t"] = written_by_0_1(TASK)
    learner.save(tmp_path)
    learner = piaget.Learner.load(tmp_path)
    with pytest.raises(piaget.TaskError, match="'t': its data is not that with which learning it began"):
        learner.learn(replace(OTHERS["train y"](), name="t"))
    if not old:  # which looked at training data only
        with pytest.raises(piaget.TaskError, match="its data is not that"):
            learner.learn(OTHERS["test x"]())
    learner.learn(TASK)
    assert learner.tasks == ["first", "t"]
