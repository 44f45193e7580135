"""What a sweep consists of, as plain data. No heavy imports."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from piaget.errors import LoadError
from piaget.lab.configuration import Configuration, configure
from piaget.lab.table import ALGORITHMS, BASES


@dataclass(frozen=True)
class Method:
    """One column of a comparison: the paper's choices by name."""

    adaptation: str
    algorithm: str
    structure: str = "soft-ordering"

    @property
    def name(self) -> str:
        return f"{self.structure}/{self.adaptation}/{self.algorithm}"


def paper_methods(structure: str) -> list[Method]:
    """The paper's 14: joint training and no components make no sense with frozen components.

    Linear combinations have no expansion.
    """
    return [
        Method(base, algorithm, structure)
        for base in BASES
        for algorithm in ALGORITHMS
        if (base != "fm" or algorithm in ("dynamic", "compositional"))
        and (structure != "linear" or algorithm != "dynamic")
    ]


@dataclass(frozen=True)
class Job:
    """A method on a stream, for several seeds."""

    stream: str
    method: Method
    seeds: tuple[int, ...]
    epochs: int | None = None  # None: the paper's
    data_dir: str | None = None
    options: tuple[tuple[str, Any], ...] = ()  # of the stream
    settings: tuple[tuple[str, Any], ...] = ()  # of the learner, where they are not the paper's
    every: int | None = None  # evaluates every so many epochs, too

    def __post_init__(self) -> None:
        for name in ("options", "settings"):  # in whatever order they were given
            object.__setattr__(self, name, tuple(sorted(getattr(self, name))))

    @property
    def changes(self) -> tuple[tuple[str, Any], ...]:
        """What is not the paper's in how it is trained."""
        given = {"epochs": self.epochs, "every": self.every}
        return (*self.settings, *((name, value) for name, value in given.items() if value is not None))

    @property
    def variant(self) -> tuple[tuple[str, Any], ...]:
        """All that tells it from other jobs of the same stream and method."""
        return (*self.options, *self.changes)

    @property
    def name(self) -> str:
        own = [f"{name}={value}" for name, value in self.variant]
        return " ".join([self.stream, *self.method.name.split("/"), *own])

    def folder(self, out: Path) -> Path:
        """stream/method, with one folder a seed inside."""
        stream = "_".join([self.stream, *(f"{name}-{value}" for name, value in self.options)])
        method = "_".join([*self.method.name.split("/"), *(f"{n}-{value}" for n, value in self.changes)])
        return out / _plain(stream) / _plain(method)

    @property
    def configuration(self) -> Configuration:
        return configure(
            stream=self.stream,
            options=dict(self.options),
            structure=self.method.structure,
            adaptation=self.method.adaptation,
            algorithm=self.method.algorithm,
            epochs=self.epochs,
            every=self.every,
            settings=dict(self.settings),
        )

    @property
    def cost(self) -> float:
        """Relative work, to start long jobs first and to guess what is left."""
        weight = {"dynamic": 2.2, "compositional": 1.0, "joint": 1.6, "no-components": 1.2}
        return weight[self.method.algorithm] * len(self.seeds) * self.configuration["epochs"]


def _plain(text: str) -> str:
    """For a folder's name."""
    return re.sub(r"[^A-Za-z0-9._=-]+", "-", text)


# --- what a sweep was asked for, in its folder ----------------------------------------------------------

FILE = "sweep.json"


def as_json(cohorts: Iterable[Job]) -> bytes:
    return json.dumps({"cohorts": [asdict(job) for job in cohorts]}, indent=1).encode()


def read_cohorts(out: Path) -> list[Job]:
    """The cohorts of all sweeps into a folder; none, if there were none."""
    path = out / FILE
    if not path.is_file():
        return []
    try:
        found = json.loads(path.read_text())["cohorts"]
        return [_job(**one) for one in found]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise LoadError(f"{path} cannot be read: {error}") from error


def _job(method: dict[str, str], seeds: list[int], **rest: Any) -> Job:
    for name in ("options", "settings"):
        rest[name] = tuple((key, value) for key, value in rest[name])
    return Job(method=Method(**method), seeds=tuple(seeds), **rest)


def plan(jobs: Sequence[Job], planned: Sequence[Job], size_of: Callable[[Job], int]) -> list[Job]:
    """The cohorts of these jobs: those that were planned before, and new ones for all other seeds.

    Which seeds are trained together is settled once: in other company, sums are rounded otherwise.
    """
    here = Path()
    before: dict[Path, list[Job]] = {}
    for cohort in planned:
        before.setdefault(cohort.folder(here), []).append(cohort)
    found = []
    for job in jobs:
        known = before.get(job.folder(here), [])
        found += [replace(c, data_dir=job.data_dir) for c in known if set(c.seeds) & set(job.seeds)]
        settled = {seed for cohort in known for seed in cohort.seeds}
        new = [seed for seed in job.seeds if seed not in settled]
        size = size_of(job)
        found += [replace(job, seeds=tuple(new[i : i + size])) for i in range(0, len(new), size)]
    return list(dict.fromkeys(found))
