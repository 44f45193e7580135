"""A life of a scenario: from nothing to its end, by way of kills and damaged files."""

from __future__ import annotations

import fnmatch
import json
import os
import random
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tools.soak.damage import Damage, damage
from tools.soak.scenarios import Scenario
from tools.soak.starts import Start

SIGNALS = {"SIGKILL": 2, "SIGTERM": 1, "SIGINT": 1}  # and how often each
MOMENTS = {"any": 3, "saving": 2, "end": 1}
EARLY = 0.1  # probability that a kill hits what every start does again, before anything is learned
AFTER_END = 0.25  # probability that a finished run is damaged, and its command given again
PROBING = ("structure", "removal", "consistency")


class Failure(Exception):
    """What must not happen: another result, a traceback, an error about nothing, a process that lives on."""


TIMES = "times.json"


@dataclass(frozen=True)
class Original:
    """What the uninterrupted command left, and how long it took."""

    contents: dict[str, bytes]
    seconds: float
    set_up: float  # of them, until its first row file was there

    @classmethod
    def kept(cls, folder: Path) -> Original:
        """As `uninterrupted` left it."""
        return cls(contents(folder / "second" / "out"), **json.loads((folder / TIMES).read_text()))

    @property
    def rows(self) -> int:
        """Bytes of rows."""
        return sum(len(data) for name, data in self.contents.items() if name.endswith("rows.csv"))


@dataclass
class Life:
    """What a life was: for the result."""

    number: int
    scenario: str
    kills: list[dict[str, str]] = field(default_factory=list)  # signal, target, stage
    damages: list[dict[str, str]] = field(default_factory=list)  # kind, file, outcome: refused or mended
    starts: int = 0
    seconds: float = 0.0


def contents(out: Path) -> dict[str, bytes]:
    """All rows and learners below a folder, without what tells times."""
    kept = [path for pattern in ("rows.csv", "learner/learner*") for path in out.rglob(pattern)]
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(kept) if path.is_file()}


def below(out: Path, pattern: str) -> list[Path]:
    """All files and folders of a name below a folder in which somebody is at work: some may be gone."""
    inside = ((Path(place), [*folders, *files]) for place, folders, files in os.walk(out))
    return sorted(place / name for place, names in inside for name in fnmatch.filter(names, pattern))


def stage(out: Path) -> str:
    """Where a command is, as far as its files tell: the stage of the row that was written last."""
    runs = {path.parent: _status(path) for path in below(out, "run.json")}
    if not runs:
        return "start"
    active = [run for run, status in runs.items() if status != "done"]
    if not active:
        return "after the end"
    if any((run / "learner" / "learner.json").is_file() for run in active):
        return "saving the learner"
    files = [run / "rows.csv" for run in active if (run / "rows.csv").is_file()]
    files.sort(key=lambda path: path.stat().st_mtime_ns)
    lines = files[-1].read_text(errors="replace").splitlines()[1:] if files else []
    cells = lines[-1].split(",") if lines else []
    if len(cells) < 6 or cells[5] == "stage":  # the head of the file, once more: damage
        return "initialization"
    return "probing" if cells[5] in PROBING else cells[5]


def _status(path: Path) -> str | None:
    try:
        return json.loads(path.read_bytes())["status"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def uninterrupted(scenario: Scenario, table: Path, folder: Path) -> None:
    """Runs a scenario twice: the first time what is compiled is made, the second time is measured."""
    results = []
    for name in ("first", "second"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir(parents=True)
        out, began = folder / name / "out", time.monotonic()
        start = Start(scenario, scenario.words(table, out), folder / name / "said.txt", keeps_often=False)
        start.wait(partial(_begun, out))
        set_up = time.monotonic() - began
        while not start.ended():
            time.sleep(0.01)
        results.append(Original(contents(out), time.monotonic() - began, set_up))
        start.gone(30)
        start.end()
        if start.code != 0:
            raise Failure(f"{scenario.name} does not even run uninterrupted:\n{start.said}")
    first, second = results
    _compare(second.contents, first.contents)
    times = {"seconds": second.seconds, "set_up": second.set_up}
    (folder / TIMES).write_text(json.dumps(times))


def _begun(out: Path) -> bool:
    return bool(below(out, "rows.csv"))


class Living:
    """A scenario that is being lived through."""

    def __init__(
        self,
        life: Life,
        scenario: Scenario,
        original: Original,
        folder: Path,
        table: Path,
        rng: random.Random,
    ) -> None:
        self.life, self.scenario, self.original, self.folder, self.rng = life, scenario, original, folder, rng
        self.out, self.words = folder / "out", scenario.words(table, folder / "out")
        self.limit = 60 + 20 * original.seconds
        self.hurt: list[tuple[Damage, dict[str, str]]] = []  # with their records
        self.story: list[str] = []

    def go(self, kills: int, damages: float) -> Life:
        """From start to end; kills: so many, if the command lives long enough; damages: their probability."""
        began, ended = time.monotonic(), False
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for _ in range(10 * kills + 20):
            start = self._start()
            try:
                killed = self._disturb(start, kills - len(self.life.kills))
                self._await_end(start, killed)
            finally:
                start.end()
            if start.code == 0:
                again = not ended and self.rng.random() < AFTER_END * (damages > 0)
                self._check_learners()
                ended = True
                if not again:
                    _compare(contents(self.out), self.original.contents)
                    self.life.seconds = time.monotonic() - began
                    return self.life
                self._damage()
            elif not killed:
                self._mend(start)
            elif self.rng.random() < damages:
                self._damage()
        raise Failure("it does not come to an end")

    # --- a start ------------------------------------------------------------------------------------------

    def _start(self) -> Start:
        self.life.starts += 1
        log = self.folder / f"said-{self.life.starts}.txt"
        return Start(self.scenario, self.words, log, keeps_often=self.rng.random() < 0.7)

    def _disturb(self, start: Start, left: int) -> bool:
        """Kills it, or its workers one after the other; has anything been killed?"""
        killed = False
        for left_now in range(left, 0, -1):
            if not start.wait(self._moment(left_now)):
                break
            target = self._kill(start)
            killed = True
            if target != "worker":
                break
        return killed

    def _moment(self, left: int) -> Callable[[], bool]:
        """When to kill: so that all kills are spread over what is left of the run."""
        share = sum(path.stat().st_size for path in below(self.out, "rows.csv")) / self.original.rows
        learning = self.original.seconds - self.original.set_up
        rest = 2 * learning * max(0.0, 1 - share) / (left + 1)
        kind, delay = _draw(self.rng, MOMENTS), self.original.set_up + self.rng.uniform(0, rest)
        if self.rng.random() < EARLY:
            delay = self.rng.uniform(0, self.original.set_up)
        began, short = time.monotonic(), self.rng.uniform(0, 0.004 if kind == "saving" else 0.03)
        before, seen = self._watched(kind), float("inf")

        def come() -> bool:
            nonlocal before, seen
            now = time.monotonic()
            if kind == "any":
                return now - began > delay
            if kind == "saving" and now - began < delay:
                before = self._watched(kind)
            elif seen == float("inf") and self._watched(kind) != before:
                seen = now
            return now - seen >= short

        return come

    def _watched(self, kind: str) -> list[Path]:
        """What changes when a checkpoint is written (saving), or when the run is at its end."""
        return below(self.out, "learner" if kind == "end" else "*checkpoint*")

    def _kill(self, start: Start) -> str:
        name, where = _draw(self.rng, SIGNALS), stage(self.out)
        target = self.rng.choice(["parent", "worker", "group"]) if self.scenario.workers else "parent"
        pid, workers = start.pid, start.workers()
        if target == "worker":
            if workers and name != "SIGINT":  # Ctrl-C is for the process that asked
                pid = self.rng.choice(workers)
            else:
                target = "parent"
        start.send(signal.Signals[name], pid, target == "group")
        self.life.kills.append({"signal": name, "target": target, "stage": where})
        self.story.append(f"{name} to {target} in {where}")
        if (
            target != "worker" and name != "SIGKILL" and self.rng.random() < 0.3
        ):  # as when a system shuts down
            time.sleep(self.rng.uniform(0, 0.05))
            start.send(signal.SIGKILL, start.pid)
        return target

    def _await_end(self, start: Start, killed: bool) -> None:
        if start.gone(self.limit):
            return
        if start.ended() and "ray" in self.scenario.command:
            return  # Ray's own processes take their time
        what = "processes live on" if start.ended() else "it hangs"
        raise Failure(f"{what} {self.limit:.0f} s after {'a kill' if killed else 'its start'}")

    # --- damage -------------------------------------------------------------------------------------------

    def _damage(self) -> None:
        self._forget()
        hurt = damage(self.out, self.rng, [earlier.path for earlier, _ in self.hurt])
        if hurt is None:
            return
        record = {"kind": hurt.kind, "file": _kind_of_file(hurt.path), "outcome": "mended"}
        self.life.damages.append(record)
        self.story.append(f"{hurt.path.relative_to(self.out)} {hurt.kind}")
        self.hurt.append((hurt, record))

    def _forget(self) -> None:
        """What the program has written anew or removed is not damaged any more."""
        self.hurt = [(hurt, record) for hurt, record in self.hurt if hurt.there()]

    def _mend(self, start: Start) -> None:
        """An error without a kill: only about a damaged file, in plain words. The file is put back, or what
        the message tells is done."""
        self._forget()
        said = start.said
        named = [(hurt, record) for hurt, record in self.hurt if hurt.named(said)]
        if not named:
            raise Failure(f"exit code {start.code}, and no file was damaged that it names:\n{said}")
        codes = (1, 2) if self.scenario.workers else (2,)  # 1: runs of a sweep failed, and others did not
        if start.code not in codes or "Traceback" in said:
            raise Failure(f"exit code {start.code} about {named[0][0].path}, and not in plain words:\n{said}")
        for _, record in named:
            record["outcome"] = "refused"
        advised = [Path(text) for text in re.findall(r"remove (\S+)", said)]
        advised += [hurt.path for hurt, _ in named if "Remove this file" in said]
        advised = [path for path in advised if path.is_relative_to(self.out) and path.exists()]
        # A run of a cohort that was done is then trained again, alone: its sums are rounded otherwise.
        advised = [path for path in advised if not (path.parent / "learner").is_dir()]
        if advised and self.rng.random() < 0.5:
            self.story.append(f"removed {', '.join(map(str, advised))}")
            for path in advised:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        else:
            for hurt, _ in named:
                hurt.undo()
        self._forget()

    def _check_learners(self) -> None:
        """A finished run does not read its learner again: loading it must tell."""
        from piaget import load
        from piaget.errors import PiagetError

        self._forget()
        for hurt, record in self.hurt:
            if hurt.path.parent.name != "learner":
                continue
            try:
                load(hurt.path.parent)
            except PiagetError as error:
                if not hurt.named(str(error)):
                    raise Failure(f"{hurt.path} was {hurt.kind}, and loading it says: {error}") from error
                record["outcome"] = "refused"
                hurt.undo()
                continue
            raise Failure(f"{hurt.path} was {hurt.kind}, and a learner is loaded from it")
        self._forget()


def _kind_of_file(path: Path) -> str:
    """checkpoint-0123.safetensors -> checkpoint tensors"""
    name = path.name.partition("-")[0] if path.suffix == ".safetensors" else path.name
    return f"{name} tensors" if path.suffix == ".safetensors" else name


def _draw(rng: random.Random, weights: dict[str, int]) -> str:
    return rng.choices(list(weights), list(weights.values()))[0]


def _compare(found: dict[str, bytes], expected: dict[str, bytes]) -> None:
    differing = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
    if differing:
        raise Failure(
            "other bytes than in the uninterrupted run: " + ", ".join(_told(found, expected, differing))
        )


def _told(found: dict[str, bytes], expected: dict[str, bytes], names: list[str]) -> Iterator[str]:
    for name in names:
        here, there = found.get(name), expected.get(name)
        if here is None or there is None:
            yield f"{name} ({'missing' if here is None else 'too much'})"
        else:
            same = next((i for i, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), None)
            at = min(len(here), len(there)) if same is None else same
            yield f"{name} ({len(here)} bytes instead of {len(there)}, from byte {at})"
