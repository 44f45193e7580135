"""An adaptation of one's own: components are pulled back to where they were after the last task
(L2 regularization), by a term that joins their gradient."""

from dataclasses import dataclass

import torch

import piaget
from piaget import Correction, Finished, Memory, StepContext, map_tree, resize


@dataclass(frozen=True)
class PullBack(piaget.Adaptation):
    strength: float = 0.1
    name = "pull-back"

    def remember(self, memory: Memory, finished: Finished) -> Memory:
        return {"then": map_tree(torch.clone, finished.params.components)}

    def constants(self, memory: Memory, k: int) -> Memory:
        """What the step needs, for k component slots (new ones have no past)."""
        return map_tree(lambda t: resize(t, 0, k), memory)

    def correct(self, context: StepContext) -> Correction:
        now, then = context.components, context.memory["then"]
        pull = {name: self.strength * (now[name] - then[name]) for name in now}
        return Correction({name: g + pull[name] for name, g in context.gradient.items()})


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
