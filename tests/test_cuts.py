"""The cutting functions, for any sizes: what may never happen does not."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from piaget.data.tasks import split_rows
from piaget.errors import SettingError
from piaget.streams import cuts

seeds = st.integers(0, 2**32 - 1)


@st.composite
def shares(draw):
    train, validation = draw(st.integers(1, 100)), draw(st.integers(0, 100))
    test = draw(st.integers(0, 100))
    total = train + validation + test
    return train / total, validation / total, test / total


@given(seeds, st.integers(0, 500), shares())
def test_every_row_is_in_one_part(seed, n, fractions):
    parts = cuts.divide(np.random.default_rng(seed), n, fractions)
    assert sorted(np.concatenate(parts).tolist()) == list(range(n))
    for part, share in zip(parts[:2], fractions, strict=False):
        assert share * n - 1 < len(part) <= share * n + 1e-6 or fractions[2] == 0
    if fractions[2] == 0:
        assert len(parts[2]) == 0
    if fractions[1] == 0 and fractions[2] > 0:
        assert len(parts[1]) == 0


@given(seeds, st.integers(30, 200))
def test_the_seed_decides(seed, n):
    """The same seed, the same rows and classes; another seed, others."""
    y = np.arange(n) % 5

    def cut(seed):
        rng = np.random.default_rng(seed)
        rows = cuts.divide(rng, n, (0.6, 0.2, 0.2))
        all_classes = cuts.divide_with_all_classes(rng, y, (0.6, 0.2, 0.2))
        classes = cuts.draw_classes(rng, 50, 5, 8, reuse=True)
        return [part.tolist() for part in rows], [part.tolist() for part in all_classes], classes

    assert cut(seed) == cut(seed)
    assert all(mine != theirs for mine, theirs in zip(cut(seed), cut(seed + 1), strict=True))


@given(seeds, st.integers(1, 5), st.integers(1, 60), shares())
def test_rows_divided_class_by_class(seed, classes, n, fractions):
    y = torch.arange(n) % classes
    parts = split_rows(y, classes, fractions, seed % 2**31)
    assert sorted(torch.cat(parts).tolist()) == list(range(n))
    for part, share in zip(parts, fractions, strict=True):
        if share == 0:
            assert len(part) == 0
        for c in range(classes):
            count, size = int((y[part] == c).sum()), int((y == c).sum())
            assert abs(count - share * size) <= 1
    again = split_rows(y, classes, fractions, seed % 2**31)
    assert all(torch.equal(mine, same) for mine, same in zip(parts, again, strict=True))


@given(seeds, st.integers(1, 4), st.integers(1, 30), shares())
def test_what_is_usable_makes_a_task(seed, classes, n, fractions):
    """`unusable` says no exactly when a task cannot be made with all the parts asked for."""
    y = np.arange(n) % classes
    rows = cuts.divide(np.random.default_rng(seed), n, fractions)
    reason = cuts.unusable(y, rows, fractions)
    whole = all(len(part) for part, share in zip(rows, fractions, strict=True) if share)
    fine = len(set(y)) > 1 and whole and set(y[rows[0]]) == set(y)
    assert (reason is None) == fine
    if fine:
        labels = sorted(set(y.tolist()))
        parts = cuts.of_rows(np.zeros((n, 2), np.float32), y, rows)
        task = cuts.make_task("t", "multiclass", parts, stream="s", labels=labels)
        assert sum(len(split) for _, split in task.splits()) == n


def test_the_papers_sizes():
    rng = np.random.default_rng(0)
    assert [len(p) for p in cuts.divide(rng, 445, (0.5, 0, 0.5))] == [222, 0, 223]
    assert [len(p) for p in cuts.divide(rng, 280, (0.8, 0.1, 0.1))] == [224, 28, 28]
    assert [len(p) for p in cuts.divide(rng, 1100, (0.8, 0.1, 0.1))] == [880, 110, 110]
    assert [len(p) for p in cuts.divide(rng, 60000, (0.8, 0.2, 0))] == [48000, 12000, 0]


@given(seeds, st.integers(2, 60), st.data())
def test_without_reuse_no_class_is_in_two_tasks(seed, classes, data):
    per_task = data.draw(st.integers(2, classes))
    tasks = data.draw(st.one_of(st.none(), st.integers(1, classes // per_task)))
    drawn = cuts.draw_classes(np.random.default_rng(seed), classes, per_task, tasks, reuse=False)
    flat = [c for task in drawn for c in task]
    assert len(flat) == len(set(flat))
    assert set(flat) <= set(range(classes))
    assert {len(task) for task in drawn} == {per_task}
    assert len(drawn) == (tasks or classes // per_task)


@given(seeds, st.integers(2, 60), st.integers(1, 30), st.data())
def test_with_reuse_no_class_is_twice_in_a_task(seed, classes, tasks, data):
    per_task = data.draw(st.integers(2, classes))
    drawn = cuts.draw_classes(np.random.default_rng(seed), classes, per_task, tasks, reuse=True)
    assert len(drawn) == tasks
    for task in drawn:
        assert len(set(task)) == len(task) == per_task
        assert set(task) <= set(range(classes))


@pytest.mark.parametrize(("per_task", "tasks"), [(1, 1), (11, 1), (5, 3), (2, 0), (2, 1.5), (2, True)])
def test_impossible_classes_are_refused(per_task, tasks):
    with pytest.raises(SettingError, match="expected"):
        cuts.draw_classes(np.random.default_rng(0), 10, per_task, tasks, reuse=False)


@given(seeds, st.integers(2, 6), st.integers(6, 80), st.integers(1, 100))
def test_limited_training_rows(seed, classes, n, size):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % classes)
    rows = rng.permutation(n)
    if size < classes and size < n:
        with pytest.raises(SettingError, match="one sample of each class"):
            cuts.limit(rows, y, size, "multiclass")
        return
    kept = cuts.limit(rows, y, size, "multiclass")
    assert len(kept) == min(size, n)
    assert set(y[kept]) == set(range(classes))
    assert len(set(kept.tolist())) == len(kept)
    at = [rows.tolist().index(r) for r in kept]
    assert at == sorted(
        at
    )  # in the order of the rows: more samples only add to fewer, but for the first ones
    assert (
        cuts.limit(rows, y, min(size, n - 1) or 1, "regression").tolist()
        == rows[: min(size, n - 1) or 1].tolist()
    )


@given(seeds, st.integers(2, 5), st.integers(20, 60))
@settings(max_examples=30)
def test_a_class_task(seed, per_task, n):
    """What ends up in a task is of its classes, correctly numbered, and each sample once."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 6)
    x = np.stack([y, np.arange(n)], 1).astype(np.uint8)
    rows = cuts.divide_with_all_classes(rng, y, (0.6, 0.2, 0.2))
    classes = cuts.draw_classes(rng, 6, per_task, 3, reuse=True)
    for chosen in classes:
        names = [f"class {c}" for c in range(6)]
        task = cuts.classes_task("t", cuts.of_rows(x, y, rows), chosen, names, stream="s")
        numbers = []
        for _, split in task.splits():
            assert [chosen[i] for i in split.y.tolist()] == split.x[:, 0].tolist()
            numbers += split.x[:, 1].tolist()
        assert sorted(numbers) == np.flatnonzero(np.isin(y, chosen)).tolist()
        assert task.labels == tuple(f"class {c}" for c in chosen)
        assert task.kind == ("binary" if per_task == 2 else "multiclass")


@pytest.mark.parametrize("fractions", [(0.5, 0.5), (0.5, 0.6, 0.1), (-0.5, 1.0, 0.5), (0.0, 0.5, 0.5)])
def test_wrong_fractions(fractions):
    with pytest.raises(SettingError, match="three shares"):
        cuts.divide(np.random.default_rng(0), 10, fractions)
