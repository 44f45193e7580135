"""Tables: reading them, and their columns as numbers, times and texts."""

from __future__ import annotations

import datetime
import decimal
import numbers
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from piaget.errors import DataError
from piaget.extras import need


def is_table(x: Any) -> bool:
    """A DataFrame of any library, a table in memory, a dictionary of columns, or a list of rows."""
    if isinstance(x, dict) or hasattr(x, "columns") or hasattr(x, "to_pandas"):
        return True
    return isinstance(x, Sequence) and len(x) > 0 and all(isinstance(row, dict) for row in x)


def as_frame(table: Any) -> Any:
    """A pandas DataFrame of it, with column names as texts."""
    pandas = need("pandas", "tables")
    if hasattr(table, "collect"):  # a lazy frame of polars
        table = table.collect()
    if hasattr(table, "to_pandas"):  # polars, pyarrow
        table = table.to_pandas()
    try:
        frame = pandas.DataFrame(table)
    except (ValueError, TypeError) as error:
        raise DataError(f"a {type(table).__name__} is no table: {error}; for one row, give [row]") from error
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def as_dates(values: Any) -> Any:
    """A pandas column of dates, or of texts like 2021-03-04, as times; what is none is missing."""
    pandas = need("pandas", "tables")
    if pandas.api.types.is_datetime64_any_dtype(values):
        return values
    times = pandas.to_datetime(values, format="ISO8601", errors="coerce")
    return values if bool((times.isna() & values.notna()).any()) else times  # as_numbers says what is wrong


def tidied(name: str, values: Any) -> Any:
    """A pandas column with a proper type: objects that are numbers become numbers, ISO dates times.

    Texts stay texts, unless they are so many that are nearly all numbers: that is a mistake in the table.
    """
    pandas = need("pandas", "tables")
    present = values.dropna()
    if pandas.api.types.is_numeric_dtype(values) or pandas.api.types.is_datetime64_any_dtype(values):
        return values
    if not len(present):
        return values
    if all(isinstance(v, numbers.Number | decimal.Decimal) and not isinstance(v, bool) for v in present):
        return pandas.to_numeric(values.astype("float64"))
    if all(isinstance(v, datetime.date) or ISO_DATE.match(str(v)) for v in present):
        times = as_dates(values)
        if pandas.api.types.is_datetime64_any_dtype(times):
            return times
    texts = {str(v) for v in present}
    numeric = {text for text in texts if NUMBER.fullmatch(text.strip())}
    if len(texts) > 20 and len(numeric) > len(texts) / 2:
        odd = next((i for i, v in present.items() if str(v) not in numeric), present.index[0])
        comma = any("," in text for text in numeric)
        raise DataError(
            f"column {name!r} holds texts, nearly all of which are numbers; "
            + ("they have decimal commas" if comma else f"in row {odd} it holds {present[odd]!r}")
            + ": make it a column of numbers, empty where a value is missing; or name it as categorical"
        )
    return values


ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:$|[T ])")
NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d*)?(?:[eE][+-]?\d+)?")


def as_numbers(name: str, values: Any) -> np.ndarray:
    """A pandas column as float64; missing values are NaN, infinite ones and texts are refused."""
    pandas = need("pandas", "tables")
    if pandas.api.types.is_datetime64_any_dtype(values):
        values = (values - pandas.Timestamp(0, tz=values.dt.tz)) / pandas.Timedelta(days=1)
    found = pandas.to_numeric(values, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    bad = np.flatnonzero(np.isinf(found) | (np.isnan(found) & values.notna().to_numpy(bool)))
    if len(bad):
        value = values.iloc[int(bad[0])]
        raise DataError(
            f"column {name!r} holds {repr(value) if isinstance(value, str) else value} in row "
            f"{values.index[int(bad[0])]} (counted from 0); expected finite numbers"
        )
    return found


def as_texts(values: Any) -> np.ndarray:
    """A pandas column as texts, None where missing: 3, 3.0 and "3" are the same level."""
    return np.array(
        [None if missing else as_text(v) for v, missing in zip(values, values.isna(), strict=True)], object
    )


def as_text(value: Any) -> str:
    """A value as the name of a level or a group: 3.0 is "3"."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return str(value)


# --- files ------------------------------------------------------------------------------------------


def read_table(table: Any, texts: Sequence[str] = ()) -> tuple[Any, str]:
    """A pandas DataFrame, and what to call it. `texts`: columns that stay texts, such as 007."""
    if not isinstance(table, str | os.PathLike):
        frame, source = as_frame(table), "table"
    else:
        path = Path(table)
        frame, source = as_frame(_read_file(path, texts)), path.name.split(".")[0]
    frame = frame.reset_index(drop=True)
    if not len(frame):
        raise DataError(f"{source}: the table has no rows")
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise DataError(f"{source}: column {twice[0]!r} occurs twice; expected different names")
    return frame, source


def _read_file(path: Path, texts: Sequence[str]) -> Any:
    pandas = need("pandas", "tables")
    ends = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if not path.is_file():
        raise DataError(f"{path} does not exist, or is no file")
    try:
        if ends == "parquet":
            return pandas.read_parquet(path)
        if ends in ("csv", "tsv"):
            return _read_csv(pandas, path, "\t" if ends == "tsv" else ",", texts)
    except (DataError, OSError):
        raise
    except Exception as error:  # readers fail in many ways on what is no table
        raise DataError(f"{path} cannot be read: {type(error).__name__}: {error}") from error
    raise DataError(f"{path}: expected a file that ends in .csv, .tsv or .parquet")


MISSING = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A", "<NA>"]


def _read_csv(pandas: Any, path: Path, separator: str, texts: Sequence[str]) -> Any:
    """`texts` stay as they are: also 007 and NA, which is a country."""
    head = pandas.read_csv(path, sep=separator, header=None, nrows=1, dtype=str, keep_default_na=False)
    if head.shape[1] == 1 and ";" in str(head.iloc[0, 0]):
        return _read_csv(pandas, path, ";", texts)
    names = head.iloc[0].tolist()
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"{path}: column {twice[0]!r} occurs twice; expected different names")
    missing = {name: [""] if name in texts else MISSING for name in names}
    return pandas.read_csv(
        path,
        sep=separator,
        low_memory=False,
        keep_default_na=False,
        na_values=missing,
        dtype={name: str for name in names if name in texts},
    )
