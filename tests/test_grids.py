"""The stream of grids: its factors, told again from the pictures; its parts; what shortcuts reach."""

import itertools

import numpy as np
import pytest
import torch

import piaget
from piaget.errors import SettingError
from piaget.streams.grids import CELLS, FEW_SHOT, LABELS, RULES, TRANSFORMATIONS, Grids
from tests.small import held_out_of, labels_of, validation_of

NOT_PUBLIC = pytest.mark.filterwarnings("ignore::piaget.errors.DataNote")
PLACES = {"top": "01", "bottom": "23", "left": "02", "right": "13", "falling": "03", "rising": "21"}


def grids(seed=0, **options) -> Grids:
    stream = piaget.stream("grids", seed, **({"tasks": 60, "tests": 6} | options))
    assert isinstance(stream, Grids)
    return stream


def thickened(glyph):
    out = np.zeros_like(glyph)
    height, width = glyph.shape
    for i, j in itertools.product(range(height), range(width)):
        out[i, j] = glyph[i : i + 2, j : j + 2].max()
    return out


def transformed(glyph, transformation):
    """Pixel by pixel."""
    side = len(glyph)
    out = np.zeros_like(glyph)
    if transformation == "thick":
        return thickened(glyph)
    for i, j in itertools.product(range(side), range(side)):
        out[i, j] = {
            "none": glyph[i, j],
            "rotated": glyph[j, side - 1 - i],
            "mirrored": glyph[i, side - 1 - j],
            "inverted": 255 - glyph[i, j],
        }[transformation]
    return out


def answer(rule, first, second):
    """What a picture's label is to be."""
    return {
        "and": "yes" if first and second else "no",
        "or": "yes" if first or second else "no",
        "xor": "yes" if first != second else "no",
        "count": int(first) + int(second),
        "which": "first" if first else "second" if second else "neither",
    }[rule]


def glyphs_shown(stream, transformation, split):
    """{a cell's bytes: glyph}, of all pictures of glyphs for one purpose."""
    return {
        transformed(picture, transformation).tobytes(): name
        for name, pictures in zip(stream.glyphs.names, stream.glyphs.pictures[split], strict=True)
        for picture in pictures
    }


def seen_in(task, split, known):
    """The glyphs in the four cells of each picture."""
    side = task.input_shape[-1] // 2
    for x in dict(task.splits())[split].x.numpy()[:, 0]:
        rows = (x[:side], x[side:])
        yield [known[half.tobytes()] for row in rows for half in (row[:, :side].copy(), row[:, side:].copy())]


@pytest.mark.parametrize(("glyphs", "seed"), [("digits", 0), ("digits", 1), ("shapes", 2)])
def test_labels_follow_from_the_pictures(glyphs, seed):
    stream = grids(seed, glyphs=glyphs, tasks=40, tests=4)
    looked_at = set()
    for i in range(0, len(stream), 2):
        task, planned = stream[i], stream.plan[i]
        combination = planned.combination
        looked_at.add((combination.rule, combination.transformation))
        first, second = map(int, PLACES[combination.cells])
        for split in ("train", "validation", "test"):
            known = glyphs_shown(stream, combination.transformation, split)  # of this split alone
            labels = [labels_of(task)[y] for y in dict(task.splits())[split].y.tolist()]
            for cells, label in zip(seen_in(task, split, known), labels, strict=True):
                facts = cells[first] == combination.first, cells[second] == combination.second
                assert label == answer(combination.rule, *facts)
                assert not (combination.rule == "which" and all(facts))
                new = set(cells) & set(stream.new_glyphs)
                assert new <= ({combination.first, combination.second} if planned.part == "novel" else set())
    assert {rule for rule, _ in looked_at} == set(RULES)
    assert len({transformation for _, transformation in looked_at}) >= 4


@pytest.mark.parametrize("seed", range(4))
def test_parts_are_what_they_are_called(seed):
    stream = grids(seed, tasks=80, tests=12)
    parts = {
        part: [planned for planned in stream.plan if planned.part == part] for part in ("training", *FEW_SHOT)
    }
    assert [len(tasks) for tasks in parts.values()] == [80, 12, 12, 12, 12]
    training = [planned.combination for planned in parts["training"]]
    assert len(set(training)) == 80
    values = [set(column) for column in zip(*training, strict=True)]
    new = {*stream.new_glyphs, stream.new_transformation}
    together = {(c.transformation, c.rule) for c in training}
    assert not any(set(combination) & new for combination in training)

    def is_of_seen_values(combination):
        return all(value in seen for value, seen in zip(combination, values, strict=True))

    for planned in parts["seen"]:
        assert planned.base is not None
        assert planned.combination == training[planned.base]
    for planned in parts["systematic"]:
        combination = planned.combination
        assert is_of_seen_values(combination)
        assert (combination.transformation, combination.rule) not in together
    for planned in parts["substitutive"]:
        assert planned.base is not None
        combination, base = planned.combination, training[planned.base]
        assert is_of_seen_values(combination)
        assert combination not in training
        assert (combination.transformation, combination.rule) in stream_pairs(stream)
        assert [f for f in base._fields if getattr(base, f) != getattr(combination, f)] == [planned.changed]
    for planned in parts["novel"]:
        unseen = [
            factor
            for factor, value, seen in zip(
                planned.combination._fields, planned.combination, values, strict=True
            )
            if value not in seen
        ]
        assert unseen == [planned.changed]
    for part in FEW_SHOT:
        assert len({planned.combination for planned in parts[part]}) == 12
    others = [{planned.combination for planned in parts[part]} for part in FEW_SHOT[1:]]
    assert not set.union(*others) & set(training)
    assert sum(map(len, others)) == len(set.union(*others))


def stream_pairs(stream):
    """Transformations and rules that training may bring together."""
    pairs = itertools.product(stream.values["transformation"], stream.values["rule"])
    return set(pairs) - stream.apart


def test_each_value_is_used_again_and_again():
    stream = grids(0, tasks=300, tests=0)
    for factor, values in stream.values.items():
        counts = dict.fromkeys(values, 0)
        for planned in stream.plan:
            counts[getattr(planned.combination, factor)] += 1
        assert min(counts.values()) > 300 / len(values) / 2


def test_samples_and_classes():
    stream = grids(1)
    names = set()
    for i, task in enumerate(stream):
        names.add(task.name)
        classes = len(LABELS[stream.plan[i].combination.rule])
        training = stream.plan[i].part == "training"
        sizes = (240, 60) if training else (10 * classes, 10 * classes)
        assert (len(task.train), len(validation_of(task))) == sizes
        assert len(held_out_of(task)) == 120
        assert task.classes == classes
        for _, split in task.splits():
            assert torch.bincount(split.y).tolist() == [len(split) // classes] * classes
    assert len(names) == len(stream) == 60 + 4 * 6
    assert stream[0].name == "grids-00"
    assert stream[-1].name == "grids-novel-05"


def test_options():
    one = grids(3, shots=2, train_size=100)
    assert len(one[0].train) == 100
    assert len(one[-1].train) in (4, 6)
    more = grids(3, train_size=1000)[0]
    assert torch.equal(more.train.x[:100], one[0].train.x)
    assert torch.equal(held_out_of(more).x, held_out_of(one[0]).x)
    few, many = grids(3, tasks=20), grids(3, tasks=90)
    assert [t.combination for t in few.plan[:20]] == [t.combination for t in many.plan[:20]]
    assert few[7].fingerprint() == many[7].fingerprint()
    assert [t.combination for t in grids(4).plan] != [t.combination for t in grids(3).plan]
    assert len(grids(0, tests=0)) == 60


def test_more_tasks_than_combinations_repeat_them_with_other_pictures():
    stream = grids(0, tasks=8000, tests=0, glyphs="shapes")
    combinations = [planned.combination for planned in stream.plan]
    assert len(set(combinations)) < len(combinations)
    last = combinations[-1]
    twice = [i for i, combination in enumerate(combinations) if combination == last]
    assert len(twice) > 1
    assert not torch.equal(stream[twice[0]].train.x, stream[twice[1]].train.x)


@NOT_PUBLIC
@pytest.mark.parametrize(("glyphs", "side"), [("mnist", 28), ("omniglot", 30), ("shapes", 24)])
def test_other_glyphs(glyphs, side, small_data):
    stream = piaget.stream("grids", 0, small_data, glyphs=glyphs, tasks=40, tests=2)
    assert stream[0].input_shape == (1, side, side)
    assert stream[0].stream == f"grids/{glyphs}"
    assert len({task.fingerprint() for task in stream}) == 48


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"glyphs": "letters"}, "glyphs='letters'; expected one of digits, mnist, omniglot, shapes"),
        ({"shots": 0}, "shots=0"),
        ({"tests": -1}, "tests=-1"),
        ({"tasks": 10**6}, "at most 100,000"),
        ({"tasks": 1}, "tasks=1, tests=6: too few combinations for seen tasks; expected more training tasks"),
        ({"train_size": 2}, "train_size=2; expected 3 or more"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(SettingError, match=message):
        grids(0, **options)


# --- how hard tasks are -----------------------------------------------------------------------------------


def stump(train, test, classes):
    """The best threshold on one number a sample: each side gets its most frequent class."""
    best, score = None, -1.0
    for threshold in np.unique(train[0])[:-1]:
        sides = [train[1][train[0] <= threshold], train[1][train[0] > threshold]]
        counts = [np.bincount(side, minlength=classes) for side in sides]
        right = sum(count.max() for count in counts) / len(train[1])
        if right > score:
            best, score = (threshold, [count.argmax() for count in counts]), right
    if best is None:  # the same for all
        return 1 / classes
    said = np.where(test[0] <= best[0], best[1][0], best[1][1])
    return float((said == test[1]).mean())


def numbers(split):
    return split.x.flatten(1).numpy().astype(float), split.y.numpy()


@pytest.mark.parametrize("seed", [0, 1])
def test_no_shortcut_by_brightness_or_a_pixel(seed):
    """One number, a picture's brightness or its most telling pixel, is far from what a network reaches: 0 is
    chance, and 1 is perfect."""
    stream = grids(seed, tests=0, train_size=600)
    brightness: dict[str, list[float]] = {}
    pixels: dict[str, list[float]] = {}
    for i in range(0, 60, 2):
        task, rule = stream[i], stream.plan[i].combination.rule
        (x, y), (x_test, y_test) = numbers(task.train), numbers(held_out_of(task))
        means = np.stack([x[y == c].mean(0) for c in range(task.classes)])
        pixel = (np.ptp(means, 0) / (x.std(0) + 1)).argmax()
        for found, train, test in (
            (brightness, x.mean(1), x_test.mean(1)),
            (pixels, x[:, pixel], x_test[:, pixel]),
        ):
            accuracy = stump((train, y), (test, y_test), task.classes)
            found.setdefault(rule, []).append((accuracy - 1 / task.classes) / (1 - 1 / task.classes))
    assert np.mean([score for of_rule in brightness.values() for score in of_rule]) < 0.15
    assert np.mean([score for of_rule in pixels.values() for score in of_rule]) < 0.45
    assert abs(np.mean(brightness["xor"])) < 0.1  # neither cell alone tells anything
    assert abs(np.mean(pixels["xor"])) < 0.1


@pytest.mark.slow
def test_a_network_alone_learns_tasks_of_every_rule_from_many_samples():
    stream = grids(0, tests=0, train_size=2400)
    learner = piaget.Learner(
        algorithm="alone", adaptation="fm", width=64, epochs=25, dropout=0.0, initial_tasks=1, seed=0
    )
    of_rule: dict[str, int] = {}
    for i, planned in enumerate(stream.plan):
        of_rule.setdefault(planned.combination.rule, i)
    scores = {}
    for rule, i in of_rule.items():
        rows = learner.learn(stream[i])
        scores[rule] = next(r["value"] for r in rows if r["metric"] == "accuracy")
    assert scores.keys() == RULES.keys()
    assert min(scores.values()) > 0.85


def test_the_tables_of_factors_are_complete():
    assert LABELS.keys() == RULES.keys()
    assert CELLS.keys() == PLACES.keys()
    assert all(len(RULES[rule]) == len(labels) for rule, labels in LABELS.items())
    assert set(TRANSFORMATIONS) == {"none", "rotated", "mirrored", "inverted", "thick"}
