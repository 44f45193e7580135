"""Where scores of runs can be sent: TensorBoard, MLflow."""

from __future__ import annotations

import contextlib
import datetime
import functools
import hashlib
import json
import os
import posixpath
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from piaget.errors import PiagetError, SettingError
from piaget.extras import need
from piaget.files import write_atomically
from piaget.lab.folder import ACTIVE, DIVERGED

BATCH = 1000  # points sent at once; MLflow takes no more


class Point(NamedTuple):
    """A number in a curve."""

    tag: str
    step: int
    value: float


@dataclass(frozen=True)
class Exported:
    """A run, as a sink is told of it."""

    folder: Path
    name: str  # the folder, as seen from the one that is exported
    id: str  # stays the same when the folder is moved
    description: dict[str, Any]
    status: str  # as in run.json, or "interrupted": nobody works there any more


class Sink(Protocol):
    """Where points go. `target` tells one place from another; `odd` is what its names cannot have."""

    name: str
    target: str
    odd: re.Pattern[str]

    def begin(self, run: Exported, place: str | None) -> tuple[str, bool]:
        """Where in the target the run goes, and whether what was sent to `place` is still there."""

    def send(self, place: str, points: Sequence[Point], when: float, again: bool) -> None:
        """They are there when it returns. `again`: some may be there since an export that was killed."""

    def show(self, run: Exported, place: str) -> None:
        """The run's status has changed."""

    def close(self) -> None:
        """Nothing more will be sent."""


@functools.lru_cache(maxsize=4096)
def clean(name: str, odd: re.Pattern[str], longest: int = 150) -> str:
    """A name as a sink can have it. Where that changes it, a hash keeps it apart from all others."""
    plain = (
        len(name) <= longest
        and not odd.search(name)
        and posixpath.normpath(f"x/{name}") == f"x/{name}"  # "a//b" and "a/b" would be the same
        and name != "mean"  # that is the mean over tasks
        and not re.search(r"-x[0-9a-f]{10}$", name)  # it looks as if this was done to it
    )
    if plain:
        return name
    digest = hashlib.sha256(name.encode(errors="backslashreplace")).hexdigest()[:10]
    return f"{odd.sub('_', name[:longest]).replace('/', '_')}-x{digest}"


def modified(path: Path) -> float:
    """When a file was last changed; 0, if it is not there."""
    return path.stat().st_mtime if path.is_file() else 0.0


# --- TensorBoard --------------------------------------------------------------------------------------


class TensorBoard:
    """Event files: a folder for each run, below `out`."""

    name = "tensorboard"
    odd = re.compile(r"[\x00-\x1f\x7f]")
    OPEN = 256  # event files at once; each has a thread

    def __init__(self, out: Path) -> None:
        need("tensorboard", "TensorBoard's event files")
        self._new_writer = need("torch.utils.tensorboard", "TensorBoard's event files").SummaryWriter
        self.out = out.resolve()
        self.target = str(self.out)
        self.writers: dict[str, Any] = {}

    def begin(self, run: Exported, place: str | None) -> tuple[str, bool]:
        if place is not None and self._owner(place) == run.id:
            return place, True
        folder, owner = self.out / run.name, self._owner(run.name)
        if owner != run.id and (owner or any(folder.glob("events.out.tfevents.*"))):
            raise SettingError(f"{folder} has the events of another run; give another --out, or remove it")
        folder.mkdir(parents=True, exist_ok=True)
        self._close(run.name)  # it may have been removed just now
        write_atomically(folder / "piaget.json", json.dumps({"run": run.id}).encode())
        shown = json.dumps(run.description["configuration"], indent=1)
        # As code, which Markdown shows as it is.
        self._writer(run.name).add_text("configuration", "    " + shown.replace("\n", "\n    "))
        return run.name, False

    def send(self, place: str, points: Sequence[Point], when: float, again: bool) -> None:
        writer = self._writer(place, hide_from=points[0].step if again else None)
        for point in points:
            writer.add_scalar(point.tag, point.value, point.step, walltime=when)
        writer.flush()

    def show(self, run: Exported, place: str) -> None:
        if run.status not in ACTIVE:
            self._close(place)

    def close(self) -> None:
        for place in list(self.writers):
            self._close(place)

    def _close(self, place: str) -> None:
        if place in self.writers:
            self.writers.pop(place).close()

    def _owner(self, place: str) -> str | None:
        """The run whose events are there."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            return str(json.loads((self.out / place / "piaget.json").read_text())["run"])
        return None

    def _writer(self, place: str, hide_from: int | None = None) -> Any:
        """`hide_from`: TensorBoard shall not show earlier events from this step on."""
        if hide_from is not None:
            self._close(place)
        if place not in self.writers:
            if len(self.writers) == self.OPEN:
                self._close(next(iter(self.writers)))  # the oldest
            self._await_second(place)
            self.writers[place] = self._new_writer(str(self.out / place), purge_step=hide_from)
        return self.writers[place]

    def _await_second(self, place: str) -> None:
        """TensorBoard reads files in the order of the seconds in their names: the new one shall be last."""
        names = [path.name for path in (self.out / place).glob("events.out.tfevents.*")]
        for _ in range(20):  # not for ever: another machine's clock may be ahead
            if not names or max(names) < f"events.out.tfevents.{int(time.time()):010d}":
                return
            time.sleep(0.05)


# --- MLflow -------------------------------------------------------------------------------------------

# MLflow would try for minutes to reach a server, and print lines about each run. What the user set counts.
MANNERS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
PARAMS, LONGEST = 100, 6000  # MLflow takes so many at once, and values so long
STATUSES = {
    "new": "SCHEDULED",
    "running": "RUNNING",
    "done": "FINISHED",
    "failed": "FAILED",
    DIVERGED: "FAILED",
    "stopped": "KILLED",
    "interrupted": "KILLED",
}


class MLflow:
    """Runs of an experiment in an MLflow tracking server or database."""

    name = "mlflow"
    odd = re.compile(r"[^\w.\- :/]")

    def __init__(self, uri: str, experiment: str = "piaget") -> None:
        self._mlflow = need("mlflow", "MLflow runs")
        for package in ("sqlalchemy", "alembic") if uri.startswith(DATABASES) else ():
            need(package, "MLflow's databases")  # mlflow-skinny does without
        self.uri = _absolute(uri)
        self.shown = re.sub(r"//[^/@]*@", "//", self.uri)  # without a password
        self.target = f"{self.shown} {experiment}"
        self._there: set[str] = set()
        with self._asking():
            self._client = self._mlflow.MlflowClient(self.uri)
            known = self._client.get_experiment_by_name(experiment)
            if known is None:
                known = self._client.get_experiment(self._client.create_experiment(experiment))
        if known.lifecycle_stage != "active":
            raise SettingError(f"{self.shown}: the experiment {experiment!r} was deleted; give another")
        self._experiment = known.experiment_id

    def begin(self, run: Exported, place: str | None) -> tuple[str, bool]:
        if place is not None and self._is_there(place):
            return place, True
        configuration = run.description["configuration"]
        params = [self._param(key, value) for key, value in flat(configuration, self.odd).items()]
        tags = {"piaget.folder": str(run.folder), "piaget.run": run.id, "piaget.status": run.status}
        with self._asking():
            started = _milliseconds(run.description.get("started"))
            new = self._client.create_run(self._experiment, started, tags, run_name=run.name).info.run_id
            for i in range(0, len(params), PARAMS):
                self._client.log_batch(new, params=params[i : i + PARAMS])
        self._there.add(new)
        return new, False

    def send(self, place: str, points: Sequence[Point], when: float, again: bool) -> None:
        new_metric = self._mlflow.entities.Metric
        metrics = [new_metric(point.tag, point.value, int(when * 1000), point.step) for point in points]
        with self._asking():
            for i in range(0, len(metrics), BATCH):
                self._client.log_batch(place, metrics=metrics[i : i + BATCH])

    def show(self, run: Exported, place: str) -> None:
        status = STATUSES.get(run.status, "RUNNING")
        with self._asking():
            self._client.set_tag(place, "piaget.status", run.status)
            if run.status in ACTIVE:
                self._client.update_run(place, status=status)
            else:
                last = max(modified(run.folder / name) for name in ("run.json", "rows.csv"))
                ended = _milliseconds(run.description.get("finished")) or int(last * 1000)
                self._client.set_terminated(place, status, ended)

    def close(self) -> None:
        pass

    def _is_there(self, place: str) -> bool:
        """Asked once: whoever deletes a run while it is exported means it."""
        if place not in self._there:
            with self._asking():
                try:
                    known = self._client.get_run(place)
                except self._mlflow.MlflowException as error:
                    if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                        raise
                    return False
            if known.info.lifecycle_stage != "active":
                return False
            self._there.add(place)
        return True

    def _param(self, key: str, value: str) -> Any:
        short = value if len(value) <= LONGEST else value[: LONGEST - 3] + "..."
        return self._mlflow.entities.Param(key, short)

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """What fails, fails within seconds, and says where."""
        unset = [name for name in MANNERS if name not in os.environ]
        os.environ.update({name: MANNERS[name] for name in unset})
        try:
            yield
        except Exception as error:
            # MLflow's own errors, and those of requests, of SQLAlchemy and of database drivers
            text = (str(error).strip() or type(error).__name__).splitlines()[0].replace(self.uri, self.shown)
            raise PiagetError(f"MLflow at {self.shown} cannot be reached or used: {text}") from error
        finally:
            for name in unset:
                os.environ.pop(name, None)


def _absolute(uri: str) -> str:
    """A local database by its whole path, so that it is the same from every folder; checked at once."""
    local = re.fullmatch(r"sqlite:///([^?]+)", uri)
    if local is None:
        return uri
    path = Path(local[1]).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        sqlite3.connect(path).close()
    except sqlite3.Error as error:  # MLflow would try for minutes
        raise SettingError(f"{path}: {error}") from error
    return f"sqlite:///{path}"


def _milliseconds(when: str | None) -> int | None:
    return None if when is None else int(datetime.datetime.fromisoformat(when).timestamp() * 1000)


def flat(configuration: dict[str, Any], odd: re.Pattern[str], above: str = "") -> dict[str, str]:
    """{"settings": {"width": 64}} as {"settings.width": "64"}."""
    values: dict[str, str] = {}
    dotted = re.compile(rf"{odd.pattern}|\.")  # a dot in a name is no step down
    for name, value in configuration.items():
        key = above + clean(str(name), dotted, longest=60)
        if isinstance(value, dict):
            values |= flat(value, odd, f"{key}.")
        else:
            values[key] = value if isinstance(value, str) else json.dumps(value)
    return values
