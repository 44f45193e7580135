"""The plan of the house: public names, rooms without PyTorch, docstrings. (Which room may import which:
import-linter, in pyproject.toml.)"""

import ast
import subprocess
import sys
from pathlib import Path

import piaget

HOUSE = Path(piaget.__file__).parent
# What the command line needs before it trains anything.
WITHOUT_TORCH = (
    "piaget.errors",
    "piaget.scoring.rows",
    "piaget.method.choices",
    "piaget.paper.names",
    "piaget.paper.defaults",
    "piaget.paper.presets",
    "piaget.paper.results",
    "piaget.files",
    "piaget.lab.configuration",
    "piaget.lab.folder",
    "piaget.lab.kept",
    "piaget.lab.status",
    "piaget.lab.row_file",
    "piaget.lab.essence",
    "piaget.lab.collection",
    "piaget.lab.collecting",
    "piaget.lab.jobs",
    "piaget.lab.parts",
    "piaget.lab.progress",
    "piaget.lab.final_table",
    "piaget.lab.expected_times",
    "piaget.cli.run",
    "piaget.cli.sweep",
    "piaget.cli.resume",
    "piaget.cli.listing",
    "piaget.cli.status",
    "piaget.cli.words",
    "piaget.cli.collect",
)


def test_rooms_without_torch():
    code = (
        "import importlib, sys\n"
        f"for name in {WITHOUT_TORCH!r}:\n"
        "    importlib.import_module(name)\n"
        "    assert 'torch' not in sys.modules, name\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_type_checkers_see_the_names_that_there_are():
    (block,) = (
        node
        for node in ast.parse((HOUSE / "__init__.py").read_text()).body
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
    )
    seen = {alias.asname for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen - {"lab", "streams"} == set(piaget.__all__)
    for name in piaget.__all__:
        assert getattr(piaget, name) is not None


def test_public_classes_and_functions_say_what_they_are():
    silent = []
    for path in HOUSE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        nodes = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
        nodes += [n for n in tree.body if isinstance(n, ast.FunctionDef)]  # type: ignore[misc]
        silent += [
            f"{path.relative_to(HOUSE)}: {n.name}"
            for n in nodes
            if not n.name.startswith("_") and not ast.get_docstring(n)
        ]
    assert silent == []


def test_file_names_tell_files_apart():
    """Beside commands, which are called as what they command."""
    paths = [p for p in HOUSE.rglob("*.py") if p.name != "__init__.py" and p.parent.name != "cli"]
    names = [path.name for path in paths]
    assert {name for name in names if names.count(name) > 1} == set()
