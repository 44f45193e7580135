"""Does a task fit a learner? Asked before any training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from piaget.data.task_checks import absent_from_training
from piaget.data.tasks import Task, same_fingerprint
from piaget.errors import SettingError, TaskError, type_of
from piaget.knowledge.library import parameter_shapes
from piaget.knowledge.state import Progress, State
from piaget.method.encoders import NoEncoder
from piaget.method.objective import output_width
from piaget.method.settings import Settings


def check_is_task(task: object) -> None:
    """Raises an error if it is something else."""
    if not isinstance(task, Task):
        raise TaskError(f"{type_of(task)} is no task; expected piaget.Task (Task.from_arrays makes one)")


def as_tasks(what: str, given: Any) -> list[Task]:
    """A task, or several in any collection, as a list; `what` they are for."""
    if isinstance(given, Task):
        return [given]
    try:
        tasks = list(given)
    except TypeError as error:
        raise TaskError(f"{what}: {type_of(given)}; expected a task or several") from error
    odd = next((one for one in tasks if not isinstance(one, Task)), None)
    if odd is not None or None in tasks:
        raise TaskError(f"{what}: {type_of(odd)} is no task; expected a task or several")
    return tasks


def check_idle(state: State, task: str) -> None:
    """Raises an error if another task is begun, and not done."""
    if state.progress is not None:
        raise TaskError(
            f"task {task!r}: the learner is in the middle of {state.progress.tasks[-1]!r}; give it that "
            "task again to finish it first"
        )


def check_task(settings: Settings, state: State, task: Task, expanding: bool) -> None:
    """Raises an error that names the task, if it cannot be learned (`expanding`: with expansion)."""
    if task.name in state.records or task.name in state.pending:
        raise TaskError(
            f"task {task.name!r}: a task of this name was given before; names must differ (`update` goes on "
            "with a task that was learned)"
        )
    check_idle(state, task.name)
    _check_data(settings, state, task, expanding)


def check_update(settings: Settings, state: State, task: Task) -> Task:
    """The task, with inputs and values scaled as when it was learned. Raises an error that names it, if it
    cannot be learned further."""
    record = state.records[task.name]
    there, given = (
        (one.kind, one.classes, one.labels, tuple(one.input_shape), one.encoding) for one in (record, task)
    )
    for what, known, new in zip(("kind", "classes", "labels", "inputs", "table"), there, given, strict=True):
        if known != new:
            told = "another one" if what == "table" else f"{new!r}"
            expected = "the same columns" if what == "table" else f"{known!r}"
            raise TaskError(
                f"task {task.name!r}: {what} {told}; expected {expected}, as when the task was learned"
            )
    # Bytes are divided, by the largest one that was there; fractions are not, and are no bytes.
    if (task.scaling.divisor == 1) != (record.scaling.divisor == 1):
        raise TaskError(
            f"task {task.name!r}: inputs are divided by {task.scaling.divisor:g}; expected "
            f"{record.scaling.divisor:g}, as when the task was learned"
        )
    task = replace(task, scaling=record.scaling)
    _check_data(settings, state, task, expanding=False)
    return task


def _check_data(settings: Settings, state: State, task: Task, expanding: bool) -> None:
    """Is there all that is needed, and does it enter the network?"""
    where = f"task {task.name!r}"
    if absent := absent_from_training(task):
        raise TaskError(
            f"{where}: no train sample of class {absent}; expected one of each class, unless a PriorLearner "
            "learns the task"
        )
    for needed, why, otherwise in (
        (expanding, "new components are judged by it", "use the algorithm 'compositional'"),
        (settings.stop.watches, "it is to tell when to stop", "leave out the stop rule"),
        (settings.kept_epoch.watches, "it is to tell which epoch is kept", "choose kept_epoch='last'"),
        (settings.acceptance.judges, "adaptation is judged by it", "leave out the acceptance"),
        (
            settings.calibration != "none" and task.kind != "regression",
            "it is to tell how sure probabilities should be",
            "leave out the calibration",
        ),
    ):
        if needed and task.validation is None:
            raise TaskError(
                f"{where}: there is no validation split, but {why}; give validation data, or {otherwise}"
            )
    try:
        settings.inference.check_kind(task.kind)
        _check_inputs(settings, state, task)
    except (TaskError, SettingError) as error:
        raise type(error)(f"{where}: {error}") from None


def check_same(progress: Progress, task: Task) -> None:
    """On resuming: is it the task that was begun?"""
    if not same_fingerprint(task, progress.fingerprints[task.name]):
        raise TaskError(
            f"task {task.name!r}: its data is not that with which learning it began; "
            "expected the same task, to carry on"
        )


def _check_inputs(settings: Settings, state: State, task: Task) -> None:
    model = settings.model
    for name, split in task.splits():
        narrow = split.x.is_floating_point() and split.x.dtype != settings.torch_dtype
        if narrow and not bool(torch.isfinite(split.x.to(settings.torch_dtype)).all()):
            raise TaskError(f"{name}: inputs are too large for {settings.dtype}; expected finite numbers")
        # Values are learned standardised, and answered in their own units.
        for y in (split.y, task.scaling.targets(split.y)) if task.kind == "regression" else ():
            if not bool(torch.isfinite(y.to(settings.torch_dtype)).all()):
                raise TaskError(f"{name}: targets are too large for {settings.dtype}; give dtype='float64'")
    if isinstance(settings.encoder, NoEncoder):
        model.components.check_input(task.input_shape)
    shapes = model.shapes(task.input_shape)
    if any(size < 1 for shape in shapes for size in shape):
        raise TaskError(
            f"inputs of shape {task.input_shape} shrink to {shapes} on the way through "
            f"{settings.depth} depths; expected larger images or less depth"
        )
    shared = "encoder" if settings.encoder.shared else "set of features"
    if settings.encoder.shared or model.components.whole_model:
        known = [r.input_shape for r in state.records.values()]
        known += [t.input_shape for t in state.pending.values()]
        if known and tuple(known[0]) != task.input_shape:
            raise TaskError(
                f"inputs have shape {task.input_shape}, but all tasks share one {shared}, for "
                f"inputs of shape {tuple(known[0])}"
            )
    if state.components and not state.records:  # from a library
        shapes_now = parameter_shapes(model.components, shapes[0], settings.dtype)
        if shapes_now != {name: tuple(p.shape[1:]) for name, p in state.components.items()}:
            raise TaskError(
                f"inputs of shape {task.input_shape} do not enter the components of the library that the "
                "learner began with"
            )
    outputs = output_width(task.kind, task.classes)
    columns = model.columns(state.shared.decoder)
    if columns is not None and columns < outputs:
        raise TaskError(f"the task needs {outputs} outputs, but all tasks share one decoder with {columns}")
    # Drawing parameters (from a generator of its own) finds what else does not fit.
    probe = torch.Generator().manual_seed(0)
    model.draw_task(probe, task.input_shape, 1, outputs, settings.torch_dtype)
