"""piaget: lifelong learning of compositional structures."""

from piaget.adaptation import Adaptation, Frozen, KroneckerEWC, NaiveFineTuning, Replay
from piaget.cohort import Cohort
from piaget.components import Components, Conv, Dense, Linear, Module
from piaget.errors import LoadError, PiagetError, SettingError, TaskError, UnknownTaskError
from piaget.evaluation import EpochReport, Row
from piaget.expansion import ComponentDropout, Expansion, NoExpansion
from piaget.learner import Learner
from piaget.schedule import Joint, Schedule, Staged
from piaget.settings import Algorithm
from piaget.streams import stream
from piaget.structures import (
    LinearCombination,
    Monolithic,
    SoftGating,
    SoftOrdering,
    Structure,
)
from piaget.tasks import Split, Stream, Task

__version__ = "0.1.0"

__all__ = [
    "Adaptation",
    "Algorithm",
    "Cohort",
    "ComponentDropout",
    "Components",
    "Conv",
    "Dense",
    "EpochReport",
    "Expansion",
    "Frozen",
    "Joint",
    "KroneckerEWC",
    "Learner",
    "Linear",
    "LinearCombination",
    "LoadError",
    "Module",
    "Monolithic",
    "NaiveFineTuning",
    "NoExpansion",
    "PiagetError",
    "Replay",
    "Row",
    "Schedule",
    "SettingError",
    "SoftGating",
    "SoftOrdering",
    "Split",
    "Staged",
    "Stream",
    "Structure",
    "Task",
    "TaskError",
    "UnknownTaskError",
    "stream",
]
