"""Saving, loading and carrying on; interruptions; damaged folders."""

import dataclasses
import functools
import os
from typing import Any

import pytest
import torch
from torch import nn

import piaget
from piaget.files import read_json, write_json
from piaget.knowledge import lifecycle
from piaget.knowledge.snapshot import describe
from piaget.knowledge.state import State
from piaget.knowledge.storage import flatten
from piaget.method import consolidation
from piaget.method.adaptation import Finished
from piaget.method.choices import ALGORITHMS
from piaget.method.model import Model
from piaget.scoring.scores import TaskNetwork
from tests.small import binary_tasks, mixed_tasks


def learner_of(adaptation="er", algorithm="dynamic", **settings):
    defaults: dict[str, Any] = {
        "components": piaget.Dense(6),
        "initial_components": 2,
        "epochs": 4,
        "initial_tasks": 2,
        "batch_size": 8,
        "seed": 7,
    }
    return piaget.Learner(
        settings.pop("structure", "soft-ordering"), adaptation, algorithm, **(defaults | settings)
    )


def everything(learner):
    return flatten(describe(learner.state)[1])


def assert_same(a, b):
    ours, theirs = everything(a), everything(b)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert torch.equal(value, theirs[name]), name
    assert a.components == b.components
    assert a.structures().keys() == b.structures().keys()


@functools.cache
def undisturbed(adaptation="er"):
    """What learners are compared with that were killed on their way; it is not changed."""
    learner = learner_of(adaptation)
    for task in mixed_tasks(4, n=20):
        learner.learn(task)
    return learner


class Killed(BaseException):
    """Not an Exception: nothing may catch it."""


@pytest.mark.parametrize("adaptation", ["nft", "er", "ewc", "fm"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_continues_bitwise_between_tasks(tmp_path, adaptation, algorithm):
    tasks = mixed_tasks(5, n=20)
    whole, rows, parts_rows = learner_of(adaptation, algorithm), [], []
    for task in tasks:
        rows += whole.learn(task)
    part = learner_of(adaptation, algorithm)
    for i, task in enumerate(tasks):  # saved and loaded around every task, pending ones included
        part.save(tmp_path / f"{i}")
        part = piaget.Learner.load(tmp_path / f"{i}")
        parts_rows += part.learn(task)
    assert_same(whole, part)
    assert rows == parts_rows


@pytest.mark.parametrize("structure", ["soft-gating", "linear"])
def test_other_structures_continue_bitwise(tmp_path, structure):
    settings = {"structure": structure}
    if structure == "linear":
        settings |= {"components": None, "batch_size": None}
    tasks = binary_tasks(4, n=20)
    whole, part = learner_of("er", "dynamic", **settings), learner_of("er", "dynamic", **settings)
    for task in tasks:
        whole.learn(task)
        part.learn(task)
        part.save(tmp_path)
        part = piaget.Learner.load(tmp_path)
    assert_same(whole, part)


@pytest.mark.parametrize("every", [None, 1, 2])
@pytest.mark.parametrize("at", range(1, 13))
def test_interrupted_anywhere_continues_bitwise(tmp_path, at, every):
    """Killed after any epoch, also of initialization; saved, loaded, and learned again."""
    tasks = mixed_tasks(4, n=20)
    count = 0

    def kill(report):
        nonlocal count
        count += 1
        if count == at:
            raise Killed

    part = learner_of()
    for task in tasks:
        try:
            part.learn(task, every=every, on_epoch=kill)
        except Killed:
            part.save(tmp_path)
            part = piaget.Learner.load(tmp_path)
            part.learn(task, every=every)
    assert count >= at, "the learner was never killed"
    assert_same(undisturbed(), part)


@pytest.mark.parametrize("adaptation", ["er", "ewc"])
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Model, "draw_task"),
        (Model, "resized"),
        (lifecycle, "new_moments"),
        (lifecycle, "discard_candidate"),
        (State, "take"),
        (Finished, "sample"),
        (consolidation, "nearest_kronecker"),
        (TaskNetwork, "scores"),
        (TaskNetwork, "evidence"),
    ],
)
@pytest.mark.parametrize("at", [1, 2, 3])
def test_interrupted_inside_a_change_of_state(monkeypatch, adaptation, owner, name, at):
    """Killed while a task begins, is committed, decided about, evaluated or stored."""
    tasks = mixed_tasks(4, n=20)
    whole, part = undisturbed(adaptation), learner_of(adaptation)
    original, count = getattr(owner, name), 0

    def kill(*args, **kwargs):
        nonlocal count
        result = original(*args, **kwargs)
        count += 1
        if count == at:
            raise Killed
        return result

    monkeypatch.setattr(owner, name, kill)
    for task in tasks:
        try:
            part.learn(task)
        except Killed:
            part.learn(task)
    assert_same(whole, part)


def test_interrupted_initialization_carries_on():
    tasks = mixed_tasks(3, n=20)
    whole, part = (learner_of(initial_tasks=4) for _ in range(2))
    whole.learn(tasks[0])
    whole.initialize()
    part.learn(tasks[0])

    def kill(report):
        if report.epoch == 2:
            raise Killed

    with pytest.raises(Killed):
        part.initialize(on_epoch=kill)
    part.learn(tasks[0])
    for learner in (whole, part):
        learner.learn(tasks[1])
    assert_same(whole, part)


def test_a_cohort_carries_on_after_an_interruption(monkeypatch):
    """Killed when one run has finished the task and the other has not."""
    tasks = mixed_tasks(4, n=20)
    cohorts = [piaget.Cohort([learner_of(seed=s) for s in (1, 2)]) for _ in range(2)]
    for task in tasks:
        cohorts[0].learn([task, task])
    for task in tasks[:3]:
        cohorts[1].learn([task, task])
    finish, count = lifecycle.finish, 0

    def kill(*args):
        nonlocal count
        count += 1
        if count == 2:
            raise Killed
        finish(*args)

    monkeypatch.setattr(lifecycle, "finish", kill)
    with pytest.raises(Killed):
        cohorts[1].learn([tasks[3], tasks[3]])
    assert [tasks[3].name in learner.tasks for learner in cohorts[1].learners] == [True, False]
    rows = cohorts[1].learn([tasks[3], tasks[3]])
    assert all(rows)
    for a, b in zip(cohorts[0].learners, cohorts[1].learners, strict=True):
        ours, theirs = everything(a), everything(b)
        for name, value in ours.items():
            torch.testing.assert_close(theirs[name], value, msg=name)
    with pytest.raises(piaget.TaskError, match="given before"):
        cohorts[1].learn([tasks[3], tasks[3]])


def test_resuming_with_another_task_of_the_same_name_is_refused():
    tasks = mixed_tasks(4, n=20)
    learner = learner_of()
    for task in tasks[:2]:
        learner.learn(task)

    def kill(report):
        raise Killed

    with pytest.raises(Killed):
        learner.learn(tasks[2], on_epoch=kill)
    with pytest.raises(piaget.TaskError, match="'task 2': its data is not that"):
        learner.learn(dataclasses.replace(tasks[3], name="task 2"))
    learner.learn(tasks[2])


def test_pending_tasks_that_share_their_inputs_can_be_saved(tmp_path):
    """Several labels of the same samples: the tensors share memory."""
    x = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    learner = learner_of(algorithm="compositional")
    for name, y in (("a", [0, 1] * 10), ("b", [1, 1, 0, 0] * 5)):
        split = piaget.Split(x, torch.tensor(y))
        learner.settings = dataclasses.replace(learner.settings, initial_tasks=3)
        learner.learn(piaget.Task(name, "binary", split, classes=2))
    learner.save(tmp_path)
    assert piaget.Learner.load(tmp_path).pending == ["a", "b"]


def test_in_the_middle_only_the_same_task_is_taken():
    tasks = mixed_tasks(4, n=20)
    learner = learner_of()
    for task in tasks[:2]:
        learner.learn(task)

    def kill(report):
        raise Killed

    with pytest.raises(Killed):
        learner.learn(tasks[2], every=1, on_epoch=kill)
    with pytest.raises(piaget.TaskError, match="in the middle of 'task 2'"):
        learner.learn(tasks[3])
    with pytest.raises(piaget.UnknownTaskError):
        learner.predict(tasks[2].test.x, "task 2")
    learner.learn(tasks[2])
    assert learner.tasks == ["task 0", "task 1", "task 2"]


def test_predictions_survive(tmp_path):
    learner = learner_of()
    x = {"a": [[0.0, 1.0], [2.0, 3.0]] * 10, "b": [[5.0, 1.0], [0.0, 3.0]] * 10}
    for name, rows in x.items():
        learner.learn(piaget.Task.from_arrays(name, rows, ["no", "yes"] * 10))
    learner.save(tmp_path)
    loaded = piaget.Learner.load(tmp_path)
    answer = loaded.predict(x["a"], "a")
    assert set(answer) <= {"no", "yes"}
    assert (answer == learner.predict(x["a"], "a")).all()


class Doubling(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(6))

    def forward(self, x):
        return torch.tanh(x * self.gain)


def test_parts_of_ones_own_are_passed_again(tmp_path):
    kind = piaget.Module(Doubling, shape=(6,))
    learner = learner_of(components=kind)
    tasks = mixed_tasks(3, n=20)
    for task in tasks[:2]:
        learner.learn(task)
    learner.save(tmp_path)
    with pytest.raises(piaget.LoadError, match=r"pass it again: Learner.load\(folder, components="):
        piaget.Learner.load(tmp_path)
    loaded = piaget.Learner.load(tmp_path, components=kind)
    learner.learn(tasks[2])
    loaded.learn(tasks[2])
    assert_same(learner, loaded)


@pytest.fixture
def saved(tmp_path):
    learner = learner_of()
    for task in mixed_tasks(2, n=20):
        learner.learn(task)
    learner.save(tmp_path / "learner")
    return tmp_path / "learner"


def test_saving_again_replaces(saved):
    learner = piaget.Learner.load(saved)
    learner.learn(mixed_tasks(3, n=20)[2])
    learner.save(saved)
    assert len(list(saved.iterdir())) == 2, "the old tensors are gone, no temporary file is left"
    assert len(piaget.Learner.load(saved).tasks) == 3


def test_a_crash_while_saving_leaves_the_old_learner(saved, monkeypatch):
    learner = piaget.Learner.load(saved)
    learner.learn(mixed_tasks(3, n=20)[2])
    for step in (1, 2):
        calls = 0
        replace = os.replace

        def crash(*args, step=step, replace=replace):
            nonlocal calls
            calls += 1
            if calls == step:
                raise OSError("no space left on device")
            replace(*args)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", crash)
            with pytest.raises(OSError, match="no space"):
                learner.save(saved)
        assert len(piaget.Learner.load(saved).tasks) == 2
        assert not list(saved.glob("*.tmp"))
        assert not list(saved.glob(".*"))


def edit(folder, change):
    data = read_json(folder / "learner.json")
    change(data)
    write_json(folder / "learner.json", data)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "learner.json").unlink(), "holds no learner"),
        (lambda f: (f / "learner.json").write_text("{"), "is damaged"),
        (lambda f: (f / "learner.json").write_text("[]"), "expected an object"),
        (lambda f: edit(f, lambda d: d.update(format="x")), "does not describe a piaget learner"),
        (lambda f: edit(f, lambda d: d.update(version=99)), "format version 99"),
        (lambda f: edit(f, lambda d: d.pop("records")), "is damaged"),
        (lambda f: edit(f, lambda d: d.pop("settings")), "is damaged"),
        (lambda f: edit(f, lambda d: d.update(tensors=3)), "names no tensor file"),
        (lambda f: edit(f, lambda d: d["settings"].pop("depth")), "incomplete"),
        (lambda f: edit(f, lambda d: d["settings"]["structure"].update(part="os")), "unknown part"),
        (lambda f: next(f.glob("*.safetensors")).unlink(), "is missing"),
        (lambda f: next(f.glob("*.safetensors")).write_bytes(b"x"), "not the file that was saved"),
    ],
)
def test_damaged_folders(saved, damage, message):
    damage(saved)
    with pytest.raises(piaget.LoadError, match=message):
        piaget.Learner.load(saved)


def test_settings_can_be_given_anew_but_not_invented(saved):
    assert piaget.Learner.load(saved, device="cpu").settings.device == "cpu"
    with pytest.raises(piaget.LoadError, match="colour cannot be given when loading: only the device"):
        piaget.Learner.load(saved, colour="red")


def test_no_such_folder(tmp_path):
    with pytest.raises(piaget.LoadError, match="holds no learner"):
        piaget.Learner.load(tmp_path / "nowhere")
