"""Answers of a learner for the rows of a table, as one more column or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from piaget.data.columns import as_given, as_texts, read_table
from piaget.data.encoding import Encoding
from piaget.data.plain import is_number
from piaget.errors import DataError, SettingError, UnknownTaskError, note
from piaget.streams.table_notes import note_alike, note_odd_columns, some
from piaget.streams.table_rows import check_columns

if TYPE_CHECKING:
    from piaget.asking import Asking
    from piaget.prior_answers import PriorAnswers

BASIS, OWN, OTHERS = "predicted from", "own rows", "other groups"


def predict_table(
    learner: Asking | PriorAnswers,
    rows: Any,
    *,
    proba: bool = False,
    interval: float | None = None,
    threshold: float | None = None,
) -> Any:
    """A DataFrame of the rows (a table or its path) with more columns: what is predicted for each.

    proba: also the probability of each class. interval: also between which values a measurement lies, with
    this probability. threshold: of two classes, the second one from this probability on, instead of
    0.5, or of what the learner's `class_weight` says.
    A prior learner answers for groups that it never saw, too, and a column says so. Names of the new columns
    are in `attrs["predicted"]`; of polars, if the rows are, without that.
    """
    encoding = next((e for e in map(learner.encoding, learner.tasks) if e is not None), None)
    if not learner.tasks:
        raise UnknownTaskError("the learner knows no task: none was learned, or all were forgotten")
    if encoding is None:
        raise DataError("the learner has learned no task from a table: it has no columns to go by")
    frame, source = read_table(rows, [encoding.group, *encoding.categories])
    check_columns(source, list(frame.columns), encoding, None)
    note_odd_columns(encoding.recognized(frame), encoding)
    groups = as_texts(frame[encoding.group])
    unknown = [group for group in dict.fromkeys(groups) if group not in learner.tasks]
    note_alike((group for group in unknown if group is not None), learner.tasks)
    without = int(sum(group in unknown for group in groups))
    if hasattr(learner, "answers"):
        told = _prior_columns(
            cast("PriorAnswers", learner), frame, groups, encoding, proba, interval, threshold
        )
        if unknown:
            note(f"{without} of {len(frame)} rows are of groups never seen, {some(unknown)}: they are "
                  "predicted from what the other groups share, with less certainty")  # fmt: skip
    else:
        if interval is not None:
            raise SettingError("intervals: of tables that were learned without --structure, --adaptation or "
                               "--algorithm")  # fmt: skip
        if without == len(frame):
            raise DataError(f"no row is of a group that was learned; those are {', '.join(learner.tasks)}")
        if unknown:
            note(f"{without} of {len(frame)} rows get no prediction: no task was learned for "
                  f"{encoding.group} {some(unknown)}")  # fmt: skip
        told = _network_columns(learner, frame, groups, encoding.target, proba, threshold)
    for name in told:
        if name in frame.columns:
            raise DataError(f"the table has a column {name!r} already")
    answered = frame.assign(**told).infer_objects()
    if hasattr(rows, "index") and hasattr(rows, "columns"):  # a pandas table's rows keep their names
        answered.index = rows.index
    answered.attrs["predicted"] = list(told)
    return as_given(answered, rows)


def _prior_columns(
    learner: PriorAnswers,
    frame: Any,
    groups: np.ndarray,
    encoding: Encoding,
    proba: bool,
    interval: float | None,
    threshold: float | None,
) -> dict[str, np.ndarray]:
    labels, target = learner.labels, encoding.target
    _check(labels, proba, interval, threshold)
    numbers = np.zeros((len(frame), len(labels) or 3))  # probabilities; or a value, and from where to where
    number = np.zeros(len(frame), np.int64)  # of the class that is answered
    for group in dict.fromkeys(groups):
        said = learner.answers(frame[groups == group], group)
        parts = said.probabilities
        if parts is not None:
            number[groups == group] = said.classes.numpy()
        else:
            parts = torch.stack([said.values, *said.interval(0.9 if interval is None else interval)], 1)
        numbers[groups == group] = parts.numpy()
    known = set(learner.tasks)
    basis = BASIS, np.array([OWN if group in known else OTHERS for group in groups], object)
    if not labels:
        told = [(f"predicted {target}", numbers[:, 0])]
        if interval is not None:
            told += [(f"{target} from", numbers[:, 1]), (f"{target} to", numbers[:, 2])]
        return _distinct([*told, basis])
    if threshold is not None:
        number = (numbers[:, 1] >= threshold).astype(np.int64)
    told = [(f"predicted {target}", np.array([labels[i] for i in number], object))]
    if proba:
        told += [(f"probability of {label}", numbers[:, i]) for i, label in enumerate(labels)]
    return _distinct([*told, basis])


def _network_columns(
    learner: Asking, frame: Any, groups: np.ndarray, target: str, proba: bool, threshold: float | None
) -> dict[str, np.ndarray]:
    """Nothing for groups that were not learned; a class that a group's network does not know has the
    probability 0 there."""
    known = [group for group in dict.fromkeys(groups) if group in learner.tasks]
    labels = list(
        dict.fromkeys(label for task in learner.tasks for label in learner.record(task).labels or ())
    )
    _check(labels, proba, None, threshold)
    answers = np.empty(len(frame), object)
    numbers = np.full((len(frame), len(labels)), np.nan)
    for group in known:
        rows = groups == group
        answers[rows] = learner.predict(frame[rows], group)
        if proba or threshold is not None:
            own = [labels.index(label) for label in learner.record(group).labels or ()]
            numbers[rows] = 0.0
            numbers[np.ix_(rows, own)] = learner.predict_proba(frame[rows], group)
        if threshold is not None:
            answers[rows] = [labels[int(share >= threshold)] for share in numbers[rows, 1]]
    told = [(f"predicted {target}", answers)]
    if proba:
        told += [(f"probability of {label}", numbers[:, i]) for i, label in enumerate(labels)]
    return _distinct(told)


def _distinct(columns: Sequence[tuple[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """By name; a name that was there before (of a target called "from", of classes 1 and "1") gets a
    number."""
    told: dict[str, np.ndarray] = {}
    for name, values in columns:
        unique, number = name, 1
        while unique in told:
            number += 1
            unique = f"{name} ({number})"
        told[unique] = values
    return told


def _check(labels: Any, proba: bool, interval: float | None, threshold: float | None) -> None:
    if not labels and (proba or threshold is not None):
        raise SettingError("the target is a number: it has intervals, no probabilities and no threshold")
    if labels and interval is not None:
        raise SettingError("the target is a class: it has probabilities, no intervals")
    if threshold is not None and len(labels) != 2:
        raise SettingError(f"a threshold needs a target of two classes; this one has {len(labels)}")
    if threshold is not None and not (is_number(threshold) and 0 < threshold < 1):
        raise SettingError(f"threshold={threshold!r}; expected a number between 0 and 1")
