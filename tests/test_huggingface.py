"""Data sets of Hugging Face's library as streams: offline, in memory and from disk."""

import re

import numpy as np
import pytest
import torch
from PIL import Image as Pictures

import piaget
from piaget.errors import DataError, DataNote, SettingError, TaskError
from piaget.streams import from_huggingface
from tests.small import held_out_of, labels_of, validation_of

datasets = pytest.importorskip("datasets")
ANIMALS = ["ant", "bee", "cat", "dog"]


def pictures(n=48, mode="L", side=6, seed=0):
    """The class is in the first pixel, the number of the sample in the next."""
    rng = np.random.default_rng(seed)
    shape = (side, side) if mode == "L" else (side, side, 3)
    found = rng.integers(0, 256, (n, *shape), dtype=np.uint8)
    found[:, 0, 0], found[:, 0, 1] = (
        (np.arange(n) % 4)[:, *[None] * (mode == "RGB")],
        np.arange(n)[:, *[None] * (mode == "RGB")],
    )
    return found


def dataset(n=48, mode="L", seed=0, **more):
    features = {
        "image": datasets.Image(),
        "animal": datasets.ClassLabel(names=ANIMALS),
        "site": datasets.Value("string"),
    }
    content = {
        "image": [Pictures.fromarray(p) for p in pictures(n, mode, seed=seed)],
        "animal": [i % 4 for i in range(n)],
        "site": [("north", "south", "east")[i // 4 % 3] for i in range(n)],
    }
    return datasets.Dataset.from_dict(content | more, features=datasets.Features(features))


def test_pictures_by_group_from_disk(tmp_path):
    """The one line of the documentation."""
    dataset().save_to_disk(tmp_path / "animals")
    stream = from_huggingface(tmp_path / "animals", group="site", target="animal", inputs="image")
    assert [task.name for task in stream] == ["north", "south", "east"]
    numbers = set()
    for i, task in enumerate(stream):
        assert (task.kind, task.input_shape, labels_of(task)) == ("multiclass", (1, 6, 6), tuple(ANIMALS))
        assert [len(split) for _, split in task.splits()] == [8, 4, 4]  # 16 samples: 2.4, 0.8, 0.8 of a class
        assert task.scaling.divisor == 255
        for _, split in task.splits():
            assert split.x.dtype == torch.uint8
            for x, y in zip(split.x, split.y.tolist(), strict=True):
                number = int(x[0, 0, 1])
                assert torch.equal(x[0], torch.from_numpy(pictures()[number]))
                assert int(x[0, 0, 0]) == y == number % 4
                assert number // 4 % 3 == i
                numbers.add(number)
    assert len(numbers) == 48
    learner = piaget.Learner.for_stream(stream, epochs=2, initial_tasks=2)
    for task in stream:
        learner.learn(task)
    assert set(learner.predict(held_out_of(stream[0]).x, task="north")) <= set(ANIMALS)


def test_the_same_from_memory_and_again():
    one, same = (from_huggingface(dataset(), group="site", target="animal", inputs="image") for _ in range(2))
    other = from_huggingface(dataset(), group="site", target="animal", inputs="image", seed=1)
    assert [t.fingerprint() for t in one] == [t.fingerprint() for t in same]
    assert [t.fingerprint() for t in one] != [t.fingerprint() for t in other]


def test_parts_that_are_there_and_parts_that_are_cut():
    both = datasets.DatasetDict(train=dataset(48), test=dataset(24, seed=1))
    stream = from_huggingface(both, group="site", target="animal", inputs="image")
    for task in stream:
        assert [len(task.train), len(validation_of(task)), len(held_out_of(task))] == [12, 4, 8]
        assert not torch.isin(task.train.x[:, 0, 0, 1], validation_of(task).x[:, 0, 0, 1]).any()
    all_three = datasets.DatasetDict(train=dataset(48), dev=dataset(12, seed=2), test=dataset(24, seed=1))
    stream = from_huggingface(all_three, group="site", target="animal", inputs="image")
    assert [len(split) for _, split in stream[0].splits()] == [16, 4, 8]
    unlabelled = (
        dataset(12).remove_columns("animal").add_column("animal", [-1] * 12).cast(dataset(4).features)
    )
    competition = datasets.DatasetDict(train=dataset(48), test=unlabelled, extra=dataset(4))
    with pytest.warns(DataNote) as notes:
        stream = from_huggingface(competition, group="site", target="animal", inputs="image")
    assert {str(note.message) for note in notes} == {
        "the part 'extra' of the data set is not used",
        "the part 'test' has no labels, and is not used",
    }
    assert [len(split) for _, split in stream[0].splits()] == [8, 4, 4]
    whole = from_huggingface(dataset(), group="site", target="animal", inputs="image", fractions=(1, 0, 0))
    assert [len(split) for _, split in whole[0].splits()] == [16]


def test_classes_are_cut_into_tasks():
    stream = from_huggingface(dataset(mode="RGB"), target="animal", inputs="image", classes_per_task=2)
    assert len(stream) == 2
    assert sorted(label for task in stream for label in labels_of(task)) == ANIMALS
    for task in stream:
        assert (task.kind, task.input_shape) == ("binary", (3, 6, 6))
        for _, split in task.splits():
            assert [ANIMALS[c] for c in split.x[:, 0, 0, 0].tolist()] == [
                labels_of(task)[y] for y in split.y.tolist()
            ]
    few = from_huggingface(
        dataset(), target="animal", inputs="image", classes_per_task=2, tasks=1, train_size=4, size=(3, 4)
    )
    assert len(few) == 1
    assert (len(few[0].train), few[0].input_shape) == (4, (1, 3, 4))


def numbers(n=60, **more):
    rng = np.random.default_rng(0)
    content = {
        "group": [f"g{i % 3}" for i in range(n)],
        "a": rng.normal(5, 2, n),
        "b": rng.integers(0, 50, n),
        "y": rng.normal(size=n),
        "vector": rng.normal(size=(n, 4)).tolist(),
        "bytes": rng.integers(0, 256, (n, 5, 6, 3), dtype=np.uint8),
        "text": ["x"] * n,
        "flag": [bool(i % 2) for i in range(n)],
    }
    return datasets.Dataset.from_dict(content | more)


def test_numbers_and_arrays():
    regression = from_huggingface(numbers(), group="group", target="y", inputs=["a", "b"])
    table = numbers().to_pandas()
    assert {task.kind for task in regression} == {"regression"}
    assert len({task.scaling.center for task in regression}) == 1  # by the samples of all tasks
    for task in regression:
        mine = {
            tuple(x.float().tolist()): y
            for _, s in task.splits()
            for x, y in zip(s.x, s.y.tolist(), strict=True)
        }
        theirs = table[table.group == task.name]
        assert mine == {(np.float32(a), np.float32(b)): y for a, b, y in theirs[["a", "b", "y"]].to_numpy()}
    vectors = from_huggingface(numbers(), group="group", target="flag", inputs="vector")
    assert [(task.kind, task.input_shape) for task in vectors] == [("binary", (4,))] * 3
    pixels = from_huggingface(numbers(), group="group", target="flag", inputs="bytes")
    assert pixels[0].input_shape == (3, 5, 6)  # channels first
    assert pixels[0].scaling.divisor == 255
    tensors = from_huggingface(
        numbers().with_format("torch"), group="group", target="flag", inputs="vector"
    )  # whatever format was asked for
    assert tensors[1].fingerprint() == vectors[1].fingerprint()
    one = from_huggingface(numbers(), group="group", target="flag", inputs="a")
    assert one[0].input_shape == (1,)


def test_groups_that_are_no_task_are_skipped():
    odd = numbers(
        group=[f"g{i // 2 % 2}" for i in range(57)] + ["alone", "same", "same"],
        flag=[True, False] * 28 + [True] * 4,
    )
    with pytest.warns(DataNote) as notes:
        stream = from_huggingface(odd, group="group", target="flag", inputs="a")
    assert [str(note.message) for note in notes] == [
        "huggingface: 'alone' is skipped: it has a single sample",
        "huggingface: 'same' is skipped: its target is constant",
    ]
    assert [task.name for task in stream] == ["g0", "g1"]


GOOD = {"group": "group", "target": "y", "inputs": "a"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"group": None}, "needs either group"),
        ({"classes_per_task": 2}, "needs either group"),
        ({"target": "z"}, "train: there is no column 'z'; there are 'group', 'a'"),
        ({"inputs": ["a", "a"]}, "expected different ones"),
        ({"inputs": "text"}, "column 'text' holds no numbers"),
        ({"inputs": ["a", "vector"]}, "column 'vector' holds arrays of (4,); expected it alone"),
        ({"size": (3, 3)}, "size=(3, 3) is for pictures"),
        ({"group": None, "classes_per_task": 2}, "classes_per_task is for classes"),
        ({"dataset": "/nowhere/at/all"}, "/nowhere/at/all is no folder"),
        ({"dataset": "hf://datasets/mnist"}, "nothing is downloaded"),
        ({"dataset": [1, 2]}, "a list; expected a Dataset or DatasetDict"),
        (
            {"dataset": numbers(y=[None] * 2 + [0.5] * 58)},
            "column 'y' is empty in 2 rows (the first is row 0)",
        ),
        ({"dataset": numbers(group=[None] + ["a"] * 59)}, "row 0: column 'group' holds None"),
        ({"dataset": numbers(vector=[[1.0]] * 30 + [[1.0, 2.0]] * 30), "inputs": "vector"}, "inputs"),
        ({"dataset": numbers(a=[float("nan")] + [1.0] * 59)}, "NaN or infinite inputs"),
        ({"dataset": numbers().to_iterable_dataset()}, "expected a Dataset or DatasetDict"),
        ({"dataset": datasets.DatasetDict(test=numbers())}, "expected one called train"),
    ],
)
def test_what_does_not_fit(change, message):
    arguments = {"dataset": numbers()} | GOOD | change
    with pytest.raises((SettingError, DataError, TaskError), match=re.escape(message)):
        list(from_huggingface(arguments.pop("dataset"), **arguments))


def test_pictures_that_do_not_fit(tmp_path):
    mixed = datasets.concatenate_datasets([dataset(8), dataset(8)])
    images = [Pictures.new("L", (6, 6))] * 15 + [Pictures.new("L", (7, 6))]
    mixed = mixed.remove_columns("image").add_column("image", [None] * 16).cast(dataset(4).features)
    with pytest.raises(DataError, match="train, row 0, column 'image': there is no picture"):
        from_huggingface(mixed, group="site", target="animal", inputs="image")
    other = dataset(16, image=images)
    with pytest.raises(
        DataError, match=re.escape("6 x 7 pixels, but train, row 0, column 'image' has 6 x 6")
    ):
        from_huggingface(other, group="site", target="animal", inputs="image")
    packed = dataset(16, image=[{"bytes": b"%!PS-Adobe-3.0 EPSF-3.0", "path": None}] * 16)
    with pytest.raises(DataError, match="no picture of PNG"):
        from_huggingface(packed, group="site", target="animal", inputs="image")
    (tmp_path / "broken").mkdir()
    with pytest.raises(DataError, match="cannot be read as a data set that save_to_disk wrote"):
        from_huggingface(tmp_path / "broken", group="site", target="animal", inputs="image")
