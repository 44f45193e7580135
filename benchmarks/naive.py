"""The paper's algorithms written the plainest way: the yardstick of correctness and of speed.

One module per component, Python loops over components, depths and tasks, torch.optim.Adam over
all parameters, requires_grad to freeze. Independent of the library: nothing of it is imported.
Initial parameters, batches and dropout masks can be handed in, so that the library can be held
against it number by number; without them, it draws its own as PyTorch users do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# A mask is the dropout multiplier of one component's output at one depth: masks[depth][component].
Masks = list[list[Tensor]]


class Net(nn.Module):
    """Components, and per task an encoder, a structure and a decoder, added as tasks arrive."""

    def __init__(self, depth: int, dropout: float):
        super().__init__()
        self.depth, self.dropout = depth, dropout
        self.components = nn.ModuleList()
        self.encoders, self.decoders = nn.ModuleList(), nn.ModuleList()
        self.structures = nn.ModuleList()
        self.hidden = False  # is the newest component hidden?

    def visible(self, task: int) -> int:
        """How many components the task uses now."""
        k = self.count(task)
        return k - 1 if self.hidden and k == len(self.components) else k

    def count(self, task: int) -> int:
        raise NotImplementedError

    def weights(self, task: int, depth: int, h: Tensor) -> Tensor:
        """(n, k) or (k,) weights of the visible components."""
        raise NotImplementedError

    def component(self, i: int, h: Tensor) -> Tensor:
        return F.relu(self.components[i](h))

    def drop(self, out: Tensor, masks: Masks | None, depth: int, i: int) -> Tensor:
        if masks is not None:
            return out * masks[depth][i]
        return F.dropout(out, self.dropout, self.training)

    def forward(self, x: Tensor, task: int, masks: Masks | None = None) -> Tensor:
        h = self.encoders[task](x)
        for depth in range(self.depth):
            w = self.weights(task, depth, h)
            mixed = torch.zeros(())
            for i in range(self.visible(task)):
                out = self.drop(self.component(i, h), masks, depth, i)
                weight = w[i] if w.ndim == 1 else w[:, i].view(-1, *(1,) * (out.ndim - 1))
                mixed = mixed + weight * out
            h = mixed
        return self.decoders[task](h.flatten(1))


class SoftOrderingNet(Net):
    def count(self, task):
        return len(self.structures[task].logits)

    def weights(self, task, depth, h):
        return F.softmax(self.structures[task].logits[: self.visible(task), depth], 0)


class Logits(nn.Module):
    def __init__(self, logits: Tensor):
        super().__init__()
        self.logits = nn.Parameter(logits)


class SoftGatingNet(Net):
    """structures[task] is a list of `depth` gates; a gate maps the depth's input to k logits."""

    def count(self, task):
        gate = self.structures[task][0]
        head = gate[-1] if isinstance(gate, nn.Sequential) else gate
        return head.out_features

    def weights(self, task, depth, h):
        return F.softmax(self.structures[task][depth](h)[:, : self.visible(task)], 1)


class MonolithicNet(Net):
    def forward(self, x, task, masks=None):
        h = self.encoders[task](x)
        for depth in range(self.depth):
            h = self.drop(self.component(depth, h), masks, depth, 0)
        return self.decoders[task](h.flatten(1))


class AloneNet(Net):
    """structures[task] is the task's own list of layers."""

    def forward(self, x, task, masks=None):
        h = self.encoders[task](x)
        layers: Any = self.structures[task]
        for depth, layer in enumerate(layers):
            h = self.drop(F.relu(layer(h)), masks, depth, 0)
        return self.decoders[task](h.flatten(1))


class ConvMixin:
    """3x3 convolutions, 2x2 max-pooling, images padded with zero channels."""

    channels: int
    components: nn.ModuleList

    def component(self, i, h):
        h = F.pad(h, (0, 0, 0, 0, 0, self.channels - h.shape[1]))
        return F.relu(F.max_pool2d(self.components[i](h), 2))


class ConvSoftOrderingNet(ConvMixin, SoftOrderingNet):
    pass


class ConvSoftGatingNet(ConvMixin, SoftGatingNet):
    """structures[task].layers: a convolution per depth; .heads: a linear layer per depth."""

    def count(self, task):
        return self.structures[task].heads[0].out_features

    def weights(self, task, depth, h):
        for layer in range(depth, self.depth):
            h = F.pad(h, (0, 0, 0, 0, 0, self.channels - h.shape[1]))
            h = F.relu(F.max_pool2d(self.structures[task].layers[layer](h), 2))
        logits = self.structures[task].heads[depth](h.flatten(1))
        return F.softmax(logits[:, : self.visible(task)], 1)


class LinearNet(Net):
    """f(x) = psi^T Phi^T x; every component is a linear model with one output."""

    def forward(self, x, task, masks=None):
        out = torch.zeros(())
        for i in range(self.visible(task)):
            out = out + self.components[i](x) * self.structures[task].logits[i]
        return out

    def count(self, task):
        return len(self.structures[task].logits)


class LinearMonolithicNet(Net):
    def forward(self, x, task, masks=None):
        return self.components[0](x)


class LinearAloneNet(Net):
    def forward(self, x, task, masks=None):
        layers: Any = self.structures[task]
        return layers[0](x)


def loss_sum(out: Tensor, y: Tensor, kind: str) -> Tensor:
    if kind == "binary":
        return F.binary_cross_entropy_with_logits(out[:, 0], y.to(out.dtype), reduction="sum")
    if kind == "multiclass":
        return F.cross_entropy(out, y, reduction="sum")
    return F.mse_loss(out[:, 0], y, reduction="sum")


class Learner:
    """The stages of the paper. A batch is a list of (task, x, y, masks), one entry a task."""

    def __init__(self, net: Net, rate: float = 1e-3):
        self.net, self.rate = net, rate
        self.kinds: list[str] = []
        self.optimizer: torch.optim.Adam | None = None
        self.factors: list[list[tuple[Tensor, Tensor, Tensor]]] = []  # per task, per component
        self.strength = 0.0
        self.diluted = False  # is a batch's loss divided by the number of its tasks?

    def watch(self, parameters: Iterable[nn.Parameter]) -> None:
        """Adam learns of new parameters."""
        parameters = list(parameters)
        if not parameters:
            return
        if self.optimizer is None:
            self.optimizer = torch.optim.Adam(parameters, lr=self.rate)
        else:
            self.optimizer.add_param_group({"params": parameters})

    def train_only(self, modules: Iterable[nn.Module]) -> None:
        for p in self.net.parameters():
            p.requires_grad_(False)
        for module in modules:
            for p in module.parameters():
                p.requires_grad_(True)

    def own(self, task: int) -> list[nn.Module]:
        net = self.net
        return [net.encoders[task], net.structures[task], net.decoders[task]]

    def step(self, batch, penalty: bool = False) -> None:
        assert self.optimizer is not None
        self.optimizer.zero_grad(set_to_none=True)
        n = sum(len(x) for _, x, _, _ in batch) * (len(batch) if self.diluted else 1)
        loss: Any = sum(loss_sum(self.net(x, t, m), y, self.kinds[t]) for t, x, y, m in batch) / n
        if not loss.requires_grad:
            return
        loss.backward()
        if penalty:
            self.add_penalty()
        self.optimizer.step()

    def run(self, batches, modules, passes=(False,), penalty=False) -> None:
        """One epoch. Each batch comes as a list with one version (its masks) a pass."""
        self.train_only(modules)
        for versions in batches:
            for hide, batch in zip(passes, versions, strict=True):
                self.net.hidden = hide
                self.step(batch, penalty)
        self.net.hidden = False

    # --- by hand: examples/algorithm_1.py ------------------------------------------------------

    def meet(self, kind: str, encoder: nn.Module, structure: nn.Module, decoder: nn.Module) -> int:
        """A new task; returns its number."""
        self.kinds.append(kind)
        self.net.encoders.append(encoder)
        self.net.structures.append(structure)
        self.net.decoders.append(decoder)
        task = len(self.kinds) - 1
        self.watch(p for module in self.own(task) for p in module.parameters())
        return task

    def epoch(self, task: int, x: Tensor, y: Tensor, modules: Iterable[nn.Module], size: int = 32) -> None:
        """One pass over a task's data in which only these modules learn; all others are frozen."""
        rows = torch.randperm(len(x)).split(size)
        self.run([[[(task, x[r], y[r], None)]] for r in rows], list(modules))

    # --- elastic weight consolidation ---------------------------------------------------------

    def remember_curvature(self, task: int, x: Tensor, labels: Tensor) -> None:
        """Kronecker factors from per-sample gradients, one sample and component at a time."""
        self.train_only([self.net.components])
        was, self.net.training = self.net.training, False
        gradients: list[list[Tensor]] = [[] for _ in self.net.components]
        for n in range(len(x)):
            self.net.zero_grad(set_to_none=True)
            out = self.net(x[n : n + 1], task)
            if self.kinds[task] == "regression":
                (2**0.5 * out[0, 0]).backward()
            else:
                loss_sum(out, labels[n : n + 1], self.kinds[task]).backward()
            for i, component in enumerate(self.net.components):
                gradients[i].append(self.matrix(component, gradient=True))
        self.net.training = was
        self.net.zero_grad(set_to_none=True)
        factors = []
        for i, component in enumerate(self.net.components):
            left, right = kronecker_factors(gradients[i])
            factors.append((left, right, self.matrix(component).detach().clone()))
        self.factors.append(factors)

    @staticmethod
    def matrix(component: Any, gradient: bool = False) -> Tensor:
        weight, bias = component.weight, component.bias
        if gradient:
            weight = torch.zeros_like(weight) if weight.grad is None else weight.grad
            bias = torch.zeros_like(bias) if bias.grad is None else bias.grad
        return torch.cat([weight.reshape(len(weight), -1), bias[:, None]], 1).clone()

    def add_penalty(self) -> None:
        component: Any  # with weight and bias
        for factors in self.factors:
            for component, (left, right, then) in zip(self.net.components, factors, strict=False):
                if component.weight.grad is None:
                    continue  # hidden, or not in the graph
                pull = self.strength * left @ (self.matrix(component).detach() - then) @ right
                component.weight.grad += pull[:, :-1].reshape(component.weight.shape)
                component.bias.grad += pull[:, -1]


def kronecker_factors(gradients: list[Tensor], rounds: int = 200) -> tuple[Tensor, Tensor]:
    """L, R of the Kronecker product nearest to the mean of vec(G) vec(G)^T."""

    n = len(gradients)
    left: Any  # of sums, which begin with the number 0
    right: Any = torch.eye(gradients[0].shape[1], dtype=gradients[0].dtype)
    for _ in range(rounds):
        left = sum(g @ right @ g.T for g in gradients) / n / max(float((right**2).sum()), 1e-300)
        if float((left**2).sum()) == 0:
            return left, right * 0
        right = sum(g.T @ left @ g for g in gradients) / n / float((left**2).sum())
    return left, right
