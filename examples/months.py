"""Tables of three months, to try docs/tables.md with: python -m examples.months"""

import numpy as np
import pandas

PLACES = np.random.default_rng(7).normal(size=(40, 2))  # of sites, along two directions that they share
WEIGHTS = PLACES @ [[1.2, -0.8, 0.5], [0.4, 0.6, 0.9]] + np.array([1.0, -0.5, 0.0])


def visits(sites, rows, seed):
    """Patients of some sites; how age, dose and weight matter differs from site to site."""
    rng, parts = np.random.default_rng(seed), []
    for site in sites:
        x, ward = rng.normal(size=(rows, 3)), rng.choice(["red", "green", "blue"], rows)
        ill = rng.random(rows) < 1 / (1 + np.exp(-x @ WEIGHTS[site] - 0.8 * (ward == "red")))
        inputs = {"age": 50 + 10 * x[:, 0], "dose": 5 + x[:, 1], "weight": 70 + 9 * x[:, 2], "ward": ward}
        parts.append(pandas.DataFrame({"site": f"site {site}", **inputs, "ill": np.where(ill, "yes", "no")}))
    return pandas.concat(parts).round(2)


def outcomes(clinics, rows, seed):
    """Patients of some clinics; of ten, about eight have none, one a mild and one a severe outcome."""
    rng, n = np.random.default_rng(seed), clinics * rows
    x, clinic = rng.normal(size=(n, 3)), np.repeat(np.arange(clinics), rows)
    risk = x @ [1.0, 0.7, 0.0] + 0.5 * rng.normal(size=clinics)[clinic] + rng.logistic(0, 0.8, n)
    outcome = np.select([risk > 2.4, risk > 1.6], ["severe", "mild"], "none")
    inputs = {"age": 50 + 10 * x[:, 0], "dose": 5 + x[:, 1], "weight": 70 + 9 * x[:, 2]}
    names = [f"clinic {i}" for i in clinic]
    return pandas.DataFrame({"clinic": names, **inputs, "outcome": outcome}).round(2)


def write(rows=80):
    """Into the present folder."""
    visits(range(30), rows, 0).to_csv("january.csv", index=False)
    visits(range(27, 33), rows // 2, 1).to_csv("february.csv", index=False)
    outcomes(40, 3 * rows // 4, 3).to_csv("clinics.csv", index=False)
    visits([0, 32, 35], 2, 2).drop(columns="ill").to_csv("march.csv", index=False)


if __name__ == "__main__":
    write()
