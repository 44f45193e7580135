"""Two learners merged into one: every task of both answers as before, within what is said."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import piaget
from piaget import merging
from piaget.knowledge import library
from piaget.knowledge.state import State
from piaget.method.curvature import as_matrices
from tests.small import binary_tasks, held_out_of, image_tasks, make_task, mixed_tasks

SMALL: dict[str, Any] = {"components": piaget.Dense(5), "initial_components": 2, "epochs": 2}
SMALL |= {"initial_tasks": 2, "batch_size": 8, "dtype": "float64"}
METHODS: list[dict[str, Any]] = [
    {},
    {"adaptation": "ewc"},
    {"adaptation": "nft", "inference": "inputs"},
    {"structure": "soft-gating"},
    {"structure": "linear", "components": "linear", "batch_size": "all", "algorithm": "compositional"},
]


def named(prefix: str, tasks) -> list[Any]:
    for task in tasks:
        object.__setattr__(task, "name", f"{prefix} {task.name}")
    return tasks


def tasks_of(prefix: str, settings: dict[str, Any]) -> list[Any]:
    linear = settings.get("structure") == "linear"
    return named(prefix, binary_tasks(3, n=12) if linear else mixed_tasks(3, n=12))


def learned(tasks, seed: int, **settings: Any) -> piaget.Learner:
    learner = piaget.Learner(**(SMALL | settings), seed=seed)
    for task in tasks:
        learner.learn(task)
    return learner


def outputs(learner: piaget.Learner, task) -> torch.Tensor:
    x = held_out_of(task).x
    name = task.name
    return torch.as_tensor(
        learner.predict(x, name) if task.kind == "regression" else learner.predict_proba(x, name)
    )


def components(state: State) -> torch.Tensor:
    return torch.cat([p.flatten(1) for p in state.components.values()], 1)


@pytest.mark.parametrize("settings", METHODS)
def test_with_no_tolerance_every_task_answers_as_before(settings, tmp_path):
    of_a, of_b = tasks_of("a", settings), tasks_of("b", settings)
    a, b = learned(of_a, 1, **settings), learned(of_b, 2, **settings)
    merged = piaget.merge(a, b)
    assert merged.tasks == [task.name for task in (*of_a, *of_b)]
    assert merged.components == a.components + b.components
    for learner, tasks in ((a, of_a), (b, of_b)):
        for task in tasks:
            assert torch.allclose(outputs(merged, task), outputs(learner, task), rtol=0, atol=1e-13)
            if task.kind != "regression":
                x = held_out_of(task).x
                assert (merged.predict(x, task.name) == learner.predict(x, task.name)).all()
    scores = {row["evaluated"]: row["value"] for row in merged.evaluate([*of_a, *of_b])}
    before = [*a.evaluate(of_a), *b.evaluate(of_b)]
    assert all(scores[row["evaluated"]] is not None for row in before if row["evaluated"])
    merged.save(tmp_path)
    again = piaget.Learner.load(tmp_path)  # which checks it all
    kind = "binary" if settings.get("structure") == "linear" else "multiclass"
    again.learn(make_task("new", kind, 2 if kind == "binary" else 3, 6, n=12))
    assert again.tasks[-1] == "new"
    assert (a.tasks, b.tasks) == ([t.name for t in of_a], [t.name for t in of_b])  # they are as they were


def test_images(tmp_path):
    settings: dict[str, Any] = {"components": piaget.Conv(3), "encoder": "none", "depth": 2}
    of_a, of_b = named("a", image_tasks(2)), named("b", image_tasks(2))
    a, b = (learned(tasks, i, **settings) for i, tasks in enumerate((of_a, of_b)))
    merged = piaget.merge(a, b)
    for task in of_b:
        assert torch.allclose(outputs(merged, task), outputs(b, task), rtol=0, atol=1e-13)


def test_replay_keeps_the_samples_of_both():
    of_a, of_b = tasks_of("a", {}), tasks_of("b", {})
    a, b = learned(of_a, 1), learned(of_b, 2)
    memory = piaget.merge(a, b).state.memory
    assert list(memory) == [str(i) for i in range(6)]
    for i in range(3):
        assert torch.equal(memory[str(i)]["h"], a.state.memory[str(i)]["h"])
        assert torch.equal(memory[str(3 + i)]["h"], b.state.memory[str(i)]["h"])
        assert int(memory[str(3 + i)]["task"]) == 3 + i


def test_ewc_holds_the_components_of_both():
    """The penalty's gradient at the merged components is that of each learner at its own."""
    settings = {"adaptation": "ewc"}
    a, b = learned(tasks_of("a", settings), 1, **settings), learned(tasks_of("b", settings), 2, **settings)
    merged = piaget.merge(a, b)

    def pull(learner: piaget.Learner) -> dict[str, torch.Tensor]:
        memory, found = learner.state.memory, {}
        matrices = as_matrices(learner.state.components)
        for name, left in memory["left"].items():
            phi = matrices[name][: left.shape[1]]
            found[name] = (left @ phi @ memory["right"][name]).sum(0) - memory["anchor"][name]
        return found

    for name, expected in pull(a).items():
        assert torch.allclose(pull(merged)[name][: len(expected)], expected, atol=1e-12)
    for name, expected in pull(b).items():
        there = pull(merged)[name][a.components : a.components + len(expected)]
        assert torch.allclose(there, expected, atol=1e-12)


def test_equal_components_are_there_once():
    """Two learners that began with the same library, and left it as it was."""
    a = learned(tasks_of("a", {}), 1, adaptation="fm", algorithm="compositional")
    b = learned(tasks_of("a", {}), 1, adaptation="fm", algorithm="compositional")
    new = named("b", mixed_tasks(2, n=12))
    for task in new:
        b.learn(task)
    merged = piaget.merge(a, b, prefix="copy/")
    assert merged.components == a.components
    for task in new:
        expected = outputs(b, task)
        object.__setattr__(task, "name", f"copy/{task.name}")
        assert torch.allclose(outputs(merged, task), expected, rtol=0, atol=1e-13)


def nearly(a: piaget.Learner, size: float) -> piaget.Learner:
    """A learner of other tasks, whose components are those of `a` in another order, a little changed."""
    b = learned(tasks_of("b", {}), 1, algorithm="compositional")
    g = torch.Generator().manual_seed(0)
    for name, stack in a.state.components.items():
        noise = torch.randn(stack.shape, generator=g, dtype=stack.dtype)
        b.state.components = b.state.components | {name: (stack + size * noise).flip(0)}
    return b


def test_components_within_the_tolerance_are_merged_and_the_change_is_bounded():
    a = learned(tasks_of("a", {}), 1, algorithm="compositional")
    b = nearly(a, 1e-3)
    assert piaget.merge(a, b).components == 4
    merged = piaget.merge(a, b, tolerance=0.05)
    assert merged.components == 2
    assert torch.equal(components(merged.state), components(a.state))  # those of a
    for stored in b.state.memory.values():  # the bound is of stored samples
        task = list(b.state.records)[int(stored["task"])]
        before, after = (network_outputs(learner, task, stored["h"]) for learner in (b, merged))
        assert 0 < float((after - before).norm() / before.norm()) <= 0.05
    assert piaget.merge(a, b, tolerance=1e-6).components == 4  # too little


def network_outputs(learner: piaget.Learner, task: str, h: torch.Tensor) -> torch.Tensor:
    from piaget.scoring.scores import TaskNetwork

    return TaskNetwork(learner.settings, learner.state, learner.record(task)).outputs_of_encoded(h)


def test_without_stored_samples_a_tolerance_needs_data():
    settings = {"adaptation": "nft", "algorithm": "compositional"}
    of_a, of_b = tasks_of("a", settings), tasks_of("b", settings)
    a, b = learned(of_a, 1, **settings), learned(of_b, 2, **settings)
    with pytest.raises(piaget.SettingError, match="data=tasks"):
        piaget.merge(a, b, tolerance=0.1)
    assert piaget.merge(a, b, tolerance=0.1, data=[*of_a, *of_b]).components <= 4


def test_notes_of_both_are_kept():
    settings = {"inference": "inputs"}
    of_a, of_b = tasks_of("a", settings), tasks_of("b", settings)
    merged = piaget.merge(learned(of_a, 1, **settings), learned(of_b, 2, **settings))
    assert len(merged.infer(held_out_of(of_b[1]).x).tasks) == 6


def test_what_cannot_be_merged():
    of_a, of_b = tasks_of("a", {}), tasks_of("b", {})
    a = learned(of_a, 1)
    with pytest.raises(piaget.TaskError, match=r"both learners have a task 'a task 0' and 2 more.*prefix="):
        piaget.merge(a, learned(tasks_of("a", {}), 2))
    with pytest.raises(piaget.SettingError, match=r"differ in their settings \(components"):
        piaget.merge(a, learned(of_b, 2, components=piaget.Dense(6)))
    with pytest.raises(piaget.SettingError, match="depth: 2 and 3"):
        piaget.merge(a, learned(of_b, 2, depth=3))
    with pytest.raises(piaget.SettingError, match=r"settings \(adaptation\.size: None and 3\); expected"):
        piaget.merge(a, learned(of_b, 2, replay_size=3))
    with pytest.raises(piaget.SettingError, match="none at all"):
        piaget.merge(a, piaget.Learner(**SMALL))
    with pytest.raises(piaget.SettingError, match="with itself"):
        piaget.merge(a, a)
    with pytest.raises(piaget.SettingError, match="tolerance"):
        piaget.merge(a, learned(of_b, 2), tolerance=-1)
    alone = [learned(tasks, 1, algorithm="no-components") for tasks in (of_a, of_b)]
    with pytest.raises(piaget.SettingError, match="'monolithic' cannot be merged"):
        piaget.merge(*alone)
    shared = [learned(tasks, i, decoder="shared") for i, tasks in enumerate((of_a, of_b))]
    with pytest.raises(piaget.SettingError, match="a decoder of its own"):
        piaget.merge(*shared)


def test_data_of_tasks_with_the_same_name_is_each_ones_own():
    """a and b have a task "n" each; b's goes by its new name."""
    ours, theirs = (make_task("n", seed=seed, n=12) for seed in (1, 2))
    more = [make_task(f"{name} more", seed=5, n=12) for name in "ab"]
    a = learned([ours, more[0]], 0, adaptation="nft")
    b = learned([theirs, more[1]], 1, adaptation="nft")
    names = {name: f"b/{name}" for name in b.tasks}
    given = {"n": ours, "b/n": make_task("b/n", seed=2, n=12)}
    first, second = merging._samples(a.settings, a.state, b.state, names, given, 0.0)
    for learner, task, found in ((a, ours, first), (b, theirs, second)):
        record = learner.record("n")
        x = record.scaling.inputs(task.train.x, "cpu", torch.float64)
        torch.testing.assert_close(found["n"], learner.model.encode(record.params.encoder, x))


def test_components_of_merged_gated_learners_can_be_merged_into_each_other():
    """A task of a never has b's components: its gates of them are minus infinity."""
    gating = piaget.SoftGating()
    bias = torch.tensor([[-torch.inf, 0.3, 0.1]])
    usage = torch.tensor([[0.0], [0.6], [0.4]])
    for component, into in ((2, 0), (0, 2)):
        merged = gating.merged({"weight": torch.zeros(1, 3, 2), "bias": bias}, component, into, usage)
        torch.testing.assert_close(merged["bias"].sort().values, torch.tensor([[0.1, 0.3]]))


# --- tasks that go on learning ------------------------------------------------------------------------------


def test_learners_whose_past_tasks_go_on_learning():
    of_a, of_b = tasks_of("a", {}), tasks_of("b", {})
    settings = {name: value for name, value in SMALL.items() if name != "epochs"}
    settings["algorithm"] = piaget.Algorithm(piaget.Joint(4, past=True))

    def made(tasks, seed):
        learner = piaget.Learner(**settings, seed=seed)
        for task in tasks:
            learner.learn(task)
        return learner

    a, b = made(of_a, 1), made(of_b, 2)
    both = piaget.merge(a, b)
    assert both.state.past_moments.keys() >= {task.name for task in of_b[:1]}
    expected = [outputs(one, task) for one, tasks in ((a, of_a), (b, of_b)) for task in tasks]
    for task, was in zip([*of_a, *of_b], expected, strict=True):
        torch.testing.assert_close(outputs(both, task), was)
    both.learn(named("c", mixed_tasks(1, n=12))[0])
    now = [outputs(one, task) for one, tasks in ((a, of_a), (b, of_b)) for task in tasks]
    assert all(torch.equal(one, other) for one, other in zip(now, expected, strict=True))


def test_a_card_names_all_origins(tmp_path):
    a, b = learned(tasks_of("a", {}), 1), learned(tasks_of("b", {}), 2)
    a.export_components(tmp_path / "lib")
    digest = piaget.Learner(components_from=tmp_path / "lib", epochs=2).settings.components_from
    begun = {"components_from": tmp_path / "lib", "epochs": 2, "batch_size": 8}
    c = piaget.Learner(**begun, seed=3)
    for task in tasks_of("c", {}):
        c.learn(task)
    both = piaget.merge(piaget.merge(b, a), c)
    both.save(tmp_path / "both")
    piaget.Learner.load(tmp_path / "both").export_components(tmp_path / "all")
    card = library.read_card(tmp_path / "all").trained
    assert (card.seed, card.started_from) == (2, None)
    assert [(one.seed, one.started_from) for one in card.merged] == [(1, None), (3, digest)]
