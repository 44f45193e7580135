"""How long each stream takes to load, and how much memory: a table for docs/streams.md.

    python -m benchmarks.loading [STREAM ...]       # PIAGET_DATA names the data folder

Each stream is loaded in a process of its own. "first task": from asking for the stream to having its
first task. "all tasks": having had every one of them, one at a time. Memory is what the process held at
most, beyond what it held after importing piaget.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
import warnings


def peak() -> float:
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name: str, features: str) -> None:
    import torch

    import piaget
    from piaget.streams import stream_options

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    options = {"features": features} if "features" in stream_options(name) else {}
    before, start = peak(), time.perf_counter()
    stream = piaget.stream(name, 0, **options)
    task = stream[0]
    first, first_peak = time.perf_counter() - start, peak() - before
    size = 0
    for task in stream:
        size = max(size, sum(split.x.numel() * split.x.element_size() for _, split in task.splits()))
    everything = time.perf_counter() - start
    print(
        f"| {name} | {len(stream)} | {first:.2f} s | {first_peak:.0f} MB | {everything:.1f} s | "
        f"{peak() - before:.0f} MB | {size / 2**20:.1f} MB |"
    )


def main() -> None:
    from piaget.streams import STREAMS

    columns = ("stream", "tasks", "first task", "memory", "all tasks", "memory", "largest task")
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    for name in sys.argv[1:] or STREAMS:
        command = [sys.executable, "-m", "benchmarks.loading", "--one", name]
        done = subprocess.run(command, capture_output=True, text=True)
        print(done.stdout.strip() or f"| {name} | {done.stderr.strip().splitlines()[-1]} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        measure(sys.argv[2], "resnet18_approx")
    else:
        main()
