"""A-GEM (Chaudhry et al., 2019): a gradient that would raise the loss of stored samples is projected."""

from dataclasses import dataclass

import torch

import piaget
from piaget import Correction, Finished, Memory, StepContext, Stored


@dataclass(frozen=True)
class AGEM(piaget.Adaptation):
    size: int | None = None  # samples kept of each task; None: a batch, as experience replay does
    references: int = 32  # stored samples drawn beside each batch
    name = "my-a-gem"
    counts = ("projected",)

    def remember(self, memory: Memory, finished: Finished) -> Memory:
        return finished.store(memory, finished.sample(self.size or finished.batch))

    def replay(self, memory: Memory) -> list[Stored]:
        return piaget.stored_samples(memory)

    def correct(self, context: StepContext) -> Correction:
        gradient, reference = context.gradient, context.reference
        assert reference is not None
        dot = torch.stack([(g * reference[n]).sum() for n, g in gradient.items()]).sum()
        size = torch.stack([r.square().sum() for r in reference.values()]).sum()
        excess = (dot / size.clamp(min=1e-12)).clamp(max=0)
        return Correction({n: g - excess * reference[n] for n, g in gradient.items()}, {"projected": dot < 0})
