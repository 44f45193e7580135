"""Balanced replay: a share of each batch is of stored samples, and past tasks count alike."""

import math
from dataclasses import dataclass
from typing import Any, cast

import pytest
import torch

import piaget
from piaget.engine.orders import balanced, batch_counts
from piaget.recording import observed_by
from tests.small import binary_tasks, make_task
from tests.test_extending import SMALL


def plans_of(learner, tasks):
    """Every plan that is drawn in epochs that adapt: (task, whose row is in each place or -1, rows)."""
    seen = []

    def observe(event, value, **where):
        if event == "plan" and where["stage"].kind.adapts:
            bank, stage = where["part"].banks[0], where["stage"]
            whose = torch.zeros_like(bank.targets.column) if bank.task is None else bank.task
            placed = whose[value.index].masked_fill(~value.weight, -1)
            seen.append((stage.data[-1].record.name, placed, value.index))
        return value

    with observed_by(observe):
        for task in tasks:
            learner.learn(task)
    return seen


@pytest.mark.parametrize("algorithm", ["dynamic", "joint", "no-components"])
@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.8])
def test_each_batch_has_its_share_and_tasks_count_alike(algorithm, share):
    """Tasks of different sizes, which store different numbers of samples."""
    tasks = [make_task(f"task {i}", "binary", 2, n=n, seed=i) for i, n in enumerate((3, 40, 9, 30, 26))]
    learner = piaget.Learner(**SMALL, adaptation=piaget.Replay(6, share), algorithm=algorithm, epochs=4)
    stored = max(1, round(share * 8))
    for name, placed, index in plans_of(learner, tasks):
        number = int(name.split()[1])
        n = len(tasks[number].train)
        assert len(placed) == math.ceil(n / (8 - stored))
        own = index[placed == 0]
        assert sorted(own.tolist()) == list(range(n)), "each of the task's own samples is seen once"
        assert ((placed > 0).sum(1)[:-1] == stored).all()
        last = placed[-1]
        assert int((last > 0).sum()) == math.ceil(stored * int((last == 0).sum()) / (8 - stored))
        counts = placed[placed > 0].bincount()[1:]
        assert len(counts) == min(number, int((placed > 0).sum())), "every past task takes part"
        assert counts.max() - counts.min() <= 1
        for batch in placed:
            of_batch = batch[batch > 0].bincount(minlength=number + 1)[1:]
            assert of_batch.max() - of_batch.min() <= 2
        for task, count in enumerate(counts.tolist(), 1):
            rows = index[placed == task].bincount()
            rows = rows[rows > 0]
            assert len(rows) == min(count, 3 if task == 1 else 6), "a task's stored samples take turns"
            assert rows.max() - rows.min() <= 1


def test_samples_of_another_form_have_their_tasks_portion():
    """Images of another size make a part of their own."""
    tasks = [
        make_task(f"task {i}", "binary", 2, (2, s, s), n=20, seed=i) for i, s in enumerate((10, 12, 10, 10))
    ]
    learner = piaget.Learner(
        adaptation=piaget.Replay(5, 0.5),
        algorithm="joint",
        components=piaget.Conv(3),
        depth=2,
        initial_components=2,
        initial_tasks=2,
        epochs=1,
        batch_size=8,
    )
    (_, joined, _), (_, apart, _) = plans_of(learner, tasks)[-2:]
    assert int((joined == 0).sum()) == 20
    counts = [*joined[joined > 0].bincount()[1:].tolist(), int((apart > 0).sum())]
    assert len(counts) == 3
    assert sum(counts) == pytest.approx(20, abs=3), "as many stored samples as of its own"
    assert max(counts) - min(counts) <= 2, "all past tasks count alike"


def test_all_samples_in_one_batch():
    """New stored samples are drawn each epoch."""
    learner = piaget.Learner(
        "linear", piaget.Replay(4, 0.4), "joint", epochs=3, initial_tasks=2, initial_components=2
    )
    plans = [placed for name, placed, _ in plans_of(learner, binary_tasks(3)) if name == "task 2"]
    assert len(plans) == 3
    for placed in plans:
        assert placed.shape[0] == 1
        assert [int((placed == t).sum()) for t in range(3)] == [30, 10, 10]


@pytest.mark.parametrize("own", [1, 7, 30])
@pytest.mark.parametrize("size", [2, 3, 32])
@pytest.mark.parametrize("places", [0.01, 1, 30, 1e6])
def test_counts_of_batches(own, size, places):
    counts = batch_counts(own, places, size)
    assert sum(fresh for fresh, _ in counts) == own
    assert all(fresh >= 1 and stored >= 1 and fresh + stored <= size for fresh, stored in counts)
    assert all(sum(batch) == size for batch in counts[:-1])
    alone = batch_counts(0, places, size)
    assert sum(stored for _, stored in alone) == max(1, round(places))
    assert all(fresh == 0 and 1 <= stored <= size for fresh, stored in alone)


def test_rows_take_turns_in_a_drawn_order():
    lengths = torch.tensor([3, 1, 5])
    generator = torch.Generator().manual_seed(0)
    rows = balanced(lengths, 31, generator)
    of_tasks = [rows[(rows >= a) & (rows < b)] for a, b in ((0, 3), (3, 4), (4, 9))]
    assert sorted(len(r) for r in of_tasks) == [10, 10, 11]
    for own, length in zip(of_tasks, lengths.tolist(), strict=True):
        assert sorted(own[:length].tolist()) == sorted(set(own.tolist()))
        assert torch.equal(own[length:], own[:-length]), "in turns"
    orders = {tuple(balanced(lengths, 9, generator).tolist()) for _ in range(20)}
    assert len(orders) == 20


def test_the_share_is_a_field_of_ones_own_adaptations():
    @dataclass(frozen=True)
    class Mine(piaget.SampleMemory):
        share: float | None = 0.75
        name = "mine"

    learner = piaget.Learner(**SMALL, adaptation=Mine(4), algorithm="joint", epochs=1)
    placed = plans_of(learner, binary_tasks(3))[-1][1]
    assert ((placed > 0).sum(1) == 6).all()


def test_more_stored_samples_are_heard_where_the_task_is_large():
    """What it is for: with a large task, the union drowns stored samples; a share does not."""

    def forgotten(share):
        small, large = binary_tasks(2, n=40), make_task("large", "binary", 2, n=1500, seed=7)
        settings = SMALL | {"dropout": 0.0, "batch_size": 32, "encoder": "none", "width": 6}
        learner = piaget.Learner(
            **settings, adaptation=piaget.Replay(40, share), algorithm="joint", epochs=10
        )
        for task in (*small, large):
            learner.learn(task)
        return sum(row["value"] for row in learner.evaluate(small, "train") if row["metric"] == "loss")

    assert forgotten(0.5) < 0.5 * forgotten(None)


def test_mistakes():
    for wrong in (0, 1, -0.5, 2, "half", float("nan")):
        with pytest.raises(piaget.SettingError, match=r"share=.*: expected a number above 0 and below 1"):
            piaget.Replay(share=cast(Any, wrong))
    with pytest.raises(piaget.SettingError, match=r"batch_size=1 with share=0\.5"):
        piaget.Learner(replay_share=0.5, batch_size=1)
    with pytest.raises(piaget.SettingError, match="replay_share is not a setting of KroneckerEWC"):
        piaget.Learner(adaptation="ewc", replay_share=0.5)


def test_what_is_not_chosen_is_not_written(tmp_path):
    """So that older descriptions are read, and are those of the same method."""
    from piaget.method.description import from_json, to_json

    plain = piaget.Learner(replay_size=5).settings
    assert to_json(plain)["adaptation"] == {"part": "Replay", "size": 5}
    assert from_json(to_json(plain), {}) == plain
    shared = piaget.Learner(replay_size=5, replay_share=0.5).settings
    assert to_json(shared)["adaptation"] == {"part": "Replay", "size": 5, "share": 0.5}
    assert from_json(to_json(shared), {}) == shared
