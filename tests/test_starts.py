"""What a new task's structure and a candidate component begin as."""

from functools import partial
from typing import Any

import pytest
import torch

import piaget
from piaget.knowledge import lifecycle
from piaget.method.starting import left_out_error
from piaget.method.trees import leaves, map_tree
from tests.lives import check_carried_on, check_in_company
from tests.small import binary_tasks, image_tasks, make_task, mixed_tasks

SMALL: dict[str, Any] = {
    "width": 8,
    "initial_components": 3,
    "initial_tasks": 2,
    "epochs": 4,
    "batch_size": 8,
    "learning_rate": 0.02,
    "dtype": "float64",
}
BOTH: dict[str, Any] = {"start": "similar", "candidate_start": "most-used"}


def learner_of(**settings: Any) -> piaget.Learner:
    return piaget.Learner(**(SMALL | settings))


def learn_all(learner, tasks):
    return [row for task in tasks for row in learner.learn(task)]


def begun(learner, task, **changes):
    """A copy of the learner's state after the task has begun."""
    settings = piaget.Learner(**(SMALL | changes)).settings
    state = learner.state.snapshot()
    lifecycle.begin(settings, state, task, candidate=settings.algorithm.expansion.proposes)
    return state


@pytest.mark.parametrize(("n", "features", "columns"), [(12, 3, 1), (9, 20, 4), (6, 2, 2)])
def test_the_left_out_error_is_that_of_a_fit_without_each_sample(n, features, columns):
    generator = torch.Generator().manual_seed(n)
    x = torch.randn(n, features, generator=generator, dtype=torch.float64)
    y = torch.randn(n, columns, generator=generator, dtype=torch.float64)
    penalty = 0.1
    strength = penalty * float((x - x.mean(0)).square().sum(1).mean())
    errors = []
    for i in range(n):
        rest = torch.arange(n) != i
        # With an intercept that is not penalised: a column of ones.
        design = torch.cat([x[rest], torch.ones(n - 1, 1, dtype=torch.float64)], 1)
        weight = torch.diag(torch.tensor([strength] * features + [0.0], dtype=torch.float64))
        fit = torch.linalg.solve(design.T @ design + weight, design.T @ y[rest])
        errors.append((torch.cat([x[i], torch.ones(1, dtype=torch.float64)]) @ fit - y[i]).square())
    expected = float(torch.stack(errors).mean())
    assert left_out_error(x, y, penalty) == pytest.approx(expected, rel=1e-9)


def test_features_that_say_nothing_predict_the_mean():
    y = torch.arange(5.0, dtype=torch.float64)[:, None]
    error = left_out_error(torch.zeros(5, 3, dtype=torch.float64), y, 1e-3)
    left_out = [y[torch.arange(5) != i].mean() - y[i, 0] for i in range(5)]
    assert error == pytest.approx(float(torch.stack(left_out).square().mean()), rel=1e-6)


def test_a_task_that_was_learned_before_is_found_again():
    """Under another name: its structure and its encoder are what the new one begins with."""
    tasks = binary_tasks(5)
    learner = learner_of(algorithm="compositional", epochs=30)
    learn_all(learner, tasks)
    again = piaget.Task("again", "binary", tasks[3].train, tasks[3].validation, tasks[3].test, classes=2)
    start = piaget.SimilarTask(share=0.8)
    state = begun(learner, again, algorithm="compositional", start=start)
    past, new = learner.state.records["task 3"].params, state.records["again"].params
    assert torch.equal(new.encoder["weight"], past.encoder["weight"])
    weights = [params.structure["logits"].softmax(0) for params in (past, new)]
    torch.testing.assert_close(weights[1], 0.8 * weights[0] + 0.2 / 3)
    assert not torch.equal(new.decoder["weight"], past.decoder["weight"])
    drawn = begun(learner, again, algorithm="compositional").records["again"].params
    assert torch.equal(new.decoder["weight"], drawn.decoder["weight"])  # the same draws as without it
    without = piaget.SimilarTask(share=0.8, encoder=False)
    new = begun(learner, again, algorithm="compositional", start=without).records["again"].params
    assert torch.equal(new.encoder["weight"], drawn.encoder["weight"])


def test_the_winner_is_the_one_of_a_plain_search():
    tasks = mixed_tasks(6)
    learner = learner_of(algorithm="compositional", epochs=10, encoder="fixed")
    learn_all(learner, tasks[:5])
    settings = {"algorithm": "compositional", "encoder": "fixed"}
    start = piaget.SimilarTask(samples=20, share=0.5)
    state, drawn = begun(learner, tasks[5], start=start, **settings), begun(learner, tasks[5], **settings)
    generator = torch.Generator()
    generator.set_state(drawn.generator.get_state())
    rows = torch.randperm(len(tasks[5].train), generator=generator)[:20]
    x, y = tasks[5].train.x[rows], tasks[5].train.y[rows]
    record, model = drawn.records["task 5"], learner.model
    targets = torch.nn.functional.one_hot(y, 2).double()
    errors = {}
    for name, past in drawn.records.items():
        params = drawn.params(past, model)
        inputs = model.encode(record.params.encoder, x)
        for depth in range(3):
            outputs = model.components.apply(params.components, inputs)
            weights = past.params.structure["logits"].softmax(0)[:, depth]
            inputs = (outputs * weights.view(1, -1, 1)).sum(1)
        errors[name] = left_out_error(inputs, targets, 1e-3)
    best = min(errors, key=errors.__getitem__)
    expected = drawn.records[best].params.structure["logits"].softmax(0) / 2 + 1 / 6
    torch.testing.assert_close(state.records["task 5"].params.structure["logits"].softmax(0), expected)


@pytest.mark.parametrize("structure", ["soft-ordering", "soft-gating", "soft-ordering-scaled", "linear"])
def test_structures_between_two(structure):
    """At share 0 as drawn; near 1 as the past task's, where that knew components; always able to learn."""
    linear = structure == "linear"
    sizes: dict[str, Any] = {} if linear else {"width": 5}
    part = piaget.Learner(structure, **sizes).settings.structure
    kind: piaget.Components = piaget.Linear() if linear else piaget.Dense(5)
    generator = torch.Generator().manual_seed(0)
    shapes = [(5,), ()] if linear else [(5,)] * 4
    past, drawn = (part.draw(generator, piaget.Frame(kind, shapes, k, 1, torch.float64)) for k in (3, 4))
    past = {n: torch.randn(p.shape, generator=generator, dtype=torch.float64) for n, p in past.items()}
    for name, p in part.like(drawn, past, 0.0).items():
        torch.testing.assert_close(p, drawn[name])
    near = part.like(drawn, past, 1 - 1e-9)
    assert near.keys() == drawn.keys()
    assert all(p.shape == drawn[name].shape and p.isfinite().all() for name, p in near.items())
    h = torch.randn(6, 5, generator=generator, dtype=torch.float64)
    three, four = torch.ones(3, dtype=torch.bool), torch.ones(4, dtype=torch.bool)
    for depth in range(1 if linear else 3):
        prepared = part.prepare(near, four), part.prepare(past, three)
        new, then = (
            part.weights(kind, params, depth, h, visible)
            for params, visible in zip(prepared, (four, three), strict=True)
        )
        if structure == "soft-gating":  # beside the component that it did not know
            new = new[:, :3] / new[:, :3].sum(1, keepdim=True)
        axis = part.component_axis
        torch.testing.assert_close(new.narrow(axis, 0, 3), then, rtol=1e-6, atol=1e-7)


def test_one_hot_structures_of_initial_tasks_become_ones_that_learn():
    logits = torch.tensor([[1.0, float("-inf")], [float("-inf"), 1.0]])
    new = piaget.SoftOrdering().like({"logits": torch.ones(3, 2)}, {"logits": logits}, 0.5)["logits"]
    expected = torch.tensor([[2 / 3, 1 / 6], [1 / 6, 2 / 3], [1 / 6, 1 / 6]])
    torch.testing.assert_close(new.softmax(0), expected)


def test_the_candidate_is_near_the_most_used_component():
    tasks = mixed_tasks(4)
    learner = learner_of(algorithm="dynamic")
    learn_all(learner, tasks[:3])
    usage = sum(w.mean(1) for w in learner.structures().values())
    assert isinstance(usage, torch.Tensor)
    most = int(usage.argmax())
    near = begun(learner, tasks[3], candidate_start=piaget.MostUsed(0.7))
    drawn = begun(learner, tasks[3])
    for name, stack in learner.state.components.items():
        expected = 0.7 * stack[most] + 0.3 * drawn.components[name][-1]
        torch.testing.assert_close(near.components[name][-1], expected)
        assert torch.equal(near.components[name][:-1], stack)
    assert same(near.records["task 3"].params, drawn.records["task 3"].params)
    assert torch.equal(near.generator.get_state(), drawn.generator.get_state())


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(leaves(one), leaves(other), strict=True))


def test_components_that_later_tasks_brought_count_as_unused_before():
    fresh, stack = {"w": torch.zeros(2)}, {"w": torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])}
    for usage, most in ((torch.tensor([0.1, 0.9, 0.3]), 2.0), (torch.tensor([0.1, 0.2, 0.3]), 3.0)):
        assert float(piaget.MostUsed(0.5).begin(fresh, stack, usage)["w"][0]) == most / 2


def test_what_does_not_fit_is_not_begun_with():
    """Images of another size have gates of another size; more classes, more weights of linear models."""
    images = [*image_tasks(2, side=10), make_task("larger", features=(2, 20, 20), n=10)]
    settings: dict[str, Any] = {
        "components": piaget.Conv(4),
        "depth": 2,
        "initial_components": 2,
        "epochs": 2,
    }
    images_learner = piaget.Learner("soft-gating", initial_tasks=2, start="similar", **settings)
    learn_all(images_learner, images)
    linear = piaget.Learner("linear", algorithm="compositional", initial_tasks=2, start="similar", epochs=4)
    learn_all(linear, [*binary_tasks(3), make_task("three", classes=3)])
    assert linear.record("three").params.structure["psi"].shape[1] == 3


@pytest.mark.parametrize("structure", ["soft-ordering", "soft-gating"])
def test_saved_carried_on_and_the_same_in_a_cohort(structure, tmp_path):
    tasks = mixed_tasks(4, n=20)
    check_carried_on(partial(learner_of, **BOTH, structure=structure), tasks, tmp_path)
    check_in_company(partial(learner_of, **BOTH, structure=structure), tasks)


def test_without_components_to_weigh_there_is_nothing_to_begin_with():
    tasks = mixed_tasks(3, n=15)
    for algorithm in ("no-components", "alone"):
        with_it, without = (
            learner_of(algorithm=algorithm, start=start, epochs=2) for start in ("similar", "drawn")
        )
        for learner in (with_it, without):
            learn_all(learner, tasks[:2])
        ours, theirs = (
            begun(learner, tasks[2], algorithm=algorithm, start=start)
            for learner, start in ((with_it, "similar"), (without, "drawn"))
        )
        assert same(ours.records["task 2"].params, theirs.records["task 2"].params)


def test_nothing_is_written_into():
    """The past task's parameters, and those that were drawn, stay as they are."""
    tasks = binary_tasks(4)
    learner = learner_of(algorithm="compositional")
    learn_all(learner, tasks[:3])
    before = {name: map_tree(torch.clone, r.params) for name, r in learner.state.records.items()}
    learner.settings = learner_of(algorithm="compositional", start="similar").settings
    learner.learn(tasks[3])
    for name, params in before.items():
        assert same(params, learner.state.records[name].params)
