"""In initialization, a structure that uses one component a depth computes no other: with the same results."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch

import piaget
from piaget.engine.noise import draw_bits, of_chosen, packed_bytes, unpack
from piaget.knowledge.snapshot import describe
from piaget.knowledge.storage import flatten
from tests.small import image_tasks, mixed_tasks


@dataclass(frozen=True)
class Whole(piaget.SoftOrdering):
    """The same structure, of which it is not known what it leaves out: all components are computed."""

    name = "whole"


class Residual(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.scale = torch.nn.Linear(6, 6), torch.nn.Parameter(torch.ones(()))

    def forward(self, x):
        return x + self.scale * self.layer(x).relu()


# Widths whose bits of one depth end within a byte.
CASES = {
    "dense": (mixed_tasks, {"components": piaget.Dense(7)}),
    "another share dropped": (mixed_tasks, {"components": piaget.Dense(7, dropout=0.2)}),
    "nothing dropped": (mixed_tasks, {"components": piaget.Dense(7, dropout=0.0)}),
    "shared": (image_tasks, {"components": piaget.Dense(7), "encoder": "shared", "decoder": "shared"}),
    "convolutional": (image_tasks, {"components": piaget.Conv(3), "depth": 2}),
    "a module": (mixed_tasks, {"components": piaget.Module(Residual, shape=(6,), dropout=0.5)}),
}


def initialized(structure: piaget.Structure, make, settings, seeds: int) -> list[piaget.Learner]:
    """Learners after initialization: one alone, or several as a cohort."""
    common: dict[str, Any] = {
        "initial_tasks": 3,
        "initial_components": 4,
        "epochs": 4,
        "batch_size": 8,
        "learning_rate": 0.02,
    }
    common |= {"structure": structure, "dtype": "float64"}
    cohort = piaget.Cohort([piaget.Learner(**(common | settings), seed=seed) for seed in range(seeds)])
    for tasks in zip(*(make(3, n=18 + seed) for seed in range(seeds)), strict=True):
        cohort.learn(list(tasks))
    return list(cohort.learners)


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_the_same_results(name, seeds):
    """Parameters and moments up to rounding, also of components that a task does not use; the same draws."""
    make, settings = CASES[name]
    one_each = initialized(piaget.SoftOrdering(), make, settings, seeds)
    whole = initialized(Whole(), make, settings, seeds)
    for one, other in zip(one_each, whole, strict=True):
        ours, theirs = (flatten(describe(learner.state)[1]) for learner in (one, other))
        assert ours.keys() == theirs.keys()
        for tensor in ours:
            torch.testing.assert_close(ours[tensor], theirs[tensor], rtol=1e-9, atol=1e-12, msg=tensor)
        assert torch.equal(one.state.generator.get_state(), other.state.generator.get_state())


@pytest.mark.parametrize("seeds", [1, 2])
def test_only_one_component_is_computed(monkeypatch, seeds):
    sizes: list[int] = []
    apply = piaget.Dense.apply

    def watched(self, params, h):
        if torch.is_grad_enabled():
            sizes.append(len(params["bias"]))
        return apply(self, params, h)

    monkeypatch.setattr(piaget.Dense, "apply", watched)
    for structure, size in ((piaget.SoftOrdering(), 1), (Whole(), 4)):
        sizes.clear()
        initialized(structure, mixed_tasks, {"components": piaget.Dense(7)}, seeds)
        assert set(sizes) == {size}


def test_who_is_chosen():
    ordering, off = piaget.SoftOrdering(), float("-inf")
    one_hot = torch.tensor([[off, 1.0], [2.0, off], [off, off]])
    found = ordering.path({"logits": one_hot})
    assert found is not None
    assert found.tolist() == [1, 0]
    two = torch.tensor([[off, 1.0], [2.0, 0.0], [off, off]])
    assert ordering.path({"logits": two}) is None
    assert Whole().path({"logits": one_hot}) is None
    assert piaget.SoftGating().path({}) is None


def test_the_bits_of_the_chosen():
    """They are those that the component has among all of them."""
    shapes, chosen = [(5,), (2, 3), (9,)], torch.tensor([2, 0, 2])
    bits = draw_bits(torch.Generator().manual_seed(0), (40, 4, packed_bytes(shapes)), 0.5)
    of_all = unpack(bits, shapes, piaget.Dense(), torch.float64)
    found = unpack(of_chosen(bits, chosen, shapes), shapes, piaget.Dense(), torch.float64)
    for depth, component in enumerate(chosen):
        assert torch.equal(found[depth][:, 0], of_all[depth][:, component])
