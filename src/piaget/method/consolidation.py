"""Adaptations that hold components near values that served earlier tasks: elastic weight consolidation."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from piaget.method.adaptation import Adaptation, Correction, Finished, Join, Memory, StepContext
from piaget.method.curvature import (
    as_matrices,
    from_matrices,
    nearest_kronecker,
    nearest_to_sum,
    sample_gradients,
)
from piaget.method.trees import Tensors, map_tree, resize, rounded
from piaget.method.values import NOT_NEGATIVE, check_fields


@dataclass(frozen=True)
class KroneckerEWC(Adaptation):
    """Elastic weight consolidation with Kronecker factors from one mini-batch of each task.

    The penalty lambda/2 sum_t |Phi - Phi_t|^2_{F_t} has the gradient
    lambda (sum_t L_t Phi R_t - anchor) with anchor = sum_t L_t Phi_t R_t.

    Raises `SettingError` if `strength` is negative.

    >>> piaget.KroneckerEWC(strength=0.01).corrects
    True
    """

    strength: float = 1e-3
    name = "ewc"

    def __post_init__(self) -> None:
        check_fields(self, strength=NOT_NEGATIVE)

    def constants(self, memory: Memory, k: int) -> Memory:
        """The factors of all tasks side by side: left (k, o, T o), right (k, i, T i).

        For a few tasks more than there are: factors of zero, so that few different forms occur.
        """
        memory = _summed(self._for_components(memory, k))

        def beside(factors: Tensor) -> Tensor:  # (T, k, a, b) -> (k, a, T b)
            return resize(factors, 0, rounded(len(factors), 4)).permute(1, 2, 0, 3).flatten(2)

        return {part: tree if part == "anchor" else map_tree(beside, tree) for part, tree in memory.items()}

    def _for_components(self, memory: Memory, k: int) -> Memory:
        axis = {"left": 1, "right": 1, "anchor": 0}
        return {
            part: {name: resize(tensor, axis[part], k) for name, tensor in tensors.items()}
            for part, tensors in memory.items()
        }

    def correct(self, context: StepContext) -> Correction:
        constants, gradient = context.memory, context.gradient
        if not constants:
            return Correction(gradient)
        corrected = {}
        matrices = as_matrices(context.components)
        for name, g in as_matrices(gradient).items():
            # sum_t L_t Phi R_t by two large products for each component, however many tasks there are.
            left, right, phi = constants["left"][name], constants["right"][name], matrices[name]
            towards = (phi @ right).unflatten(2, (-1, phi.shape[2]))  # (k, o, T, i)
            pull = left @ towards.transpose(1, 2).flatten(1, 2)  # (k, o, T o) (k, T o, i)
            corrected[name] = g + self.strength * (pull - constants["anchor"][name])
        return Correction(from_matrices(corrected, gradient))

    def merged(self, one: Memory, other: Memory, join: Join) -> Memory:
        axis = {"left": 1, "right": 1, "anchor": 0}

        def placed(part: str, tensor: Tensor) -> Tensor:
            known = join.places[: tensor.shape[axis[part]]]  # a component may have come since
            shape = list(tensor.shape)
            shape[axis[part]] = join.components
            return tensor.new_zeros(shape).index_copy_(axis[part], known.to(tensor.device), tensor)

        moved = {part: {n: placed(part, t) for n, t in tensors.items()} for part, tensors in other.items()}
        one = self._for_components(one, join.components)
        if not one or not moved:
            return one or moved
        return {
            part: {
                name: tensor + moved[part][name]
                if part == "anchor"
                else torch.cat([tensor, moved[part][name]])
                for name, tensor in tensors.items()
            }
            for part, tensors in one.items()
        }

    def remember(self, memory: Memory, finished: Finished) -> Memory:
        memory = self._for_components(memory, len(finished.visible))
        matrices = as_matrices(finished.params.components)
        new: Memory = {"left": {}, "right": {}, "anchor": {}}
        for name, (left, right) in measured(finished).items():
            pull = left @ matrices[name] @ right
            if memory:
                new["left"][name] = torch.cat([memory["left"][name], left[None]])
                new["right"][name] = torch.cat([memory["right"][name], right[None]])
                new["anchor"][name] = memory["anchor"][name] + pull
            else:
                new["left"][name], new["right"][name] = left[None], right[None]
                new["anchor"][name] = pull
        return new

    def recognizes(self, memory: Memory, tasks: int, components: Tensors) -> bool:
        if type(self).remember is not KroneckerEWC.remember:
            return True
        # A task that was learned further has several terms; that of one that was forgotten stays.
        terms = len(next(iter(memory["left"].values()))) if memory.get("left") else 0
        return terms >= tasks and holds(memory, terms, components, (terms,))

    def forgotten(self, memory: Memory, place: int) -> Memory:
        return memory  # it has no sample in it, and says what components must keep


def _summed(memory: Memory) -> Memory:
    """Of components with a single output, L_t is a number: sum_t L_t Phi R_t is Phi (sum_t L_t R_t), a single
    product, however many tasks there are."""
    if not memory:
        return memory
    left, right = dict(memory["left"]), dict(memory["right"])
    for name, factors in memory["left"].items():  # (T, k, o, o)
        if factors.shape[-1] == 1:
            right[name] = (factors * right[name]).sum(0, keepdim=True)
            left[name] = torch.ones_like(factors[:1])
    return memory | {"left": left, "right": right}


@dataclass(frozen=True)
class MergedEWC(Adaptation):
    """Elastic weight consolidation with one Kronecker product for all tasks, so that neither memory nor time
    grow with their number.

    After each task, the sum of the product so far and the new task's is replaced by the Kronecker product
    L (x) R that is nearest to it. The penalty is lambda/2 |Phi - Phi*|^2 in that metric, about the components
    Phi* as the last task left them (online EWC), with the gradient lambda L (Phi - Phi*) R. A sum of pulls
    towards each task's own Phi_t, as `KroneckerEWC` keeps it, would have its minimum elsewhere, since the sum
    of the products is not exact.

    Raises `SettingError` if `strength` is negative.

    >>> x, y = np.arange(120.0).reshape(60, 2), np.arange(60) % 2
    >>> tasks = piaget.streams.from_arrays(x, y, groups=np.repeat(["north", "south", "west"], 20))
    >>> learner = piaget.Learner(adaptation=piaget.MergedEWC(0.01), initial_tasks=1, epochs=2, width=8)
    >>> for task in tasks:
    ...     rows = learner.learn(task)
    ...     print(learner.sizes().memory)
    868
    868
    868
    """

    strength: float = 1e-3
    name = "ewc-merged"

    def __post_init__(self) -> None:
        check_fields(self, strength=NOT_NEGATIVE)

    def constants(self, memory: Memory, k: int) -> Memory:
        return {part: map_tree(lambda t: resize(t, 0, k), tensors) for part, tensors in memory.items()}

    def correct(self, context: StepContext) -> Correction:
        kept, gradient = context.memory, context.gradient
        if not kept:
            return Correction(gradient)
        phi, corrected = as_matrices(context.components), {}
        for name, g in as_matrices(gradient).items():
            pull = kept["left"][name] @ (phi[name] - kept["anchor"][name]) @ kept["right"][name]
            corrected[name] = g + self.strength * pull
        return Correction(from_matrices(corrected, gradient))

    def remember(self, memory: Memory, finished: Finished) -> Memory:
        memory = self.constants(memory, len(finished.visible))
        factors = measured(finished)
        if memory:
            old = {name: (memory["left"][name], memory["right"][name]) for name in factors}
            factors = {name: nearest_to_sum(old[name], new) for name, new in factors.items()}
        return {
            "left": {name: left for name, (left, _) in factors.items()},
            "right": {name: right for name, (_, right) in factors.items()},
            "anchor": map_tree(torch.clone, as_matrices(finished.params.components)),
        }

    def recognizes(self, memory: Memory, tasks: int, components: Tensors) -> bool:
        if type(self).remember is not MergedEWC.remember:
            return True
        return holds(memory, max(tasks, len(memory)), components, ())

    def forgotten(self, memory: Memory, place: int) -> Memory:
        return memory  # it has no sample in it, and says what components must keep


def measured(finished: Finished) -> dict[str, tuple[Tensor, Tensor]]:
    """The factors (k, o, o) and (k, i, i) of each of the components' matrices, from one mini-batch."""
    gradients = sample_gradients(
        finished.model,
        finished.params,
        finished.visible,
        finished.kind,
        finished.classes,
        finished.x[finished.sample(finished.batch)],
        finished.generator,
    )
    return {name: nearest_kronecker(g) for name, g in as_matrices(gradients, lead=2).items()}


def holds(memory: Memory, tasks: int, components: Tensors, lead: tuple[int, ...]) -> bool:
    """Is this what is kept after so many tasks? lead: the axes of factors before that of components."""
    if tasks == 0:
        return not memory
    if memory.keys() != {"left", "right", "anchor"}:
        return False
    matrices = as_matrices(components)
    k = min(len(stack) for stack in memory["anchor"].values())  # a component may have come since

    def shapes(part: str) -> dict[str, tuple[int, ...]]:
        return {name: tuple(t.shape) for name, t in memory[part].items()}

    sizes = {name: tuple(matrix.shape) for name, matrix in matrices.items()}  # (k, o, i)
    return (
        k <= len(next(iter(matrices.values())))
        and shapes("left") == {name: (*lead, k, o, o) for name, (_, o, i) in sizes.items()}
        and shapes("right") == {name: (*lead, k, i, i) for name, (_, o, i) in sizes.items()}
        and shapes("anchor") == {name: (k, o, i) for name, (_, o, i) in sizes.items()}
        and {t.dtype for tensors in memory.values() for t in tensors.values()}
        == {t.dtype for t in matrices.values()}
    )
