"""A sweep on digits that tests of reports share, its report, and copies that a test may edit."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from piaget.cli import main
from piaget.lab.folder import note

OPTIONS = ["--option", "tasks=6", "--option", "train_size=20", "--epochs", "4", "--quiet"]


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three methods, three seeds. It is not to be changed."""
    out = tmp_path_factory.mktemp("results") / "digits"
    algorithms = ["--algorithms", "dynamic", "compositional", "no-components"]
    arguments = ["sweep", "digits", "--adaptations", "nft", *algorithms, "--seeds", "3", "--every", "2"]
    assert main([*arguments, *OPTIONS, "--out", str(out)]) == 0
    return out


@pytest.fixture
def copy(results: Path, tmp_path: Path) -> Path:
    """Which a test may edit: without the hash of rows, as if version 0.1 had written them."""
    shutil.copytree(results, tmp_path / "runs", ignore=shutil.ignore_patterns("report"))
    for path in (tmp_path / "runs").rglob("run.json"):
        note(path.parent, rows=None)
    return tmp_path / "runs"


def some_run(runs: Path, word: str = "dynamic") -> Path:
    """The first run of a method."""
    return next(path.parent for path in sorted(runs.rglob("run.json")) if word in str(path))


def of_csv(report: Path, name: str) -> list[dict[str, str]]:
    """A table of a report."""
    with open(report / "tables" / f"{name}.csv", newline="") as file:
        return list(csv.DictReader(file))
