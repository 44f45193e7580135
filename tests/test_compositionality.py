"""The compositionality score, on learners whose true composition is known: shape, colour and location of
Objects."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import torch

import piaget
from piaget.data.encoding import Scaling
from piaget.data.tasks import Split, Task
from piaget.method.structures import SoftOrdering
from piaget.report import metrics
from piaget.scoring import component_rows
from piaget.streams.objects import COLOURS, LOCATIONS, SHAPES, Objects

TASKS, DEPTH = 12, 3
COMPONENTS = len(SHAPES) + len(COLOURS) + len(LOCATIONS)


@dataclass(frozen=True)
class Given(SoftOrdering):
    """Structures that are not learned, but given: of each task, which component at which depth; None: all
    alike."""

    name = "given"

    chosen: tuple = ()

    def draw_initial(self, generator, drawn, k):
        return [
            {"logits": self.logits(choice, k, own["logits"])}
            for choice, own in zip(self.chosen, drawn, strict=True)
        ]

    @staticmethod
    def logits(choice, k, like):
        if choice is None:
            return torch.ones_like(like)
        return torch.full_like(like, -torch.inf).index_put(
            (torch.tensor(choice), torch.arange(DEPTH)), torch.ones(DEPTH)
        )


def tasks_of_factors(seed):
    """Is it this shape in this colour at this place? With the numbers of the three."""
    rng, stream = np.random.default_rng(seed), Objects(seed)
    tasks, factors = [], []
    for n in rng.permutation(len(stream.classes))[:TASKS]:
        others = rng.choice([c for c in range(len(stream.classes)) if c != n], 100)
        negative = np.stack([stream.images[c][rng.integers(100)] for c in others])
        order = rng.permutation(200)
        x = torch.from_numpy(np.concatenate([stream.images[n], negative])[order])
        y = torch.from_numpy(np.repeat([1, 0], 100)[order])
        train, validation, test = (Split(x[a:b], y[a:b]) for a, b in ((0, 120), (120, 140), (140, 200)))
        shape, colour, location = stream.classes[n]
        tasks.append(
            Task(f"{shape} {colour} {location}", "binary", train, validation, test, 2, scaling=Scaling(255))
        )
        factors.append((SHAPES.index(shape), 3 + COLOURS.index(colour), 7 + LOCATIONS.index(location)))
    return tasks, factors


def compositionality(tasks, chosen, k):
    """Of a learner with these structures, whose components learn, with the same encoder and decoder for
    all."""
    learner = piaget.Learner(
        Given(chosen=tuple(chosen)),
        "nft",
        "compositional",
        components=piaget.Dense(dropout=0.0),
        depth=DEPTH,
        initial_components=k,
        initial_tasks=TASKS,
        initial_epochs=50,
        epochs=2,
        encoder="shared",
        decoder="shared",
        compile="never",
    )
    for task in tasks:
        learner.learn(task)
    rows = [*learner.evaluate(tasks), *component_rows.rows(learner, tasks)]
    return metrics.compositionality(pd.DataFrame(rows).assign(run="r")).loc["r"]


@pytest.fixture(scope="module")
def factors():
    torch.manual_seed(0)
    return tasks_of_factors(0)


@pytest.mark.slow
def test_true_factors_are_more_compositional_than_components_anywhere(factors):
    tasks, true = factors
    random = np.random.default_rng(7).integers(0, COMPONENTS, (TASKS, DEPTH))
    anywhere = [tuple(row) for row in random.tolist()]
    ours, theirs = compositionality(tasks, true, COMPONENTS), compositionality(tasks, anywhere, COMPONENTS)
    assert ours["concentration"] == theirs["concentration"] == pytest.approx(1)
    assert ours["consistency"] > 1.5 * theirs["consistency"]
    assert ours["score"] > 1.1 * theirs["score"]
    assert ours["score"] > 0.25


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chosen", "k"),
    [([None] * TASKS, COMPONENTS), ([(i, i, i) for i in range(TASKS)], TASKS), ([(0, 0, 0)] * TASKS, 1)],
    ids=["all components alike", "one's own", "one for all"],
)
def test_degenerate_learners_are_not_compositional(factors, chosen, k):
    assert compositionality(factors[0], chosen, k)["score"] < 0.05
