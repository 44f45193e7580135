"""What people install: the wheel and the source archive, in an environment without the checkout."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import piaget

ROOT = Path(__file__).parent.parent
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.egg-info", "node_modules", ".*", "build", "dist")
# Runs commands, then prints where each module of piaget came from.
COMMANDS = """
import json, sys
from piaget.cli import main
for words in json.loads(sys.argv[1]):
    assert main(words) == 0, words
print(json.dumps([m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "piaget" and m.__file__]))
"""


def run(*command: str | Path, cwd: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PIAGET", "COV"))}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with both archives. The wheel is made from the source archive, as `python -m build` does."""
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("no sources here to build from")
    source = tmp_path_factory.mktemp("package") / "source"
    shutil.copytree(ROOT, source, ignore=LEFT_OUT)  # what was built here before is not to be found
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", "../dist", cwd=source)
    return source.parent / "dist"


def installed(archive, folder):
    """The Python of a new environment, with this archive and what is installed here except piaget."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=archive.parent)
    (site,) = folder.glob("lib/python*/site-packages")
    here = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "dependencies.pth").write_text("\n".join(here))  # its own .pth files have no effect there
    python = folder / "bin" / "python"
    options = ("--no-deps", "--no-index", "--no-build-isolation", "--quiet", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, archive, cwd=archive.parent)
    return python


def files_of_package():
    return {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "piaget").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def test_the_wheel_runs_without_the_checkout(built, tmp_path):
    """With the page, the paper's numbers and the digits, all of which are files in the wheel."""
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if name.startswith("piaget/")}
    assert inside == files_of_package()
    python = installed(wheel, tmp_path / "environment")
    small = ["--option", "tasks=4", "--option", "train_size=20", "--epochs", "2", "--quiet"]
    commands = [
        ["run", "digits", *small, "--out", "run"],
        ["report", "run", "--quiet"],
        ["data", "list"],
        ["list"],
    ]
    said = run(python, "-c", COMMANDS, json.dumps(commands), cwd=tmp_path)
    files = json.loads(said.splitlines()[-1])
    assert len(files) > 50
    assert all(Path(file).is_relative_to(tmp_path / "environment") for file in files), files
    assert json.loads((tmp_path / "run" / "seed-0" / "run.json").read_text())["status"] == "done"
    page = (tmp_path / "run" / "report" / "report.html").read_text()
    assert "digits" in page
    assert "<script" in page
    command = tmp_path / "environment" / "bin" / "piaget"
    assert run(command, "--version", cwd=tmp_path) == f"piaget {piaget.__version__}\n"


def test_the_source_archive_is_installed_alike(built, tmp_path):
    (archive,) = built.glob("*.tar.gz")
    python = installed(archive, tmp_path / "environment")
    (package,) = (tmp_path / "environment").glob("lib/python*/site-packages/piaget")
    there = {p.relative_to(package.parent).as_posix() for p in package.rglob("*") if p.suffix != ".pyc"}
    assert files_of_package() <= there
    assert run(python, "-m", "piaget", "--version", cwd=tmp_path) == f"piaget {piaget.__version__}\n"
    with tarfile.open(archive) as packed:
        inside = {name.partition("/")[2] for name in packed.getnames()}
    assert {"tests/test_package.py", "CITATION.cff", "docs/versions.md", "examples/algorithm_1.py"} <= inside


def test_the_metadata(built):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        metadata = archive.read(path).decode()
    fields = re.findall(r"^([A-Z][\w-]+): (.*)$", metadata.partition("\n\n")[0], re.M)
    assert ("Version", piaget.__version__) in fields
    assert ("License-Expression", "MIT") in fields
    needed = [value for name, value in fields if name == "Requires-Dist" and "extra ==" not in value]
    assert {re.split(r"[<>=!~ ;]", value)[0] for value in needed} == {
        "filelock",
        "numpy",
        "platformdirs",
        "rich",
        "safetensors",
        "torch",
    }
    extras = {value for name, value in fields if name == "Provides-Extra"}
    assert {"all", "data", "report", "sklearn", "tensorboard", "mlflow", "ray", "onnx"} <= extras
    (every,) = (value for name, value in fields if name == "Requires-Dist" and 'extra == "all"' in value)
    assert set(re.findall(r"\w+", every.partition("[")[2].partition("]")[0])) <= extras


def test_the_citation_names_this_version():
    text = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {piaget.__version__}\n" in text


def test_a_package_in_someones_repository_has_no_commit(tmp_path, monkeypatch):
    """Their commit is not piaget's."""
    from piaget.lab import folder

    if shutil.which("git") is None:
        pytest.skip("no git here")
    for command in (["init", "-q"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "theirs"]):
        run("git", *command, *(["--allow-empty"] if "commit" in command else []), cwd=tmp_path)
    theirs = tmp_path / "site-packages" / "folder.py"
    theirs.parent.mkdir()
    theirs.touch()
    monkeypatch.setattr(folder, "__file__", str(theirs))
    assert folder._commit() is None
