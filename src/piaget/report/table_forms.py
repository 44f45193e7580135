"""The tables of runs over one's own tables: models, and groups."""

from __future__ import annotations

import math

from piaget.report.forms import Cell, Table, mark_best, number
from piaget.report.table_data import MetricData, OwnReportData, OwnRunData


def own_tables(report: OwnReportData) -> list[Table]:
    """Of all runs; with the run in the name, if there are several."""
    several = len(report["runs"]) > 1
    made = []
    for run in report["runs"]:
        of, suffix = (f", {run['name']}", f" {run['name']}") if several else ("", "")
        if run["classes"]:
            made.append(_classes(run, f"classes{suffix}", of))
        if run["metrics"]:
            made += [_models(run, f"models{suffix}", of), _groups(run, f"groups{suffix}", of)]
    return made


def _models(run: OwnRunData, name: str, of: str) -> Table:
    verdict = run["metrics"][0]["verdict"] or ""
    columns = ["Model", *(metric["name"] for metric in run["metrics"])]
    caption = f"{run['means_over']}. {verdict}".strip()
    table = Table(name, f"Piaget beside simple models{of}", caption, columns)
    for model in run["models"]:
        table.add(None, model["name"], *(_cell(model["means"][m["key"]], m) for m in run["metrics"]))
    for column, metric in enumerate(run["metrics"], 1):
        mark_best(table, column, metric["higher_is_better"], range(len(table.rows)))
    return table


def _groups(run: OwnRunData, name: str, of: str) -> Table:
    metric = run["metrics"][0]
    simple = next((m["name"] for m in run["models"] if m["key"] == metric["best"]), "none")
    caption = f"{metric['name']}; the simple model: {simple}. Difference: above 0, piaget is better."
    counted = [run["positive"]] if run["positive"] else []
    alone = next((m["name"] for m in run["models"] if m["key"] == "majority"), None)
    caption += f" {run['simplest'].capitalize()}: {alone} alone." if alone else ""
    simplest = [run["simplest"]] if alone else []
    columns = [run["group"], "rows", "test rows", *counted, "piaget", "simple model", "difference", *simplest]
    table = Table(name, f"Groups{of}", caption, columns)
    for group in run["groups"]:
        scores = group["scores"][metric["key"]]
        sizes = [group["rows"], group["tested"], *([group["positives"]] if counted else [])]
        cells = [number(math.nan if size is None else size, digits=0) for size in sizes]
        values = [scores["piaget"], scores["simple"], scores["gain"]]
        values += [scores["majority"]] if simplest else []
        table.add(None, group["name"], *cells, *(_cell(value, metric) for value in values))
    return table


def _classes(run: OwnRunData, name: str, of: str) -> Table:
    columns = [run["target"], "rows", "answered", "precision", "recall", "F1", "AUC", "weight"]
    caption = "Test rows of all groups together; each class against all others."
    table = Table(name, f"Classes{of}", caption, columns)
    for one in run["classes"]:
        counts = [number(size, digits=0) for size in (one["rows"], one["answered"])]
        scores = (one["precision"], one["recall"], one["f1"], one["auc"], one["weight"])
        cells = [number(math.nan if value is None else value, digits=3) for value in scores]
        table.add(None, one["name"], *counts, *cells)
    return table


def _cell(value: float | None, metric: MetricData) -> Cell:
    return number(math.nan if value is None else value, digits=metric["digits"])
