"""The documentation: notebooks and examples run, commands are commands, every public name is explained."""

import argparse
import doctest
import importlib
import re
import shlex
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
import torch

import piaget
import piaget.sklearn
from piaget.cli import main
from tests.notebooks import ROOT, blocks, notebooks, run
from tests.test_examples import names  # noqa: F401  (a fixture)
from tools.site.docstrings import restructured
from tools.site.links import faults

DOCS = ROOT / "docs"
PAGES = [p for p in sorted(DOCS.rglob("*.md")) if not {"_build", "results-notes"} & {*p.parts}]
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]
# Pages whose blocks of Python have tests of their own.
TESTED = {
    "README.md",
    *(
        f"docs/{name}.md"
        for name in ("streams", "tables", "extending", "python", "inference", "components-library")
    ),
}
NOT_RUN = re.compile(r"<!-- not run: \S.*-->\n+$")  # right before a block, with the reason


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


# --- code ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::piaget.errors.DataNote")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("page", notebooks(), ids=named)
def test_notebook(page, monkeypatch, tmp_path):
    """As the site's build runs it, but in this process."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    try:
        run(page)
        assert page.parent.name != "tutorials" or plt.get_fignums(), "a tutorial without a figure"
    finally:
        plt.close("all")


@pytest.mark.parametrize("page", [p for p in PAGES if named(p) not in TESTED], ids=named)
def test_python_blocks(page, names):  # noqa: F811
    """All blocks of a page, in order, with short streams and few epochs; or a comment says why not."""
    text = page.read_text().splitlines(keepends=True)
    names["piaget"] = piaget
    for block in blocks(page):
        if block.language == "python" and not block.is_cell:
            if NOT_RUN.search("".join(text[: block.line - 2])):
                continue
            exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), names)


# --- commands --------------------------------------------------------------------------------------------


def commands() -> list[tuple[str, str]]:
    """All lines of indented blocks that call `piaget`: where, and what is called."""
    found = []
    for path in TEXTS:
        lines = re.sub(r"\\\n\s+", "", path.read_text()).splitlines()
        for number, line in enumerate(lines, 1):
            match = re.match(r"(?: {4}| {7})(?:\$ )?piaget (.+)", line)
            if match and match[1][0].islower():
                found.append((f"{named(path)}:{number}", re.sub(r"\s+#.*|\s+->.*", "", match[1])))
    return found


def test_every_command_is_one(monkeypatch):
    """Commands and flags are known, and values have the right form. (Other tests run them: test_cli*.py.)"""
    parse = argparse.ArgumentParser.parse_args

    def parsed_only(self: Any, *given: Any, **more: Any) -> Any:
        options = parse(self, *given, **more)
        options.run = lambda _: 0
        return options

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parsed_only)
    found, wrong = commands(), []
    assert len(found) > 40
    for where, text in found:
        try:
            main(shlex.split(text))
        except SystemExit:
            wrong.append(f"{where}: piaget {text}")
    assert wrong == []


def test_every_target_of_make_is_one():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in TEXTS:
        used = set(re.findall(r"(?:^ {4}|`)make ([a-z]+)", path.read_text(), re.MULTILINE))
        assert used <= targets, named(path)


# --- docstrings ------------------------------------------------------------------------------------------

PUBLIC = {
    "piaget": piaget.__all__,
    "piaget.streams": importlib.import_module("piaget.streams").__all__,
    "piaget.prior": importlib.import_module("piaget.prior").__all__,
    "piaget.lab": importlib.import_module("piaget.lab").__all__,
    "piaget.sklearn": ["LifelongClassifier", "LifelongRegressor"],
}
# Names of types and of a table, which can have no docstring; the reference explains them.
WITHOUT = {"piaget.Stream", "piaget.Memory", "piaget.Tensors", "piaget.streams.STREAMS"}
NAMES = [f"{module}.{name}" for module, listed in PUBLIC.items() for name in listed]


def public(name: str) -> Any:
    module, _, short = name.rpartition(".")
    return getattr(importlib.import_module(module), short)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT])
def test_example_in_the_docstring(name, monkeypatch, tmp_path, capsys):
    """Every public name has a docstring, with an example, which runs."""
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    globals_ = {"piaget": piaget, "torch": torch, "np": np}
    tests = doctest.DocTestFinder().find(public(name), name, globs=globals_)
    assert public(name).__doc__, f"{name} has no docstring"
    assert any(test.examples for test in tests), f"{name} has no example"
    for test in tests:
        runner.run(test)
    assert runner.failures == 0, capsys.readouterr().out


def test_the_reference_has_all_names():
    text = "\n".join(path.read_text() for path in (DOCS / "api").glob("*.md"))
    whole = set(re.findall(r"automodule:: ([\w.]+)", text))
    shown = {name for name in re.findall(r":: (piaget[\w.]+)", text) if name in NAMES}
    things = [public(name) for name in shown]
    left = [
        name
        for name in NAMES
        if name not in shown
        and not any(public(name) is thing for thing in things)  # under another name
        and not {name.rpartition(".")[0], getattr(public(name), "__module__", "")} & whole
    ]
    assert left == []


def test_docstrings_become_restructured_text():
    lines = [
        "Weights (k, *shape), `a*b`.",
        "size: how many_",
        "    at most",
        "",
        "    code *here*",
        "",
    ]
    assert list(restructured(lines, {"size"})) == [
        "Weights (k, \\*shape), `a*b`.",
        "",
        ":param size: how many\\_",
        "    at most",
        "",
        "::",
        "",
        "    code *here*",
        "",
    ]


# --- the site --------------------------------------------------------------------------------------------


def test_links_are_checked(tmp_path):
    (tmp_path / "a.html").write_text(
        '<p id="here"></p><a href="#here">x</a><a href="b.html#there">x</a><a href="https://example.org/x">x</a>'
        '<img src="data:image/png;base64,AA==">'
    )
    (tmp_path / "b.html").write_text('<h1 id="there"></h1><a href="a.html">x</a>')
    assert faults(tmp_path) == []
    (tmp_path / "b.html").write_text(
        '<a href="c.html">x</a><a href="a.html#nowhere">x</a><a href="htp:/example">x</a>'
        '<script src="https://example.org/x.js"></script>'
    )
    told = "\n".join(faults(tmp_path))
    expected = (
        "a.html: the link b.html#there leads to no place",
        "b.html: the link c.html leads to no file",
        "b.html: the link a.html#nowhere leads to no place",
        "b.html: the address htp:/example has no form",
        "b.html: loads https://example.org/x.js",
    )
    assert all(part in told for part in expected)
    assert len(faults(tmp_path)) == 5
