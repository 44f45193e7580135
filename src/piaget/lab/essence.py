"""Which rows of a run are kept when its folder is not: all that tables and figures are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from piaget.scoring.rows import (
    CONSISTENCY,
    EXPANSION,
    INFERENCE,
    LOWER_IS_BETTER,
    REDUCTION,
    REMOVAL,
    SCORES,
    STRUCTURE,
    Row,
)

MOST = 500  # scores of a run, beside the first, best and final ones of its tasks
WHOLE = (EXPANSION, REDUCTION, REMOVAL, STRUCTURE, CONSISTENCY, INFERENCE)  # stages whose rows are all kept
COARSE = ("weight", "consistency")  # metrics of which three decimals are enough

Moment = tuple[str, int]  # task that was learned, epoch


def essential(rows: Sequence[Row]) -> list[Row]:
    """The rows that are kept, in their order: of every task its first, best and final score (first: right
    after it was learned), so that final performance and forgetting are exact; further scores such as the
    loss likewise; the first look at each task while it is learned; other scores, for learning curves, as many
    as `MOST` allows; all about components; other numbers as they were at the end of each task.
    """
    tests = [i for i, row in enumerate(rows) if row["split"] == "test" and row["stage"] not in WHOLE]
    scores = [i for i in tests if rows[i]["metric"] in SCORES]
    kept = {*_thinned(rows, scores), *_extremes(rows, tests), *_first_looks(rows, scores)}
    last: dict[tuple[object, ...], int] = {}
    for i, row in enumerate(rows):
        if row["stage"] in WHOLE:
            kept.add(i)
        elif row["split"] != "test":
            last[row["trained"], row["evaluated"], row["split"], row["metric"], row["component"]] = i
    return [rows[i] for i in sorted(kept.union(last.values()))]


def shortened(row: Row) -> str:
    """A row's value as text: seven digits, which tell any two scores apart; fewer, where that is enough."""
    value = round(row["value"], 3) if row["metric"] in COARSE else row["value"]
    further = row["split"] == "test" and row["metric"] not in SCORES and row["stage"] not in WHOLE
    return f"{value + 0.0:.{5 if further else 7}g}"  # no negative 0


def _moment(row: Row) -> Moment:
    return row["trained"], row["epoch"]


def _thinned(rows: Sequence[Row], scores: Sequence[int]) -> list[int]:
    """Scores at moments that are evenly spread. The end of a task comes before moments within it: what is the
    last score that is known of a task's training must be the last that there was."""
    sizes: dict[Moment, int] = {}
    for i in scores:
        sizes[_moment(rows[i])] = sizes.get(_moment(rows[i]), 0) + 1
    ends = set(_ends(sizes))
    within = [moment for moment in sizes if moment not in ends]
    chosen = _spread([moment for moment in sizes if moment in ends], sizes, MOST)
    if len(chosen) == len(ends):
        chosen |= _spread(within, sizes, MOST - sum(sizes[moment] for moment in ends))
    return [i for i in scores if _moment(rows[i]) in chosen]


def _ends(moments: Iterable[Moment]) -> list[Moment]:
    """The last moment of each task's training."""
    return list({trained: (trained, epoch) for trained, epoch in moments}.values())


def _spread(moments: Sequence[Moment], sizes: dict[Moment, int], most: int) -> set[Moment]:
    """As many as have `most` scores together, from the first to the last."""
    total = sum(sizes[moment] for moment in moments)
    if total <= most:
        return set(moments)
    count = most * len(moments) // total
    if count < 2:
        return set(moments[-1:]) if count else set()
    return {moments[round(i * (len(moments) - 1) / (count - 1))] for i in range(count)}


def _first_looks(rows: Sequence[Row], scores: Sequence[int]) -> list[int]:
    """The first score of each task that there is while it is learned itself."""
    own = [i for i in scores if rows[i]["trained"] == rows[i]["evaluated"]]
    return list({rows[i]["evaluated"]: i for i in reversed(own)}.values())


def _extremes(rows: Sequence[Row], tests: Sequence[int]) -> set[int]:
    """The first, best and last of a task's scores, of those at the ends of training; of further ones, the
    first and last."""
    ends: dict[tuple[str, str, str], int] = {}
    for i in tests:
        ends[rows[i]["evaluated"], rows[i]["metric"], rows[i]["trained"]] = i
    by_task: dict[tuple[str, str], list[int]] = {}
    for (evaluated, metric, _), i in ends.items():
        by_task.setdefault((evaluated, metric), []).append(i)
    kept = set[int]()
    for (_, metric), places in by_task.items():
        kept |= {places[0], places[-1]}
        if metric in SCORES:
            best = min if metric in LOWER_IS_BETTER else max
            kept.add(best(places, key=lambda i: rows[i]["value"]))
    return kept
