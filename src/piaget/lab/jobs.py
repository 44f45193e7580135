"""What a sweep consists of, as plain data. No heavy imports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from piaget.errors import LoadError
from piaget.files import read_json, write_json
from piaget.lab.configuration import Configuration, configure
from piaget.lab.parts import is_reference
from piaget.paper.names import Method
from piaget.paper.presets import Pairs, Preset

# Of an epoch, relatively.
COST = {
    "dynamic": 2.2,
    "recommended": 2.2,
    "compositional": 1.0,
    "joint": 1.6,
    "no-components": 1.2,
    "no-components-frozen": 1.2,
    "alone": 0.6,
}


@dataclass(frozen=True)
class Job:
    """A method on a stream, for several seeds."""

    stream: str
    method: Method
    seeds: tuple[int, ...]
    epochs: int | None = None  # None: the paper's
    data_dir: str | None = None
    options: Pairs = ()  # of the stream
    settings: Pairs = ()  # of the learner, where they are not the paper's
    every: int | None = None  # evaluates every so many epochs, too

    def __post_init__(self) -> None:
        settings = dict(self.settings)
        object.__setattr__(self, "epochs", settings.pop("epochs", self.epochs))
        object.__setattr__(self, "settings", tuple(sorted(settings.items())))  # in whatever order they came
        object.__setattr__(self, "options", tuple(sorted(self.options)))

    @property
    def changes(self) -> Pairs:
        """What is not the paper's in how it is trained."""
        numbers = {"epochs": self.epochs, "every": self.every}
        return (*self.settings, *((name, value) for name, value in numbers.items() if value is not None))

    @property
    def variant(self) -> Pairs:
        """All that tells it from other jobs of the same stream and method."""
        return (*self.options, *self.changes)

    @property
    def name(self) -> str:
        """Its stream, method and variant."""
        return " ".join([self.stream, *self.method.name.split("/"), *as_words(self.variant)])

    def folder(self, out: Path) -> Path:
        """stream/method, with one folder a seed inside."""
        stream = "_".join([self.stream, *(f"{name}-{value}" for name, value in self.options)])
        method = "_".join([*self.method.name.split("/"), *(f"{n}-{value}" for n, value in self.changes)])
        return out / _as_folder(stream) / _as_folder(method)

    @property
    def configuration(self) -> Configuration:
        """What each of its runs is asked for."""
        return configure(
            stream=self.stream,
            options=dict(self.options),
            **vars(self.method),
            epochs=self.epochs,
            every=self.every,
            settings=dict(self.settings),
        )

    @property
    def cost(self) -> float:
        """Relative work, to start long jobs first and to guess what is left."""
        return COST.get(self.method.algorithm, 2.0) * len(self.seeds) * (self.configuration["epochs"] or 100)


def as_words(pairs: Pairs) -> list[str]:
    """[("width", 8)] as ["width=8"]."""
    return [f"{name}={value}" for name, value in pairs]


def _as_folder(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._=-]+", "-", text)


# --- of a preset ----------------------------------------------------------------------------------------


def preset_jobs(
    preset: Preset, seeds: Sequence[int], settings: Mapping[str, Any] | None = None, **common: Any
) -> list[Job]:
    """The jobs of an experiment of the paper.

    settings: instead of the paper's; common: what all jobs have in common, such as data_dir.
    """
    return [
        Job(
            entry.stream,
            entry.method,
            tuple(seeds),
            options=entry.options,
            settings=tuple((dict(entry.settings) | dict(settings or {})).items()),
            **common,
        )
        for entry in preset.entries
    ]


def quick(jobs: Sequence[Job], epochs: int | None = None) -> list[Job]:
    """A version of a minute or two: the first stream with its first options, few tasks, samples and epochs.

    It shows that everything works, not how well.
    """
    from piaget.streams import stream_options

    small = {"tasks": 5, "train_size": 40}
    shortened = []
    for job in jobs:
        if (job.stream, job.options) != (jobs[0].stream, jobs[0].options):
            continue
        known = () if is_reference(job.stream) else stream_options(job.stream)
        options = {key: value for key, value in small.items() if key in known}
        settings = tuple((key, 2 if key == "adapt_every" else value) for key, value in job.settings)
        options |= dict(job.options)
        shortened.append(replace(job, epochs=epochs or 2, options=tuple(options.items()), settings=settings))
    return list(dict.fromkeys(shortened))


# --- what a sweep was asked for, in its folder ----------------------------------------------------------

FILE = "sweep.json"


def write_cohorts(out: Path, cohorts: Iterable[Job]) -> None:
    """The file of a sweep."""
    write_json(out / FILE, {"cohorts": [asdict(job) for job in cohorts]})


def read_cohorts(out: Path) -> list[Job]:
    """The cohorts of all sweeps into a folder; none, if there were none."""
    path = out / FILE
    if not path.is_file():
        return []
    try:
        return [_job(**described) for described in read_json(path)["cohorts"]]
    except LoadError as error:
        raise LoadError(
            f"{error}. Remove this file and give the command of the sweep again: what is done is kept, and "
            "all else goes on"
        ) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise LoadError(f"{path} does not describe a sweep: {type(error).__name__}: {error}") from error


def _job(method: dict[str, str], seeds: list[int], **rest: Any) -> Job:
    for name in ("options", "settings"):
        rest[name] = tuple((key, value) for key, value in rest[name])
    job = Job(method=Method(**method), seeds=tuple(seeds), **rest)
    texts = [job.stream, *vars(job.method).values(), *(key for key, _ in (*job.options, *job.settings))]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{texts!r:.100} are not all texts")
    if not job.seeds or not all(isinstance(seed, int) for seed in job.seeds):
        raise TypeError(f"seeds={seeds!r:.100}")
    hash(job)  # raises TypeError, if something in it is no plain value
    return job


def plan(jobs: Sequence[Job], planned: Sequence[Job], size_of: Callable[[Job], int]) -> list[Job]:
    """The cohorts of these jobs: those that were planned before, and new ones for all other seeds.

    Which seeds are trained together is settled once: in other company, sums are rounded otherwise.
    """
    here = Path()
    before: dict[Path, list[Job]] = {}
    for cohort in planned:
        before.setdefault(cohort.folder(here), []).append(cohort)
    cohorts = []
    for job in jobs:
        known = before.get(job.folder(here), [])
        cohorts += [replace(c, data_dir=job.data_dir) for c in known if set(c.seeds) & set(job.seeds)]
        settled = {seed for cohort in known for seed in cohort.seeds}
        new = [seed for seed in job.seeds if seed not in settled]
        size = size_of(job)
        cohorts += [replace(job, seeds=tuple(new[i : i + size])) for i in range(0, len(new), size)]
    return list(dict.fromkeys(cohorts))
