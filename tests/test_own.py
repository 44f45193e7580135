"""Streams from one's own arrays and data sets."""

from typing import Any, cast

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, TensorDataset

import piaget
from piaget.errors import DataError, SettingError, TaskError
from piaget.streams import from_arrays, from_datasets
from tests.small import held_out_of, validation_of

rng = np.random.default_rng(0)


X = rng.normal(size=(90, 5)).astype(np.float32)


Y = np.arange(90) % 3


GROUPS = np.repeat([3.0, 1.0, 2.0], 30)


# --- arrays ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
def test_arrays_with_groups(kind):
    tasks = from_arrays(kind(X), kind(Y), kind(GROUPS), seed=1)
    assert [t.name for t in tasks] == ["3", "1", "2"]
    for i, task in enumerate(tasks):
        rows = torch.cat([s.x for _, s in task.splits()])
        assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, X[30 * i : 30 * i + 30].tolist()))


def test_a_dictionary_of_arrays():
    tasks = from_arrays({"a": (X[:40], Y[:40]), "b": (X[40:], Y[40:] / 7)}, name="mine")
    assert [(t.name, t.kind, t.stream) for t in tasks] == [
        ("a", "multiclass", "mine"),
        ("b", "regression", "mine"),
    ]


def test_bytes_are_divided_by_one_number():
    images = rng.integers(0, 200, (60, 3, 4, 4)).astype(np.uint8)
    images[:30] //= 4
    images[-1] = 200
    tasks = from_arrays(images, np.arange(60) % 2, np.repeat([0, 1], 30))
    assert {t.scaling.divisor for t in tasks} == {200.0}
    assert {t.train.x.dtype for t in tasks} == {torch.uint8}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X,), "needs x, y and groups"),
        ((X, Y[:-1], GROUPS), "90 inputs, 89 targets"),
        ((X, Y, GROUPS[:, None]), "sample 0: its group is missing, or no name: it is a list"),
        (({"a": X},), "expected a pair"),
        (({"a": (X, Y)}, Y), "takes no y"),
        (({},), "no samples"),
    ],
)
def test_arrays_that_do_not_fit(arguments, message):
    with pytest.raises((SettingError, TaskError, DataError), match=message):
        from_arrays(*arguments)


def test_the_kind_is_that_of_all_groups():
    y = np.concatenate([np.arange(30) % 3, np.arange(30) % 2 + 0.5])
    tasks = from_arrays(X[:60], y, np.repeat(["a", "b"], 30))
    assert {t.kind for t in tasks} == {"regression"}


def test_large_values_are_learned():
    """Values of a regression are standardised for learning; scores and answers are in their own units."""
    y = 1000 * X[:, 0] + 5e6
    tasks = from_arrays(X, y, GROUPS)
    learner = piaget.Learner(
        "linear", "nft", "compositional", epochs=400, learning_rate=0.05, initial_tasks=1
    )
    for task in tasks:
        learner.learn(task)
    answers = learner.predict(held_out_of(tasks[2]).x, tasks[2].name)
    assert float((answers - held_out_of(tasks[2]).y).abs().max()) < 300
    raw = piaget.Task.from_arrays("raw", X, y, standardize=False, scale=False)
    assert raw.scaling == piaget.Task.from_arrays("classes", X, Y, scale=False).scaling


def test_groups_that_are_missing():
    for missing in (np.where(GROUPS == 1, np.nan, GROUPS), [None, *GROUPS[1:]]):
        with pytest.raises(TaskError, match="group is missing"):
            from_arrays(X, Y, missing)


def test_half_precision_and_names_that_are_numbers():
    task = from_arrays(torch.from_numpy(X).bfloat16(), Y, GROUPS)[0]
    learner = piaget.Learner(epochs=2, initial_tasks=1)
    learner.learn(task)
    assert task.name == "3"
    assert len(learner.predict(X[:5], cast(Any, 3))) == len(learner.predict(X[:5], task="3")) == 5


def test_bytes_may_be_given_divided():
    """Bytes, or the same as fractions: one answer. Fractions that are not divided are refused."""
    stream = piaget.stream("digits")
    learner = piaget.Learner(epochs=2, initial_tasks=1)
    learner.learn(stream[0])
    x = held_out_of(stream[0]).x
    answers = learner.predict_proba(x, "digits-00")
    assert torch.equal(learner.predict_proba(x.float() / 16, "digits-00"), answers)
    assert torch.equal(learner.predict_proba(x.long(), "digits-00"), answers)
    with pytest.raises(TaskError, match="fractions up to 16; expected bytes, as in training"):
        learner.predict(x.float(), "digits-00")


def test_wrong_divisors_and_fractions():
    with pytest.raises(TaskError, match="expected a positive number with bytes"):
        piaget.Task.from_arrays("t", X, Y, divisor=2.0)
    with pytest.raises(SettingError, match="three shares"):
        piaget.Task.from_arrays("t", X, Y, fractions=(0, 0.5, 0.5))
    task = piaget.Task.from_arrays("t", X[:5], X[:5, 0], fractions=(0.5, 0.5, 0), kind="regression")
    assert (len(task.train), len(validation_of(task)), task.test) == (2, 3, None)


def test_learning_from_bytes_equals_learning_from_floats():
    """Divided when used, or before: the same learner."""
    images = rng.integers(0, 256, (120, 1, 4, 4)).astype(np.uint8)
    images[0] = 255
    y, groups = np.arange(120) % 2, np.arange(120) // 30
    floats = images.astype(np.float32) / 255
    answers = []
    for x in (images, floats):
        learner = piaget.Learner(epochs=3, seed=0)
        for task in from_arrays(x, y, groups, scale=False):
            learner.learn(task)
        answers.append(learner.predict_proba(x[:20], "3"))
    assert np.array_equal(*answers)


# --- data sets ----------------------------------------------------------------------------------------------


class Pairs(Dataset):
    def __init__(self, samples):
        self.samples, self.read = samples, 0

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        self.read += 1
        return self.samples[i]


def test_data_sets():
    tensors = TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    pairs = Pairs([(torch.from_numpy(x), int(y)) for x, y in zip(X, Y, strict=True)])
    stream = from_datasets({"tensors": tensors, "pairs": pairs})
    assert len(stream) == 2
    assert pairs.read == 0
    assert torch.equal(stream[0].train.x.sum(), from_datasets([tensors])[0].train.x.sum())
    one, again = stream[1], stream[1]
    assert one is again
    assert pairs.read == 90
    assert (one.kind, one.classes, one.input_shape) == ("multiclass", 3, (5,))
    assert stream[0].name == "tensors"
    assert from_datasets([tensors], name="mine")[0].name == "mine-00"


def test_pairs_and_triples_of_data_sets():
    parts = [
        TensorDataset(
            torch.from_numpy(X[i::3]), torch.from_numpy(Y.reshape(30, 3)[:, 0].copy() * 0 + np.arange(30) % 2)
        )
        for i in range(3)
    ]
    two, three = from_datasets([(parts[0], parts[1]), tuple(parts)])
    assert two.validation is None
    assert torch.equal(held_out_of(two).x, parts[1].tensors[0])
    assert torch.equal(validation_of(three).x, parts[1].tensors[0])
    assert torch.equal(held_out_of(three).x, parts[2].tensors[0])


def test_pictures_and_targets_of_all_sorts():
    pictures = [Image.fromarray(rng.integers(0, 256, (6, 5, 3), dtype=np.uint8)) for _ in range(20)]
    colour = Pairs([(p, torch.tensor(i % 2)) for i, p in enumerate(pictures)])
    grey = Pairs([(p.convert("L"), np.int64(i % 2)) for i, p in enumerate(pictures)])
    values = Pairs([(np.float32(i), 0.1 * i) for i in range(20)])
    first, second, third = from_datasets([colour, grey, values])
    assert (first.input_shape, first.train.x.dtype) == ((3, 6, 5), torch.uint8)
    assert second.input_shape == (1, 6, 5)
    assert first.scaling.divisor == second.scaling.divisor == 255
    assert (third.input_shape, third.kind) == ((1,), "regression")


class Endless(IterableDataset):
    def __iter__(self):
        return iter([(torch.ones(2) * i, i % 2) for i in range(20)])


def test_an_iterable_data_set():
    assert from_datasets([Endless()])[0].classes == 2


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (Pairs([]), "the data set is empty"),
        (Pairs([1, 2]), "sample 0 is no pair"),
        (Pairs([(torch.ones(2), 0), (torch.ones(3), 1)]), "sample 1 has shape"),
        (5, "an int is no data set"),
        (Pairs([(torch.ones(2), torch.eye(3)[i % 3]) for i in range(9)]), r"sample 0 has shape \(3,\)"),
        ([1, 2, 3, 4], "4 data sets"),
    ],
)
def test_data_sets_that_do_not_fit(dataset, message):
    with pytest.raises(TaskError, match=message):
        from_datasets([dataset])[0]
    with pytest.raises(SettingError, match="no data set"):
        from_datasets([])
