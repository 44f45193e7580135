"""Methods side by side, from Python: a sweep whose methods and streams may be one's own objects."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from piaget.data.plain import shown
from piaget.errors import PiagetError, SettingError
from piaget.lab.executors import Executor, InProcess, Processes
from piaget.lab.jobs import Job
from piaget.lab.parts import PARTS, Trusted, as_plain_data, is_reference
from piaget.lab.sweeps import Event, check_jobs, diverged_runs, run_jobs, write_tables
from piaget.method.choices import METHOD, adaptation_of
from piaget.method.registry import FAMILIES
from piaget.method.values import SEED, WHOLE, check_number
from piaget.paper.defaults import algorithm_of, structure_of
from piaget.paper.names import Method

MethodLike = Method | Mapping[str, Any] | Sequence[Any]
StreamLike = str | Callable[..., Any] | tuple[Any, Mapping[str, Any]]


def compare(
    methods: Iterable[MethodLike],
    streams: Iterable[StreamLike],
    seeds: Iterable[int],
    out: str | os.PathLike[str],
    *,
    epochs: int | None = None,
    every: int | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    cohort: int | None = None,
) -> list[dict[str, Any]]:
    """Trains every method on every stream with every seed; the table of final performance, a row a method.

    methods: {"adaptation": "er", "width": 128}, with any of structure, adaptation, algorithm and the settings
        of a learner; or (structure, adaptation, algorithm), or (structure, adaptation, algorithm, settings).
        Parts are the paper's by name, or objects and classes of one's own.
    streams: the paper's by name; a function (seed, **options) that makes a sequence of tasks, or its
        "package.module:name"; or a pair of one of these and its options.
    out: the folder of the sweep, for `piaget report`, too. Called again, only what is not done is trained.
    workers: processes to run in, to which objects of one's own must be importable (default: this process).

    Raises `SettingError` before anything is trained, if a method, a stream or a number does not fit.

    >>> import tempfile
    >>> table = piaget.lab.compare(
    ...     [{"adaptation": "er", "width": 8}, {"adaptation": "nft", "width": 8}],
    ...     [("digits", {"tasks": 4})],
    ...     seeds=[0],
    ...     out=tempfile.mkdtemp(),
    ...     epochs=2,
    ... )
    >>> [(row["base"], row["algorithm"]) for row in table]
    [('er', 'dynamic'), ('nft', 'dynamic')]
    """
    collector = _Collector()
    for what, given, example in (
        ("methods", methods, "{'adaptation': 'er'}"),
        ("streams", streams, "'digits'"),
    ):
        if isinstance(given, str | Mapping | Method) or not isinstance(given, Iterable):
            raise SettingError(f"{what}={shown(given)}; expected a list of {what}, such as [{example}]")
    chosen = [_Method.of(method, collector) for method in methods]
    epochs, every, workers, cohort = (
        check_number(name, value, WHOLE)
        for name, value in (("epochs", epochs), ("every", every), ("workers", workers), ("cohort", cohort))
    )
    if isinstance(seeds, str) or not isinstance(seeds, Iterable):
        raise SettingError(f"seeds={seeds!r}; expected a list of whole numbers, such as range(5)")
    numbers = tuple(dict.fromkeys(check_number("seeds", seed, SEED) for seed in seeds))
    common: dict[str, Any] = {"seeds": numbers, "epochs": epochs}
    common |= {"every": every, "data_dir": None if data_dir is None else str(Path(data_dir).absolute())}
    jobs = [
        Job(name, method.on(name), options=tuple(options.items()), settings=method.settings, **common)
        for name, options in (collector.stream(stream) for stream in streams)
        for method in chosen
    ]
    if not jobs or not common["seeds"]:
        raise SettingError("nothing to compare: give methods, streams and seeds")
    with _one_thread():
        check_jobs(jobs, collector.trusted)
        executor = collector.executor(workers)
        failed = run_jobs(jobs, Path(out), executor, _ignore, cohort, collector.trusted)
    tables = write_tables(jobs, Path(out))
    if failed:
        job, trace = next(iter(failed.items()))
        raise PiagetError(
            f"{len(failed)} cohorts failed; the others are kept, and the same call tries again. The first, "
            f"{job.name}:\n{trace}"
        )
    lost = diverged_runs(jobs, Path(out))
    if lost:
        folder, said = next(iter(lost.items()))
        raise PiagetError(f"{len(lost)} runs diverged; all others are in {out}. The first, {folder}: {said}")
    return [vars(line) | {"variant": variant} for variant, table in tables.items() for line in table]


def _ignore(event: Event) -> None:
    pass


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """More are slower, since matrices are small; and sums are the same as in workers."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclasses.dataclass(frozen=True)
class _Method:
    """A method as texts and plain data."""

    names: dict[str, str]  # of structure, adaptation, algorithm, as far as they are chosen
    settings: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, described: MethodLike, collector: _Collector) -> _Method:
        if isinstance(described, Method):
            chosen: dict[str, Any] = vars(described)
        elif isinstance(described, Mapping):
            chosen = dict(described)
        elif isinstance(described, tuple | list) and len(described) in (3, 4):
            chosen = dict(zip(METHOD, described, strict=False)) | dict(*described[3:])
        else:
            raise SettingError(
                f"method {described!r}; expected a dictionary or (structure, adaptation, algorithm, settings)"
            )
        plain: dict[str, Any] = {}
        for role, value in chosen.items():
            if role in PARTS and value is not None:
                plain[role], fields = collector.part(role, value)
                plain |= {f"{role}.{name}": field for name, field in fields.items()}
            elif value is not None:
                plain[role] = value.item() if hasattr(value, "item") else value  # numpy's numbers
        names = {role: plain.pop(role) for role in METHOD if role in plain}
        return cls(names, tuple(plain.items()))

    def on(self, stream: str) -> Method:
        """With the paper's choices for the stream where nothing is said."""
        algorithm = self.names.get("algorithm")
        structure = self.names.get("structure") or structure_of(stream, algorithm)
        algorithm = algorithm or algorithm_of(structure)
        return Method(self.names.get("adaptation") or adaptation_of(algorithm), algorithm, structure)


class _Collector:
    """Turns objects into texts, and remembers what the texts stand for."""

    def __init__(self) -> None:
        self.references: set[str] = set()
        self.objects: dict[str, Any] = {}  # what only this process knows

    @property
    def trusted(self) -> Trusted:
        return Trusted(frozenset(self.references), os.getcwd(), self.objects)

    def executor(self, workers: int | None) -> Executor:
        if workers is None:
            return InProcess()
        if self.objects:
            raise SettingError(
                f"{', '.join(self.objects)}: other processes cannot import it; put it into a module, or "
                "leave out workers"
            )
        return Processes(workers)

    def stream(self, value: StreamLike) -> tuple[str, dict[str, Any]]:
        """A stream's name or reference, and its options."""
        stream, options = value if isinstance(value, tuple) else (value, {})
        return stream if isinstance(stream, str) and not is_reference(stream) else self.name(stream), dict(
            options
        )

    def part(self, role: str, value: Any) -> tuple[str, dict[str, Any]]:
        """A part's name or reference, and those of its fields that are not the usual."""
        if isinstance(value, str):
            return self.name(value) if is_reference(value) else value, {}
        if isinstance(value, type):
            return self.name(value), {}
        parts = FAMILIES[role].parts if role in FAMILIES else {}
        alike = [name for name, usual in parts.items() if type(usual) is type(value)]
        if alike:
            name = next((name for name in alike if parts[name] == value), alike[0])
            return name, _fields(role, value, vars(parts[name]))
        return self.name(type(value)), _fields(role, value, {})

    def name(self, target: Any) -> str:
        """The reference of a class or a function."""
        if isinstance(target, str):
            self.references.add(target)
            return target
        name = getattr(target, "__qualname__", "<lambda>")
        if "<lambda>" in name:
            raise SettingError(f"{target!r} has no name by which it could be recorded; define a function")
        reference = f"{target.__module__}:{name}"
        module = sys.modules.get(target.__module__)
        steps = [] if target.__module__ == "__main__" else name.split(".")
        if (
            steps
            and functools.reduce(lambda inside, step: getattr(inside, step, None), steps, module) is target
        ):
            self.references.add(reference)
        elif self.objects.setdefault(reference, target) is not target:
            raise SettingError(f"two different things are called {reference}; give them different names")
        return reference


def _fields(role: str, part: Any, usual: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a part that are not the usual, which its run.json is to hold."""
    declared: dict[str, Any] = {}
    if dataclasses.is_dataclass(part):
        declared = {field.name: field.default for field in dataclasses.fields(part) if field.init}
    elif vars(part):
        raise SettingError(
            f"{role}: {type(part).__name__} has fields, but is no dataclass: they cannot be recorded; write "
            "@dataclass(frozen=True), or give the reference package.module:NAME of the object"
        )
    values = {name: getattr(part, name) for name in declared}
    changed = {name: value for name, value in values.items() if {**declared, **usual}[name] != value}
    return {name: as_plain_data(f"{role}.{name}", value) for name, value in changed.items()}
