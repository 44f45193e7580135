"""The plain implementation at the work of a case."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks import naive
from benchmarks.cases import BATCH, COMPONENTS, Case, data


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
    learned: dict[str, list[nn.Module]] = {
        "assimilation": own,
        "adaptation": [net.components],
        "joint": [net.components, *own],
    }
    modules = learned[case.stage]
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
        return len(loader) * len(passes)

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
        gating = case.structure == "soft-gating"
        convolutional = (naive.ConvSoftGatingNet if gating else naive.ConvSoftOrderingNet)(depth, dropout)
        convolutional.channels = conv[0]
        net = convolutional
    else:
        net = {
            "soft-ordering": naive.SoftOrderingNet,
            "soft-gating": naive.SoftGatingNet,
            "linear": naive.LinearNet,
        }[case.structure](depth, dropout)
    learner = naive.Learner(net)
    for _ in range(k):
        if conv:
            net.components.append(nn.Conv2d(conv[0], conv[0], 3, padding=conv[1]))
        else:
            net.components.append(nn.Linear(27, 1) if case.kind == "linear" else nn.Linear(64, 64))
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
