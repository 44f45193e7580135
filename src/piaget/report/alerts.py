"""What a reader must know before any number: what diverged, failed, is unfinished, or is at chance level."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from piaget.report import metrics
from piaget.report.contents import Contents
from piaget.report.groups import Group
from piaget.report.reported_run import ReportedRun
from piaget.report.statistics import LEVEL, tested
from piaget.report.wording import counted, listed, score
from piaget.scoring.rows import MAJORITY

DIVERGED, FAILED, UNFINISHED, CHANCE = "diverged", "failed", "unfinished", "at chance level"
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
            (FAILED, _failed(contents, stream)),
            (UNFINISHED, _unfinished(contents, stream)),
            (CHANCE, _at_chance(contents, stream)),
        )
        if text
    ]
    kinds = [DIVERGED, FAILED, UNFINISHED, CHANCE]
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


Found = tuple[list[tuple[Group, list[ReportedRun]]], list[ReportedRun], int]


def _those(groups: Sequence[Group], which: Callable[[ReportedRun], bool]) -> Found:
    """Certain runs: by their groups, all of them, and how many runs there are in all."""
    of = [(group, [run for run in group.runs if which(run)]) for group in groups]
    of = [(group, runs) for group, runs in of if runs]
    return of, [run for _, runs in of for run in runs], sum(len(group.runs) for group in groups)


def _diverged(contents: Contents, stream: str) -> str:
    """Runs that ended so, and those that have scores that are not numbers."""

    def lost(run: ReportedRun) -> bool:
        return run.diverged or not math.isfinite(contents.final.get(run.name, 0.0))

    of, runs, every = _those(_of(contents, stream), lost)
    if not runs:
        return ""
    verb = "has" if len(runs) == 1 else "have"
    return (
        f"{stream}: {len(runs)} of {counted(every, 'run')} {verb} diverged: {_named(of)}. Means of these "
        "methods are of the other seeds, or missing."
    )


def _failed(contents: Contents, stream: str) -> str:
    groups = _of(contents, stream)
    of, runs, every = _those(groups, lambda run: run.failed)
    if not runs:
        return ""
    said = listed(sorted({_last_line(run) for run in runs}), MOST_NAMED)
    verb = "has" if len(runs) == 1 else "have"
    counts = any(run in group.counted for group, some in of for run in some)
    means = "All numbers are of the tasks learned before" if counts else "Means are of the other runs"
    return (
        f"{stream}: {len(runs)} of {counted(every, 'run')} {verb} failed: {_named(of)}. {said}. {means}. "
        "When the cause is mended, piaget resume goes on with them."
    )


def _last_line(run: ReportedRun) -> str:
    """Of a traceback: the error itself."""
    lines = str(run.description.get("error") or "").strip().splitlines() or ["No error is noted"]
    return lines[-1].rstrip(".")


def _unfinished(contents: Contents, stream: str) -> str:
    groups = _of(contents, stream)
    of, runs, every = _those(groups, lambda run: not run.done and not run.diverged and not run.failed)
    if not runs:
        return ""
    if any(run in group.counted for group, some in of for run in some):
        return f"{stream}: no run is finished; all numbers are of the tasks learned so far."
    verb = "is" if len(runs) == 1 else "are"
    return (
        f"{stream}: {len(runs)} of {counted(every, 'run')} {verb} unfinished and left out of means: "
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
