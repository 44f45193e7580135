"""Runs the naive implementation on what a library run drew, step by step.

While the library learns, its draws are recorded: initial parameters, batches, dropout masks,
replay samples, labels for the Fisher information. The naive learner is then given the same and
must end with the same parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

import piaget
from benchmarks import naive
from piaget.engine.noise import unpack
from piaget.engine.stage import Stage
from piaget.method.trees import map_tree
from piaget.recording import observed_by

if TYPE_CHECKING:
    from tests.small import Complete


@dataclass
class Recording:
    """What one run drew, in order."""

    begun: list[dict[str, Any]] = field(default_factory=list)
    epochs: list[dict[str, Any]] = field(default_factory=list)
    samples: list[Tensor] = field(default_factory=list)
    labels: list[Tensor] = field(default_factory=list)


def record(monkeypatch, learner: piaget.Learner, tasks: Sequence[Complete]) -> Recording:
    recording = Recording()

    def observe(event, value, **about):
        if event == "plan":
            stage = about["stage"]
            blocks = list(value.noise or [])
            recording.epochs.append(
                {
                    "name": stage.kind.name,
                    "tasks": [data.record.name for data in stage.data],
                    "part": about["part"],
                    "plan": value,
                    "noise": [bits for block in blocks for bits in block],
                    "passes": stage.passes,
                }
            )
            return replace(value, noise=iter(blocks) if value.noise is not None else None)
        if event == "begin":
            recording.begun.append(
                {
                    "epoch": len(recording.epochs),
                    "components": map_tree(torch.clone, value.components),
                    "params": {n: map_tree(torch.clone, r.params) for n, r in value.records.items()},
                }
            )
        if event in ("sample", "labels"):
            getattr(recording, f"{event.rstrip('s')}s").append(value)
        return value

    monkeypatch.setattr(Stage, "epochs_alike", False)  # else only the first one is planned
    with observed_by(observe):
        for task in tasks:
            learner.learn(task)
    return recording


class Replayed:
    """The naive learner on a recording."""

    def __init__(self, learner: piaget.Learner, tasks: Sequence[Complete], recording: Recording):
        self.settings, self.recording = learner.settings, recording
        self.tasks = {task.name: task for task in tasks}
        self.order = list(self.tasks)
        self.net = make_net(self.settings)
        self.learner = naive.Learner(self.net, self.settings.learning_rate)
        self.replay = isinstance(self.settings.adaptation, piaget.Replay)
        self.learner.diluted = self.settings.adaptation.name == "er-diluted"
        self.ewc = self.settings.adaptation.name == "ewc"
        self.learner.strength = getattr(self.settings.adaptation, "strength", 0.0)
        self.buffers: dict[int, tuple[Tensor, Tensor]] = {}
        self._finished = 0

    def run(self) -> naive.Net:
        begun = self.recording.begun
        for i, start in enumerate(begun):
            names = self.order[: self.settings.initial_tasks] if i == 0 else [self._next()]
            for name in names:
                self._meet(name, start)
            new = self._new_components(start)
            end = begun[i + 1]["epoch"] if i + 1 < len(begun) else len(self.recording.epochs)
            self._train(self.recording.epochs[start["epoch"] : end])
            if i > 0 and new:
                self._decide(self.order.index(names[0]))
            for name in names:
                self._finish(self.order.index(name))
        return self.net

    def _next(self) -> str:
        return self.order[len(self.learner.kinds)]

    def _meet(self, name: str, start: dict[str, Any]) -> None:
        task, params = self.tasks[name], start["params"][name]
        self.learner.kinds.append(task.kind)
        self.net.encoders.append(affine(params.encoder) if params.encoder else nn.Identity())
        self.net.structures.append(make_structure(self.settings, params.structure))
        self.net.decoders.append(affine(params.decoder) if params.decoder else nn.Identity())
        number = len(self.learner.kinds) - 1
        self.learner.watch(p for module in self.learner.own(number) for p in module.parameters())

    def _new_components(self, start: dict[str, Any]) -> bool:
        drawn = len(start["components"]["weight"])
        new = drawn > len(self.net.components)
        for i in range(len(self.net.components), drawn):
            module = make_component(self.settings, map_tree(lambda p, i=i: p[i], start["components"]))
            self.net.components.append(module)
            self.learner.watch(module.parameters())
        return new

    def _train(self, epochs: list[dict[str, Any]]) -> None:
        """Epochs in order; in initialization, the parts of one epoch take turns."""
        while epochs:
            first = epochs[0]
            names = first["tasks"]
            together, epochs = epochs[: len(names)], epochs[len(names) :]
            queues = [self._batches(e, i) for i, e in enumerate(together)]
            turns = [queue[b] for b in range(max(map(len, queues))) for queue in queues if b < len(queue)]
            current = self.order.index(names[-1])
            parts = self.learner.own(current)
            past = [m for task in range(current) for m in self.learner.own(task)]
            whole = isinstance(schedule := self.settings.algorithm.schedule, piaget.Joint) and schedule.past
            learned: dict[str, list[nn.Module]] = {
                "initialization": [self.net.components],
                "assimilation": parts + ([self.net.components[-1]] if len(first["passes"]) > 1 else []),
                "adaptation": [self.net.components],
                "joint": [self.net.components, *parts, *(past if whole else [])],
            }
            modules = learned[first["name"]]
            if first["name"] == "initialization" and not self.settings.structure.fixed_initially:
                modules = modules + [m for n in names for m in self.learner.own(self.order.index(n))]
            penalty = self.ewc and first["name"] in ("adaptation", "joint")
            self.learner.run(turns, modules, first["passes"], penalty)

    def _batches(self, epoch: dict[str, Any], which: int) -> list[list[Any]]:
        plan, part, passes = epoch["plan"], epoch["part"], epoch["passes"]
        name = epoch["tasks"][which]
        number, task = self.order.index(name), self.tasks[name]
        rows = [(number, task.train.x[i], task.train.y[i]) for i in range(len(task.train))]
        if part.banks[0].task is not None:
            for old in sorted(self.buffers):
                x, y = self.buffers[old]
                rows += [(old, x[i], y[i]) for i in range(len(x))]
        batches = []
        for s in range(len(plan.index)):
            used = plan.index[s][plan.weight[s]].tolist()
            versions = []
            for p in range(len(passes)):
                masks = self._masks(part, epoch["noise"] and epoch["noise"][s * len(passes) + p], len(used))
                versions.append(group(rows, used, masks))
            batches.append(versions)
        return batches

    def _masks(self, part, noise: Tensor, count: int) -> list[Tensor] | None:
        dropout = self.settings.components.dropout
        if dropout == 0:
            return None
        keep = unpack(noise, part.loss.shapes[1:], self.settings.components, torch.float64)
        if part.fixed.chosen is not None:  # only they are computed: what others drop makes no difference
            slots = part.fixed.chosen.shape[1]
            keep = [k.expand(-1, slots, *k.shape[2:]) for k in keep]
        return [k[:count] for k in keep]  # per depth (B, slots, ...)

    def _decide(self, task: int) -> None:
        split = self.tasks[self.order[task]].validation
        kind = self.learner.kinds[task]
        scores = []
        self.net.eval()
        for hidden in (False, True):
            self.net.hidden = hidden
            with torch.no_grad():
                out = self.net(split.x, task)
            right = (out[:, 0] > 0).long() if kind == "binary" else out.argmax(1)
            scores.append(
                -float((out[:, 0] - split.y).square().mean().sqrt())
                if kind == "regression"
                else float((right == split.y).double().mean())
            )
        self.net.hidden = False
        self.net.train()
        with_it, without = scores
        expansion = self.settings.algorithm.expansion
        assert isinstance(expansion, piaget.ComponentDropout)
        if without != 0 and (with_it - without) / abs(without) < expansion.threshold:
            self.net.components = self.net.components[:-1]
            trim_structure(self.net.structures[task], len(self.net.components))

    def _finish(self, task: int) -> None:
        data = self.tasks[self.order[task]].train
        if self.replay or self.ewc:
            rows = self.recording.samples[self._finished]
            if self.ewc:
                labels = self.recording.labels[self._finished]
                self.learner.remember_curvature(task, data.x[rows], labels)
            else:
                self.buffers[task] = (data.x[rows], data.y[rows])
        self._finished += 1


def group(rows, used, masks):
    """Rows of a batch by task: [(task, x, y, masks)]."""
    batch = []
    for task in sorted({rows[r][0] for r in used}):
        at = [i for i, r in enumerate(used) if rows[r][0] == task]
        x = torch.stack([rows[used[i]][1] for i in at])
        y = torch.stack([rows[used[i]][2] for i in at])
        own = None
        if masks is not None:
            own = [[keep[at, i] for i in range(keep.shape[1])] for keep in masks]
        batch.append((task, x, y, own))
    return batch


# --- modules from the library's tensors ---------------------------------------------------------------


def make_net(settings) -> naive.Net:
    conv = isinstance(settings.components, piaget.Conv)
    kinds = {
        ("soft-ordering", False): naive.SoftOrderingNet,
        ("soft-ordering", True): naive.ConvSoftOrderingNet,
        ("soft-gating", False): naive.SoftGatingNet,
        ("soft-gating", True): naive.ConvSoftGatingNet,
        ("monolithic", False): naive.MonolithicNet,
        ("alone", False): naive.AloneNet,
        ("linear", False): naive.LinearNet,
    }
    kind = kinds[settings.structure.name, conv]
    if settings.components.whole_model:
        whole = {"monolithic": naive.LinearMonolithicNet, "alone": naive.LinearAloneNet}
        kind = whole.get(settings.structure.name, kind)
    net = kind(settings.depth, settings.components.dropout).double()
    if conv:
        net.channels = settings.components.channels
    return net


def affine(params) -> nn.Module:
    """The library keeps encoders and decoders as (inputs, outputs)."""
    layer = nn.Linear(*params["weight"].shape).double()
    with torch.no_grad():
        layer.weight.copy_(params["weight"].T)
        layer.bias.copy_(params["bias"])
    return nn.Sequential(nn.Flatten(), layer)


def linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0]).double()
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    return layer


def conv(settings, weight: Tensor, bias: Tensor) -> nn.Conv2d:
    layer = nn.Conv2d(weight.shape[1], weight.shape[0], 3, padding=settings.components.padding).double()
    with torch.no_grad():
        layer.weight.copy_(weight)
        assert layer.bias is not None
        layer.bias.copy_(bias)
    return layer


def make_component(settings, params) -> nn.Module:
    if isinstance(settings.components, piaget.Conv):
        return conv(settings, params["weight"], params["bias"])
    return linear(params["weight"], params["bias"])


class Gates(nn.Module):
    def __init__(self, layers, heads):
        super().__init__()
        self.layers, self.heads = nn.ModuleList(layers), nn.ModuleList(heads)


def make_structure(settings, own) -> nn.Module:
    name = settings.structure.name
    if name == "soft-ordering":
        return naive.Logits(own["logits"].clone())
    if name == "linear":
        return naive.Logits(own["psi"].clone())
    if name == "soft-gating":
        heads = [linear(w, b) for w, b in zip(own["weight"], own["bias"], strict=True)]
        if "layers/weight" not in own:
            return nn.ModuleList(heads)
        layers = zip(own["layers/weight"], own["layers/bias"], strict=True)
        return Gates([conv(settings, w, b) for w, b in layers], heads)
    if name == "alone":
        depth = len(next(iter(own.values())))
        return nn.ModuleList(
            make_component(settings, {n: p[i] for n, p in own.items()}) for i in range(depth)
        )
    return nn.Identity()


def trim_structure(structure: Any, k: int) -> None:
    if isinstance(structure, naive.Logits):
        structure.logits = nn.Parameter(structure.logits.detach()[:k])
        return
    heads: Any = structure.heads if isinstance(structure, Gates) else structure
    for head in heads:
        head.weight = nn.Parameter(head.weight.detach()[:k])
        head.bias = nn.Parameter(head.bias.detach()[:k])
        head.out_features = k
