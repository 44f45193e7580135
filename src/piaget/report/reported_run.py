"""One run as a report sees it: its name, what in it is not the paper's, what it cost, what makes it again."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from piaget.lab.collection import IRRELEVANT, CollectedRun, data_mark
from piaget.lab.configuration import configure, is_prior
from piaget.lab.folder import DIVERGED, RunFolder
from piaget.method.choices import SINGLE
from piaget.paper.defaults import PAPERS, own_data
from piaget.paper.names import trials
from piaget.paper.results import reported


@dataclass(frozen=True)
class ReportedRun:
    """One run: what is on disk, and its stream and method as its rows have them."""

    disk: RunFolder | CollectedRun
    stream: str
    method: str

    @cached_property
    def name(self) -> str:
        """Of the folder: unique in a report."""
        return str(self.disk.path)

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self.disk.path

    @property
    def description(self) -> dict[str, Any]:
        """What run.json says."""
        return self.disk.description

    @property
    def configuration(self) -> dict[str, Any]:
        """What was asked for, and the seed."""
        return self.disk.configuration

    @property
    def seed(self) -> int:
        """Its seed."""
        return int(self.configuration["seed"])

    @property
    def status(self) -> str:
        """Is it done, running, interrupted, ...?"""
        return self.disk.status

    @property
    def done(self) -> bool:
        return self.status == "done"

    @property
    def failed(self) -> bool:
        """Did an error end it?"""
        return self.status == "failed"

    @property
    def diverged(self) -> bool:
        """Did it end because its numbers grew beyond all bounds?"""
        return self.status == DIVERGED

    @cached_property
    def changes(self) -> dict[str, Any]:
        """What is not the paper's: data, options of the stream, epochs, settings."""
        chosen, usual = self.configuration, self._usual
        changes = ({"data": self.reduced} if self.reduced else {}) | chosen["options"]
        if chosen["epochs"] != usual["epochs"]:
            changes["epochs"] = chosen["epochs"]
        for name in sorted({*chosen["settings"], *usual["settings"]} - {*IRRELEVANT}):
            if chosen["settings"].get(name) != usual["settings"].get(name):
                changes[name] = chosen["settings"].get(name, "default")
        return changes

    def is_less(self, name: str) -> bool:
        """Is a number, of epochs or among the settings, smaller than the paper's?"""
        chosen, usual = (
            {**configuration["settings"], "epochs": configuration["epochs"]}.get(name)
            for configuration in (self.configuration, self._usual)
        )
        return chosen is not None and usual is not None and chosen < usual

    @property
    def reduced(self) -> str | None:
        """In what its data is less than that of the paper's experiment, if the options do not say it."""
        return self.description.get("reduced")

    @property
    def collected(self) -> bool:
        """Is it only known by its results?"""
        return isinstance(self.disk, CollectedRun)

    @property
    def _usual(self) -> dict[str, Any]:
        """The paper's choices; where parts of the method are the user's own, those for the stream."""
        chosen = self.configuration
        source: dict[str, Any] = {name: chosen.get(name) for name in ("stream", "table")}
        try:
            return configure(
                **source, **{name: chosen[name] for name in ("structure", "adaptation", "algorithm")}
            )
        except Exception:  # whatever is wrong with a part that is not piaget's, a report can be made
            return configure(**source)

    @property
    def threshold(self) -> float | None:
        """The relative gain from which on a candidate component is kept, if the run has such a rule."""
        try:
            return self.description["learner"]["algorithm"]["expansion"]["threshold"]
        except (KeyError, TypeError):  # another rule
            return self.configuration["settings"].get("threshold")

    @property
    def costs(self) -> tuple[float | None, float | None, float | None]:
        """Seconds (its share of the time of the cohort that it was trained in), steps, bytes of memory."""
        noted = self.description
        seconds = (noted.get("seconds") or 0) / len(noted.get("together") or [self])
        return seconds or None, noted.get("steps"), noted.get("peak_memory")

    @property
    def parameters(self) -> int | None:
        """Numbers that answers are computed from, if it was noted how many: not by older versions."""
        return self.description.get("parameters")

    @cached_property
    def data(self) -> str:
        """What it learned from. (The stream of a table is only called as its file is.)"""
        chosen = self.configuration
        told = [self.stream, chosen.get("table"), chosen["options"], self.reduced, self._own_stream]
        return json.dumps(told, sort_keys=True)

    @property
    def _own_stream(self) -> dict[str, str]:
        """Where a stream of the user's own is from: rows only have the last part of its name."""
        named = self.configuration.get("stream") or ""
        return {"stream": named} if ":" in named else {}

    @cached_property
    def data_mark(self) -> str | None:
        """A hash of the data itself, where it is known."""
        if isinstance(self.disk, CollectedRun):
            return self.disk.noted["data"]
        return data_mark(self.disk.description.get("data"))

    @property
    def work(self) -> tuple[str, int]:
        """What it has in common with other methods that it can be compared with: data and epochs."""
        return self.data, self.configuration["epochs"]

    @property
    def distinctions(self) -> dict[str, Any]:
        """What may tell it from other runs of its stream and method."""
        return (self.configuration.get("table") or {}) | self._own_stream | self.changes

    @property
    def has_components(self) -> bool:
        """Which a task can choose from, and whose removal shows what they do."""
        return self.parts[0] not in (*SINGLE, "prior")

    @property
    def variant(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.changes.items())

    @property
    def parts(self) -> tuple[str, str, str]:
        """Structure, adaptation and algorithm: names that piaget knows, or of the user's own parts."""
        structure, base, algorithm = self.method.split("/")
        return structure, base, algorithm

    @property
    def paper(self) -> tuple[float, float] | None:
        """The paper's final performance, if this is the paper's experiment."""
        return None if self.changes else reported(self.parts[0], self.stream, self.parts[1], self.parts[2])

    @property
    def trials(self) -> int:
        """How many the paper has."""
        return trials(self.stream)

    @property
    def command(self) -> str:
        """Makes this run again."""
        chosen = self.configuration
        words = ["piaget", "run", *self._source()]
        for name in ("structure", "adaptation", "algorithm", "epochs", "every"):
            words += [f"--{name}", str(chosen[name])] if chosen.get(name) else []
        for name, value in chosen["options"].items():
            words += ["--option", f"{name}={value}"]
        for name, value in {**self._papers, **chosen["settings"]}.items():
            words += ["--set", f"{name}={value}"]
        words += ["--seeds", str(self.seed), "--out", "again"]
        return shlex.join(words)

    @property
    def _papers(self) -> dict[str, Any]:
        """Settings of the paper that a new run over a table would not have, unless they are given."""
        chosen = self.configuration
        if chosen.get("table") is None or is_prior(chosen):
            return {}
        return {name: PAPERS[name] for name in own_data(chosen["structure"], ["epochs", *chosen["settings"]])}

    def _source(self) -> list[str]:
        """The stream, or the table with its columns."""
        table = self.configuration.get("table")
        if table is None:
            return [str(self.configuration["stream"])]
        words = ["--table", str(table["table"])]
        flags = ("group", "target", "kind", "split", "categorical", "ignore")
        for name, value in table.items():
            if name in flags and value:
                words += [f"--{name}", *(value if isinstance(value, list) else [str(value)])]
            elif name not in ("table", *flags):
                words += ["--option", f"{name}={value}"]
        return words
