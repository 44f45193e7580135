"""How tasks begin and end: what comes into being, what is kept or discarded, what is stored."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from piaget.data.tasks import Split, Task
from piaget.errors import NotFinite, SettingError, TaskError, type_of
from piaget.knowledge import noting
from piaget.knowledge.state import Attempt, Progress, State, TaskRecord, tensors
from piaget.method.adaptation import Finished, Memory
from piaget.method.batching import explained
from piaget.method.inference import Inference
from piaget.method.objective import output_width
from piaget.method.parameters import (
    TASK_ROLES,
    Moments,
    SharedParams,
    TaskParams,
    new_moments,
    shared_moments,
    task_moments,
)
from piaget.method.resolving import with_inference
from piaget.method.settings import Settings
from piaget.method.starting import NewTask, PastTask
from piaget.method.trees import T, Tensors, check_finite, leaves, map_tree, ordered, resize
from piaget.recording import observed


def begin_initialization(settings: Settings, state: State, tasks: list[Task]) -> None:
    """The first components, and the initial tasks with their fixed random structures."""
    model, generator, dtype = settings.model, state.generator, settings.torch_dtype
    first, k = tasks[0], settings.initial_components
    slots = settings.optimizer.slots
    entering = model.shapes(first.input_shape)[0]
    fresh = [model.components.draw(generator, entering, dtype) for _ in range(k)]
    stacked = {name: torch.stack([params[name] for params in fresh]) for name in fresh[0]}
    state.components = _placed(settings, stacked)
    state.moments = new_moments(slots, state.components, k)
    outputs = max(output_width(task.kind, task.classes) for task in tasks)
    shared = model.draw_shared(generator, first.input_shape, outputs, dtype)
    state.shared = _placed(settings, shared)
    state.shared_moments = shared_moments(slots, state.shared)
    drawn = [_draw_task(settings, state, task) for task in tasks]
    initial = model.structure.draw_initial(generator, [params.structure for params in drawn], k)
    for task, params, structure in zip(tasks, drawn, initial, strict=True):
        _meet(settings, state, task, params._replace(structure=structure))
    _track(settings, state, tasks)
    observed("begin", state)


def begin(settings: Settings, state: State, task: Task, candidate: bool) -> None:
    """A new task; `candidate`: and a component on trial for it."""
    model, common = settings.model, state.common
    if candidate:
        entering = model.shapes(task.input_shape)[0]
        fresh = _placed(settings, model.components.draw(state.generator, entering, settings.torch_dtype))
        fresh = settings.candidate_start.begin(fresh, state.components, total_usage(state))
        state.components = {n: torch.cat([stack, fresh[n][None]]) for n, stack in state.components.items()}
        state.moments = map_tree(lambda m: resize(m, 0, len(m) + 1), state.moments)
    drawn = _placed(settings, _draw_task(settings, state, task))
    _meet(settings, state, task, settings.start.begin(_newcomer(settings, state, task, drawn)))
    _track(settings, state, [task], candidate)
    assert state.progress is not None
    if settings.attempts > 1 and settings.changes_common and not candidate:
        state.progress.origin = common
    observed("begin", state)


def begin_again(settings: Settings, state: State, task: Task) -> None:
    """The task as if it were new, with a candidate component; what the first attempt came to is kept."""
    progress = state.progress
    assert progress is not None
    record = state.records.pop(task.name)
    first = Attempt(record.params, progress.moments[task.name], state.common, progress.generator)
    if progress.origin is not None:
        state.put(progress.origin)
    begin(settings, state, task, candidate=True)
    assert state.progress is not None
    state.progress.epoch, state.progress.counts = progress.epoch, progress.counts
    state.progress.first = first


def begin_update(settings: Settings, state: State, task: Task) -> None:
    """A task that is known is learned further: from the parameters that it has, with the components that it
    may use. What was stored of it goes: when it ends, samples of its data as it is then take their place."""
    place = list(state.records).index(task.name)
    state.memory = {name: kept for name, kept in state.memory.items() if not _is_of(kept, place)}
    state.past_moments = {name: kept for name, kept in state.past_moments.items() if name != task.name}
    state.records[task.name] = replace(state.records[task.name], usage=None, note=None, temperature=1.0)
    _track(settings, state, [task])


def _is_of(stored: Tensors, place: int) -> bool:
    """Are these samples of the task with this place among all tasks?"""
    return "task" in stored and int(stored["task"]) == place


def forget(settings: Settings, state: State, tasks: list[str]) -> None:
    """Tasks are gone, with their parameters and what was stored of them. Components stay, as long as there is
    a task, or if they began as a library's: what they learned from these cannot be taken out of them."""
    for name in tasks:
        if name in state.records:
            place = list(state.records).index(name)
            state.memory = settings.adaptation.forgotten(state.memory, place)
        state.past_moments = {one: kept for one, kept in state.past_moments.items() if one != name}
        state.records.pop(name, None)
        state.pending.pop(name, None)
    if not state.records and settings.components_from is None:
        state.components, state.memory, state.shared = {}, {}, SharedParams({}, {})
        state.moments, state.shared_moments, state.merged = Moments({}, torch.zeros(0)), {}, ()


def total_usage(state: State) -> Tensor:
    """How much all tasks together use each component: (k,)."""
    usages = (record.usage for record in state.records.values() if record.usage is not None)
    none = torch.zeros(state.k)  # of components from a library, before the first task
    return torch.stack([none, *(resize(usage.abs().mean(1), 0, state.k) for usage in usages)]).sum(0)


def _newcomer(settings: Settings, state: State, task: Task, drawn: TaskParams) -> NewTask:
    """A new task, as a start sees it."""

    def sample(count: int) -> tuple[Tensor, Tensor]:
        rows = torch.randperm(len(task.train), generator=state.generator)[:count]
        return tensors(settings, Split(task.train.x[rows], task.train.y[rows]), task.scaling)

    return NewTask(
        kind=task.kind,
        classes=task.classes,
        input_shape=task.input_shape,
        model=settings.model,
        drawn=drawn,
        components=state.components,
        shared=state.shared,
        past=[PastTask(r.params, r.visible(state.k), r.input_shape) for r in state.records.values()],
        sample=sample,
    )


def discard_candidate(settings: Settings, state: State, task: Task) -> None:
    """The component on trial was not kept."""
    record, progress, k = state.records[task.name], state.progress, state.k - 1
    assert progress is not None
    if progress.first is not None:
        state.return_to_first()
        return
    state.components = map_tree(lambda p: p[:-1].clone(), state.components)
    state.moments = map_tree(lambda p: p[:-1].clone(), state.moments)
    record.k = k

    def cut(params: TaskParams) -> TaskParams:
        return map_tree(torch.clone, settings.model.resized(params, k, record.outputs))

    record.params = cut(record.params)
    of_roles = progress.moments[task.name]
    slots = {
        slot: cut(TaskParams(*(of_roles[role].slots[slot] for role in TASK_ROLES)))
        for slot in settings.optimizer.slots
    }
    progress.moments[task.name] = {
        role: Moments({slot: slots[slot][place] for slot in slots}, of_roles[role].updates)
        for place, role in enumerate(TASK_ROLES)
    }


def finish(settings: Settings, state: State, task: Task) -> None:
    """Stores what later adaptation and inspection need."""
    record, model = state.records[task.name], settings.model
    x, y = tensors(settings, task.train, task.scaling)
    record.usage = usage_of(settings, state, task)
    finished = Finished(
        index=list(state.records).index(task.name),
        kind=record.kind,
        classes=record.classes,
        x=x,
        y=y,
        model=model,
        params=state.params(record, model),
        visible=record.visible(state.k).to(x.device),
        batch=settings.batch_size or len(x),
        generator=state.generator,
        stores_inputs=settings.stores_inputs,
    )
    try:
        memory = settings.adaptation.remember(state.memory, finished)
    except RuntimeError as error:  # EWC takes gradients sample by sample
        raise explained(error) from error.__cause__
    _check_memory(settings, memory)
    state.memory = memory
    if settings.inference.notes:
        record.note = noting.note(settings, state, record, task)
    assert state.progress is not None
    moments, relearned = state.past_moments | state.progress.moments, state.relearned(settings)
    state.past_moments = {
        name: moments.get(name) or task_moments(settings.optimizer.slots, record.params)
        for i, (name, record) in enumerate(state.records.items())
        if i in relearned
    }


def note_inputs(
    settings: Settings, state: State, tasks: list[Task], inference: str | Inference | None
) -> Settings:
    """Notes of finished tasks what inference needs, in a way that the settings which are returned have."""
    now = settings.inference
    if inference is None:
        inference = now if now.notes else "inputs"
    settings = with_inference(settings, inference)
    if settings.inference != now:
        for name, record in state.records.items():
            state.records[name] = replace(record, note=None)
    given = {task.name: task for task in tasks}
    # In this order: a note depends on those of earlier tasks.
    for name, record in list(state.records.items()):
        if name not in given:
            continue
        task = given[name]
        form = (tuple(record.input_shape), record.kind, record.classes, record.scaling, record.encoding)
        if form != (task.input_shape, task.kind, task.classes, task.scaling, task.encoding):
            raise TaskError(
                f"task {task.name!r}: its inputs, classes or scaling are not those of the task that was "
                "learned; expected the same data"
            )
        settings.inference.check_kind(task.kind)
        state.records[task.name] = replace(record, note=noting.note(settings, state, record, task))
    return settings


def usage_of(settings: Settings, state: State, task: Task) -> Tensor:
    """How a task weighs those components that it may use, on some of its training samples."""
    record, model = state.records[task.name], settings.model
    rows = settings.batch_size or 1024
    shown, _ = tensors(settings, Split(task.train.x[:rows], task.train.y[:rows]), task.scaling)
    visible = record.visible(state.k).to(shown.device)
    with torch.no_grad():
        inputs = list(model.depth_inputs(state.params(record, model), shown, visible))
        usage = model.structure.usage(model.components, record.params.structure, visible[visible], inputs)
    check_finite(f"task {task.name!r}: the weights of components", usage)
    return usage.cpu().clone()


def _check_memory(settings: Settings, memory: Memory) -> None:
    """Is it what can be saved?"""
    right = isinstance(memory, dict) and all(
        isinstance(name, str)
        and isinstance(tensors, dict)
        and all(isinstance(key, str) and isinstance(tensor, torch.Tensor) for key, tensor in tensors.items())
        for name, tensors in memory.items()
    )
    if not right:
        raise SettingError(
            f"{type(settings.adaptation).__name__}.remember returned {type_of(memory)}; expected a "
            "dictionary of dictionaries of tensors, with texts as keys"
        )
    check_finite(f"numbers that {type(settings.adaptation).__name__} stores", memory)


def _draw_task(settings: Settings, state: State, task: Task) -> TaskParams:
    """A new task's encoder, structure and decoder come into being."""
    outputs = output_width(task.kind, task.classes)
    dtype = settings.torch_dtype
    return settings.model.draw_task(state.generator, task.input_shape, state.k, outputs, dtype)


def _meet(settings: Settings, state: State, task: Task, params: TaskParams) -> None:
    state.records[task.name] = TaskRecord(
        name=task.name,
        kind=task.kind,
        classes=task.classes,
        labels=task.labels,
        input_shape=task.input_shape,
        stream=task.stream,
        k=state.k,
        params=_placed(settings, params),
        scaling=task.scaling,
        encoding=task.encoding,
    )


def _track(settings: Settings, state: State, tasks: list[Task], candidate: bool = False) -> None:
    slots = settings.optimizer.slots
    params = {task.name: state.records[task.name].params for task in tasks}
    state.progress = Progress(
        tasks=list(params),
        moments={name: task_moments(slots, own) for name, own in params.items()},
        generator=state.generator.get_state(),
        fingerprints={task.name: task.fingerprint() for task in tasks},
        candidate=candidate,
    )


def _placed(settings: Settings, tree: T) -> T:
    """Where it is computed, and in the order in which it would be loaded: compiled steps depend on it."""
    if any(bool(tensor.isnan().any()) for tensor in leaves(tree)):
        raise NotFinite("new parameters, as they were drawn, are not numbers")
    return map_tree(lambda t: t.to(settings.device), ordered(tree))
