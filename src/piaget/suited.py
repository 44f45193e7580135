"""Which learner suits a stream: `Learner.for_stream`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from piaget.data.class_weight import check_class_weight, check_classes
from piaget.data.tasks import Stream, Task, all_validated
from piaget.errors import SettingError, TaskError
from piaget.knowledge.common import Label, labels_of
from piaget.learner import Learner
from piaget.method.choices import METHOD, SETTINGS, adaptation_of, unknown_setting
from piaget.paper.defaults import algorithm_of, own_data, settings_of, structure_of
from piaget.prior_learner import PriorLearner
from piaget.streams.catalog import STREAMS
from piaget.streams.table_stream import TableStream

OF_PRIOR = ("labels", "rows", "trees", "class_weight")  # settings of a prior learner only


def suited(stream: Stream, settings: dict[str, Any]) -> Learner | PriorLearner:
    """A learner with the parts and settings that suit a stream; settings: what is to be otherwise."""
    if not len(stream):
        raise TaskError("the stream has no tasks; expected one or more")
    known = dict.fromkeys((*METHOD, *OF_PRIOR, *SETTINGS))
    for setting in settings:
        if setting not in known:
            raise unknown_setting(setting, known)
    chosen = [setting for setting in settings if setting not in ("seed", *OF_PRIOR)]
    name = paper_name(stream)
    if name is None and not chosen and (odd := why_not(stream)) is None:
        labels = settings.get("labels") or all_labels(stream)
        check_classes(check_class_weight(settings.get("class_weight")), labels or ())
        return PriorLearner(**settings | {"labels": labels})
    wrong = [one for one in settings if one in OF_PRIOR]
    if wrong:
        why = f"{chosen[0]} is given, too" if chosen else f"the paper's stream {name}" if name else odd
        raise SettingError(
            f"{wrong[0]}: a setting of the prior over structures, which is not used here: {why}"
        )
    structure = settings.get("structure") or structure_of(name or "", settings.get("algorithm"))
    algorithm = settings.get("algorithm") or algorithm_of(str(structure))
    adaptation = settings.get("adaptation") or adaptation_of(algorithm)
    method = {"structure": structure, "adaptation": adaptation, "algorithm": algorithm}
    usual = settings_of(name or "", str(structure), str(adaptation), str(algorithm), settings)
    if name is None and all_validated(stream):
        usual |= own_data(structure, settings)
    begun = settings.get("components_from") is not None
    initial = {} if begun else {"initial_tasks": min(4, len(stream))}
    return Learner(**initial | usual | settings | method)


def paper_name(stream: Stream) -> str | None:
    """Of one of the streams that piaget knows by name, whatever its option: cub/resnet18_approx is cub."""
    name = getattr(stream, "name", None)
    if isinstance(stream, TableStream) or not isinstance(name, str):
        return None
    known = name.split("/")[0]
    return known if known in STREAMS else None


def why_not(stream: Sequence[Task]) -> str | None:
    """Why the tasks cannot have a prior over structures, if so: they are to be vectors of the same form."""
    first = stream[0]
    if len(first.input_shape) > 1:
        return f"inputs have shape {first.input_shape}; expected vectors"
    for i in range(len(stream)):
        task = stream[i]
        alike = task.input_shape == first.input_shape and task.encoding == first.encoding
        if not alike or (task.kind == "regression") != (first.kind == "regression"):
            return f"tasks {first.name!r} and {task.name!r} have different inputs or kinds; expected the same"
        if task.scaling.divisor != first.scaling.divisor:
            return f"tasks {first.name!r} and {task.name!r} are scaled differently"
    return None


def all_labels(stream: Sequence[Task]) -> list[Label] | None:
    """The classes of all tasks, in their own order; numbers before texts. None: regressions."""
    if isinstance(stream, TableStream):
        return stream.labels
    if stream[0].kind == "regression":
        return None
    found = {label for i in range(len(stream)) for label in labels_of(stream[i])}
    return sorted(found, key=lambda v: (isinstance(v, str), v))
