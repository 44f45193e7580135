"""Which parts helped: methods that differ in one part from a reference, compared with it over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from piaget.method.choices import METHOD
from piaget.paper.names import ALGORITHMS, BASES
from piaget.report import metrics
from piaget.report.contents import Contents
from piaget.report.forms import Table, number
from piaget.report.groups import Group
from piaget.report.reported_run import ReportedRun
from piaget.report.statistics import LEVEL, Tested, holm, paired

LEAST_PARTS = 2  # that a reference must be varied in: of one, the table of differences tells as much


@dataclass(frozen=True)
class Variation:
    """A method that differs from the reference in one part. `test`: how much better it is than the reference,
    on the same seeds."""

    reference: Group
    group: Group
    part: str  # "algorithm", "replay_size"
    usual: str  # what the reference has there
    other: str
    test: Tested
    # What it costs, divided by what the reference does, on the same seeds; nan: that is not known.
    components: float
    parameters: float
    time: float


def variations(contents: Contents) -> list[Variation]:
    """Of every stream that has a reference: the method of which the most others differ in one part; of
    several such, the one with the best mean. p-values are corrected for the variations of one stream."""
    found: list[Variation] = []
    for stream in contents.streams:
        choices = [_around(contents, group) for group in contents.on(stream)]
        choices = [varied for varied in choices if len({one.part for one in varied}) >= LEAST_PARTS]
        if choices:
            chosen = max(choices, key=lambda varied: (len(varied), _goodness(contents, varied[0].reference)))
            corrected = holm([one.test.t_test for one in chosen])
            found += [
                replace(one, test=replace(one.test, p=p)) for one, p in zip(chosen, corrected, strict=True)
            ]
    return found


def _goodness(contents: Contents, group: Group) -> float:
    mean = group.summary(contents.final, group.unit)[0]
    return mean if group.higher_is_better else -mean


def _around(contents: Contents, reference: Group) -> list[Variation]:
    """Everything that differs from a reference in one part only, and can be compared with it."""
    sign = 1.0 if reference.higher_is_better else -1.0
    varied, ours = [], reference.of(contents.final, sign * reference.unit)
    for group in contents.on(reference.stream):
        differing = _differing(reference, group)
        if len(differing) != 1 or group.first.work != reference.first.work:
            continue
        test = paired(group.of(contents.final, sign * group.unit), ours)
        if test is not None:
            costs = [_times(group, reference, cost) for cost in _costs(contents)]
            varied.append(Variation(reference, group, *differing[0], test, *costs))
    return varied


Cost = Callable[[ReportedRun], float | None]


def _costs(contents: Contents) -> tuple[Cost, Cost, Cost]:
    """Components, parameters and seconds of a run."""
    components = contents.compute(metrics.components)
    return (
        lambda run: float(components[run.name]) if run.has_components and run.name in components else None,
        lambda run: run.parameters,
        lambda run: run.costs[0],
    )


def _times(group: Group, reference: Group, cost: Cost) -> float:
    """How many times as much a method costs, over the seeds of which both costs are known."""
    ours, theirs = ({run.seed: cost(run) for run in one.counted} for one in (group, reference))
    pairs = [(a, b) for seed, a in ours.items() if a is not None and (b := theirs.get(seed)) is not None]
    below = math.fsum(b for _, b in pairs)
    return math.fsum(a for a, _ in pairs) / below if below else math.nan


def _differing(reference: Group, group: Group) -> list[tuple[str, str, str]]:
    """The parts in which two methods differ, with what they are."""
    ours, theirs = _parts(reference), _parts(group)
    names = dict.fromkeys([*ours, *theirs])
    pairs = [(name, ours.get(name), theirs.get(name)) for name in names]
    return [(name, _shown(name, a, reference), _shown(name, b, group)) for name, a, b in pairs if a != b]


def _parts(group: Group) -> dict[str, Any]:
    """What a method is made of, as it was asked for, and the settings that are not the paper's."""
    run = group.first
    return {name: run.configuration[name] for name in METHOD} | run.changes


def _shown(part: str, value: Any, group: Group) -> str:
    if value is None:
        return _usual(part, group.first)
    names = {"adaptation": BASES, "algorithm": ALGORITHMS}.get(part, {})
    return names.get(str(value), str(value))


def _usual(part: str, run: ReportedRun) -> str:
    """What a run has where nothing was chosen, as far as its description tells."""
    from piaget.method.description import to_json
    from piaget.method.registry import FAMILIES

    learner = run.description.get("learner") or {}
    value = learner.get(part, (learner.get("algorithm") or {}).get(part))
    if isinstance(value, dict):  # a part: by name, if it is one of the library's as it is
        known = FAMILIES[part].parts if part in FAMILIES else {}
        value = next((name for name, one in known.items() if to_json(one) == value), None)
    return "the usual value" if value is None else f"{value} (as usual)"


def ablation(contents: Contents) -> Table:
    """The variations of each stream's reference."""
    table = Table(
        "parts",
        "Which parts helped",
        "Methods that differ from a reference in one part: final performance minus that of the reference on "
        "the same seeds (of errors, the other way round: above 0 is better), with its standard error and an "
        "interval of 95 %; the two-sided p-value of the paired t-test, by Holm's method for all variations "
        f"of a stream (below {LEVEL}: in bold). Last, how many times as many components and parameters it "
        "has in the end, and as much time it took, as the reference.",
        [
            *("stream", "reference", "part", "instead of", "has", "seeds", "difference", "from", "to"),
            *("t-test", "x components", "x parameters", "x time"),
        ],
    )
    for one in variations(contents):
        digits, (low, high) = one.group.digits, one.test.interval
        table.add(
            one.group.position,
            one.group.stream,
            one.reference.label,
            one.part,
            one.usual,
            one.other,
            number(one.test.seeds, digits=0),
            number(one.test.mean, one.test.error, digits),
            number(low, digits=digits),
            number(high, digits=digits),
            replace(number(one.test.p, digits=4), best=one.test.p < LEVEL),
            *(number(times, digits=2) for times in (one.components, one.parameters, one.time)),
        )
    return table
