"""How much faster than the plain implementation: `make bench`, `piaget bench --quick`.

The same work is done by `naive.py` and by the library, in one process, one thread, alternating; the best
of several repeats counts. "one run": a learner alone; "cohort": ten of them, time per run. A step is one
batch of 32 in one pass. `share`: of this machine's matrix-product speed, measured here, that the
library's arithmetic reaches (operations counted in the plain step, so what is never computed counts, too).
"""

from __future__ import annotations

import datetime
import gc
import json
import math
import os
import platform
import resource
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

import piaget
from benchmarks.cases import BATCH, CASES, COMPONENTS, Case, task
from benchmarks.end_to_end import CASE, end_to_end
from benchmarks.plain import prepare_naive
from piaget.engine.training import Trained, Training
from piaget.files import write_atomically
from piaget.lab.memory import keep_memory


def prepare(case: Case, runs: int, **settings: Any) -> Callable[[], int]:
    """One epoch of the stage, as the library trains it; returns its number of steps (batches x passes)."""
    components = COMPONENTS[case.kind]
    encoder = "fixed" if case.kind == "dense" else None
    usual: dict[str, Any] = {"components": components, "encoder": encoder, "epochs": 2}
    usual |= {"initial_epochs": 1, "compile": "always" if components.compiles_well else "never"} | settings
    learners = [
        piaget.Learner(
            case.structure, case.adaptation, case.algorithm, seed=seed, **(usual | {"compile": "never"})
        )
        for seed in range(runs)
    ]
    cohort = piaget.Cohort(learners)
    for number in range(case.past):
        cohort.learn([task(case, number, seed, BATCH) for seed in range(runs)])
    for learner in learners:  # only what is measured is compiled
        learner.settings = replace(learner.settings, compile=usual["compile"])
    samples = BATCH * case.batches
    lessons = [
        learner.learning(task(case, case.past, learner.settings.seed, samples)) for learner in learners
    ]
    stages: list[Any] = [next(lesson) for lesson in lessons]
    active = [True] * runs
    while stages[0].kind.name != case.stage:
        training = Training(stages)
        training.epoch(active)
        stages = [lesson.send(Trained(training, i, False)) for i, lesson in enumerate(lessons)]
    measured = Training(stages)

    def epoch() -> int:
        before = measured.unread[0]
        measured.epoch(active)
        return measured.unread[0] - before

    return epoch


# --- measuring ------------------------------------------------------------------------------------------


def seconds_a_step(epoch: Callable[[], int], least: float) -> float:
    """Of as many epochs as take `least` seconds."""
    steps, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < least:
        steps += epoch()
    return passed / steps


def matrix_speed() -> float:
    """Operations a second of one thread, of a product of large matrices."""
    a, b = torch.rand(512, 512), torch.rand(512, 512)
    best = math.inf
    for _ in range(20):
        start = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - start)
    return 2 * 512**3 / best


def operations(epoch: Callable[[], int]) -> float:
    with FlopCounterMode(display=False) as counter:
        steps = epoch()
    return counter.get_total_flops() / steps


def measure(case: Case, repeats: int, least: float, cohort: int) -> dict[str, Any]:
    sides: dict[str, Callable[[], int]] = {"naive": prepare_naive(case)}
    start = time.perf_counter()
    sides["one"] = prepare(case, 1)
    sides["one"]()
    compiling = time.perf_counter() - start
    if case.wanted[1] is not None:
        sides["cohort"] = prepare(case, cohort)
    for epoch in sides.values():
        epoch()
    times = dict.fromkeys(sides, math.inf)
    for _ in range(repeats):  # alternating: the machine may be slow for a while
        for name, epoch in sides.items():
            times[name] = min(times[name], seconds_a_step(epoch, least))
    if "cohort" in times:
        times["cohort"] /= cohort
    return as_row(case, times, compiling, operations(sides["naive"]))


def as_row(case: Case, times: dict[str, float], ready_after: float, counted: float | None) -> dict[str, Any]:
    return {
        "name": case.name,
        "wanted": case.wanted,
        "milliseconds": {n: 1e3 * t for n, t in times.items()},
        "ratio": {n: times["naive"] / t for n, t in times.items() if n != "naive"},
        "operations": counted,
        "ready_after": ready_after,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def show(row: dict[str, Any], speed: float) -> str:
    milliseconds, ratio, wanted = row["milliseconds"], row["ratio"], row["wanted"]
    last = "cohort" if "cohort" in ratio else "one"
    share = None if row["operations"] is None else row["operations"] / (milliseconds[last] / 1e3) / speed
    both = [f"{ratio['one']:.1f}x ({wanted[0]}x)"]
    both.append(f"{ratio['cohort']:.1f}x ({wanted[1]}x)" if "cohort" in ratio else "-")
    times = " / ".join(f"{milliseconds[n]:.3g}" for n in ("naive", "one", "cohort") if n in milliseconds)
    cells = [
        row["name"],
        *both,
        times,
        "-" if share is None else f"{100 * share:.0f} %",
        f"{row['peak_megabytes']:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


HEAD = (
    "| work | one run (wanted) | cohort, per run | ms a step: plain / one / cohort | share | peak MB |\n"
    "|---|---|---|---|---|---|"
)


def main(quick: bool = False, only: str = "", out: Path | None = None) -> list[dict[str, Any]]:
    torch.set_num_threads(1)
    keep_memory()  # for both sides
    warnings.simplefilter("ignore")
    began, speed = time.monotonic(), matrix_speed()
    print(f"{machine()}, PyTorch {torch.__version__}; matrix products: {speed / 1e9:.0f} billion op/s")
    print(HEAD, flush=True)
    rows = []
    for case in CASES:
        if only not in case.name or (quick and not only and case.name not in QUICK):
            continue
        rows.append(measure(case, 2 if quick else 5, 0.3 if quick else 1.0, 10))
        print(show(rows[-1], speed), flush=True)
        gc.collect()
    if only in CASE.name and not quick:
        rows.append(as_row(CASE, *end_to_end(), None))
        print(show(rows[-1], speed), flush=True)
        print(f"  (the first time, with compiling what was not kept: {rows[-1]['ready_after']:.0f} s)")
    print(f"{time.monotonic() - began:.0f} s in all")
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        about = {
            "date": datetime.date.today().isoformat(),
            "machine": machine(),
            "command": sys.argv,
            "torch": torch.__version__,
            "piaget": piaget.__version__,
            "matrix_speed": speed,
        }
        text = json.dumps(about | {"seconds": time.monotonic() - began, "rows": rows}, indent=1)
        write_atomically(out, text.encode())
    return rows


def machine() -> str:
    """The kind of processor, as far as the system tells."""
    names = [line.split(":")[1].strip() for line in cpu_lines() if line.startswith("model name")]
    return f"{platform.machine()}, {len(names) or os.cpu_count()} cores, {names[0] if names else 'unknown'}"


def cpu_lines() -> list[str]:
    file = Path("/proc/cpuinfo")
    return file.read_text().splitlines() if file.exists() else []


QUICK = (
    "soft ordering, assimilation",
    "adaptation, ER",
    "linear, full batch",
    "conv soft ordering, CIFAR-100",
)

if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    main("--quick" in sys.argv, words[0] if words else "")
