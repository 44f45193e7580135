"""How tasks begin and end: what comes into being, what is decided, what is stored."""

from __future__ import annotations

import torch

from piaget.data.tasks import Task
from piaget.engine.step import new_moments
from piaget.knowledge.state import Progress, State, TaskRecord, params_of, resize_moments, resize_own
from piaget.method.adaptation import Finished
from piaget.method.objective import metric_name, output_width
from piaget.method.settings import Settings
from piaget.method.trees import Tree, map_tree, resize
from piaget.scoring.watch import Watch, encoded, scores, tensors


def begin_initialization(settings: Settings, state: State, tasks: list[Task]) -> None:
    """The first components, and the initial tasks with their fixed random structures."""
    model, generator, dtype = settings.model, state.generator, settings.torch_dtype
    first, k = tasks[0], settings.initial_components
    entering = model.shapes(first.input_shape)[0]
    fresh = [model.components.draw(generator, entering, dtype) for _ in range(k)]
    state.components = _placed(settings, map_tree(lambda *p: torch.stack(p), *fresh))
    state.moments = new_moments(state.components, (k,), settings.device)
    outputs = max(output_width(task.kind, task.classes) for task in tasks)
    state.io = _placed(settings, model.draw_io(generator, first.input_shape, outputs, dtype))
    state.io_moments = new_moments(state.io, device=settings.device)
    owns = [_draw_own(settings, state, task) for task in tasks]
    initial = model.structure.draw_initial(generator, [own["structure"] for own in owns], k)
    for task, own, structure in zip(tasks, owns, initial, strict=True):
        _meet(settings, state, task, own | {"structure": structure})
    _track(settings, state, tasks)


def begin(settings: Settings, state: State, task: Task, candidate: bool) -> None:
    """A new task, and a candidate component for it if expansion proposes one."""
    model = settings.model
    if candidate:
        entering = model.shapes(task.input_shape)[0]
        fresh = _placed(settings, model.components.draw(state.generator, entering, settings.torch_dtype))
        state.components = map_tree(lambda stack, new: torch.cat([stack, new[None]]), state.components, fresh)
        state.moments = map_tree(lambda m: resize(m, 0, len(m) + 1), state.moments)
    _meet(settings, state, task, _draw_own(settings, state, task))
    _track(settings, state, [task], candidate)


def decide(settings: Settings, state: State, task: Task, watch: Watch) -> None:
    """Keeps the candidate component or discards it, by its effect on validation data."""
    record, progress = state.records[task.name], state.progress
    assert progress is not None
    assert task.validation is not None
    k, metric = state.k, metric_name(task.kind)
    data = encoded(settings, state, record, task.validation)
    with_it, without = (scores(settings, state, record, data, count)[metric] for count in (k, k - 1))
    kept = settings.algorithm.expansion.keeps(task.kind, with_it, without)
    watch.decision(record, with_it, without, kept)
    if not kept:
        state.components = map_tree(lambda p: p[:-1].clone(), state.components)
        state.moments = map_tree(lambda p: p[:-1].clone(), state.moments)
        record.k = k - 1

        def cut(tree: Tree) -> Tree:
            return map_tree(torch.clone, resize_own(tree, settings.structure, k - 1, record.outputs))

        record.own = cut(record.own)
        progress.moments[task.name] = resize_moments(progress.moments[task.name], cut)
    progress.candidate = False


def finish(settings: Settings, state: State, task: Task) -> None:
    """Stores what later adaptation and inspection need."""
    record, model = state.records[task.name], settings.model
    x, y = tensors(settings, task.train, task.scaling)
    visible = record.visible(state.k).to(x.device)
    params = params_of(state, record, model.structure)
    with torch.no_grad():
        shown = x[: settings.batch_size or 1024]
        inputs = list(model.depth_inputs(params, shown, visible))
        usage = model.structure.usage(
            model.components, record.own["structure"], visible[visible], inputs
        )  # of those that it may use
        record.usage = usage.cpu().clone()
    finished = Finished(
        index=list(state.records).index(task.name),
        kind=record.kind,
        classes=record.classes,
        x=x,
        y=y,
        model=model,
        params=params,
        visible=visible,
        batch=settings.batch_size or len(x),
        generator=state.generator,
    )
    state.memory = settings.adaptation.remember(state.memory, finished)


def _draw_own(settings: Settings, state: State, task: Task) -> Tree:
    """A new task's encoder, structure and decoder come into being."""
    outputs = output_width(task.kind, task.classes)
    dtype = settings.torch_dtype
    return settings.model.draw_own(state.generator, task.input_shape, state.k, outputs, dtype)


def _meet(settings: Settings, state: State, task: Task, own: Tree) -> None:
    state.records[task.name] = TaskRecord(
        name=task.name,
        kind=task.kind,
        classes=task.classes,
        labels=task.labels,
        input_shape=task.input_shape,
        stream=task.stream,
        k=state.k,
        own=_placed(settings, own),
        scaling=task.scaling,
        encoding=task.encoding,
    )


def _track(settings: Settings, state: State, tasks: list[Task], candidate: bool = False) -> None:
    owns = {task.name: state.records[task.name].own for task in tasks}
    state.progress = Progress(
        tasks=list(owns),
        moments={name: new_moments(own, device=settings.device) for name, own in owns.items()},
        generator=state.generator.get_state(),
        fingerprints={task.name: task.fingerprint() for task in tasks},
        candidate=candidate,
    )


def _placed(settings: Settings, tree: Tree) -> Tree:
    return map_tree(lambda t: t.to(settings.device), tree)
