"""The paper's experiments by name: which runs each consists of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from piaget.lab.jobs import Job, Method, paper_methods
from piaget.lab.progress import duration
from piaget.lab.table import ALGORITHMS, reported

IMAGES = ("mnist", "fashion", "cub", "cifar100", "omniglot")
OBJECTS = ("objects-random", "objects-circle", "objects-top-left", "objects-orange")
SIZES = (10, 20, 50, 100, 200)  # the paper shows its sizes in a figure only
FREQUENCIES = (2, 5, 10, 20, 50, 100)


# Seconds of one core for one epoch over a whole stream, for one of ten runs trained together, ER and
# compositional, 2026-11-16, on a busy machine. The other algorithms cost more (Job.cost).
SECONDS: dict[tuple[str, str], float] = {
    # python -m benchmarks.preset_times
    ("landmine", "linear"): 0.00085,
    ("fera", "linear"): 0.001,  # on random numbers of the same shapes
    ("mnist", "soft-ordering"): 1.5,
    ("fashion", "soft-ordering"): 1.1,
    ("cub", "soft-ordering"): 0.49,
    # Estimated: milliseconds a step (docs/performance.md) x steps, or from a like stream or structure.
    ("schools", "linear"): 0.004,
    ("mnist", "soft-gating"): 2.0,
    ("fashion", "soft-gating"): 1.5,
    ("cifar100", "soft-ordering"): 95,
    ("cifar100", "soft-gating"): 180,
    ("omniglot", "soft-ordering"): 640,
    ("omniglot", "soft-gating"): 1300,
    ("combined", "soft-ordering"): 13,
    ("pixel-mnist", "soft-ordering"): 0.08,
} | {(stream, "soft-ordering"): 0.21 for stream in OBJECTS}  # by what `make run` takes
STEPS = {"mnist": 300, "fashion": 300, "cub": 4}  # an epoch on a whole task
WORKERS = 2  # for which expected times are given


@dataclass(frozen=True)
class Preset:
    """One experiment. `jobs`: its cohorts, for given seeds; `seeds`: as many as in the paper.

    `finding`: what comes out, where that is not a table of final performance.
    """

    name: str
    seeds: int
    what: str
    jobs: Callable[[tuple[int, ...]], list[Job]]
    finding: str | None = None

    @property
    def runs(self) -> int:
        return sum(len(job.seeds) for job in self.jobs(tuple(range(self.seeds))))

    @property
    def expected_time(self) -> str:
        jobs = self.jobs(tuple(range(self.seeds)))
        known = [
            j.cost * s * _share(j)
            for j in jobs
            if (s := SECONDS.get((j.stream, j.method.structure))) is not None
        ]
        if len(known) < len(jobs):
            return "time not measured"
        return f"about {duration(sum(known) / WORKERS)} on {WORKERS} cores"

    @property
    def expected(self) -> str:
        """The paper's numbers for the best of its own methods."""
        if self.finding is not None:
            return self.finding
        jobs = self.jobs((0,))
        structure = jobs[0].method.structure
        algorithm = "compositional" if structure == "linear" else "dynamic"
        streams = dict.fromkeys(job.stream for job in jobs)
        found = [(stream, reported(structure, stream, "er", algorithm)) for stream in streams]
        numbers = ", ".join(f"{stream} {paper[0]} ± {paper[1]}" for stream, paper in found if paper)
        return f"ER, {ALGORITHMS[algorithm]}: {numbers}"


def _share(job: Job) -> float:
    """Of an epoch's steps, if there are fewer samples than usual."""
    size = dict(job.options).get("train_size")
    return 1.0 if size is None else min(1.0, math.ceil(size / 32) / STEPS[job.stream])


def _all_methods(streams: tuple[str, ...], structure: str) -> Callable[[tuple[int, ...]], list[Job]]:
    methods = paper_methods(structure)
    return lambda seeds: [Job(stream, method, seeds) for stream in streams for method in methods]


def _limited(seeds: tuple[int, ...]) -> list[Job]:
    """1,000 epochs, every tenth adapts; replay of a tenth of the samples, 1 to 32."""
    jobs = []
    for stream in ("mnist", "fashion", "cub"):
        for size in SIZES:
            for algorithm in ("dynamic", "compositional", "joint", "no-components"):
                settings: dict[str, Any] = {"replay_size": min(max(size // 10, 1), 32)}
                if algorithm in ("dynamic", "compositional"):
                    settings["adapt_every"] = 10
                jobs.append(
                    Job(
                        stream, Method("er", algorithm), seeds, 1000, options=(("train_size", size),),
                        settings=tuple(settings.items()),
                    )
                )  # fmt: skip
    return jobs


def _schedule(seeds: tuple[int, ...]) -> list[Job]:
    jobs = []
    for stream in ("mnist", "fashion", "cub"):
        jobs += [Job(stream, Method("er", name), seeds) for name in ("joint", "no-components")]
        for every in FREQUENCIES:
            for name in ("dynamic", "compositional"):
                jobs.append(Job(stream, Method("er", name), seeds, settings=(("adapt_every", every),)))
    return jobs


def _components(seeds: tuple[int, ...]) -> list[Job]:
    methods = [Method("er", "dynamic"), Method("er", "compositional")]
    methods += [Method(base, "dynamic") for base in ("ewc", "nft", "fm")]
    return [Job(stream, method, seeds) for stream in IMAGES for method in methods]


def _pixels(seeds: tuple[int, ...]) -> list[Job]:
    return [Job("pixel-mnist", Method("er", name), seeds) for name in ("compositional", "joint")]


PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            "linear", 10, "linear models on landmine, schools and fera",
            _all_methods(("landmine", "schools", "fera"), "linear"),
        ),
        Preset(
            "soft-ordering", 10, "soft layer ordering on mnist, fashion, cub, cifar100 and omniglot",
            _all_methods(IMAGES, "soft-ordering"),
        ),
        Preset(
            "soft-gating", 10, "soft gating on the same but cub",
            _all_methods(("mnist", "fashion", "cifar100", "omniglot"), "soft-gating"),
        ),
        Preset(
            "combined", 10, "very different tasks in one stream", _all_methods(("combined",), "soft-ordering")
        ),
        Preset(
            "objects", 50, "the compositional data set with what is held out",
            _all_methods(OBJECTS, "soft-ordering"),
        ),
        Preset(
            "limited-data", 50, "accuracy against the number of training samples", _limited,
            "compositional algorithms are better than the baselines even with very little data",
        ),
        Preset(
            "schedule", 10, "how often components adapt", _schedule,
            "the rarer components adapt, the better; on mnist and fashion always better than the baselines",
        ),
        Preset(
            "components", 10, "how many components are learned, and reused", _components,
            "dynamic ER: mnist 5.2, fashion 4.9, cub 5.9, cifar100 19.1, omniglot 9.3; all reused at first",
        ),
        Preset(
            "pixel-mnist", 1, "what components do to a picture of a 4", _pixels,
            "a component changes the digit in the same way, such as its thickness, whatever the task",
        ),
    )
}  # fmt: skip


def quick(jobs: list[Job], epochs: int | None = None) -> list[Job]:
    """A version of a minute: few tasks, samples and epochs. It shows that all works, not how well."""
    from piaget.streams import stream_options

    small = {"tasks": 5, "train_size": 40}
    made = []
    for job in jobs:
        options = {key: value for key, value in small.items() if key in stream_options(job.stream)}
        settings = tuple((key, 2 if key == "adapt_every" else value) for key, value in job.settings)
        made.append(
            replace(
                job,
                epochs=epochs or 2,
                options=tuple((options | dict(job.options)).items()),
                settings=settings,
            )
        )
    return list(dict.fromkeys(made))
