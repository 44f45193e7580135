"""The named streams, all of them, on small files."""

import re
from typing import cast

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import piaget
from piaget.errors import DataError, SettingError
from piaget.streams import STREAMS, stream_options
from tests.small import held_out_of, labels_of, validation_of

NOT_PUBLIC = pytest.mark.filterwarnings("ignore::piaget.errors.DataNote")


def names_of(stream):
    return [task.name for task in stream]


@NOT_PUBLIC
@pytest.mark.parametrize("name", STREAMS)
def test_same_seed_same_stream(name, small_data):
    one, same, other = (piaget.stream(name, seed, small_data) for seed in (3, 3, 4))
    assert len(one) == STREAMS[name].tasks or name == "omniglot"
    assert [t.fingerprint() for t in one] == [t.fingerprint() for t in same]
    assert names_of(one) == names_of(same)
    assert [t.fingerprint() for t in one] != [t.fingerprint() for t in other]
    first = one[0]
    assert first.stream == ("objects-random" if name == "objects" else name)
    assert one[0].fingerprint() == first.fingerprint()  # asked for twice, it is the same
    assert names_of(one[-2:]) == [one[-2].name, one[-1].name]
    assert len(set(names_of(one))) == len(one)
    assert name in repr(one)
    with pytest.raises(IndexError):
        one[len(one)]


@NOT_PUBLIC
@pytest.mark.parametrize("name", [name for name in STREAMS if name != "pixel-mnist"])
def test_no_sample_is_for_two_purposes(name, small_data):
    """Over the whole stream: what trains one task neither validates nor tests another."""
    samples: dict[str, set[bytes]] = {"train": set(), "validation": set(), "test": set()}
    for task in piaget.stream(name, 1, small_data):
        for part, split in task.splits():
            samples[part] |= {x.numpy().tobytes() for x in split.x}
    assert samples["train"]
    assert not samples["train"] & samples["validation"]
    assert not samples["train"] & samples["test"]
    assert not samples["validation"] & samples["test"]


@NOT_PUBLIC
@pytest.mark.parametrize("name", ["landmine", "schools", "fera"])
def test_linear_data_is_halved(name, small_data):
    for task in piaget.stream(name, 1, small_data):
        assert task.validation is None
        assert len(held_out_of(task)) - len(task.train) in (0, 1)


@NOT_PUBLIC
@pytest.mark.parametrize("name", ["landmine", "schools", "fera", "omniglot", "combined"])
def test_the_order_of_given_tasks_is_drawn(name, small_data):
    orders = [tuple(names_of(piaget.stream(name, seed, small_data))) for seed in range(4)]
    assert len(set(orders)) > 1
    assert len({tuple(sorted(order)) for order in orders}) == 1


@NOT_PUBLIC
@pytest.mark.parametrize(("name", "per_task"), [("cub", 10), ("cifar100", 5)])
def test_no_class_is_in_two_tasks(name, per_task, small_data):
    stream = piaget.stream(name, 5, small_data)
    used = [label for task in stream for label in labels_of(task)]
    assert len(used) == len(set(used)) == per_task * 20
    for task in stream:
        for _, split in task.splits():  # the class is in the first pixel or feature
            classes = split.x.flatten(1)[:, 0].long().tolist()
            expected = [labels_of(task)[i] for i in split.y.tolist()]
            assert [f"class_{c}" if name == "cifar100" else c for c in classes] == expected


@NOT_PUBLIC
def test_pairs_may_share_a_class_but_are_pairs(small_data):
    pairs = [labels_of(task) for task in piaget.stream("mnist", 0, small_data, tasks=30)]
    assert len(pairs) == 30
    assert all(len(set(pair)) == 2 for pair in pairs)
    assert len({c for pair in pairs for c in pair}) < 60
    assert {task.kind for task in piaget.stream("fashion", 0, small_data)} == {"binary"}
    assert "Trouser" in {
        label for task in piaget.stream("fashion", 0, small_data, tasks=30) for label in labels_of(task)
    }


@NOT_PUBLIC
@pytest.mark.parametrize("name", [n for n in STREAMS if "train_size" in stream_options(n)])
def test_training_data_can_be_limited(name, small_data):
    size = 12
    limited, whole = piaget.stream(name, 2, small_data, train_size=size), piaget.stream(name, 2, small_data)
    for few, all_ in zip(limited, whole, strict=True):
        assert len(few.train) == min(size, len(all_.train))
        assert len(held_out_of(few)) == len(held_out_of(all_))
        rows = {tuple(x.flatten().tolist()) for x in all_.train.x}
        assert all(tuple(x.flatten().tolist()) in rows for x in few.train.x)
    with pytest.raises(SettingError, match="train_size=0"):
        piaget.stream(name, 2, small_data, train_size=0)[0]


@NOT_PUBLIC
def test_combined_is_the_three_streams(small_data):
    combined = piaget.stream("combined", 6, small_data)
    parts = {name: piaget.stream(name, 6, small_data) for name in ("mnist", "fashion", "cub")}
    assert len(combined) == 40
    assert sorted(names_of(combined)) == sorted(name for part in parts.values() for name in names_of(part))
    assert names_of(combined) != [name for part in parts.values() for name in names_of(part)]
    by_name = {task.name: task for part in parts.values() for task in part}
    for task in combined:
        assert task.fingerprint() == by_name[task.name].fingerprint()
        assert task.stream == "combined"


@NOT_PUBLIC
def test_pixels_of_a_four(small_data):
    import gzip

    stream = piaget.stream("pixel-mnist", 0, small_data)
    assert len(stream) == 10
    raw = gzip.decompress((small_data / "mnist" / "train-images-idx3-ubyte.gz").read_bytes())[16:]
    fours = [p for p in np.frombuffer(raw, "u1").reshape(-1, 28, 28) if p[0, 0] == 4]
    drawn = []
    for task in stream:
        assert (task.kind, task.input_shape, len(task.train)) == ("binary", (2,), 784)
        picture = np.zeros((28, 28), int)
        for (row, column), ink in zip(task.train.x.tolist(), task.train.y.tolist(), strict=True):
            picture[round(row * 27), round(column * 27)] = ink
        same = [i for i, four in enumerate(fours) if np.array_equal(four / four.max() > 0.3, picture == 1)]
        assert len(same) == 1
        drawn += same
        assert torch.equal(held_out_of(task).x, task.train.x)
        assert torch.equal(validation_of(task).y, task.train.y)
    assert len(set(drawn)) == 10
    with pytest.raises(DataError, match="pictures of the digit 4"):
        piaget.stream("pixel-mnist", 0, small_data, tasks=10_000)


@NOT_PUBLIC
def test_linear_data_keeps_its_tasks(small_data):
    import scipy.io

    content = scipy.io.loadmat(small_data / "ella" / "londonschools.mat")
    stream = piaget.stream("schools", 8, small_data)
    assert names_of(stream) != sorted(names_of(stream))
    assert sorted(names_of(stream))[:2] == ["schools-000", "schools-001"]
    for task in stream:
        number = int(task.name.removeprefix("schools-"))
        x = torch.cat([task.train.x, held_out_of(task).x]).numpy()
        y = torch.cat([task.train.y, held_out_of(task).y]).numpy()
        theirs = {
            row.tobytes(): value
            for row, value in zip(
                content["feature"][0, number].astype(np.float32),
                content["label"][0, number].ravel(),
                strict=True,
            )
        }
        assert {row.tobytes(): value for row, value in zip(x, y, strict=True)} == theirs
    divided = piaget.stream("landmine", 8, small_data, fractions=(0.6, 0.2, 0.2))[0]
    assert len(validation_of(divided)) > 0


@NOT_PUBLIC
def test_alphabets(small_data):
    stream = piaget.stream("omniglot", 0, small_data)
    assert len(stream) == 7
    assert sorted(names_of(stream)) == sorted(
        [f"b{i}_alphabet" for i in range(3)] + [f"e{i}_alphabet" for i in range(4)]
    )
    task = next(t for t in stream if t.name == "e3_alphabet")
    assert task.classes == 6
    assert labels_of(task)[0] == "character01"
    assert [len(s) for _, s in task.splits()] == [48, 6, 6]
    assert set(task.train.x.unique().tolist()) == {0, 1}
    assert len(piaget.stream("omniglot", 0, small_data, tasks=2)) == 2
    with pytest.raises(SettingError, match="tasks=8; expected at most 7"):
        piaget.stream("omniglot", 0, small_data, tasks=8)


@NOT_PUBLIC
@pytest.mark.parametrize("name", ["mnist", "digits", "cub", "cifar100", "omniglot"])
def test_fewer_tasks_are_the_first_ones(name, small_data):
    few, all_ = (piaget.stream(name, 0, small_data, tasks=tasks) for tasks in (2, 5))
    assert [t.fingerprint() for t in few] == [t.fingerprint() for t in all_[:2]]


def test_digits_are_scikit_learns():
    theirs = load_digits()
    tasks = list(piaget.stream("digits", 0, tasks=60))
    pictures = {
        picture.astype(np.uint8).tobytes(): int(t)
        for picture, t in zip(theirs.images, theirs.target, strict=True)
    }
    seen = set()
    for task in tasks:
        for _, split in task.splits():
            for x, y in zip(split.x.numpy(), split.y.tolist(), strict=True):
                assert pictures[x.tobytes()] == labels_of(task)[y]
                seen.add(x.tobytes())
    assert len(seen) == len(pictures)
    assert tasks[0].scaling.divisor == 16


def test_digits_are_learned():
    """Real pictures, end to end, in seconds."""
    stream = piaget.stream("digits", 0)
    learner = piaget.Learner("soft-ordering", "er", "compositional", epochs=30, seed=0)
    for task in stream[:6]:
        rows = learner.learn(task, evaluate_on=stream[:6])
    final = [row["value"] for row in rows if row["metric"] == "accuracy"]
    assert len(final) == 6
    assert np.mean(final) > 0.9


# --- what is not there ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("mnsit", {}, "did you mean 'mnist'"),
        ("nothing like it", {}, "known: objects"),
        ("objects", {"setting": "square"}, "expected one of random"),
        ("digits", {"colour": "red"}, "no option 'colour'; its options are tasks, train_size"),
        ("digits", {"tasks": 0}, "tasks=0"),
        ("digits", {"seed": -1}, "seed=-1"),
        ("digits", {"seed": 1.5}, "seed=1.5"),
        ("digits", {"train_size": "20"}, "train_size='20'"),
        ("objects-circle", {"setting": "orange"}, "expected one of them to say it"),
        ("digits", {"train_size": 1}, "one sample of each class"),
        ("cub", {"features": 3}, "features=3; expected a name"),
    ],
)
def test_wrong_names_and_options(name, options, message):
    with pytest.raises(SettingError, match=re.escape(message)):
        piaget.stream(name, **options)[0]


def test_a_data_folder_that_is_none(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        piaget.stream("mnist", 0, tmp_path / "nowhere")


@NOT_PUBLIC
def test_other_features_of_birds(small_data, tmp_path):
    from tests.data_files import write_features

    write_features(tmp_path / "cub", "mine", features=7)
    write_features(tmp_path / "cub", "odd", features=7)
    (tmp_path / "cub" / "test_odd.mat").unlink()
    assert piaget.stream("cub", 0, tmp_path, features="mine")[0].input_shape == (7,)
    pattern = str(tmp_path / "cub" / "{split}_mine.mat")
    assert piaget.stream("cub", 0, features=pattern)[0].input_shape == (7,)
    assert piaget.stream("cub", 0, tmp_path, features="mine")[0].stream == "cub/mine"  # results are filed so
    assert piaget.stream("cub", 0, features=pattern)[0].stream == "cub/own_mine.mat"
    with pytest.raises(DataError, match=r"cub/train_other.mat is missing") as error:
        piaget.stream("cub", 0, tmp_path, features="other")
    assert "Features of CUB that are there: mine; choose by the option features" in str(error.value)
    assert "With a network" not in str(error.value)


def test_seeds_of_numpy():
    one, same = piaget.stream("digits", cast(int, np.int64(3))), piaget.stream("digits", 3)
    assert one[0].fingerprint() == same[0].fingerprint()
