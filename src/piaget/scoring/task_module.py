"""A task's network as a plain `nn.Module`: to be exported, served, or looked at without a learner."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from piaget.method import objective
from piaget.method.components import Module
from piaget.method.model import Model
from piaget.method.parameters import Params, SharedParams, TaskParams
from piaget.method.trees import Tensors
from piaget.scoring.scores import TaskNetwork


class TaskModule(nn.Module):
    """From a task's inputs (n, *shape), as users have them, to class probabilities (n, classes), or to values
    (n,) in the target's units.

    Scaling is inside, dropout is not. Parameters are copies: what is done to them does not touch the learner.
    """

    def __init__(self, network: TaskNetwork) -> None:
        super().__init__()
        record, state = network.record, network.state
        self.model, self.dtype = _exportable(network.settings.model), network.settings.torch_dtype
        self.kind, self.outputs, self.scaling = record.kind, record.outputs, record.scaling
        self.temperature = record.temperature
        params = state.params(record, self.model)
        self.components = _parameters(params.components)
        self.encoder = _parameters(params.encoder)
        self.structure = _parameters(params.task.structure)
        self.decoder = _parameters(params.decoder)
        self.visible: Tensor
        self.register_buffer("visible", record.visible(state.k).to(network.settings.device))

    def forward(self, x: Tensor) -> Tensor:
        own = TaskParams(dict(self.encoder), dict(self.structure), dict(self.decoder))
        params = Params(dict(self.components), own, SharedParams({}, {}))
        h = self.model.encode(params.encoder, self.scaling.inputs(x, self.visible.device, self.dtype))
        out = self.model.forward(params, h, [None] * self.model.depth, self.visible)[:, : self.outputs]
        if self.kind == "regression":
            return self.scaling.values(out[:, 0])
        return objective.probabilities(self.kind, out / self.temperature)


class _OneByOne(Module):
    """Components that are modules, called one after the other: an export sees through no vmap of them."""

    def apply(self, params: Tensors, h: Tensor) -> Tensor:
        count = len(next(iter(params.values())))
        singles = ({name: p[i] for name, p in params.items()} for i in range(count))
        return torch.stack([self.call(own, h) for own in singles], 1)


def _exportable(model: Model) -> Model:
    kind = model.components
    if not isinstance(kind, Module):
        return model
    return replace(model, components=_OneByOne(kind.factory, kind.shape, kind.dropout))


def _parameters(tensors: Tensors) -> nn.ParameterDict:
    return nn.ParameterDict({name: nn.Parameter(tensor.detach().clone()) for name, tensor in tensors.items()})
