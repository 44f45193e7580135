"""A whole stream, from the first task to the last, by both implementations."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import piaget
from benchmarks import naive
from benchmarks.cases import BATCH, CASES, Case, data
from benchmarks.plain import make_naive
from piaget.data.tasks import Split, Task
from piaget.engine import compiled

CASE = Case("end to end", (8, 12), algorithm="dynamic")


def end_to_end(
    tasks: int = 6, epochs: int = 10, samples: int = 9600, cohort: int = 10
) -> tuple[dict[str, float], float]:
    """Seconds of each side, and of the library's first time, which compiles what was not kept.

    Tasks like MNIST's pairs, evaluated on all tasks so far after every epoch: ER, dynamic.
    """
    parts = [[split_task(CASE, n, seed, samples) for n in range(tasks)] for seed in range(cohort)]

    def library(runs: int) -> float:
        learners = [
            piaget.Learner("soft-ordering", "er", "dynamic", encoder="fixed", epochs=epochs, seed=seed)
            for seed in range(runs)
        ]
        for learner in learners:
            learner.tasks_in_all = tasks
        start = time.perf_counter()
        for n in range(tasks):
            piaget.Cohort(learners).learn(
                [parts[seed][n] for seed in range(runs)],
                evaluate_on=[parts[seed][: n + 1] for seed in range(runs)],
                every=1,
            )
        return (time.perf_counter() - start) / runs

    cold = library(1)  # compiles, if nothing was kept
    times = {"naive": naive_end_to_end(parts[0], epochs), "one": min(library(1), library(1))}
    before = kept()
    times["cohort"] = library(cohort)
    if kept() > before:  # it compiled: that is not to be counted
        times["cohort"] = library(cohort)
    return times, cold


def kept() -> int:
    """How many compiled steps there are on disk."""
    return len(list(compiled.cache_folder().glob("*.pt2")))


def split_task(case: Case, number: int, seed: int, samples: int) -> piaget.Task:
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
