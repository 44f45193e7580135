"""A stream of one's own: arrays in memory, one task a site; regression, with little data each."""

import numpy as np

import piaget


def sites(seed: int = 0, count: int = 6, samples: int = 60) -> list[piaget.Task]:
    """Related problems: each site's outcome is another mix of the same three hidden effects."""
    rng = np.random.default_rng(seed)
    effects = rng.normal(size=(8, 3))
    tasks = []
    for i in range(count):
        x = rng.normal(size=(samples, 8))
        y = np.tanh(x @ effects) @ rng.normal(size=3) + 0.1 * rng.normal(size=samples)
        tasks.append(piaget.Task.from_arrays(f"site {i}", x, y))
    return tasks


def main(epochs: int = 100) -> piaget.Learner:
    learner = piaget.Learner(components=piaget.Dense(32, dropout=0.0), epochs=epochs)
    tasks = sites()
    for task in tasks:
        assert task.test is not None
        for row in learner.learn(task):
            if row["metric"] == "rmse":
                print(f"{row['evaluated']}: error {row['value']:.2f} (spread {task.test.y.std():.2f})")
        new = task.test.x[:3]
    print(learner.predict(new, task="site 5"))
    return learner


if __name__ == "__main__":
    main()
