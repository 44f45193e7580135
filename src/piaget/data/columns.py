"""Tables: reading them, and their columns as numbers, times and texts."""

from __future__ import annotations

import contextlib
import csv
import datetime
import decimal
import io
import itertools
import numbers
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from piaget.data.unpacking import LARGEST, opened
from piaget.errors import DataError, type_of
from piaget.extras import need


def is_table(x: Any) -> bool:
    """A DataFrame of any library, a table in memory, a dictionary of columns, or a list of rows."""
    if hasattr(x, "nnz"):  # a sparse array, which may be a dictionary
        return False
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
        raise DataError(f"{type_of(table)} is no table: {error}; for one row, give [row]") from error
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def declared_categories(frame: Any) -> list[str]:
    """The columns of a pandas DataFrame that have its type for categories, whatever these are."""
    kind = need("pandas", "tables").CategoricalDtype
    return [name for name in frame if isinstance(frame[name].dtype, kind)]


def as_given(frame: Any, given: Any) -> Any:
    """A pandas DataFrame as a table of the library that `given` is of, if that is polars."""
    library = type(given).__module__.partition(".")[0]
    return need("polars", "its tables").from_pandas(frame) if library == "polars" else frame


def as_dates(values: Any) -> Any:
    """A pandas column of dates, or of texts like 2021-03-04, as times; what is none is missing."""
    pandas = need("pandas", "tables")
    if pandas.api.types.is_datetime64_any_dtype(values):
        return values
    try:
        times = pandas.to_datetime(values, format="ISO8601", errors="coerce")
    except ValueError:  # of several time zones
        times = pandas.to_datetime(values, format="ISO8601", errors="coerce", utc=True)
    return values if bool((times.isna() & values.notna()).any()) else times  # as_numbers says what is wrong


def tidied(name: str, values: Any) -> Any:
    """A pandas column with a proper type: objects that are numbers become numbers, ISO dates times.

    Texts stay texts, unless they are so many that are nearly all numbers: that is a mistake in the table.
    """
    pandas = need("pandas", "tables")
    check_cells(name, values)
    present = values.dropna()
    if pandas.api.types.is_numeric_dtype(values) or pandas.api.types.is_datetime64_any_dtype(values):
        return values
    if not len(present):
        return values
    if all(isinstance(v, numbers.Number | decimal.Decimal) and not isinstance(v, bool) for v in present):
        return _as_floats(name, values)
    if all(isinstance(v, datetime.date) or ISO_DATE.match(str(v)) for v in present):
        times = as_dates(values)
        if pandas.api.types.is_datetime64_any_dtype(times):
            return times
        for row, value in present.items():
            if isinstance(value, str) and pandas.isna(pandas.to_datetime(value, errors="coerce")):
                raise DataError(
                    f"column {name!r} holds {value!r} in row {row} (counted from 0), which is no date"
                )
    texts = {str(v) for v in present}
    if len(texts) > 1:
        _check_dates(name, present)
    if len(texts) > 1 and all(MEASURE.fullmatch(text.strip()) for text in texts):
        raise DataError(
            f"column {name!r} holds numbers with a sign, such as {present.iloc[0]!r}: make it a column of "
            "numbers, empty where a value is missing; or name it as categorical"
        )
    numeric = {text for text in texts if NUMBER.fullmatch(text.strip())}
    separated = {text for text in numeric if not PLAIN_NUMBER.fullmatch(text.strip())}
    many = len(texts) > 20 and len(numeric) > len(texts) / 2
    if many or (len(texts) > 1 and separated == texts):
        odd = next((i for i, v in present.items() if str(v) not in numeric), present.index[0])
        raise DataError(
            f"column {name!r} holds texts, nearly all of which are numbers; "
            + (
                "they have decimal commas or separate thousands"
                if separated
                else f"in row {odd} (counted from 0) it holds {present[odd]!r}"
            )
            + ": make it a column of numbers, empty where a value is missing; or name it as categorical"
        )
    return values


def _check_dates(name: str, values: Any) -> None:
    """Raises an error if all texts of a pandas column are dates that do not begin with the year."""
    present = values.dropna()
    if len(present) and all(isinstance(v, str) and OTHER_DATE.match(v) for v in present):
        raise DataError(
            f"column {name!r} holds dates such as {present.iloc[0]!r}; expected the year first, as in "
            "2021-03-04, since day and month cannot be told apart for certain; or leave the column out, or "
            "name it as categorical"
        )


ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:$|[T ])")
OTHER_DATE = re.compile(r"\s*(?:\d{1,2}[./-]\d{1,2}[./-]\d{4}|\d{4}[./]\d{1,2}[./]\d{1,2})(?:\s|$)")
PLAIN_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")
NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:[ ,.'\u2019\u00a0\u202f]\d{3})+|\d+)(?:[.,]\d*)?(?:[eE][+-]?\d+)?")
MEASURE = re.compile(rf"[€$£¥]\s?{NUMBER.pattern}|{NUMBER.pattern}\s?[%‰€$£¥]")
CELLS = (str, numbers.Real, np.bool_, decimal.Decimal, datetime.date, datetime.time)


def check_cells(name: str, values: Any) -> None:
    """Raises an error if a pandas column holds lists, dictionaries, bytes and the like."""
    kind = getattr(values.dtype, "kind", "O")
    if kind in "cm":
        what, hint = ("complex numbers", "") if kind == "c" else ("durations", " (.dt.total_seconds())")
        raise DataError(f"column {name!r} holds {what}; expected numbers, dates or texts{hint}")
    if values.dtype != object:
        return
    present = values.dropna()
    odd = {type(v) for v in present if not isinstance(v, CELLS)}
    for row, value in present.items() if odd else ():
        if type(value) in odd:
            found = type_of(value)
            raise DataError(f"column {name!r} holds {found} in row {row}; expected numbers, dates or texts")


def _as_floats(name: str, values: Any) -> Any:
    """A pandas column of numbers that are objects; those that would become the same are refused."""
    try:
        found = values.astype("float64")
    except OverflowError:
        raise DataError(f"column {name!r} holds a whole number beyond all floating-point numbers") from None
    whole = {int(v) for v in values.dropna() if isinstance(v, numbers.Integral)}
    if len({float(v) for v in whole}) < len(whole):
        raise DataError(
            f"column {name!r} holds different whole numbers that are the same as floating-point numbers; "
            "expected smaller ones, or texts"
        )
    return found


def is_dates(values: Any) -> bool:
    """Are these dates, or times?"""
    return bool(need("pandas", "tables").api.types.is_datetime64_any_dtype(values))


def as_numbers(name: str, values: Any) -> np.ndarray:
    """A pandas column as float64; missing values are NaN, infinite ones and texts are refused."""
    pandas = need("pandas", "tables")
    if is_dates(values):
        values = _as_days(pandas, values)
    else:
        _check_dates(name, values)
    found = pandas.to_numeric(values, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    bad = np.flatnonzero(np.isinf(found) | (np.isnan(found) & values.notna().to_numpy(bool)))
    if len(bad):
        value = values.iloc[int(bad[0])]
        raise DataError(
            f"column {name!r} holds {repr(value) if isinstance(value, str) else value} in row "
            f"{values.index[int(bad[0])]} (counted from 0); expected finite numbers"
        )
    return found


def _as_days(pandas: Any, times: Any) -> Any:
    """Days since 1970; of years that are too far for nanoseconds, by whole seconds."""
    try:
        return (times - pandas.Timestamp(0, tz=times.dt.tz)) / pandas.Timedelta(days=1)
    except (OverflowError, pandas.errors.OutOfBoundsDatetime, pandas.errors.OutOfBoundsTimedelta):
        start = pandas.Timestamp(0, tz=times.dt.tz).as_unit("s")
        return (times.dt.as_unit("s") - start) / pandas.Timedelta(days=1)


def as_texts(values: Any) -> np.ndarray:
    """A pandas column as texts, None where missing: 3, 3.0 and "3" are the same level."""
    return np.array(
        [None if missing else as_text(v) for v, missing in zip(values, values.isna(), strict=True)], object
    )


def as_text(value: Any) -> str:
    """A value as the name of a level or a group, as a file would have it: 3.0 is "3", a day has no hour."""
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
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


def as_written(path: Path) -> Any | None:
    """A CSV file as a DataFrame of its texts, to the letter: 007, 1.10 and NA. None: it is no such file."""
    if _ending(path) not in ("csv", "tsv"):
        return None
    return _read_csv(path, _header(path, _separator(path)))


def _ending(path: Path) -> str:
    return path.name.lower().removesuffix(".gz").rpartition(".")[2]


def _read_file(path: Path, texts: Sequence[str]) -> Any:
    ends = _ending(path)
    if not path.is_file():
        raise DataError(f"{path} does not exist, or is no file")
    try:
        if ends == "parquet":
            return _read_parquet(path)
        if ends in ("csv", "tsv"):
            return _read_csv(path, texts)
    except DataError:
        raise
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise DataError(f"{path} is not in UTF-8: it holds the byte {byte:#x}; save it as UTF-8") from error
    except Exception as error:  # readers fail in many ways on what is no table
        raise DataError(f"{path} cannot be read: {type(error).__name__}: {error}") from error
    raise DataError(f"{path}: expected a file that ends in .csv, .tsv or .parquet")


MISSING = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A", "<NA>"]


def _read_parquet(path: Path) -> Any:
    """Few bytes can hold very many rows: how many, its end says."""
    parquet = need("pyarrow.parquet", "Parquet files")
    with parquet.ParquetFile(path) as file:
        cells = file.metadata.num_rows * file.metadata.num_columns
        if cells > LARGEST // 4:
            raise DataError(f"{path} holds {cells:,} values; expected at most {LARGEST // 4:,}")
    return need("pandas", "tables").read_parquet(path)


def _read_csv(path: Path, texts: Sequence[str]) -> Any:
    """`texts` stay as they are: also 007 and NA, which is a country."""
    separator = _separator(path)
    names = _header(path, separator)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"{path}: column {twice[0]!r} occurs twice; expected different names")
    _check_rows(path, separator, len(names))
    missing = {name: [""] if name in texts else MISSING for name in names}
    with opened(path) as handle:
        return need("pandas", "tables").read_csv(
            handle,
            sep=separator,
            low_memory=False,
            keep_default_na=False,
            na_values=missing,
            dtype={name: str for name in names if name in texts},
        )


@contextlib.contextmanager
def _rows(path: Path, separator: str) -> Iterator[Iterator[list[str]]]:
    with opened(path) as handle, io.TextIOWrapper(handle, "utf-8-sig", newline="") as lines:
        yield csv.reader(lines, delimiter=separator)


def _is_blank(row: list[str]) -> bool:
    return len(row) < 2 and not "".join(row).strip()


def _header(path: Path, separator: str) -> list[str]:
    with _rows(path, separator) as rows:
        for row in rows:
            if not _is_blank(row):
                return row
    raise DataError(f"{path} is empty; expected a row of names, and rows of values")


def _separator(path: Path) -> str:
    """A tab in a TSV file; else comma or semicolon, by which the first rows have as many values as there are
    names."""
    if _ending(path) == "tsv":
        return "\t"

    def fits(separator: str) -> tuple[bool, int]:
        with _rows(path, separator) as rows:
            counts = [len(row) for row in itertools.islice(rows, 20) if not _is_blank(row)]
        names = counts[0] if counts else 0
        return names > 1 and set(counts) == {names}, names

    return max(",;", key=fits)  # of two that fit alike, the comma


def _check_rows(path: Path, separator: str, columns: int) -> None:
    """Raises an error if a row is too short or too long: readers fill it, or shift all columns by one."""
    with opened(path) as handle:
        while data := handle.read(1 << 20):
            if b"\0" in data:
                raise DataError(f"{path} holds NUL bytes; expected a text file in UTF-8")
    with _rows(path, separator) as rows:
        done = 0
        while block := list(itertools.islice(rows, 500)):
            if set(map(len, block)) != {columns}:  # seldom: blank rows, too
                for number, row in enumerate(block, done):
                    if len(row) != columns and not _is_blank(row):
                        raise DataError(
                            f"{path}: row {number} has {len(row)} values (row 0 has the names); expected "
                            f"{columns}, as there are names (values are separated by {separator!r})"
                        )
            done += len(block)
