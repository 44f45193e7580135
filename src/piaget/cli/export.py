"""piaget export: scores of runs in TensorBoard and MLflow."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from piaget.lab.exports import Exporter
    from piaget.lab.sinks import Sink

SECONDS = 2.0  # between two looks at what is new


def add(commands: Any) -> None:
    """The command and its flags."""
    parser = commands.add_parser(
        "export",
        help="send the scores of runs to TensorBoard or MLflow",
        description="Sends what runs have written, also while they write it. The same command again sends "
        "only what is new.",
    )
    sinks = parser.add_subparsers(required=True, metavar="WHERE")
    board = sinks.add_parser(
        "tensorboard",
        help="event files, for tensorboard --logdir",
        description="Writes TensorBoard's event files, in a folder for each run.",
    )
    flow = sinks.add_parser(
        "mlflow",
        help="runs of an experiment on an MLflow server or in a database",
        description="Makes an MLflow run of each run, with its configuration, scores and status.",
    )
    for sink, run in ((board, _tensorboard), (flow, _mlflow)):
        sink.add_argument(
            "folders",
            nargs="+",
            type=Path,
            metavar="DIR",
            help="output folders of piaget run or piaget sweep",
        )
        sink.set_defaults(run=run)
    board.add_argument("--out", type=Path, required=True, metavar="LOGDIR", help="where event files go")
    flow.add_argument(
        "--uri",
        required=True,
        help="of the tracking server or database: http://HOST:5000, sqlite:///mlflow.db",
    )
    flow.add_argument(
        "--experiment", default="piaget", metavar="NAME", help="made if it is not there (default: piaget)"
    )
    for sink in (board, flow):
        sink.add_argument("--follow", action="store_true", help="go on until no run is running any more")


def _tensorboard(options: argparse.Namespace) -> int:
    from piaget.lab.sinks import TensorBoard

    return _export(options, TensorBoard(options.out), f"tensorboard --logdir {shlex.quote(str(options.out))}")


def _mlflow(options: argparse.Namespace) -> int:
    from piaget.lab.sinks import MLflow

    sink = MLflow(options.uri, options.experiment)
    web = sink.shown.startswith("http")
    look = sink.shown if web else f"mlflow ui --backend-store-uri {shlex.quote(sink.shown)}"
    return _export(options, sink, look)


def _export(options: argparse.Namespace, sink: Sink, look: str) -> int:
    from piaget.lab.exports import Exporter

    with contextlib.closing(Exporter(options.folders, sink)) as exporter:
        _report(exporter, exporter.update())
        print(f"To see it: {look}", flush=True)
        while options.follow and exporter.at_work:
            time.sleep(SECONDS)
            sent = exporter.update()
            if sent:
                _report(exporter, sent)
        for error in exporter.damaged.values():
            print(f"piaget: left out: {error}", file=sys.stderr)
    return 1 if exporter.damaged else 0


def _report(exporter: Exporter, sent: int) -> None:
    runs = len(exporter.statuses)
    print(f"{runs} run{'s' * (runs != 1)}, {sent:,} new row{'s' * (sent != 1)} sent", flush=True)
