"""What people need to decide, of a run over a table: scores beside simple models, calibration, columns."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import torch

from piaget import prior
from piaget.data.encoding import Encoding
from piaget.data.tasks import Task
from piaget.lab.table_columns import moved_by, straight_weights
from piaget.prior.labels import contrasts
from piaget.prior_answers import named_scores
from piaget.prior_learner import LEARNED, PriorLearner
from piaget.scoring.answer_scores import Answers, Bin, ClassScores, calibration_error, coverage, reliability
from piaget.scoring.rows import MAJORITY, SHARES, SIMPLE, Row
from piaget.scoring.simple_models import GroupRows, Part, by_shares, compared
from piaget.scoring.worth import (
    CHOICES,
    at_chance,
    best_simple,
    deciding,
    difference,
    is_it_worth_it,
    scores_of,
    simple_scores,
)

LEVEL = 0.9  # of intervals whose coverage is told
LEVELS = (0.5, 0.6, 0.7, 0.8, LEVEL, 0.95)  # and of those in a summary


def decision_rows(learner: PriorLearner, tasks: Sequence[Task]) -> list[Row]:
    """Scores of simple models on the same test rows, and how far answers can be trusted."""
    scored = _scored(tasks)
    if not scored:
        return []
    stream, last, classes = tasks[0].stream, tasks[-1].name, len(learner.labels)

    def row(metric: str, value: float, task: str) -> Row:
        return learner.row(last, "evaluation", metric, value, task, "test", stream)

    rows = []
    parts = {task.name: _parts(learner, task) for task in tasks}
    for model, scores in compared(parts, classes, learner.answer_weights).items():
        for task, values in scores.items():
            rows += [row(f"{metric} by {model}", value, task) for metric, value in values.items()]
            if model == "majority" and "accuracy" in values:
                rows.append(row(MAJORITY, values["accuracy"], task))
    for task, values in by_shares(parts, classes, learner.answer_weights).items():
        rows += [row(f"{metric} by {SHARES}", value, task) for metric, value in values.items()]
    said, y = answered(learner, scored)
    if classes:
        rows.append(row("calibration error", calibration_error(bins_of(said, y)), ""))
        rows += [row(metric, value, "") for metric, value in named_scores(said, y, learner.labels).items()]
    else:
        rows.append(row("coverage", coverage(*said.interval(LEVEL), y), ""))
    return rows


def _scored(tasks: Sequence[Task]) -> list[Task]:
    return [task for task in tasks if task.test is not None]


def _parts(learner: PriorLearner, task: Task) -> GroupRows:
    there = {name: Part(*learner.common.rows(task, [name])) for name, _ in task.splits()}
    x, y = there[LEARNED[0]]
    none = Part(x[:0], y[:0])
    return GroupRows(Part(x, y), there.get(LEARNED[1], none), there.get("test", none))


def answered(learner: PriorLearner, tasks: Sequence[Task]) -> tuple[Answers, torch.Tensor]:
    """All test rows of all tasks, and their targets."""
    pairs = [(task.name, *learner.common.rows(task, ["test"])) for task in tasks]
    said = [learner.answered(x, name) for name, x, _ in pairs]
    y = torch.cat([targets for *_, targets in pairs])
    if learner.labels:
        p = torch.cat([one.probabilities for one in said if one.probabilities is not None])
        return Answers(p, weights=learner.answer_weights), y
    numbers = [one.numbers for one in said if one.numbers is not None]
    return Answers(None, prior.Values(*map(torch.cat, zip(*numbers, strict=True)))), y


def bins_of(said: Answers, y: torch.Tensor) -> list[Bin]:
    """The reliability table of probabilities."""
    assert said.probabilities is not None
    return reliability(said.probabilities, y)


def summary_of(learner: PriorLearner, tasks: Sequence[Task], rows: Sequence[Row]) -> dict[str, Any]:
    """As plain data: what a page shows."""
    metrics = CHOICES[learner.common.kind]
    metric, scored = deciding(rows, metrics), _scored(tasks)
    bins: list[Bin] = []
    covered: list[dict[str, float]] = []
    by_class: list[dict[str, Any]] = []
    if scored:
        said, y = answered(learner, scored)
        if learner.labels:
            bins, by_class = bins_of(said, y), _classes(learner, said.by_class(y))
        else:
            covered = [{"level": one, "observed": coverage(*said.interval(one), y)} for one in LEVELS]
    simple = {name: simple_scores(rows, name) for name in metrics}
    best = best_simple(metric, simple[metric])
    names = SIMPLE if learner.labels else SIMPLE | {"majority": "the mean"}
    return {
        "kind": learner.common.kind,
        "labels": list(learner.labels),
        "metric": metric,
        "best_simple": best,
        "verdict": is_it_worth_it(rows, metric),
        "chance": at_chance(rows),
        "means": {name: _means(rows, name) for name in metrics},
        "groups": [_group(learner, task, rows, metrics) for task in tasks],
        "reliability": [one._asdict() for one in bins],
        "coverage": covered,
        "classes": by_class,
        "columns": columns_of(learner),
        "moved": moved_by(learner),
        "structures": {name: psi.flatten().tolist() for name, psi in learner.structures().items()},
        "simple": {model: name for model, name in names.items() if model in simple[metric]},
    }


def _classes(learner: PriorLearner, scores: Sequence[ClassScores]) -> list[dict[str, Any]]:
    """Of the test rows of all groups together."""
    weights = learner.class_weights().items()
    return [
        {"label": label, "weight": weight} | one._asdict()
        for (label, weight), one in zip(weights, scores, strict=True)
    ]


def _means(rows: Sequence[Row], metric: str) -> dict[str, Any]:
    """Over groups: of the learner and each simple model, and their paired differences."""
    ours, simple = scores_of(rows, metric), simple_scores(rows, metric)
    found: dict[str, Any] = {"piaget": statistics.fmean(ours.values()) if ours else None}
    found |= {model: statistics.fmean(of.values()) for model, of in simple.items()}
    differences = {model: difference(metric, ours, of) for model, of in simple.items()}
    return {"mean": found, "gains": {m: vars(d) for m, d in differences.items() if d is not None}}


def _group(learner: PriorLearner, task: Task, rows: Sequence[Row], metrics: Sequence[str]) -> dict[str, Any]:
    _, y = learner.common.rows(task, ["train", "validation", "test"])
    tested = 0 if task.test is None else len(learner.common.rows(task, ["test"])[1])
    described: dict[str, Any] = {"group": task.name, "rows": len(y), "tested": tested}
    if learner.labels:
        described["classes"] = torch.bincount(y, minlength=len(learner.labels)).tolist()
    for metric in metrics:
        of = {"piaget": scores_of(rows, metric)} | simple_scores(rows, metric)
        described[metric] = {model: scores[task.name] for model, scores in of.items() if task.name in scores}
    return described


def columns_of(learner: PriorLearner) -> list[dict[str, Any]]:
    """How much each input moves the answer, for a change of it by its spread: in common, and how much groups
    differ. (Without what trees add, and as far as it is linear: see `moved_by`.)"""
    known = learner.known
    weights = contrasts(known.form.outputs).mT @ straight_weights(known)  # (T, K, inputs)
    names, weights = _effects(weights, learner.encoding())
    common = weights.mean(0).square().mean(0).sqrt()
    signed = weights.mean((0, 1)) if weights.shape[1] == 1 else common
    differ = weights.std(0, correction=0).square().mean(0).sqrt()
    told = zip(names, signed.tolist(), differ.tolist(), strict=True)
    return [{"input": name, "common": mean, "differs": spread} for name, mean, spread in told]


def _effects(weights: torch.Tensor, encoding: Encoding | None) -> tuple[list[str], torch.Tensor]:
    """Names of what can change in a row, and what the change does (T, K, effects). Of a category with two
    values, one goes only if the other comes: that is one effect, not two. Of more, one comes for the others,
    which count alike."""
    if encoding is None:
        return [f"input {i}" for i in range(weights.shape[-1])], weights
    names: list[str] = []
    effects: list[torch.Tensor] = []
    sizes = [len(column.inputs) for column in encoding.columns]
    for column, own in zip(encoding.columns, weights.split(sizes, -1), strict=True):
        if column.levels is not None and len(column.levels) == 2:
            first, second = column.levels
            names += [f"{column.name}: {first} \N{RIGHTWARDS ARROW} {second}", *column.inputs[2:]]
            own = torch.cat([own[..., 1:2] - own[..., :1], own[..., 2:]], -1)
        else:
            names += column.inputs
            levels = len(column.levels or ())
            if levels > 2:
                some = own[..., :levels]
                others = (some.sum(-1, keepdim=True) - some) / (levels - 1)
                own = torch.cat([some - others, own[..., levels:]], -1)
        effects.append(own)
    return names, torch.cat(effects, -1)
