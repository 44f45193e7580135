"""Looking at what components do, without changing the learner."""

import math
from typing import Any

import pytest
import torch

import piaget
from piaget.method.trees import leaves
from piaget.scoring import component_rows, probing
from tests.small import binary_tasks, image_tasks, make_task

SMALL: dict[str, Any] = {
    "initial_components": 3,
    "epochs": 4,
    "initial_tasks": 2,
    "batch_size": 8,
    "dtype": "float64",
}


def taught(structure="soft-ordering", tasks=None, **settings):
    tasks = tasks or binary_tasks(4)
    components = settings.pop("components", piaget.Linear() if structure == "linear" else piaget.Dense(8))
    algorithm = "compositional" if structure == "linear" else "dynamic"
    settings = SMALL | {"components": components} | settings
    learner = piaget.Learner(structure, "er", algorithm, **settings)
    for task in tasks:
        learner.learn(task)
    return learner, tasks


def outputs(learner, task, change=None):
    shown = learner if change is None else probing.altered(learner, change)
    return shown.predict_proba(task.test.x, task)


@pytest.mark.parametrize("structure", ["soft-ordering", "linear"])
def test_the_learned_intensity_changes_nothing(structure):
    learner, tasks = taught(structure)
    weights = probing.weights(learner, tasks[3])
    for depth, component in ((0, 0), (weights.shape[0] - 1, 2)):
        learned = float(weights[depth, component]) if structure == "soft-ordering" else 1.0
        change = probing.at_intensity(
            learner.settings.structure, component, learned, depth, learner.components
        )
        torch.testing.assert_close(outputs(learner, tasks[3], change), outputs(learner, tasks[3]))


@pytest.mark.parametrize("structure", ["soft-ordering", "soft-gating", "linear"])
def test_a_removed_component_does_not_matter_any_more(structure):
    """Whatever its parameters are, the outputs are the same; and those with it are not."""
    learner, tasks = taught(structure)
    change = probing.removed(learner.settings.structure, 1)
    before = outputs(learner, tasks[3], change)
    assert not torch.allclose(before, outputs(learner, tasks[3]))
    for stack in leaves(learner.state.components):
        stack[1] = 7.0
    torch.testing.assert_close(outputs(learner, tasks[3], change), before)


def test_without_a_component_the_others_share_what_there_is():
    """As if its logit had been minus infinity."""
    learner, tasks = taught()
    removed = outputs(learner, tasks[3], probing.removed(learner.settings.structure, 1))
    params = learner.state.records[tasks[3].name].params.structure
    params["logits"] = params["logits"].index_fill(0, torch.tensor([1]), -math.inf)
    torch.testing.assert_close(outputs(learner, tasks[3]), removed)


def test_intensities_go_from_none_to_all():
    structure = piaget.SoftOrdering()
    weights = torch.tensor([[0.2, 0.3, 0.5, 0.0], [1.0, 0.0, 0.0, 0.0]])

    def at(intensity):
        return probing.at_intensity(structure, 0, intensity, depth=2, known=3)(2, weights)

    torch.testing.assert_close(at(1.0), torch.tensor([[1.0, 0, 0, 0], [1.0, 0, 0, 0]]))
    torch.testing.assert_close(
        at(0.0), torch.tensor([[0, 0.375, 0.625, 0], [0, 0.5, 0.5, 0]])
    )  # not the fourth
    torch.testing.assert_close(at(0.6).sum(1), torch.ones(2))
    assert probing.at_intensity(structure, 0, 0.6, depth=2, known=3)(1, weights) is weights  # another depth


def test_the_learner_stays_as_it_is():
    learner, tasks = taught()
    before = [leaf.clone() for leaf in leaves(learner.state.components)], outputs(learner, tasks[0])
    list(component_rows.rows(learner, tasks))
    assert all(torch.equal(a, b) for a, b in zip(before[0], leaves(learner.state.components), strict=True))
    assert torch.equal(before[1], outputs(learner, tasks[0]))


@pytest.mark.parametrize(
    ("structure", "settings"),
    [
        ("soft-ordering", {}),
        ("soft-gating", {}),
        ("linear", {}),
        ("soft-ordering", {"tasks": image_tasks(), "components": piaget.Conv(4), "depth": 2}),
    ],
)
def test_rows_about_components(structure, settings):
    learner, tasks = taught(structure, **settings)
    rows = list(component_rows.rows(learner, tasks))
    of = {
        stage: [r for r in rows if r["stage"] == stage] for stage in ("structure", "removal", "consistency")
    }
    assert {r["evaluated"] for r in of["removal"]} == {task.name for task in tasks}
    per_task = [learner.state.records[task.name].k for task in tasks]
    assert len(of["removal"]) == sum(per_task)
    depths = 1 if structure == "linear" else learner.settings.depth
    assert len(of["structure"]) == sum(per_task) * depths
    assert all(r["trained"] == tasks[-1].name and math.isfinite(r["value"]) for r in rows)
    assert bool(of["consistency"]) == (structure != "linear")


def test_linear_combinations_with_several_outputs_have_one_depth():
    learner, tasks = taught("linear", tasks=[make_task(f"task {i}", seed=i) for i in range(4)])
    assert probing.weights(learner, tasks[3]).shape == (1, 3)
    rows = [r for r in component_rows.rows(learner, tasks) if r["stage"] == "structure"]
    assert {(r["metric"], r["component"], r["depth"]) for r in rows} == {("weight", c, 0) for c in range(3)}


def test_no_rows_without_components():
    learner = piaget.Learner("monolithic", "nft", "no-components", **SMALL | {"components": piaget.Dense(8)})
    tasks = binary_tasks(3)
    for task in tasks:
        learner.learn(task)
    assert list(component_rows.rows(learner, tasks)) == []


def test_work_is_bounded(monkeypatch):
    """Fewer samples, equally many of each task; the rows say so, and have a score to compare with."""
    learner, tasks = taught(tasks=binary_tasks(4))
    whole = list(component_rows.rows(learner, tasks))
    assert not [r for r in whole if r["metric"] in ("samples", "accuracy with all components")]
    monkeypatch.setattr(component_rows, "MOMENT", 0)
    monkeypatch.setattr(component_rows, "SHARE", 0)
    monkeypatch.setattr(component_rows, "LEAST", 3)
    bounded = list(component_rows.rows(learner, tasks))
    samples = [r["value"] for r in bounded if r["metric"] == "samples"]
    assert samples == [3.0] * 4
    with_all = {r["evaluated"]: r["value"] for r in bounded if r["metric"] == "accuracy with all components"}
    for task in tasks:
        data = probing.sample(learner, task, 3)
        assert with_all[task.name] == probing.score(learner, task, data)
    extra = [r for r in bounded if r["metric"] in ("samples", "accuracy with all components")]
    removals = [r for r in bounded if r["stage"] == "removal" and r not in extra]
    assert len(removals) == len([r for r in whole if r["stage"] == "removal"])


@pytest.mark.parametrize("structure", ["soft-ordering", "soft-gating", "linear"])
def test_shared_work_gives_the_same_scores(structure):
    """Bit for bit what each change gives by itself."""
    learner, tasks = taught(structure)
    for task in (tasks[0], tasks[3]):
        data = probing.sample(learner, task)
        changes = [probing.removed(learner.settings.structure, c) for c in range(3)]
        alone = [probing.score(learner, task, data, change) for change in changes]
        assert probing.scores_with(learner, task, data, changes) == alone


@pytest.mark.parametrize("structure", ["soft-ordering", "linear"])
def test_work_is_counted_as_it_is_done(structure, monkeypatch):
    learner, tasks = taught(structure)
    entered, outputs = [], probing.Flow._outputs

    def counted(flow, h):
        entered.append(h.numel() * learner.components)
        return outputs(flow, h)

    monkeypatch.setattr(probing.Flow, "_outputs", counted)
    assert list(component_rows.rows(learner, tasks))
    work = component_rows.Work(learner, tasks)
    expected = work.of(work.most)  # less is done where a component has all the weight
    assert 0.9 * expected < sum(entered) <= expected


def test_blocks_of_samples_make_no_difference(monkeypatch):
    learner, tasks = taught("soft-ordering")
    whole = list(component_rows.rows(learner, tasks))
    monkeypatch.setattr("piaget.method.model.BLOCK", 2**10)
    for row, other in zip(list(component_rows.rows(learner, tasks)), whole, strict=True):
        assert row == other | {"value": pytest.approx(other["value"], abs=1e-6)}


# --- consistency: closed forms ------------------------------------------------------------

EVERYWHERE = torch.ones(2, 2)  # (components, depths)


def effects(*of_components):
    """One task: (components, depths, features)."""
    return torch.tensor(of_components, dtype=torch.float64)


def test_the_same_effect_everywhere_is_consistent():
    first = effects([[1, 0], [2, 0]], [[0, 1], [0, 5]])
    assert probing.consistency([first, 3 * first], [EVERYWHERE] * 2) == pytest.approx([1, 1])


def test_components_that_do_the_same_cannot_be_told_apart():
    same = effects([[1, 0], [2, 0]], [[3, 0], [4, 0]])
    assert probing.consistency([same, same], [EVERYWHERE] * 2) == pytest.approx([0, 0])


def test_opposite_effects_in_two_tasks_are_not_consistent():
    one = effects([[1, 0], [1, 0]], [[0, 1], [0, 1]])
    # 2 of 6 pairs of places agree, 4 are opposite
    assert probing.consistency([one, -one], [EVERYWHERE] * 2) == pytest.approx([-1 / 3, -1 / 3])


def test_places_count_by_how_much_a_component_is_used_there():
    here, there = effects([[1, 0], [0, 1]], [[0, 1], [0, 1]]), torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    assert probing.consistency([here, here], [there, there])[0] == pytest.approx(1)


def test_a_component_in_one_place_only_has_no_consistency():
    (first, _) = probing.consistency([effects([[1, 0]], [[0, 1]])], [torch.ones(2, 1)])
    assert math.isnan(first)
