"""Keeping a cohort's learners and rows together, so that it goes on from there whenever it is killed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from piaget.data.tasks import Stream
from piaget.errors import Diverged
from piaget.lab import checkpoint, folder, kept
from piaget.lab.progress import Tracker
from piaget.lab.row_file import RowFile
from piaget.learner import Learner
from piaget.scoring.rows import Row


@dataclass(eq=False)
class Member:
    """One run of a cohort, in memory."""

    folder: Path
    learner: Learner
    stream: Stream
    data: dict[str, str]  # the fingerprint of each task
    sizes: list[int]  # training samples of each task

    @property
    def seed(self) -> int:
        return self.learner.settings.seed


class Keeper:
    """Keeps learners and rows together: rows are on disk before the checkpoint that counts them."""

    SHARE = 0.03  # of the time may be spent on keeping: of very short epochs, not every one is kept
    MANY, TASK_SHARE = 50, 0.1  # the same between tasks, once there are many: else every one is kept

    def __init__(
        self,
        place: Path,
        runs: Sequence[Member],
        files: Sequence[RowFile],
        tracker: Tracker,
        diverged: dict[int, str],
        effects: checkpoint.Effects,
    ) -> None:
        self.place, self.runs, self.files, self.tracker = place, runs, files, tracker
        self.effects = effects  # what probing measured so far, of each run
        self.lost = dict(diverged)  # by seed: what is said of it
        self.rows: dict[int, list[Row]] = {one.seed: [] for one in runs}
        self.cost, self.last = 0.0, time.monotonic()
        self.began: float | None = None  # bringing the states up to date is part of the cost

    @property
    def left(self) -> list[Member]:
        """Those that did not diverge."""
        return [one for one in self.runs if one.seed not in self.lost]

    def diverged(self, learner: Learner, error: Diverged) -> None:
        """Its run ends here. (If all this is killed before it is kept, it will diverge again.)"""
        (one,) = (one for one in self.runs if one.learner is learner)
        self.lost[one.seed] = str(error)
        folder.note(one.folder, status=folder.DIVERGED, finished=folder.now(), error=str(error))
        folder.log(one.folder, f"{folder.DIVERGED}: {error}")

    def row(self, row: Row) -> None:
        """Takes a row, to be kept with the next checkpoint."""
        self.rows[row["seed"]].append(row)
        self.tracker.rows([row])

    def due(self) -> bool:
        """Is it time to keep everything again?"""
        now = time.monotonic()
        due = now - self.last >= self.cost / self.SHARE
        self.began = now if due else None
        return due

    def worthwhile(self, tasks: int) -> bool:
        """After so many tasks: is the last one to be kept? Of hundreds of short ones, keeping each would take
        longest."""
        return tasks <= self.MANY or time.monotonic() - self.last >= self.cost / self.TASK_SHARE

    def write(self) -> None:
        """Writes all new rows."""
        for one, file in zip(self.runs, self.files, strict=True):
            file.append(self.rows[one.seed])
            self.rows[one.seed].clear()

    def keep(self) -> None:
        """Writes all new rows, then the checkpoint."""
        start = time.monotonic() if self.began is None else self.began
        self.write()
        rows = [file.extent for file in self.files]
        tracker, data = self.tracker, [one.data for one in self.runs]
        beside = kept.Kept(
            rows, tracker.done, tracker.seconds, self.lost, data, tracker.left, tracker.rates.measured
        )
        checkpoint.save(self.place, [one.learner for one in self.runs], beside, self.effects)
        self.last = time.monotonic()
        self.cost, self.began = self.last - start, None
