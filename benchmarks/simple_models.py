"""The simple models that anyone would try first, on a Cut of grouped data (scikit-learn).

Each takes a cut and returns predictions of its test rows: values (n,), or probabilities (n, classes).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from benchmarks.grouped_data import Cut

PENALTIES = np.logspace(-2, 4, 13)  # of ridge
STRENGTHS = np.logspace(-3, 2, 6)  # of logistic regression: 1 / penalty

Model = Callable[[Cut], np.ndarray]


def mean(data: Cut) -> np.ndarray:
    """A group's own mean, or frequencies of classes (one of each is added)."""
    answer = _empty(data)
    for g in range(data.groups):
        y = data.y[data.group == g]
        counts = np.bincount(y, minlength=data.classes) + 1 if data.classes else np.zeros(0)
        answer[data.test_group == g] = counts / counts.sum() if data.classes else y.mean()
    return answer


def alone_linear(data: Cut) -> np.ndarray:
    """Ridge or logistic regression for each group, the penalty by cross-validation."""
    return _alone(data, _linear)


def alone_boosting(data: Cut) -> np.ndarray:
    """Gradient boosting for each group."""
    return _alone(data, _boosting)


def group_linear(data: Cut) -> np.ndarray:
    """One ridge or logistic regression with the group as a category."""
    return _fitted(_linear, np.c_[data.x, _one_hot(data, data.group)], data.y, data)(
        np.c_[data.test_x, _one_hot(data, data.test_group)]
    )


def group_boosting(data: Cut) -> np.ndarray:
    """One gradient boosting with the group as a category."""

    def boosting(x: np.ndarray, y: np.ndarray, classes: int) -> Any:
        return _boosting(x, y, classes, [x.shape[1] - 1])

    return _fitted(boosting, np.c_[data.x, data.group], data.y, data)(np.c_[data.test_x, data.test_group])


def interactions(data: Cut) -> np.ndarray:
    """Ridge or logistic regression with the inputs, the group, and their products."""
    return _fitted(_linear, _products(data, data.x, data.group), data.y, data)(
        _products(data, data.test_x, data.test_group)
    )


def random_effects(data: Cut) -> np.ndarray:
    """Common weights, and an effect of the group: its residuals' mean, shrunk by how much groups differ.

    Regression alone (a one-way model by moments); for classes, logistic regression on the group's shrunk
    logit as one more input.
    """
    n = np.bincount(data.group)
    if data.classes:
        rates = _shrunk_logits(data, n)
        return _fitted(_linear, np.c_[data.x, rates[data.group]], data.y, data)(
            np.c_[data.test_x, rates[data.test_group]]
        )
    centred = np.stack([np.bincount(data.group, c) for c in data.x.T]).T / n[:, None]
    own = np.bincount(data.group, data.y) / n
    within = _linear(data.x - centred[data.group], data.y - own[data.group], 0)
    residual = data.y - within.predict(data.x)
    means = np.bincount(data.group, residual) / n
    noise = (residual - means[data.group]).var() * len(residual) / max(len(residual) - len(n), 1)
    grand = means.mean()
    between = max(means.var(ddof=1) - noise * (1 / n).mean(), 0) if len(n) > 1 else 0.0
    effect = grand + (means - grand) * between / (between + noise / n)
    return within.predict(data.test_x) + effect[data.test_group]


def _shrunk_logits(data: Cut, n: np.ndarray) -> np.ndarray:
    """(groups, classes): logits of frequencies with ten rows' worth of the overall ones added."""
    overall = np.bincount(data.y, minlength=data.classes) / len(data.y)
    counts = np.stack([np.bincount(data.group, data.y == c) for c in range(data.classes)], 1)
    rate = (counts + 10 * overall + 1e-3) / (n[:, None] + 10 + 2e-3)
    return np.log(rate / (1 - rate))


MODELS: dict[str, Model] = {
    "mean": mean,
    "alone, linear": alone_linear,
    "alone, boosting": alone_boosting,
    "group as input, linear": group_linear,
    "group as input, boosting": group_boosting,
    "group interactions, linear": interactions,
    "random effects": random_effects,
}

# --- fitting ------------------------------------------------------------------------------------------------


class _Logistic:
    """Logistic regression, its penalty by 3-fold log-loss (fewer where a class is rare)."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        folds = min(3, int(np.bincount(y)[np.unique(y)].min()))
        best = 1.0
        if folds > 1:
            cut = StratifiedKFold(folds, shuffle=True, random_state=0)
            losses = []
            for strength in STRENGTHS:
                model = LogisticRegression(C=strength, max_iter=300, tol=1e-3)
                p = cross_val_predict(model, x, y, cv=cut, method="predict_proba")
                right = p[np.arange(len(y)), np.searchsorted(np.unique(y), y)]
                losses.append(-np.log(np.maximum(right, 1e-12)).mean())
            best = STRENGTHS[int(np.argmin(losses))]
        self.model = LogisticRegression(C=best, max_iter=300, tol=1e-3).fit(x, y)
        self.classes_ = self.model.classes_

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        return self.model.predict_proba(x)


def _linear(x: np.ndarray, y: np.ndarray, classes: int) -> Any:
    if classes:
        return _Logistic(x, y)
    return RidgeCV(PENALTIES).fit(x, y)


def _boosting(x: np.ndarray, y: np.ndarray, classes: int, categories: list[int] | None = None) -> Any:
    maker = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    if categories is not None and x[:, categories[0]].max() >= 255:
        categories = None  # more than it can take: as a number
    return maker(categorical_features=categories, random_state=0).fit(x, y)


def _fitted(make: Callable, x: np.ndarray, y: np.ndarray, data: Cut) -> Callable[[np.ndarray], np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make(x, y, data.classes)
    if not data.classes:
        return model.predict

    def probabilities(x: np.ndarray) -> np.ndarray:
        p = np.full((len(x), data.classes), 1e-6)
        p[:, model.classes_] = model.predict_proba(x)
        return p / p.sum(1, keepdims=True)

    return probabilities


def _alone(data: Cut, make: Callable) -> np.ndarray:
    answer = _empty(data)
    for g in range(data.groups):
        rows, held = data.group == g, data.test_group == g
        if data.classes and len(np.unique(data.y[rows])) < 2:
            answer[held] = np.eye(data.classes)[data.y[rows][0]]
        else:
            answer[held] = _fitted(make, data.x[rows], data.y[rows], data)(data.test_x[held])
    return answer


def _empty(data: Cut) -> np.ndarray:
    n = len(data.test_y)
    return np.zeros((n, data.classes)) if data.classes else np.zeros(n)


def _one_hot(data: Cut, group: np.ndarray) -> np.ndarray:
    return np.eye(data.groups)[group]


def _products(data: Cut, x: np.ndarray, group: np.ndarray) -> np.ndarray:
    own = _one_hot(data, group)
    return np.c_[x, own, (own[:, :, None] * x[:, None, :]).reshape(len(x), -1)]


# --- scores ------------------------------------------------------------------------------------------------


def scores(data: Cut, answer: np.ndarray) -> dict[str, float]:
    """The mean over groups of: rmse (in units of the target's deviation), or log-loss, accuracy and AUC."""
    found: dict[str, list[float]] = {}
    for g in range(data.groups):
        held = data.test_group == g
        y, p = data.test_y[held], answer[held]
        if not len(y):
            continue
        if not data.classes:
            found.setdefault("rmse", []).append(float(np.sqrt(((y - p) ** 2).mean())))
            continue
        right = np.clip(p[np.arange(len(y)), y], 1e-6, 1)
        found.setdefault("log-loss", []).append(float(-np.log(right).mean()))
        found.setdefault("accuracy", []).append(float((p.argmax(1) == y).mean()))
        if data.classes == 2 and 0 < y.mean() < 1:
            found.setdefault("AUC", []).append(_area(p[:, 1], y))
    return {metric: float(np.mean(values)) for metric, values in found.items()}


def _area(score: np.ndarray, y: np.ndarray) -> float:
    """Under the ROC curve; ties count half."""
    _, rank, count = np.unique(score, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - (count - 1) / 2
    ranks, positive = middle[rank], y == 1
    n1, n0 = positive.sum(), (~positive).sum()
    return float((ranks[positive].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))
