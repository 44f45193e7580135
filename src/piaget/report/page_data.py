"""What the page is given: plain data, which becomes JSON. The page draws everything from it.

Scores are what `Stream.unit` says (accuracy in percent, or an error in its own unit), rounded; None where
there is none (yet). Indices are positions in the lists of `Report`.
"""

from __future__ import annotations

from typing import Any, TypedDict

Number = float | None


class Stream(TypedDict):
    name: str
    metric: str  # "accuracy" or "rmse"
    unit: str  # "accuracy in %", "rmse"
    higher_is_better: bool


class Method(TypedDict):
    """A method, with the settings in which it differs from others (`variant`: "" or such as
    "adapt_every=10")."""

    name: str  # "soft-ordering/er/dynamic"
    structure: str
    base: str  # "ER", "EWC", "NFT", "FM"
    algorithm: str  # "Dyn. + Comp.", "Compositional", "Joint", "No Comp."
    variant: str
    label: str  # for people, unique in this report: "ER Dyn. + Comp."


class Candidate(TypedDict):
    """A new component that was tried on a task, with its two validation scores."""

    task: int  # position in the run's tasks
    with_it: float
    without: float
    kept: bool


class Run(TypedDict):
    stream: int
    method: int
    seed: int
    status: str  # "done", "running", "interrupted", ...
    folder: str  # as given on the command line, for people
    link: str | None  # to its run.json, relative to the page
    command: str  # makes this run again
    reference: int | None  # the run of no-components NFT on the same data, with the same seed and epochs
    configuration: dict[str, Any]
    seconds: Number  # its share of the time of the cohort that it was trained in
    steps: Number
    memory: Number  # bytes
    components: Number  # how many there are at the end
    tasks: list[str]  # in the order in which they were learned
    # after[i][j]: score of task j right after task i was learned (None if not known yet). The initial tasks
    # are learned together, so the first rows of them are empty lists, and the last of them has all.
    after: list[list[Number]]
    # structures[j][c][d]: how much task j uses component c at depth d; None: nothing to choose
    structures: list[list[list[float]]] | None
    candidates: list[Candidate]
    removed: list[list[Number]] | None  # removed[j][c]: final score of task j without component c


class Curve(TypedDict):
    """Learning curves of one method on one stream, mean over seeds: one line a task."""

    stream: int
    method: int
    seeds: int
    epochs: list[int]  # of the whole stream, one task after the other
    starts: list[int]  # the epoch at which each task's training begins
    scores: list[list[Number]]  # scores[j][i]: of the j-th task at epochs[i]


class Table(TypedDict):
    """A finished table. Cells are text; `best`: (row, column) of cells to be set in bold.

    `stream`, `method`: of each row, if it is about one (position, or None): rows of what is not chosen are
    hidden.
    """

    id: str
    title: str
    caption: str
    columns: list[str]
    rows: list[list[str]]
    best: list[tuple[int, int]]
    stream: list[int | None]
    method: list[int | None]


class ExplorerTask(TypedDict):
    name: str
    weights: list[list[float]]  # weights[d][c], as learned
    score: Number  # as learned
    # Grid: scores[d][c][i], with component c at depth d at intensity `intensities[i]`. Pixels: None.
    scores: list[list[list[Number]]] | None
    truth: str | None  # pixels: base64 of one byte a pixel, 1: inked


class Explorer(TypedDict):
    """Sliders for every component and depth of one run.

    At intensity a, a component has weight a at that depth, and the others share 1 - a as they did before
    (equally, if they had nothing). For linear combinations, a scales the component's own weight.

    kind "grid": scores are known on a grid, for one slider moved at a time.
    kind "pixels": everything is computed from the parameters: `numbers` is base64 of little-endian float32:
    inputs (pixels, 2), encoder weight (2, width) and bias (width), components' weight (k, width, width) as
    [component][out][in] and bias (k, width), decoder weight (width, 1) and bias (1).
    h = input @ encoder + bias; at each depth h = sum_c w_c relu(W_c h + b_c); ink = sigmoid(h @ decoder +
    bias).
    """

    kind: str
    run: int
    depth: int
    components: int
    shared: bool  # do the weights of a depth sum to 1? (not for linear combinations)
    intensities: list[float]
    tasks: list[ExplorerTask]
    width: int | None
    side: tuple[int, int] | None  # rows and columns of the picture
    numbers: str | None


class Report(TypedDict):
    title: str
    made: str  # date
    version: str
    command: str  # that made the report
    notes: list[str]  # what is missing, and why
    streams: list[Stream]
    methods: list[Method]
    runs: list[Run]
    curves: list[Curve]
    tables: list[Table]
    explorers: list[Explorer]
    paper: list[tuple[int, int, float, float]]  # stream, method, mean and standard error of final scores
