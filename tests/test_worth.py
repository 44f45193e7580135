"""Simple models against scikit-learn's, what is said of worth, calibration, and rows that come again."""

import importlib.util
import math
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, r2_score, roc_auc_score

from piaget.data.marks import Overlap, is_batch, marks_of, origins, repeats
from piaget.errors import SettingError
from piaget.prior import Values
from piaget.scoring import simple_models
from piaget.scoring.answer_scores import (
    Answers,
    calibration_error,
    chance_error,
    class_scores,
    coverage,
    reliability,
    value_scores,
)
from piaget.scoring.rows import MAJORITY, SHARES
from piaget.scoring.simple_models import GroupRows, Part, by_shares, compared
from piaget.scoring.worth import at_chance, best_simple, difference, is_it_worth_it, standard_errors, three
from tests.small import make_row


def rows_of(groups=4, n=40, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    made = {}
    for g in range(groups):
        x = torch.as_tensor(rng.normal(size=(3 * n, 3)))
        out = x @ torch.tensor([1.0, -0.5, 0.2 * g], dtype=torch.float64) + 0.3 * g
        noisy = out + torch.as_tensor(rng.normal(0, 0.5, 3 * n))
        y = noisy if not classes else (noisy > 0).long() + (noisy > 1).long() * (classes > 2)
        made[f"g{g}"] = GroupRows(*(Part(x[i * n : (i + 1) * n], y[i * n : (i + 1) * n]) for i in range(3)))
    return made


def test_a_linear_model_for_each_group_is_scikit_learns():
    groups = rows_of()
    x = [torch.cat([torch.ones(40, 1, dtype=torch.float64), one.train.x], 1) for one in groups.values()]
    y = [one.train.y.double() for one in groups.values()]
    found = simple_models._fit(x, y, "alone", 10.0, True)
    for features, target, w in zip(x, y, found, strict=True):
        model = LogisticRegression(C=0.1, tol=1e-10, max_iter=1000).fit(features[:, 1:], target)
        assert w[1:].numpy() == pytest.approx(model.coef_[0], abs=1e-3)
        assert float(w[0]) == pytest.approx(model.intercept_[0], abs=1e-3)
    values = rows_of(classes=0)
    y = [one.train.y for one in values.values()]
    found = simple_models._fit(x, y, "alone", 1.0, False)
    for features, target, w in zip(x, y, found, strict=True):
        model = Ridge(alpha=1.0).fit(features[:, 1:], target)
        assert w[1:].numpy() == pytest.approx(model.coef_, abs=1e-3)


@pytest.mark.parametrize("model", ["pooled", "interactions"])
@pytest.mark.parametrize("logistic", [True, False])
def test_groups_together_are_one_regression_with_more_columns(model, logistic):
    """The same as a single model on [x, 1 and x by group], each with its own penalty, in one dense solve."""
    groups = rows_of(classes=2 if logistic else 0)
    x = [torch.cat([torch.ones(40, 1, dtype=torch.float64), one.train.x], 1) for one in groups.values()]
    y = [one.train.y.double() for one in groups.values()]
    found = simple_models._fit(x, y, model, 10.0, logistic)
    d, G = 4, len(x)
    wide = torch.zeros(G * 40, d * (G + 1), dtype=torch.float64)
    for g, features in enumerate(x):
        wide[g * 40 : (g + 1) * 40, :d] = features
        wide[g * 40 : (g + 1) * 40, d * (g + 1) : d * (g + 2)] = features
    common = torch.tensor([1e-3, 1.0, 1.0, 1.0], dtype=torch.float64)
    own = torch.full((d,), 10.0, dtype=torch.float64)
    if model == "pooled":
        own[1:] = 1e9
    penalty, target = torch.cat([common, own.repeat(G)]), torch.cat(y)
    w = torch.zeros(wide.shape[1], dtype=torch.float64)
    for _ in range(30):
        p = (wide @ w).sigmoid() if logistic else wide @ w
        weight = p * (1 - p) if logistic else torch.ones_like(p)
        H = wide.mT @ (weight[:, None] * wide) + torch.diag(penalty)
        w = w + torch.linalg.solve(H, wide.mT @ (target - p) - penalty * w)
    expected = w[:d] + w[d:].view(G, d)
    assert torch.allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_all_simple_models_are_better_than_none(classes):
    found = compared(rows_of(classes=classes), classes)
    assert list(found) == ["majority", "alone", "pooled", "interactions", "boosting"]
    metric, sign = ("loss", -1) if classes else ("rmse", -1)
    means = {model: np.mean([one[metric] for one in of.values()]) for model, of in found.items()}
    for model in ("alone", "pooled", "interactions"):
        assert sign * means[model] > sign * means["majority"]
    assert all(math.isfinite(v) for of in found.values() for one in of.values() for v in one.values())


def test_without_scikit_learn_there_are_no_trees(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "sklearn" else find(name))
    groups = {name: GroupRows(one.train, Part(one.train.x[:0], one.train.y[:0]), one.test)
              for name, one in rows_of().items()}  # nor validation rows  # fmt: skip
    assert list(compared(groups, 2)) == ["majority", "alone", "pooled", "interactions"]


def test_scores_are_scikit_learns():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(2), 50), rng.integers(0, 2, 50)
    found = class_scores(torch.as_tensor(p), torch.as_tensor(y))
    assert found["auc"] == pytest.approx(roc_auc_score(y, p[:, 1]))
    assert found["loss"] == pytest.approx(log_loss(y, p))
    assert "auc" not in class_scores(torch.as_tensor(p), torch.zeros(50, dtype=torch.int64))
    p, y = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50)
    found = class_scores(torch.as_tensor(p), torch.as_tensor(y))
    assert found["auc"] == pytest.approx(roc_auc_score(y, p, multi_class="ovr"))
    p, y = p[y > 0], y[y > 0]  # without rows of the first class
    areas = [roc_auc_score(y == c, p[:, c]) for c in (1, 2)]
    found = class_scores(torch.as_tensor(p), torch.as_tensor(y))
    assert found["auc"] == pytest.approx(np.mean(areas))
    assert "auc" not in class_scores(torch.as_tensor(p), torch.ones(len(y), dtype=torch.int64))
    a, b = torch.as_tensor(rng.normal(size=50)), torch.as_tensor(rng.normal(size=50))
    assert value_scores(a, b)["r2"] == pytest.approx(r2_score(b, a))
    assert "r2" not in value_scores(a, torch.ones(50))
    assert "r2" in value_scores(a[:6], b[:6])
    assert "r2" not in value_scores(a[:5], b[:5])


def test_calibration_and_intervals():
    rng = np.random.default_rng(0)
    p = torch.as_tensor(rng.random(20_000))
    y = (torch.as_tensor(rng.random(20_000)) < p).long()
    table = reliability(torch.stack([1 - p, p], 1), y)
    assert len(table) == 10
    assert sum(one.rows for one in table) == 20_000
    assert calibration_error(table) < 0.02
    sure = torch.where(p > 0.5, 0.99, 0.01)
    wrong = reliability(torch.stack([1 - sure, sure], 1), y)
    assert len(wrong) == 2
    assert calibration_error(wrong) == pytest.approx(0.24, abs=0.02)
    many = torch.as_tensor(rng.dirichlet(np.ones(4), 100))
    assert 0 <= calibration_error(reliability(many, many.argmax(1))) <= 1
    said = Answers(None, Values(torch.zeros(10_000), torch.full((10_000,), 2.0), torch.full((10_000,), 1e4)))
    values = torch.as_tensor(rng.normal(0, 2, 10_000))
    assert coverage(*said.interval(0.9), values) == pytest.approx(0.9, abs=0.01)
    levels: list[Any] = [0, 1, "a", float("nan")]
    for level in levels:
        with pytest.raises(SettingError, match="expected a number between 0 and 1"):
            said.interval(level)


# --- worth -------------------------------------------------------------------------------------------------


def scored(ours, metric="auc", **simple):
    rows = [make_row(metric=metric, value=v, evaluated=f"g{i}", split="test") for i, v in enumerate(ours)]
    for model, values in simple.items():
        name = f"{metric} by {model}"
        rows += [
            make_row(metric=name, value=v, evaluated=f"g{i}", split="test") for i, v in enumerate(values)
        ]
    return rows


def test_what_is_said_of_worth():
    better = scored(
        [0.80, 0.82, 0.81, 0.84], alone=[0.78, 0.81, 0.78, 0.82], pooled=[0.7] * 4, majority=[0.5] * 4
    )
    assert is_it_worth_it(better, "auc") == (
        "Worth it: AUC 0.818 against 0.797 of the best simple model (a linear model for each group), better "
        "in 4 of 4 groups; +0.0200 is more than chance (standard error 0.0041)."
    )
    noisy = scored([0.80, 0.90, 0.70], alone=[0.90, 0.70, 0.79])
    assert str(is_it_worth_it(noisy, "auc")).startswith("No clear difference: AUC 0.800 against 0.797")
    assert "may be chance (standard error " in str(is_it_worth_it(noisy, "auc"))
    worse = scored([2.0, 3.0, 2.5], "rmse", pooled=[1.0, 2.1, 1.4], alone=[5.0] * 3)
    assert str(is_it_worth_it(worse, "rmse")).startswith("Not worth it: RMSE 2.500 against 1.500")
    assert str(is_it_worth_it(scored([0.8], alone=[0.7]), "auc")).startswith("Too few groups to tell")
    assert is_it_worth_it(scored([0.8]), "auc") is None
    assert best_simple("auc", {"majority": {"a": 1.0}}) is None
    found = difference("loss", {"a": 1.0, "b": 2.0}, {"a": 2.0, "b": 2.0, "c": 9.0})
    assert found is not None
    assert (found.mean, found.better, found.groups, found.verdict) == (0.5, 1, 2, "unclear")


def test_few_groups_ask_for_more_standard_errors():
    stats = pytest.importorskip("scipy.stats")
    for groups in range(2, 31):
        assert standard_errors(groups) == pytest.approx(max(2.0, stats.t.ppf(0.975, groups - 1)), abs=1e-6)
    assert (standard_errors(1), standard_errors(500)) == (math.inf, 2.0)
    ours, theirs = [0.80, 0.82, 0.81], [0.79, 0.81, 0.78]  # two and a half of them
    assert str(is_it_worth_it(scored(ours, alone=theirs), "auc")).startswith("No clear difference")
    assert str(is_it_worth_it(scored(ours * 4, alone=theirs * 4), "auc")).startswith("Worth it")


def test_the_level_of_chance():
    assert str(at_chance(scored([0.52, 0.47, 0.51]))).startswith("At the level of chance: AUC 0.500")
    assert at_chance(scored([0.6, 0.62, 0.58])) is None
    accuracy = scored([0.9, 0.8], "accuracy")
    assert at_chance(accuracy) is None  # with nothing to compare with
    majority = [make_row(metric="majority", value=0.9, evaluated=f"g{i}", split="test") for i in range(2)]
    assert "the most frequent class alone" in str(at_chance(accuracy + majority))
    assert "each group's mean alone" in str(at_chance(scored([1.0, 1.1], "rmse", majority=[1.0, 1.0])))


def noise(classes, groups=100, seed=0):
    """Targets that inputs tell nothing of, and groups that do not differ."""
    rng = np.random.default_rng(seed)

    def part(n):
        y = rng.integers(0, classes, n) if classes else rng.normal(5, 1, n)
        return Part(torch.as_tensor(rng.normal(size=(n, 2))), torch.as_tensor(y))

    return {f"g{i}": GroupRows(part(9), part(3), part(12)) for i in range(groups)}


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_noise_is_the_level_of_chance_though_groups_own_shares_are_worse(classes):
    """A learner that says what all groups have in common is better than each group's own few rows, and says
    nothing of inputs all the same."""
    groups, metric = noise(classes), "loss" if classes else "rmse"
    own, shares = compared(groups, classes)["majority"], by_shares(groups, classes)
    y = torch.cat([rows.learned.y for rows in groups.values()])
    p = torch.bincount(y).double() / len(y) if classes else y.mean()
    ours = [
        class_scores(p.expand(12, -1), rows.test.y)[metric]
        if classes
        else value_scores(p.expand(12), rows.test.y)[metric]
        for rows in groups.values()
    ]
    theirs = [one[metric] for one in own.values()]
    assert np.mean(ours) < np.mean(theirs)
    rows = scored(ours, metric, majority=theirs)
    assert at_chance(rows) is None
    rows += scored([one[metric] for one in shares.values()], f"{metric} by {SHARES}")
    assert "level of chance" in str(at_chance(rows))
    better = scored([value - 0.2 for value in ours], metric)
    assert at_chance([*rows[len(ours) :], *better]) is None


def test_shares_are_groups_own_where_groups_differ():
    groups = noise(2)
    for i, rows in enumerate(groups.values()):
        for part in (rows.train, rows.validation, rows.test):
            part.y[:] = i % 2
    assert max(one["loss"] for one in by_shares(groups, 2).values()) < 0.1
    assert {one["accuracy"] for one in by_shares(groups, 2).values()} == {1.0}


# --- rows that come again -----------------------------------------------------------------------------------


def test_rows_that_come_again():
    rng = torch.Generator().manual_seed(0)
    x, y = torch.randn(20, 3, generator=rng), torch.randn(20, generator=rng)
    marks = marks_of(x, y)
    assert len(set(marks.tolist())) == 20
    assert torch.equal(marks, marks_of(x.double(), y.double()))
    assert is_batch(marks.flip(0), [marks[:5], marks])
    assert not is_batch(marks[:4], [marks])
    grown = Overlap(marks, [marks[:8], marks[8:12]])
    assert grown.grown
    assert not grown.contained
    assert grown.unseen(False).tolist() == [False] * 12 + [True] * 8
    assert Overlap(marks[:3], [marks]).contained
    changed = torch.cat([marks[:15], marks[:5] + 1])
    assert Overlap(changed, [marks]).changed() == (15, 20)
    assert Overlap(marks, [marks]).changed() is None
    assert Overlap(marks[:3], [marks]).changed() is None  # no more than chance


def test_how_often_rows_repeat():
    batches = [torch.tensor([7, 7, 3, 7]), torch.tensor([3]), torch.tensor([5, 3, 5])]
    assert repeats(batches) == pytest.approx((3 + 1) / (6 + 0 + 3))  # of pairs in the same batch
    assert repeats([]) == repeats([torch.tensor([], dtype=torch.int64)]) == 0.0
    known = {"a": [torch.arange(5)], "b": [torch.arange(4, 9), torch.arange(20, 22)]}
    new = {"x": torch.tensor([8, 7, 0]), "y": torch.tensor([99]), "z": torch.tensor([1, 2, 30])}
    assert origins(new, known) == {"x": "b", "z": "a"}
    assert origins(new, {"a": []}) == {}


def test_rows_that_are_alike_are_not_taken_for_the_same():
    """Of few different rows, the same ones come again by chance: only a table with all of them is a copy."""
    marks = torch.tensor([1, 1, 2, 2, 3, 3])
    overlap = Overlap(torch.tensor([1, 1, 2, 2, 3, 3, 3]), [marks])
    assert overlap.unseen(all_grown=False).all()
    assert overlap.unseen(all_grown=True).sum() == 1
    assert overlap.changed() is None


def test_rare_classes_are_not_at_the_level_of_chance_if_probabilities_tell_more():
    accuracy = scored([0.92] * 6, "accuracy") + scored([0.92] * 6, MAJORITY)
    assert "level of chance" in str(at_chance(accuracy))
    better = scored([0.29 + 0.001 * i for i in range(6)], "loss") + scored([0.336] * 6, "loss by majority")
    assert at_chance(accuracy + better) is None
    assert at_chance(scored([0.88, 0.92])) is None  # two groups: noise cannot be told


def test_rows_that_come_again_among_new_ones_are_not_counted_twice():
    x = torch.arange(180.0).reshape(60, 3)
    marks = marks_of(x, torch.zeros(60))
    new = torch.cat([marks[:20], marks_of(1000 + x[:10], torch.zeros(10))])
    unseen = Overlap(new, [marks]).unseen(False)
    assert unseen.tolist() == [False] * 20 + [True] * 10
    same = marks[:1].repeat(60)  # rows that are alike
    overlap = Overlap(same[:30], [same])
    assert overlap.unseen(False).all()
    assert overlap.alike(overlap.unseen(False)) == 30


def test_a_small_batch_that_was_corrected_is_noticed():
    """All of an earlier batch is there, and a part of the last one: rows were changed, not added."""
    marks = marks_of(torch.arange(180.0).reshape(60, 3), torch.zeros(60))
    corrected = torch.cat([marks[:44], marks[:6] + 1])
    assert Overlap(corrected, [marks[:40], marks[40:50]]).changed() == (44, 50)
    assert Overlap(marks[20:], [marks[:20], marks[20:40]]).changed() is None  # a window that moved on


def test_what_chance_makes_of_calibration():
    rng = np.random.default_rng(0)
    for n in (80, 2000):
        errors, chances = [], []
        for _ in range(200):
            p = rng.uniform(size=n)
            both = torch.as_tensor(np.stack([1 - p, p], 1))
            bins = reliability(both, torch.as_tensor((rng.uniform(size=n) < p).astype(np.int64)))
            errors.append(calibration_error(bins))
            chances.append(chance_error(bins))
        assert np.mean(chances) == pytest.approx(np.mean(errors), rel=0.1)


def test_scores_of_any_size_are_readable():
    assert [three(value) for value in (0.0, 0.5, 12.3456, 1e-9, 2.3e8)] == [
        "0.000",
        "0.500",
        "12.346",
        "1e-09",
        "2.3e+08",
    ]


def test_simple_models_are_not_held_back_where_there_is_no_noise():
    rng = np.random.default_rng(0)

    def part(n, w):
        x = rng.normal(size=(n, 3))
        return Part(torch.as_tensor(x), torch.as_tensor(x @ w))

    rows = {}
    for g in range(4):
        w = rng.normal(size=3)
        rows[f"g{g}"] = GroupRows(part(20, w), part(8, w), part(10, w))
    found = compared(rows, 0)["alone"]
    assert max(scores["rmse"] for scores in found.values()) < 1e-3
