"""Every combination of structure, adaptation and algorithm keeps the rules, with all kinds of components."""

import itertools
import math
from typing import Any

import pytest
import torch
from torch import nn

import piaget
from piaget.engine.training import Trained
from piaget.knowledge.state import State
from piaget.method.choices import ADAPTATIONS, ALGORITHMS, STAGED
from piaget.method.structures import STRUCTURES
from piaget.method.trees import leaves, map_tree
from piaget.scoring.probing import network
from tests.small import binary_tasks, image_tasks, mixed_tasks


class Residual(nn.Module):
    """A shape-preserving module of the user's own."""

    def __init__(self, width=6):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x + self.gain * torch.tanh(self.inner(x))


KINDS = {
    "dense": (piaget.Dense(6), lambda: mixed_tasks(5, n=15)),
    "conv": (piaget.Conv(4), lambda: image_tasks(5, n=6, side=10)),
    "module": (piaget.Module(Residual, shape=(6,), dropout=0.2), lambda: mixed_tasks(5, n=15)),
    "linear": (piaget.Linear(), lambda: binary_tasks(5, n=15)),
}


NONLINEAR = [kind for kind in KINDS if kind != "linear"]


def combinations():
    """Every structure with every adaptation and algorithm; their kinds of components take turns, so that
    each kind also meets every structure, every adaptation and every algorithm."""
    yield from BEYOND_THE_PAPER
    methods = list(itertools.product(enumerate(("nft", "er", "ewc", "fm")), enumerate(ALGORITHMS)))
    for turn, structure in enumerate(STRUCTURES):
        whole = structure in ("monolithic", "alone")  # with which there is nothing to assimilate
        kinds = {"linear": ["linear"], "monolithic": list(KINDS)}.get(structure, NONLINEAR)
        for (i, adaptation), (j, algorithm) in methods:
            if not whole or algorithm not in STAGED:
                yield structure, adaptation, algorithm, kinds[(i + j + turn) % len(kinds)]


# Adaptations that the paper lacks, with the algorithms that treat stored samples differently.
BEYOND_THE_PAPER = [
    ("soft-ordering", "der++", "dynamic", "dense"),
    ("soft-gating", "der++", "no-components", "module"),
    ("soft-ordering", "a-gem", "dynamic", "conv"),
    ("soft-ordering", "a-gem", "joint", "dense"),
    ("soft-gating", "ewc-merged", "dynamic", "dense"),
    ("soft-ordering", "ewc-merged", "joint", "conv"),
    ("linear", "ewc-merged", "compositional", "linear"),
    ("linear", "der++", "joint", "linear"),
]
COMBINATIONS = list(combinations())


def test_every_kind_meets_everything():
    """The choice above leaves out no pair."""
    for kind in NONLINEAR:
        met = [set(values) for values in zip(*(c[:3] for c in COMBINATIONS if c[3] == kind), strict=True)]
        assert met[0] == set(STRUCTURES) - {"linear"}
        assert met[1] >= {"nft", "er", "ewc", "fm"}
        assert met[2] == set(ALGORITHMS)
    assert {c[1] for c in COMBINATIONS} | {"er-diluted"} == set(ADAPTATIONS)


def make(structure, adaptation, algorithm, kind, **settings):
    components, tasks = KINDS[kind]
    defaults: dict[str, Any] = {
        "components": components,
        "initial_components": 2,
        "epochs": 3,
        "initial_tasks": 2,
        "batch_size": 6,
        "seed": 0,
    }
    return piaget.Learner(structure, adaptation, algorithm, **(defaults | settings)), tasks()


def predictions(learner, tasks):
    known = [t for t in tasks if t.name in learner.tasks]
    return {t.name: shown(learner, t) for t in known}


def shown(learner, task):
    return network(learner, task).outputs(task.test.x.to(learner.settings.torch_dtype))


def snapshot(learner, own_of):
    state = learner.state
    groups = {"components": state.components, "moments": state.moments}
    if own_of in state.records:
        groups["params"] = state.records[own_of].params
    return {name: map_tree(torch.clone, tree) for name, tree in groups.items()}


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(leaves(a), leaves(b), strict=True))


class Rules:
    """Watches a learner: whenever a stage hands its results back, what must not move has not."""

    def __init__(self, monkeypatch, learner, tasks):
        self.learner, self.tasks = learner, tasks
        self.finished: dict[str, Any] = {}
        self.shown: dict[str, torch.Tensor] = {}
        self.stages: set[str] = set()
        take, update = State.take, Trained.update

        def seen_update(trained):
            self.stage = trained.training.stages[trained.place]
            return update(trained)

        def checked_take(state, update, epoch):
            name = self.stage.data[-1].record.name
            old = snapshot(learner, name)
            take(state, update, epoch)
            self.stages.add(self.stage.kind.name)
            self.check(self.stage, old, snapshot(learner, name))

        monkeypatch.setattr(Trained, "update", seen_update)
        monkeypatch.setattr(State, "take", checked_take)

    def begin(self):
        """Before a task: what finished tasks have, and what is predicted for them."""
        learner = self.learner
        self.finished = {n: map_tree(torch.clone, learner.state.records[n].params) for n in learner.tasks}
        self.shown = predictions(learner, self.tasks)

    def check(self, stage, old, new):
        learner = self.learner
        for name, params in self.finished.items():
            if not stage.settings.past_roles:
                assert same(params, learner.state.records[name].params)
        if stage.kind.name == "assimilation":
            k = stage.state.k - (1 if stage.candidate else 0)
            for group in ("components", "moments"):
                cut_old, cut_new = (map_tree(lambda p: p[:k], tree[group]) for tree in (old, new))
                assert same(cut_old, cut_new)
            if learner.settings.encoder.learns:
                assert not same(old["params"].encoder, new["params"].encoder)
            for task in self.tasks:
                if task.name in self.shown:
                    torch.testing.assert_close(shown(learner, task), self.shown[task.name], rtol=0, atol=1e-6)
        elif stage.kind.name == "adaptation" or (
            stage.kind.name == "initialization" and learner.model.structure.fixed_initially
        ):
            assert same(old["params"], new["params"])
            assert not same(old["components"], new["components"])


@pytest.mark.parametrize(("structure", "adaptation", "algorithm", "kind"), COMBINATIONS)
def test_combination(monkeypatch, structure, adaptation, algorithm, kind):
    learner, tasks = make(structure, adaptation, algorithm, kind)
    rules = Rules(monkeypatch, learner, tasks)
    rows = []
    for task in tasks:
        rules.begin()
        rows += learner.learn(task)
    staged = algorithm in STAGED
    expected = {"assimilation", "adaptation"} if staged else {"joint"}
    if adaptation == "fm" or algorithm == "alone":
        expected = {"assimilation"}
    assert rules.stages == {"initialization", *expected}
    assert learner.tasks == [t.name for t in tasks]
    assert all(torch.isfinite(t).all() for t in leaves(learner.state.components))
    scores = [r["value"] for r in rows if r["metric"] in ("accuracy", "rmse", "loss")]
    assert len(scores) == 2 * len(tasks)
    assert all(math.isfinite(s) and s >= 0 for s in scores)
    for task in tasks:
        assert len(learner.predict(task.test.x, task.name)) == len(task.test.x)


@pytest.mark.parametrize("encoder", ["learned", "fixed"])
@pytest.mark.parametrize(("algorithm", "learns"), [("no-components", True), ("no-components-frozen", False)])
def test_what_is_a_past_tasks_own_goes_on_learning_without_components(encoder, algorithm, learns):
    """From its stored samples: so not with naive fine-tuning, which has none."""
    for adaptation in ("er", "nft"):
        learner, tasks = make("soft-ordering", adaptation, algorithm, "dense", encoder=encoder)
        for task in tasks[:4]:
            learner.learn(task)
        before = {name: map_tree(torch.clone, r.params) for name, r in learner.state.records.items()}
        learner.learn(tasks[4])
        moves = learns and adaptation == "er"
        for name, params in before.items():
            now = learner.state.records[name].params
            assert same(params.decoder, now.decoder) != moves
            assert same(params.encoder, now.encoder) != (moves and encoder == "learned")
        assert bool(learner.state.past_moments) == moves


IN_STAGES = piaget.Staged(2, 2, 1)
EXPANDING = piaget.ComponentDropout(-9.0)
UNUSUAL = {
    "joint with component dropout": ("soft-ordering", piaget.Algorithm(piaget.Joint(3), EXPANDING)),
    "a single network in stages": ("monolithic", piaget.Algorithm(IN_STAGES)),
    "no components, in stages": ("monolithic", piaget.Algorithm(IN_STAGES, name="no-components")),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_combination(monkeypatch, name):
    structure, algorithm = UNUSUAL[name]
    learner, tasks = make(structure, "er", algorithm, "dense")
    rules = Rules(monkeypatch, learner, tasks)
    for task in tasks:
        rules.begin()
        learner.learn(task)
    assert rules.stages == {"initialization", *(kind.name for kind in algorithm.schedule.stages())}
    assert learner.components == (5 if "dropout" in name else 2)


@pytest.mark.parametrize("structure", ["soft-ordering", "soft-gating", "linear"])
def test_hidden_components_have_weight_exactly_zero(structure):
    kind = "linear" if structure == "linear" else "dense"
    algorithm = piaget.Algorithm(piaget.Staged(2, 2, 1), piaget.ComponentDropout(-10.0))
    learner, tasks = make(structure, "nft", algorithm, kind)
    for task in tasks:
        learner.learn(task)
    assert learner.components == 2 + 3, "every candidate is kept at this threshold"
    state = learner.state
    first = state.records[tasks[0].name]
    assert first.k == 2
    before = shown(learner, tasks[0])
    for p in state.components.values():
        p[2:] = 1e6  # components that the first task never saw
    assert torch.equal(before, shown(learner, tasks[0]))


GOOD = {
    "dense": piaget.Dense(24, dropout=0.0),
    "conv": piaget.Conv(12, dropout=0.0),
    "module": piaget.Module(Residual, shape=(6,)),
}


@pytest.mark.parametrize("kind", GOOD)
def test_learning_reaches_a_good_score(kind):
    """The tasks are linear: a learner that works leaves chance far behind."""
    learner = piaget.Learner(
        "soft-ordering",
        "er",
        "dynamic",
        components=GOOD[kind],
        initial_components=2,
        epochs=40,
        initial_tasks=2,
        batch_size=16,
        learning_rate=5e-3,
    )
    tasks = image_tasks(4, n=40, side=10) if kind == "conv" else binary_tasks(4, n=60)
    for task in tasks:
        learner.learn(task)
    rows = learner.evaluate(tasks[2:], split="train")
    accuracy = [r["value"] for r in rows if r["metric"] == "accuracy"]
    assert sum(accuracy) / len(accuracy) > 0.8
