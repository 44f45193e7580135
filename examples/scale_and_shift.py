"""A structure with a scale and a shift for each task after every depth, on top of soft ordering."""

from dataclasses import dataclass

import torch
from torch import Tensor

import piaget
from piaget import Components, Frame, Tensors

ORDERING = piaget.SoftOrdering()


@dataclass(frozen=True)
class ScaleAndShift(piaget.Structure):
    name, axes, shares = "scale-and-shift", ORDERING.axes, True

    def draw(self, generator: torch.Generator, frame: Frame) -> Tensors:
        ones = torch.ones(frame.depth, *frame.shapes[-1], dtype=frame.dtype)
        return ORDERING.draw(generator, frame) | {"scale": ones, "shift": torch.zeros_like(ones)}

    def prepare(self, params: Tensors, visible: Tensor) -> Tensors:
        return params | ORDERING.prepare(params, visible)

    def weights(self, kind: Components, params: Tensors, depth: int, h: Tensor, visible: Tensor) -> Tensor:
        return ORDERING.weights(kind, params, depth, h, visible)

    def transform(self, params: Tensors, depth: int, mixture: Tensor) -> Tensor:
        return mixture * params["scale"][depth] + params["shift"][depth]
