"""Simple models to compare with: what people would do otherwise.

All linear ones are one: group g has weights mu + own_g, and what is held at 0 says which model it is.
    alone           mu: a model for each group
    pooled          own_g, but for its constant: the group as a feature
    interactions    neither: all features, and all features by group
How strongly the rest is held near 0 is chosen by validation rows, for each model; then all rows are learned.
Newton's method; a step eliminates own_g group by group, so its cost is in proportion to groups.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from piaget.scoring.answer_scores import SMALLEST, class_scores, value_scores
from piaget.scoring.rows import LOWER_IS_BETTER

STRENGTHS = (1e-4, 1e-2, 0.1, 1.0, 10.0, 100.0)  # to choose from
ENTIRELY, HARDLY = 1e9, 1e-3
STEPS, CLOSE = 30, 1e-6  # of Newton's method
MORE_ROWS = (1.0, 3.0, 10.0, 30.0, 100.0, 1e9)  # of all groups, beside a group's own
MOST_GROUPS = 250  # that trees take as categories


class Part(NamedTuple):
    """Rows of a group: x (n, inputs), y (n,)."""

    x: Tensor
    y: Tensor


@dataclass(frozen=True)
class GroupRows:
    """One group's rows; validation rows may be none."""

    train: Part
    validation: Part
    test: Part

    @property
    def learned(self) -> Part:
        return Part(*(torch.cat(pair) for pair in zip(self.train, self.validation, strict=True)))


Groups = Mapping[str, GroupRows]


def compared(
    groups: Groups, classes: int, weights: Tensor | None = None
) -> dict[str, dict[str, dict[str, float]]]:
    """Scores of the simple models on test rows, of groups that have some: {model: {group: {metric: value}}}.
    classes: 0 of values. weights: of classes, by which they answer, too."""
    answered = {"majority": _majority(groups, classes)}
    for model in ("alone", "pooled", "interactions"):
        answered[model] = _linear(model, groups, classes)
    if importlib.util.find_spec("sklearn") is not None:
        answered["boosting"] = _boosting(groups, classes)
    return {
        model: {
            name: _scored(said[name], rows.test.y, classes, weights)
            for name, rows in groups.items()
            if len(rows.test.y)
        }
        for model, said in answered.items()
    }


def _scored(said: Tensor, y: Tensor, classes: int, weights: Tensor | None) -> dict[str, float]:
    return class_scores(said, y, weights) if classes else value_scores(said, y)


def _majority(groups: Groups, classes: int) -> dict[str, Tensor]:
    """Each group's mean, or its shares of classes (with one more row of each, of no group)."""
    said = {}
    for name, rows in groups.items():
        y, n = rows.learned.y, len(rows.test.y)
        if classes:
            counts = torch.bincount(y, minlength=classes).double()
            said[name] = ((counts + 1 / classes) / (counts.sum() + 1)).expand(n, -1)
        else:
            said[name] = y.double().mean().expand(n)
    return said


def by_shares(groups: Groups, classes: int, weights: Tensor | None = None) -> dict[str, dict[str, float]]:
    """Scores of the best that can be said without inputs: {group: {metric: value}}. Each group's shares of
    classes, or mean, as if it had some more rows like those of all groups. How many, the test rows say, for
    each metric on its own: with hindsight."""
    found = [
        {
            name: _scored(said, groups[name].test.y, classes, weights)
            for name, said in _shares(groups, classes, more).items()
            if len(said)
        }
        for more in MORE_ROWS
    ]
    scores: dict[str, dict[str, float]] = {name: {} for name in found[0]}
    for metric in ("loss", "accuracy") if classes else ("rmse",):
        sign = -1 if metric in LOWER_IS_BETTER else 1
        best = max(found, key=lambda of: sign * sum(one[metric] for one in of.values()))
        for name, values in best.items():
            scores[name][metric] = values[metric]
    return scores


def _shares(groups: Groups, classes: int, more: float) -> dict[str, Tensor]:
    """What is said of test rows by each group's rows and so many more, like those of all groups."""
    learned = {name: _indicators(rows.learned.y, classes) for name, rows in groups.items()}
    every = torch.cat(list(learned.values()))
    common = (every.sum(0) + 1 / every.shape[1] * bool(classes)) / (len(every) + bool(classes))
    said = {}
    for name, own in learned.items():
        share = (own.sum(0) + more * common) / (len(own) + more)
        one = share if classes else share[0]
        said[name] = one.expand(len(groups[name].test.y), *one.shape)
    return said


def _indicators(y: Tensor, classes: int) -> Tensor:
    """(n, classes): 1 in the column of a row's class; of values, (n, 1)."""
    return torch.nn.functional.one_hot(y, classes).double() if classes else y.double()[:, None]


# --- linear models -----------------------------------------------------------------------------------------


def _linear(model: str, groups: Groups, classes: int) -> dict[str, Tensor]:
    parts = {name: rows.train for name, rows in groups.items()}
    center, scale, origin, unit = _standard(parts.values())

    def features(x: Tensor) -> Tensor:
        return torch.cat([torch.ones(len(x), 1, dtype=torch.float64), (x.double() - center) / scale], 1)

    def fitted(some: Mapping[str, Part], strength: float) -> list[Tensor]:
        """Weights (groups, d), of each output."""
        x = [features(part.x) for part in some.values()]
        if not classes:
            return [_fit(x, [(p.y.double() - origin) / unit for p in some.values()], model, strength, False)]
        outputs = range(1, 2) if classes == 2 else range(classes)  # one against all others
        return [_fit(x, [(p.y == c).double() for p in some.values()], model, strength, True) for c in outputs]

    def said(weights: Sequence[Tensor], which: str) -> dict[str, Tensor]:
        found = {}
        for g, (name, rows) in enumerate(groups.items()):
            out = features(getattr(rows, which).x) @ torch.stack([w[g] for w in weights], 1)
            found[name] = _probabilities(out) if classes else origin + unit * out[:, 0]
        return found

    def loss(strength: float) -> float:
        answers = said(fitted(parts, strength), "validation")
        return sum(_loss(answers[name], rows.validation.y, classes) for name, rows in groups.items())

    enough = any(len(rows.validation.y) for rows in groups.values())
    strength = min(STRENGTHS, key=loss) if enough else 10.0
    return said(fitted({name: rows.learned for name, rows in groups.items()}, strength), "test")


def _standard(parts: Iterable[Part]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    x, y = (torch.cat(list(both)).double() for both in zip(*parts, strict=True))
    scale, unit = x.std(0, correction=0), y.std(correction=0)
    one = torch.ones((), dtype=torch.float64)
    return x.mean(0), torch.where(scale > 1e-9, scale, one), y.mean(), unit if unit > 1e-9 else one


def _probabilities(out: Tensor) -> Tensor:
    p = out.sigmoid().clamp(SMALLEST, 1 - SMALLEST)
    return torch.cat([1 - p, p], 1) if p.shape[1] == 1 else p / p.sum(1, keepdim=True)


def _loss(said: Tensor, y: Tensor, classes: int) -> float:
    if not len(y):
        return 0.0
    if classes:
        return float(-said[torch.arange(len(y)), y].log().sum())
    return float((said - y).square().sum())


def _fit(x: list[Tensor], y: list[Tensor], model: str, strength: float, logistic: bool) -> Tensor:
    """(groups, d): each group's mu + own."""
    d = x[0].shape[1]
    common = torch.full((d,), ENTIRELY if model == "alone" else strength / 10, dtype=torch.float64)
    own = torch.full((d,), ENTIRELY if model == "pooled" else strength, dtype=torch.float64)
    if model == "pooled":
        own[0] = strength
    (own if model == "alone" else common)[0] = HARDLY
    mu, rest = torch.zeros(d, dtype=torch.float64), torch.zeros(len(x), d, dtype=torch.float64)
    value = _objective(x, y, mu, rest, common, own, logistic)
    for _ in range(STEPS):
        mu_step, rest_step = _newton(x, y, mu, rest, common, own, logistic)
        share = 1.0
        while share > 1e-4:
            new = mu + share * mu_step, rest + share * rest_step
            found = _objective(x, y, *new, common, own, logistic)
            if found <= value:
                break
            share /= 2
        else:
            break
        (mu, rest), gain, value = new, value - found, found
        if gain < CLOSE * (1 + abs(value)):
            break
    return mu + rest


def _objective(
    x: list[Tensor], y: list[Tensor], mu: Tensor, rest: Tensor, common: Tensor, own: Tensor, logistic: bool
) -> float:
    total = (common * mu.square()).sum() / 2 + (own * rest.square()).sum() / 2
    for features, target, w in zip(x, y, mu + rest, strict=True):
        out = features @ w
        losses = torch.nn.functional.softplus(out) - target * out if logistic else (out - target) ** 2 / 2
        total = total + losses.sum()
    return float(total)


def _newton(
    x: list[Tensor], y: list[Tensor], mu: Tensor, rest: Tensor, common: Tensor, own: Tensor, logistic: bool
) -> tuple[Tensor, Tensor]:
    """The step of mu and of each own_g: own_g's equations are solved for mu's step, which is solved first."""
    curves, slopes = [], []
    for features, target, w in zip(x, y, mu + rest, strict=True):
        out = features @ w
        p = out.sigmoid() if logistic else out
        weight = (p * (1 - p)).clamp(min=1e-9) if logistic else torch.ones_like(out)
        curves.append(features.mT @ (weight[:, None] * features))
        slopes.append(features.mT @ (target - p))
    H, g = torch.stack(curves), torch.stack(slopes)  # (G, d, d), (G, d)
    S = H + torch.diag(own)
    solved = torch.linalg.solve(S, torch.cat([H, (g - own * rest).unsqueeze(-1)], 2))  # S^-1 [H, slope]
    left = torch.diag(common) + (H - H @ solved[..., :-1]).sum(0)
    right = (g - (H @ solved[..., -1:])[..., 0]).sum(0) - common * mu
    step = torch.linalg.solve(left, right)
    return step, solved[..., -1] - solved[..., :-1] @ step


# --- trees -------------------------------------------------------------------------------------------------


def _boosting(groups: Groups, classes: int) -> dict[str, Tensor]:
    """scikit-learn's, with its own defaults, if it is there."""

    def inputs(which: str) -> np.ndarray:
        parts = [(getattr(rows, which).x, g) for g, rows in enumerate(groups.values())]
        return np.concatenate([np.column_stack([np.full(len(x), float(g)), x.numpy()]) for x, g in parts])

    y = np.concatenate([rows.learned.y.numpy() for rows in groups.values()])
    categories = [0] if len(groups) <= MOST_GROUPS else None
    found = _by_trees(inputs("learned"), y, classes, categories, inputs("test"))
    sizes = [len(rows.test.y) for rows in groups.values()]
    parts = torch.from_numpy(np.ascontiguousarray(found)).split(sizes)
    return dict(zip(groups, parts, strict=True))


def _by_trees(
    x: np.ndarray, y: np.ndarray, classes: int, categories: list[int] | None, tested: np.ndarray
) -> np.ndarray:
    """What trees say of the tested rows: values (n,), or probabilities (n, classes)."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    if not classes:
        trees = HistGradientBoostingRegressor(categorical_features=categories, random_state=0)
        return trees.fit(x, y).predict(tested)
    found = np.full((len(tested), classes), SMALLEST)
    there, counts = np.unique(y, return_counts=True)
    if len(there) < 2:  # nothing to tell apart
        found[:, there] = 1.0
        return found
    stop = "auto" if counts.min() > 1 else False  # rows that tell when to stop need every class
    kind = HistGradientBoostingClassifier
    model = kind(categorical_features=categories, early_stopping=stop, random_state=0).fit(x, y)
    found[:, model.classes_] = model.predict_proba(tested)
    return found
