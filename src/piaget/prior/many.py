"""Many tasks' rows at once: a table. Components adapt once, at the end, instead of on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from piaget.prior.adapting import adapt, anew, standard_all
from piaget.prior.evidence import first_scales
from piaget.prior.features import Bumps, frame_of
from piaget.prior.knowledge import Bent, Knowledge
from piaget.prior.learning import _trimmed, checked, expected
from piaget.prior.records import record_of, together


def learn_many(known: Knowledge, rows: Mapping[str, tuple[Tensor, Tensor]]) -> Knowledge:
    """Learns new tasks and more rows of known ones: {task: (x (n, inputs), y (n,))}.

    The records are those of `learn` and `update`. Whatever the order of new tasks, the same comes out, if
    nothing was known before.
    """
    given = {task: checked(known, task, x, y) for task, (x, y) in rows.items()}
    if not given:
        return known
    fresh = not known.records
    if known.frame is None:
        # As if all were one task's rows: the order of tasks makes no difference.
        x, y = (torch.cat([pair[i] for pair in given.values()]) for i in range(2))
        known = replace(known, frame=frame_of(x, y))
    assert known.frame is not None
    frame, usual = known.frame, expected(known)
    records, structures = dict(known.records), dict(known.structures)
    for task, (x, y) in given.items():
        new = record_of(frame, x, y)
        records[task] = together(records[task], new) if task in records else new
        structures.setdefault(task, usual)
    known = replace(
        known,
        records=records,
        structures=structures,
        standard=known.standard or standard_all(records),
        scales=known.scales or first_scales(frame.blocks),
    )
    known = anew(known) if fresh else adapt(known)
    for task in given:
        known = _trimmed(known, task)
    if known.bent is not None:
        bumps, bent = known.bent
        known = replace(known, bent=Bent(bumps, learn_many(bent, _beside(bumps, given))))
    return known


def _beside(bumps: Bumps, rows: Mapping[str, tuple[Tensor, Tensor]]) -> dict[str, tuple[Tensor, Tensor]]:
    return {task: (bumps.beside(x), y) for task, (x, y) in rows.items()}
