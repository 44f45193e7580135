"""A component of one's own: any nn.Module that preserves the shape of its input."""

import torch
from torch import nn

import piaget


class Residual(nn.Module):
    def __init__(self, width: int = 32):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.relu(self.layer(x))


def main(epochs: int = 30) -> piaget.Learner:
    components = piaget.Module(Residual, shape=(32,), dropout=0.2)
    learner = piaget.Learner(components=components, epochs=epochs)
    for task in piaget.stream("objects", seed=0)[:6]:
        for row in learner.learn(task):
            if row["metric"] == "accuracy":
                print(f"{row['evaluated']}: {row['value']:.0%}")
    return learner


if __name__ == "__main__":
    main()
