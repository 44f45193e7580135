"""piaget: lifelong learning of compositional structures.

Names are loaded when they are first used: the command line need not wait for PyTorch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from piaget import lab as lab, streams as streams
    from piaget.cohort import Cohort as Cohort
    from piaget.data.tasks import (
        Split as Split,
        Stream as Stream,
        Task as Task,
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
    from piaget.learner import Learner as Learner
    from piaget.method.adaptation import (
        Adaptation as Adaptation,
        Frozen as Frozen,
        KroneckerEWC as KroneckerEWC,
        NaiveFineTuning as NaiveFineTuning,
        Replay as Replay,
    )
    from piaget.method.components import (
        Components as Components,
        Conv as Conv,
        Dense as Dense,
        Linear as Linear,
        Module as Module,
    )
    from piaget.method.expansion import (
        ComponentDropout as ComponentDropout,
        Expansion as Expansion,
        NoExpansion as NoExpansion,
    )
    from piaget.method.schedule import (
        Joint as Joint,
        Schedule as Schedule,
        Staged as Staged,
    )
    from piaget.method.settings import Algorithm as Algorithm
    from piaget.method.structures import (
        LinearCombination as LinearCombination,
        Monolithic as Monolithic,
        SoftGating as SoftGating,
        SoftOrdering as SoftOrdering,
        Structure as Structure,
    )
    from piaget.scoring.rows import Row as Row
    from piaget.scoring.watch import EpochReport as EpochReport
    from piaget.streams import stream as stream

__version__ = "0.1.0"

_HOMES = {
    "piaget.method.adaptation": ("Adaptation", "Frozen", "KroneckerEWC", "NaiveFineTuning", "Replay"),
    "piaget.cohort": ("Cohort",),
    "piaget.method.components": ("Components", "Conv", "Dense", "Linear", "Module"),
    "piaget.errors": (
        "DataError",
        "DataNote",
        "LoadError",
        "PiagetError",
        "SettingError",
        "TaskError",
        "UnknownTaskError",
    ),
    "piaget.scoring.rows": ("Row",),
    "piaget.scoring.watch": ("EpochReport",),
    "piaget.method.expansion": ("ComponentDropout", "Expansion", "NoExpansion"),
    "piaget.learner": ("Learner",),
    "piaget.method.schedule": ("Joint", "Schedule", "Staged"),
    "piaget.method.settings": ("Algorithm",),
    "piaget.streams": ("stream",),
    "piaget.method.structures": (
        "LinearCombination",
        "Monolithic",
        "SoftGating",
        "SoftOrdering",
        "Structure",
    ),
    "piaget.data.tasks": ("Split", "Stream", "Task"),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name in ("lab", "streams"):
        return importlib.import_module(f"piaget.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'piaget' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_MODULE_OF, "lab", "streams"]
