"""Tidy record rows: one number each, with everything it depends on beside it."""

from __future__ import annotations

from typing import Any, TypedDict


class Row(TypedDict):
    stream: str
    method: str  # structure/adaptation/algorithm
    seed: int
    trained: str  # the task being learned, or just learned
    epoch: int
    stage: str
    evaluated: str  # the task the number is about
    split: str
    metric: str
    value: float


COLUMNS = tuple(Row.__annotations__)


def final_scores(rows: list[Row], split: str = "test") -> dict[str, float]:
    """The last score of every task in `rows`: {task: accuracy or RMSE}."""
    return {
        row["evaluated"]: row["value"]
        for row in rows
        if row["split"] == split and row["metric"] in ("accuracy", "rmse")
    }


def row(base: dict[str, Any], **columns: Any) -> Row:
    return {**base, **columns}  # type: ignore[typeddict-item, return-value]
