"""A command that is killed at every moment at which it changes a file, each time in a copy of a folder, and
then given again: `python -m tests.killing FOLDER WORD...`, with the folder's copy as {} among the words. It
prints a JSON list of what is there in the end: first of a command that was left alone."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import pandas  # noqa: F401 (once, not in each child)

import piaget.lab.table_lives  # noqa: F401 (once, not in each child)
from piaget.cli import main

ASIDE = ("log.txt", ".lock")  # nothing is read back from them
CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate"}


def kill_at(moment: int, folder: Path) -> None:
    """Ends this process without a word before it changes something in the folder for the n-th time."""
    left = moment

    def hook(event: str, arguments: Any) -> None:
        nonlocal left
        writes = event == "open" and arguments[2] is not None and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if (event in CHANGES or writes) and str(arguments[0]).startswith(f"{folder}{os.sep}"):
            if Path(str(arguments[0])).name in ASIDE:
                return
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def in_a_child(words: list[str], folder: Path, moment: int | None) -> bool:
    """Runs the command; was it left alone?"""
    child = os.fork()
    if not child:
        if moment is not None:
            kill_at(moment, folder)
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (this process is about to end)
        os._exit(main([word.replace("{}", str(folder)) for word in words]))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0 or (moment is not None and code == -signal.SIGKILL), code
    return code == 0


def ending(folder: Path) -> list[Any]:
    """What is there: the files that count, by their content."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in ASIDE)
    return [(str(f.relative_to(folder)), hashlib.sha256(f.read_bytes()).hexdigest()) for f in files]


def endings(source: Path, words: list[str]) -> list[list[Any]]:
    """Of a command that is left alone, then of those that are killed at one moment after the other."""
    found, moment = [], None
    while True:
        folder = source.parent / "killed"
        shutil.copytree(source, folder)
        alone = in_a_child(words, folder, moment)
        if not alone:
            in_a_child(words, folder, None)
        found.append(ending(folder))
        shutil.rmtree(folder)
        if alone and moment is not None:
            return found
        moment = 0 if moment is None else moment + 1


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(endings(Path(sys.argv[1]), sys.argv[2:])))
