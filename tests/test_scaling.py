"""Inputs of very different scales: standardised by default, as recorded."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import piaget
from piaget.data.encoding import Scaling, centered
from piaget.data.typed_data import read
from piaget.streams import from_arrays, from_datasets

rng = np.random.default_rng(0)
N = 200
SIGN, MONEY, TIME = rng.integers(0, 2, N), rng.normal(1e6, 1e3, N), rng.integers(0, 86400, N) + 1_700_000_000
X = np.stack([SIGN, MONEY, 1e-5 * rng.normal(size=N), TIME, np.full(N, 7.0)], 1)
Y = ((MONEY - 1e6) / 1e3 + 1e5 * X[:, 2] + (TIME - TIME.mean()) / 4e4 + SIGN - 0.5 > 0).astype(int)


def learned(*tasks):
    learner = piaget.Learner(width=16, epochs=30, initial_tasks=1, components=piaget.Dense(16, dropout=0.0))
    for task in tasks:
        learner.learn(task)
    return learner


def test_each_feature_is_standardised_by_training_samples():
    task = piaget.Task.from_arrays("t", X, Y)
    train = task.train.x.numpy()
    scaled = task.scaling.inputs(task.train.x, "cpu", torch.float64).numpy()
    assert np.array_equal(scaled[:, 0], train[:, 0])  # yes or no
    np.testing.assert_allclose(scaled[:, 1:4].mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(scaled[:, 1:4].std(0), 1, rtol=1e-6)
    assert np.array_equal(scaled[:, 4], np.zeros(len(train)))  # constant
    raw = piaget.Task.from_arrays("t", X, Y, scale=False)
    assert raw.scaling == Scaling()
    assert torch.equal(raw.train.x, task.train.x)  # a task holds its data as it was given
    assert raw.fingerprint() != task.fingerprint()


def test_whole_numbers_keep_their_digits():
    times = TIME[:, None]  # as 32 bits, they would be multiples of 128
    task = piaget.Task.from_arrays("t", times, Y)
    assert len(task.train.x.unique()) == len(np.unique(task.train.x.numpy().astype(np.int64)))
    scaled = task.scaling.inputs(task.train.x, "cpu", torch.float32)
    assert len(scaled.unique()) > 0.99 * len(task.train.x.unique())
    assert piaget.Task.from_arrays("t", times % 86400, Y).train.x.dtype == torch.float32


def test_channels_of_images_are():
    images = rng.normal(size=(40, 2, 3, 3)) * [[[[1e4]], [[1e-3]]]] + 5
    task = piaget.Task.from_arrays("t", images, Y[:40])
    scaled = task.scaling.inputs(task.train.x, "cpu", torch.float64)
    torch.testing.assert_close(scaled.std((0, 2, 3), correction=0), torch.ones(2, dtype=torch.float64))
    assert len(task.scaling.center) == 2
    whole = (100 * np.abs(images)).astype(np.uint8)
    assert piaget.Task.from_arrays("t", whole, Y[:40]).scaling == Scaling(float(whole.max()))  # divided only


@pytest.mark.filterwarnings("ignore:.*no .* sample of class")
def test_groups_are_scaled_alike():
    tasks = from_arrays(X, Y, np.arange(N) % 4)
    assert len({task.scaling for task in tasks}) == 1
    train = torch.cat([task.train.x for task in tasks])
    assert tasks[0].scaling == centered(train)
    assert {task.scaling for task in from_arrays(X, Y, np.arange(N) % 4, scale=False)} == {Scaling()}
    different = from_arrays({"a": (X, Y), "b": (X[:, :3], Y)})
    assert [len(task.scaling.center) for task in different] == [5, 3]
    data = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    assert len(from_datasets([data])[0].scaling.center) == 5
    assert from_datasets([data], scale=False)[0].scaling == Scaling()


def test_what_is_learned_is_asked_in_the_same_units(tmp_path):
    task = piaget.Task.from_arrays("t", X, Y)
    learner = learned(task)
    assert task.test is not None
    x = task.test.x.numpy()
    accuracy = (learner.predict(x, "t") == task.test.y.numpy()).mean()
    assert accuracy > 0.85
    learner.save(tmp_path)
    loaded = piaget.Learner.load(tmp_path)
    assert np.array_equal(loaded.predict_proba(x, "t"), learner.predict_proba(x, "t"))
    torch.testing.assert_close(learner.module("t")(task.test.x), learner.predict_proba(task.test.x, "t"))
    (score,) = (row["value"] for row in learner.evaluate(task) if row["metric"] == "accuracy")
    assert score == accuracy
    # Other rows of the task, which alone would be scaled otherwise, are scaled as the learner recorded it.
    other = piaget.Task.from_arrays("t", X[:50], Y[:50])
    assert other.scaling != task.scaling
    again = replace(other, scaling=task.scaling)
    assert learner.evaluate(other) == learner.evaluate(again)


def test_values_beyond_squares():
    large = X * 1e200
    task = piaget.Task.from_arrays("t", large, Y)
    scaled = task.scaling.inputs(task.train.x, "cpu", torch.float32)
    assert bool(torch.isfinite(scaled).all())
    assert float(scaled.std(0, correction=0)[1]) == pytest.approx(1, rel=1e-4)


def test_files_without_it_stay_as_they_were(tmp_path):
    assert Scaling(255.0).to_json() == {"divisor": 255.0, "mean": 0.0, "spread": 1.0}
    assert repr(Scaling(255.0)) == "Scaling(divisor=255.0, mean=0.0, spread=1.0)"
    assert read(Scaling, {"divisor": 2.0, "mean": 0.0, "spread": 1.0}, "scaling") == Scaling(2.0)
    with pytest.raises(ValueError, match="scaling has"):
        read(Scaling, {"divisor": 2.0, "mean": 0.0}, "scaling")
    learner = learned(piaget.Task.from_arrays("t", X, Y))
    learner.save(tmp_path)
    file = tmp_path / "learner.json"
    file.write_text(file.read_text().replace(json.dumps("center"), json.dumps("centre")))
    with pytest.raises(piaget.LoadError):
        piaget.Learner.load(tmp_path)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: Scaling(center=(1.0,)), "as many widths as centers"),
        (lambda: Scaling(center=(1.0,), width=(0.0,)), "finite and positive"),
        (lambda: Scaling(center=(float("nan"),), width=(1.0,)), "finite and positive"),
        (
            lambda: replace(piaget.Task.from_arrays("t", X, Y), scaling=centered(torch.ones(2, 3))),
            r"its scaling is of 3 inputs; the inputs are \(5,\)",
        ),
    ],
)
def test_wrong_scalings_are_refused(made, says):
    with pytest.raises(ValueError, match=says):
        made()
