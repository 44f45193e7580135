"""How much faster than the plain implementation: `make bench`, `piaget bench --quick`.

The same work is done by `naive.py` and by the library, in one process, one thread, alternating; the best
of several repeats counts. "one run": a learner alone; "cohort": ten of them, time per run. A step is one
batch of 32 in one pass. `share`: of this machine's matrix-product speed, measured here, that the
library's arithmetic reaches (operations counted in the plain step, so what is never computed counts, too).
"""

from __future__ import annotations

import gc
import json
import math
import platform
import resource
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.flop_counter import FlopCounterMode

import piaget
from benchmarks import naive
from piaget import training
from piaget.lab.memory import keep_memory

PAST, BATCH = 10, 32


@dataclass(frozen=True)
class Case:
    """One row: what is trained, and how much of it. `wanted`: the ratios to reach, alone and in a cohort."""

    name: str
    wanted: tuple[float, float | None]
    structure: str = "soft-ordering"
    adaptation: str = "er"
    algorithm: str = "compositional"
    stage: str = "assimilation"
    shape: tuple[int, ...] = (784,)
    classes: int = 2
    batches: int = 40
    kind: str = "dense"  # of components
    past: int = 5  # tasks that were learned before


CASES = [
    Case("soft ordering, assimilation", (8, 15)),
    Case("soft ordering, component dropout", (8, 15), algorithm="dynamic"),
    Case("soft gating, assimilation", (6, 12), structure="soft-gating"),
    Case("adaptation, NFT", (5, 8), stage="adaptation", adaptation="nft", past=PAST),
    Case("adaptation, ER", (5, 8), stage="adaptation", past=PAST),
    Case("adaptation, EWC", (5, 8), stage="adaptation", adaptation="ewc", past=PAST),
    Case("joint training, NFT", (5, 8), stage="joint", algorithm="joint", adaptation="nft", past=PAST),
    Case("joint training, ER", (5, 8), stage="joint", algorithm="joint", past=PAST),
    Case("joint training, EWC", (5, 8), stage="joint", algorithm="joint", adaptation="ewc", past=PAST),
    Case("no components, ER", (4, 8), stage="joint", algorithm="no-components", past=PAST),
    Case("linear, full batch", (10, 50), structure="linear", shape=(27,), kind="linear", batches=4, past=8),
    Case("conv soft ordering, CIFAR-100", (5, None), shape=(3, 32, 32), classes=5, batches=6, kind="cifar"),
    Case("conv soft ordering, Omniglot", (5, None), shape=(1, 105, 105), classes=20, batches=3,
         kind="omniglot"),
    Case("conv soft gating, CIFAR-100", (2.5, None), "soft-gating", shape=(3, 32, 32), classes=5, batches=6,
         kind="cifar"),
]  # fmt: skip
COMPONENTS = {
    "dense": piaget.Dense(), "linear": piaget.Linear(), "cifar": piaget.Conv(50, 1),
    "omniglot": piaget.Conv(53, 0),
}  # fmt: skip


def data(case: Case, number: int, seed: int, samples: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(1000 * seed + number)
    x = torch.rand(samples, *case.shape, generator=draw)
    return x, torch.arange(samples) % case.classes


# --- the library ----------------------------------------------------------------------------------------


class _Caught(Exception):
    pass


def prepare(case: Case, runs: int) -> Callable[[], int]:
    """One epoch of the stage, as the library trains it; returns its number of steps (batches x passes)."""
    encoder = "fixed" if case.kind == "dense" else None
    learners = [
        piaget.Learner(
            case.structure, case.adaptation, case.algorithm, components=COMPONENTS[case.kind],
            encoder=encoder, epochs=2, initial_epochs=1, seed=seed,
            compile="always" if COMPONENTS[case.kind].compiles_well else "never",
        )
        for seed in range(runs)
    ]  # fmt: skip
    cohort, caught = piaget.Cohort(learners), []
    original = training.train

    def train(stages: Any, rate: float, keeper: Any = None) -> None:
        if len(learners[0]._state.records) > case.past and stages[0].name == case.stage:
            caught.append(training._Together(stages, rate))
            raise _Caught
        quick = [replace(stage, compile="never") for stage in stages]
        original(quick, rate, keeper)

    training.train = train
    try:
        for number in range(case.past + 1):
            samples = BATCH * case.batches if number == case.past else BATCH
            cohort.learn([task(case, number, seed, samples) for seed in range(runs)])
    except _Caught:
        pass
    finally:
        training.train = original
    (together,) = caught
    steps = case.batches * len(together.stages[0].passes) if case.kind != "linear" else 1

    def epoch() -> int:
        together.epoch()
        return steps

    return epoch


def task(case: Case, number: int, seed: int, samples: int) -> piaget.Task:
    from piaget.tasks import Split, Task

    x, y = data(case, number, seed, samples)
    small = Split(x[: 2 * case.classes], y[: 2 * case.classes])
    kind = "binary" if case.classes == 2 else "multiclass"
    return Task(f"task {number}", kind, Split(x, y), small, small, case.classes)


# --- the plain implementation ---------------------------------------------------------------------------


def prepare_naive(case: Case) -> Callable[[], int]:
    """The same epoch, written plainly: a shuffling DataLoader, a call a component and depth, Adam."""
    learner = make_naive(case)
    net, now = learner.net, case.past
    x, y = data(case, now, 0, BATCH * case.batches)
    whose = torch.full_like(y, now)
    if case.adaptation == "er" and case.stage != "assimilation":
        stored = [data(case, t, 0, BATCH) for t in range(now)]
        x = torch.cat([x, *(a for a, _ in stored)])
        y = torch.cat([y, *(b for _, b in stored)])
        whose = torch.cat([whose, *(torch.full((BATCH,), t) for t in range(now))])
    own = learner.own(now)
    modules = {"assimilation": own, "adaptation": [net.components], "joint": [net.components, *own]}[
        case.stage
    ]
    passes = (False, True) if case.algorithm == "dynamic" else (False,)
    if case.algorithm == "dynamic" and case.stage == "assimilation":
        modules = [*modules, net.components[-1]]
    if case.kind == "dense":  # a fixed encoder
        modules = [m for m in modules if m is not net.encoders[now]]
    penalty = case.adaptation == "ewc" and case.stage != "assimilation"
    batch_size = len(x) if case.kind == "linear" else BATCH
    loader = DataLoader(TensorDataset(x, y, whose), batch_size=batch_size, shuffle=True)

    def batches() -> Any:
        for rows, labels, tasks in loader:
            parts = [(int(t), rows[tasks == t], labels[tasks == t], None) for t in tasks.unique()]
            yield [parts] * len(passes)

    def epoch() -> int:
        learner.run(batches(), modules, passes, penalty)
        return 1 if case.kind == "linear" else case.batches * len(passes)

    return epoch


def make_naive(case: Case) -> naive.Learner:
    depth = 1 if case.kind == "linear" else 4
    dropout = COMPONENTS[case.kind].dropout
    k = 5 if case.algorithm == "dynamic" else 4
    conv = {"cifar": (50, 1), "omniglot": (53, 0)}.get(case.kind)
    net: naive.Net
    if case.algorithm == "no-components":
        net = naive.MonolithicNet(depth, dropout)
    elif conv:
        kinds = {"soft-ordering": naive.ConvSoftOrderingNet, "soft-gating": naive.ConvSoftGatingNet}
        net = kinds[case.structure](depth, dropout)
        net.channels = conv[0]
    else:
        net = {
            "soft-ordering": naive.SoftOrderingNet, "soft-gating": naive.SoftGatingNet,
            "linear": naive.LinearNet,
        }[case.structure](depth, dropout)  # fmt: skip
    learner = naive.Learner(net)
    for _ in range(k):
        net.components.append(
            nn.Conv2d(conv[0], conv[0], 3, padding=conv[1]) if conv else
            nn.Linear(27, 1) if case.kind == "linear" else nn.Linear(64, 64)
        )  # fmt: skip
    outputs = 1 if case.classes == 2 else case.classes
    features = math.prod(COMPONENTS[case.kind].output_shape(case.shape)) if not conv else _features(case)
    for _ in range(case.past + 1):
        net.encoders.append(nn.Linear(case.shape[0], 64) if case.kind == "dense" else nn.Identity())
        net.decoders.append(nn.Linear(features, outputs) if case.kind != "linear" else nn.Identity())
        net.structures.append(_structure(case, k, features, conv))
        learner.kinds.append("binary" if case.classes == 2 else "multiclass")
    learner.watch(net.parameters())
    if case.adaptation == "ewc":
        learner.strength = 1e-3
        size = naive.Learner.matrix(net.components[0]).shape
        learner.factors = [
            [(torch.eye(size[0]), torch.eye(size[1]), torch.zeros(size)) for _ in range(k)]
            for _ in range(case.past)
        ]
    return learner


def _features(case: Case) -> int:
    shape = case.shape
    for _ in range(4):
        shape = COMPONENTS[case.kind].output_shape(shape)
    return math.prod(shape)


def _structure(case: Case, k: int, features: int, conv: tuple[int, int] | None) -> nn.Module:
    if case.structure != "soft-gating":
        return naive.Logits(torch.ones(k, 1 if case.kind == "linear" else 4))
    if conv is None:
        return nn.ModuleList(nn.Linear(64, k) for _ in range(4))
    gate = nn.Module()
    gate.layers = nn.ModuleList(nn.Conv2d(conv[0], conv[0], 3, padding=conv[1]) for _ in range(4))
    gate.heads = nn.ModuleList(nn.Linear(features, k) for _ in range(4))
    return gate


# --- end to end -----------------------------------------------------------------------------------------


def end_to_end(tasks: int = 6, epochs: int = 10, samples: int = 9600, cohort: int = 10) -> dict[str, Any]:
    """Tasks like MNIST's pairs, evaluated on all tasks so far after every epoch: ER, dynamic."""
    case = Case(f"end to end, {tasks} tasks x {epochs} epochs", (8, 12), algorithm="dynamic")
    parts = [[split_task(case, n, seed, samples) for n in range(tasks)] for seed in range(cohort)]

    def library(runs: int) -> float:
        learners = [
            piaget.Learner("soft-ordering", "er", "dynamic", encoder="fixed", epochs=epochs, seed=seed)
            for seed in range(runs)
        ]
        start = time.perf_counter()
        for n in range(tasks):
            piaget.Cohort(learners).learn(
                [parts[seed][n] for seed in range(runs)],
                evaluate_on=[parts[seed][: n + 1] for seed in range(runs)], every=1,
            )  # fmt: skip
        return (time.perf_counter() - start) / runs

    cold = library(1)  # compiles, if nothing was kept
    times = {"naive": naive_end_to_end(parts[0], epochs), "one": min(library(1), library(1))}
    library(cohort)
    times["cohort"] = library(cohort)
    return {
        "name": case.name, "wanted": case.wanted, "milliseconds": {n: 1e3 * t for n, t in times.items()},
        "ratio": {n: times["naive"] / t for n, t in times.items() if n != "naive"}, "operations": math.nan,
        "ready_after": cold, "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip


def split_task(case: Case, number: int, seed: int, samples: int) -> piaget.Task:
    from piaget.tasks import Split, Task

    x, y = data(case, number, seed, samples * 3 // 2)
    y = (x[:, : 40 + number].sum(1) > (40 + number) / 2).long()  # something to learn
    cuts = [samples, samples + samples // 4]
    train, validation, test = (
        Split(a, b) for a, b in zip(x.tensor_split(cuts), y.tensor_split(cuts), strict=True)
    )
    return Task(f"task {number}", "binary", train, validation, test, 2)


def naive_end_to_end(tasks: list[piaget.Task], epochs: int) -> float:
    """The same, plainly: four initial tasks, then assimilation, adaptation with replay, expansion."""
    case = replace(CASES[1], past=len(tasks) - 1, algorithm="compositional")
    learner = make_naive(case)
    net, start = learner.net, time.perf_counter()

    def loaders(number: int, split: str) -> DataLoader:
        part = getattr(tasks[number], split)
        whose = torch.full_like(part.y, number)
        return DataLoader(TensorDataset(part.x, part.y, whose), batch_size=BATCH, shuffle=split == "train")

    def accuracy(number: int, split: str) -> float:
        net.eval()
        right = 0
        with torch.no_grad():
            for x, y, _ in loaders(number, split):
                right += int(((net(x, number)[:, 0] > 0) == y).sum())
        net.train()
        return right / len(getattr(tasks[number], split))

    def batches(loader: DataLoader, passes: int) -> Any:
        for x, y, whose in loader:
            parts = [(int(t), x[whose == t], y[whose == t], None) for t in whose.unique()]
            yield [parts] * passes

    def epoch(loader: DataLoader, modules: list[nn.Module], passes: tuple[bool, ...], seen: int) -> None:
        learner.run(batches(loader, len(passes)), modules, passes)
        for number in range(seen):
            accuracy(number, "test")

    for _ in range(epochs):
        for turn in zip(*(batches(loaders(n, "train"), 1) for n in range(4)), strict=True):
            learner.run(turn, [net.components])
        for number in range(4):
            accuracy(number, "test")
    stored = [(task.train.x[:BATCH], task.train.y[:BATCH]) for task in tasks]
    for now in range(4, len(tasks)):
        net.components.append(nn.Linear(64, 64))
        learner.watch(net.components[-1].parameters())
        net.structures[now] = naive.Logits(torch.ones(len(net.components), 4))
        learner.watch(net.structures[now].parameters())
        own = [net.structures[now], net.decoders[now], net.components[-1]]
        for _ in range(epochs - 1):
            epoch(loaders(now, "train"), own, (False, True), now + 1)
        train = tasks[now].train
        x = torch.cat([train.x, *(a for a, _ in stored[:now])])
        y = torch.cat([train.y, *(b for _, b in stored[:now])])
        counts = torch.tensor([len(train), *[BATCH] * now])
        whose = torch.tensor([now, *range(now)]).repeat_interleave(counts)
        union = DataLoader(TensorDataset(x, y, whose), batch_size=BATCH, shuffle=True)
        epoch(union, [net.components], (False, True), now + 1)
        for net.hidden in (True, False):
            accuracy(now, "validation")
    return time.perf_counter() - start


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
    return {
        "name": case.name, "wanted": case.wanted, "milliseconds": {n: 1e3 * t for n, t in times.items()},
        "ratio": {n: times["naive"] / t for n, t in times.items() if n != "naive"},
        "operations": operations(sides["naive"]), "ready_after": compiling,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip


def show(row: dict[str, Any], speed: float) -> str:
    milliseconds, ratio, wanted = row["milliseconds"], row["ratio"], row["wanted"]
    last = "cohort" if "cohort" in ratio else "one"
    share = row["operations"] / (milliseconds[last] / 1e3) / speed
    both = [f"{ratio['one']:.1f}x ({wanted[0]}x)"]
    both.append(f"{ratio['cohort']:.1f}x ({wanted[1]}x)" if "cohort" in ratio else "-")
    times = " / ".join(f"{milliseconds[n]:.3g}" for n in ("naive", "one", "cohort") if n in milliseconds)
    cells = [
        row["name"],
        *both,
        times,
        "-" if math.isnan(share) else f"{100 * share:.0f} %",
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
    speed = matrix_speed()
    print(
        f"{platform.machine()}, PyTorch {torch.__version__}; matrix products: {speed / 1e9:.0f} billion op/s"
    )
    print(HEAD, flush=True)
    rows = []
    for case in CASES:
        if only not in case.name or (quick and not only and case.name not in QUICK):
            continue
        rows.append(measure(case, 2 if quick else 5, 0.3 if quick else 1.0, 10))
        print(show(rows[-1], speed), flush=True)
        gc.collect()
    if only in "end to end":
        rows.append(end_to_end(6, 10, 960, 3) if quick else end_to_end())
        print(show(rows[-1], speed), flush=True)
        print(f"  (the first time, with compiling what was not kept: {rows[-1]['ready_after']:.0f} s)")
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps({"matrix_speed": speed, "rows": rows}, indent=1))
    return rows


QUICK = (
    "soft ordering, assimilation",
    "adaptation, ER",
    "linear, full batch",
    "conv soft ordering, CIFAR-100",
)

if __name__ == "__main__":
    import sys

    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    main("--quick" in sys.argv, words[0] if words else "")
