"""The paper's experiments by name: which runs each consists of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from piaget.lab.sweep import Job, Method, paper_methods

IMAGES = ("mnist", "fashion", "cub", "cifar100", "omniglot")
OBJECTS = ("objects-random", "objects-circle", "objects-top-left", "objects-orange")
SIZES = (10, 20, 50, 100, 200)  # the paper shows its sizes in a figure only
FREQUENCIES = (2, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Preset:
    """One experiment (`piaget list` says what each is).

    `jobs`: its cohorts, for given seeds; `seeds`: as many as in the paper.
    """

    name: str
    seeds: int
    jobs: Callable[[tuple[int, ...]], list[Job]]


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
        Preset("linear", 10, _all_methods(("landmine", "schools", "fera"), "linear")),
        Preset("soft-ordering", 10, _all_methods(IMAGES, "soft-ordering")),
        Preset("soft-gating", 10, _all_methods(("mnist", "fashion", "cifar100", "omniglot"), "soft-gating")),
        Preset("combined", 10, _all_methods(("combined",), "soft-ordering")),
        Preset("objects", 50, _all_methods(OBJECTS, "soft-ordering")),
        Preset("limited-data", 50, _limited),
        Preset("schedule", 10, _schedule),
        Preset("components", 10, _components),
        Preset("pixel-mnist", 1, _pixels),
    )
}  # fmt: skip


def quick(jobs: list[Job]) -> list[Job]:
    """A version of a minute: few tasks, samples and epochs. It shows that all works, not how well."""
    from piaget.streams import stream_options

    small = {"tasks": 5, "train_size": 40}
    made = []
    for job in jobs:
        options = {key: value for key, value in small.items() if key in stream_options(job.stream)}
        settings = tuple((key, 2 if key == "adapt_every" else value) for key, value in job.settings)
        made.append(
            replace(job, epochs=2, options=tuple((options | dict(job.options)).items()), settings=settings)
        )
    return list(dict.fromkeys(made))
