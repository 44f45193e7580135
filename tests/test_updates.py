"""Tasks that are known: learned further with new data, and forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import piaget
from piaget.errors import SettingError, TaskError, UnknownTaskError
from piaget.method.trees import flatten
from tests.small import make_task

METHODS = [
    ("er", "dynamic"),
    ("nft", "compositional"),
    ("ewc", "dynamic"),
    ("ewc-merged", "compositional"),
    ("fm", "recommended"),
    ("der++", "joint"),
    ("a-gem", "compositional"),
    ("er", "no-components"),
    ("er", "no-components-frozen"),
    ("fm", "alone"),
]


def small_learner(**settings):
    return piaget.Learner(**{"epochs": 2, "width": 8, "initial_tasks": 2} | settings)


def learned(**settings):
    """A learner that knows four tasks."""
    learner = small_learner(**settings)
    for task in tasks(4):
        learner.learn(task)
    return learner


def tasks(count, **options):
    return [make_task(f"t{i}", seed=i, **options) for i in range(count)]


def own(learner, name):
    """A task's own parameters."""
    return flatten(learner.state.records[name].params._asdict())


def equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(("adaptation", "algorithm"), METHODS)
def test_a_life_of_updates_and_forgetting(tmp_path, adaptation, algorithm):
    """Whatever the method: known tasks go on, are forgotten, and all is as it was after a save."""
    learner = small_learner(adaptation=adaptation, algorithm=algorithm, epochs=2, initial_tasks=2)
    given = tasks(5)
    for task in given[:4]:
        learner.learn(task)
    before, components = own(learner, "t1"), learner.components
    rows = learner.update(replace(given[1], train=make_task("t1", seed=9).train))
    assert {row["evaluated"] for row in rows if row["metric"] == "accuracy"} == {"t1"}
    assert not equal(own(learner, "t1"), before)
    assert learner.components == components
    assert learner.tasks == ["t0", "t1", "t2", "t3"]

    learner.save(tmp_path / "one")
    other = piaget.load(tmp_path / "one")
    for one in (learner, other):
        one.learn(given[4])
        one.forget("t1", given[3])
        one.learn(given[3])
    assert learner.tasks == other.tasks == ["t0", "t2", "t4", "t3"]
    for name in learner.tasks:
        assert equal(own(learner, name), own(other, name)), name
    other.save(tmp_path / "two")
    assert piaget.load(tmp_path / "two").tasks == learner.tasks


def test_an_update_begins_where_the_task_is():
    """Gradient descent with all samples in a batch, by hand, in float64; components are frozen."""
    learner = small_learner(
        adaptation="fm", algorithm="compositional", optimizer="sgd", learning_rate=0.1, dropout=0.0,
        batch_size="all", dtype="float64",
    )  # fmt: skip
    for task in tasks(3):
        learner.learn(task)
    name, new = "t2", make_task("t2", seed=9)
    record, model = learner.state.records[name], learner.model
    x = record.scaling.inputs(new.train.x, "cpu", torch.float64)
    params = own(learner, name)
    for _ in range(2):  # epochs, of one step each
        params = {key: t.clone().requires_grad_() for key, t in params.items()}
        roles = {
            role: {key.split("/", 1)[1]: t for key, t in params.items() if key.startswith(f"{role}/")}
            for role in record.params._fields
        }
        network = learner.state.params(record, model)._replace(task=record.params._replace(**roles))
        encoded = model.encode(network.encoder, x)
        out = model.forward(network, encoded, [None] * model.depth, record.visible(learner.state.k))
        torch.nn.functional.cross_entropy(out, new.train.y).backward()
        params = {
            key: t.detach() if t.grad is None else t.detach() - 0.1 * t.grad for key, t in params.items()
        }

    components, before = flatten(learner.state.components), own(learner, name)
    learner.update(new)
    found = own(learner, name)
    assert not equal(found, before)
    for key, expected in params.items():
        torch.testing.assert_close(found[key], expected, rtol=1e-10, atol=1e-12)
    assert equal(flatten(learner.state.components), components)


def test_more_rows_make_it_better():
    whole = make_task("t3", n=400, seed=3)
    few = replace(whole, train=piaget.Split(whole.train.x[:12], whole.train.y[:12]))
    learner = small_learner(
        adaptation="fm", algorithm="compositional", epochs=30, initial_tasks=3, learning_rate=1e-2
    )
    for task in tasks(3, n=100):
        learner.learn(task)
    learner.learn(few)
    loss = {row["metric"]: row["value"] for row in learner.evaluate(whole)}["loss"]
    learner.update(whole)
    assert {row["metric"]: row["value"] for row in learner.evaluate(whole)}["loss"] < 0.9 * loss


def test_what_is_stored_is_of_the_new_data():
    learner = learned(adaptation="er")
    task = learner.tasks[1]
    x = learner.state.records[task].input_shape
    new = make_task(task, features=x, n=50, seed=77)
    learner.update(new)
    stored = {s.task: s for s in piaget.stored_samples(learner.state.memory)}
    assert sorted(stored) == list(range(len(learner.tasks)))
    kept, record = stored[1].y, learner.state.records[task]
    inputs = record.scaling.inputs(new.train.x, "cpu", learner.settings.torch_dtype)
    encoded = learner.model.encode(record.params.encoder, inputs)
    found = (stored[1].h[:, None] == encoded).all(2)  # (stored, new): the same row
    assert found.any(1).all()
    assert torch.equal(kept, new.train.y[found.long().argmax(1)])
    learner.forget(learner.tasks[0])
    after = piaget.stored_samples(learner.state.memory)
    assert [s.task for s in after] == list(range(len(learner.tasks)))
    assert torch.equal(after[0].y, kept)


def test_interrupted_it_is_as_before():
    learner = learned()
    before, known = own(learner, learner.tasks[1]), learner.tasks

    def stop(report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learner.update(make_task(learner.tasks[1], seed=5), on_epoch=stop)
    assert equal(own(learner, learner.tasks[1]), before)
    assert learner.tasks == known
    assert learner.state.progress is None
    learner.update(make_task(learner.tasks[1], seed=5))


def test_first_a_task_that_was_begun_is_finished():
    learner, new = learned(), make_task("new", seed=8)

    def stop(report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learner.learn(new, on_epoch=stop)
    for ask in (learner.update, learner.forget):
        for task in (new, make_task("t1")):
            with pytest.raises(TaskError, match="in the middle of 'new'"):
                ask(task)
    learner.learn(new)
    learner.update(new)


def test_scaled_as_when_it_was_learned():
    """New rows that lie elsewhere are not moved to where the old ones were."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 4, generator=generator, dtype=torch.float64)
    y = (x[:, 0] > 0).long()
    learner = piaget.Learner(epochs=2, width=8, initial_tasks=1)
    learner.learn(piaget.Task.from_arrays("a", x, y))
    scaling = learner.record("a").scaling
    learner.update(piaget.Task.from_arrays("a", x + 100, y))
    assert learner.record("a").scaling == scaling


def test_what_does_not_fit_is_refused():
    learner = learned()
    name = learner.tasks[1]
    for task, error, text in (
        (make_task("nobody"), UnknownTaskError, "nobody"),
        (make_task(name, features=7), TaskError, "inputs (7,); expected (6,)"),
        (make_task(name, classes=4), TaskError, "classes 4; expected 3"),
        (make_task(name, kind="binary", classes=2), TaskError, "kind 'binary'; expected 'multiclass'"),
        ("a text", TaskError, "a str is no task"),
        (3, TaskError, "an int is no task"),
        (None, TaskError, "None is no task"),
    ):
        with pytest.raises(error) as wrong:
            learner.update(task)
        assert text in str(wrong.value), str(wrong.value)
    with pytest.raises(UnknownTaskError):
        learner.forget(name, "nobody")
    assert name in learner.tasks


def test_pending_tasks_and_all_tasks_are_forgotten(tmp_path):
    learner = small_learner(initial_tasks=3)
    given = tasks(4)
    learner.learn(given[0])
    learner.learn(given[1])
    learner.forget("t0")
    assert learner.pending == ["t1"]
    learner.learn(given[2])
    learner.learn(given[3])
    assert learner.tasks == ["t1", "t2", "t3"]
    learner.forget(*learner.tasks)
    assert (learner.tasks, learner.components) == ([], 0)
    learner.save(tmp_path / "empty")
    again = piaget.load(tmp_path / "empty")
    for task in given[:3]:
        again.learn(task)
    assert again.tasks == ["t0", "t1", "t2"]


def test_an_adaptation_of_ones_own_says_what_becomes_of_its_memory():
    class Counting(piaget.Adaptation):
        name = "counting"

        def remember(self, memory, finished):
            return {"count": {"n": memory.get("count", {"n": torch.zeros(())})["n"] + 1}}

    class Patient(Counting):
        def forgotten(self, memory, place):
            return memory

    for part, right in ((Counting(), False), (Patient(), True)):
        learner = small_learner(adaptation=part, initial_tasks=1)
        for task in tasks(2):
            learner.learn(task)
        if right:
            learner.forget("t0")
        else:
            with pytest.raises(SettingError, match="forgotten"):
                learner.forget("t0")
        assert learner.tasks == (["t1"] if right else ["t0", "t1"])


class Twice(piaget.Adaptation):
    """Stores two lots of samples of each task, under names of its own; of the last two tasks only."""

    name = "twice"

    def remember(self, memory, finished):
        place = str(finished.index)
        lots = {f"{lot} of {place}": finished.store({}, finished.sample(3))[place] for lot in ("a", "b")}
        return {name: kept for name, kept in memory.items() if int(kept["task"]) == finished.index - 1} | lots

    def replay(self, memory):
        return piaget.stored_samples(memory)


@pytest.mark.parametrize("algorithm", ["compositional", "no-components"])
def test_all_lots_of_samples_are_kept(tmp_path, algorithm):
    """Whatever their names; and moments are kept of those tasks alone that go on learning."""
    learner = small_learner(adaptation=Twice(), algorithm=algorithm)
    for task in tasks(4):
        learner.learn(task)
    learner.save(tmp_path / "one")
    learner = piaget.Learner.load(tmp_path / "one", adaptation=Twice())
    learner.forget("t0")
    assert [s.task for s in piaget.stored_samples(learner.state.memory)] == [1, 1, 2, 2]
    learner.update(tasks(3)[2])
    learner.forget("t3")
    learner.save(tmp_path / "two")
    learner = piaget.Learner.load(tmp_path / "two", adaptation=Twice())
    learner.learn(tasks(5)[4])
    assert learner.tasks == ["t1", "t2", "t4"]


def test_components_of_a_library_stay(tmp_path):
    """If all tasks are forgotten, others go, with where they came from."""
    learned().export_components(tmp_path / "library")
    learner = piaget.Learner(components_from=tmp_path / "library", epochs=2)
    learner.learn(tasks(1)[0])
    learner.forget("t0")
    learner.save(tmp_path / "learner")
    assert piaget.load(tmp_path / "learner").components == 4
    both = piaget.merge(learned(), learned(seed=1), prefix="b/")
    assert both.state.merged
    both.forget(*both.tasks)
    assert (both.components, both.state.merged) == (0, ())
