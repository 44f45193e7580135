"""A structure of one's own: at each depth, every component has a weight between 0 and 1,
independently of the others (a sigmoid instead of soft ordering's softmax)."""

from dataclasses import dataclass

import torch
from torch import Tensor

import piaget
from piaget import Components, Frame, Tensors


@dataclass(frozen=True)
class Mixing(piaget.Structure):
    name = "mixing"
    axes = {"logits": 0}  # noqa: RUF012  (the component axis, along which structures grow)

    def draw(self, generator: torch.Generator, frame: Frame) -> Tensors:
        return {"logits": torch.randn(frame.k, frame.depth, generator=generator, dtype=frame.dtype)}

    def weights(
        self, components: Components, params: Tensors, depth: int, h: Tensor, visible: Tensor
    ) -> Tensor:
        return torch.sigmoid(params["logits"][:, depth]) * visible  # (k,); hidden means 0


def main(epochs: int = 30) -> piaget.Learner:
    learner = piaget.Learner(structure=Mixing(), adaptation="er", algorithm="dynamic", epochs=epochs)
    for task in piaget.stream("objects", seed=0)[:6]:
        learner.learn(task)
    for name, weights in learner.structures().items():
        print(name, weights.numpy().round(2).tolist())
    return learner


if __name__ == "__main__":
    main()
