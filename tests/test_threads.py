"""Asking a learner while it learns in another thread: each answer is of one moment."""

import copy
import pickle
import sys
import threading
from typing import Any

import numpy as np
import pytest
import torch

import piaget
from piaget.knowledge.snapshot import describe
from piaget.knowledge.storage import flatten
from tests.small import binary_tasks, mixed_tasks

SMALL: dict[str, Any] = {
    "components": piaget.Dense(6),
    "initial_components": 2,
    "epochs": 12,
    "initial_tasks": 2,
    "batch_size": 8,
    "dropout": 0.0,
}


@pytest.fixture(autouse=True)
def _many_switches():
    """Threads take turns all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Asking(threading.Thread):
    """Asks again and again, until it is told to stop."""

    def __init__(self, ask):
        super().__init__(daemon=True)
        self.ask, self.ended, self.answers, self.error = ask, False, [], None

    def run(self):
        try:
            while not self.ended:
                self.answers.append(self.ask())
        except BaseException as error:
            self.error = error

    def stop(self):
        self.ended = True
        self.join(60)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error
        return self.answers


@pytest.mark.parametrize("algorithm", ["dynamic", "joint"])
def test_answers_while_learning_are_of_one_epoch(algorithm, tmp_path):
    """Of a task with components and a shared encoder and decoder, which all change in every epoch."""
    tasks = binary_tasks(6, n=20)
    settings = {**SMALL, "encoder": "shared", "decoder": "shared", "algorithm": algorithm, "adapt_every": 3}
    if algorithm == "joint":
        del settings["adapt_every"]
    learner = piaget.Learner(**settings, learning_rate=0.05)
    for task in tasks[:2]:
        learner.learn(task)
    x, of_epochs, scores = tasks[0].test.x, set(), set()

    def answer():
        return np.asarray(learner.predict_proba(x, "task 0")).tobytes()

    def score():
        return tuple(row["value"] for row in learner.evaluate(tasks[0]) if row["metric"] == "loss")

    def saved():
        learner.save(tmp_path)
        loaded = piaget.Learner.load(tmp_path)
        return np.asarray(loaded.predict_proba(x, "task 0")).tobytes(), len(loaded.structures())

    def note(_=None):
        of_epochs.add(answer())
        scores.add(score())

    note()
    asking = [Asking(answer), Asking(score), Asking(saved), Asking(learner.structures)]
    for one in asking:
        one.start()
    for task in tasks[2:]:
        learner.learn(task, every=1, on_epoch=note)
        note()
    answers, losses, files, _ = (one.stop() for one in asking)
    assert len(of_epochs) > 12
    assert len(set(answers)) > 5, "it was asked often enough"
    assert set(answers) <= of_epochs
    assert set(losses) <= scores
    assert {predictions for predictions, _ in files} <= of_epochs


def test_a_busy_learner_says_so():
    learner, tasks = piaget.Learner(**SMALL), mixed_tasks(3, n=20)
    learner.learn(tasks[0])
    errors = []

    def learn_elsewhere(_):
        def learn():
            try:
                learner.learn(tasks[2])
            except piaget.TaskError as error:
                errors.append(str(error))

        thread = threading.Thread(target=learn)
        thread.start()
        thread.join(60)

    learner.learn(tasks[1], on_epoch=learn_elsewhere)
    assert len(errors) == 12
    assert all("is learning a task already" in error for error in errors)


def test_the_engine_does_not_write_into_what_a_state_has():
    """Snapshots share their tensors with the state that goes on."""
    learner = piaget.Learner(**SMALL, adaptation="ewc")
    seen: list[tuple[str, torch.Tensor, torch.Tensor]] = []

    def note(_):
        _, tree = describe(learner.state.snapshot())
        seen.extend((name, tensor, tensor.clone()) for name, tensor in flatten(tree).items())

    for task in mixed_tasks(4, n=20):
        learner.learn(task, every=1, on_epoch=note)
    assert len(seen) > 1000
    for name, tensor, before in seen:
        assert torch.equal(tensor, before), name


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_go_on_by_themselves(copied):
    learner, tasks = piaget.Learner(**SMALL), mixed_tasks(3, n=20)
    for task in tasks[:2]:
        learner.learn(task)
    other = copied(learner)
    learner.learn(tasks[2])
    assert other.tasks == ["task 0", "task 1"]
    other.learn(tasks[2])
    ours, theirs = (flatten(describe(one.state)[1]) for one in (learner, other))
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())
