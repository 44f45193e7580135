"""The library against the naive implementation: same draws, same parameters at the end."""

from typing import cast

import pytest
import torch

import piaget
from piaget.method.encoders import LinearEncoder
from tests.replaying import Replayed, record
from tests.small import binary_tasks, image_tasks, make_task, mixed_tasks

PAPER = [
    (base, algorithm)
    for base in ("er", "ewc", "nft")
    for algorithm in ("dynamic", "compositional", "joint", "no-components")
] + [("fm", "dynamic"), ("fm", "compositional")]
BASELINES = [("er", "no-components-frozen"), ("fm", "alone"), ("er-diluted", "joint")]
BALANCED = [("er, balanced", algorithm) for algorithm in ("dynamic", "joint", "no-components")]

ADAPTATIONS = {
    "er": piaget.Replay(7),
    "er, balanced": piaget.Replay(7, share=0.4),
    "er-diluted": piaget.DilutedReplay(7),
    "ewc": piaget.KroneckerEWC(0.05),  # strong enough to be seen
    "nft": piaget.NaiveFineTuning(),
    "fm": piaget.Frozen(),
}


def check(monkeypatch, learner, tasks):
    recording = record(monkeypatch, learner, tasks)
    monkeypatch.undo()
    return check_recorded(learner, tasks, recording)


def check_recorded(learner, tasks, recording):
    start = recording.begun[0]["components"]["weight"]
    with torch.random.fork_rng(devices=[]):  # modules draw parameters before they are given ours
        net = Replayed(learner, tasks, recording).run()
    state = learner.state
    assert len(net.components) == state.k
    learns = learner.settings.structure.uses_components
    assert learns != torch.equal(start, state.components["weight"][: len(start)])
    ours = [state.components["weight"], state.components["bias"]]
    theirs = [torch.stack([getattr(c, n) for c in net.components]) for n in ("weight", "bias")]
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b.detach(), rtol=1e-6, atol=1e-8)
    net.eval()
    for i, task in enumerate(tasks):
        record_ = state.records[task.name]
        params = state.params(record_, learner.model)
        ours = learner.model.outputs(params, task.test.x, record_.visible(state.k))
        with torch.no_grad():
            theirs = net(task.test.x, i)
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-8)
    return learner


def algorithm_of(name):
    """Two rounds of assimilation and adaptation, so that the structure learns after both."""
    schedule = piaget.Staged(struct_updates=6, adapt_freq=3, comp_updates=1)
    if name == "dynamic":
        return piaget.Algorithm(schedule, piaget.ComponentDropout(0.02), name=name)
    return piaget.Algorithm(schedule, name=name) if name == "compositional" else name


@pytest.mark.parametrize(("base", "algorithm"), PAPER + BASELINES + BALANCED)
def test_soft_ordering(monkeypatch, base, algorithm):
    learner = piaget.Learner(
        "soft-ordering",
        ADAPTATIONS[base],
        algorithm_of(algorithm),
        components=piaget.Dense(8),
        initial_components=3,
        epochs=3,
        initial_tasks=3,
        batch_size=8,
        learning_rate=0.05,
        dtype="float64",
        seed=1,
    )
    check(monkeypatch, learner, mixed_tasks(7))
    if algorithm == "dynamic" and base != "er, balanced":
        assert 3 < learner.components < 3 + 4, "the test needs kept and discarded candidates"


@pytest.mark.parametrize(("base", "algorithm"), PAPER)
def test_soft_gating(monkeypatch, base, algorithm):
    learner = piaget.Learner(
        "soft-gating",
        ADAPTATIONS[base],
        algorithm_of(algorithm),
        components=piaget.Dense(6),
        initial_components=3,
        epochs=3,
        initial_tasks=3,
        batch_size=8,
        learning_rate=0.02,
        dtype="float64",
        seed=2,
    )
    check(monkeypatch, learner, mixed_tasks(6))


@pytest.mark.parametrize("whole", [True, False])
def test_past_tasks_with_inputs_of_other_shapes(monkeypatch, whole):
    """Their encoders go on learning; also where all features are trained, and samples make parts by shape."""
    if whole:
        monkeypatch.setattr(LinearEncoder, "feature_weight", None)
    learner = piaget.Learner(
        "soft-ordering",
        "er",
        "no-components",
        components=piaget.Dense(8),
        initial_components=3,
        epochs=3,
        initial_tasks=3,
        batch_size=8,
        learning_rate=0.05,
        dtype="float64",
        replay_size=5,
    )
    tasks = [make_task(f"task {i}", "binary", 2, 5 + i % 2, 21, seed=i) for i in range(6)]
    recording = record(monkeypatch, learner, tasks)
    parts = {id(epoch["part"]) for epoch in recording.epochs if epoch["name"] == "joint"}
    assert len(parts) == (6 if whole else 3)  # two for each of three tasks, or one
    if not whole:
        check_recorded(learner, tasks, recording)
    begun = recording.begun[-1]["params"]  # when the last task began
    for task in tasks[:5]:
        record_, before = learner.state.records[task.name], begun[task.name]
        assert not torch.equal(before.encoder["weight"], record_.params.encoder["weight"])
        assert not torch.equal(before.decoder["weight"], record_.params.decoder["weight"])


@pytest.mark.parametrize("base", ["er", "ewc", "nft", "fm"])
@pytest.mark.parametrize("algorithm", ["dynamic", "compositional", "joint", "no-components", "alone"])
def test_linear(monkeypatch, base, algorithm):
    learner = piaget.Learner(
        "linear",
        ADAPTATIONS[base],
        algorithm,
        initial_components=3,
        epochs=12,
        initial_tasks=3,
        learning_rate=0.05,
        dtype="float64",
        seed=3,
    )
    check(monkeypatch, learner, binary_tasks(6))


@pytest.mark.parametrize("structure", ["soft-ordering", "soft-gating"])
@pytest.mark.parametrize(("base", "algorithm"), [("er", "dynamic"), ("ewc", "joint"), ("nft", "dynamic")])
def test_convolutional(monkeypatch, structure, base, algorithm):
    learner = piaget.Learner(
        structure,
        ADAPTATIONS[base],
        algorithm,
        components=piaget.Conv(5),
        initial_components=2,
        depth=2,
        epochs=3,
        initial_tasks=2,
        batch_size=5,
        learning_rate=0.01,
        dtype="float64",
        seed=1,
    )
    check(monkeypatch, learner, image_tasks(4))


def test_fixed_encoder(monkeypatch):
    """With a fixed encoder, depth 0's outputs are computed once a stage: nothing may change."""
    learner = piaget.Learner(
        "soft-ordering",
        "nft",
        "dynamic",
        components=piaget.Dense(8),
        initial_components=3,
        encoder="fixed",
        epochs=4,
        initial_tasks=3,
        batch_size=8,
        dtype="float64",
        seed=5,
    )
    tasks = mixed_tasks(5)
    recording = record(monkeypatch, learner, tasks)
    monkeypatch.undo()
    banks = [e["part"].banks[0] for e in recording.epochs if e["name"] == "assimilation"]
    assert all(bank.first is not None for bank in banks)
    replayed = Replayed(learner, tasks, recording)
    own = replayed.learner.own
    # The encoder is not among what learns.
    monkeypatch.setattr(replayed.learner, "own", lambda task: own(task)[1:])
    with torch.random.fork_rng(devices=[]):
        net = replayed.run()
    ours = learner.state.components["weight"]
    theirs = torch.stack([cast(torch.Tensor, c.weight) for c in net.components])
    torch.testing.assert_close(ours, theirs.detach(), rtol=1e-6, atol=1e-8)
