"""What is noted of a task, so that its inputs can be told from those of others (method/inference.py)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from piaget.data.plain import shown
from piaget.data.tasks import Split, Task
from piaget.errors import SettingError
from piaget.knowledge.state import State, TaskRecord
from piaget.method.inference import Inference, Seen
from piaget.method.settings import Settings
from piaget.method.trees import Tensors, check_finite

HELD = "held"  # of a note: the scores (m,) of held-out samples, the lowest first
BRIGHTEST = 255  # byte
MOST, MOST_HELD = 4096, 512  # samples that statistics are of, and held-out ones


def note(settings: Settings, state: State, record: TaskRecord, task: Task) -> Tensors:
    """The statistics of a task's training data, and how held-out samples are scored by them: those for
    validation or, if there are none, every fifth one of each class (or value) for training, which the
    statistics then leave out."""
    fitted, held = task.train, task.validation
    if held is None:
        order = fitted.y.argsort(stable=True)
        fifth = torch.zeros(len(fitted), dtype=torch.bool)
        fifth[order[4::5]] = True
        if bool(fifth.any()):
            fitted, held = _rows(fitted, ~fifth), _rows(fitted, fifth)
        else:
            held = fitted
    fitted, held = _thinned(fitted, MOST), _thinned(held, MOST_HELD)
    part = settings.inference
    before = itertools.takewhile(lambda one: one is not record, state.records.values())
    alike = [one for one in before if tuple(one.input_shape) == tuple(record.input_shape)]
    earlier = [statistics_of(one.note) for one in alike if one.note is not None]
    noted = part.fit(seen(settings, state, record, fitted.x), fitted.y, earlier)
    if not isinstance(noted, dict) or not all(isinstance(one, Tensor) for one in noted.values()):
        raise SettingError(
            f"{type(part).__name__}.fit returned {shown(noted)}; expected a dictionary of tensors"
        )
    scores = scored(part, noted, seen(settings, state, record, held.x))
    kept = {name: tensor.cpu().clone() for name, tensor in noted.items()}
    kept[HELD] = scores.sort().values
    check_finite(f"task {record.name!r}: what is noted of its inputs", kept)
    return kept


def scored(part: Inference, noted: Tensors, inputs: Seen) -> Tensor:
    """(n,), float64: the scores of inputs; an error, if a part of the user's own returned something else."""
    scores: object = part.scores(noted, inputs)
    n = len(inputs.x)
    if not isinstance(scores, Tensor) or scores.shape != (n,):
        found = f"shape {tuple(scores.shape)}" if isinstance(scores, Tensor) else shown(scores)
        raise SettingError(
            f"{type(part).__name__}.scores returned {found}; expected a tensor of shape ({n},), a score for "
            "each input"
        )
    return scores.detach().cpu().double()


def seen(settings: Settings, state: State, record: TaskRecord, x: Tensor) -> Seen:
    """Inputs x (n, *shape), as the task's own are given, and its network."""
    model, visible = settings.model, record.visible(state.k).to(settings.device)
    return Seen(
        x=record.scaling.inputs(x, settings.device, settings.torch_dtype),
        given=_alike(record.scaling.divisor, x),
        kind=record.kind,
        classes=record.classes,
        model=model,
        params=state.params(record, model),
        visible=visible,
    )


def _alike(divisor: float, x: Tensor) -> Tensor:
    """Inputs in units that all tasks have. (They may be centered and divided each by its own numbers.)

    Tasks of bytes are divided by the largest one that each has seen, and fractions are taken for divided
    already: both become bytes, and these shares of 255.
    """
    if divisor == 1:  # numbers as they are given
        return x.double()
    return (x.double() * divisor if x.is_floating_point() else x.double()) / BRIGHTEST


def statistics_of(noted: Tensors) -> Tensors:
    """What the method itself has noted."""
    return {name: tensor for name, tensor in noted.items() if name != HELD}


def _rows(split: Split, chosen: Tensor) -> Split:
    return Split(split.x[chosen], split.y[chosen])


def _thinned(split: Split, most: int) -> Split:
    """At most so many samples, from all over the split."""
    if len(split) <= most:
        return split
    return _rows(split, torch.linspace(0, len(split) - 1, most).long())


def check_notes(settings: Settings, state: State) -> None:
    """Raises ValueError if notes that were read from a file cannot be."""
    part, learning = settings.inference, state.progress.tasks if state.progress is not None else []
    for record in state.records.values():
        if record.note is None:
            continue
        where = f"task {record.name!r}: what is noted of its inputs"
        if not part.notes or record.name in learning:
            raise ValueError(f"{where} is there, but nothing can have been noted")
        held = record.note.get(HELD)
        right = held is not None and held.ndim == 1 and 1 <= len(held) <= MOST_HELD
        if (
            held is None
            or not right
            or held.dtype != torch.float64
            or not torch.equal(held, held.sort().values)
        ):
            raise ValueError(f"{where}: the scores of held-out samples are not numbers in order")
        if not part.recognizes(statistics_of(record.note), math.prod(record.input_shape), record.classes):
            raise ValueError(f"{where} is not what {type(part).__name__} notes")
        x = torch.rand(2, *record.input_shape, generator=torch.Generator(), dtype=torch.float64)
        scores = scored(part, statistics_of(record.note), seen(settings, state, record, x))
        if not bool(torch.isfinite(scores).all()):
            raise ValueError(f"{where} does not score inputs")


def missing(state: State, tasks: Sequence[str]) -> list[str]:
    """Of which tasks nothing is noted."""
    return [name for name in tasks if state.records[name].note is None]
