"""piaget: lifelong learning of compositional structures.

Names are loaded when they are first used: the command line need not wait for PyTorch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names as below, for type checkers and editors (a test compares the two)
    from piaget import lab as lab, streams as streams
    from piaget.cohort import (
        Cohort as Cohort,
    )
    from piaget.data.tasks import (
        Split as Split,
        Stream as Stream,
        Task as Task,
    )
    from piaget.errors import (
        DataError as DataError,
        DataNote as DataNote,
        Diverged as Diverged,
        LoadError as LoadError,
        NotFinite as NotFinite,
        PiagetError as PiagetError,
        SettingError as SettingError,
        TaskError as TaskError,
        UnknownTaskError as UnknownTaskError,
    )
    from piaget.knowledge.sizes import (
        Sizes as Sizes,
    )
    from piaget.learner import (
        Learner as Learner,
        load as load,
    )
    from piaget.merging import (
        merge as merge,
    )
    from piaget.method.acceptance import (
        Acceptance as Acceptance,
        Adapted as Adapted,
        Judgement as Judgement,
        TakeAll as TakeAll,
        Validated as Validated,
    )
    from piaget.method.adaptation import (
        Adaptation as Adaptation,
        Correction as Correction,
        Finished as Finished,
        Frozen as Frozen,
        Join as Join,
        Memory as Memory,
        NaiveFineTuning as NaiveFineTuning,
        Replayed as Replayed,
        StepContext as StepContext,
        Stored as Stored,
        stored_samples as stored_samples,
    )
    from piaget.method.components import (
        Components as Components,
        Conv as Conv,
        Dense as Dense,
        Linear as Linear,
        Module as Module,
    )
    from piaget.method.consolidation import (
        KroneckerEWC as KroneckerEWC,
        MergedEWC as MergedEWC,
    )
    from piaget.method.encoders import (
        Decoder as Decoder,
        Encoder as Encoder,
        LinearDecoder as LinearDecoder,
        LinearEncoder as LinearEncoder,
        NoDecoder as NoDecoder,
        NoEncoder as NoEncoder,
    )
    from piaget.method.expansion import (
        ComponentDropout as ComponentDropout,
        Evidence as Evidence,
        Expansion as Expansion,
        McNemar as McNemar,
        NoExpansion as NoExpansion,
        SecondAttempt as SecondAttempt,
    )
    from piaget.method.inference import (
        Confidence as Confidence,
        Density as Density,
        Energy as Energy,
        Inference as Inference,
        NoInference as NoInference,
        Seen as Seen,
    )
    from piaget.method.optimizer import (
        SGD as SGD,
        Adam as Adam,
        Optimizer as Optimizer,
    )
    from piaget.method.rates import (
        AdaptationCosine as AdaptationCosine,
        ConstantRate as ConstantRate,
        CosineRate as CosineRate,
        Moment as Moment,
        RateSchedule as RateSchedule,
    )
    from piaget.method.reduction import (
        Change as Change,
        NoReduction as NoReduction,
        PruneAndMerge as PruneAndMerge,
        Reduction as Reduction,
    )
    from piaget.method.replay import (
        AGEM as AGEM,
        DERPlusPlus as DERPlusPlus,
        DilutedReplay as DilutedReplay,
        Replay as Replay,
        SampleMemory as SampleMemory,
    )
    from piaget.method.schedule import (
        Joint as Joint,
        Schedule as Schedule,
        Staged as Staged,
        StageKind as StageKind,
    )
    from piaget.method.settings import (
        Algorithm as Algorithm,
    )
    from piaget.method.starting import (
        AsDrawn as AsDrawn,
        CandidateStart as CandidateStart,
        FreshCandidate as FreshCandidate,
        MostUsed as MostUsed,
        NewTask as NewTask,
        PastTask as PastTask,
        SimilarTask as SimilarTask,
        Start as Start,
    )
    from piaget.method.stopping import (
        BestEpoch as BestEpoch,
        KeptEpoch as KeptEpoch,
        LastEpoch as LastEpoch,
        NeverStop as NeverStop,
        Patience as Patience,
        StopRule as StopRule,
        ValidationScores as ValidationScores,
    )
    from piaget.method.structures import (
        Alone as Alone,
        Frame as Frame,
        LinearCombination as LinearCombination,
        Monolithic as Monolithic,
        Scaled as Scaled,
        SoftGating as SoftGating,
        SoftOrdering as SoftOrdering,
        Structure as Structure,
    )
    from piaget.method.trees import (
        Tensors as Tensors,
        map_tree as map_tree,
        resize as resize,
    )
    from piaget.prior_learner import (
        PriorLearner as PriorLearner,
    )
    from piaget.scoring.inferring import (
        Inferred as Inferred,
    )
    from piaget.scoring.rows import (
        Row as Row,
    )
    from piaget.scoring.watch import (
        EpochReport as EpochReport,
    )
    from piaget.streams import (
        stream as stream,
    )

__version__ = (
    "0.2.0.dev0"  # here alone: pyproject.toml takes it from here; docs/versions.md says what it means
)

_HOMES = {
    "data.tasks": "Split Stream Task",
    "cohort": "Cohort",
    "errors": "DataError DataNote Diverged LoadError NotFinite PiagetError SettingError TaskError "
    "UnknownTaskError",
    "knowledge.sizes": "Sizes",
    "learner": "Learner load",
    "merging": "merge",
    "method.acceptance": "Acceptance Adapted Judgement TakeAll Validated",
    "method.adaptation": "Adaptation Correction Finished Frozen Join Memory NaiveFineTuning Replayed "
    "StepContext Stored stored_samples",
    "method.components": "Components Conv Dense Linear Module",
    "method.consolidation": "KroneckerEWC MergedEWC",
    "method.encoders": "Decoder Encoder LinearDecoder LinearEncoder NoDecoder NoEncoder",
    "method.expansion": "ComponentDropout Evidence Expansion McNemar NoExpansion SecondAttempt",
    "method.inference": "Confidence Density Energy Inference NoInference Seen",
    "method.optimizer": "SGD Adam Optimizer",
    "method.rates": "AdaptationCosine ConstantRate CosineRate Moment RateSchedule",
    "method.reduction": "Change NoReduction PruneAndMerge Reduction",
    "method.replay": "AGEM DERPlusPlus DilutedReplay Replay SampleMemory",
    "method.schedule": "Joint Schedule Staged StageKind",
    "method.settings": "Algorithm",
    "method.starting": "AsDrawn CandidateStart FreshCandidate MostUsed NewTask PastTask SimilarTask Start",
    "method.stopping": "BestEpoch KeptEpoch LastEpoch NeverStop Patience StopRule ValidationScores",
    "method.structures": "Alone Frame LinearCombination Monolithic Scaled SoftGating SoftOrdering Structure",
    "method.trees": "Tensors map_tree resize",
    "prior_learner": "PriorLearner",
    "scoring.inferring": "Inferred",
    "scoring.rows": "Row",
    "scoring.watch": "EpochReport",
    "streams": "stream",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
_ROOMS = ("lab", "streams")
__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"piaget.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'piaget' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"piaget.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS, "__version__"})
