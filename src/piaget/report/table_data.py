"""What the page for tables of one's own is given: plain data, which becomes JSON (see page_data.py, whose
checks hold here, too). Scores are as rows have them, rounded; None where there is none."""

from __future__ import annotations

from typing import TypedDict

Number = float | None


class MetricData(TypedDict):
    """A score, and how it is shown."""

    key: str  # "auc"
    name: str  # "AUC"
    digits: int
    higher_is_better: bool
    words: str  # what it means
    groups: int  # that have it
    best: str | None  # the simple model that is best by it
    verdict: str | None  # is it worth it, by this score? A sentence (or why there is none)


class ModelData(TypedDict):
    """A simple model, or piaget: means over groups."""

    key: str
    name: str
    means: dict[str, Number]  # by metric


class GroupScoreData(TypedDict):
    """Scores of a group on its test rows. `gain`: by how much piaget is better than the simple model."""

    piaget: Number
    simple: Number
    majority: Number
    gain: Number


class OwnGroupData(TypedDict):
    """A group of the table."""

    name: str
    rows: int
    tested: int | None  # rows that scores are of
    positives: int | None  # rows of the second class, if there are two
    scores: dict[str, GroupScoreData]  # by metric


class ClassData(TypedDict):
    """A class, on the test rows of all groups together. `answered`: rows that are said to be of it."""

    name: str
    rows: int
    answered: int
    precision: Number
    recall: Number
    f1: Number
    auc: Number  # the class against all others
    weight: float  # by which classes are answered


class BinData(TypedDict):
    """Rows with about the same probability: what was predicted, and how often it was so."""

    predicted: float
    observed: float
    rows: int
    error: float  # standard error of what was observed


class CoverageData(TypedDict):
    """Intervals that ought to hold a share of the values, and the share that they hold."""

    level: float
    observed: float


class DirectionData(TypedDict):
    """A direction in which groups differ: its share of all shared differences, and what is otherwise the
    farther a group lies along it."""

    share: float
    words: list[str]


class MapData(TypedDict):
    """Groups by what they share."""

    groups: list[str]
    places: list[list[float]]  # of each group, along each direction
    near: list[list[str]]  # of each group, those that are most like it
    directions: list[DirectionData]


class ColumnData(TypedDict):
    """How much an input moves the answer: in common, and how much groups differ in that."""

    name: str
    common: float
    differs: float


class MovedData(TypedDict):
    """How far whole answers move if a column's values are exchanged among rows."""

    name: str
    moves: float


class ArrivalData(TypedDict):
    """Rows of a group that came with a later table, and how they were answered before they were learned."""

    table: str
    group: str
    is_new: bool
    rows: int
    scores: dict[str, Number]  # by metric
    fit: str  # of a new group: is it typical of the others, or unusual?


class BendLinesData(TypedDict):
    """What groups are answered along a column. `subject`: a class, where there are more than two."""

    subject: str
    lines: list[list[float]]  # of each group, at each place


class BendData(TypedDict):
    """A column along which groups bend, each in its own way."""

    words: str  # a sentence
    title: str
    axis: str  # what places are
    drawn: str  # what lines are of
    places: list[float]
    groups: list[str]
    unlike: list[int]  # some of these, which differ
    curves: list[BendLinesData]
    note: str  # what is left out; empty: nothing


class OwnRunData(TypedDict):
    """A run over a table."""

    name: str  # unique in this report
    folder: str
    command: str  # makes this run again
    predict: str  # the command for new rows
    kind: str  # "binary", "multiclass", "regression"
    target: str
    group: str  # the column's name
    positive: str  # the second of two classes; empty: there are not two
    simplest: str  # what the model is called that answers without columns
    tested: int | None  # rows that means of scores are of; None: not known
    means_over: str  # of which groups means are, in words
    facts: list[tuple[str, str]]
    notes: list[str]
    metrics: list[MetricData]  # the first one decides
    models: list[ModelData]  # piaget last
    groups: list[OwnGroupData]
    classes: list[ClassData]  # none of a regression
    bins: list[BinData]
    calibration_error: Number
    coverage: list[CoverageData]
    map: MapData | None
    no_map: str  # why there is none, in a sentence; empty: there is, or nothing is known of the learner
    bends: list[BendData]
    columns: list[ColumnData]
    moved: list[MovedData]  # by columns, where trees correct the answers; none, if weights tell all
    unit: str  # of what columns do
    trees: bool  # do trees correct the answers?
    arrivals: list[ArrivalData]


class OwnReportData(TypedDict):
    """Everything."""

    title: str
    date: str
    version: str
    command: str
    notes: list[str]
    runs: list[OwnRunData]
