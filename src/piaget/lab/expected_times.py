"""How long the paper's experiments take, by what an epoch on each stream costs."""

from __future__ import annotations

import math

from piaget.lab.jobs import Job, preset_jobs
from piaget.lab.progress import duration
from piaget.paper.presets import OBJECTS, Preset

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
UNKNOWN = 0.1  # of other streams, one's own
STEPS = {"mnist": 300, "fashion": 300, "cub": 4}  # an epoch on a whole task
WORKERS = 2  # for which expected times are given


def expected_time(preset: Preset) -> str:
    """In words: "about 60 min on 2 cores"."""
    jobs = preset_jobs(preset, range(preset.seeds))
    if any((job.stream, job.method.structure) not in SECONDS for job in jobs):
        return "time not measured"
    return f"about {duration(sum(map(seconds, jobs)) / WORKERS)} on {WORKERS} cores"


def seconds(job: Job) -> float:
    """Of one core. Of a stream that was not measured: as of the small ones."""
    structure = job.method.structure.removesuffix("-scaled")  # a scale and a shift take no time to speak of
    return job.cost * SECONDS.get((job.stream, structure), UNKNOWN) * _share(job)


def _share(job: Job) -> float:
    """Of an epoch's steps, if there are fewer samples than usual."""
    size, steps = dict(job.options).get("train_size"), STEPS.get(job.stream)
    return 1.0 if size is None or steps is None else min(1.0, math.ceil(size / 32) / steps)
