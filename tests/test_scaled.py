"""Structures with a scale and a shift for each task at each depth."""

from functools import partial
from typing import Any

import pytest
import torch

import piaget
from piaget.method.parameters import Params, SharedParams, TaskParams
from tests.lives import check_carried_on, check_in_company
from tests.small import binary_tasks, image_tasks, mixed_tasks
from tests.test_extending import everything

SMALL: dict[str, Any] = {
    "initial_components": 3,
    "initial_tasks": 2,
    "batch_size": 8,
    "epochs": 4,
    "learning_rate": 0.02,
    "dtype": "float64",
}
SCALED = ("soft-ordering-scaled", "soft-gating-scaled")


def learner_of(structure: str, **settings: Any) -> piaget.Learner:
    return piaget.Learner(structure, **(SMALL | {"width": 8} | settings))


def random_like(tensors, generator):
    return {n: torch.randn(t.shape, generator=generator, dtype=t.dtype) for n, t in tensors.items()}


@pytest.mark.parametrize("gated", [False, True])
def test_dense_outputs_are_those_of_a_plain_computation(gated):
    generator = torch.Generator().manual_seed(0)
    inner: piaget.Structure = piaget.SoftGating() if gated else piaget.SoftOrdering()
    frame = piaget.Frame(piaget.Dense(5), [(5,)] * 4, 3, 2, torch.float64)
    params = random_like(piaget.Scaled(inner).draw(generator, frame), generator)
    w, b = (torch.randn(s, generator=generator, dtype=torch.float64) for s in ((3, 5, 5), (3, 5)))
    h = x = torch.randn(7, 5, generator=generator, dtype=torch.float64)
    for depth in range(3):
        if gated:
            weights = (h @ params["weight"][depth].T + params["bias"][depth]).softmax(1)  # (7, 3)
        else:
            weights = params["logits"][:, depth].softmax(0).expand(7, 3)
        mixture = sum(weights[:, i : i + 1] * (h @ w[i].T + b[i]).clamp(min=0) for i in range(3))
        h = (1 + params["gain"][depth]) * mixture + params["shift"][depth]
    visible, keep = torch.ones(3, dtype=torch.bool), [None] * 3
    stacked = {"weight": w, "bias": b}
    out = piaget.Scaled(inner).body(frame.components, stacked, params, x, keep, visible)
    torch.testing.assert_close(out, h, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", SCALED)
def test_images_have_a_scale_and_a_shift_a_channel(name):
    learner = piaget.Learner(name, **SMALL, components=piaget.Conv(4), depth=2)
    tasks = image_tasks(4, side=10)
    for task in tasks:
        learner.learn(task)
    record, state, model = learner.record(tasks[3]), learner.state, learner.model
    own = record.params.structure
    assert own["gain"].shape == own["shift"].shape == (2, 4, 1, 1)
    assert own["gain"].abs().min() > 0
    assert own["shift"].abs().min() > 0
    # The same network, with its scales written out as channels that are multiplied after each depth.
    params = state.params(record, model)
    visible, inner = record.visible(state.k), learner.settings.structure.inner  # type: ignore[attr-defined]
    x = tasks[3].test.x
    h, prepared = x, inner.prepare(own, visible)
    for depth in range(2):
        outputs = model.components.apply(params.components, h)
        h = inner.combine(model.components, prepared, depth, h, outputs, visible)
        for channel in range(4):
            h = h.clone()
            scale, shift = 1 + own["gain"][depth, channel, 0, 0], own["shift"][depth, channel, 0, 0]
            h[:, channel] = scale * h[:, channel] + shift
    out = model.decoder.apply(params.decoder, h)
    torch.testing.assert_close(out, model.outputs(params, x, visible), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("structure", ["soft-ordering", "soft-gating"])
def test_before_they_are_learned_they_change_nothing(structure):
    """So initialization gives the same numbers, and initial tasks keep them."""
    plain, scaled = learner_of(structure), learner_of(f"{structure}-scaled")
    tasks = mixed_tasks(4)
    for task in tasks[:2]:
        plain.learn(task)
        scaled.learn(task)
    ours, theirs = everything(scaled), everything(plain)
    for name, tensor in theirs.items():
        assert torch.equal(tensor, ours[name]), name
    assert {n.rpartition("/")[2] for n in ours.keys() - theirs.keys()} == {"gain", "shift"}
    for task in tasks[2:]:
        scaled.learn(task)
    first, last = (scaled.record(task).params.structure for task in (tasks[0], tasks[3]))
    assert not first["gain"].any()
    assert not first["shift"].any()
    assert last["gain"].any()
    assert last["shift"].any()


def test_fresh_ones_give_the_inner_structures_outputs():
    learner = learner_of("soft-ordering-scaled", algorithm="compositional")
    for task in mixed_tasks(3):
        learner.learn(task)
    record, state, model = learner.record("task 2"), learner.state, learner.model
    own = {n: torch.zeros_like(t) if n != "logits" else t for n, t in record.params.structure.items()}
    plain = piaget.Learner("soft-ordering", **SMALL, width=8).model
    x, visible = torch.linspace(-1, 1, 30, dtype=torch.float64).view(5, 6), record.visible(state.k)
    whole = TaskParams(record.params.encoder, own, record.params.decoder)
    params = Params(state.components, whole, SharedParams({}, {}))
    assert torch.equal(model.outputs(params, x, visible), plain.outputs(params, x, visible))


@pytest.mark.parametrize("name", SCALED)
def test_saved_loaded_carried_on_and_the_same_in_a_cohort(name, tmp_path):
    tasks = mixed_tasks(4, n=20)
    check_carried_on(partial(learner_of, name), tasks, tmp_path)
    check_in_company(partial(learner_of, name), tasks)


@pytest.mark.slow
def test_the_same_as_machine_code():
    results = []
    for compile in ("never", "always"):
        learner = learner_of("soft-ordering-scaled", epochs=2, compile=compile)
        for task in binary_tasks(3):
            learner.learn(task)
        results.append(everything(learner))
    for key, tensor in results[0].items():
        torch.testing.assert_close(results[1][key], tensor, rtol=1e-9, atol=1e-12, msg=key)


def test_only_structures_with_mixtures_can_be_scaled():
    for inner in (piaget.Monolithic(), piaget.Alone(), piaget.LinearCombination()):
        with pytest.raises(piaget.SettingError, match="has no depths"):
            piaget.Scaled(inner)
    wrong: Any = "soft-ordering"
    with pytest.raises(piaget.SettingError, match="expected a structure"):
        piaget.Scaled(wrong)
    frame = piaget.Frame(piaget.Dense(5), [(5,)] * 3, 2, 2, torch.float32)
    twice = piaget.Scaled(piaget.Scaled(piaget.SoftOrdering()))
    with pytest.raises(piaget.SettingError, match="a gain or a shift already"):
        twice.draw(torch.Generator(), frame)
