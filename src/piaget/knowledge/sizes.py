"""How much a learner holds, in numbers."""

from __future__ import annotations

from typing import NamedTuple

from piaget.knowledge.state import State
from piaget.method.trees import leaves


class Sizes(NamedTuple):
    """Numbers in all that a learner holds: of all tasks, what learns and what is fixed. (The optimizer's own
    numbers are not counted: they serve learning alone.)

    >>> x, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    >>> learner = piaget.Learner(initial_tasks=1, initial_components=2, epochs=2, width=8, replay_size=5)
    >>> rows = learner.learn(piaget.Task.from_arrays("site 1", x, y))
    >>> learner.sizes()
    Sizes(components=144, structures=4, encoders=24, decoders=9, memory=46)
    >>> learner.sizes().parameters
    181
    """

    components: int
    structures: int
    encoders: int  # shared ones, too
    decoders: int
    memory: int  # what the adaptation keeps: stored samples, factors, ...

    @property
    def parameters(self) -> int:
        """All but the memory: what answers are computed from."""
        return self.components + self.structures + self.encoders + self.decoders


def sizes(state: State) -> Sizes:
    """Of all that is known now."""
    own = [record.params for record in state.records.values()]
    return Sizes(
        components=_count(state.components),
        structures=sum(_count(params.structure) for params in own),
        encoders=_count(state.shared.encoder) + sum(_count(params.encoder) for params in own),
        decoders=_count(state.shared.decoder) + sum(_count(params.decoder) for params in own),
        memory=_count(state.memory),
    )


def _count(tree: object) -> int:
    return sum(tensor.numel() for tensor in leaves(tree))
