"""Class weights: how much an error counts, by the class that is the true one.

They decide which class is answered: the one with the largest weight x probability, which is what costs least
in expectation. Probabilities stay as they are, and so does their calibration. For a model that is right, that
is what learning with weighted rows would answer, too; but it can be changed at any time. No heavy imports.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from piaget.data.plain import Label, is_number, plain, shown
from piaget.errors import SettingError

if TYPE_CHECKING:
    from torch import Tensor

BALANCED = "balanced"
ClassWeight = str | dict[Label, float]
EXPECTED = "'balanced', or weights above 0 by class, such as {'yes': 5.0, 'no': 1.0}"


def check_class_weight(value: Any) -> ClassWeight | None:
    """A user's; that the classes exist is not known yet."""
    if value is None or (isinstance(value, str) and value == BALANCED):
        return value
    if not isinstance(value, Mapping) or not value:
        raise SettingError(f"class_weight={shown(value)}; expected {EXPECTED}")
    weights = {plain(label): plain(weight) for label, weight in value.items()}
    for label, weight in weights.items():
        if not isinstance(label, Label) or not is_number(weight) or not 0 < weight < math.inf:
            raise SettingError(f"class_weight: {shown(label)}: {shown(weight)}; expected {EXPECTED}")
    return {label: float(weight) for label, weight in weights.items()}


def check_classes(class_weight: ClassWeight | None, labels: Sequence[Label]) -> None:
    """Raises an error if it is not of these classes."""
    if class_weight is None:
        return
    if not labels:
        raise SettingError("class_weight: the target is a number; expected classes")
    for label in class_weight if isinstance(class_weight, dict) else ():
        if label not in labels:
            raise SettingError(f"class_weight: no class {label!r}; expected {', '.join(map(repr, labels))}")


def weights_of(class_weight: ClassWeight | None, labels: Sequence[Label], counts: Tensor) -> Tensor | None:
    """(classes,): of each class, with the counts of all rows that were learned. None: all count the same.

    Balanced: one over the class's share of rows, so that classes count the same whatever their size, 1 in the
    mean over rows. A class that has no row, or is not named, has the weight 1.
    """
    import torch

    check_classes(class_weight, labels)
    if class_weight is None:
        return None
    if isinstance(class_weight, dict):
        return torch.tensor([class_weight.get(label, 1.0) for label in labels], dtype=torch.float64)
    present = counts > 0
    even = counts.sum() / (present.sum().clamp(min=1) * counts.clamp(min=1)).double()
    return torch.where(present, even, 1.0)


def chosen(probabilities: Tensor, weights: Tensor | None) -> Tensor:
    """(n, classes) -> (n,): the class that is answered. Of equals, the first."""
    return (probabilities if weights is None else probabilities * weights).argmax(1)


def pairs_in(text: str) -> list[tuple[str, float]] | None:
    """Of "balanced": None; of "yes=5,no=1": [("yes", 5.0), ("no", 1.0)]. ValueError: it is something else."""
    if text == BALANCED:
        return None
    pairs = [part.rpartition("=") for part in text.split(",")]
    if not all(label and equals for label, equals, _ in pairs):
        raise ValueError(f"{shown(text)}; expected balanced, or CLASS=WEIGHT,CLASS=WEIGHT")
    return [(label.strip(), float(weight)) for label, _, weight in pairs]


def from_text(text: str | None, labels: Sequence[Label]) -> ClassWeight | None:
    """As the command line has it, of these classes."""
    if text is None or (pairs := pairs_in(text)) is None:
        return text
    by_name = {str(label): label for label in labels}
    return check_class_weight({by_name.get(name, name): weight for name, weight in pairs})
