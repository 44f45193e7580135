"""All parts of the library, by role and name: here they are found when they are chosen or loaded.

choices.py lists the same names, without the parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from piaget.method.acceptance import ACCEPTANCES, Acceptance
from piaget.method.adaptation import Adaptation, Frozen, NaiveFineTuning
from piaget.method.components import KINDS, Components
from piaget.method.consolidation import KroneckerEWC, MergedEWC
from piaget.method.encoders import DECODERS, ENCODERS, Decoder, Encoder
from piaget.method.expansion import EXPANSIONS, Expansion
from piaget.method.inference import INFERENCES, Inference
from piaget.method.optimizer import OPTIMIZERS, Optimizer
from piaget.method.rates import RATE_SCHEDULES, RateSchedule
from piaget.method.reduction import REDUCTIONS, Reduction
from piaget.method.replay import AGEM, DERPlusPlus, DilutedReplay, Replay
from piaget.method.starting import CANDIDATE_STARTS, STARTS, CandidateStart, Start
from piaget.method.stopping import KEPT_EPOCHS, STOP_RULES, KeptEpoch, StopRule
from piaget.method.structures import STRUCTURES, Structure

ADAPTATIONS: dict[str, Adaptation] = {
    adaptation.name: adaptation
    for adaptation in (
        Replay(),
        DilutedReplay(),
        DERPlusPlus(),
        AGEM(),
        KroneckerEWC(),
        MergedEWC(),
        NaiveFineTuning(),
        Frozen(),
    )
}


class Family(NamedTuple):
    """The parts that can play one role."""

    base: type  # of which a part of one's own must be an object
    parts: Mapping[str, Any]  # the library's, by name
    usual: str | None = None  # None: it depends on what else is chosen, or must be chosen


FAMILIES: dict[str, Family] = {
    "structure": Family(Structure, STRUCTURES),
    "adaptation": Family(Adaptation, ADAPTATIONS),
    "components": Family(Components, KINDS),
    "expansion": Family(Expansion, EXPANSIONS),
    "encoder": Family(Encoder, ENCODERS, "learned"),
    "decoder": Family(Decoder, DECODERS, "learned"),
    "optimizer": Family(Optimizer, OPTIMIZERS, "adam"),
    "rate_schedule": Family(RateSchedule, RATE_SCHEDULES, "constant"),
    "stop": Family(StopRule, STOP_RULES, "never"),
    "kept_epoch": Family(KeptEpoch, KEPT_EPOCHS, "last"),
    "start": Family(Start, STARTS, "drawn"),
    "candidate_start": Family(CandidateStart, CANDIDATE_STARTS, "drawn"),
    "acceptance": Family(Acceptance, ACCEPTANCES, "all"),
    "reduction": Family(Reduction, REDUCTIONS, "none"),
    "inference": Family(Inference, INFERENCES, "none"),
}
