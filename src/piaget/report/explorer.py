"""What components do to a task, for the page's sliders: from a saved learner and the data of its stream."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from piaget.data.tasks import Task
from piaget.errors import DataError, LoadError, PiagetError
from piaget.lab.configuration import learns_held_out
from piaget.lab.folder import without_forgotten
from piaget.lab.making import make_stream
from piaget.lab.parts import references
from piaget.lab.runs import fingerprints
from piaget.lab.unchanged import check_data
from piaget.learner import Learner
from piaget.method.components import Dense
from piaget.method.encoders import LinearDecoder, LinearEncoder
from piaget.report.contents import Contents
from piaget.report.page_data import ExplorerData, ExplorerTaskData, NetworkData
from piaget.report.reported_run import ReportedRun
from piaget.report.statistics import spread
from piaget.scoring import probing

INTENSITIES = [i / 10 for i in range(11)]
TASKS = 8  # of a stream, at most, for which a grid is computed


@dataclass(frozen=True)
class OpenedRun:
    """A finished run: its learner, and those tasks of its stream that it has learned."""

    run: ReportedRun
    learner: Learner
    tasks: list[Task]


def open_run(run: ReportedRun, data_dir: str | None) -> OpenedRun:
    """A finished run with its learner, and those of its tasks that the learner knows."""
    if code := references(run.configuration):
        named = ", ".join(f"{role} {reference}" for role, reference in code.items())
        raise LoadError(
            f"it was trained with code of your own ({named}), and a report imports none; all other figures "
            "and tables have the run. In Python, piaget.scoring.probing tells the same (docs/explorer.md)"
        )
    learner = Learner.load(run.disk.saved_learner())
    stream = make_stream(run.configuration, run.seed, data_dir or run.description.get("data_dir"))
    now = without_forgotten(run.description, fingerprints(stream))
    check_data(run.folder, run.description.get("data"), now, run.done)
    known = set(learner.tasks)
    tasks = [task for task in (stream[i] for i in range(len(stream))) if task.name in known]
    if not tasks:
        raise DataError("none of the run's tasks is known any more: they were forgotten")
    return OpenedRun(run, learner, tasks)


def explore(contents: Contents, data_dir: str | None, notes: list[str]) -> list[ExplorerData]:
    """One for the first finished run of every method that has structures."""
    explorers = []
    for group in contents.groups:
        run = next((run for run in group.runs if run.done), None)
        if run is None or not run.has_components or run.collected:
            continue
        try:
            opened = open_run(run, data_dir)
            learner, network = opened.learner, network_of(opened) if is_pixels(opened) else None
            if network is None:
                chosen = [opened.tasks[i] for i in spread(len(opened.tasks), TASKS)]
                tasks = [grid_task(learner, task, group.unit) for task in chosen]
            else:
                tasks = [pixel_task(learner, task) for task in opened.tasks]
        except (PiagetError, OSError) as error:
            notes.append(f"no component explorer for {run.name}: {error}")
            continue
        if run.description.get("learned_rows") is not None and learns_held_out(run.configuration):
            notes.append(
                f"{run.name} has learned later tables, and with them test rows of groups that it knew: "
                "scores of these in the component explorer are too good"
            )
        described = ExplorerData(
            run=contents.positions[run.name],
            depth=len(tasks[0]["weights"]),
            components=learner.components,
            shared=learner.settings.structure.shares,
            intensities=INTENSITIES,
            tasks=tasks,
            network=network,
        )
        explorers.append(described)
    return explorers


def grid_task(learner: Learner, task: Task, unit: float) -> ExplorerTaskData:
    """Scores on a sample of the test data, with one component at one depth at each intensity."""
    described, data = _task(learner, task), probing.sample(learner, task)

    def score(change: probing.Change | None) -> float | None:
        return rounded(probing.score(learner, task, data, change) * unit)

    def at(component: int, intensity: float, depth: int) -> probing.Change:
        structure, usable = learner.settings.structure, described["usable"]
        return probing.at_intensity(structure, component, intensity, depth, usable)

    described["score"] = score(None)
    described["scores"] = [
        [[score(at(c, a, d)) for a in INTENSITIES] for c in range(len(weights))]
        for d, weights in enumerate(described["weights"])
    ]
    return described


def _task(learner: Learner, task: Task) -> ExplorerTaskData:
    """A task with its weights, and no scores yet.

    Weights are as exact as float32 is: if they are nearly 0, they still tell how the rest is shared.
    """
    weights = probing.weights(learner, task).nan_to_num(0.0, 0.0, 0.0)  # (depths, k)
    exact = [[float(f"{weight:.9g}") for weight in row] for row in weights.tolist()]
    usable = learner.record(task).k
    return ExplorerTaskData(name=task.name, weights=exact, usable=usable, score=None, scores=None, truth=None)


# --- pictures from coordinates ------------------------------------------------------------------------------


def is_pixels(opened: OpenedRun) -> bool:
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


def network_of(opened: OpenedRun) -> NetworkData:
    """All that the page needs to compute pictures."""
    settings, state, first = opened.learner.settings, opened.learner.state, opened.tasks[0]
    assert isinstance(settings.components, Dense)
    side = _side(first)
    assert side is not None
    shared, components = state.shared, state.components
    parts = [
        first.train.x,
        shared.encoder["weight"],
        shared.encoder["bias"],
        components["weight"],
        components["bias"],
        shared.decoder["weight"][:, :1],
        shared.decoder["bias"][:1],
    ]
    flat = np.concatenate([part.detach().cpu().float().numpy().ravel() for part in parts]).astype("<f4")
    numbers = base64.b64encode(flat.tobytes()).decode()
    return NetworkData(width=settings.components.width, side=side, numbers=numbers)


def pixel_task(learner: Learner, task: Task) -> ExplorerTaskData:
    """A task with its true picture."""
    score = probing.score(learner, task, probing.sample(learner, task, len(task.train)))
    truth = base64.b64encode(task.train.y.to(torch.uint8).numpy().tobytes()).decode()
    described = _task(learner, task)
    described["score"], described["truth"] = rounded(100 * score), truth
    return described


@torch.no_grad()
def pictures(opened: OpenedRun, task: Task, component: int, intensities: Sequence[float]) -> np.ndarray:
    """The picture with a component at each depth at each intensity: (depths, intensities, rows, columns)."""
    learner, side = opened.learner, _side(task)
    assert side is not None
    x, usable = task.train.x, learner.record(task).k
    structure = learner.settings.structure

    def picture(depth: int, intensity: float) -> np.ndarray:
        change = probing.at_intensity(structure, component, intensity, depth, usable)
        return probing.altered(learner, change).predict_proba(x, task)[:, 1].reshape(side).numpy()

    return np.array([[picture(depth, a) for a in intensities] for depth in range(learner.settings.depth)])


def rounded(value: float, digits: int = 2) -> float | None:
    """A number for the page; None for what is not one."""
    return round(value, digits) if math.isfinite(value) else None
