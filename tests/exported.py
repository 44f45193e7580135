"""Run folders by hand, for tests of exports."""

import argparse
import json

from piaget.cli import export as command
from piaget.lab.row_file import HEADER, as_csv


def row(trained, epoch, evaluated, value, metric="accuracy", split="test", stage="joint"):
    return {
        "stream": "s",
        "method": "m",
        "seed": 0,
        "trained": trained,
        "epoch": epoch,
        "stage": stage,
        "evaluated": evaluated,
        "split": split,
        "metric": metric,
        "value": value,
    }


def moment(trained, epoch, scores, components=4):
    """What one evaluation writes."""
    rows = [row(trained, epoch, task, value) for task, value in scores.items()]
    rows += [row(trained, epoch, task, 1 - value, "loss") for task, value in scores.items()]
    return [*rows, row(trained, epoch, "", float(components), "components", "")]


CONFIGURATION = {"stream": "s", "epochs": None, "settings": {"width": 64, "a.b": [1, 2]}, "seed": 0}


def make_run(folder, rows=(), status="done", **more):
    folder.mkdir(parents=True, exist_ok=True)
    description = {
        "configuration": CONFIGURATION,
        "status": status,
        "started": "2024-05-01T10:00:00+00:00",
        "finished": None,
        "error": None,
    }
    (folder / "run.json").write_text(json.dumps(description | more))
    (folder / "rows.csv").write_bytes(HEADER + as_csv(list(rows)))
    return folder


def append(folder, rows, cut=None):
    with open(folder / "rows.csv", "ab") as handle:
        handle.write(as_csv(rows)[:cut])


FIRST = moment("t1", 10, {"t0": 0.5, "t1": 0.7}) + moment("t1", 20, {"t0": 0.6, "t1": 0.8})


SECOND = moment("t2", 10, {"t0": 0.4, "t1": 0.6, "t2": 0.8}, 5)


ODD = [
    "mean",
    "größe",
    "a/b",
    "a//b",
    "a_b",
    "a?b",
    "a*b",
    "../x",
    "/x",
    "x/",
    "line\nbreak",
    'quo"te',
    "com,ma",
    "x" * 300,
    "x" * 301,
    " ",
    "a_b-x0123456789",
    "Site 7: north",
]


def run_command(*arguments):
    parser = argparse.ArgumentParser()
    command.add(parser.add_subparsers())
    options = parser.parse_args(["export", *map(str, arguments)])
    return options.run(options)
