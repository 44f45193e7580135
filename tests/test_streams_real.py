"""The named streams on real data, where it is at hand: the appendix's table."""

import warnings

import numpy as np
import pytest
import torch

import piaget
from piaget.errors import DataNote
from piaget.streams import STREAMS
from tests.small import held_out_of, labels_of

NOT_PUBLIC = pytest.mark.filterwarnings("ignore::piaget.errors.DataNote")


def names_of(stream):
    return [task.name for task in stream]


# stream: tasks, classes, features, and the sizes of training, validation and test data: exactly, or with
# a tolerance where the table says "about"
TABLE = {
    "landmine": (29, (2, 2), (9,), ((222, 345), None, (223, 345)), 0),
    "schools": (139, (0, 0), (27,), ((11, 125), None, (11, 126)), 0),
    "mnist": (10, (2, 2), (1, 28, 28), ((9500, 9500), (2500, 2500), (2000, 2000)), 0.13),
    "fashion": (10, (2, 2), (1, 28, 28), ((9500, 9500), (2500, 2500), (2000, 2000)), 0.13),
    "cub": (20, (10, 10), (512,), ((120, 120), (30, 30), (150, 150)), 0.45),
    "omniglot": (50, (14, 55), (1, 105, 105), ((224, 880), (28, 110), (28, 110)), 0),
}


@NOT_PUBLIC
@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("seed", [0, 7])
def test_the_papers_table_on_real_data(name, seed, real_data):
    count, classes, shape, sizes, tolerance = TABLE[name]
    options = {"features": "resnet18_approx"} if name == "cub" else {}
    stream = piaget.stream(name, seed, real_data, **options)
    assert len(stream) == count == STREAMS[name].tasks
    tasks = list(stream)
    assert len(set(names_of(stream))) == count
    assert {task.input_shape for task in tasks} == {shape}
    assert (min(t.classes for t in tasks), max(t.classes for t in tasks)) == classes
    for part, size in zip(("train", "validation", "test"), sizes, strict=True):
        found = [getattr(task, part) for task in tasks]
        if size is None:
            assert found == [None] * count
            continue
        lengths = [len(split) for split in found]
        if tolerance:
            assert abs(np.mean(lengths) / size[0] - 1) < tolerance / 2
            assert all(abs(n / size[0] - 1) < tolerance for n in lengths)
        else:
            assert (min(lengths), max(lengths)) == size
    if name == "fashion":
        assert {len(held_out_of(task)) for task in tasks} == {2000}
    if name in ("cub",):
        used = [label for task in tasks for label in labels_of(task)]
        assert sorted(used) == list(range(200))


@NOT_PUBLIC
def test_real_images_are_the_files_images(real_data):
    """Against an independent reading of the files."""
    import gzip

    raw = gzip.decompress((real_data / "mnist" / "t10k-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = np.frombuffer(
        gzip.decompress((real_data / "mnist" / "t10k-labels-idx1-ubyte.gz").read_bytes())[8:], "u1"
    )
    images = np.frombuffer(raw, "u1").reshape(-1, 28, 28)
    task = piaget.stream("mnist", 3, real_data)[4]
    mine = images[np.isin(labels, labels_of(task))]
    assert held_out_of(task).x.dtype == torch.uint8
    assert np.array_equal(held_out_of(task).x[:, 0].numpy(), mine)
    expected = labels[np.isin(labels, labels_of(task))] == labels_of(task)[1]
    assert np.array_equal(held_out_of(task).y.numpy(), expected.astype(int))
    assert task.scaling.divisor == 255


def test_a_learner_takes_each_real_stream(real_data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataNote)
        from piaget.lab.configuration import configure
        from piaget.lab.making import make

        for name in ("landmine", "schools", "mnist", "cub", "omniglot"):
            extra = {"features": "resnet18_approx"} if name == "cub" else {}
            settings = {"initial_tasks": 1}
            options = {"train_size": 60} | extra
            configuration = configure(
                stream=name, options=options, algorithm="compositional", epochs=2, settings=settings
            )
            (learner,), (stream,) = make(configuration, [0], real_data)
            rows = learner.learn(stream[0])
            assert any(row["evaluated"] == stream[0].name for row in rows)
