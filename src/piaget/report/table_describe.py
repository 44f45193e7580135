"""Runs over tables as plain data, for their page (table_data.py). What was scored is as the run found it;
what groups share, and what columns do, is as the learner is now, with all that it has learned since."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import piaget
from piaget.data.typed_data import read
from piaget.errors import LoadError
from piaget.knowledge.storage import holds_prior
from piaget.lab.folder import RunFolder
from piaget.lab.progress import duration
from piaget.lab.table_columns import moved_by
from piaget.lab.table_summary import LEVEL, columns_of
from piaget.prior_learner import PriorLearner
from piaget.report import table_data as data
from piaget.report.reported_run import ReportedRun
from piaget.report.table_bends import bending_columns, bends_of
from piaget.report.table_map import map_of, why_no_map
from piaget.report.table_scores import EXACT, class_of, finite, group_of, means_over, metrics_of, models_of
from piaget.report.wording import today
from piaget.scoring.rows import ARRIVAL, EXPLAINED, USUAL_SPREAD, USUALLY, Row
from piaget.table_life import is_unusual

UNITS = {
    "binary": "change of the log-odds of {}",
    "multiclass": "change of the classes' log-odds, root mean square",
    "regression": "change of {}, in its standard deviations",
}
# What summary.json says, as far as it is shown.
_SUMMARY: dict[str, Any] = {
    "kind": str,
    "labels": list[Any],
    "metric": str,
    "chance": str | None,
    "means": dict[str, dict[str, dict[str, Any]]],
    "groups": list[dict[str, Any]],
    "reliability": list[dict[str, float]],
    "simple": dict[str, str],
    "classes": list[dict[str, Any]] | None,  # an older version had none
}


def report_data(
    runs: Sequence[ReportedRun], notes: Sequence[str], *, title: str, command: str
) -> data.OwnReportData:
    """All that the page shows."""
    described, left_out = [], []
    for run in runs:
        try:
            described.append(describe(run))
        except LoadError as error:
            left_out.append(f"left out: {error}")
    names = Counter(run["name"] for run in described)
    for run_data in described:
        if names[run_data["name"]] > 1:
            run_data["name"] += f" ({run_data['folder']})"
    return data.OwnReportData(
        title=title,
        date=today().isoformat(),
        version=piaget.__version__,
        command=command,
        notes=[*notes, *left_out],
        runs=described,
    )


def summary(run: ReportedRun) -> dict[str, Any] | None:
    """What a run over a table found; None: it is no such run. LoadError: it is damaged."""
    found = run.disk.summary if isinstance(run.disk, RunFolder) else None
    if found is None:
        return None
    try:
        for name, hint in _SUMMARY.items():
            read(hint, found.get(name), name)
        if found["kind"] not in UNITS:
            raise ValueError(f"kind is {found['kind']!r}; expected {', '.join(UNITS)}")
    except ValueError as error:
        raise LoadError(f"{run.folder / 'summary.json'} is no summary of a table's run: {error}") from error
    return found


def describe(run: ReportedRun) -> data.OwnRunData:
    """One run."""
    found, disk = summary(run), run.disk
    if found is None or not isinstance(disk, RunFolder):
        raise LoadError(f"{run.folder} has no summary.json")
    rows = list(disk.rows())
    notes = [found["chance"]] if found["chance"] else []
    learner = _learner(disk, notes)
    gone = _gone(run, learner, notes)
    table = run.configuration.get("table") or {}
    labels = [str(label) for label in found["labels"]]
    positive = labels[1] if found["kind"] == "binary" else ""
    metrics = metrics_of(found, rows)
    groups = [group_of(one, metrics) for one in found["groups"] if one["group"] not in gone]
    target, group = str(table.get("target") or "the target"), str(table.get("group") or "group")
    drawn = None if learner is None else map_of(learner, target)
    place = shlex.quote(str(run.folder))
    return data.OwnRunData(
        name=f"{run.stream}: {target}",
        folder=str(run.folder),
        command=run.command,
        predict=f"piaget predict {place} NEW.csv --out predictions.csv",
        kind=found["kind"],
        target=target,
        group=group,
        positive=positive,
        simplest="mean" if found["kind"] == "regression" else "majority",
        tested=_tested(found),
        means_over=means_over(found, metrics),
        facts=_facts(run, found, learner),
        notes=notes,
        metrics=metrics,
        models=models_of(found, metrics),
        groups=groups,
        classes=[class_of(one) for one in found.get("classes") or []],
        bins=[_bin(one) for one in found["reliability"]],
        calibration_error=_last(rows, "calibration error"),
        coverage=_coverage(found, rows),
        map=drawn,
        no_map="" if learner is None or drawn is not None else why_no_map(learner),
        bends=[] if learner is None else bends_of(learner, target, group),
        columns=_columns(found if learner is None else {"columns": columns_of(learner)}),
        moved=_moved(found.get("moved") or [] if learner is None else moved_by(learner)),
        unit=UNITS[found["kind"]].format(f"{target}={positive}" if positive else target),
        trees=learner is not None and learner.known.answering.correction is not None,
        arrivals=_arrivals(rows, metrics, gone),
    )


def _learner(disk: RunFolder, notes: list[str]) -> PriorLearner | None:
    try:
        place = disk.saved_learner()
        if holds_prior(place):
            learner = PriorLearner.load(place)
            return learner if learner.tasks else None
    except (LoadError, OSError) as error:
        notes.append(f"The learner cannot be read, so it is not known what groups share: {error}")
    return None


def _gone(run: ReportedRun, learner: PriorLearner | None, notes: list[str]) -> set[str]:
    """Groups that were forgotten, and did not come again."""
    gone = set(run.description.get("forgotten") or ()) - set(learner.tasks if learner is not None else ())
    if gone:
        n = len(gone)
        text = (
            "1 group was forgotten since: it is" if n == 1 else f"{n} groups were forgotten since: they are"
        )
        notes.append(f"{text} in the means of scores, and nowhere else.")
    return gone


def _facts(run: ReportedRun, found: Mapping[str, Any], learner: PriorLearner | None) -> list[tuple[str, str]]:
    seconds, *_ = run.costs
    facts = [
        ("groups", f"{len(found['groups']):,}"),
        ("rows", f"{sum(group['rows'] for group in found['groups']):,}"),
        ("time, comparison included", duration(seconds) if seconds else ""),
    ]
    if learner is not None:
        facts.append(("shared components", str(learner.components)))
        facts.append(("groups bend along", ", ".join(bending_columns(learner))))
        if len(learner.tasks) != len(found["groups"]):
            facts.append(("groups known now", f"{len(learner.tasks):,}"))
    return [(name, text) for name, text in facts if text]


def _tested(found: Mapping[str, Any]) -> int | None:
    """A run of an older version does not say."""
    sizes = [group.get("tested") for group in found["groups"]]
    return None if None in sizes else sum(sizes)


def _last(rows: Iterable[Row], metric: str) -> float | None:
    values = [row["value"] for row in rows if row["metric"] == metric]
    return finite(values[-1]) if values else None


# --- trust, columns, later tables ---------------------------------------------------------------------------


def _bin(one: Mapping[str, float]) -> data.BinData:
    """The error is that of a share, with one row more of each outcome: it is not 0 if all were alike."""
    n, observed = int(one["rows"]), one["observed"]
    smooth = (observed * n + 1) / (n + 2)
    error = math.sqrt(smooth * (1 - smooth) / (n + 2))
    return data.BinData(
        predicted=round(one["predicted"], EXACT),
        observed=round(observed, EXACT),
        rows=n,
        error=round(error, EXACT),
    )


def _coverage(found: Mapping[str, Any], rows: Sequence[Row]) -> list[data.CoverageData]:
    told = found.get("coverage") or []
    last = _last(rows, "coverage")
    if not told and last is not None:
        told = [{"level": LEVEL, "observed": last}]
    return [
        data.CoverageData(level=float(one["level"]), observed=round(float(one["observed"]), EXACT))
        for one in told
    ]


def _columns(found: Mapping[str, Any]) -> list[data.ColumnData]:
    """The strongest first."""
    columns = [
        data.ColumnData(
            name=str(one["input"]), common=round(one["common"], EXACT), differs=round(one["differs"], EXACT)
        )
        for one in found.get("columns") or []
    ]
    return sorted(columns, key=lambda one: -math.hypot(one["common"], one["differs"]))


def _moved(found: Sequence[Mapping[str, Any]]) -> list[data.MovedData]:
    """The strongest first."""
    moved = [data.MovedData(name=str(one["column"]), moves=round(one["moves"], EXACT)) for one in found]
    return sorted(moved, key=lambda one: -one["moves"])


def _arrivals(
    rows: Sequence[Row], metrics: Sequence[data.MetricData], gone: set[str]
) -> list[data.ArrivalData]:
    """In the order in which they came: rows of one are together."""
    batches: list[tuple[tuple[str, str], dict[str, float]]] = []
    for row in rows:
        if row["stage"] != ARRIVAL or row["evaluated"] in gone:
            continue
        key = row["stream"], row["evaluated"]
        if not batches or batches[-1][0] != key or row["metric"] in batches[-1][1]:
            batches.append((key, {}))
        batches[-1][1][row["metric"]] = row["value"]
    return [
        data.ArrivalData(
            table=table,
            group=group,
            is_new=EXPLAINED in values,
            rows=int(values.get("samples", 0)),
            scores={m["key"]: finite(values.get(m["key"])) for m in metrics},
            fit=_fit(values),
        )
        for (table, group), values in batches
    ]


def _fit(values: Mapping[str, float]) -> str:
    """Typical or not, first; an older version noted no spread, so that cannot be told."""
    if EXPLAINED not in values or USUALLY not in values:
        return ""
    found, usual = values[EXPLAINED], values[USUALLY]
    numbers = f"{found:.2f} a row; usual is {usual:.2f}".replace("-", "\N{MINUS SIGN}")
    if USUAL_SPREAD not in values:
        return numbers
    word = "unusual" if is_unusual(found, usual, values[USUAL_SPREAD]) else "typical"
    return f"{word} ({numbers})"
