"""Split, permuted and rotated MNIST, and split CIFAR-100, by the field's usual definitions."""

import re

import numpy as np
import pytest
import scipy.ndimage
import torch

import piaget
from piaget.errors import SettingError
from piaget.streams import STREAMS
from piaget.streams.standard import ANGLES, rotate
from tests.small import held_out_of, labels_of, validation_of

pytestmark = pytest.mark.filterwarnings("ignore::piaget.errors.DataNote")
FASHION = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag"]


def pixels(split):
    return split.x.flatten(1)


@pytest.mark.parametrize("seed", [0, 1])
def test_split_in_the_order_of_the_classes(seed, small_data):
    stream = piaget.stream("split-mnist", seed, small_data)
    assert [labels_of(task) for task in stream] == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
    for task in stream:
        assert task.kind == "binary"
        for _, split in task.splits():  # the class is in the first pixel
            assert pixels(split)[:, 0].tolist() == [labels_of(task)[c] for c in split.y.tolist()]
    articles = [
        label for task in piaget.stream("split-fashion", seed, small_data) for label in labels_of(task)
    ]
    assert articles == [*FASHION, "Ankle boot"]


def test_ten_times_ten_classes(small_data):
    stream = piaget.stream("split-cifar100", 3, small_data)
    assert [labels_of(task) for task in stream] == [
        tuple(f"class_{c}" for c in range(10 * i, 10 * i + 10)) for i in range(10)
    ]
    twenty = piaget.stream("split-cifar100", 3, small_data, classes_per_task=5)
    assert len(twenty) == 20
    assert labels_of(twenty[7]) == tuple(f"class_{c}" for c in range(35, 40))
    assert labels_of(piaget.stream("split-cifar100", 3, small_data, tasks=2)[1]) == labels_of(stream[1])


def test_the_seed_may_order_the_classes(small_data):
    orders = [
        [
            label
            for task in piaget.stream("split-cifar100", seed, small_data, order="seeded")
            for label in labels_of(task)
        ]
        for seed in (0, 0, 1)
    ]
    assert orders[0] == orders[1] != orders[2]
    assert all(sorted(order) == sorted(f"class_{c}" for c in range(100)) for order in orders)


@pytest.mark.parametrize("name", ["permuted-mnist", "permuted-fashion"])
def test_every_task_has_a_permutation_of_its_own(name, small_data):
    """Of one picture in all tasks: the same pixels in other places, and the same places for all pictures."""
    stream, plain = (
        piaget.stream(name, 2, small_data),
        piaget.stream(name.replace("permuted", "rotated"), 2, small_data),
    )
    assert len(stream) == 10
    seen = set()
    whole = np.concatenate([pixels(split).numpy() for _, split in plain[0].splits()])
    for task in stream:
        assert (task.kind, task.classes, task.input_shape) == ("multiclass", 10, (1, 28, 28))
        assert sorted(map(str, labels_of(task))) == sorted(map(str, labels_of(plain[0])))
        mine = np.concatenate([pixels(split).numpy() for _, split in task.splits()])
        # Sorted by what does not change: the pixels of a picture.
        mine, theirs = (a[np.lexsort(np.sort(a, 1).T)] for a in (mine, whole))
        places = {column.tobytes(): place for place, column in enumerate(theirs.T)}
        order = tuple(places[column.tobytes()] for column in mine.T)
        assert sorted(order) == list(range(784))
        seen.add(order)
    assert len(seen) == 10
    assert tuple(range(784)) not in seen


@pytest.mark.parametrize("angle", [0, 18, 90, 144, -30.5, 360])
def test_a_rotation_is_scipys(angle):
    """On a picture whose rim is empty: what comes in from outside is mixed in differently there."""
    x = np.zeros((3, 1, 28, 28), np.uint8)
    x[:, :, 6:22, 6:22] = np.random.default_rng(0).integers(0, 256, (3, 1, 16, 16))
    theirs = scipy.ndimage.rotate(x.astype(float), angle, axes=(3, 2), reshape=False, order=1)
    mine = rotate(torch.from_numpy(x), angle).numpy().astype(float)
    assert np.abs(mine - theirs).max() <= 0.51
    if angle == 90:
        assert np.array_equal(mine[0, 0], np.rot90(x[0, 0]))  # counter-clockwise


def test_rotated(small_data):
    stream = piaget.stream("rotated-mnist", 0, small_data)
    assert ANGLES == (0, 18, 36, 54, 72, 90, 108, 126, 144, 162)
    first = stream[0]
    for task, angle in zip(stream, ANGLES, strict=True):
        for (_, mine), (_, unturned) in zip(task.splits(), first.splits(), strict=True):
            assert torch.equal(mine.x, rotate(unturned.x, angle))
            assert torch.equal(mine.y, unturned.y)
    own = piaget.stream("rotated-mnist", 0, small_data, angles=[0, 90, 45.5])
    assert len(own) == 3
    assert torch.equal(held_out_of(own[1]).x, held_out_of(stream[5]).x)
    assert len(piaget.stream("rotated-fashion", 0, small_data, tasks=4)) == 4


@pytest.mark.parametrize("name", [stream.name for stream in STREAMS.values() if stream.module == "standard"])
def test_parts_and_learning(name, small_data):
    """The standard test part; a fifth of the training part for validation; and a learner takes it."""
    stream = piaget.stream(name, 0, small_data, train_size=12)
    sizes = [len(validation_of(task)) for task in stream]
    every = 1 if name.startswith("split") else len(stream)
    assert sum(sizes) == (200 if "cifar" in name else 40) * every
    assert sum(len(held_out_of(task)) for task in stream) == (400 if "cifar" in name else 60) * every
    learner = piaget.Learner.for_stream(
        stream, epochs=2, algorithm="compositional", structure="soft-ordering"
    )
    assert any(row["evaluated"] == stream[0].name for row in learner.learn(stream[0]))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("split-mnist", {"order": "alphabetical"}, "order='alphabetical'; expected fixed or seeded"),
        ("split-mnist", {"tasks": 6}, "expected at most 5"),
        ("split-mnist", {"classes_per_task": 1}, "expected 2 to 10"),
        ("permuted-mnist", {"tasks": 10**6}, "tasks=1000000; expected at most 100,000"),
        ("rotated-mnist", {"tasks": 11}, "tasks=11; expected at most 10"),
        ("rotated-mnist", {"angles": "90"}, "angles='90'; expected a list of degrees"),
        ("rotated-mnist", {"angles": [0, float("nan")]}, "expected a list of degrees"),
        ("rotated-mnist", {"angles": []}, "expected a list of degrees"),
        ("permuted-mnist", {"train_size": 9}, "train_size=9; expected 10 or more"),
    ],
)
def test_wrong_options(name, options, message, small_data):
    with pytest.raises(SettingError, match=re.escape(message)):
        piaget.stream(name, 0, small_data, **options)[0]
