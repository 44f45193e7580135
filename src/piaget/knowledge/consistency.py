"""Is a state one that its settings can have led to? Asked of states that were read from files.

It is compared with a fresh one: what would be drawn anew for the same settings and tasks has the same names,
shapes and types.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from piaget.knowledge import noting
from piaget.knowledge.snapshot import describe
from piaget.knowledge.state import Attempt, Best, Progress, State, TaskRecord
from piaget.method.parameters import TaskParams, new_moments, shared_moments, task_moments
from piaget.method.settings import Settings
from piaget.method.trees import Tensors, flatten, map_tree

MANY_CLASSES, MANY_INPUTS = 2**20, 2**26  # more than any task has: nothing of that size is drawn


def check_state(settings: Settings, state: State) -> None:
    """Raises an error (a ValueError, if it is found here) that says what is wrong."""
    for record in state.records.values():
        _check_record(state, record)
    _check_progress(settings, state)
    _check_tensors(flatten(describe(state)[1]), flatten(describe(_fresh(settings, state))[1]))
    _check_memory(settings, state)
    noting.check_notes(settings, state)
    for record in state.records.values():
        _check_answers(settings, state, record)


def _require(right: bool, what: str) -> None:
    if not right:
        raise ValueError(what)


# --- plain data ---------------------------------------------------------------------------------------------


def _check_record(state: State, record: TaskRecord) -> None:
    where, classes, labels = f"task {record.name!r}", record.classes, record.labels
    least, most = {"binary": (2, 2), "multiclass": (2, MANY_CLASSES), "regression": (0, 0)}[record.kind]
    _require(least <= classes <= most, f"{where}: {record.kind} with {classes} classes")
    named = labels is None or len(labels) == classes
    _require(named, f"{where}: {len(labels or ())} labels for {classes} classes")
    shape = record.input_shape
    right = bool(shape) and min(shape) > 0 and math.prod(shape) <= MANY_INPUTS
    _require(right, f"{where}: inputs of shape {shape}")
    scaled = len(record.scaling.center)
    _require(scaled in (0, shape[0]), f"{where}: {scaled} inputs are scaled, of shape {shape}")
    _require(1 <= record.k <= state.k, f"{where}: it uses {record.k} of {state.k} components")
    sure = math.isfinite(record.temperature) and record.temperature > 0
    _require(sure, f"{where}: a temperature of {record.temperature}")
    if record.encoding is not None:
        inputs = len(record.encoding.inputs)
        _require((inputs,) == shape, f"{where}: a table of {inputs} inputs for inputs of shape {shape}")


def _check_progress(settings: Settings, state: State) -> None:
    progress, records, pending = state.progress, list(state.records), list(state.pending)
    expected = bool(records) or settings.components_from is not None
    _require(expected == bool(state.components), f"{state.k} components for {len(records)} tasks")
    if progress is None:
        _require(not (records and pending), f"tasks {pending} are pending after initialization")
        return
    tasks = progress.tasks
    _require(
        bool(tasks) and tasks == records[-len(tasks) :], f"tasks {tasks} are being learned, of {records}"
    )
    _require(
        not pending or pending == tasks == records, f"tasks {pending} are pending, {tasks} being learned"
    )
    _require(list(progress.fingerprints) == tasks, f"fingerprints of {list(progress.fingerprints)}")
    epochs = settings.initial_epochs if pending else settings.most_epochs
    _require(0 <= progress.epoch <= epochs, f"epoch {progress.epoch} of {epochs}")
    proposed = not progress.candidate or (settings.algorithm.expansion.proposes and state.k > 1)
    _require(proposed, "a component is on trial, but none can be")
    _check_best(settings, progress)
    _check_attempts(settings, progress, bool(pending))
    judged = progress.before is None or settings.acceptance.judges
    _require(judged, "what an adaptation began with is there, but nobody judges it")
    counted = set(progress.counts) <= set(settings.adaptation.counts)
    _require(counted, f"counts of {', '.join(progress.counts)}")


def _check_attempts(settings: Settings, progress: Progress, initial: bool) -> None:
    """While a second attempt is made, what the first one came to; before that, where one would begin."""
    again = settings.algorithm.expansion.in_second_attempt
    _require(
        (progress.first is not None) == (progress.candidate and again),
        "a first attempt at the task is there without a second one, or the other way round",
    )
    may_come = again and settings.changes_common and not (initial or progress.candidate)
    there, undecided = progress.origin is not None, progress.epoch <= len(settings.stages())
    _require(
        may_come if there else not (may_come and undecided),
        "where a second attempt at the task would begin is missing, or none can be made",
    )


def _check_best(settings: Settings, progress: Progress) -> None:
    """The epochs that were looked at, and the best one."""
    seen, best = set(progress.validated), progress.best
    right = seen <= set(progress.tasks) and (settings.kept_epoch.watches or not seen)
    _require(right, f"epochs of {', '.join(sorted(seen))} were looked at")
    right = best.keys() <= seen and all(0 < one.epoch <= progress.epoch for one in best.values())
    _require(right, f"the best epochs of {', '.join(best)} were never looked at")


# --- tensors ------------------------------------------------------------------------------------------------


def _fresh(settings: Settings, state: State) -> State:
    """A state of the same tasks, as it would be drawn anew."""
    model, dtype, generator = settings.model, settings.torch_dtype, torch.Generator()
    slots = settings.optimizer.slots
    fresh = State(generator, memory=state.memory, pending=state.pending)
    if not state.components:
        return fresh
    shape = next((record.input_shape for record in state.records.values()), None)
    entering = model.components.hidden if shape is None else model.shapes(shape)[0]
    fresh.components = state.components  # of a library: without a task, nobody knows what will enter
    if entering is not None:
        component = model.components.draw(generator, entering, dtype)
        fresh.components = {name: p.expand(state.k, *p.shape) for name, p in component.items()}
    fresh.moments = new_moments(slots, fresh.components, state.k)
    if shape is None:
        fresh.shared_moments = shared_moments(slots, fresh.shared)
        return fresh
    widest = max(record.outputs for record in state.records.values())
    columns = model.columns(state.shared.decoder) or widest
    _require(columns >= widest, f"the shared decoder has {columns} columns for {widest} outputs")
    fresh.shared = model.draw_shared(generator, shape, columns, dtype)
    fresh.shared_moments = shared_moments(slots, fresh.shared)
    drawn: dict[Any, TaskParams] = {}  # of tasks of one form, once
    for name, record in state.records.items():
        _check_features(settings, state, record)
        form = (record.input_shape, record.k, record.outputs)
        if form not in drawn:
            drawn[form] = model.draw_task(generator, *form, dtype)
        fresh.records[name] = replace(record, params=drawn[form])
        if name in state.past_moments:
            fresh.past_moments[name] = task_moments(slots, drawn[form])
    if state.progress is not None:
        moments = {name: task_moments(slots, fresh.records[name].params) for name in state.progress.tasks}
        last = None
        if state.progress.candidate:
            last = map_tree(lambda t: t[-1], (fresh.components, fresh.moments))
        best = {
            name: Best(one.epoch, fresh.records[name].params, moments[name], last)
            for name, one in state.progress.best.items()
        }
        before = None if state.progress.before is None else fresh.common
        fresh.progress = replace(
            state.progress,
            moments=moments,
            generator=generator.get_state(),
            best=best,
            before=before,
            origin=None if state.progress.origin is None else fresh.common,
            first=None if state.progress.first is None else _fresh_attempt(settings, fresh),
        )
    return fresh


def _fresh_attempt(settings: Settings, fresh: State) -> Attempt:
    """A first attempt had one component less than the second one, which is being made."""
    record = next(reversed(fresh.records.values()))
    k = record.k - 1
    params = settings.model.resized(record.params, k, record.outputs)
    common = fresh.common
    fewer = common._replace(
        components=map_tree(lambda p: p[:k], common.components),
        moments=map_tree(lambda p: p[:k], common.moments),
    )
    return Attempt(params, task_moments(settings.optimizer.slots, params), fewer, fresh.generator.get_state())


def _check_features(settings: Settings, state: State, record: TaskRecord) -> None:
    """Before an encoder for so many inputs is drawn."""
    weight = (state.shared.encoder or record.params.encoder).get(settings.encoder.feature_weight or "")
    right = weight is None or (weight.ndim > 0 and len(weight) == math.prod(record.input_shape))
    _require(right, f"task {record.name!r}: its encoder is not for inputs of shape {record.input_shape}")


def _check_tensors(found: Tensors, expected: Tensors) -> None:
    for name in sorted(found.keys() ^ expected.keys()):
        raise ValueError(f"tensor {name} is {'missing' if name in expected else 'not known'}")
    for name, tensor in found.items():
        _check_form(name, tensor, expected[name])
        if name.startswith(("pending/", "generator")) or not tensor.is_floating_point():
            continue  # tasks check their data
        # Logits of components that are not used may be minus infinity.
        structure = name.startswith(("tasks/", "best/", "first/")) and "/structure/" in name
        right = not tensor.isnan().any() if structure else torch.isfinite(tensor).all()
        _require(bool(right), f"tensor {name} is not finite")


def _check_form(name: str, found: Tensor, expected: Tensor) -> None:
    forms = [(tuple(t.shape), str(t.dtype).removeprefix("torch.")) for t in (found, expected)]
    _require(forms[0] == forms[1], f"tensor {name} is {forms[0]}; expected {forms[1]}")


def _check_memory(settings: Settings, state: State) -> None:
    """What an adaptation keeps: stored samples have a form; of all else it knows itself."""
    finished = len(state.records) - (len(state.progress.tasks) if state.progress is not None else 0)
    part = settings.adaptation
    _require(
        part.recognizes(state.memory, finished, state.components),
        f"the memory ({', '.join(state.memory) or 'nothing'}) is not what {type(part).__name__} keeps of "
        f"{finished} tasks",
    )
    records = list(state.records.values())
    learning = [records[place].name for place in sorted(state.relearned(settings)) if place < len(records)]
    _require(
        learning == list(state.past_moments),
        f"the optimizer's numbers of {list(state.past_moments)}, while {learning} go on learning",
    )
    for name, stored in state.memory.items():
        if "task" in stored:
            _check_stored(settings, records, f"memory/{name}", stored)


def _check_stored(
    settings: Settings, records: list[TaskRecord], where: str, stored: Mapping[str, Tensor]
) -> None:
    task, h, y = stored["task"], stored["h"], stored["y"]
    right = task.shape == () and task.dtype == torch.int64 and 0 <= int(task) < len(records)
    _require(right, f"{where}: of no task that is known")
    record = records[int(task)]
    entering = record.input_shape if settings.stores_inputs else settings.model.shapes(record.input_shape)[0]
    dtype, regression = settings.torch_dtype, record.kind == "regression"
    _check_form(f"{where}/h", h, torch.empty(1, dtype=dtype).expand(len(h), *entering))
    _check_form(f"{where}/y", y, torch.empty(1, dtype=dtype if regression else torch.int64).expand(len(h)))
    classes = regression or (len(y) > 0 and 0 <= int(y.min()) <= int(y.max()) < record.classes)
    _require(classes, f"{where}/y: classes that task {record.name!r} does not have")
    for name, field in stored.items():
        rows = len(h) if name == "task" else len(field)
        _require(rows == len(h), f"{where}/{name}: {rows} rows for {len(h)} samples")


# --- answers ------------------------------------------------------------------------------------------------


def _check_answers(settings: Settings, state: State, record: TaskRecord) -> None:
    """A task's network gives finite outputs of the right form, and its structure was such a one."""
    where, model = f"task {record.name!r}", settings.model
    x = torch.rand(2, *record.input_shape, generator=torch.Generator(), dtype=settings.torch_dtype)
    x, visible = x.to(settings.device), record.visible(state.k).to(settings.device)
    params = state.params(record, model)
    with torch.no_grad():
        out = model.outputs(params, x, visible)[:, : record.outputs]
        right = out.shape == (2, record.outputs) and bool(torch.isfinite(out).all())
        _require(right, f"{where}: its outputs are not {record.outputs} finite numbers")
        learning = state.progress is not None and record.name in state.progress.tasks
        _require(learning == (record.usage is None), f"{where}: how it weighs components is not there")
        if record.usage is None:
            return
        inputs = list(model.depth_inputs(params, x, visible))
        own = record.params.structure
        usage = model.structure.usage(model.components, own, visible[visible], inputs)
    _check_form(f"usage of {where}", record.usage, usage)
