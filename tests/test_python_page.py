"""Every Python block of docs/python.md runs, in order."""

import numpy as np
import pandas
import torch

import piaget
from tests.notebooks import python_blocks as blocks


def month(seed, sites):
    rng = np.random.default_rng(seed)
    n = 40 * len(sites)
    table = pandas.DataFrame(
        {"site": np.repeat(sites, 40), "age": rng.normal(50, 9, n), "ward": rng.choice(["a", "b"], n)}
    )
    cost = 100 * table["age"] + rng.normal(size=n)
    return table, cost > cost.mean(), cost


def test_the_page_on_python(capsys):
    january, outcome, cost = month(0, ["site 1", "site 2", "site 3"])
    february, later, _ = month(1, ["site 3", "site 4"])
    rng = np.random.default_rng(0)
    x, groups = rng.normal(size=(300, 4)), np.repeat(["a", "b", "c"], 100)
    y = x[:, 0] + rng.normal(size=300)
    learner = piaget.Learner(initial_tasks=1, epochs=2)
    learner.learn(piaget.Task.from_arrays("site 7", x, x[:, 0] > 0))
    names = {
        "piaget": piaget, "learner": learner, "x": x, "y": y, "groups": groups, "january": january,
        "january_outcome": outcome, "january_cost": cost, "february": february, "february_outcome": later,
        "march": month(2, ["site 1", "site 9"])[0],
    }  # fmt: skip
    pieces = blocks("docs/python.md")
    assert len(pieces) == 7
    for piece in pieces:
        exec(piece, names)
        if "learner.forget" in piece:
            assert learner.tasks == ["site 7"]
        if "model.forget" in piece:
            assert names["model"].groups_ == ["site 1", "site 2", "site 4"]
            assert (names["low"] < names["mean"]).all()
        if "learner.module" in piece:
            expected = learner.predict_proba(torch.from_numpy(x), "site 7")
            torch.testing.assert_close(names["module"](torch.from_numpy(x)), expected)
            torch.testing.assert_close(names["program"].module()(torch.from_numpy(x)), expected)
    said = capsys.readouterr().out.splitlines()
    text = "\n".join(pieces)
    assert said == [
        "Learner(soft-ordering/er/dynamic, 2 tasks learned, 4 components)",
        "Task('site 8', regression; inputs (4,); 180 train, 60 validation, 60 test samples)",
    ]
    assert all(f"# {line}" in text for line in said)
