"""Runs over tables, as `piaget run --table` shows them: beside simple models, and whether it is worth it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from piaget.cli.common import print_json
from piaget.data.plain import printable
from piaget.lab.parts import Trusted
from piaget.scoring.rows import BY_CLASS, LOWER_IS_BETTER, R2_ROWS, Row
from piaget.scoring.worth import CHOICES, NAMES, check_metric, is_it_worth_it, three

if TYPE_CHECKING:
    from piaget.lab.folder import RunFolder

WORST = 3  # groups that are named
# What scores need that not every group has.
NEEDS = {"auc": "test rows of different classes", "r2": f"{R2_ROWS} test rows that differ"}


def go(
    configuration: dict[str, Any], seeds: Sequence[int], options: argparse.Namespace, code: Trusted
) -> int:
    """Learns the table for each seed, and shows what came of it."""
    import torch

    from piaget.lab.table_runs import run

    torch.set_num_threads(1)

    def say(text: str) -> None:
        if options.json:
            print_json({"event": "step", "text": text})
        elif not options.quiet:
            print(f"piaget: {text} ...", file=sys.stderr, flush=True)

    metric = getattr(options, "metric", None)
    check_metric(metric, None, what="--metric ")
    data_dir = None if options.data_dir is None else str(Path(options.data_dir).absolute())
    run(configuration, seeds, options.out, say, data_dir, code, metric)
    return show(seeds, options)


def show(seeds: Sequence[int], options: argparse.Namespace) -> int:
    """What runs that are done found."""
    from piaget.errors import LoadError
    from piaget.lab.folder import RunFolder, seed_folders

    found = []
    for folder in seed_folders(options.out, seeds):
        try:
            found.append((RunFolder(folder), list(RunFolder(folder).rows()), RunFolder(folder).summary or {}))
        except LoadError as error:
            print(f"piaget: left out: {error}", file=sys.stderr)
    if options.json:
        runs = [{"folder": str(run.path), "seed": run.seed} | summary for run, _, summary in found]
        print_json({"event": "result", "runs": runs, "failed": []})
        return 2 * (len(found) < len(seeds))
    for run, rows, summary in found:
        if len(seeds) > 1:
            print(f"seed {run.seed}")
        metric = getattr(options, "metric", None) or summary["metric"]
        check_metric(metric, summary["kind"], what="--metric ")
        _print(run, rows, summary, metric, getattr(options, "each", False))
        if getattr(options, "by_class", False):
            _print_classes(summary)
    if found:
        where = options.out if len(seeds) == 1 else found[0][0].path
        print(
            f"In {options.out}/seed-*: summary.json, rows.csv (all scores), learner/ (piaget.load), run.json."
        )
        for what, command in (
            ("A page of it", f"report {options.out}"),
            ("To predict rows", f"predict {where} NEW.csv --out predictions.csv"),
            ("To learn later rows", f"learn {where} LATER.csv"),
        ):
            print(f"{what + ':':<21}piaget {command}")
    return 2 * (len(found) < len(seeds))


def _print(run: RunFolder, rows: Sequence[Row], summary: dict[str, Any], metric: str, each: bool) -> None:
    from piaget.scoring.answer_scores import Bin, chance_error

    means = {name: of["mean"] for name, of in summary["means"].items()}  # an older version may have fewer
    metrics = [name for name in CHOICES[summary["kind"]] if means.get(name, {}).get("piaget") is not None]
    groups, names = summary["groups"], summary["simple"] | {"piaget": "piaget"}
    if not metrics:
        _print_unscored(groups)
        return
    width = max(map(len, names.values()))
    _print_heads(groups, metrics, width)
    for model, name in names.items():
        print(f"{name:<{width}}" + "".join(_number(means[one].get(model)) for one in metrics))
    weights = {one["label"]: one["weight"] for one in summary.get("classes") or ()}
    if set(weights.values()) - {1.0}:
        told = ", ".join(f"{label} {weight:.3g}" for label, weight in weights.items())
        print(f"Cost of an error, by true class: {told}. All models answer by it; accuracy is not weighted.")
    if metric not in metrics:
        why = f"No group has {NAMES[metric]}, which needs {NEEDS[metric]}"
        if metric not in means:
            why = f"The run has no {NAMES[metric]}, since an older version of piaget made it"
        print(f"{why}; so by {NAMES[metrics[0]]}:")
        metric = metrics[0]
    if each:
        _print_each(groups, metric, summary)
    print(is_it_worth_it(rows, metric) or "")
    if summary["chance"]:
        print(summary["chance"])
    last = {row["metric"]: row["value"] for row in rows if not row["evaluated"]}
    if "calibration error" in last:
        off = last["calibration error"]
        chance = chance_error([Bin(**one) for one in summary["reliability"]])
        print(f"Probabilities are off by {off:.3f} in the mean; {chance:.3f} would be chance, with so many "
              "test rows.")  # fmt: skip
    if "coverage" in last:
        print(f"{100 * last['coverage']:.1f} % of the values lie in their intervals of 90 %.")
    scored = [group for group in groups if "piaget" in group[metric]]
    scored.sort(key=lambda group: group[metric]["piaget"], reverse=metric in LOWER_IS_BETTER)
    worst = ", ".join(f"{printable(one['group'])} {three(one[metric]['piaget'])}" for one in scored[:WORST])
    if not each and len(scored) > WORST:
        print(f"Worst by {NAMES[metric]}: {worst} (all groups: --each)")


def _print_unscored(groups: Sequence[dict[str, Any]]) -> None:
    total = sum(group["rows"] for group in groups)
    print(
        f"{len(groups)} groups, {total:,} rows; no test rows to score: all are learned, but how good answers "
        "are is not known. Later rows are scored before they are learned (piaget learn)."
    )


def _print_heads(groups: Sequence[dict[str, Any]], metrics: Sequence[str], width: int) -> None:
    """Names of scores; and of how many groups each is the mean, if not of all."""
    counts = [sum("piaget" in group[name] for group in groups) for name in metrics]
    of_all = set(counts) == {len(groups)}
    size = f"{len(groups)} groups, {sum(group['rows'] for group in groups):,} rows"
    heads = "".join(f"{NAMES[name]:>11}" for name in metrics)
    print(f"{'mean of ' * of_all + size:<{width}}{heads}")
    if not of_all:
        print(f"{'means over so many groups:':<{width}}" + "".join(f"{count:>11,}" for count in counts))


def _print_classes(summary: dict[str, Any]) -> None:
    """Scores of each class, on the test rows of all groups together."""
    if not summary.get("classes"):
        told = "the target is a number" if summary["kind"] == "regression" else "the run has none"
        print(f"No scores by class: {told}.")
        return
    width = max(5, *(len(str(one["label"])) for one in summary["classes"]))
    heads = ("rows", "answered", "precision", "recall", "F1", "AUC", "weight")
    print(f"\n{'class':<{width}}" + "".join(f"{head:>11}" for head in heads))
    for one in summary["classes"]:
        counts = f"{one['rows']:>11,}{one['answered']:>11,}"
        scores = "".join(_number(one[name]) for name in (*BY_CLASS, "weight"))
        print(f"{one['label']!s:<{width}}{counts}{scores}")
    print("Of the test rows of all groups together; each class against all others.\n")


def _number(value: float | None) -> str:
    return f"{'' if value is None else three(value):>11}"


def _print_each(groups: Sequence[dict[str, Any]], metric: str, summary: dict[str, Any]) -> None:
    """Each group: majority, the best simple model, piaget."""
    best, sign = summary["best_simple"], -1 if metric in LOWER_IS_BETTER else 1
    least = "mean" if summary["kind"] == "regression" else "majority"
    shown = [("majority", least), (best, "simple"), ("piaget", "piaget")]
    print(f"\n{'group':>24}{'rows':>8}{'':>4}{NAMES[metric]}" + "".join(f"{name:>11}" for _, name in shown))
    for group in groups:
        scores = [group[metric].get(model) for model, _ in shown]
        better = None not in scores and sign * (scores[2] - scores[1]) > 0
        numbers = "".join(_number(value) for value in scores)
        blank = " " * (4 + len(NAMES[metric]))
        print(f"{printable(group['group']):>24}{group['rows']:>8}{blank}{numbers}{'  better' * better}")
    print()
