"""How much of an adaptation is taken over: what an `Acceptance` is told, and its answer, checked."""

from __future__ import annotations

import torch

from piaget.data.plain import is_number, plain
from piaget.data.tasks import Task
from piaget.errors import SettingError
from piaget.knowledge.state import Common, State
from piaget.method import objective
from piaget.method.acceptance import Adapted, Judgement, judged
from piaget.method.settings import Settings
from piaget.scoring.scores import TaskNetwork


def accepted_share(settings: Settings, state: State, task: Task, before: Common) -> float:
    """What the acceptance says of the adaptation that has just ended on a task."""
    part, after = settings.acceptance, state.common

    def judge(share: float) -> list[Judgement]:
        still = state.snapshot()
        still.put(before.towards(after, _checked(part, share)))
        return [_of_current(settings, still, task), *_of_past(settings, still)]

    return _checked(part, part.share(Adapted(before.components, after.components, judge)))


def _checked(part: object, share: object) -> float:
    value = plain(share)
    if not is_number(value) or not 0 <= value <= 1:
        raise SettingError(f"{type(part).__name__}: a share of {share!r}; expected a number from 0 to 1")
    return float(value)


def _of_current(settings: Settings, state: State, task: Task) -> Judgement:
    """By validation data. While a component is on trial, in the mean of all passes: with it, and without."""
    assert task.validation is not None
    progress, network = state.progress, TaskNetwork(settings, state, state.records[task.name])
    h, y = network.encoded(task.validation)
    trial = progress is not None and progress.candidate
    passes = settings.algorithm.expansion.passes if trial else (False,)
    outputs = [network.outputs_of_encoded(h, state.k - hidden) for hidden in passes]
    judgements = [_judgement(network, out, y) for out in outputs]
    losses, errors = (
        torch.stack(values).mean(0) for values in zip(*(j[1:] for j in judgements), strict=True)
    )
    return Judgement(task.name, losses, errors)


def _of_past(settings: Settings, state: State) -> list[Judgement]:
    """By stored samples, of those tasks that have some."""
    judgements, records = [], list(state.records.values())
    for stored in judged(settings.adaptation.replay(state.memory), settings.acceptance.held_out):
        network = TaskNetwork(settings, state, records[stored.task]).uncalibrated
        h = network.encode(stored.h) if settings.stores_inputs else stored.h
        judgements.append(_judgement(network, network.outputs_of_encoded(h), stored.y))
    return judgements


def _judgement(network: TaskNetwork, out: torch.Tensor, y: torch.Tensor) -> Judgement:
    record, losses = network.record, network.losses(out, y)
    wrong = (
        losses if record.kind == "regression" else (objective.predict(record.kind, out) != y).to(out.dtype)
    )
    return Judgement(record.name, losses, wrong)
