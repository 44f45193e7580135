"""Scores of runs over tables, as their page has them: of models in the mean, of groups, of classes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from piaget.report import table_data as data
from piaget.scoring.rows import BY_CLASS, LOWER_IS_BETTER, Row
from piaget.scoring.worth import NAMES, best_simple, is_it_worth_it, simple_scores

EXACT = 6  # digits that are kept
WORDS = {
    "auc": "the share of pairs of rows, one of each class, that are put in the right order; 0.5 is chance",
    "loss": "how surprising the true classes are by predicted probabilities, in the mean (natural logarithm)",
    "accuracy": "the share of rows whose most probable class is the true one",
    "rmse": "the root of the mean squared error, in units of the target",
    "r2": "the share of the target's variance within a group that is explained; 0: no better than its mean",
}
# Where there are three classes or more.
MULTICLASS_WORDS = {
    "auc": "the share of pairs of rows, one of a class and one of another, that are put in the right order "
    "by the probability of the class; the mean over classes of which a group has test rows; 0.5 is chance",
}
# Where classes have weights.
WEIGHTED_WORDS = {
    "accuracy": "the share of rows that are answered with their true class; the answer is the class with the "
    "largest weight x probability",
}
NO_VERDICT = (
    "no verdict, since classes have weights: answers are then chosen so that errors cost least, not so that "
    "most rows are right. The accuracies are in the table"
)


def metrics_of(found: Mapping[str, Any], rows: Sequence[Row]) -> list[data.MetricData]:
    """Those that there are scores of; the run's own one first."""
    keys = [key for key in found["means"] if key in WORDS and _means(found, key).get("piaget") is not None]
    keys.sort(key=lambda key: key != found["metric"])
    weighted = any(one.get("weight") != 1 for one in found.get("classes") or ())
    words = WORDS | (MULTICLASS_WORDS if found["kind"] == "multiclass" else {})
    words |= WEIGHTED_WORDS if weighted else {}
    return [
        data.MetricData(
            key=key,
            name=NAMES[key],
            digits=_digits(key, _means(found, key).values()),
            higher_is_better=key not in LOWER_IS_BETTER,
            words=words[key],
            groups=sum(finite(_of(group, key).get("piaget")) is not None for group in found["groups"]),
            best=best_simple(key, simple_scores(rows, key)),
            verdict=f"{NO_VERDICT}." if weighted and key == "accuracy" else is_it_worth_it(rows, key),
        )
        for key in keys
    ]


def means_over(found: Mapping[str, Any], metrics: Sequence[data.MetricData]) -> str:
    """What means are over, in words: a score that is not defined in all groups has fewer of them."""
    groups = len(found["groups"])
    if all(metric["groups"] == groups for metric in metrics):
        return f"Means over {groups:,} groups"
    counts = ", ".join(f"{metric['groups']:,} for {metric['name']}" for metric in metrics)
    return f"Means over those of {groups:,} groups in which a score is defined ({counts})"


def _of(group: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return group.get(key) or {}


def _means(found: Mapping[str, Any], key: str) -> dict[str, Any]:
    return found["means"][key].get("mean") or {}


def _digits(key: str, values: Iterable[float | None]) -> int:
    """Errors are of any size: four digits of the largest that count."""
    largest = max((abs(value) for value in values if finite(value) is not None and value), default=1.0)
    return min(max(3 - math.floor(math.log10(largest)), 0), 9) if key == "rmse" else 3


def models_of(found: Mapping[str, Any], metrics: Sequence[data.MetricData]) -> list[data.ModelData]:
    """Their means; piaget's last."""
    names = {**found["simple"], "piaget": "piaget"}
    return [
        data.ModelData(
            key=key, name=name, means={m["key"]: finite(_means(found, m["key"]).get(key)) for m in metrics}
        )
        for key, name in names.items()
    ]


def group_of(group: Mapping[str, Any], metrics: Sequence[data.MetricData]) -> data.OwnGroupData:
    """A group, by what a summary says of it."""
    classes = group.get("classes") or []
    return data.OwnGroupData(
        name=str(group["group"]),
        rows=int(group["rows"]),
        tested=group.get("tested"),
        positives=int(classes[1]) if len(classes) == 2 else None,
        scores={m["key"]: _score(_of(group, m["key"]), m) for m in metrics},
    )


def _score(scores: Mapping[str, float], metric: data.MetricData) -> data.GroupScoreData:
    ours, simple = finite(scores.get("piaget")), finite(scores.get(metric["best"] or ""))
    sign = 1 if metric["higher_is_better"] else -1
    gain = None if ours is None or simple is None else round(sign * (ours - simple), EXACT)
    majority = finite(scores.get("majority"))
    return data.GroupScoreData(piaget=ours, simple=simple, majority=majority, gain=gain)


def class_of(one: Mapping[str, Any]) -> data.ClassData:
    """A class, by what a summary says of it."""
    precision, recall, f1, area = (finite(one.get(name)) for name in BY_CLASS)
    return data.ClassData(
        name=str(one["label"]),
        rows=int(one["rows"]),
        answered=int(one["answered"]),
        precision=precision,
        recall=recall,
        f1=f1,
        auc=area,
        weight=round(float(one["weight"]), EXACT),
    )


def finite(value: Any) -> float | None:
    """A number, rounded; None: it is none."""
    return round(float(value), EXACT) if isinstance(value, int | float) and math.isfinite(value) else None
