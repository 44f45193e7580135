"""An adaptation of one's own: components are pulled back to where they were after the last task
(L2 regularization), by a term that joins their gradient."""

from dataclasses import dataclass

import torch

import piaget
from piaget.method.adaptation import Finished
from piaget.method.trees import Tree, map_tree, resize


@dataclass(frozen=True)
class PullBack(piaget.Adaptation):
    strength: float = 0.1
    name = "pull-back"

    def constants(self, memory: Tree, k: int) -> Tree:
        """What the step needs, for k component slots (new ones have no past)."""
        return map_tree(lambda t: resize(t, 0, k), memory)

    def correct(self, constants: Tree, components: Tree, gradient: Tree) -> Tree:
        if not constants:
            return gradient
        return map_tree(
            lambda g, now, then: g + self.strength * (now - then), gradient, components, constants
        )

    def remember(self, memory: Tree, finished: Finished) -> Tree:
        return map_tree(torch.clone, finished.params["components"])


def main(epochs: int = 30) -> piaget.Learner:
    learner = piaget.Learner(adaptation=PullBack(), algorithm="compositional", epochs=epochs)
    stream = piaget.stream("objects", seed=0)[:6]
    for task in stream:
        learner.learn(task)
    for row in learner.evaluate(stream):
        if row["metric"] == "accuracy":
            print(f"{row['evaluated']}: {row['value']:.0%}")
    return learner


if __name__ == "__main__":
    main()
