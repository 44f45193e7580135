"""The examples run, and do what they say."""

import re
from pathlib import Path

import numpy as np
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


def test_the_readme(monkeypatch, tmp_path):
    """Every Python block of the README runs, in order, on a short stream with few epochs."""
    text = (Path(__file__).parent.parent / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 4
    short = {"objects": piaget.stream, "learner": piaget.Learner}
    monkeypatch.setattr(piaget, "stream", lambda name, seed: short["objects"](name, seed=seed)[:6])

    class Quick(piaget.Learner):
        def __init__(self, *args, **kwargs):
            epochs = {} if isinstance(kwargs.get("algorithm"), piaget.Algorithm) else {"epochs": 2}
            super().__init__(*args, **kwargs, **epochs)

    monkeypatch.setattr(piaget, "Learner", Quick)
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    names = {
        "x": rng.normal(size=(30, 4)),
        "y": ["no", "yes", "maybe"] * 10,
        "new_x": rng.normal(size=(5, 4)),
    }
    for block in blocks:
        assert "x = stream[5].test.x" not in block or "predict(x" in block
        exec(block, names)
        if "x = stream[5].test.x" in block:
            assert names["learner"].tasks == [f"objects-{i:02d}" for i in range(6)]
            names["x"] = rng.normal(size=(30, 4))
    assert (tmp_path / "my-learner" / "learner.json").is_file()
