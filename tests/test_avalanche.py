"""Benchmarks of Avalanche as streams: on stand-ins with the same interface, and on real ones where it is."""

import importlib.util
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

import piaget
from piaget.errors import DataError, SettingError, TaskError
from piaget.streams import from_avalanche
from tests.small import held_out_of, labels_of, validation_of

REAL = pytest.mark.skipif(importlib.util.find_spec("avalanche") is None, reason="Avalanche is not installed")


@dataclass
class Dataset:
    """Samples (input, class, task label), as of an AvalancheDataset; noisy but for evaluation."""

    x: torch.Tensor
    y: torch.Tensor
    task_label: int = 0
    noise: float = 1.0

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int, int]:
        return self.x[i] + self.noise, int(self.y[i]), self.task_label

    def eval(self) -> "Dataset":
        return Dataset(self.x, self.y, self.task_label, 0.0)


@dataclass
class Experience:
    dataset: Any
    current_experience: int
    task_label: int

    @property
    def classes_in_this_experience(self) -> list[int]:
        return sorted(set(self.dataset.y.tolist()))


@dataclass
class Benchmark:
    train_stream: Any
    test_stream: Any = None
    valid_stream: Any = None


def samples(classes: list[int], each: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The class is in the first pixel."""
    y = torch.tensor(classes).repeat(each)
    x = torch.rand(len(y), 1, 4, 4, generator=torch.Generator().manual_seed(seed))
    x[:, 0, 0, 0] = y / 10
    return x, y


def stream_of(tasks: list[list[int]], each: int, seed: int = 0) -> list[Experience]:
    return [Experience(Dataset(*samples(c, each, seed + i), i), i, i) for i, c in enumerate(tasks)]


SPLIT = [[0, 1], [4, 2], [3, 5]]


def test_one_task_an_experience():
    """The one line of the documentation."""
    benchmark = Benchmark(stream_of(SPLIT, 8), stream_of(SPLIT, 3, 50))
    stream = from_avalanche(benchmark)
    assert [task.name for task in stream] == ["avalanche-00", "avalanche-01", "avalanche-02"]
    assert [task.stream for task in stream] == ["avalanche"] * 3
    for i, (task, classes) in enumerate(zip(stream, SPLIT, strict=True)):
        assert (task.kind, task.input_shape) == ("binary", (1, 4, 4))
        assert [len(task.train), len(validation_of(task)), len(held_out_of(task))] == [12, 4, 6]
        labels = labels_of(task) if task.labels else (0, 1)
        assert labels == tuple(sorted(classes))
        for part, split in task.splits():
            real = benchmark.test_stream[i] if part == "test" else benchmark.train_stream[i]
            rows = {x.numpy().tobytes() for x in real.dataset.x}  # as for evaluation: without noise
            assert all(x.numpy().tobytes() in rows for x in split.x)
            assert (split.x[:, 0, 0, 0] * 10).round().long().tolist() == [labels[y] for y in split.y.tolist()]
    learner = piaget.Learner.for_stream(stream, epochs=2, initial_tasks=1)
    for task in stream:
        learner.learn(task)
    assert len(learner.structures()) == 3


def test_a_single_test_experience_and_a_validation_stream():
    everything = [Experience(Dataset(*samples([0, 1, 2, 3, 4, 5], 3, 50)), 0, 0)]
    benchmark = Benchmark(stream_of(SPLIT, 8), everything, stream_of(SPLIT, 2, 90))
    stream = from_avalanche(benchmark, class_names=["ant", "bee", "cat", "dog", "eel", "fox"], name="animals")
    for task, classes in zip(stream, SPLIT, strict=True):
        assert [len(split) for _, split in task.splits()] == [16, 4, 6]
        assert labels_of(task) == tuple(
            sorted(("ant", "bee", "cat", "dog", "eel", "fox")[c] for c in classes)
        )
    without_test = from_avalanche(Benchmark(stream_of(SPLIT, 10)))
    assert [len(split) for _, split in without_test[0].splits()] == [12, 4, 4]
    no_validation = from_avalanche(Benchmark(stream_of(SPLIT, 10), stream_of(SPLIT, 3)), fractions=(1, 0, 0))
    assert [name for name, _ in no_validation[0].splits()] == ["train", "test"]


def test_inputs_stay_as_they_are_unless_scaled():
    benchmark = Benchmark(stream_of(SPLIT, 8), stream_of(SPLIT, 3))
    assert from_avalanche(benchmark)[0].scaling.center == ()
    assert len(from_avalanche(benchmark, scale=True)[0].scaling.center) == 1


def test_a_task_is_read_once_and_is_the_same():
    one, same = (from_avalanche(Benchmark(stream_of(SPLIT, 8), stream_of(SPLIT, 3))) for _ in range(2))
    assert one[1] is one[1]
    assert [t.fingerprint() for t in one] == [t.fingerprint() for t in same]


@pytest.mark.parametrize(
    ("benchmark", "options", "message"),
    [
        ([1, 2], {}, "a list has no train_stream"),
        (Benchmark([]), {}, "has no train_stream with experiences"),
        (
            Benchmark(stream_of(SPLIT, 8), stream_of(SPLIT[:2], 3)),
            {},
            "3 experiences for training, but 2 for test",
        ),
        (Benchmark([3, 4]), {}, "an int has no dataset"),
        (Benchmark(stream_of([[1]], 8)), {}, "its target is constant"),
        (Benchmark(stream_of(SPLIT, 1)), {}, "too few: none is left for"),
        (
            Benchmark(stream_of(SPLIT, 8), stream_of([[7, 8]], 3)),
            {},
            "no test sample is of one of its classes",
        ),
        (
            Benchmark(stream_of(SPLIT, 8)),
            {"class_names": ["a", "b"]},
            "from 2 to 4, but there are 2 class_names",
        ),
        (Benchmark(stream_of(SPLIT, 8)), {"class_names": "ab"}, "expected a list of texts"),
        (Benchmark(stream_of(SPLIT, 8)), {"class_names": ["a", "a"]}, "occurs twice"),
        (Benchmark([Experience([5, 6], 0, 0)]), {}, "sample 0 is no (input, target, ...)"),
        (
            Benchmark([Experience([(torch.zeros(2), 0.5)] * 4, 0, 0)]),
            {},
            "targets have dtype float64; expected class numbers",
        ),
    ],
)
def test_what_does_not_fit(benchmark, options, message):
    with pytest.raises((DataError, SettingError, TaskError), match=re.escape(message)):
        list(from_avalanche(benchmark, **options))


@REAL
@pytest.mark.filterwarnings("ignore")
def test_a_real_benchmark():
    """Class-incremental and with task labels, made by Avalanche from data sets in memory."""
    from avalanche.benchmarks import benchmark_with_validation_stream, nc_benchmark
    from avalanche.benchmarks.utils import as_classification_dataset

    class Pictures(TensorDataset):
        def __init__(self, x: torch.Tensor, y: torch.Tensor) -> None:
            super().__init__(x, y)
            self.targets = y.tolist()

    train, test = (Pictures(*samples(list(range(6)), each, seed)) for each, seed in ((10, 0), (3, 1)))
    with torch.random.fork_rng():  # which Avalanche seeds
        benchmark = nc_benchmark(
            as_classification_dataset(train),
            as_classification_dataset(test),
            n_experiences=3,
            task_labels=True,
            shuffle=True,
            seed=1,
        )
    stream = from_avalanche(benchmark)
    assert len(stream) == 3
    seen: list[Any] = []
    for task, experience in zip(stream, benchmark.train_stream, strict=True):
        labels = labels_of(task) if task.labels else (0, 1)
        assert set(labels) == set(experience.classes_in_this_experience)
        assert [len(split) for _, split in task.splits()] == [14, 6, 6]
        for _, split in task.splits():
            assert (split.x[:, 0, 0, 0] * 10).round().long().tolist() == [labels[y] for y in split.y.tolist()]
        seen += labels
    assert sorted(seen) == list(range(6))
    with torch.random.fork_rng():
        with_validation = from_avalanche(benchmark_with_validation_stream(benchmark, validation_size=0.3))
        list(with_validation)
    assert [len(split) for _, split in with_validation[0].splits()] == [14, 6, 6]
    assert np.isfinite(with_validation[0].train.x.numpy()).all()
