"""Bends of tasks' own: found where there are some, and carried through all that may happen to knowledge."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from piaget import prior
from piaget.prior import bending
from piaget.prior.bending import KNOTS, bumps_over, knots_of
from piaget.prior.features import Bend, Bumps
from piaget.prior.many import learn_many
from tests.test_prior import close, learned, made

KINDS = [("regression", 0), ("binary", 2), ("multiclass", 3)]


def waves(kind="regression", tasks=8, rows=60, seed=0):
    """{name: (x, y)}: along the first input, each task is a sine of its own phase."""
    g = torch.Generator().manual_seed(seed)
    data = {}
    for t in range(tasks):
        x = 4 * torch.rand(rows, 3, generator=g, dtype=torch.float64) - 2
        phase, weight = 1.5 * torch.randn(2, generator=g, dtype=torch.float64)
        z = 2 * torch.sin(2 * x[:, 0] + phase) + 0.3 * weight * x[:, 1]
        noise = torch.randn(rows, generator=g, dtype=torch.float64)
        if kind == "regression":
            y = 5 * z + noise + 100
        elif kind == "binary":
            y = (z + 0.3 * noise > 0).long()
        else:
            y = torch.bucketize(z + 0.3 * noise, torch.tensor([-1.0, 1.0]))
        data[f"t{t}"] = (x, y)
    return data


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind[0])
def wavy(request):
    """Rows of a kind, and knowledge of them."""
    kind, classes = request.param
    data = waves(kind, rows=60 if kind == "regression" else 120)
    return data, prior.settled(learn_many(prior.begin(kind, classes), data))


def loss(known, data):
    """The mean over tasks: squared error, or minus the logarithm of the right class's probability."""
    total = 0.0
    for name, (x, y) in data.items():
        if known.form.classes:
            total -= float(prior.probabilities(known, x, name).gather(1, y[:, None]).log().mean())
        else:
            total += float((prior.values(known, x, name).mean - y).square().mean())
    return total / len(data)


def straight(monkeypatch):
    """As if no input showed bends."""
    monkeypatch.setattr(bending, "telling", lambda now: [])


def test_bends_of_tasks_own_are_found(wavy, monkeypatch):
    _, known = wavy
    assert known.bent is not None
    assert known.bent.bumps.column.unique().tolist() == [0]
    later = waves(known.form.kind, rows=400)  # the same tasks: other draws would have other phases
    new = {name: (x[200:], y[200:]) for name, (x, y) in later.items()}
    few = {name: (x[:100], y[:100]) for name, (x, y) in later.items()}
    begun = prior.begin(known.form.kind, known.form.classes)
    bent = prior.settled(learn_many(begun, few))
    straight(monkeypatch)
    assert bent.bent is not None
    assert loss(bent, new) < 0.8 * loss(prior.settled(learn_many(begun, few)), new)


@pytest.mark.parametrize(("kind", "classes"), KINDS)
def test_where_tasks_do_not_bend_nothing_changes(kind, classes, monkeypatch):
    data = made(kind, rows=100)
    known = prior.settled(learned(data, kind, classes))
    assert known.bent is None
    straight(monkeypatch)
    close(known, prior.settled(learned(data, kind, classes)), data["t0"][0], "t0", tolerance=0.0)


def test_one_task_alone_has_no_bends_of_its_own():
    known = prior.settled(learned({"t0": waves(rows=400)["t0"]}, "regression"))
    assert known.bent is None
    assert known.correction is not None


def test_what_seems_bent_but_is_not_better_so_is_left_out(monkeypatch):
    data = made("regression", rows=100)
    as_usual = prior.settled(learned(data, "regression"))
    monkeypatch.setattr(bending, "telling", lambda now: [Bend(0, None), Bend(2, 0)])
    known = prior.settled(learned(data, "regression"))
    assert known.bent is None
    close(known, as_usual, data["t0"][0], "t0", tolerance=0.0)


def test_what_bends_by_chance_is_left_out():
    """Among many pairs of inputs, residuals of few rows show bends that are not there."""
    for seed in range(6):
        g = torch.Generator().manual_seed(seed)
        data = {}
        for t in range(4):
            x = torch.randn(60, 8, generator=g, dtype=torch.float64)
            data[f"t{t}"] = (x, (x[:, 0] + torch.randn(60, generator=g, dtype=torch.float64) > 0).long())
        assert prior.settled(learn_many(prior.begin("binary"), data)).bent is None


def test_what_comes_later_is_known_with_bends_too(wavy):
    _, known = wavy
    kind, outer = known.form.kind, replace(known, bent=None)
    later = waves(kind, tasks=9, rows=300)
    x, y = later["t8"]
    tried = prior.assimilate(known, "new", x[:100], y[:100])
    held = {"new": (x[100:], y[100:])}
    assert tried.bent is not None
    assert tried.bent.known.tasks == tried.tasks
    assert loss(tried, held) < 0.9 * loss(prior.assimilate(outer, "new", x[:100], y[:100]), held)
    grown = prior.learn(known, "new", x[:100], y[:100])
    both = prior.update(prior.learn(known, "new", x[:50], y[:50]), "new", x[50:100], y[50:100])
    many = learn_many(known, {"new": (x[:100], y[:100])})
    for one in (grown, both, many):
        assert one.bent is not None
        assert one.bent.known.tasks == one.tasks
        assert one.bent.known.records["new"].n == 100
        assert loss(one, held) < loss(prior.assimilate(outer, "new", x[:100], y[:100]), held)
    assert "new" not in known.tasks
    assert "new" not in known.bent.known.tasks


def test_no_more_rows_are_kept_with_bends_than_without():
    data = waves(rows=60)
    known = prior.settled(learned(data, "regression", rows=50))
    assert known.bent is not None
    known = prior.update(known, "t0", *data["t1"])
    assert known.bent is not None
    for one in (known, known.bent.known):
        assert all(len(record.y) <= 50 for record in one.records.values())


def test_what_is_forgotten_leaves_no_bend(wavy):
    data, known = wavy
    kind, classes = known.form.kind, known.form.classes
    without = {name: rows for name, rows in data.items() if name != "t3"}
    never = prior.settled(prior.anew(learned(without, kind, classes)))
    gone = prior.forget(known, "t3")
    assert gone.bent is not None
    assert "t3" not in gone.bent.known.tasks
    for name in ("t1", None):
        close(gone, never, data["t1"][0], name)


def test_saved_with_bends(wavy):
    data, known = wavy
    plain, tree = prior.describe(known)
    again = prior.restore(json.loads(json.dumps(plain)), tree)
    for name in ("t1", "never seen"):
        close(known, again, data["t1"][0], name, tolerance=0.0)


def test_broken_bends_are_refused(wavy):
    _, known = wavy
    plain, tree = prior.describe(known)
    bumps = tree["bent"]["bumps"]
    wrong = [
        {"column": bumps["column"] + 3},
        {"left": bumps["right"]},
        {"right": bumps["right"] * torch.inf},
        {"middle": bumps["middle"][1:]},
        {"other": bumps["other"] - 1},
        {"slope": bumps["slope"] + torch.nan},
    ]
    for one in wrong:
        with pytest.raises(ValueError, match="bumps"):
            prior.restore(plain, tree | {"bent": tree["bent"] | {"bumps": bumps | one}})
    other = plain["bent"] | {"tasks": [one | {"name": one["name"] + "!"} for one in plain["bent"]["tasks"]]}
    with pytest.raises(ValueError, match="other tasks"):
        prior.restore(plain | {"bent": other}, tree)
    with pytest.raises(ValueError, match="once more"):
        prior.restore(plain | {"bent": plain}, tree)
    with pytest.raises(ValueError, match="lacks"):
        prior.restore(plain, {name: part for name, part in tree.items() if name != "bent"})


@pytest.mark.parametrize("task", ["t2", None])
def test_as_a_module(wavy, task):
    data, known = wavy
    x = data["t2"][0]
    module = prior.module(known, task)
    exported = torch.export.export(module, (x,), dynamic_shapes=({0: torch.export.Dim("n")},)).module()
    found = prior.probabilities(known, x, task) if known.form.classes else prior.values(known, x, task).mean
    for one in (module, exported):
        torch.testing.assert_close(one(x[:7]), found[:7])


def test_another_input_may_count_from_somewhere_on():
    """Each task turns the weight of the second input at its own place along the first."""
    data, new = {}, {}
    g = torch.Generator().manual_seed(0)
    for t in range(8):
        x = 4 * torch.rand(300, 3, generator=g, dtype=torch.float64) - 2
        place, noise = torch.randn(1, generator=g), torch.randn(300, generator=g, dtype=torch.float64)
        y = torch.where(x[:, 0] > place, 2.0, -1.0) * x[:, 1] + 0.3 * noise
        data[f"t{t}"], new[f"t{t}"] = (x[:100], y[:100]), (x[100:], y[100:])
    known = prior.settled(learn_many(prior.begin("regression"), data))
    assert known.bent is not None
    bumps = known.bent.bumps
    assert (0, 1) in set(zip(bumps.column.tolist(), bumps.other.tolist(), strict=True))
    assert loss(known, new) < 0.7 * loss(replace(known, bent=None), new)
    for name in ("t1", None):
        found = prior.values(known, new["t1"][0], name).mean
        torch.testing.assert_close(prior.module(known, name)(new["t1"][0]), found)


def test_bumps():
    left, middle, right = torch.tensor([[0.0, 1.0], [1.0, 3.0], [3.0, 4.0]]).double()
    slope, start = torch.tensor([[0.0, 2.0], [1.0, -8.0]]).double()
    bumps = Bumps(torch.tensor([1, 1]), left, middle, right, torch.tensor([0, 0]), slope, start)
    x = torch.tensor([[9.0, -1.0], [9.0, 0.5], [9.0, 2.0], [9.0, 3.0], [9.0, 5.0]])
    beside = torch.tensor([[0, 0], [0.5, 0], [0.5, 0.5], [0, 1], [0, 0]]) * torch.tensor([1, 10])
    torch.testing.assert_close(bumps.beside(x), torch.cat([x, beside], 1).double())


def test_knots_are_different_values():
    rng = np.random.default_rng(0)
    assert len(knots_of(rng.normal(size=100))) == KNOTS
    flags = rng.integers(0, 2, size=100).astype(float)
    assert knots_of(flags).tolist() == [0, 1]
    few = np.c_[rng.integers(0, 4, size=200), rng.normal(size=200)].astype(float)
    bumps = bumps_over(few, [Bend(0, None), Bend(1, 0)])
    assert bumps.column.tolist() == [0] * 4 + [1] * KNOTS
    assert bool((bumps.left < bumps.middle).all())
    assert bool((bumps.middle < bumps.right).all())
    times = bumps.slope[4] * torch.from_numpy(few[:, 0]) + bumps.start[4]  # the other input, standardised
    torch.testing.assert_close(
        torch.stack([times.mean(), times.std(correction=0)]), torch.tensor([0.0, 1]).double()
    )
