"""What `piaget sweep` shows: how far all of it is, and the tables in the end."""

from __future__ import annotations

import argparse
import re
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import piaget
from piaget.cli.common import print_table, seeds_text
from piaget.cli.words import PART_SETTINGS

if TYPE_CHECKING:
    from piaget.cli.live import View
    from piaget.lab.final_table import Line
    from piaget.lab.jobs import Job
    from piaget.lab.status import RunStatus
    from piaget.lab.sweeps import Event


class Overall:
    """How far all cohorts are, weighed by the work they take."""

    def __init__(self, shown: View) -> None:
        self.shown = shown
        self.cohorts: dict[Job, RunStatus] = {}
        self.ended = self.at_once = 0

    def name(self, job: Job) -> str:
        """As short as it can be: of the options and settings, those in which cohorts differ."""
        everywhere = set.intersection(*(set(other.variant) for other in self.cohorts))
        special = [f"{key}={value}" for key, value in job.variant if (key, value) not in everywhere]
        structures = {other.method.structure for other in self.cohorts}
        words = [job.stream, job.method.structure if len(structures) > 1 else ""]
        words += [job.method.adaptation, job.method.algorithm, *special, seeds_text(job.seeds)]
        return " ".join(word for word in words if word)

    def report(self, event: Event) -> None:
        """Takes note of what has become of a cohort, and shows it."""
        from piaget.lab.expected_times import seconds
        from piaget.lab.status import RunStatus, expect, time_left

        job = event.job
        if event.status == "waiting":
            alike = (job.stream, job.options)
            self.cohorts[job] = RunStatus(Path(job.name), "planned", cost=seconds(job), alike=alike)
            return
        name, cohort = self.name(job), self.cohorts[job]
        if event.standing is not None:
            cohort.status, cohort.done = "running", event.standing.done
            # Initial tasks tell little about later ones: other cohorts tell more.
            others = any(one.whole for one in self.cohorts.values() if one is not cohort)
            if event.standing.stage != "initialization" or not others:
                cohort.seconds, cohort.to_go = event.standing.seconds, event.standing.left
            self.shown.progress(name, event.standing)
        elif event.status == "again":
            cohort.status = "planned"
            self.shown.ended(name, "its worker died; it goes on from its checkpoint")
        else:
            cohort.status, cohort.done, cohort.to_go = event.status, 1.0, None
            self.ended += 1
            self.shown.ended(name, event.status, event.error)
        # What failed tells nothing about how long others take.
        counted = [one for one in self.cohorts.values() if one.status != "failed"]
        done = sum(one.cost * one.done for one in counted) / (sum(one.cost for one in counted) or 1.0)
        expect(counted)
        # One that follows another is soon at work, too.
        self.at_once = max(self.at_once, sum(one.status == "running" for one in counted))
        left = time_left(counted, self.at_once)
        self.shown.overall(done, left, f"{self.ended} of {len(self.cohorts)} cohorts")


def show(
    jobs: Sequence[Job],
    tables: dict[str, list[Line]],
    failed: dict[Job, str],
    overall: Overall,
    seconds: float,
    options: argparse.Namespace,
) -> None:
    """The tables, and what there is to say of them."""
    from piaget.lab.progress import duration

    for variant, table in tables.items():
        _print(table, variant)
    runs, trained = sum(len(job.seeds) for job in jobs), sum(len(job.seeds) for job in overall.cohorts)
    if trained < runs:
        print(
            f"{runs - trained} of {runs} runs were done in {options.out} already; delete it to train again."
        )
    print(f"{trained} runs in {duration(seconds)}.")
    for job, trace in failed.items():
        where = own_line(trace)
        said = f"{trace.strip().splitlines()[-1]} ({where})\nIn full:\n" if where else ""
        print(f"FAILED: {job.name} {seeds_text(job.seeds)}\n{said}{trace}", file=sys.stderr)
    other = options.changes or any(getattr(options, name, None) for name in PART_SETTINGS)
    if other or any(job.epochs or job.options for job in jobs):
        print("This is not the paper's setting: where its numbers are shown, they are for orientation only.")
    print(f"Results: {options.out / 'table.md'} (this table), and a folder for each run (rows.csv, learner).")


def own_line(trace: str) -> str | None:
    """The last line of a traceback that is of neither the library nor others that are installed: of a part of
    one's own."""
    frames = re.findall(r'File "([^"<]+)", line (\d+), in (\S+)', trace)
    library = str(Path(piaget.__file__).parent)
    others = (library, sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["purelib"], sys.base_prefix)
    own = [frame for frame in frames if not frame[0].startswith(others)]
    return "{}, line {}, in {}".format(*own[-1]) if own else None


def _print(table: Sequence[Line], variant: str) -> None:
    from rich.table import Table

    from piaget.lab.final_table import COLUMNS, FURTHER_COLUMNS, columns, with_further

    def table_of(title: str, lines: Sequence[Line], names: Sequence[str]) -> None:
        shown = Table(title=f"{title}: mean ± standard error{variant and '; '}{variant}")
        for column in names:
            left = column in ("stream", "structure", "base", "algorithm", "metric")
            shown.add_column(column, justify="left" if left else "right")
        for line in lines:
            cells = line.cells()
            shown.add_row(*(cells[column] for column in names))
        print_table(shown)

    table_of("Final performance", table, columns(table, COLUMNS))
    if further := with_further(table):
        table_of("Further scores", further, columns(further, FURTHER_COLUMNS))
