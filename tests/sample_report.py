"""A made-up report with everything in it, also names that try to be markup."""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from piaget.report.page import page
from piaget.report.page_data import (
    CandidateData,
    CurveData,
    ExplorerData,
    ExplorerTaskData,
    FurtherData,
    InferenceData,
    LifeData,
    LookData,
    MethodData,
    ReportData,
    RunData,
    StreamData,
    TableData,
    VariationData,
)

HOSTILE_TASK = "<img src=x onerror=alert(1)>"
HOSTILE_STREAM = "schools </script><script>alert(2)</script>"
HOSTILE_NOTE = "Run <b>5</b> is unfinished & \u2028 odd: <!-- {{script}} javascript:alert(3)"
INITIAL = 4  # tasks that are learned together
DEPTH = 4
# base, algorithm, final accuracy in %, what is forgotten, new components
METHODS = [
    ("ER", "Dyn. + Comp.", 92.5, 0.4, True),
    ("ER", "Compositional", 91.8, 0.8, False),
    ("ER", "Joint", 89.9, 1.5, False),
    ("ER", "No Comp.", 92.1, 1.9, False),
    ("NFT", "No Comp.", 85.7, 7.5, False),
]


def sample_report(tasks: int = 6, seeds: int = 4, streams: int = 2, repeats: int = 1) -> ReportData:
    """`repeats`: of the five methods, as variants. The last run of the first method is unfinished."""
    draw = random.Random(0)
    methods = [_method(base, algorithm, i) for i in range(repeats) for base, algorithm, *_ in METHODS]
    all_streams: list[StreamData] = [_stream(s) for s in range(streams)]
    runs = [
        _run(draw, s, m, seed, tasks, unfinished=(s, m, seed) == (0, 0, seeds - 1) and tasks > 1)
        for s in range(streams)
        for m in range(len(methods))
        for seed in range(seeds)
    ]
    places = {(run["stream"], run["method"], run["seed"]): i for i, run in enumerate(runs)}
    for run in runs:  # the last method of each variant
        run["reference"] = places[run["stream"], run["method"] // 5 * 5 + 4, run["seed"]]
    curves = [_curve(draw, run, seeds) for run in runs if run["stream"] == 0 and run["seed"] == 0]
    return {
        "title": "Objects and schools: five algorithms",
        "date": "2024-05-06",
        "version": "0.1.0",
        "command": "piaget report results/sample --out report.html",
        "total_time": "3.2 h",
        "most_memory": "1,204 MB",
        "notes": ["No numbers of the paper for the second stream.", HOSTILE_NOTE],
        "alerts": [{"kind": "unfinished", "text": f"1 run is unfinished: {HOSTILE_STREAM}.", "stream": 0}],
        "overall": "ER Dyn. + Comp. has the best mean on 2 of 2 streams." if streams > 1 else "",
        "looks": [_look(s, all_streams[s], methods[0]["label"]) for s in range(streams)],
        "streams": all_streams,
        "methods": methods,
        "scores": [
            {"name": "AUC", "digits": 3, "higher_is_better": True},
            {"name": "log-loss", "digits": 3, "higher_is_better": False},
        ],
        "runs": runs,
        "curves": curves,
        "variations": [_variation(s, m) for s in range(streams) for m in (1, 2)],
        "tables": [_final_table(all_streams, methods), _cost_table()],
        "explorers": [_grid(draw, runs[0]), _pixels(draw)],
        "paper": [(0, m, METHODS[m][2] - 0.9, 0.6) for m in range(5)],
    }


def empty_report() -> ReportData:
    """No runs at all."""
    report = sample_report()
    none: ReportData = {**report, "runs": [], "curves": [], "tables": [], "explorers": [], "paper": []}
    return {**none, "notes": [], "alerts": [], "overall": "", "looks": [], "variations": []}


def small_report() -> ReportData:
    """One run with one task, and nothing else known of it."""
    report = sample_report(tasks=1, seeds=1, streams=1)
    run: RunData = {**report["runs"][0], "structures": [], "uses": [[]], "reused": [], "candidates": []}
    run["inference"] = None
    alone: ReportData = {**report, "runs": [run], "curves": [], "tables": [], "explorers": [], "paper": []}
    return {**alone, "alerts": [], "variations": []}


LONG = 300  # tasks


def long_report() -> ReportData:
    """One run over hundreds of tasks, with 30 components in the end; nothing else is told of it."""
    report = small_report()
    draw = random.Random(1)
    births = [-1] * 4 + [9 * c for c in range(1, 27)]
    sizes = [sum(born <= j for born in births) for j in range(LONG)]
    run = report["runs"][0]
    run["tasks"] = [f"grid-{j:03}" for j in range(LONG)]
    run["first"] = run["final"] = [90.0] * LONG
    run["ratio"] = [1.0] * LONG
    run["majority"], run["further"] = [None] * LONG, {}
    run["after"] = [[90.0 - 0.01 * (i - j) if j <= i else None for j in range(LONG)] for i in range(LONG)]
    run["structures"] = [_structure(draw, size) for size in sizes]
    run["uses"] = [[sum(weights) / DEPTH for weights in task] for task in run["structures"]]
    run["lives"] = [
        {"born": born, "left": None, "into": None, "component": c} for c, born in enumerate(births)
    ]
    run["lives"].append({"born": 40, "left": 170, "into": 3, "component": None})
    run["inference"] = _inference(LONG, 0)
    return report


def odd_report() -> ReportData:
    """Where a page could compute something else than Python does: a score that is not a number, a method with
    another threshold, all the weight on one component of an initial task of a run that has grown. Scores are
    little better than those of the most frequent class."""
    report = sample_report()
    runs = [run for run in report["runs"] if (run["stream"], run["method"]) == (0, 1)]
    runs[0]["final"][0] = runs[0]["ratio"][0] = None
    report["runs"][0]["ratio"][:2] = [1.0, None]  # 0 / 0, and 0.5 / 0
    for run in report["runs"]:
        run["threshold"] = 0.2 if run["seed"] == 1 and run["candidates"] else run["threshold"]
        run["majority"] = [share and 84.0 for share in run["majority"]]
    task = report["explorers"][0]["tasks"][0]
    task["weights"][0] = [1.0] + [0.0] * (len(task["weights"][0]) - 1)
    return report


def _stream(s: int) -> StreamData:
    if s % 2:
        name = HOSTILE_STREAM if s == 1 else f"schools-{s}"
        return {"name": name, "metric": "rmse", "unit": "rmse", "digits": 2, "higher_is_better": False}
    name = "objects-random" if s == 0 else f"objects-{s}"
    return {
        "name": name,
        "metric": "accuracy",
        "unit": "accuracy in %",
        "digits": 1,
        "higher_is_better": True,
    }


def _method(base: str, algorithm: str, variant: int) -> MethodData:
    changed = f"adapt_every={variant * 10}" if variant else ""
    structure = "monolithic" if algorithm == "No Comp." else "soft-ordering"
    return {
        "name": f"{structure}/{base.lower()}/{algorithm.lower()}",
        "algorithm": algorithm,
        "label": f"{base} {algorithm} {changed}".strip(),
        "words": f"What {base} and {algorithm} stand for",
    }


def _look(s: int, stream: StreamData, best: str) -> LookData:
    return {
        "stream": s,
        "answers": [
            {
                "question": "Which method is best, and is that certain?",
                "tone": "good",
                "headline": f"{best} leads with {stream['metric']}, significantly",
                "basis": "+0.4 points over ER No Comp.: 95 % interval +0.1 to +0.7, p = 0.012, 3 seeds.",
                "evidence": [f"Of {stream['name']}: better than each of the 4 others."],
                "links": [("performance", "figure"), ("table-final", "table"), ("table-nowhere", "no table")],
            },
            {
                "question": "Is anything forgotten?",
                "tone": "bad",
                "headline": f"Yes: {best} loses 0.4 points on average",
                "basis": "95 % interval \u22120.7 to \u22120.1, p = 0.012, 3 seeds.",
                "evidence": [f"The worst task is {HOSTILE_TASK}."],
                "links": [("forgetting", "figure")],
            },
        ],
        "limits": "What 3 seeds can tell: little.",
    }


def _variation(s: int, m: int) -> VariationData:
    """Of a method beside the first one."""
    difference = METHODS[m][2] - METHODS[0][2]
    return {
        "stream": s,
        "method": m,
        "reference": 0,
        "part": "algorithm",
        "usual": METHODS[0][1],
        "other": METHODS[m][1],
        "seeds": 3,
        "difference": difference,
        "low": difference - 1,
        "high": difference + 1,
        "p": 0.04 / m,
        "significant": m == 2,
        "components": 0.5,
        "parameters": 0.75,
        "time": None,
    }


def _score(s: int, accuracy: float) -> float:
    """An accuracy, or an error of about 10 that is the smaller, the higher the accuracy would be."""
    return round(accuracy, 2) if s % 2 == 0 else round(10 + (92 - accuracy) / 6, 3)


def _run(draw: random.Random, s: int, m: int, seed: int, tasks: int, unfinished: bool) -> RunData:
    base, algorithm, level, forgotten, dynamic = METHODS[m % 5]
    names = [HOSTILE_TASK if j == 2 else f"{_stream(s)['name'].split()[0]}-{j:02}" for j in range(tasks)]
    initial = min(INITIAL, tasks)
    learned = tasks - 1 if unfinished else tasks
    start = [level + draw.gauss(0, 1.5) + forgotten for _ in range(tasks)]
    after: list[list[float | None]] = []
    for i in range(tasks):
        scores: list[float | None] = []
        if initial - 1 <= i < learned:
            for j in range(tasks):
                gone = (
                    forgotten * (i - max(j, initial - 1)) / max(1, tasks - initial) * draw.uniform(0.6, 1.6)
                )
                scores.append(_score(s, min(100, start[j] - gone)) if j <= i else None)
        after.append(scores)
    candidates: list[CandidateData] = []
    if dynamic:
        for j in range(initial, learned):
            without, gain = start[j] - draw.uniform(0, 12), draw.uniform(0.97, 1.12)
            with_it = min(99.5, without * gain)
            candidates.append(
                {
                    "task": j,
                    "with_it": _score(s, with_it),
                    "without": _score(s, without),
                    "gain": round(100 * (with_it / without - 1), 2),
                    "kept": s % 2 == 0 and with_it >= 1.05 * without,
                }
            )
    kept = [candidate["task"] for candidate in candidates if candidate["kept"]]
    structures: list[list[list[float]]] = []
    reused: list[list[bool]] = []
    if algorithm != "No Comp.":
        sizes = [4 + sum(task <= j for task in kept) for j in range(learned)]
        structures = [_structure(draw, size) for size in sizes]
        reused = [[draw.random() < 0.4 for _ in range(4 + len(kept))] for _ in range(learned)]
    tables = [row[:learned] for row in after[:learned]]
    first = [next(row[j] for row in tables if row and row[j] is not None) for j in range(learned)]
    final = tables[-1]
    folder = f"results/sample/{s}-{m}/seed-{seed}"
    return {
        "stream": s,
        "method": m,
        "seed": seed,
        "status": "interrupted" if unfinished else "done",
        "counted": not unfinished,
        "folder": folder,
        "link": f"{s}-{m}/seed-{seed}/run.json",
        "command": f"piaget run objects-random --adaptation {base.lower()} --seeds {seed} --out '{folder}'",
        "configuration": {
            "stream": "objects",
            "seed": seed,
            "note": "</script>",
            "options": {"train_size": 100},
        },
        "time": {"text": f"{1 + seed} min", "value": 60.0 * (1 + seed)},
        "steps": {"text": "200,000", "value": 200_000},
        "memory": {"text": "900 MB", "value": 900.0},
        "components": None if algorithm == "No Comp." else 4 + len(kept),
        "reference": None,
        "tasks": names[:learned],
        "first": first,
        "final": final,
        "further": {} if s % 2 else _further(first, final),
        "majority": [None if s % 2 else 60.0 + j for j in range(learned)],
        "ratio": [_ratio(s, a, b) for a, b in zip(first, final, strict=True)],
        "after": tables,
        "structures": structures,
        "uses": [[sum(weights) / DEPTH for weights in task] for task in structures],
        "lives": _lives(kept, learned) if structures else [],
        "threshold": 0.05 if dynamic else None,
        "candidates": candidates,
        "reused": reused,
        "inference": _inference(learned, seed) if base == "ER" and structures else None,
    }


def _inference(tasks: int, seed: int) -> InferenceData:
    """Of each task's inputs, some are taken for those of the next one: most of the second task's."""
    lost = [30.0 if i == 1 else 20.0 for i in range(tasks)]
    own = [70.0 - seed - share for share in lost]
    return {
        "inferred": [share + 5 for share in own],
        "in_tens": [99.0 for _ in own],
        "none": [30.0 + seed for _ in own],
        "taken": [
            pair
            for i in range(tasks)
            for pair in ((i, i, own[i]), (i, (i + 1) % tasks, lost[i]))
            if tasks > 1
        ],
    }


def _lives(kept: Sequence[int], tasks: int) -> list[LifeData]:
    """Two components more than there are in the end: one was removed, one merged into the first."""
    there: list[LifeData] = [
        {"born": born, "left": None, "into": None, "component": c}
        for c, born in enumerate([-1] * 4 + list(kept))
    ]
    last = tasks - 1
    return [
        *there,
        {"born": -1, "left": last, "into": None, "component": None},
        {"born": min(INITIAL, last), "left": last, "into": 0, "component": None},
    ]


def _further(first: Sequence[float | None], final: Sequence[float | None]) -> dict[str, FurtherData]:
    """Log-losses of all tasks; an AUC of all but the second, whose test data has one class only."""

    def of(tasks: list[int], score: Callable[[float], float]) -> FurtherData:
        def scores(values: Sequence[float | None]) -> list[float | None]:
            return [round(score(values[j] or 0.0), 6) for j in tasks]

        return {"tasks": tasks, "first": scores(first), "final": scores(final)}

    tasks = list(range(len(final)))
    return {
        "AUC": of([j for j in tasks if j != 1], lambda accuracy: (1 + accuracy / 100) / 2),
        "log-loss": of(tasks, lambda accuracy: (100 - accuracy) / 30),
    }


def _ratio(s: int, first: float | None, final: float | None) -> float:
    assert first is not None
    assert final is not None
    return first / final if s % 2 == 0 else final / first


def _structure(draw: random.Random, size: int) -> list[list[float]]:
    """[component][depth]; the weights of a depth sum to 1."""
    depths = [_shares(draw, size) for _ in range(DEPTH)]
    return [[depths[d][c] for d in range(DEPTH)] for c in range(size)]


def _shares(draw: random.Random, size: int) -> list[float]:
    raw = [draw.random() ** 3 + 0.01 for _ in range(size)]
    return [round(value / sum(raw), 4) for value in raw]


def _curve(draw: random.Random, run: RunData, seeds: int) -> CurveData:
    tasks = len(run["tasks"])
    starts = [0 if j < INITIAL else 20 * (j - INITIAL + 1) for j in range(tasks)]
    epochs = list(range(0, starts[-1] + 20, 2))
    level = METHODS[run["method"] % 5][2]

    def score(j: int, epoch: int) -> float | None:
        age = epoch - starts[j]
        return None if age < 0 else round(level - 40 * 0.8**age - 0.02 * age + draw.gauss(0, 0.5), 2)

    return {
        "stream": run["stream"],
        "method": run["method"],
        "seeds": seeds,
        "epochs": epochs,
        "starts": starts,
        "scores": [[score(j, epoch) for epoch in epochs] for j in range(tasks)],
    }


def _final_table(streams: list[StreamData], methods: list[MethodData]) -> TableData:
    pairs = [(s, m) for s in range(len(streams)) for m in range(len(methods))]
    digits = {"accuracy": 1, "rmse": 2}
    return {
        "id": "final",
        "title": "Final performance",
        "caption": "Mean over tasks; mean ± standard error over seeds.",
        "columns": ["Stream", "Method", "Forward", "Final", "Paper"],
        "rows": [
            [
                streams[s]["name"],
                methods[m]["label"],
                f"{_score(s, METHODS[m % 5][2] + METHODS[m % 5][3]):.{digits[streams[s]['metric']]}f} ± 0.3",
                f"{_score(s, METHODS[m % 5][2]):.{digits[streams[s]['metric']]}f} ± 0.4",
                "" if s else f"{METHODS[m % 5][2] - 0.9:.1f} ± 0.6",
            ]
            for s, m in pairs
        ],
        "best": [(0, 3), (len(methods), 3)] if len(streams) > 1 else [(0, 3)],
        "stream": [s for s, _ in pairs],
        "method": [m for _, m in pairs],
    }


def _cost_table() -> TableData:
    return {
        "id": "cost",
        "title": "Cost",
        "caption": "Time and memory of a run.",
        "columns": ["Part", "Seconds", "Share"],
        "rows": [
            ["training", "1,204", "90 %"],
            ["evaluation", "98", "7 %"],
            ['a "quoted", part', "40", "3 %"],
        ],
        "best": [],
        "stream": [None, None, None],
        "method": [None, None, None],
    }


def _grid(draw: random.Random, run: RunData) -> ExplorerData:
    """The scores fall from the learned weight to both sides."""
    intensities = [i / 10 for i in range(11)]
    size = len(run["structures"][-1])
    tasks: list[ExplorerTaskData] = []
    for j, name in enumerate(run["tasks"]):
        uses = run["structures"][j] + [[0.0] * DEPTH] * (size - len(run["structures"][j]))
        weights = [[uses[c][d] for c in range(size)] for d in range(DEPTH)]
        score = run["after"][-1][j] or 90.0
        steep = draw.uniform(10, 30)
        scores: list[list[list[float | None]]] = [
            [[round(score - steep * abs(a - weight), 2) for a in intensities] for weight in at_depth]
            for at_depth in weights
        ]
        usable = len(run["structures"][j])
        tasks.append(
            {
                "name": name,
                "weights": weights,
                "usable": usable,
                "score": score,
                "scores": scores,
                "truth": None,
            }
        )
    return {
        "run": 0,
        "depth": DEPTH,
        "components": size,
        "shared": True,
        "intensities": intensities,
        "tasks": tasks,
        "network": None,
    }


def _pixels(
    draw: random.Random, width: int = 8, side: tuple[int, int] = (12, 12), size: int = 4
) -> ExplorerData:
    rows, columns = side
    places = [(2 * y / rows - 1, 2 * x / columns - 1) for y in range(rows) for x in range(columns)]
    numbers = [value for place in places for value in place]

    def add(n: int, spread: float) -> None:
        numbers.extend(draw.gauss(0, spread) for _ in range(n))

    add(2 * width, 1.5)
    add(width, 0.5)
    add(size * width * width, 1.6 / width**0.5)
    add(size * width, 0.3)
    add(width, 3 / width**0.5)
    add(1, 0.1)
    tasks: list[ExplorerTaskData] = []
    for digit in range(3):
        ring = [0.2 < (y * y + (x - 0.2 * digit) ** 2) ** 0.5 < 0.7 for y, x in places]
        tasks.append(
            {
                "name": f"digit {digit}" if digit else HOSTILE_TASK,
                "weights": [_shares(draw, size) for _ in range(DEPTH)],
                "usable": size,
                "score": 80.0 + digit,
                "scores": None,
                "truth": base64.b64encode(bytes(ring)).decode(),
            }
        )
    return {
        "run": 1,
        "depth": DEPTH,
        "components": size,
        "shared": True,
        "intensities": [i / 7 for i in range(8)],
        "tasks": tasks,
        "network": {
            "width": width,
            "side": side,
            "numbers": base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode(),
        },
    }


def written(folder: Path, reports: Mapping[str, ReportData]) -> dict[str, str]:
    """Their pages as files, as they are opened by people: addresses by name."""
    for name, report in reports.items():
        (folder / f"{name}.html").write_text(page(report), encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in reports}


def data_of(text: str) -> Any:
    """What a page was made of."""
    (packed,) = re.findall(r'<script type="text/plain" id="data">([^<]*)</script>', text)
    return json.loads(gzip.decompress(base64.b64decode(packed)))
