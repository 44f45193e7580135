"""The paper's Algorithm 1 in plain sight, with its line numbers: soft ordering and naive fine-tuning.
On the naive implementation that the library is held against (benchmarks/naive.py)."""

import torch
from torch import Tensor, nn

import piaget
from benchmarks import naive


def algorithm_1(
    stream: piaget.Stream,
    struct_updates: int = 30,
    adapt_freq: int = 10,
    comp_updates: int = 1,
    initial: int = 4,
    k: int = 4,
    width: int = 32,
    rate: float = 1e-3,
) -> list[float]:
    """The accuracy on each (binary) task, when all have been learned."""
    net = naive.SoftOrderingNet(depth=k, dropout=0.0)
    net.components.extend(nn.Linear(width, width) for _ in range(k))
    learner = naive.Learner(net, rate)
    learner.watch(net.components.parameters())

    def meet(x: Tensor, logits: Tensor) -> int:
        return learner.meet("binary", nn.Linear(x.shape[1], width), naive.Logits(logits), nn.Linear(width, 1))

    data = [(task.train.x.flatten(1) / task.scaling.divisor, task.train.y) for task in stream]
    for x, _ in data[:initial]:  # 1: components learn with random structures that stay as they are
        one_hot = nn.functional.one_hot(torch.randint(k, (k,)), k).T
        meet(x, torch.where(one_hot == 1, 0.0, -torch.inf))
    for _ in range(struct_updates):
        for t, (x, y) in enumerate(data[:initial]):
            learner.epoch(t, x, y, [net.components])
    for x, y in data[initial:]:  # 2: while there is a task
        t = meet(x, torch.ones(k, k))
        for i in range(1, struct_updates + 1):  # 4
            learner.epoch(t, x, y, learner.own(t))  # 3, 5: assimilation; components are frozen
            if i % adapt_freq == 0:  # 6
                for _ in range(comp_updates):  # 8
                    learner.epoch(t, x, y, [net.components])  # 7, 9, 10: adaptation; the structure is frozen
        # 11: expansion would add components here; 12: fine-tuning stores nothing for the future
    net.eval()
    tests = [(task.test.x.flatten(1) / task.scaling.divisor, task.test.y) for task in stream if task.test]
    return [float(((net(x, t)[:, 0] > 0) == y).double().mean()) for t, (x, y) in enumerate(tests)]


if __name__ == "__main__":
    torch.manual_seed(0)
    print([round(accuracy, 2) for accuracy in algorithm_1(piaget.stream("digits", seed=0)[:8])])
