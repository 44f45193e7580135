"""Components that adapt to the evidence of all tasks' records: as they are, or from the beginning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from piaget.prior.evidence import first_scales, fit, grown, pruned
from piaget.prior.features import Moments, Standard, standard_of
from piaget.prior.knowledge import USUAL, Adapted, Knowledge, Structure
from piaget.prior.label_terms import LabelTerms
from piaget.prior.likelihoods import ValueTerms
from piaget.prior.records import Record, standardised


def standard_all(records: Mapping[str, Record], flags: bool = True) -> Standard:
    """By all tasks' rows."""
    sums = zip(*(record.moments for record in records.values()), strict=True)
    return standard_of(Moments(*(torch.stack(part).sum(0) for part in sums)), flags)


def adapt(known: Knowledge, thorough: bool = True, patience: int = 1) -> Knowledge:
    """Components by the evidence of all tasks' records; directions are added or left out as it says.

    Not thorough: a few steps, with the directions that there are. patience: of adding directions.

    >>> from piaget import prior
    >>> x, y = torch.eye(6).double(), torch.arange(6).double()
    >>> known = prior.learn(prior.begin("regression", trees=False), "a", x, y)
    >>> prior.adapt(known).adapted.rows
    6
    """
    frame, _, scales = known.begun
    known = replace(known, standard=standard_all(known.records))
    blocks, components = frame.blocks, known.components
    # New rows, or another standard: what was approximated no longer is where it was.
    likelihoods, _ = known.likelihoods.refreshed(components)
    if thorough:
        best = fit(scales, likelihoods, blocks)
        best = grown(pruned(best, blocks), blocks, patience)
    else:
        best = fit(scales, likelihoods, blocks, turns=1, steps=5)
    known = replace(known, scales=best.scales, adapted=Adapted(len(known.records), known.rows, thorough))
    return taken(known, best.likelihoods)


def anew(known: Knowledge) -> Knowledge:
    """All that can be estimated from records, estimated from them alone, whatever their order: as if all
    tasks had come at once. (What labels were settled about is in the records.)

    >>> from piaget import prior
    >>> x, y = torch.eye(6).double(), torch.arange(6).double()
    >>> known = prior.learn(prior.begin("regression", trees=False), "a", x, y)
    >>> prior.anew(known).tasks
    ['a']
    """
    frame, _, _ = known.begun
    names = sorted(known.records)
    before = standard_all({name: known.records[name] for name in names}, flags=False)
    # The frame may be that of a task that is gone.
    records = {name: standardised(known.records[name], before) for name in names}
    nothing = Structure(torch.zeros(known.form.outputs, frame.width, dtype=torch.float64), USUAL.level)
    clean = Knowledge(
        known.form,
        before.frame(frame),
        records,
        dict.fromkeys(names, nothing),
        standard_all(records),
        first_scales(frame.blocks),
    )
    clean = adapt(clean, patience=2)
    order = list(known.records)
    return replace(
        clean,
        records={name: clean.records[name] for name in order},
        structures={name: clean.structures[name] for name in order},
    )


def taken(known: Knowledge, likelihoods: Any) -> Knowledge:
    """With the structures that the likelihoods found."""
    _, standard, _ = known.begun
    if isinstance(likelihoods, ValueTerms):
        noises = dict(zip(known.records, likelihoods.log_noise.tolist(), strict=True))
        structures = {name: known.structures[name]._replace(log_noise=noises[name]) for name in known.records}
        known = replace(known, noise=likelihoods.noise, structures=structures)
    else:
        assert isinstance(likelihoods, LabelTerms)
        weights = likelihoods.w @ standard.map.mT
        structures = {
            name: Structure(weights[t], 0.0, likelihoods.sites_of(t, len(record.y)))
            for t, (name, record) in enumerate(known.records.items())
        }
        known = replace(known, structures=structures)
    return known
