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
