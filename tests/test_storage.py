"""Saving, loading and carrying on; interruptions; damaged folders."""

import json

import pytest
import torch
from torch import nn

import piaget
from piaget.settings import ALGORITHMS
from piaget.trees import flatten
from tests.small import mixed_tasks


def learner_of(adaptation="er", algorithm="dynamic", **settings):
    defaults = {
        "components": piaget.Dense(6), "initial_components": 2, "epochs": 4, "initial_tasks": 2,
        "batch_size": 8, "seed": 7,
    }  # fmt: skip
    return piaget.Learner(
        settings.pop("structure", "soft-ordering"), adaptation, algorithm, **(defaults | settings)
    )


def everything(learner):
    state = learner._state
    own = {name: record.own for name, record in state.records.items()}
    tree = {
        "components": state.components, "moments": state.moments, "own": own, "memory": state.memory,
        "generator": state.generator.get_state(),
    }  # fmt: skip
    return flatten(tree)


def assert_same(a, b):
    ours, theirs = everything(a), everything(b)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert torch.equal(value, theirs[name]), name
    assert a.components == b.components
    assert a.structures().keys() == b.structures().keys()


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
    from tests.small import binary_tasks

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
    whole = learner_of()
    for task in tasks:
        whole.learn(task)
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
    assert_same(whole, part)


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
    from piaget import storage

    for step in (1, 2):
        calls = 0
        replace = storage.os.replace

        def crash(*args, step=step, replace=replace):
            nonlocal calls
            calls += 1
            if calls == step:
                raise OSError("no space left on device")
            replace(*args)

        with monkeypatch.context() as patch:
            patch.setattr(storage.os, "replace", crash)
            with pytest.raises(OSError, match="no space"):
                learner.save(saved)
        assert len(piaget.Learner.load(saved).tasks) == 2
        assert not list(saved.glob("*.tmp"))
        assert not list(saved.glob(".*"))


def edit(folder, change):
    data = json.loads((folder / "learner.json").read_text())
    change(data)
    (folder / "learner.json").write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "learner.json").unlink(), "holds no learner"),
        (lambda f: (f / "learner.json").write_text("{"), "is damaged"),
        (lambda f: (f / "learner.json").write_text("[]"), "does not describe a piaget learner"),
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
    with pytest.raises(piaget.LoadError, match="colour: no such setting"):
        piaget.Learner.load(saved, colour="red")


def test_no_such_folder(tmp_path):
    with pytest.raises(piaget.LoadError, match="holds no learner"):
        piaget.Learner.load(tmp_path / "nowhere")
