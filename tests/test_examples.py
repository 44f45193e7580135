"""The examples run, and do what they say."""

import pytest
import torch

import piaget
from examples import own_adaptation, own_component, own_stream, own_structure


@pytest.mark.parametrize("example", [own_component, own_structure, own_adaptation, own_stream])
def test_example(example, capsys):
    learner = example.main(epochs=4)
    assert len(learner.tasks) == 6
    assert len(capsys.readouterr().out.splitlines()) >= 6


def test_pull_back_pulls():
    def drift(strength):
        learner = piaget.Learner(
            adaptation=own_adaptation.PullBack(strength), algorithm="joint", epochs=6, initial_epochs=1
        )
        tasks = piaget.stream("objects", seed=0)[:5]
        for task in tasks[:4]:
            learner.learn(task)
        before = learner._state.components["weight"].clone()
        learner.learn(tasks[4])
        return float((learner._state.components["weight"] - before).norm())

    assert drift(1e3) < 0.8 * drift(0.0)


def test_mixing_is_independent_per_component():
    learner = own_structure.main(epochs=2)
    weights = learner.structures()["objects-05"]
    assert not torch.allclose(weights.sum(0), torch.ones(4))
