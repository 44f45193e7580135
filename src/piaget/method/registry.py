"""The library's adaptations by name: choices.py lists the same names."""

from __future__ import annotations

from piaget.method.adaptation import Adaptation, Frozen, NaiveFineTuning
from piaget.method.consolidation import KroneckerEWC, MergedEWC
from piaget.method.replay import AGEM, DERPlusPlus, DilutedReplay, Replay

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
