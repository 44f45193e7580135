"""The Objects stream, against the appendix's description."""

import numpy as np
import pytest
import torch

import piaget
from piaget.streams.catalog import HELD_OUT
from piaget.streams.objects import COLOURS, LOCATIONS, SETTINGS, SHAPES, Drawing, Objects
from tests.small import labels_of


@pytest.mark.parametrize("setting", SETTINGS)
def test_sixteen_three_way_tasks(setting):
    stream = piaget.stream(f"objects-{setting}", seed=3)
    assert len(stream) == 16
    names = set()
    for task in stream:
        names.add(task.name)
        assert (task.kind, task.classes, task.input_shape) == ("multiclass", 3, (3, 28, 28))
        assert [len(s) for _, s in task.splits()] == [150, 60, 90]
        for _, split in task.splits():
            assert torch.bincount(split.y).tolist() == [len(split) // 3] * 3
            assert split.x.dtype == torch.uint8
        assert task.scaling.divisor == 255
        assert len(set(labels_of(task))) == 3
    assert len(names) == 16


def used(stream):
    return [label for task in stream for label in labels_of(task)]


def test_every_class_once_in_random():
    labels = used(piaget.stream("objects", seed=1))
    assert sorted(labels) == sorted(f"{s} {c} {l}" for s in SHAPES for c in COLOURS for l in LOCATIONS)


@pytest.mark.parametrize(("setting", "last"), HELD_OUT.items())
@pytest.mark.parametrize("seed", range(5))
def test_held_out_only_in_the_last_tasks(setting, last, seed):
    tasks = [labels_of(task) for task in piaget.stream(f"objects-{setting}", seed=seed)]
    for labels in tasks[:-last]:
        assert not any(setting in label.split(" ", 2) for label in labels)
    for labels in tasks[-last:]:
        assert all(setting in label.split(" ", 2) for label in labels)
    assert all(len(set(labels)) == 3 for labels in tasks)
    repeated = 48 - len({label for labels in tasks for label in labels})
    assert repeated == (1 if setting == "circle" else 0)


def test_everything_comes_from_the_seed():
    one, same, other = (piaget.stream("objects", seed=s) for s in (0, 0, 1))
    assert used(one) == used(same) != used(other)
    assert torch.equal(one[5].train.x, same[5].train.x)
    assert isinstance(one, Objects)
    assert isinstance(other, Objects)
    assert one.assignment != other.assignment
    assert [t.name for t in one[2:4]] == [one[2].name, one[3].name]
    assert one[-1].name == one[15].name
    with pytest.raises(IndexError):
        one[16]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("location", LOCATIONS)
def test_pictures_have_the_given_jitter(shape, location):
    rng = np.random.default_rng(0)
    images = Drawing().images(rng, shape, "blue", location)
    assert images.shape == (100, 3, 28, 28)
    row, column = divmod(LOCATIONS.index(location), 2)
    inside = (images != Drawing().background).any(1)  # (100, 28, 28)
    for picture in inside:
        ys, xs = np.nonzero(picture)
        assert len(xs)
        assert abs((xs.min() + xs.max() + 1) / 2 - (7 + 14 * column)) <= 4
        assert abs((ys.min() + ys.max() + 1) / 2 - (7 + 14 * row)) <= 4
        assert 2 <= np.ptp(xs) + 1 <= 7 * Drawing().extent + 1


def test_colours_stay_near_their_nominal_values():
    images = Drawing().images(np.random.default_rng(0), "square", "pink", "top-left")
    inside = (images != 0).any(1)
    red, green, blue = (images[:, c][inside].astype(int) for c in range(3))
    assert abs(red - 227).max() <= 16
    assert abs(green - 119).max() <= 16
    assert abs(blue - 194).max() <= 16


def test_values_beyond_a_byte_wrap_around_or_are_cut_off():
    """Orange has 255 red: half of its pictures would have more."""

    def reds(drawing):
        images = drawing.images(np.random.default_rng(0), "square", "orange", "top-left")
        return images[:, 0].reshape(100, -1)[images[:, 1].reshape(100, -1) > 0].astype(int)

    wrapped, cut = reds(Drawing()), reds(Drawing(wraps=False))
    assert set(np.unique(wrapped)) <= {*range(16), *range(239, 256)}
    assert 0.3 < (wrapped < 16).mean() < 0.7
    assert cut.min() >= 239


def test_unknown_names_and_options():
    with pytest.raises(piaget.SettingError, match="did you mean 'objects'"):
        piaget.stream("objcts")
    with pytest.raises(piaget.SettingError, match="expected one of random, circle"):
        Objects(0, "purple")
    with pytest.raises(piaget.SettingError, match=r"has no option .size.; its options are setting, drawing"):
        piaget.stream("objects", size=3)
