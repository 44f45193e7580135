"""The core tests on every Python and torch that can be had: `make compat`.

    python -m tools.compat                              # each Python that is here, with its newest torch
    python -m tools.compat --torch 2.4.0 2.13.0         # these versions of torch instead
    python -m tools.compat --python python3.12 --keep DIR   # one Python; its environment is kept there

Each pair gets an environment of its own in a temporary folder, with the core dependencies, the data extra and
pytest; torch is what pip finds. (That may be several gigabytes with GPU packages: PIP_INDEX_URL or
PIP_FIND_LINKS can name a place with CPU builds.) What cannot be installed is told, and is no failure; a test
that fails is.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Learning against the plain implementation, every part, cohorts, files of older versions, compiled steps.
CORE = ("equivalence", "conformance", "learner", "cohort", "storage", "older_versions", "tasks", "compiled")
TESTING = ("pytest>=8", "hypothesis>=6", "pytest-xdist>=3.6", "scikit-learn>=1.6")


def pythons(oldest: tuple[int, int]) -> dict[str, str]:
    """{version: path} of every supported Python: on the path, and of pyenv."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places = [sys.executable, *(str(p) for p in sorted(root.glob("*/bin/python")))]
    places += [path for minor in range(8, 30) if (path := shutil.which(f"python3.{minor}"))]
    found: dict[str, str] = {}
    for path in places:
        done = subprocess.run(
            [path, "-c", "import sys; print(*sys.version_info[:3])"], capture_output=True, text=True
        )
        numbers = [int(n) for n in done.stdout.split()] if done.returncode == 0 else [0]
        if tuple(numbers[:2]) >= oldest:
            found.setdefault(".".join(map(str, numbers)), path)
    newest = {version.rpartition(".")[0]: version for version in sorted(found, key=_key)}  # of each 3.x
    return {version: found[version] for version in newest.values()}


def _key(version: str) -> list[int]:
    return [int(n) for n in version.split(".")]


def tried(python: str, torch: str | None, folder: Path) -> tuple[str, str]:
    """What became of one pair: (versions, result)."""
    environment = folder / "bin" / "python"
    wanted = "torch" if torch is None else f"torch=={torch}"
    for command in (
        [] if environment.exists() else [python, "-m", "venv", str(folder)],
        [str(environment), "-m", "pip", "install", "--quiet", wanted, f"{ROOT}[data]", *TESTING],
    ):
        done = subprocess.run(command, capture_output=True, text=True) if command else None
        if done is not None and done.returncode:
            return wanted, f"cannot be installed: {(done.stderr.strip().splitlines() or ['?'])[-1]}"
    said = subprocess.run(
        [
            environment,
            "-c",
            "import torch, numpy; print('torch', torch.__version__ + ', numpy', numpy.__version__)",
        ],
        capture_output=True,
        text=True,
    )
    if said.returncode:
        return wanted, f"cannot be imported: {said.stderr.strip().splitlines()[-1]}"
    tests = [f"tests/test_{name}.py" for name in CORE]
    done = subprocess.run(
        [environment, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        capture_output=True,
        text=True,
    )
    failures = re.findall(r"^(?:FAILED|ERROR) .*", done.stdout, re.M)
    last = (done.stdout.strip().splitlines() or ["no output"])[-1]
    return said.stdout.strip(), "\n    ".join([last, *failures])


def main() -> int:
    """Tries all pairs, and tells what became of each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--torch", nargs="*", default=[None], help="versions (default: what pip finds)")
    parser.add_argument("--python", nargs="*", help="commands (default: every supported one that is here)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep environments there")
    options = parser.parse_args()
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = tuple(int(n) for n in about["requires-python"].removeprefix(">=").split("."))
    assert len(oldest) == 2
    chosen = {p: p for p in options.python} if options.python else pythons(oldest)
    if not chosen:
        print(f"There is no Python {about['requires-python']} here.")
        return 1
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        for version, python in chosen.items():
            for torch in options.torch:
                name = f"{version}-{torch or 'newest'}".replace("/", "_")
                folder = (options.keep or Path(temporary)) / name
                versions, result = tried(python, torch, folder)
                print(f"Python {version}, {versions}: {result}", flush=True)
                failed |= "failed" in result or "error" in result
                if options.keep is None:
                    shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
