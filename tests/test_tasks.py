"""Tasks are checked when they are made; errors name the task, what was found, what is expected."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

import piaget
from piaget.data.tasks import split_rows
from tests.small import held_out_of

X, Y = np.arange(40.0).reshape(20, 2), np.array([0, 1] * 10)
ARRAY: Any = X  # what the types would not allow
FRACTION: Any = 2.0
RANKING: Any = "ranking"


def with_value(array, row, value):
    array = np.array(array, dtype=float)
    array[row] = value
    return array


def test_from_arrays_divides_at_random_and_alike():
    task = piaget.Task.from_arrays("t", X, Y)
    assert task.kind == "binary"
    assert [len(s) for _, s in task.splits()] == [12, 4, 4]
    for _, split in task.splits():
        assert split.y.double().mean() == 0.5
    rows = torch.cat([s.x for _, s in task.splits()])
    assert sorted(rows[:, 0].tolist()) == X[:, 0].tolist()
    again = piaget.Task.from_arrays("t", X, Y)
    assert torch.equal(task.train.x, again.train.x)
    other = piaget.Task.from_arrays("t", X, Y, seed=1)
    assert not torch.equal(task.train.x, other.train.x)


def test_given_splits_are_kept():
    task = piaget.Task.from_arrays("t", X, Y, test=(X[:4], Y[:4]))
    assert len(task.train) == 20
    assert task.validation is None
    assert len(held_out_of(task)) == 4


@pytest.mark.parametrize(
    ("y", "kind", "labels"),
    [
        (Y, "binary", None),
        (np.arange(20) % 3, "multiclass", None),
        (Y.astype(bool), "binary", (False, True)),
        (Y.astype(float), "binary", None),
        (np.where(Y == 1, 7, 3), "binary", (3, 7)),
        (np.where(Y == 1, "yes", "no"), "binary", ("no", "yes")),
        (np.linspace(0, 1, 20), "regression", None),
    ],
)
def test_kinds_are_inferred(y, kind, labels):
    task = piaget.Task.from_arrays("t", torch.from_numpy(X), y)
    assert task.kind == kind
    assert task.labels == labels


def test_integer_targets_can_be_values():
    task = piaget.Task.from_arrays("t", X, np.arange(20), kind="regression")
    assert task.kind == "regression"
    assert task.train.y.is_floating_point()


def test_bytes_stay_bytes():
    images = np.zeros((20, 1, 4, 4), np.uint8)
    assert piaget.Task.from_arrays("t", images, Y).train.x.dtype == torch.uint8


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: piaget.Task.from_arrays("", X, Y), "a task's name is a non-empty text"),
        (lambda: piaget.Task.from_arrays("t", X[:, 0], Y), r"'t', train: inputs have shape \(20,\)"),
        (lambda: piaget.Task.from_arrays("t", X, Y[:5]), "'t', train: 20 inputs but 5 targets"),
        (lambda: piaget.Task.from_arrays("t", X, Y[:, None]), r"targets have shape \(20, 1\)"),
        (lambda: piaget.Task.from_arrays("t", with_value(X, 3, np.nan), Y), "'t', .*: NaN or infinite"),
        (lambda: piaget.Task.from_arrays("t", with_value(X, 3, np.inf), Y), "'t', .*: NaN or infinite"),
        (lambda: piaget.Task.from_arrays("t", X.astype(str), Y), "expected numbers"),
        (
            lambda: piaget.Task.from_arrays("t", [[1.0], [1.0, 2.0]], [0, 1]),
            "'t', train: inputs are no array",
        ),
        (lambda: piaget.Task.from_arrays("t", X[:0], Y[:0]), "'t', train: the split is empty"),
        (lambda: piaget.Task.from_arrays("t", X, with_value(Y, 0, np.inf)), "NaN or infinite targets"),
        (lambda: piaget.Task.from_arrays("t", X, [None, 1] * 10), "targets are of mixed types"),
        (
            lambda: piaget.Task.from_arrays("t", X, Y, classes=FRACTION),
            "classes=2.0; expected a whole number",
        ),
        (
            lambda: piaget.Split(ARRAY, ARRAY),
            "a split holds ndarray and ndarray; expected tensors",
        ),
        (
            lambda: piaget.Task(
                "t",
                "binary",
                piaget.Split(torch.zeros(2, 1), torch.tensor([0, 1])),
                classes=2,
                labels=(b"a", b"b"),
            ),
            "label b'a' is a bytes; expected texts or numbers",
        ),
        (lambda: piaget.Task.from_arrays("t", X, Y, classes=1), "multiclass with classes=1; expected 2"),
        (
            lambda: piaget.Task.from_arrays("t", X, Y * 4, classes=3),
            "labels run from 0 to 4; expected 0 to 2",
        ),
        (lambda: piaget.Task.from_arrays("t", X, Y - 1, classes=2), "labels run from -1"),
        (lambda: piaget.Task.from_arrays("t", X, Y + 0.5, kind="binary"), "label 0.5 is not a whole number"),
        (lambda: piaget.Task.from_arrays("t", X, Y, classes=3), "no train sample of class 2; every class"),
        (lambda: piaget.Task.from_arrays("t", X, Y * 0), "all targets are 0; expected two classes"),
        (
            lambda: piaget.Task.from_arrays("t", X, np.arange(20) % 3, kind="binary"),
            "binary, but there are 3",
        ),
        (
            lambda: piaget.Task.from_arrays("t", X, Y, kind=RANKING),
            "expected one of binary, multiclass",
        ),
        (lambda: piaget.Task.from_arrays("t", X[:3], [0, 1, 0]), "too few to divide"),
        (lambda: piaget.Task.from_arrays("t", X, Y, test=(X[:0], Y[:0])), "'t', test: the split is empty"),
        (
            lambda: piaget.Task.from_arrays("t", X, Y, test=(X[:, :1], Y)),
            r"'t', test: inputs have shape \(1,\)",
        ),
        (lambda: piaget.Task.from_arrays("t", X, with_value(Y, 0, np.nan), kind="regression"), "finite"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(piaget.TaskError, match=message):
        make()


def test_a_class_missing_from_test_only_warns():
    with pytest.warns(UserWarning, match="'t': no test sample of class 1"):
        piaget.Task.from_arrays("t", X, Y, test=(X[::2], Y[::2]))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=8, max_size=200), st.integers(0, 2**31 - 1))
def test_splits_are_disjoint_complete_and_repeatable(labels, seed):
    y = torch.tensor(labels)
    parts = split_rows(y, 4, (0.5, 0.2, 0.3), seed)
    rows = torch.cat(parts)
    assert sorted(rows.tolist()) == list(range(len(y)))
    for c in range(4):
        share = int((y[parts[0]] == c).sum())
        assert share == round(0.5 * int((y == c).sum()))
    assert all(torch.equal(a, b) for a, b in zip(parts, split_rows(y, 4, (0.5, 0.2, 0.3), seed), strict=True))
