"""How raw data becomes what a network computes with, and how answers become the user's again.

Both are recorded with the task, and saved with the learner: `predict` on new rows does the same.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from piaget.data.columns import MISSING, as_dates, as_frame, as_numbers, as_texts
from piaget.data.plain import is_number, plain, shown
from piaget.data.typed_data import LATER
from piaget.errors import DataError, SettingError

# Of a scaling's numbers: a byte that is divided stays a number of 32 bits.
_RANGES = {"divisor": (1e-30, 1e30), "mean": (-math.inf, math.inf), "spread": (0.0, math.inf)}


@dataclass(frozen=True)
class Scaling:
    """Bytes are divided by `divisor`; values y of a regression are learned as (y - mean) / spread.

    Inputs (n, features) or (n, channels, ...) become (x - center) / width, with a number for each feature or
    channel; empty: they stay as they are. A task holds its data as it was given (images as bytes); this is
    applied when it is used.
    """

    divisor: float = 1.0
    mean: float = 0.0
    spread: float = 1.0
    center: tuple[float, ...] = field(default=(), metadata=LATER)
    width: tuple[float, ...] = field(default=(), metadata=LATER)

    def __post_init__(self) -> None:
        for name in ("divisor", "mean", "spread"):
            value = plain(getattr(self, name))
            least, most = _RANGES[name]
            if not is_number(value) or not least < value < most:
                right = "a finite number" if name == "mean" else f"a number from {least:g} to {most:g}"
                raise SettingError(f"scaling: {name}={shown(value)}; expected {right}")
            object.__setattr__(self, name, value)
        center, width = (tuple(map(plain, numbers)) for numbers in (self.center, self.width))
        fit = all(map(is_number, (*center, *width))) and all(w > 0 for w in width)
        if not fit or len(center) != len(width):
            raise SettingError("scaling: expected as many widths as centers, finite and positive")
        object.__setattr__(self, "center", center)
        object.__setattr__(self, "width", width)

    def inputs(self, x: Tensor, device: str | torch.device, dtype: torch.dtype) -> Tensor:
        """Whole numbers are divided; fractions are taken for divided already."""
        if self.center:  # in 64 bits: a large center would leave nothing of small differences
            center, width = (
                torch.tensor(numbers, dtype=torch.float64, device=x.device).view(-1, *[1] * (x.ndim - 2))
                for numbers in (self.center, self.width)
            )
            return ((x.double() - center) / width).to(device, dtype)
        divides = self.divisor != 1 and not x.is_floating_point()
        x = x.to(device, dtype)
        return x.div_(self.divisor) if divides else x

    def targets(self, y: Tensor) -> Tensor:
        """Class numbers (whole) stay as they are."""
        plain = not y.is_floating_point() or (self.mean == 0 and self.spread == 1)
        return y if plain else (y - self.mean) / self.spread

    def values(self, out: Tensor) -> Tensor:
        """The inverse of `targets`, for predicted values."""
        plain = not out.is_floating_point() or (self.mean == 0 and self.spread == 1)
        return out if plain else out * self.spread + self.mean

    def __repr__(self) -> str:  # as in version 0.1, whose fingerprints of tasks have it
        return f"Scaling({', '.join(f'{name}={value!r}' for name, value in self.to_json().items())})"

    def to_json(self) -> dict[str, Any]:
        """As plain data; without what older versions did not know, where it is not used."""
        described = dataclasses.asdict(self)
        return described if self.center else {name: described[name] for name in _RANGES}


def centered(x: Tensor) -> Scaling:
    """By which inputs x (n, features) or (n, channels, ...) are standardised. Features that are 0 or 1 in all
    rows say yes or no, and stay as they are."""
    columns = x.double().movedim(1, 0).flatten(1)  # (features, the rest)
    largest = columns.abs().amax(1, keepdim=True)
    largest = torch.where(largest > 0, largest, 1.0)  # else squares of large numbers are infinite
    center = (columns / largest).mean(1) * largest[:, 0]
    width = (columns / largest).std(1, correction=0) * largest[:, 0]
    as_is = ((columns == 0) | (columns == 1)).all(1)
    center = torch.where(as_is, 0.0, center)
    width = torch.where(as_is | (width <= 1e-12 * largest[:, 0]), 1.0, width)
    return Scaling(center=tuple(center.tolist()), width=tuple(width.tolist()))


TRUTH = {"true": 1.0, "false": 0.0}
LARGEST_INPUT = 1e30  # of a standardised column: its square is near the end of 32 bits' numbers


@dataclass(frozen=True)
class Column:
    """One column of a table: a number (standardised), or a category (one input a level)."""

    name: str
    levels: tuple[str, ...] | None = None  # None: a number
    mean: float = 0.0
    spread: float = 1.0
    may_miss: bool = False  # one more input says whether the value is missing
    date: bool = False  # the number is that of days since 1970

    @property
    def inputs(self) -> list[str]:
        names = [self.name] if self.levels is None else [f"{self.name}={level}" for level in self.levels]
        return names + [f"{self.name} is missing"] * self.may_miss

    def recognized(self, values: Any) -> Any:
        """A pandas column as it was read in training: of a category, a file's texts that mean "missing" are
        missing, unless they were levels, and truth values are written as Python writes them; where zeros
        and ones stay as they are, texts of truth values are those."""
        if self.levels is None:
            return self._as_truth(values)
        levels = set(self.levels)

        def one(value: Any) -> Any:
            if not isinstance(value, str) or value in levels:
                return value
            if value in MISSING:
                return None
            return value.capitalize() if value.capitalize() in levels & {"True", "False"} else value

        return values.astype(object).map(one)

    def _as_truth(self, values: Any) -> Any:
        as_is = (self.mean, self.spread, self.date) == (0.0, 1.0, False)
        if not as_is or getattr(values.dtype, "kind", "O") in "biufM":
            return values
        return values.astype(object).map(lambda v: TRUTH.get(v.lower(), v) if isinstance(v, str) else v)

    def encode(self, values: Any) -> np.ndarray:
        """A pandas column -> (n, inputs). Missing: the mean, or no level; an unseen level: none."""
        missing = values.isna().to_numpy(bool)
        if self.levels is None:
            values = as_dates(values) if self.date else values
            scaled = (as_numbers(self.name, values) - self.mean) / self.spread
            farthest = np.nanmax(np.abs(scaled), initial=0)
            if farthest > LARGEST_INPUT:
                raise DataError(
                    f"column {self.name!r} holds a value {farthest:g} times its spread in training away from "
                    f"its mean there, {self.mean:g}: too far to compute with"
                )
            parts = [np.where(missing, 0.0, scaled)[:, None]]
        else:
            number = {level: i for i, level in enumerate(self.levels)}
            level = np.array([number.get(text, -1) for text in as_texts(values)], np.int64)
            parts = [level[:, None] == np.arange(len(self.levels))]
        if self.may_miss:
            parts.append(missing[:, None])
        return np.concatenate([part.astype(np.float32) for part in parts], 1)


@dataclass(frozen=True)
class Encoding:
    """How the rows of a table become inputs: fitted on training rows, then fixed."""

    columns: tuple[Column, ...]
    group: str
    target: str
    kind: str
    scaling: Scaling = Scaling()

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs, in order."""
        return [name for column in self.columns for name in column.inputs]

    @property
    def categories(self) -> list[str]:
        """The columns that are categories."""
        return [column.name for column in self.columns if column.levels is not None]

    def recognized(self, frame: Any) -> Any:
        """A later DataFrame, with categories and truth values as they were read in training."""
        there = [column for column in self.columns if column.name in frame.columns]
        return frame.assign(**{column.name: column.recognized(frame[column.name]) for column in there})

    def encode(self, rows: Any) -> np.ndarray:
        """Rows (a table, or a list of dictionaries) -> (n, inputs) float32. Other columns are ignored."""
        frame = self.recognized(as_frame(rows))
        absent = [column.name for column in self.columns if column.name not in frame.columns]
        if absent:
            raise DataError(
                f"the table has no column {', '.join(map(repr, absent))}; the learner was trained with "
                f"{', '.join(repr(column.name) for column in self.columns)}"
            )
        return np.concatenate([column.encode(frame[column.name]) for column in self.columns], 1)


def to_json(encoding: Encoding) -> Any:
    """An encoding as plain data."""
    return dataclasses.asdict(encoding) | {"scaling": encoding.scaling.to_json()}
