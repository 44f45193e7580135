"""Adaptations: how components take in what a task taught, and what is stored for that.

Three hooks at most: which stored samples an adaptation epoch sees beside the task's own
(`replay`), what joins the gradient (`correct`), and what is stored when a task ends (`remember`).
Memory is a tree of tensors, so it can be saved, and stacked for a cohort.
"""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from piaget.data.tasks import Kind
from piaget.errors import SettingError
from piaget.method.curvature import as_matrices, from_matrices, nearest_kronecker, sample_gradients
from piaget.method.model import Model
from piaget.method.trees import Tree, map_tree, resize, rounded


@dataclass(frozen=True, eq=False)
class Finished:
    """A task that has just been learned, as an adaptation sees it."""

    index: int
    kind: Kind
    classes: int
    x: Tensor
    y: Tensor
    model: Model
    params: Tree  # groups components, own, io
    visible: Tensor
    batch: int
    generator: torch.Generator

    def sample(self, count: int) -> Tensor:
        """Row numbers of `count` training samples (or all), drawn uniformly."""
        order = torch.randperm(len(self.x), generator=self.generator)
        return order[:count].to(self.x.device)


class Adaptation(ABC):
    name: str
    trains_components: bool = True

    def replay(self, memory: Tree) -> list[Tree]:
        """Stored samples, one tree {task, h, y} a past task; h is what enters depth 0."""
        return []

    def constants(self, memory: Tree, k: int) -> Tree:
        """What `correct` needs of the memory, for k component slots."""
        return {}

    def correct(self, constants: Tree, components: Tree, gradient: Tree) -> Tree:
        """The gradient of the components, with what guards past tasks. Pure, one run's."""
        return gradient

    def remember(self, memory: Tree, finished: Finished) -> Tree:
        """The memory after a task."""
        return memory


@dataclass(frozen=True)
class NaiveFineTuning(Adaptation):
    """Components learn from the current task alone."""

    name = "nft"


@dataclass(frozen=True)
class Frozen(Adaptation):
    """Components never change after initialization."""

    name = "fm"
    trains_components = False


@dataclass(frozen=True)
class Replay(Adaptation):
    """Experience replay: `size` training samples of each task are kept (None: one batch)."""

    size: int | None = None
    name = "er"

    def __post_init__(self) -> None:
        if self.size is not None and self.size < 1:
            raise SettingError(f"replay size {self.size}; expected 1 or more")

    def replay(self, memory: Tree) -> list[Tree]:
        return sorted(memory.values(), key=lambda stored: int(stored["task"]))

    def remember(self, memory: Tree, finished: Finished) -> Tree:
        rows = finished.sample(finished.batch if self.size is None else self.size)
        model, x = finished.model, finished.x[rows]
        # A finished task's own encoder never changes: its samples are stored encoded. A shared
        # encoder goes on learning, so it needs the raw inputs.
        encoder = finished.params["own"]["encoder"]
        h = x if model.encoder == "shared" else model.encode(encoder, x)
        stored = {"task": torch.tensor(finished.index), "h": h, "y": finished.y[rows]}
        return memory | {str(finished.index): stored}


@dataclass(frozen=True)
class KroneckerEWC(Adaptation):
    """Elastic weight consolidation with Kronecker factors from one mini-batch of each task.

    The penalty lambda/2 sum_t |Phi - Phi_t|^2_{F_t} has the gradient
    lambda (sum_t L_t Phi R_t - anchor) with anchor = sum_t L_t Phi_t R_t.
    """

    strength: float = 1e-3
    name = "ewc"

    def __post_init__(self) -> None:
        if self.strength < 0:
            raise SettingError(f"EWC strength {self.strength}; expected 0 or more")

    def constants(self, memory: Tree, k: int) -> Tree:
        """The factors of all tasks side by side: left (k, o, T o), right (k, i, T i).

        For a few tasks more than there are: factors of zero, so that few different forms occur.
        """
        memory = self._for_components(memory, k)

        def beside(factors: Tensor) -> Tensor:  # (T, k, a, b) -> (k, a, T b)
            return resize(factors, 0, rounded(len(factors), 4)).permute(1, 2, 0, 3).flatten(2)

        return {part: tree if part == "anchor" else map_tree(beside, tree) for part, tree in memory.items()}

    def _for_components(self, memory: Tree, k: int) -> Tree:
        axis = {"left": 1, "right": 1, "anchor": 0}
        return {
            part: map_tree(lambda t, a=axis[part]: resize(t, a, k), tree) for part, tree in memory.items()
        }

    def correct(self, constants: Tree, components: Tree, gradient: Tree) -> Tree:
        if not constants:
            return gradient
        corrected = {}
        matrices = as_matrices(components)
        for name, g in as_matrices(gradient).items():
            # sum_t L_t Phi R_t by two large products for each component, however many tasks there are.
            left, right, phi = constants["left"][name], constants["right"][name], matrices[name]
            towards = (phi @ right).unflatten(2, (-1, phi.shape[2]))  # (k, o, T, i)
            pull = left @ towards.transpose(1, 2).flatten(1, 2)  # (k, o, T o) (k, T o, i)
            corrected[name] = g + self.strength * (pull - constants["anchor"][name])
        return from_matrices(corrected, gradient)

    def remember(self, memory: Tree, finished: Finished) -> Tree:
        rows = finished.sample(finished.batch)
        gradients = sample_gradients(
            finished.model,
            finished.params,
            finished.visible,
            finished.kind,
            finished.classes,
            finished.x[rows],
            finished.generator,
        )
        k = len(finished.visible)
        memory = self._for_components(memory, k)
        matrices = as_matrices(finished.params["components"])
        new: Tree = {"left": {}, "right": {}, "anchor": {}}
        for name, g in as_matrices(gradients, lead=2).items():
            left, right = nearest_kronecker(g)
            pull = left @ matrices[name] @ right
            if memory:
                new["left"][name] = torch.cat([memory["left"][name], left[None]])
                new["right"][name] = torch.cat([memory["right"][name], right[None]])
                new["anchor"][name] = memory["anchor"][name] + pull
            else:
                new["left"][name], new["right"][name] = left[None], right[None]
                new["anchor"][name] = pull
        return new


ADAPTATIONS: dict[str, Any] = {a.name: a for a in (NaiveFineTuning, Replay, KroneckerEWC, Frozen)}


def named_adaptation(name: str) -> Adaptation:
    if name not in ADAPTATIONS:
        raise SettingError(f"adaptation={name!r}; expected one of {', '.join(ADAPTATIONS)}, or an object")
    return ADAPTATIONS[name]()
