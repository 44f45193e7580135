"""What a run is, as plain data. No heavy imports: `making.py` makes streams and learners of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from piaget.errors import SettingError
from piaget.lab.parts import check_choices
from piaget.method.choices import METHOD, adaptation_of, default_epochs
from piaget.paper.defaults import algorithm_of, settings_of, structure_of
from piaget.scoring.rows import PRIOR_METHOD

Configuration = dict[str, Any]
PRIOR = tuple(PRIOR_METHOD.split("/"))


def is_prior(configuration: Configuration) -> bool:
    """Does it learn a prior over structures?"""
    return bool(configuration["structure"] == PRIOR[0])


def learns_held_out(configuration: Configuration) -> bool:
    """Are a table's test rows learned, too, once all is scored? Not if the user said which are for what."""
    table = configuration["table"]
    return table is not None and not split_column(configuration) and table.get("train_size") is None


def split_column(configuration: Configuration) -> str | None:
    """The column of a table that says which rows are for what, if there is one."""
    return (configuration["table"] or {}).get("split") or None


def _check_prior(method: tuple[str | None, ...], given: list[str]) -> None:
    for name, value, own in zip(METHOD, method, PRIOR, strict=True):
        if value not in (None, own):
            raise SettingError(f"{name} {value!r}: structure 'prior' has its own, {own!r}; leave it out")
    if given:
        raise SettingError(f"{given[0]}: structure 'prior' has no such setting; leave it out")


def configure(
    *,
    stream: str | None = None,
    table: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
    structure: str | None = None,
    adaptation: str | None = None,
    algorithm: str | None = None,
    epochs: int | None = None,
    every: int | None = None,
    settings: Mapping[str, Any] | None = None,
    class_weight: str | None = None,
) -> Configuration:
    """The configuration of a run, with the paper's choices for the stream where nothing is said.

    Nothing is imported: parts of one's own are texts such as "package.module:Name". A table without any
    choice of a method gets the prior over structures (`piaget.PriorLearner`); so does structure="prior".
    class_weight: "balanced" or "yes=5,no=1", of that prior alone.
    """
    beside = {"epochs": epochs, "every": every} | dict(settings or {})
    given = [name for name, value in beside.items() if value is not None]
    named = (structure, adaptation, algorithm)
    if structure == PRIOR[0] or (table is not None and not any(named) and not given):
        _check_prior(named, given)
        source = {"stream": stream, "table": table, "options": options or {}}
        chosen = {} if class_weight is None else {"class_weight": class_weight}
        method = dict(zip(METHOD, PRIOR, strict=True))
        return source | method | {"epochs": None, "every": None, "settings": chosen}
    if class_weight is not None:
        raise SettingError(
            "class_weight: of tables that are learned without --structure, --adaptation and --algorithm"
        )
    structure = structure or structure_of(stream or "", algorithm)
    algorithm = algorithm or algorithm_of(structure)
    adaptation = adaptation or adaptation_of(algorithm)
    method = {"structure": structure, "adaptation": adaptation, "algorithm": algorithm}
    chosen = check_choices(method, {"epochs": epochs} | dict(settings or {}))
    resolved = settings_of(stream or "", structure, adaptation, algorithm, chosen) | chosen
    if "components_from" in resolved:  # wherever it is resumed
        resolved["components_from"] = str(Path(resolved["components_from"]).absolute())
    linear = "linear" in (structure, resolved.get("components"))
    return {
        "stream": stream,
        "table": table,
        "options": options or {},
        **method,
        # A schedule of one's own has its own number of them.
        "epochs": resolved.pop("epochs", None if "schedule" in resolved else default_epochs(linear)),
        "every": every,
        "settings": resolved,
    }
