"""Components that came and went, as rows tell it: by number, which changes when one before it goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from piaget.report.metrics import BORN
from piaget.scoring.rows import MERGED


@dataclass
class Life:
    """A component, from the task with which it came (-1: the initial ones) to the one after which it went."""

    born: int
    left: int | None = None  # None: it is there in the end
    into: int | None = None  # the place, in the list of lives, of the one that it was merged into
    component: int | None = None  # its number in the end, if it is there


def lives(events: pd.DataFrame, tasks: Sequence[str], components: int) -> list[Life]:
    """Of all components of a run, by birth. events: `metrics.component_events`; components: how many are
    there in the end, or 0, if that is not known yet."""
    if not components:
        return []
    places = {task: j for j, task in enumerate(tasks)}
    known = events[events["trained"].isin(places)]
    births = int((known["event"] == BORN).sum())
    every = [Life(-1) for _ in range(components + len(known) - 2 * births)]
    alive = list(range(len(every)))
    for line in known.itertuples():
        if line.event == BORN:
            alive.append(len(every))
            every.append(Life(places[line.trained]))
            continue
        if int(line.component) >= len(alive):  # rows are missing
            continue
        life = every[alive.pop(int(line.component))]
        life.left = places[line.trained]
        life.into = alive[int(line.into)] if line.event == MERGED else None
    for component, place in enumerate(alive):
        every[place].component = component
    return every
