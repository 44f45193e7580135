"""A run's folder: its description, its rows, its log. Whoever reads or writes one does it here."""

from __future__ import annotations

import contextlib
import datetime
import functools
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from piaget.data.plain import printable, whole_from
from piaget.data.typed_data import read, read_fields
from piaget.errors import LoadError
from piaget.files import read_json, write_json
from piaget.lab import kept
from piaget.lab.locks import at_work
from piaget.lab.row_file import Extent, kept_bytes, rows_of, whole_lines
from piaget.lab.unchanged import check_configuration, check_data, check_library
from piaget.method.choices import structure_for, upgraded_algorithm
from piaget.scoring.rows import Row

ACTIVE = ("new", "running")
DONE, DIVERGED = "done", "failed: diverged"  # how a run may have ended for good


# --- reading ------------------------------------------------------------------------------------------


class RunFolder:
    """A run as it is on disk, at the moment when each thing is first asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows_file, self.learner = path / "rows.csv", path / "learner"

    @property
    def file(self) -> Path:
        """Where it is described."""
        return self.path / "run.json"

    @cached_property
    def description(self) -> dict[str, Any]:
        """What run.json says."""
        return read_description(self.path)

    @property
    def configuration(self) -> dict[str, Any]:
        """What was asked for, and the seed."""
        return self.description["configuration"]

    @property
    def seed(self) -> int:
        """Its seed."""
        return int(self.configuration["seed"])

    @property
    def together(self) -> list[int]:
        """The seeds that are trained as one cohort with it."""
        return self.description.get("together") or [self.seed]

    @property
    def algorithm(self) -> str | None:
        """The name of its algorithm, as it is called now; None: there is no such run yet."""
        if not (self.path / "run.json").is_file():
            return None
        return str(self.description["configuration"]["algorithm"])

    @cached_property
    def status(self) -> str:
        """As in run.json; but a run that nobody works on any more is `interrupted`."""
        status = str(self.description["status"])
        return "interrupted" if status == "running" and not at_work(self.path) else status

    @property
    def _next(self) -> dict[str, Any]:
        """What learner and rows will be when a change of them is done: one may be, and the other not yet."""
        return self.description.get("next") or {}

    @property
    def summary(self) -> dict[str, Any] | None:
        """What a run over a table found, as plain data, if it is of that kind."""
        path = self.path / "summary.json"
        return read_json(path) if path.is_file() else None

    def saved_learner(self) -> Path:
        """The folder of its learner, which must be the one that the run saved."""
        noted = self.description.get("saved")
        if noted is not None and learner_mark(self.path) not in (noted, self._next.get("saved")):
            raise LoadError(f"{self.learner} is not what the run saved, or it is gone")
        return self.learner

    @property
    def how_far(self) -> kept.Kept | None:
        """What its cohort's checkpoint says beside the learners, while there is one."""
        (first,) = seed_folders(self.path.parent, self.together[:1])
        return kept.how_far(first / "checkpoint")

    def row_text(self) -> bytes:
        """Those bytes of its row file that were kept, verified."""
        if self.description.get("rows") is not None:
            with contextlib.suppress(LoadError, KeyError):
                return kept_bytes(self.rows_file, Extent(**self._next["rows"]), whole=True)
            try:
                return kept_bytes(self.rows_file, Extent(**self.description["rows"]), whole=True)
            except LoadError as error:
                raise LoadError(
                    f"{error}. Remove {self.path} and give the command that made it again, to train it again"
                ) from error
        extent = self._extent()
        return whole_lines(self.rows_file) if extent is None else kept_bytes(self.rows_file, extent)

    def _extent(self) -> Extent | None:
        """How much of its row file was kept, while it is not done. None: nobody says so (it is of version
        0.1, or a copy)."""
        far = None if self.description["status"] == DONE else self.how_far
        if far is None or self.seed not in self.together or len(far.rows) != len(self.together):
            return None
        return far.rows[self.together.index(self.seed)]

    def rows(self) -> Iterator[Row]:
        """All its rows so far."""
        for row in rows_of(self.rows_file, self.row_text()):
            row["method"] = self.method_now(row["method"])
            yield row

    def method_now(self, method: str) -> str:
        """A method as rows have it, by its present name: version 0.1 had another one for one of them."""
        frozen = self.description["configuration"]["algorithm"] == "no-components-frozen"
        old = method.endswith("/no-components")
        return f"{method}-frozen" if frozen and old else method


def runs_below(root: Path) -> list[RunFolder]:
    """All runs in a folder and below it."""
    return [RunFolder(path.parent) for path in sorted(root.rglob("run.json"))]


def runs_in(out: Path) -> list[RunFolder]:
    """The runs of one command into a folder, by their seeds."""
    found = {path.parent: whole_from(path.parent.name[5:]) for path in out.glob("seed-*/run.json")}
    seeds = {path: seed for path, seed in found.items() if seed is not None}
    return [RunFolder(path) for path in sorted(seeds, key=lambda path: seeds[path])]


def seed_folders(out: Path, seeds: Sequence[int]) -> list[Path]:
    """Where the runs of one command are."""
    return [out / f"seed-{seed}" for seed in seeds]


def no_runs(out: Path) -> LoadError:
    """The error about a folder that holds no runs: why it does not."""
    if not out.is_dir():
        return LoadError(f"{out} does not exist, or is no folder")
    return LoadError(f"{out} holds no runs: there is no run.json in it or below it")


# What run.json says, as far as it is read back.
_DESCRIPTION: dict[str, Any] = {
    "configuration": dict[str, Any],
    "status": str,
    "learner": dict[str, Any] | None,
    "error": str | None,
    "together": list[int] | None,
    "seconds": float | None,
    "steps": float | None,
    "peak_memory": float | None,
    "parameters": int | None,
    "data": dict[str, str] | None,
    "rows": dict[str, int | str] | None,
    "saved": str | None,
    "next": dict[str, Any] | None,
    "columns": list[str] | None,
    "forgotten": list[str] | None,
    "learned_rows": dict[str, Any] | None,
    "data_dir": str | None,
    "versions": dict[str, Any] | None,
    "machine": dict[str, Any] | None,
}
CONFIGURATION: dict[str, Any] = {
    "stream": str | None,
    "table": dict[str, Any] | None,
    "options": dict[str, Any],
    "structure": str,
    "adaptation": str,
    "algorithm": str,
    "epochs": int | None,
    "every": int | None,
    "settings": dict[str, Any],
    "seed": int,
}


def read_description(folder: Path) -> dict[str, Any]:
    """What run.json says, checked."""
    path = folder / "run.json"
    description = read_json(path)
    try:
        for name in _DESCRIPTION.keys() & {"configuration", "status", *description}:
            read(_DESCRIPTION[name], description.get(name), name)
        for name, hint in CONFIGURATION.items():
            read(hint, description["configuration"].get(name), name)
        if description.get("rows") is not None:
            read_fields({"size": int, "sha256": str}, description["rows"], "rows")
        if description.get("next") is not None:
            change = {"rows": dict[str, int | str], "saved": str, "notes": dict[str, Any]}
            read_fields(change, description["next"], "next", frozenset({"notes"}))
            notes = description["next"].get("notes", {})
            later = {name: _DESCRIPTION[name] for name in ("data", "forgotten", "learned_rows")}
            read_fields(later, notes, "notes", frozenset(later))
            read_fields({"size": int, "sha256": str}, description["next"]["rows"], "rows")
    except ValueError as error:
        raise LoadError(f"{path} does not describe a run: {error}") from error
    return _upgraded(description)


def scaled_as_trained(configuration: dict[str, Any], learner: dict[str, Any] | None) -> dict[str, Any]:
    """Development versions of 0.2 took "soft-ordering" with "recommended" for the scaled structure."""
    part = (learner or {}).get("structure")
    scaled = isinstance(part, dict) and part.get("part") == "Scaled"
    if configuration["algorithm"] != "recommended" or not scaled:
        return configuration
    return configuration | {"structure": structure_for("recommended", configuration["structure"])}


def _upgraded(description: dict[str, Any]) -> dict[str, Any]:
    """What version 0.1 called "no-components" has another name now, with adaptations that store samples."""
    configuration, learner = description["configuration"], description.get("learner") or {}
    description = description | {"configuration": scaled_as_trained(configuration, learner)}
    algorithm = learner.get("algorithm")
    now = upgraded_algorithm(algorithm, learner.get("adaptation"))
    if now != algorithm:
        description = description | {"learner": learner | {"algorithm": now}}
    older = now != algorithm or "learner" not in description  # None: it failed before it began
    stores = configuration["adaptation"] not in ("nft", "ewc", "fm")
    if older and stores and configuration["algorithm"] == "no-components":
        renamed = configuration | {"algorithm": "no-components-frozen"}
        return description | {"configuration": renamed}
    return description


def diverged(folders: Iterable[Path]) -> dict[Path, str]:
    """Those of these runs that diverged, and what is said of them."""
    said = {}
    for folder in folders:
        with contextlib.suppress(LoadError):
            description = read_description(folder)
            if description["status"] == DIVERGED:
                said[folder] = str(description.get("error"))
    return said


def is_done(folder: Path) -> bool:
    """A description that cannot be read is not done: whoever runs it will say so."""
    with contextlib.suppress(LoadError):
        return read_description(folder)["status"] == DONE
    return False


def learner_mark(folder: Path) -> str | None:
    """A hash of a run's saved learner: its description names the hash of its tensors."""
    path = folder / "learner" / "learner.json"
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def has_ended(folder: Path) -> bool:
    """Is there nothing left to train? A run that diverged would do so again."""
    with contextlib.suppress(LoadError):
        return read_description(folder)["status"] in (DONE, DIVERGED)
    return False


# --- writing ------------------------------------------------------------------------------------------


def begin(
    folder: Path,
    configuration: dict[str, Any],
    seed: int,
    learner: dict[str, Any] | None = None,
    data: dict[str, str] | None = None,
    **more: Any,
) -> None:
    """Describes a new run; an old one must be of the same configuration and data.

    `learner`: all its settings, also those that nobody chose; `data`: the fingerprint of each task.
    """
    wanted = json.loads(json.dumps(configuration | {"seed": seed}))
    if (folder / "run.json").is_file():
        description = readable(folder)
        check_configuration(folder, description, wanted, learner)
        check_library(folder, description.get("learner") or {}, learner or {})
        left = None if data is None else without_forgotten(description, data)
        check_data(folder, description.get("data"), left, description["status"] == DONE)
        return
    folder.mkdir(parents=True, exist_ok=True)
    description = {
        "configuration": wanted,
        "learner": learner,
        "data": data,
        "status": "new",
        "started": now(),
        "finished": None,
        "error": None,
        "machine": {"system": platform.platform(), "processor": platform.machine(), "cores": os.cpu_count()},
    }
    write_json(folder / "run.json", description | more | software())


def without_forgotten(description: dict[str, Any], data: dict[str, str]) -> dict[str, str]:
    """The fingerprints of tasks, but for those that the run has forgotten: nobody asks for them any more."""
    gone = description.get("forgotten") or ()
    return {name: mark for name, mark in data.items() if name not in gone}


def readable(folder: Path) -> dict[str, Any]:
    """The description of a run that is to go on."""
    try:
        return read_description(folder)
    except LoadError as error:
        raise LoadError(
            f"{error}. Remove this file and give the command that began the run again: it goes on from its "
            "checkpoint; one that was done is trained again, alone"
        ) from error


@functools.cache
def software() -> dict[str, Any]:
    """Versions, and the commit of the code."""
    import torch

    import piaget

    versions = {"piaget": piaget.__version__, "torch": torch.__version__}
    return {"versions": versions | {"python": platform.python_version()}, "commit": _commit()}


def note(folder: Path, **changes: Any) -> None:
    """Changes the description."""
    write_json(folder / "run.json", read_description(folder) | changes)


def finish_change(folder: Path) -> None:
    """If a change was broken off when learner and rows were written, and not yet noted: it is noted now. By
    whoever holds the folder's lock."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)
    description = read_description(folder)
    change = description.get("next")
    if change is not None and learner_mark(folder) == change["saved"]:
        note(folder, rows=change["rows"], saved=change["saved"], next=None, **change.get("notes", {}))


def log(folder: Path, text: str) -> None:
    """A line with the time. It is for people: nothing is read back from it."""
    with open(folder / "log.txt", "a", encoding="utf-8") as handle:
        lines = "\n".join(map(printable, text.split("\n")))  # of a traceback, several
        handle.write(f"{now()} {lines}\n")


def now() -> str:
    """The time, as run.json has it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _commit() -> str | None:
    """The commit of the code, if it runs from a checkout of its own (and not as a package in another's)."""
    git = ["git", "-C", str(Path(__file__).parent)]
    for command in (["ls-files", "--error-unmatch", Path(__file__).name], ["rev-parse", "HEAD"]):
        try:
            done = subprocess.run([*git, *command], capture_output=True, text=True, timeout=5)
        except (OSError, subprocess.TimeoutExpired):
            return None
        if done.returncode:
            return None
    return done.stdout.strip() or None
