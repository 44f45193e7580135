"""Estimators for scikit-learn: what groups of rows have in common, and what is a group's own.

    model = LifelongClassifier(group_column="site").fit(january, y)
    model.partial_fit(february, y2)            # new sites are learned, known ones updated
    model.predict_proba(march)                 # a site never seen: as sites are, less sure

They are `piaget.prior` with the manners of scikit-learn. Which group a row belongs to is said by a column of
X (`group_column`), which passes through pipelines, cross-validation and searches as it is, or by the argument
`groups` of each method, which scikit-learn's metadata routing brings there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from piaget import prior
from piaget.data.arrays import Kind
from piaget.data.class_weight import ClassWeight, check_class_weight, chosen, weights_of
from piaget.data.columns import as_frame, as_text, declared_categories, is_table, tidied
from piaget.data.encoding import Column, Scaling, centered
from piaget.data.plain import plain
from piaget.errors import PackageError
from piaget.prior.many import learn_many
from piaget.streams.table_stream import fit_columns

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.metrics import accuracy_score, r2_score
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import (
        check_array,
        check_consistent_length,
        check_is_fitted,
        column_or_1d,
        validate_data,
    )
except ImportError as error:
    raise PackageError(
        "piaget.sklearn needs scikit-learn 1.6 or later: pip install 'piaget[sklearn]'"
    ) from error

__all__ = ["LifelongClassifier", "LifelongRegressor"]
ALL = ""  # the name of the only group, where there are none
ONE_DEVIATION = 0.6827  # of normal values, so many are no farther from their mean


class _Lifelong(BaseEstimator):  # type: ignore[misc]
    """What classifier and regressor have in common."""

    knowledge_: prior.Knowledge
    columns_: tuple[Column, ...] | None  # how columns are encoded; None: X was an array, and is scaled
    scaling_: Scaling

    def __init__(self, *, group_column: str | int | None = None, rows: int = 500, trees: bool = True) -> None:
        self.group_column, self.rows, self.trees = group_column, rows, trees

    @property
    def groups_(self) -> list[str]:
        """The names of the groups that are known, as texts."""
        check_is_fitted(self)
        return self.knowledge_.tasks

    def forget(self, group: Any) -> Self:
        """As if the group's rows had never been there."""
        check_is_fitted(self)
        self.knowledge_ = prior.forget(self.knowledge_, as_text(plain(group)))
        return self

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if "knowledge_" in state:  # without what it has computed to answer: that can be large
            state = state | {"knowledge_": replace(state["knowledge_"])}
        return state

    # --- learning -------------------------------------------------------------------------------

    def _learn(self, X: Any, y: np.ndarray, groups: Any, reset: bool, kind: Kind, classes: int) -> Self:
        inputs, names = self._rows(X, groups, reset)
        if None in names:
            raise ValueError(f"row {names.tolist().index(None)} has no group; expected a name for each row")
        check_consistent_length(inputs, y)
        begun = prior.begin(kind, classes, rows=self.rows, trees=self.trees)
        known = begun if reset else self.knowledge_
        targets = torch.from_numpy(y)
        given = {name: (inputs[places], targets[places]) for name, places in _grouped(names)}
        self.knowledge_ = prior.settled(learn_many(known, given))
        return self

    # --- answering ------------------------------------------------------------------------------

    def _answers(self, X: Any, groups: Any) -> Iterator[tuple[Tensor, Tensor, str | None]]:
        """For each group: its places among the rows, their inputs, its name."""
        check_is_fitted(self)
        inputs, names = self._rows(X, groups, reset=False)
        for name, rows in _grouped(names):
            yield rows, inputs[rows], name

    # --- rows -----------------------------------------------------------------------------------

    def _rows(self, X: Any, groups: Any, reset: bool) -> tuple[Tensor, np.ndarray]:
        """Inputs (n, inputs), and the name of each row's group (n,); None where it is missing."""
        if self.group_column is not None and groups is not None:
            raise ValueError("groups are given, and group_column, too; expected one of them")
        table = is_table(X) if reset else self.columns_ is not None
        inputs, column = self._from_table(X, reset) if table else self._from_array(X, reset)
        if self.group_column is not None:
            groups = column
        elif groups is None and not reset and ALL not in self.knowledge_.records:
            raise ValueError(
                "groups=None, but the estimator was fitted with groups; expected groups, one for each row "
                "(of a group never seen: any other name). In pipelines and cross-validation, "
                "set_predict_request(groups=True), set_score_request(groups=True), ..., or give group_column"
            )
        names = np.full(len(inputs), ALL, object) if groups is None else _names(groups)
        check_consistent_length(inputs, names)
        return inputs, names

    def _from_array(self, X: Any, reset: bool) -> tuple[Tensor, Any]:
        """Inputs, and the group's column."""
        column, at = None, self.group_column
        X = validate_data(self, X, reset=reset, dtype=np.float64 if at is None else None)
        if at is not None:
            if not isinstance(at, int) or not -X.shape[1] <= at < X.shape[1]:
                raise ValueError(f"group_column={at!r}; expected the number of one of {X.shape[1]} columns")
            column, X = X[:, at], np.delete(X, at, axis=1)
            X = check_array(X, dtype=np.float64, input_name="X", estimator=self)
        x = torch.tensor(X)
        if reset:
            self.columns_, self.scaling_ = None, centered(x)
        return self.scaling_.inputs(x, "cpu", torch.float64), column

    def _from_table(self, X: Any, reset: bool) -> tuple[Tensor, Any]:
        """The same from a table: categories, dates and missing values are encoded as in training."""
        if not is_table(X):  # an array instead
            X = validate_data(self, X, reset=False, dtype=None, ensure_all_finite=False)
            X = dict(zip(self.feature_names_in_, np.asarray(X, object).T, strict=True))
        frame = as_frame(X).infer_objects()
        validate_data(self, frame, reset=reset, skip_check_array=True)
        column, at = None, self.group_column
        if at is not None:
            if isinstance(at, int):  # a name, where names are numbers; else a place
                there = -frame.shape[1] <= at < frame.shape[1] and str(at) not in frame.columns
                at = frame.columns[at] if there else str(at)
            if at not in frame.columns:
                raise ValueError(f"X has no column {at!r} (group_column); its columns: {list(frame.columns)}")
            column, frame = frame[at], frame.drop(columns=at)
        if reset:
            check_array(np.zeros(frame.shape), input_name="X", estimator=self)  # there are rows and columns
            tidy = frame.assign(**{name: tidied(name, frame[name]) for name in frame})
            self.columns_ = fit_columns(tidy, list(tidy), set(declared_categories(frame)))
        assert self.columns_ is not None
        x = np.concatenate([one.encode(frame[one.name]) for one in self.columns_], 1, dtype=np.float64)
        return torch.from_numpy(check_array(x, input_name="X", estimator=self)), column


def _names(groups: Any) -> np.ndarray:
    """Groups (n,) as texts: 3, 3.0 and "3" are the same. None where missing."""
    values = [plain(value) for value in column_or_1d(np.asarray(groups, object))]
    names = np.empty(len(values), object)
    names[:] = [None if _is_missing(value) else as_text(value) for value in values]
    return names


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, float) and value != value
    )  # fmt: skip


def _grouped(names: np.ndarray) -> Iterator[tuple[Any, Tensor]]:
    """Each name with its places, in the order in which they first occur."""
    places: dict[Any, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    return ((name, torch.tensor(rows)) for name, rows in places.items())


def _check_given(estimator: BaseEstimator, y: Any) -> None:
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None")


class LifelongClassifier(ClassifierMixin, _Lifelong):  # type: ignore[misc]
    """Classes of rows that belong to groups.

    A group has weights of its own, which are near what all groups have in common and vary along directions
    that groups share: as far as the data of all groups says. What is beyond linear is learned by boosted
    trees, if that is surely better. Groups need few rows, and need not have all classes.

    group_column: the column of X that says to which group a row belongs, by name or number; None: the
        argument `groups` does, and without that all rows are of one group
    rows: so many of a group's rows are kept, to learn on from; older ones are summed up
    trees: whether boosted trees may correct the linear answers
    class_weight: how much errors count, by the true class: "balanced", or {class: weight}. It decides which
        class `predict` answers, by weight x probability; `predict_proba` stays as it is, and so calibrated.
        So it can be set later, without another fit

    X is an array of numbers, or a table (pandas, polars) whose categories, dates and missing values are
    encoded as when the estimator was fitted. Groups that were never seen, or are missing, get what is
    expected of a group.

    Attributes: classes_, groups_, n_features_in_, feature_names_in_ (of a table), knowledge_ (`piaget.prior`)

    Raises `ValueError` as scikit-learn's estimators do, if X, y or groups do not fit.

    >>> from piaget.sklearn import LifelongClassifier
    >>> x = np.random.default_rng(0).normal(size=(90, 2))
    >>> model = LifelongClassifier(trees=False).fit(x, x[:, 0] > 0, groups=np.repeat(["a", "b", "c"], 30))
    >>> model.predict(np.array([[2.0, 0.0], [-2.0, 0.0]]), groups=["a", "never seen"])
    array([ True, False])
    >>> model.predict_proba(x[:5], groups=["a"] * 5).shape
    (5, 2)
    """

    classes_: np.ndarray

    def __init__(
        self,
        *,
        group_column: str | int | None = None,
        rows: int = 500,
        trees: bool = True,
        class_weight: Any = None,
    ) -> None:
        super().__init__(group_column=group_column, rows=rows, trees=trees)
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learns all groups, from the beginning."""
        return self._fit(X, y, groups, None, reset=True)

    def partial_fit(self, X: Any, y: Any, groups: Any = None, classes: Any = None) -> Self:
        """Learns new groups, and updates known ones with more rows.

        classes: all that there will be, in the first call; without it, those of y.
        """
        return self._fit(X, y, groups, classes, reset=not hasattr(self, "knowledge_"))

    def _fit(self, X: Any, y: Any, groups: Any, classes: Any, reset: bool) -> Self:
        _check_given(self, y)
        check_class_weight(self.class_weight)
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "f":
            y = check_array(y, ensure_2d=False, dtype=None, input_name="y", estimator=self)
        check_classification_targets(y)
        if reset:
            self.classes_ = np.unique(y if classes is None else np.asarray(classes))
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={classes!r}; expected {self.classes_.tolist()}, as in the first call")
        count = len(self.classes_)
        if count < 2:
            raise ValueError(f"y has one class only, {self.classes_.tolist()}; expected two classes or more")
        self._weight()  # does it fit the classes?
        other = ~np.isin(y, self.classes_)
        if other.any():
            found = y[other][:1].tolist()[0]
            raise ValueError(f"y has the class {found!r}; expected one of {self.classes_.tolist()}")
        kind: Kind = "binary" if count == 2 else "multiclass"
        return self._learn(X, np.searchsorted(self.classes_, y), groups, reset, kind, count)

    def predict_proba(self, X: Any, groups: Any = None) -> np.ndarray:
        """(n, classes), in the order of `classes_`; what is not known of a group is reckoned with."""
        found = self._answers(X, groups)
        return _in_order([(rows, prior.probabilities(self.knowledge_, x, name)) for rows, x, name in found])

    def predict(self, X: Any, groups: Any = None) -> np.ndarray:
        """The most likely class of each row; by `class_weight`, that of the largest weight x probability."""
        p = torch.from_numpy(self.predict_proba(X, groups))
        weights = weights_of(self._weight(), self.classes_.tolist(), self.knowledge_.class_counts)
        return self.classes_[chosen(p, weights).numpy()]

    def _weight(self) -> ClassWeight | None:
        """Checked. As everywhere in scikit-learn, classes that are not there may be named, unless others have
        no weight: then it is a slip."""
        weight, there = check_class_weight(self.class_weight), self.classes_.tolist()
        if not isinstance(weight, dict):
            return weight
        if set(weight) - set(there) and set(there) - set(weight):
            raise ValueError(f"class_weight names {sorted(weight, key=str)}; the classes are {there}")
        return {c: w for c, w in weight.items() if c in there}

    def score(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> float:
        """Accuracy."""
        return float(accuracy_score(y, self.predict(X, groups), sample_weight=sample_weight))


class LifelongRegressor(RegressorMixin, _Lifelong):  # type: ignore[misc]
    """Values of rows that belong to groups: see `LifelongClassifier`, whose parameters it has, but for
    `class_weight`.

    What is kept of a regression are exact sums, to which rows that come later are added; what groups have in
    common is estimated from them anew, and may differ slightly from what one `fit` finds.

    Raises `ValueError` as scikit-learn's estimators do, if X, y or groups do not fit.

    >>> from piaget.sklearn import LifelongRegressor
    >>> x = np.random.default_rng(0).normal(size=(90, 2))
    >>> model = LifelongRegressor(trees=False).fit(x, 2 * x[:, 0], groups=np.repeat(["a", "b", "c"], 30))
    >>> model.predict(np.array([[1.0, 0.0]]), groups=["b"]).round(2)
    array([2.])
    >>> model.interval(x[:5], groups=["b"] * 5).shape
    (5, 2)
    """

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learns all groups, from the beginning."""
        return self._fit(X, y, groups, reset=True)

    def partial_fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learns new groups, and updates known ones with more rows."""
        return self._fit(X, y, groups, reset=not hasattr(self, "knowledge_"))

    def _fit(self, X: Any, y: Any, groups: Any, reset: bool) -> Self:
        _check_given(self, y)
        y = column_or_1d(y, warn=True)
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", estimator=self, copy=True)
        return self._learn(X, y, groups, reset, "regression", 0)

    def predict(self, X: Any, groups: Any = None, return_std: bool = False) -> Any:
        """Expected values (n,). return_std: also how far new measurements are from them, (n,): two thirds are
        no farther. (Their standard deviation, where many rows tell it; else there may be none.)"""
        mean, low, high = self._within(X, groups, ONE_DEVIATION)
        return (mean, (high - low) / 2) if return_std else mean

    def _within(self, X: Any, groups: Any, level: float) -> np.ndarray:
        """(3, n): values, and between which values new measurements lie, with this probability."""
        told = []
        for rows, x, name in self._answers(X, groups):
            value = prior.values(self.knowledge_, x, name)
            told.append((rows, torch.stack([value.mean, *value.interval(level)], 1)))
        return _in_order(told).T

    def interval(self, X: Any, groups: Any = None, level: float = 0.9) -> np.ndarray:
        """(n, 2): between which values a new measurement lies, with the probability `level`."""
        return self._within(X, groups, level)[1:].T

    def score(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> float:
        """R2."""
        return float(r2_score(y, self.predict(X, groups), sample_weight=sample_weight))


def _in_order(parts: list[tuple[Tensor, Tensor]]) -> np.ndarray:
    """Answers of groups of rows, as one array in the order of the rows."""
    places, answers = (torch.cat(part) for part in zip(*parts, strict=True))
    return answers[places.argsort()].numpy()
