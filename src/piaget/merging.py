"""Two learners become one: all tasks of both, with the components of both, and equal ones only once.

A component is a function that any task may apply at any depth, so its hidden units cannot be rearranged
without every other component's being so, too. Components are therefore compared as functions: by their
outputs for what enters them where they are used. The first learner's stay as they are; one of the second's is
left out if one of the first's can stand in for it, in all of the second's tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from piaget.data.tasks import Task
from piaget.errors import SettingError, TaskError, type_of
from piaget.knowledge.checks import as_tasks
from piaget.knowledge.consistency import check_state
from piaget.knowledge.state import Origin, State, TaskRecord
from piaget.learner import Learner, learner_of
from piaget.method.adaptation import Join, stored_samples
from piaget.method.parameters import Moments, Role, TaskParams
from piaget.method.settings import Settings, differing
from piaget.method.trees import Tensors, map_tree
from piaget.method.values import NOT_NEGATIVE, check_given

SAMPLES = 256  # of each task, at most, that components are compared by
# What two learners may differ in: nothing of it tells how their networks compute.
FREE = frozenset(["seed", "initial_tasks", "initial_components", "initial_epochs", "components_from"])


def merge(
    a: Learner, b: Learner, *, tolerance: float = 0.0, prefix: str = "", data: Iterable[Task] = ()
) -> Learner:
    """A learner with all tasks of two, which have the same settings but for their seeds.

    tolerance: a component of b is left out if one of a can stand in for it: its outputs, and then the outputs
    of each of b's tasks, differ by no more than this, relatively (root mean square, on stored samples). With
    0, only equal components are merged. Tasks of a never change.
    prefix: put before the names of b's tasks, where both have tasks of the same name.
    data: tasks of a or b whose data is used where no samples are stored (by methods without replay); those of
    b under their new names, prefix included.

    The new learner goes on as `a` would have. Memories of both are kept.

    Raises `SettingError` for learners that differ in more than their seeds, or have not learned their tasks
    to the end, and for a tolerance where no samples are known; `TaskError`, if both have a task of one name.

    >>> x, y = np.arange(80.0).reshape(40, 2), np.arange(40) % 2
    >>> tasks = piaget.streams.from_arrays(x, y, groups=["north"] * 20 + ["south"] * 20)
    >>> a, b = (piaget.Learner(seed=seed, initial_tasks=1, epochs=2, width=8) for seed in (0, 1))
    >>> rows = a.learn(tasks[0]) + b.learn(tasks[1])
    >>> both = piaget.merge(a, b)
    >>> both
    Learner(soft-ordering/er/dynamic, 2 tasks learned, 8 components)
    >>> np.allclose(both.predict_proba(x, task="south"), b.predict_proba(x, task="south"))
    True
    """
    for one in (a, b):
        if not isinstance(one, Learner):
            raise SettingError(f"{type_of(one)} cannot be merged; expected a piaget.Learner")
    if a is b:
        raise SettingError("a learner cannot be merged with itself; expected two")
    tolerance = check_given("tolerance", tolerance, NOT_NEGATIVE)
    settings, first, second = a.settings, a.state.snapshot(), b.state.snapshot()
    _check_settings(a.settings, b.settings)
    _check_states(first, second)
    names = _names(first, second, prefix)
    given = {task.name: task for task in as_tasks("data", data)}
    samples = _samples(settings, first, second, names, given, tolerance)
    places = _places(settings, first, second, samples, tolerance)
    state = _joined(settings, first, second, places, names)
    state.merged = (*first.merged, Origin(b.settings.seed, b.settings.components_from), *second.merged)
    check_state(settings, state)
    return learner_of(Learner, settings, state)


# --- can they be? -------------------------------------------------------------------------------------------


def _check_settings(one: Settings, other: Settings) -> None:
    if told := differing(one, other, FREE):
        raise SettingError(f"the learners differ in their settings ({told}); expected the same but for seeds")
    structure = one.structure
    if not structure.expandable or set(structure.axes) - set(structure.absent):
        raise SettingError(
            f"structure {structure.name!r} cannot be merged: it does not say what leaves a component out "
            "(`Structure.absent`)"
        )


def _check_states(first: State, second: State) -> None:
    for state in (first, second):
        if state.progress is not None or state.pending or not state.records:
            raise SettingError(
                "a learner is in the middle of a task, or has pending tasks, or none at all; expected two "
                "that have learned theirs to the end"
            )
    for part in ("encoder", "decoder"):
        one, other = getattr(first.shared, part), getattr(second.shared, part)
        if one.keys() != other.keys() or not all(_equal(one[name], other[name]) for name in one):
            raise SettingError(
                f"each learner has a {part} of its own that all its tasks share; expected the same"
            )
    shapes = [{name: p.shape[1:] for name, p in state.components.items()} for state in (first, second)]
    if shapes[0] != shapes[1]:
        raise SettingError("the components of the learners have different shapes; expected the same")


def _names(first: State, second: State, prefix: str) -> dict[str, str]:
    """The new names of the second learner's tasks."""
    if not isinstance(prefix, str):
        raise SettingError(f"prefix={prefix!r}; expected a text")
    names = {name: prefix + name for name in second.records}
    clashing = [new for new in names.values() if new in first.records]
    if clashing:
        more = f" and {len(clashing) - 1} more" if len(clashing) > 1 else ""
        raise TaskError(
            f"both learners have a task {clashing[0]!r}{more}; give the second one's tasks other names: "
            "merge(a, b, prefix='b/')"
        )
    return names


def _equal(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other.to(one.device))


# --- which components are the same? -------------------------------------------------------------------------

Samples = dict[str, Tensor]  # of each task, as they enter depth 0


def _samples(
    settings: Settings,
    first: State,
    second: State,
    names: Mapping[str, str],  # new ones of the second one's tasks
    data: Mapping[str, Task],
    tolerance: float,
) -> tuple[Samples, Samples]:
    """Of the tasks of each learner: stored ones, or of the data that is given."""
    found: tuple[Samples, Samples] = ({}, {})
    for state, samples in zip((first, second), found, strict=True):
        records = list(state.records.values())
        for stored in stored_samples(state.memory):
            record = records[stored.task]
            h = stored.h[:SAMPLES]
            samples[record.name] = _encoded(settings, state, record, h) if settings.stores_inputs else h
        for record in records:
            task = data.get(names[record.name] if state is second else record.name)
            if task is not None and tuple(record.input_shape) == task.input_shape:
                x = record.scaling.inputs(task.train.x[:SAMPLES], settings.device, settings.torch_dtype)
                samples[record.name] = _encoded(settings, state, record, x)
    lacking = [name for name in second.records if name not in found[1]]
    if tolerance > 0 and lacking:
        raise SettingError(
            f"no samples of task {lacking[0]!r} are stored, so nobody can say how a tolerance would "
            "change it; give them: merge(a, b, tolerance=..., data=tasks), or tolerance=0"
        )
    return found


def _encoded(settings: Settings, state: State, record: TaskRecord, x: Tensor) -> Tensor:
    with torch.no_grad():
        return settings.model.encode(state.params(record, settings.model).encoder, x)


def _entering(settings: Settings, state: State, samples: Samples) -> Iterator[Tensor]:
    """What enters components in this learner's tasks, at all depths."""
    for name, h in samples.items():
        record = state.records[name]
        visible = record.visible(state.k).to(h.device)
        yield from settings.model.depth_inputs_of_encoded(state.params(record, settings.model), h, visible)


@torch.no_grad()
def distances(settings: Settings, first: State, second: State, samples: tuple[Samples, Samples]) -> Tensor:
    """(ka, kb): how far the outputs of components differ, relative to their size; 0 for equal parameters."""
    sums = torch.zeros(first.k, second.k, dtype=torch.float64)
    sizes = torch.zeros_like(sums)
    apply = settings.components.apply
    for state, of_tasks in zip((first, second), samples, strict=True):
        for h in _entering(settings, state, of_tasks):
            one, other = (
                apply(components, h).double().transpose(0, 1).flatten(1).cpu()
                for components in (first.components, second.components)
            )  # (k, numbers)
            squares = one.square().sum(1)[:, None] + other.square().sum(1)
            sums += (squares - 2 * one @ other.T).clamp(min=0)
            sizes += squares / 2
    apart = (sums / sizes.clamp(min=1e-300)).sqrt()
    for i in range(first.k):
        for j in range(second.k):
            if all(_equal(p[i], second.components[name][j]) for name, p in first.components.items()):
                apart[i, j] = 0.0
            elif not samples[1] or not bool(sizes[i, j] > 0):
                apart[i, j] = math.inf  # nothing is known of them
    return apart


def _places(
    settings: Settings, first: State, second: State, samples: tuple[Samples, Samples], tolerance: float
) -> dict[int, int]:
    """Which components of the second learner are left out, and which of the first's stand in for them.

    Pairs are tried, the nearest first; one is taken back if some task's outputs would change too much.
    """
    apart = distances(settings, first, second, samples)
    pairs: dict[int, int] = {}
    order = sorted((float(apart[i, j]), i, j) for i in range(first.k) for j in range(second.k))
    for distance, i, j in order:
        if i in pairs.values() or j in pairs:
            continue
        exact = all(_equal(p[i], second.components[name][j]) for name, p in first.components.items())
        if exact:
            pairs[j] = i
        elif distance <= tolerance and tolerance > 0:
            tried = pairs | {j: i}
            if _change(settings, first, second, samples[1], tried) <= tolerance:
                pairs = tried
    return pairs


def _change(
    settings: Settings, first: State, second: State, samples: Samples, pairs: Mapping[int, int]
) -> float:
    """By how much outputs of the second learner's tasks change at most, relatively, with stand-ins."""
    stand_ins = dict(second.components)
    for name, stack in second.components.items():
        stack = stack.clone()
        for j, i in pairs.items():
            stack[j] = first.components[name][i].to(stack.device)
        stand_ins[name] = stack
    worst, model = 0.0, settings.model
    for name, h in samples.items():
        record = second.records[name]
        params, visible = second.params(record, model), record.visible(second.k).to(h.device)
        before, after = (
            model.outputs_of_encoded(params._replace(components=components), h, visible)[:, : record.outputs]
            for components in (second.components, stand_ins)
        )
        worst = max(worst, float((after - before).norm() / before.norm().clamp(min=1e-30)))
    return worst


# --- the new state ------------------------------------------------------------------------------------------


def _joined(
    settings: Settings, first: State, second: State, pairs: Mapping[int, int], names: Mapping[str, str]
) -> State:
    new = [j for j in range(second.k) if j not in pairs]
    k = first.k + len(new)
    places = torch.tensor([pairs.get(j, first.k + new.index(j) if j in new else -1) for j in range(second.k)])

    def beside(one: Tensor, other: Tensor) -> Tensor:
        return torch.cat([one, other[new].to(one.device)])

    state = first.snapshot()
    state.components = map_tree(beside, first.components, second.components)
    state.moments = map_tree(beside, first.moments, second.moments)
    state.memory = settings.adaptation.merged(
        first.memory, second.memory, Join(len(first.records), k, places)
    )
    state.steps = first.steps + second.steps
    for name, record in second.records.items():
        moved = _moved(settings, record, k, places)
        state.records[names[name]] = replace(moved, name=names[name])
        if name in second.past_moments:
            moments = second.past_moments[name]
            moved_moments = _moved_moments(settings, moments, k, places[: record.k])
            state.past_moments = state.past_moments | {names[name]: moved_moments}
    return state


def _moved(settings: Settings, record: TaskRecord, k: int, places: Tensor) -> TaskRecord:
    """A task of the second learner, among k components: those that it has not known have no part in it."""
    structure, known = settings.structure, places[: record.k]
    own: Tensors = {
        name: _placed(p, structure.axes[name], structure.absent[name], k, known)
        if name in structure.axes
        else p
        for name, p in record.params.structure.items()
    }
    usage = None if record.usage is None else _placed(record.usage, 0, 0.0, k, known)
    params: Any = TaskParams(record.params.encoder, own, record.params.decoder)
    return replace(record, k=k, params=params, usage=usage)


def _moved_moments(
    settings: Settings, moments: dict[Role, Moments], k: int, known: Tensor
) -> dict[Role, Moments]:
    """What an optimizer keeps of such a task: of components that it has not known, nothing yet."""
    axes = settings.structure.axes
    slots = {
        slot: {name: _placed(t, axes[name], 0.0, k, known) if name in axes else t for name, t in of.items()}
        for slot, of in moments["structure"].slots.items()
    }
    return moments | {"structure": moments["structure"]._replace(slots=slots)}


def _placed(tensor: Tensor, axis: int, absent: float, k: int, known: Tensor) -> Tensor:
    """A tensor with an axis for the components that a task knows, with one for all k."""
    shape = list(tensor.shape)
    shape[axis] = k
    kept = tensor.narrow(axis, 0, len(known))
    return tensor.new_full(shape, absent).index_copy_(axis, known.to(tensor.device), kept)
