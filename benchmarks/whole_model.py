"""Do past tasks' encoders and decoders go on learning, without components?

The paper says that no-components agents "trained the whole model at every epoch". piaget leaves a
finished task's own parameters as they are. This trains no-components ER on Objects both ways, with the
naive implementation, and prints final accuracy.

    python -m benchmarks.whole_model circle 4       # setting, seeds; about 2 minutes a seed and way
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import replace

import torch
from torch import nn

from benchmarks import naive
from piaget.data.tasks import Split
from piaget.lab.final_table import mean_and_error, with_error
from piaget.streams.objects import Objects

WIDTH, DEPTH, BATCH, EPOCHS, REPLAY, INITIAL = 64, 4, 32, 100, 5, 4


def batches(rows):
    """One shuffled epoch over (task, x, y) rows, each batch grouped by task, in naive's form."""
    tasks, x, y = rows
    for chosen in torch.randperm(len(x)).split(BATCH):
        groups = [(t, chosen[tasks[chosen] == t]) for t in tasks[chosen].unique().tolist()]
        yield [[(t, x[at], y[at], None) for t, at in groups]]


def scaled(split):
    return Split(split.x / 255, split.y)


def train(seed: int, setting: str, past_learns: bool, epochs: int = EPOCHS) -> float:
    torch.manual_seed(seed)
    net = naive.MonolithicNet(DEPTH, 0.5)
    net.components.extend(nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH))
    learner = naive.Learner(net)
    learner.watch(net.components.parameters())
    data = [replace(t, train=scaled(t.train), test=scaled(t.test)) for t in Objects(seed, setting)]
    stored: list[tuple] = []
    for t, task in enumerate(data):
        net.encoders.append(nn.Sequential(nn.Flatten(), nn.Linear(task.train.x[0].numel(), WIDTH)))
        net.structures.append(nn.Identity())
        net.decoders.append(nn.Linear(WIDTH, task.classes))
        learner.kinds.append(task.kind)
        learner.watch(p for module in learner.own(t) for p in module.parameters())
        own = (torch.full((len(task.train),), t), task.train.x, task.train.y)
        everything = [net.components] + [m for s in range(t + 1) for m in learner.own(s)]
        if t == INITIAL - 1:
            loaders = [
                (torch.full((len(d.train),), s), d.train.x, d.train.y) for s, d in enumerate(data[:INITIAL])
            ]
            for _ in range(epochs):
                turns = zip(*(batches(rows) for rows in loaders), strict=True)
                learner.run((batch for turn in turns for batch in turn), everything)
        elif t >= INITIAL:
            union = tuple(torch.cat(part) for part in zip(own, *stored, strict=True))
            modules = everything if past_learns else [net.components, *learner.own(t)]
            for _ in range(epochs):
                learner.run(batches(union), modules)
        kept = torch.randperm(len(own[0]))[:REPLAY]
        stored.append(tuple(part[kept] for part in own))
    net.eval()
    with torch.no_grad():
        tests = [d.test for d in data if d.test is not None]
        right = [(net(test.x, t).argmax(1) == test.y).float().mean() for t, test in enumerate(tests)]
    return 100 * statistics.fmean(map(float, right))


def main(setting: str = "circle", seeds: str = "4") -> None:
    torch.set_num_threads(1)
    for past_learns, name in ((False, "past encoders and decoders stay"), (True, "they learn, too")):
        finals = [train(seed, setting, past_learns) for seed in range(int(seeds))]
        print(f"{setting}, {name}: {with_error(*mean_and_error(finals))}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
