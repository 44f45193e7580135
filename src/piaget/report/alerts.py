"""What a reader must know before any number: what diverged, is unfinished, or no better than guessing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from piaget.report import metrics
from piaget.report.contents import Contents
from piaget.report.groups import Group
from piaget.report.reported_run import ReportedRun
from piaget.report.statistics import LEVEL, tested
from piaget.report.wording import counted, listed, score
from piaget.scoring.rows import MAJORITY

DIVERGED, UNFINISHED, CHANCE = "diverged", "unfinished", "at chance level"
MOST_NAMED = 4  # methods, in a sentence


@dataclass(frozen=True)
class Alert:
    """A sentence, what it is about, and the stream, if it is about one."""

    kind: str
    text: str
    stream: str


def alerts(contents: Contents) -> list[Alert]:
    """All of them, the worst first."""
    found = [
        Alert(kind, text, stream)
        for stream in contents.streams
        for kind, text in (
            (DIVERGED, _diverged(contents, stream)),
            (UNFINISHED, _unfinished(contents, stream)),
            (CHANCE, _at_chance(contents, stream)),
        )
        if text
    ]
    kinds = [DIVERGED, UNFINISHED, CHANCE]
    return sorted(found, key=lambda alert: kinds.index(alert.kind))


def _of(contents: Contents, stream: str) -> list[Group]:
    return [group for group in contents.groups if group.stream == stream]


def _named(groups: Iterable[tuple[Group, list[ReportedRun]]]) -> str:
    """ER Joint (seeds 1 and 3) and NFT Joint (all seeds)"""
    told = []
    for group, runs in groups:
        seeds = listed([str(run.seed) for run in runs], MOST_NAMED)
        which = "all seeds" if len(runs) == len(group.runs) > 1 else f"seed{'s'[: len(runs) - 1]} {seeds}"
        told.append(f"{group.label} ({which})")
    return listed(told, MOST_NAMED)


def _diverged(contents: Contents, stream: str) -> str:
    """Runs that ended so, and those that have scores that are not numbers."""

    def lost(run: ReportedRun) -> bool:
        return run.diverged or not math.isfinite(contents.final.get(run.name, 0.0))

    of = [(group, [run for run in group.runs if lost(run)]) for group in _of(contents, stream)]
    of = [(group, runs) for group, runs in of if runs]
    runs, every = sum(len(runs) for _, runs in of), sum(len(group.runs) for group in _of(contents, stream))
    if not runs:
        return ""
    verb = "has" if runs == 1 else "have"
    return (
        f"{stream}: {runs} of {counted(every, 'run')} {verb} diverged: {_named(of)}. Means of these "
        "methods are of the other seeds, or missing."
    )


def _unfinished(contents: Contents, stream: str) -> str:
    groups = _of(contents, stream)
    of = [(group, [run for run in group.runs if not run.done and not run.diverged]) for group in groups]
    of = [(group, runs) for group, runs in of if runs]
    runs, every = sum(len(runs) for _, runs in of), sum(len(group.runs) for group in groups)
    if not runs:
        return ""
    counts = any(run in group.counted for group, some in of for run in some)
    if counts:
        return f"{stream}: no run is finished; all numbers are of the tasks learned so far."
    verb = "is" if runs == 1 else "are"
    return (
        f"{stream}: {runs} of {counted(every, 'run')} {verb} unfinished and left out of means: "
        f"{_named(of)}. piaget resume goes on with them."
    )


def _at_chance(contents: Contents, stream: str) -> str:
    """Methods that are no better than always answering the most frequent class, as far as seeds can tell."""
    lines = contents.compute(metrics.further_performance)
    majority = lines[lines["metric"] == MAJORITY].set_index("run")["final"]
    compared, beaten = [], []
    level = 0.0
    for group in contents.on(stream):
        ours, guessed = group.of(contents.final, group.unit), group.of(majority, group.unit)
        leads = [ours[seed] - guessed[seed] for seed in ours if seed in guessed and math.isfinite(ours[seed])]
        if not leads:
            continue
        compared.append(group)
        level = math.fsum(guessed.values()) / len(guessed)
        test = tested(leads)
        if math.fsum(leads) <= 0 or (test is not None and test.p >= LEVEL):
            beaten.append(group)
    if not beaten:
        return ""
    who = "no method is" if len(beaten) == len(compared) else f"{_labels(beaten)} not"
    return (
        f"{stream}: {who} significantly better than always answering the most frequent class "
        f"({score(beaten[0], level)}). AUC and log-loss may still tell methods apart."
    )


def _labels(groups: list[Group]) -> str:
    verb = "is" if len(groups) == 1 else "are"
    return f"{listed([group.label for group in groups], MOST_NAMED)} {verb}"
