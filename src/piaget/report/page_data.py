"""What the page is given: plain data, which becomes JSON. The page draws everything from it.

Scores are what `StreamData.unit` says (accuracy in percent, or an error in its own unit), rounded; None where
there is none (yet). Indices are positions in the lists of `ReportData`. Everything that is more than a mean
over what is chosen in the page is computed before, and stands here.

The page's scripts are checked against these types: tests/page_schema.py turns them into TypeScript.
"""

from __future__ import annotations

from typing import Any, TypedDict

Number = float | None


class CellData(TypedDict):
    """A number as it reads, and what it is sorted by."""

    text: str
    value: Number


class StreamData(TypedDict):
    """A stream, and how its scores are shown."""

    name: str
    metric: str  # "accuracy" or "rmse"
    unit: str  # "accuracy in %", "rmse"
    digits: int
    higher_is_better: bool


class MethodData(TypedDict):
    """A method, with the settings in which it differs from others."""

    name: str  # "soft-ordering/er/dynamic"
    algorithm: str  # "Dyn. + Comp.", "Compositional", "Joint", "No Comp.", or one's own
    label: str  # for people, unique in this report: "ER Dyn. + Comp. [adapt_every=10]"
    words: str  # what its name stands for


class ScoreData(TypedDict):
    """A further score of classification tasks, which the page can show in place of accuracy."""

    name: str  # "AUC", "log-loss"
    digits: int
    higher_is_better: bool


class FurtherData(TypedDict):
    """A run's further score: of those tasks that have it."""

    tasks: list[int]  # positions in the run's tasks
    first: list[Number]  # of each of them, right after it was learned
    final: list[Number]


class CandidateData(TypedDict):
    """A new component that was tried on a task, with its two validation scores."""

    task: int  # position in the run's tasks
    with_it: float
    without: float
    gain: Number  # by how many percent it is better with it
    kept: bool


class LifeData(TypedDict):
    """A component, from the task with which it came to the one after which it went."""

    born: int  # the task's position, or -1
    left: int | None  # None: it is there in the end
    into: int | None  # the place, in the run's lives, of the one that it was merged into
    component: int | None  # its number in the end, if it is there


class InferenceData(TypedDict):
    """How well a run tells the tasks of inputs that nobody names. Of each task, shares of its inputs in %."""

    inferred: list[Number]  # whose task is told rightly, if one must be named
    in_tens: list[Number]  # of tens of inputs, the same
    none: list[Number]  # that are taken for none of the tasks; None: what is taken for what is not known
    taken: list[tuple[int, int, float]]  # of (task, another one or itself): that are taken for it, if any are


class RunData(TypedDict):
    """One stream, method and seed."""

    stream: int
    method: int
    seed: int
    status: str  # "done", "running", "interrupted", ...
    counted: bool  # in means: finished, or no run on the stream is
    folder: str  # as given on the command line, for people
    link: str | None  # to its run.json, relative to the page
    command: str  # makes this run again
    reference: int | None  # the run of no-components NFT on the same data, with the same seed and epochs
    configuration: dict[str, Any]
    time: CellData
    steps: CellData
    memory: CellData
    components: Number  # how many there are at the end
    tasks: list[str]  # in the order in which they were learned
    first: list[Number]  # of each task, its score right after it was learned
    final: list[Number]  # of each task, its last score
    ratio: list[Number]  # of each task, the paper's forgetting ratio
    further: dict[str, FurtherData]  # by the name of the score
    majority: list[Number]  # of each task, the accuracy of always answering the most frequent training class
    # after[i][j]: score of task j right after task i was learned (None if not known yet). The initial tasks
    # are learned together, so the first rows of them are empty lists, and the last of them has all.
    after: list[list[Number]]
    # structures[j][c][d]: how much task j uses component c at depth d; empty: nothing to choose
    structures: list[list[list[float]]]
    uses: list[list[float]]  # uses[j][c]: the same, mean over depths, whatever the sign
    lives: list[LifeData]  # of all components that ever were, by birth
    threshold: Number  # the relative gain from which on candidates were kept, if that was the rule
    candidates: list[CandidateData]
    reused: list[list[bool]]  # reused[j][c]: is task j worse by more than 5 % without component c?
    inference: InferenceData | None


class CurveData(TypedDict):
    """Learning curves of one method on one stream, mean over seeds: one line a task."""

    stream: int
    method: int
    seeds: int
    epochs: list[int]  # of the whole stream, one task after the other
    starts: list[int]  # the epoch at which each task's training begins
    scores: list[list[Number]]  # scores[j][i]: of the j-th task at epochs[i]


class AnswerData(TypedDict):
    """A question, its answer in a few words, what it rests on in one line, and more of that."""

    question: str
    tone: str  # "good", "bad", or "open": not decided
    headline: str
    basis: str
    evidence: list[str]
    links: list[tuple[str, str]]  # the identifier of a place in the page, and what it is


class LookData(TypedDict):
    """What there is to say of a stream at first: of all its runs, whatever is chosen in the page."""

    stream: int
    answers: list[AnswerData]
    limits: str  # what tests over so few seeds can tell; may be empty


class AlertData(TypedDict):
    """What must be known before any number."""

    kind: str  # "diverged", "failed", "unfinished", "at chance level"
    text: str
    stream: int


class VariationData(TypedDict):
    """A method that differs from a reference in one part, compared with it over seeds."""

    stream: int
    method: int
    reference: int  # a method, too
    part: str
    usual: str  # what the reference has there
    other: str
    seeds: int
    difference: float  # above 0: better than the reference
    low: float  # of the interval of 95 %
    high: float
    p: float
    significant: bool  # at 5 %, corrected
    components: Number  # how many times as many as the reference has, in the end
    parameters: Number
    time: Number


class TableData(TypedDict):
    """A finished table. `best`: (row, column) of cells to be set in bold.

    `stream`, `method`: of each row, if it is about one (position, or None): rows of what is not chosen are
    hidden.
    """

    id: str
    title: str
    caption: str
    columns: list[str]
    rows: list[list[str | CellData]]
    best: list[tuple[int, int]]
    stream: list[int | None]
    method: list[int | None]


class ExplorerTaskData(TypedDict):
    """A task with sliders."""

    name: str
    weights: list[list[float]]  # weights[d][c], as learned
    usable: int  # how many components it may use: the first ones, which were there when it was learned
    score: Number  # as learned
    # scores[d][c][i]: with component c at depth d at intensity `intensities[i]`; None, if there is a network
    scores: list[list[list[Number]]] | None
    truth: str | None  # of pictures: base64 of one byte a pixel, 1: inked


class NetworkData(TypedDict):
    """What pictures are computed from, for any weights.

    `numbers` is base64 of little-endian float32: inputs (pixels, 2), encoder weight (2, width) and bias
    (width), components' weight (k, width, width) as [component][out][in] and bias (k, width), decoder weight
    (width, 1) and bias (1). h = input @ encoder + bias; at each depth h = sum_c w_c relu(W_c h + b_c);
    ink = sigmoid(h @ decoder + bias).
    """

    width: int
    side: tuple[int, int]  # rows and columns of the picture
    numbers: str


class ExplorerData(TypedDict):
    """Sliders for every component and depth of one run.

    At intensity a, a component has weight a at that depth, and the others share 1 - a as they did before
    (equally among those that the task may use, if they had nothing). For linear combinations, a scales the
    component's own weight.
    """

    run: int
    depth: int
    components: int
    shared: bool  # do the weights of a depth sum to 1? (not for linear combinations)
    intensities: list[float]
    tasks: list[ExplorerTaskData]
    network: NetworkData | None  # None: scores are known on a grid, for one slider moved at a time


class ReportData(TypedDict):
    """Everything."""

    title: str
    date: str  # on which it was made
    version: str
    command: str  # that made the report
    notes: list[str]  # what is missing, and why
    alerts: list[AlertData]
    overall: str  # of several streams: which method is best how often
    looks: list[LookData]
    total_time: str  # of all runs; empty, if it is not known
    most_memory: str
    streams: list[StreamData]
    methods: list[MethodData]
    scores: list[ScoreData]  # the further ones that some run has
    runs: list[RunData]
    curves: list[CurveData]
    variations: list[VariationData]
    tables: list[TableData]
    explorers: list[ExplorerData]
    paper: list[tuple[int, int, float, float]]  # stream, method, mean and standard error of final scores
