"""What components do to a task, for the page's sliders: from a saved learner and the data of its stream."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from piaget.data.tasks import Task
from piaget.errors import DataError, PiagetError
from piaget.lab.making import make_stream
from piaget.learner import Learner
from piaget.method.components import Dense
from piaget.report.contents import Contents
from piaget.report.page_data import ExplorerData, ExplorerTaskData
from piaget.report.reading import RunFolder
from piaget.report.statistics import spread
from piaget.scoring import probing

INTENSITIES = [i / 10 for i in range(11)]
TASKS = 8  # of a stream, at most, for which a grid is computed


@dataclass(frozen=True)
class OpenedRun:
    """A finished run: its learner, and those tasks of its stream that it has learned."""

    run: RunFolder
    learner: Learner
    tasks: list[Task]


def open_run(run: RunFolder, data_dir: str | None) -> OpenedRun:
    learner = Learner.load(run.folder / "learner")
    stream = make_stream(run.configuration, run.seed, data_dir or run.description.get("data_dir"))
    known = set(learner.tasks)
    tasks = [task for task in (stream[i] for i in range(len(stream))) if task.name in known]
    if not tasks:
        raise DataError("none of its tasks is in its stream any more: the data have changed")
    return OpenedRun(run, learner, tasks)


def explorers(contents: Contents, data_dir: str | None, notes: list[str]) -> list[ExplorerData]:
    """One for the first finished run of every method that has structures."""
    made = []
    for group in contents.groups:
        run = next((run for run in group.runs if run.done), None)
        if run is None or not run.has_components:
            continue
        try:
            opened = open_run(run, data_dir)
            explorer = pixels(opened) if is_pixels(opened) else grid(opened, group.unit)
            made.append(explorer | {"run": contents.positions[run.name]})
        except (PiagetError, OSError) as error:
            notes.append(f"no component explorer for {run.name}: {error}")
    return made


def grid(opened: OpenedRun, unit: float) -> ExplorerData:
    """Scores on a sample of the test data, with one component at one depth at each intensity."""
    learner, structure = opened.learner, opened.learner.settings.structure
    tasks = []
    for task in (opened.tasks[i] for i in spread(len(opened.tasks), TASKS)):
        data, usable = probing.sample(learner, task), learner._record(task).k
        depths, components = probing.weights(learner, task).shape

        def score(
            change: probing.Change | None, task: Task = task, data: probing.Data = data
        ) -> float | None:
            return rounded(probing.score(learner, task, data, change) * unit)

        scores = [
            [
                [score(probing.at_intensity(structure, c, a, d, usable)) for a in INTENSITIES]
                for c in range(components)
            ]
            for d in range(depths)
        ]
        tasks.append(_task(opened, task, score(None), scores=scores))
    return _explorer(opened, "grid", tasks)


def _task(
    opened: OpenedRun, task: Task, score: float | None, scores: Any = None, truth: str | None = None
) -> ExplorerTaskData:
    weights = probing.weights(opened.learner, task)  # (depths, k)
    usable = opened.learner._record(task).k
    return ExplorerTaskData(
        name=task.name, weights=as_lists(weights), usable=usable, score=score, scores=scores, truth=truth
    )


def _explorer(
    opened: OpenedRun,
    kind: str,
    tasks: list[ExplorerTaskData],
    width: int | None = None,
    side: tuple[int, int] | None = None,
    numbers: str | None = None,
) -> ExplorerData:
    return ExplorerData(
        kind=kind,
        run=-1,
        depth=len(tasks[0]["weights"]),
        components=opened.learner.components,
        shared=opened.learner.settings.structure.shares,
        intensities=INTENSITIES,
        tasks=tasks,
        width=width,
        side=side,
        numbers=numbers,
    )


# --- pictures from coordinates ------------------------------------------------------------------------------


def is_pixels(opened: OpenedRun) -> bool:
    """A picture is computed from a row and a column, by parts that all tasks share."""
    settings = opened.learner.settings
    return (
        settings.encoder == "shared"
        and settings.decoder == "shared"
        and isinstance(settings.components, Dense)
        and settings.structure.name == "soft-ordering"
        and opened.tasks[0].input_shape == (2,)
        and _side(opened.tasks[0]) is not None
    )


def _side(task: Task) -> tuple[int, int] | None:
    """Rows and columns, if the training data are all pixels of a picture, row by row."""
    x = task.train.x
    rows, columns = len(x[:, 0].unique()), len(x[:, 1].unique())
    return (rows, columns) if rows * columns == len(x) else None


def pixels(opened: OpenedRun) -> ExplorerData:
    learner, state, first = opened.learner, opened.learner._state, opened.tasks[0]
    settings = learner.settings
    assert isinstance(settings.components, Dense)
    io, components = state.io, state.components
    inputs = first.train.x.float()
    parts = [
        inputs,
        io["encoder"]["weight"],
        io["encoder"]["bias"],
        components["weight"],
        components["bias"],
        io["decoder"]["weight"][:, :1],
        io["decoder"]["bias"][:1],
    ]
    flat = np.concatenate([part.detach().cpu().float().numpy().ravel() for part in parts]).astype("<f4")
    tasks = []
    for task in opened.tasks:
        score = probing.score(learner, task, probing.sample(learner, task, len(task.train)))
        truth = base64.b64encode(task.train.y.to(torch.uint8).numpy().tobytes()).decode()
        tasks.append(_task(opened, task, rounded(100 * score), truth=truth))
    numbers = base64.b64encode(flat.tobytes()).decode()
    return _explorer(opened, "pixels", tasks, settings.components.width, _side(first), numbers)


@torch.no_grad()
def pictures(opened: OpenedRun, task: Task, component: int, intensities: Sequence[float]) -> np.ndarray:
    """The picture with a component at each depth at each intensity: (depths, intensities, rows, columns)."""
    learner, side = opened.learner, _side(task)
    assert side is not None
    x, usable = task.train.x, learner._record(task).k
    structure = learner.settings.structure

    def picture(depth: int, intensity: float) -> np.ndarray:
        change = probing.at_intensity(structure, component, intensity, depth, usable)
        return probing.altered(learner, change).predict_proba(x, task)[:, 1].reshape(side).numpy()

    return np.array([[picture(depth, a) for a in intensities] for depth in range(learner.settings.depth)])


def as_lists(matrix: Tensor) -> list[list[float]]:
    """As exact as float32 is: weights that are nearly 0 still tell in which proportion the rest is shared."""
    return [[float(f"{value:.9g}") for value in row] for row in matrix.nan_to_num(0.0, 0.0, 0.0).tolist()]


def rounded(value: float, digits: int = 2) -> float | None:
    return round(value, digits) if math.isfinite(value) else None
