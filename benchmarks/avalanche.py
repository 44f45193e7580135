"""Against a general library of continual learning: Avalanche's replay on the same net and stream.

    pip install avalanche-lib "piaget[data]"             # in an environment of its own
    PIAGET_DATA=... python -m benchmarks.avalanche       # one line of JSON

MNIST's pairs of digits: a shared linear encoder, four layers of 64 units with dropout, a head a task, no
components, Adam, batches of 32, replay, one thread; seconds from the first task to the last, after whatever
is compiled once. Each side replays as it does: Avalanche adds a batch of 32 stored samples to every batch of
new ones; piaget shuffles them among the new ones.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

import piaget

WIDTH, DEPTH, BATCH, STORED = 64, 4, 32, 48  # samples that are stored of a task


def piaget_seconds(streams: Sequence[Sequence[piaget.Task]], epochs: int) -> tuple[float, float]:
    """Of one run, and its accuracy; several streams are learned together."""
    learners = [
        piaget.Learner(
            adaptation=piaget.Replay(STORED),
            algorithm="no-components",
            encoder="shared",
            epochs=epochs,
            initial_tasks=1,
            initial_epochs=epochs,
            compile="always",
            seed=seed,
        )
        for seed in range(len(streams))
    ]
    cohort, start = piaget.Cohort(learners), time.perf_counter()
    for tasks in zip(*streams, strict=True):
        cohort.learn(list(tasks))
    seconds = time.perf_counter() - start
    scores = [
        row["value"]
        for row in learners[0].evaluate(streams[0])
        if row["split"] == "test" and row["metric"] == "accuracy"
    ]
    return seconds / len(streams), sum(scores) / len(scores)


def avalanche_seconds(tasks: Sequence[piaget.Task], epochs: int) -> tuple[float, float]:
    """The same by Avalanche."""
    from avalanche.benchmarks import benchmark_from_datasets, with_classes_timeline, with_task_labels
    from avalanche.benchmarks.utils import as_taskaware_classification_dataset, make_avalanche_dataset
    from avalanche.benchmarks.utils.data_attribute import DataAttribute
    from avalanche.models import MultiHeadClassifier, MultiTaskModule
    from avalanche.training.plugins import EvaluationPlugin
    from avalanche.training.supervised import Replay

    class Net(MultiTaskModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            layers: list[nn.Module] = [nn.Flatten(), nn.Linear(28 * 28, WIDTH)]
            for _ in range(DEPTH):
                layers += [nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Dropout(0.5)]
            self.body, self.head = nn.Sequential(*layers), MultiHeadClassifier(WIDTH, 2, masking=False)

        def forward(self, x: Tensor, task_labels: Any) -> Tensor:
            return self.head(self.body(x), task_labels)

    def dataset(split: piaget.Split, number: int) -> Any:
        x, y = split.x.float() / 255, split.y.long()
        attributes = [
            DataAttribute(y, "targets"),
            DataAttribute(torch.full_like(y, number), "targets_task_labels", use_in_getitem=True),
        ]
        tensors = torch.utils.data.TensorDataset(x, y)
        return as_taskaware_classification_dataset(
            make_avalanche_dataset(tensors, data_attributes=attributes)
        )

    tests = [task.test for task in tasks if task.test is not None]
    benchmark = benchmark_from_datasets(
        train=[dataset(task.train, i) for i, task in enumerate(tasks)],
        test=[dataset(test, i) for i, test in enumerate(tests)],
    )
    torch.manual_seed(0)
    net = Net()
    strategy = Replay(
        model=net,
        optimizer=torch.optim.Adam(net.parameters(), lr=1e-3),
        criterion=nn.CrossEntropyLoss(),
        mem_size=STORED * len(tasks),
        train_mb_size=BATCH,
        train_epochs=epochs,
        eval_mb_size=1024,
        evaluator=EvaluationPlugin(loggers=[]),
    )
    start = time.perf_counter()
    for experience in with_task_labels(with_classes_timeline(benchmark)).train_stream:
        strategy.train(experience, num_workers=0)
    seconds = time.perf_counter() - start
    net.eval()
    with torch.no_grad():
        outputs = [net(test.x.float() / 255, torch.full_like(test.y, i)) for i, test in enumerate(tests)]
    right = [(o[:, :2].argmax(1) == test.y).float().mean() for o, test in zip(outputs, tests, strict=True)]
    return seconds, float(torch.stack(right).mean())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--cohort", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(1)
    streams = []
    for seed in range(options.cohort):
        stream = piaget.stream("mnist", seed)
        streams.append([stream[i] for i in range(options.tasks)])
    for runs in (1, options.cohort):  # what is compiled is kept
        piaget_seconds([tasks[:2] for tasks in streams[:runs]], 1)
    found: dict[str, Any] = {"torch": torch.__version__, "tasks": options.tasks, "epochs": options.epochs}
    one, accuracy = piaget_seconds(streams[:1], options.epochs)
    found["piaget"] = {"seconds": one, "accuracy": accuracy}
    together, accuracy = piaget_seconds(streams, options.epochs)
    found["piaget, a run of a cohort"] = {"seconds": together, "accuracy": accuracy}
    try:
        import avalanche
    except ImportError:
        found["avalanche"] = "not installed"
    else:
        seconds, accuracy = avalanche_seconds(streams[0], options.epochs)
        found[f"avalanche {avalanche.__version__}"] = {"seconds": seconds, "accuracy": accuracy}
        found["ratio"] = {"one": seconds / one, "cohort": seconds / together}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
