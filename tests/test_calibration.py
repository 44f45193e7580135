"""Temperature scaling: probabilities as sure as they are right, by validation data."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

import piaget
from piaget.method.calibration import temperature
from piaget.scoring.scores import TaskNetwork
from piaget.streams import from_arrays
from tests.small import binary_tasks, make_task, mixed_tasks, validation_of
from tests.test_extending import SMALL, assert_same, killed_at

EPOCHS = 60  # so that networks of 30 samples a task are too sure of themselves


def learned(tasks, **settings):
    learner = piaget.Learner(
        **(SMALL | {"epochs": EPOCHS, "dropout": 0.0, "algorithm": "compositional"} | settings)
    )
    for task in tasks:
        learner.learn(task)
    return learner


@pytest.mark.parametrize("spread", [0.3, 1.0, 6.0])
def test_the_temperature_is_the_best_one(spread):
    """By another search, of the same loss with the same prior."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(50, 3)) * spread
    y = (logits / spread + rng.gumbel(size=(50, 3))).argmax(1)

    def loss(t):
        return -log_softmax(logits / t, axis=1)[np.arange(50), y].mean()

    found = minimize_scalar(
        lambda s: 50 * loss(math.exp(s)) + s**2 / 2, bounds=(-3, 3), options={"xatol": 1e-10}
    )
    assert temperature(loss, 50) == pytest.approx(math.exp(found.x), rel=1e-5)
    assert temperature(loss, 50) == pytest.approx(spread, rel=0.5)


def test_where_all_is_right_it_is_not_infinitely_sure():
    assert 0.05 < temperature(lambda t: math.log1p(math.exp(-1 / t)), 20) < 1


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_probabilities_are_those_of_logits_divided(kind):
    tasks = [make_task(f"task {i}", kind, n=30, seed=i) for i in range(4)]
    plain, calibrated = learned(tasks), learned(tasks, calibration="temperature")
    assert all(plain.record(task).temperature == 1.0 for task in tasks)
    gains = []
    for task in tasks:
        t = calibrated.record(task).temperature
        x = task.test.x
        network = TaskNetwork(plain.settings, plain.state, plain.record(task))
        logits = network.outputs(network.inputs(x)) / t
        expected = (
            logits.softmax(1) if kind == "multiclass" else torch.cat([-logits, logits], 1).div(2).softmax(1)
        )
        torch.testing.assert_close(calibrated.predict_proba(x, task), expected)
        assert torch.equal(calibrated.predict(x, task), plain.predict(x, task))
        torch.testing.assert_close(calibrated.module(task)(x), expected)
        losses = [
            row["value"]
            for one in (plain, calibrated)
            for row in one.evaluate([replace(task, test=validation_of(task))])
            if row["metric"] == "loss"
        ]
        gains.append(losses[0] - losses[1])
    assert min(gains) > -0.02  # of the data that chose it; the prior may cost a little
    assert max(gains) > 0.1


def test_training_is_untouched():
    tasks = mixed_tasks(4)
    assert_same(learned(tasks, epochs=6), learned(tasks, epochs=6, calibration="temperature"))


@pytest.mark.parametrize(
    "settings",
    [
        {"reduction": piaget.PruneAndMerge(tolerance=0.4, least=1), "initial_components": 4},
        {"acceptance": "validated", "algorithm": piaget.Algorithm(piaget.Staged(30, 10, 5))},
    ],
    ids=["reduction", "acceptance"],
)
def test_what_is_judged_is_uncalibrated(settings):
    tasks = [make_task(f"task {i}", seed=i) for i in range(5)]
    one, other = (learned(tasks, epochs=40, **settings, calibration=way) for way in ("none", "temperature"))
    assert any(other.record(task).temperature != 1 for task in tasks)
    assert_same(one, other)


def test_a_task_is_tried_also_without_validation_data():
    learner = learned(binary_tasks(3), epochs=4, calibration="temperature")
    rows = learner.try_task(replace(make_task("new", "binary"), validation=None))
    assert any(row["metric"] == "accuracy" for row in rows)


def test_saved_loaded_and_interrupted(tmp_path):
    tasks = mixed_tasks(4)
    whole = learned(tasks, epochs=6, calibration="temperature")
    part = learned(tasks[:3], epochs=6, calibration="temperature")
    killed_at(5, part, tasks[3])
    part.save(tmp_path / "part")
    part = piaget.Learner.load(tmp_path / "part")
    part.learn(tasks[3])
    part.save(tmp_path / "whole")
    again = piaget.Learner.load(tmp_path / "whole")
    for task in tasks:
        found = whole.record(task).temperature
        assert part.record(task).temperature == again.record(task).temperature == found
        assert (found == 1.0) == (task.kind == "regression")
    again.state.records["task 0"].temperature = math.nan
    again.save(tmp_path / "wrong")
    with pytest.raises(piaget.LoadError, match="temperature"):
        piaget.Learner.load(tmp_path / "wrong")


def test_it_needs_validation_data():
    learner = piaget.Learner(**SMALL, algorithm="compositional", calibration="temperature")
    without = replace(binary_tasks(1)[0], validation=None)
    with pytest.raises(piaget.TaskError, match="how sure probabilities should be"):
        learner.learn(without)
    learner.learn(replace(make_task("numbers", "regression"), validation=None))
    with pytest.raises(piaget.SettingError, match="isotonic"):
        piaget.Learner(calibration="isotonic")


def test_deep_methods_on_ones_own_data_have_it():
    rng = np.random.default_rng(0)
    x, groups = rng.normal(size=(200, 4)), np.repeat(list("abcde"), 40)
    stream = from_arrays(x, (x[:, 0] > 0).astype(int), groups)
    for chosen, expected in (({}, "temperature"), ({"calibration": "none"}, "none")):
        learner = piaget.Learner.for_stream(stream, structure="soft-ordering", **chosen)
        assert isinstance(learner, piaget.Learner)
        assert learner.settings.calibration == expected
    assert piaget.Learner().settings.calibration == "none"
