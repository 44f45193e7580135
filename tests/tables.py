"""Tables as a user has them."""

import numpy as np
import pandas


def frame(groups=6, rows=40, seed=0):
    """Sites with an outcome that depends on age, ward and a site's own offset."""
    rng = np.random.default_rng(seed)
    n = groups * rows
    table = pandas.DataFrame(
        {
            "site": np.repeat([f"site {g}" for g in range(groups)], rows),
            "age": rng.normal(50, 10, n),
            "ward": rng.choice(["red", "green", "blue"], n),
            "visits": rng.integers(0, 9, n),
        }
    )
    effect = table["ward"].map({"red": 0.0, "green": 40.0, "blue": -40.0})
    table["cost"] = (
        1000 + 3 * table["age"] + effect + 100 * np.repeat(np.arange(groups), rows) + rng.normal(0, 1, n)
    )
    table["ill"] = np.where(table["age"] + effect / 4 > 50, "yes", "no")
    return table


def only(table, target):
    return table.drop(columns=[{"cost": "ill", "ill": "cost"}[target]])


def visits(groups=range(12), rows=60, seed=0):
    """Sites whose effects differ along one direction; `ill`: yes or no, `stay`: days."""
    directions = np.random.default_rng(7).normal(size=(100, 1)) @ [[1.5, -1.0, 0.5]]
    rng, parts = np.random.default_rng(seed), []
    for g in groups:
        x = rng.normal(size=(rows, 3))
        ward = rng.choice(["red", "green", "blue"], rows)
        told = x @ (directions[g] + [1.0, 0.5, 0.0]) + 0.8 * (ward == "red")
        parts.append(
            pandas.DataFrame(
                {
                    "site": f"site {g}",
                    "age": (50 + 10 * x[:, 0]).round(2),
                    "dose": x[:, 1].round(3),
                    "bmi": (25 + 3 * x[:, 2]).round(2),
                    "ward": ward,
                    "ill": np.where(rng.random(rows) < 1 / (1 + np.exp(-1.5 * told)), "yes", "no"),
                    "stay": (10 + 2 * told + rng.normal(0, 1, rows)).round(3),
                }
            )
        )
    return pandas.concat(parts, ignore_index=True)
