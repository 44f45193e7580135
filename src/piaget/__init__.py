"""piaget: lifelong learning of compositional structures.

Names are loaded when they are first used: the command line need not wait for PyTorch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from piaget import streams as streams
    from piaget.adaptation import (
        Adaptation as Adaptation,
        Frozen as Frozen,
        KroneckerEWC as KroneckerEWC,
        NaiveFineTuning as NaiveFineTuning,
        Replay as Replay,
    )
    from piaget.cohort import Cohort as Cohort
    from piaget.components import (
        Components as Components,
        Conv as Conv,
        Dense as Dense,
        Linear as Linear,
        Module as Module,
    )
    from piaget.errors import (
        DataError as DataError,
        DataNote as DataNote,
        LoadError as LoadError,
        PiagetError as PiagetError,
        SettingError as SettingError,
        TaskError as TaskError,
        UnknownTaskError as UnknownTaskError,
    )
    from piaget.evaluation import EpochReport as EpochReport, Row as Row
    from piaget.expansion import (
        ComponentDropout as ComponentDropout,
        Expansion as Expansion,
        NoExpansion as NoExpansion,
    )
    from piaget.learner import Learner as Learner
    from piaget.schedule import (
        Joint as Joint,
        Schedule as Schedule,
        Staged as Staged,
    )
    from piaget.settings import Algorithm as Algorithm
    from piaget.streams import stream as stream
    from piaget.structures import (
        LinearCombination as LinearCombination,
        Monolithic as Monolithic,
        SoftGating as SoftGating,
        SoftOrdering as SoftOrdering,
        Structure as Structure,
    )
    from piaget.tasks import (
        Split as Split,
        Stream as Stream,
        Task as Task,
    )

__version__ = "0.1.0"

_HOMES = {
    "piaget.adaptation": ("Adaptation", "Frozen", "KroneckerEWC", "NaiveFineTuning", "Replay"),
    "piaget.cohort": ("Cohort",),
    "piaget.components": ("Components", "Conv", "Dense", "Linear", "Module"),
    "piaget.errors": (
        "DataError",
        "DataNote",
        "LoadError",
        "PiagetError",
        "SettingError",
        "TaskError",
        "UnknownTaskError",
    ),
    "piaget.evaluation": ("EpochReport", "Row"),
    "piaget.expansion": ("ComponentDropout", "Expansion", "NoExpansion"),
    "piaget.learner": ("Learner",),
    "piaget.schedule": ("Joint", "Schedule", "Staged"),
    "piaget.settings": ("Algorithm",),
    "piaget.streams": ("stream",),
    "piaget.structures": ("LinearCombination", "Monolithic", "SoftGating", "SoftOrdering", "Structure"),
    "piaget.tasks": ("Split", "Stream", "Task"),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name == "streams":
        return importlib.import_module("piaget.streams")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'piaget' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_MODULE_OF, "streams"]
