"""DER++ (Buzzega et al., 2020): stored samples keep the outputs that they had, and stay near them."""

from dataclasses import dataclass

import torch
from torch import Tensor

import piaget
from piaget import Finished, Memory, Replayed, Stored


@dataclass(frozen=True)
class DERPlusPlus(piaget.Adaptation):
    alpha: float = 0.5  # how much outputs are held; 0: plain replay, weighed by beta
    beta: float = 1.0
    size: int | None = None  # samples kept of each task; None: a batch, as experience replay does
    name = "my-der++"
    output_fields = ("logits",)

    def remember(self, memory: Memory, finished: Finished) -> Memory:
        rows = finished.sample(self.size or finished.batch)
        return finished.store(memory, rows, logits=finished.outputs(rows))

    def replay(self, memory: Memory) -> list[Stored]:
        return piaget.stored_samples(memory)

    def losses(self, losses: Tensor, outputs: Tensor, replayed: Replayed) -> Tensor:
        drift = (outputs - replayed.fields["logits"]).square().sum(1)
        return torch.where(replayed.past, self.beta * losses + self.alpha * drift, losses)
