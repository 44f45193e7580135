"""Estimators for scikit-learn: its own checks, and groups."""

import pickle

import numpy as np
import pandas
import polars
import pytest
import sklearn
import torch
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from piaget import prior
from piaget.prior.many import learn_many
from piaget.sklearn import LifelongClassifier, LifelongRegressor

BOTH = [LifelongClassifier, LifelongRegressor]


@parametrize_with_checks([LifelongClassifier(), LifelongRegressor()])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def sites(estimator=LifelongRegressor, groups=5, rows=30, seed=0):
    """A table with columns of very different scales, a category and a flag; targets; groups."""
    rng = np.random.default_rng(seed)
    n = groups * rows
    group = np.repeat([f"site {i}" for i in range(groups)], rows)
    table = pandas.DataFrame(
        {
            "site": group,
            "age": rng.normal(50, 10, n),
            "income": rng.normal(1e9, 1e5, n),
            "sex": rng.choice(["f", "m"], n),
            "smokes": rng.integers(0, 2, n),
        }
    )
    shift, slope = rng.normal(0, 2, groups).repeat(rows), rng.normal(1, 0.3, groups).repeat(rows)
    z = shift + slope * (table.age - 50) / 10 + (table.income - 1e9) / 1e5 + (table.sex == "f")
    y = z.to_numpy() + 0.3 * rng.normal(size=n)
    return table, (np.where(y > y.mean(), "yes", "no") if estimator is LifelongClassifier else y), group


def answers(model, *arguments, **named):
    return (model.predict_proba if hasattr(model, "predict_proba") else model.predict)(*arguments, **named)


def numbers(table):
    return table[["age", "income", "smokes"]].assign(sex=1.0 * (table.sex == "f")).to_numpy()


@pytest.mark.parametrize("estimator", BOTH)
def test_groups_are_tasks(estimator):
    table, y, groups = sites(estimator)
    x, numbered = numbers(table), np.unique(y, return_inverse=True)[1]
    model = estimator(trees=False).fit(x, y, groups)
    assert model.groups_ == [f"site {i}" for i in range(5)]
    known = prior.begin("binary" if estimator is LifelongClassifier else "regression", trees=False)
    scaled = torch.tensor((x - x.mean(0)) / x.std(0))
    scaled[:, 2:] = torch.tensor(x[:, 2:])  # flags
    own = torch.tensor(numbered if estimator is LifelongClassifier else y)
    rows = {name: (scaled[groups == name], own[groups == name]) for name in model.groups_}
    known = prior.settled(learn_many(known, rows))

    def direct(rows, name):
        if estimator is LifelongClassifier:
            return prior.probabilities(known, scaled[rows], name).numpy()
        return prior.values(known, scaled[rows], name).mean.numpy()

    mixed = np.array([3, 140, 4, 60])  # of several groups, out of order
    expected = np.concatenate([direct([row], groups[row]) for row in mixed])
    np.testing.assert_allclose(answers(model, x[mixed], groups[mixed]), expected, atol=1e-8)
    for never in (["new"] * 3, [None, np.nan, pandas.NA]):
        np.testing.assert_allclose(answers(model, x[:3], never), direct([0, 1, 2], None), atol=1e-8)
    assert model.score(x, y, groups) > model.score(x, y, np.full(len(y), "new"))


@pytest.mark.parametrize("estimator", BOTH)
def test_a_column_says_the_group_in_any_kind_of_table(estimator):
    table, y, groups = sites(estimator)
    model = estimator(group_column="site").fit(table, y)
    assert model.n_features_in_ == 5
    assert list(model.feature_names_in_) == list(table.columns)
    expected = answers(model, table)
    beside = estimator().fit(table.drop(columns="site"), y, groups)
    np.testing.assert_array_equal(answers(beside, table.drop(columns="site"), groups), expected)
    as_polars = estimator(group_column="site").fit(polars.from_pandas(table), polars.Series(y))
    np.testing.assert_allclose(answers(as_polars, polars.from_pandas(table)), expected, atol=1e-9)
    np.testing.assert_array_equal(answers(model, table.to_dict("records")), expected)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(answers(model, table.to_numpy()), expected)
    incomplete = table.head(3).assign(age=[None, 50.0, 60.0], sex=["f", None, "unheard of"])
    assert np.isfinite(answers(model, incomplete)).all()
    objects = np.insert(numbers(table).astype(object), 1, groups, axis=1)
    plain = estimator(group_column=1).fit(objects, y)
    same = estimator().fit(numbers(table), y, groups)
    np.testing.assert_array_equal(answers(plain, objects), answers(same, numbers(table), groups))


@pytest.mark.parametrize("estimator", BOTH)
def test_life_goes_on(estimator):
    table, y, groups = sites(estimator, groups=6)
    x, rng = numbers(table), np.random.default_rng(1)
    january = (groups != "site 5") & (rng.random(len(y)) < 0.5)
    model = estimator().partial_fit(x[january], y[january], groups[january])
    assert model.groups_ == [f"site {i}" for i in range(5)]
    before = model.score(x[~january], y[~january], groups[~january])
    model.partial_fit(x[~january], y[~january], groups[~january])
    assert model.groups_ == [f"site {i}" for i in range(6)]
    assert model.knowledge_.rows == len(y)
    after = model.score(x[~january], y[~january], groups[~january])
    at_once = estimator().fit(x, y, groups)
    assert after > before
    assert abs(after - at_once.score(x[~january], y[~january], groups[~january])) < 0.02
    unknown = answers(model, x[:9], ["new"] * 9)
    model.forget("site 5")
    assert "site 5" not in model.groups_
    assert not np.array_equal(unknown, answers(model, x[:9], ["new"] * 9))


def test_classes_may_be_absent_at_first():
    table, y, groups = sites(LifelongClassifier)
    x, first = numbers(table), np.arange(len(y)) < 40
    model = LifelongClassifier().partial_fit(x[first], y[first], groups[first], ["maybe", "no", "yes"])
    model.partial_fit(x[~first], np.where(x[~first, 0] > 60, "maybe", y[~first]), groups[~first])
    assert list(model.classes_) == ["maybe", "no", "yes"]
    assert set(model.predict(x, groups)) == {"maybe", "no", "yes"}
    with pytest.raises(ValueError, match="y has the class 'never'"):
        model.partial_fit(x[:1], ["never"], groups[:1])
    with pytest.raises(ValueError, match="as in the first call"):
        model.partial_fit(x[:1], ["no"], groups[:1], ["no", "yes"])


def test_class_weights_change_answers_alone():
    """Rare yes: they are found more often, and probabilities stay. Set later, it is the same."""
    table, y, groups = sites(LifelongClassifier, rows=60)
    x = numbers(table)
    y = np.where((y == "yes") & (np.arange(len(y)) % 4 == 0), "yes", "no")
    plain = LifelongClassifier(trees=False).fit(x, y, groups)
    model = LifelongClassifier(trees=False, class_weight="balanced").fit(x, y, groups)
    p = plain.predict_proba(x, groups)
    np.testing.assert_array_equal(p, model.predict_proba(x, groups))
    share = (y == "yes").mean()
    expected = np.where(p[:, 1] / share > p[:, 0] / (1 - share), "yes", "no")
    np.testing.assert_array_equal(model.predict(x, groups), expected)
    assert (expected == "yes").sum() > 2 * (plain.predict(x, groups) == "yes").sum()
    later = plain.set_params(class_weight={"yes": (1 - share) / share, "no": 1.0, "never there": 3.0})
    np.testing.assert_array_equal(later.predict(x, groups), expected)
    with pytest.raises(ValueError, match="class_weight='even'; expected 'balanced'"):
        LifelongClassifier(class_weight="even").fit(x, y, groups)


@pytest.mark.parametrize("estimator", BOTH)
def test_pipelines_searches_and_pickles(estimator):
    table, y, _ = sites(estimator, groups=3)
    folds = KFold(2, shuffle=True, random_state=0)  # rows of each group in each
    one_hot = OneHotEncoder(drop="if_binary")
    columns = make_column_transformer(
        (one_hot, ["sex"]), (StandardScaler(), ["age", "income"]), remainder="passthrough"
    )
    pipeline = make_pipeline(columns, estimator(group_column=3))
    search = GridSearchCV(pipeline, {f"{estimator.__name__.lower()}__trees": [False, True]}, cv=folds)
    search.fit(table, y)
    assert search.best_score_ > 0.7
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(table), search.predict(table))
    assert cross_val_score(estimator(group_column="site"), table, y, cv=folds).min() > 0.7
    assert clone(estimator(group_column="a", rows=9)).get_params() == {
        "group_column": "a", "rows": 9, "trees": True,
    } | ({"class_weight": None} if estimator is LifelongClassifier else {})  # fmt: skip


def test_pickles_hold_no_more_than_what_is_known():
    table, y, groups = sites(LifelongClassifier)
    model = LifelongClassifier().fit(numbers(table), y, groups)
    size = len(pickle.dumps(model))
    model.predict(numbers(table), groups)
    assert len(pickle.dumps(model)) == size


@pytest.mark.parametrize("estimator", BOTH)
def test_groups_are_routed(estimator):
    table, y, groups = sites(estimator, groups=4)
    with sklearn.config_context(enable_metadata_routing=True):
        model = estimator().set_fit_request(groups=True).set_score_request(groups=True)
        pipeline = make_pipeline(StandardScaler(), model)
        within = KFold(2, shuffle=True, random_state=0)
        known = cross_val_score(pipeline, numbers(table), y, params={"groups": groups}, cv=within)
        held_out = cross_val_score(pipeline, numbers(table), y, params={"groups": groups}, cv=GroupKFold(2))
        assert known.mean() > held_out.mean()  # whose groups were never seen
        forgetful = estimator().set_fit_request(groups=True).set_score_request(groups=False)
        with pytest.raises(ValueError, match=r"groups=None, but .* set_score_request\(groups=True\)"):
            cross_val_score(forgetful, numbers(table), y, params={"groups": groups}, error_score="raise")


def test_intervals_hold_what_they_say():
    table, y, groups = sites(rows=400)
    half = np.arange(len(y)) % 2 == 0
    model = LifelongRegressor().fit(numbers(table)[half], y[half], groups[half])
    mean, deviation = model.predict(numbers(table)[~half], groups[~half], return_std=True)
    for level in (0.5, 0.9):
        low, high = model.interval(numbers(table)[~half], groups[~half], level).T
        assert abs(((low < y[~half]) & (y[~half] < high)).mean() - level) < 0.04
        np.testing.assert_allclose((low + high) / 2, mean)
    new = model.predict(numbers(table)[~half], ["new"] * sum(~half), return_std=True)[1]
    assert (new > deviation).all()
    with pytest.raises(ValueError, match="level=90; expected a probability"):
        model.interval(numbers(table), groups, 90)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda m, t, y, g: m.fit(numbers(t), y, g[:-1]), "inconsistent numbers of samples"),
        (lambda m, t, y, g: m.fit(numbers(t), y, [None, *g[1:]]), "row 0 has no group"),
        (lambda m, t, y, g: m.fit(numbers(t), y, g).predict(numbers(t)), "groups=None, but"),
        (lambda m, t, y, g: m.set_params(group_column="site").fit(t, y, g), "one of them"),
        (lambda m, t, y, g: m.set_params(group_column="place").fit(t, y), "no column 'place'"),
        (lambda m, t, y, g: m.set_params(group_column=4).fit(numbers(t), y), "one of 4 columns"),
        (lambda m, t, y, g: m.set_params(group_column="age").fit(numbers(t), y), "one of 4 columns"),
        (lambda m, t, y, g: m.fit(t[:0], y[:0], g[:0]), r"0 sample\(s\)"),
        (lambda m, t, y, g: m.fit(t, y, g).predict(t.drop(columns="age"), g), "feature names"),
    ],
)
def test_what_is_wrong_is_said(call, says):
    with pytest.raises(ValueError, match=says):
        call(LifelongRegressor(), *sites())


def test_the_type_for_categories_is_believed():
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"site": np.repeat(list("abcdef"), 40), "k": rng.choice([10, 20, 30], 240)})
    y = 5.0 * (table["k"] == 20) + 0.1 * rng.normal(size=240)
    for kind, good in (("category", True), ("int64", False)):
        model = LifelongRegressor(group_column="site", trees=False).fit(table.astype({"k": kind}), y)
        assert (model.score(table.astype({"k": kind}), y) > 0.99) == good


def test_a_group_column_whose_name_is_a_number():
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({2: np.repeat([7, 8], 20), 0: rng.normal(size=40), 1: rng.normal(size=40)})
    assert LifelongRegressor(group_column=2).fit(table, table[0]).groups_ == ["7", "8"]
    named = table.set_axis(["site", "a", "b"], axis=1)
    assert LifelongRegressor(group_column=0).fit(named, table[0]).groups_ == ["7", "8"]


@pytest.mark.parametrize("wrong", [{"rows": -1}, {"rows": 2.5}, {"trees": "no"}])
def test_wrong_parameters(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
        LifelongRegressor(**wrong).fit(np.eye(6), np.arange(6.0))


def test_class_weights_of_other_classes_are_a_slip():
    x, y = np.eye(8), np.array(["no", "yes"] * 4)
    with pytest.raises(ValueError, match="class_weight names"):
        LifelongClassifier(class_weight={"Yes": 5}).fit(x, y)
    LifelongClassifier(class_weight={"yes": 5, "no": 1, "perhaps": 2}).fit(x, y)


def test_wrong_tables_are_value_errors():
    with pytest.raises(ValueError, match="different texts"):
        LifelongRegressor().fit(pandas.DataFrame({"a": [f"text {i}" for i in range(300)]}), np.arange(300.0))
