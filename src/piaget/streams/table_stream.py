"""A stream from a table: one task a group of rows, with all that was done to the columns recorded."""

from __future__ import annotations

import difflib
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from piaget.data.arrays import is_measured
from piaget.data.columns import (
    MISSING,
    as_numbers,
    as_texts,
    as_written,
    check_cells,
    declared_categories,
    is_dates,
    read_table,
    tidied,
)
from piaget.data.encoding import Column, Encoding, Scaling
from piaget.data.plain import Fractions, check_fractions, check_seed, shown
from piaget.data.tasks import KINDS, Kind, Task, standardized
from piaget.errors import DataError, SettingError, note
from piaget.extras import need
from piaget.streams.lazy import LazyStream
from piaget.streams.table_groups import classes_of, groups_of, parts_of
from piaget.streams.table_notes import note_alike, note_held_out, note_identifiers, note_outliers, some
from piaget.streams.table_repeats import copied, note_copied

MOST_LEVELS = 100  # of a category; more are names or numbers of things
MOST_CLASSES = 20  # whole numbers with more different values are taken for quantities


class TableStream(LazyStream):
    """Tasks from a table. `encoding`: how rows become inputs; `skipped`: {group: why it is no task};
    `labels`: of all groups' classes (a task has its own), None of a regression; `columns`: of the table;
    `partial`: {group: what it lacks}, of tasks that are there because unusable groups were to be kept."""

    def __init__(
        self,
        name: str,
        seed: int,
        encoding: Encoding,
        tasks: list[Task],
        skipped: dict[str, str],
        labels: list[Any] | None = None,
        columns: Sequence[str] = (),
        partial: dict[str, str] | None = None,
    ) -> None:
        self.name, self.seed, self.encoding, self.skipped = name, seed, encoding, skipped
        self.labels, self.columns, self.partial = labels, list(columns), partial or {}
        self._tasks = tasks

    def __len__(self) -> int:
        return len(self._tasks)

    def make(self, i: int) -> Task:
        return self._tasks[i]


def from_table(
    table: Any,
    *,
    group: str | None = None,
    target: str | None = None,
    kind: Kind | None = None,
    split: str | None = None,
    fractions: Fractions = (0.6, 0.2, 0.2),
    stratified: bool = False,
    train_size: int | None = None,
    categorical: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    on_unusable: Literal["skip", "keep", "error"] = "skip",
    shuffle: bool = False,
    encoding: Encoding | None = None,
    seed: int = 0,
    name: str | None = None,
) -> TableStream:
    """One task for each value of the column `group`, which is to predict the column `target`.

    table: a DataFrame (pandas, polars, pyarrow), or the path of a CSV, TSV or Parquet file.
    kind: "regression", "binary" or "multiclass". Without it, numbers with fractions and whole numbers
        with more than 20 different values mean regression, and all else classes.
    split: a column that says "train", "validation" or "test"; without it, the rows of each group are
        divided at random by `fractions`.
    stratified: every class of a group is divided alike, so that fewer groups are left without training rows
        of a class. But test rows are no random sample then: a model that only counts a group's classes does
        better on them than it would on rows to come, and a class of one or two rows is never tested.
    categorical: columns of numbers that are names of categories. Columns of texts are, anyway.
    ignore: columns to leave out.
    on_unusable: what to do with groups that cannot be a task for every learner (too few rows, a constant
        target, no training rows of a class): "skip" them with a warning, raise an "error", or "keep" them,
        with a warning, for a `PriorLearner`, which learns them with the others.
    shuffle: tasks in random order, instead of that in which groups first occur in the table.
    encoding: of a learner (`learner.encoding(task)`) or another stream, for groups that come later; it also
        says which columns are the group and the target.

    Numbers are standardised by the training rows of all groups; columns of zeros and ones, or of truth
    values, say yes or no and stay as they are; categories get one input a level, and where values are
    missing, one more input says so. Values of a regression are standardised, too.
    All that is recorded in the tasks, and in a learner that learns them: `learner.predict(rows, task)`
    takes rows of the same columns, and scores are in the target's own units.

    Raises `DataError` if a column is missing or cannot be read, with its name and the row, and
    `SettingError` for settings that do not fit.

    >>> import pandas
    >>> table = pandas.DataFrame({"site": ["a", "b"] * 20, "age": range(40), "cost": np.arange(40) / 7})
    >>> stream = piaget.streams.from_table(table, group="site", target="cost")
    >>> stream[0]
    Task('a', regression; inputs (1,); 12 train, 4 validation, 4 test samples)
    >>> stream.encoding.inputs
    ['age']
    """
    _check_texts(group=group, target=target, split=split, kind=kind, name=name)
    if not isinstance(encoding, Encoding | None):
        raise SettingError(f"encoding={shown(encoding)}; expected learner.encoding(task), or stream.encoding")
    group = group or (encoding.group if encoding else None)
    target = target or (encoding.target if encoding else None)
    if group is None or target is None:
        raise SettingError("from_table needs the names of two columns: group=... and target=...")
    categorical, ignore = _names("categorical", categorical), _names("ignore", ignore)
    if encoding is not None and (categorical or ignore):
        raise SettingError("categorical and ignore are for a new encoding; the one given says what to do")
    if not isinstance(on_unusable, str) or on_unusable not in ("skip", "keep", "error"):
        raise SettingError(f"on_unusable={shown(on_unusable)}; expected 'skip', 'keep' or 'error'")
    seed, fractions = check_seed(seed), check_fractions(fractions)
    frame, source, categories = _read(table, group, target, split, categorical, ignore, encoding)
    kind = _kind(kind or (encoding.kind if encoding else None), target, frame[target])
    y = as_numbers(target, frame[target]) if kind == "regression" else frame[target].to_numpy(object)
    parts = parts_of(frame[split]) if split else None
    names = as_texts(frame[group])
    note_alike(dict.fromkeys(names))
    columns = [c for c in frame.columns if c not in {group, target, split, *ignore}]
    used = {target, *(columns if encoding is None else (column.name for column in encoding.columns))}
    copies = copied(frame[[c for c in frame if c in used]], names)
    if copies is not None:
        note_copied(copies, source, parts, kept_together=not stratified)
    groups, skipped = groups_of(
        names,
        y,
        kind,
        parts,
        fractions,
        stratified,
        train_size,
        seed,
        copies=None if stratified else copies,  # class by class, rows are divided as version 0.1 did
        keep=on_unusable == "keep",
    )
    partial = {one: group.lack for one, group in groups.items() if group.lack is not None}
    _tell_skipped(skipped, len(groups), source, on_unusable)
    _tell_kept(partial, len(groups), source)
    if encoding is None:
        train = np.concatenate([g.train for g in groups.values()])
        scaling = standardized(f"column {target!r}", y[train]) if kind == "regression" else Scaling()
        fitted = fit_columns(frame.iloc[train], columns, categories)
        encoding = Encoding(fitted, group, target, kind, scaling)
        numbers = [column.name for column in fitted if column.levels is None]
        note_identifiers(numbers, frame)
        note_held_out(fitted, frame)
        note_outliers([*numbers, *([target] if kind == "regression" else [])], frame.iloc[train])
    x, stream = encoding.encode(frame), name or source
    tasks = [g.task(task, stream, kind, x, encoding) for task, g in groups.items()]
    if shuffle:
        tasks = [tasks[i] for i in np.random.default_rng(seed).permutation(len(tasks))]
    labels = None if kind == "regression" else classes_of(y)[1]
    return TableStream(stream, seed, encoding, tasks, skipped, labels, frame.columns, partial)


def _check_texts(**texts: Any) -> None:
    for what, text in texts.items():
        if not isinstance(text, str | None):
            raise SettingError(f"{what}={shown(text)}; expected a text")


def _read(
    table: Any,
    group: str,
    target: str,
    split: str | None,
    categorical: list[str],
    ignore: list[str],
    encoding: Encoding | None,
) -> tuple[Any, str, set[str]]:
    """The table, with values tidied and without rows that lack a group or a target; what to call it; and
    which columns of a new encoding are categories whatever they hold."""
    frame, source = read_table(table, [group, *categorical, *(encoding.categories if encoding else ())])
    named = [group, target, *([split] if split else []), *categorical, *ignore]
    _check_columns(source, list(frame.columns), named)
    if encoding is None:
        declared = [c for c in declared_categories(frame) if c not in named]
        categorical = [*categorical, *declared]
    as_texts_only = categorical if encoding is None else encoding.categories
    for column in (group, *as_texts_only):
        if column in frame.columns:
            check_cells(column, frame[column])
    frame = without_missing(frame, source, [group, target], table)
    frame = frame.assign(
        **{c: tidied(c, frame[c]) for c in frame if c not in {group, split, *as_texts_only, *ignore}}
    )
    if is_dates(frame[target]):
        raise DataError(f"column {target!r} holds dates; expected classes or numbers as a target")
    return frame.assign(**{target: _whole(frame[target])}), source, set(categorical)


def _whole(values: Any) -> Any:
    """A pandas column of whole numbers as such: as long as some were missing, they had to be fractions."""
    fractions = values.dtype.kind == "f" and bool(len(values)) and bool((values == values.round()).all())
    return values.astype("int64") if fractions and bool((values.abs() < 2**53).all()) else values


def _taken_for_missing(table: Any, columns: list[str]) -> list[str]:
    """Which texts of these columns of a file are read as missing values, beside empty ones."""
    written = as_written(Path(table)) if isinstance(table, str | os.PathLike) else None
    if written is None:
        return []
    return sorted({text for name in columns for text in written[name].dropna() if text in MISSING})


def _names(what: str, columns: Any) -> list[str]:
    listed = [columns] if isinstance(columns, str) else columns
    if not isinstance(listed, Sequence | set | frozenset) or isinstance(listed, bytes):
        raise SettingError(f"{what}={shown(columns)}; expected names of columns")
    return list(listed)


def _check_columns(source: str, there: list[str], named: list[str]) -> None:
    for name in named:
        if name not in there:
            near = difflib.get_close_matches(name.casefold(), {t.casefold(): t for t in there}, 1, 0.8)
            same = [t for t in there if t.casefold() in near]
            hint = f" (did you mean {same[0]!r}?)" if same else ""
            columns = ", ".join(map(repr, there))
            raise DataError(f"{source} has no column {name!r}{hint}; its columns: {columns}")


def without_missing(frame: Any, source: str, columns: list[str], table: Any = None) -> Any:
    """Rows without a group or a target are left out, with a note. An empty text is none, as in a file."""
    missing = (frame[columns].isna() | (frame[columns].astype(object) == "")).any(axis=1).to_numpy(bool)
    if missing.any():
        texts = _taken_for_missing(table, columns[1:])
        hint = f" ({some(texts)} in column {columns[-1]!r} counts as missing: rename it, if it is a class)"
        note(
            f"{source}: {missing.sum()} of {len(frame)} rows have no {' or no '.join(columns)}; left out"
            + hint * bool(texts)
        )
    if missing.all():
        raise DataError(f"{source}: no row has both {' and '.join(columns)}")
    return frame[~missing]  # with its row numbers, for messages


def _kind(given: str | None, target: str, values: Any) -> Kind:
    """regression, binary or multiclass, given or inferred from the target."""
    if given is not None and given not in KINDS:
        raise SettingError(f"kind={given!r}; expected one of {', '.join(KINDS)}")
    types = need("pandas", "tables").api.types
    try:
        different = values.nunique()
    except TypeError as error:
        raise DataError(f"column {target!r} holds {values.iloc[0]!r}; expected numbers or texts") from error
    measured = types.is_float_dtype(values) and is_measured(as_numbers(target, values))
    if given is None:
        quantity = types.is_numeric_dtype(values) and not types.is_bool_dtype(values)
        if quantity and (measured or different > MOST_CLASSES):
            return "regression"
        if quantity and different > 2:
            note(
                f"column {target!r} has {different} different whole numbers, taken for classes; if they are "
                "counts or amounts, say kind='regression' (on the command line, --kind regression)"
            )
        given = "binary" if different == 2 else "multiclass"
    if given == "binary" and different != 2:
        raise DataError(
            f"column {target!r} has {different} different values; expected 2, since kind is binary"
        )
    return given  # type: ignore[return-value]


# --- groups ------------------------------------------------------------------------------------------------


def _tell_skipped(skipped: dict[str, str], kept: int, source: str, on_unusable: str) -> None:
    if not skipped:
        return
    shown = "; ".join(f"{name!r}: {why}" for name, why in list(skipped.items())[:5])
    more = f"; and {len(skipped) - 5} more" if len(skipped) > 5 else ""
    text = f"{source}: {len(skipped)} of {len(skipped) + kept} groups cannot be a task: {shown}{more}"
    if on_unusable == "error" or not kept:
        raise DataError(text)
    learns = "; a PriorLearner learns them, with on_unusable='keep'" * (on_unusable == "skip")
    note(f"{text}. They are skipped (stream.skipped lists them{learns}).")


def _tell_kept(partial: dict[str, str], groups: int, source: str) -> None:
    alike: dict[str, list[str]] = {}
    for name, why in partial.items():
        alike.setdefault(why.partition(" (")[0], []).append(name)
    told = "; ".join(f"{some(names)}: {why}" for why, names in list(alike.items())[:5]) + "; ..." * (
        len(alike) > 5
    )
    if partial:
        note(
            f"{source}: {len(partial)} of {groups} groups have few rows, or lack a class or different "
            f"values: {told}. They are learned with the others, and scored as far as they have test rows"
        )


# --- columns ------------------------------------------------------------------------------------------------


def fit_columns(train: Any, columns: list[str], categorical: set[str]) -> tuple[Column, ...]:
    """How each column is encoded, by the training rows; those that are constant are left out."""
    types = need("pandas", "tables").api.types
    fitted, constant, names = [], [], {}
    for name in columns:
        values = train[name]
        date = types.is_datetime64_any_dtype(values)
        number = types.is_numeric_dtype(values) or date
        may_miss = bool(values.isna().any())
        if number and name not in categorical:
            numbers = as_numbers(name, values)
            present = numbers[~np.isnan(numbers)]
            varies = len(present) > 0 and present.min() < present.max()
            with np.errstate(over="ignore", invalid="ignore"):
                mean, spread = (present.mean(), present.std()) if varies else (present[:1].sum(), 1.0)
            if not np.isfinite([mean, spread]).all():
                raise DataError(
                    f"column {name!r} holds values up to {np.abs(present).max():g}, too large to compute with"
                )
            if not date and bool(np.isin(present, (0, 1)).all()):  # yes or no: it stays as it is
                mean, spread = 0.0, 1.0
            column = Column(name, None, float(mean), float(spread) or 1.0, may_miss, date)
        else:
            levels = sorted({text for text in as_texts(values) if text is not None})
            if len(levels) > MOST_LEVELS:
                names[name] = levels
                continue
            column, varies = Column(name, tuple(levels), may_miss=may_miss), len(levels) > 1
        if varies or (may_miss and not values.isna().all()):
            fitted.append(column)
        else:
            constant.append(name)
    if names:
        raise _not_categories(names)
    if not fitted:
        raise DataError(
            f"no column is left to predict from; constant in the training rows: {', '.join(constant)}"
        )
    if constant:
        note(f"left out, since they are constant in the training rows: {', '.join(constant)}")
    return tuple(fitted)


def _not_categories(names: dict[str, list[str]]) -> DataError:
    """The error about columns of names or free text. names: {column: its different texts}."""
    found = "; ".join(
        f"column {name!r} has {len(levels):,} different texts in training rows, such as {levels[0]!r}"
        for name, levels in names.items()
    )
    return DataError(
        f"{found}; expected categories of at most {MOST_LEVELS} levels: merge levels, or leave such columns "
        f"out (on the command line, --ignore {shlex.join(names)}; in from_table, ignore={list(names)})"
    )
