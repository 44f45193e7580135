"""Which parts make a method better: chosen on validation data, reported on test data of other seeds.

    python -m benchmarks.methods choose --streams objects-random mnist --out results/choose
    python -m benchmarks.methods report --streams objects-random mnist --out results/report
    python -m benchmarks.methods table results/choose        # what is there so far, against the reference

Choosing never sees test data: of seeds 100 to 104, half of each task's validation data is what the learner
has for its own decisions, and the other half takes the place of test data. Reporting is on seeds 0 to 9, with
streams as they are. Both go on where they were stopped. A variant is one of METHODS, with any of PARTS on top
of it, or of the paper's method: --variants paper "cosine rate + best epoch" "recommended + similar start".
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import piaget
from benchmarks import grids
from piaget.data.tasks import Split, Task, split_rows
from piaget.lab import compare
from piaget.lab.final_table import mean_and_error
from piaget.lab.folder import DONE, RunFolder, runs_below
from piaget.paper.defaults import settings_of
from piaget.scoring.rows import Row, final_performance, final_scores
from piaget.streams.lazy import MadeStream

CHOOSING, REPORTING = range(100, 105), range(10)
OPTIONS: dict[str, dict[str, Any]] = {  # of streams
    "cub": {"features": "resnet18_approx"},
    "grids": {"tasks": 120, "tests": 0},
}
# Of learners, where they are not the paper's. (Frozen components store no samples.)
SIZES: dict[str, dict[str, Any]] = {
    "grids": {name: value for name, value in grids.SETTINGS.items() if name != "replay_size"}
}
# To choose, fewer samples are enough; all of them take five times as long.
FEWER: dict[str, dict[str, Any]] = {"mnist": {"train_size": 2000}, "fashion": {"train_size": 2000}}

HELD_OUT = "benchmarks.methods:held_out"

REFERENCE = "paper"
PAPER: dict[str, Any] = {"structure": "soft-ordering", "adaptation": "er", "algorithm": "dynamic"}
PARTS: dict[str, dict[str, Any]] = {
    "scale and shift": {"structure": "soft-ordering-scaled"},
    "no scale and shift": {"structure": "soft-ordering"},
    "cosine rate": {"rate_schedule": "cosine"},
    "threefold cosine rate": {"rate_schedule": "cosine", "learning_rate": 3e-3},
    "tenfold cosine rate": {"rate_schedule": "cosine", "learning_rate": 1e-2},
    "threefold rate": {"learning_rate": 3e-3},
    "the paper's rate": {"learning_rate": 1e-3},
    "constant rate": {"rate_schedule": "constant"},
    "best epoch": {"kept_epoch": "best"},
    "balanced replay": {"replay_share": 0.5},
    "validated adaptation": {"acceptance": "validated"},
    "averaging": {"averaging": 1.0},
    "replay": {"adaptation": "er"},
    "frozen components": {"adaptation": "fm"},
    "stored outputs": {"adaptation": "der++"},
    "projected gradients": {"adaptation": "a-gem"},
    "McNemar": {"expansion": "mcnemar"},
    "second attempt": {"expansion": "second-attempt"},
    "no expansion": {"expansion": "none"},
    "similar start": {"start": "similar"},
    "most-used candidate": {"candidate_start": "most-used"},
    "prune and merge": {"reduction": "prune-and-merge"},  # needs stored samples
    "weight decay 0.3": {"weight_decay": 0.3},
    "weight decay 1": {"weight_decay": 1.0},
}
METHODS: dict[str, dict[str, Any]] = {
    REFERENCE: PAPER,
    "frozen": PAPER | {"adaptation": "fm"},
    "alone": PAPER | {"adaptation": "fm", "algorithm": "alone"},
    "recommended": PAPER
    | {"structure": "soft-ordering-scaled", "adaptation": "fm", "algorithm": "recommended"},
    "compositional, frozen": PAPER | {"algorithm": "compositional", "adaptation": "fm"},
}


def variant(name: str) -> dict[str, Any]:
    """A method by name, with parts on top of it: "recommended + similar start". Parts alone are on top of the
    paper's method: "cosine rate + best epoch"."""
    first, *parts = name.split(" + ")
    settings = METHODS.get(first, PAPER)
    for part in parts if first in METHODS else [first, *parts]:
        if part not in PARTS:
            raise SystemExit(f"{part!r} is neither a method nor a part: {', '.join([*METHODS, *PARTS])}")
        settings = settings | PARTS[part]
    return settings


def held_out(seed: int, stream: str, **options: Any) -> MadeStream:
    """A stream by name, in whose tasks half of the validation data takes the place of the test data."""
    whole = piaget.stream(stream, seed=seed, **options)

    def make(i: int) -> Task:
        task = whole[i]
        assert task.validation is not None, f"{stream} has no validation data"
        x, y = task.validation.x, task.validation.y
        kept, _, scored = split_rows(y, task.classes, (0.5, 0.0, 0.5), seed)
        return replace(task, validation=Split(x[kept], y[kept]), test=Split(x[scored], y[scored]))

    return MadeStream(f"{stream}, validation", seed, len(whole), make)


def train(streams: list[str], variants: list[str], seeds: list[int], out: Path, choosing: bool) -> None:
    """All that is not there yet; each stream and variant in a folder of its own."""
    for stream in streams:
        options = OPTIONS.get(stream, {})
        fewer = {"stream": stream} | options | FEWER.get(stream, {})
        given: Any = (HELD_OUT, fewer) if choosing else (stream, options)
        done: dict[Any, str] = {}
        for name in variants:
            chosen = variant(name)
            usual = settings_of(stream, "soft-ordering", chosen["adaptation"], chosen["algorithm"], chosen)
            settings = usual | SIZES.get(stream, {}) | chosen
            same = done.setdefault(piaget.Learner(**settings).settings, name)
            if same != name:
                print(f"{stream}, {name}: the same as {same}", flush=True)
                continue
            compare([settings], [given], seeds, out / stream / name.replace(" ", "-"))
            print(f"{stream}, {name}: done", flush=True)


# --- what came of it ------------------------------------------------------------------------------------


def outcome(run: RunFolder) -> dict[str, float]:
    """Of one finished run: final performance, with more being better, and what it took."""
    rows: list[Row] = list(run.rows())
    performance = final_performance(final_scores(rows))
    assert performance is not None
    metric, value = performance
    counts = [row["value"] for row in rows if row["metric"] == "components"]
    return {"score": -value if metric == "rmse" else value, "components": counts[-1] if counts else 0.0}


def table(out: Path) -> str:
    """A row a stream and variant: mean and standard error, and the paired difference from the reference."""
    found: dict[tuple[str, str], dict[int, dict[str, float]]] = defaultdict(dict)
    for run in runs_below(out):
        if run.status == DONE:
            stream, variant = run.path.relative_to(out).parts[:2]
            found[stream, variant][run.seed] = outcome(run)
    lines = ["| stream | variant | seeds | score | components | difference |", "|---|---|---|---|---|---|"]
    for (stream, variant), runs in sorted(found.items()):
        reference: Mapping[int, dict[str, float]] = found.get((stream, REFERENCE), {})
        scores = _shown([100 * run["score"] for run in runs.values()])
        counts = _shown([run["components"] for run in runs.values()])
        both = [
            100 * (run["score"] - reference[seed]["score"]) for seed, run in runs.items() if seed in reference
        ]
        difference = _shown(both) if both and variant != REFERENCE else ""
        lines.append(f"| {stream} | {variant} | {len(runs)} | {scores} | {counts} | {difference} |")
    return "\n".join(lines) + "\n"


def _shown(values: list[float]) -> str:
    mean, error = mean_and_error(values)
    return f"{mean:.2f} ± {error:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("choose", "report", "table"))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--streams", nargs="+", default=["objects-random"])
    parser.add_argument("--variants", nargs="+", default=[*METHODS, *PARTS], help='methods, parts: "a + b"')
    parser.add_argument("--seeds", nargs="+", type=int)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    folder = options.folder or options.out
    if folder is None:
        parser.error("say where: --out FOLDER")
    if options.what != "table":
        choosing = options.what == "choose"
        seeds = options.seeds or list(CHOOSING if choosing else REPORTING)
        train(options.streams, options.variants, seeds, folder, choosing)
    print(table(folder))


if __name__ == "__main__":
    main()
