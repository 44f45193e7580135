"""Inputs of a learner over a table, as its columns have them: names, and values in the table's own units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from piaget.prior_learner import PriorLearner

NUMBER, CATEGORY = "number", "category"


class Input(NamedTuple):
    """A number, or a level of a category (or that a value is missing): yes or no."""

    name: str
    kind: str
    opposite: str = ""  # of a category with two values: the other one
    mean: float = 0.0
    spread: float = 1.0
    date: bool = False

    @property
    def axis(self) -> str:
        """What its values are called."""
        return f"{self.name}, in days since 1970" if self.date else self.name

    def value(self, x: float) -> float:
        """In units of the table."""
        return self.mean + self.spread * x

    def told(self, x: float) -> str:
        """The same, in words."""
        value = self.value(x)
        if self.date:
            return str(np.datetime64(round(value), "D"))
        return f"{value:.3g}".replace("-", "\N{MINUS SIGN}")


def inputs_of(learner: PriorLearner, n: int) -> list[Input]:
    """All n of them, in order."""
    encoding = learner.encoding()
    if encoding is None:
        return [Input(f"input {i}", NUMBER) for i in range(n)]
    found = []
    for column in encoding.columns:
        if column.levels is None:
            number = Input(column.name, NUMBER, "", column.mean, column.spread, column.date)
            found += [number, *(Input(name, CATEGORY) for name in column.inputs[1:])]
        else:
            others = column.inputs[1::-1] if len(column.levels) == 2 else []
            others += [""] * (len(column.inputs) - len(others))
            found += [Input(name, CATEGORY, other) for name, other in zip(column.inputs, others, strict=True)]
    return found
