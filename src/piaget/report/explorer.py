"""What components do to a task, for the page's sliders: from a saved learner and the data of its stream."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from piaget.data.tasks import Task
from piaget.errors import DataError, PiagetError
from piaget.lab.making import make_stream
from piaget.learner import Learner
from piaget.method.components import Dense
from piaget.method.encoders import LinearDecoder, LinearEncoder
from piaget.report.groups import Group
from piaget.report.page_data import Explorer, ExplorerTask
from piaget.report.reading import Run
from piaget.report.statistics import spread
from piaget.scoring import probing
from piaget.scoring.scores import Encoded

INTENSITIES = [i / 10 for i in range(11)]
TASKS = 8  # of a stream, at most, for which a grid is computed


@dataclass(frozen=True)
class Opened:
    """A finished run: its learner, and those tasks of its stream that it has learned."""

    run: Run
    learner: Learner
    tasks: list[Task]


def open_run(run: Run, data_dir: str | None) -> Opened:
    learner = Learner.load(run.folder / "learner")
    stream = make_stream(run.configuration, run.seed, data_dir or run.description.get("data_dir"))
    known = set(learner.tasks)
    tasks = [task for task in (stream[i] for i in range(len(stream))) if task.name in known]
    if not tasks:
        raise DataError("none of its tasks is in its stream any more: the data have changed")
    return Opened(run, learner, tasks)


def explorers(groups: Sequence[Group], data_dir: str | None, notes: list[str]) -> list[tuple[str, Explorer]]:
    """One for the first finished run of every method that has structures, with the run's name."""
    found = []
    for one in groups:
        run = next((run for run in one.runs if run.status == "done"), None)
        if run is None or not run.has_components:
            continue
        try:
            opened = open_run(run, data_dir)
            found.append((run.name, pixels(opened) if is_pixels(opened) else grid(opened, one.unit)))
        except (PiagetError, OSError) as error:
            notes.append(f"no component explorer for {run.name}: {error}")
    return found


def grid(opened: Opened, unit: float) -> Explorer:
    """Scores on a sample of the test data, with one component at one depth at each intensity."""
    learner, structure = opened.learner, opened.learner.settings.structure
    made = []
    for task in (opened.tasks[i] for i in spread(len(opened.tasks), TASKS)):
        weights = probing.weights(learner, task)  # (depths, k)
        data, known = probing.sample(learner, task), learner.record(task).k

        def score(change: probing.Change | None, task: Task = task, data: Encoded = data) -> float | None:
            return rounded(probing.score(learner, task, data, change) * unit)

        scores = [
            [
                [score(probing.at_intensity(structure, c, a, d, known)) for a in INTENSITIES]
                for c in range(weights.shape[1])
            ]
            for d in range(weights.shape[0])
        ]
        made.append(
            ExplorerTask(
                name=task.name, weights=as_lists(weights), score=score(None), scores=scores, truth=None
            )
        )
    return Explorer(
        kind="grid",
        run=-1,
        depth=len(made[0]["weights"]),
        components=learner.components,
        shared=structure.shares,
        intensities=INTENSITIES,
        tasks=made,
        width=None,
        side=None,
        numbers=None,
    )


# --- pictures from coordinates ------------------------------------------------------------------------------


def is_pixels(opened: Opened) -> bool:
    """A picture is computed from a row and a column, by parts that all tasks share."""
    settings = opened.learner.settings
    return (
        isinstance(settings.encoder, LinearEncoder)
        and isinstance(settings.decoder, LinearDecoder)
        and settings.encoder.shared
        and settings.decoder.shared
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


def pixels(opened: Opened) -> Explorer:
    learner, state, first = opened.learner, opened.learner.state, opened.tasks[0]
    settings = learner.settings
    assert isinstance(settings.components, Dense)
    shared, components = state.shared, state.components
    inputs = first.train.x.float()
    parts = [
        inputs,
        shared.encoder["weight"],
        shared.encoder["bias"],
        components["weight"],
        components["bias"],
        shared.decoder["weight"][:, :1],
        shared.decoder["bias"][:1],
    ]
    flat = np.concatenate([part.detach().cpu().float().numpy().ravel() for part in parts]).astype("<f4")
    made = []
    for task in opened.tasks:
        score = probing.score(learner, task, probing.sample(learner, task, len(task.train)))
        truth = base64.b64encode(task.train.y.to(torch.uint8).numpy().tobytes()).decode()
        weights = as_lists(probing.weights(learner, task), 6)
        made.append(
            ExplorerTask(
                name=task.name, weights=weights, score=rounded(100 * score), scores=None, truth=truth
            )
        )
    return Explorer(
        kind="pixels",
        run=-1,
        depth=settings.depth,
        components=learner.components,
        shared=True,
        intensities=INTENSITIES,
        tasks=made,
        width=settings.components.width,
        side=_side(first),
        numbers=base64.b64encode(flat.tobytes()).decode(),
    )


@torch.no_grad()
def pictures(opened: Opened, task: Task, component: int, intensities: Sequence[float]) -> np.ndarray:
    """The picture with a component at each depth at each intensity: (depths, intensities, rows, columns)."""
    learner, side = opened.learner, _side(task)
    assert side is not None
    x, known = task.train.x, learner.record(task).k
    found = [
        [
            probing.altered(
                learner, probing.at_intensity(learner.settings.structure, component, a, depth, known)
            )
            .predict_proba(x, task)[:, 1]
            .reshape(side)
            .numpy()
            for a in intensities
        ]
        for depth in range(learner.settings.depth)
    ]
    return np.array(found)


def as_lists(matrix: Tensor, digits: int = 3) -> list[list[float]]:
    return [[round(float(value), digits) for value in row] for row in matrix.nan_to_num(0.0, 0.0, 0.0)]


def rounded(value: float, digits: int = 2) -> float | None:
    return round(value, digits) if math.isfinite(value) else None
