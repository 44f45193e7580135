"""Starting a command in a fork of this process, which has imported everything; and ending it by signals.

This process is alone with the command's processes (`take_orphans`): all that descends from it is theirs.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from tools.soak.scenarios import Scenario

DEATH_SIGNAL, CHILD_SUBREAPER = 1, 36  # of Linux' prctl
LOOK = 0.002  # seconds between two looks at a process


def die_with_parent() -> None:
    """Whoever ends the soak ends all that it has begun."""
    ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL)


def take_orphans() -> None:
    """What loses its parent becomes a child of this process: then it is seen, and its end, too."""
    ctypes.CDLL(None).prctl(CHILD_SUBREAPER, 1)


class Start:
    """A command that was started once, until all its processes are gone."""

    def __init__(self, scenario: Scenario, words: list[str], log: Path, keeps_often: bool) -> None:
        self.log = log
        self.code: int | None = None  # once it has ended
        self.pid = os.fork()
        if self.pid == 0:
            _become(scenario, words, log, keeps_often)

    @property
    def said(self) -> str:
        """All that it printed."""
        return self.log.read_text(errors="replace")

    def ended(self) -> bool:
        """Is the command itself over? Its workers may not be."""
        _reap(self)
        return self.code is not None

    def wait(self, moment: Callable[[], bool]) -> bool:
        """Until a moment, or the command's end: has the moment come first?"""
        while not self.ended():
            if moment():
                return True
            time.sleep(LOOK)
        return False

    def workers(self) -> list[int]:
        """The command's other processes."""
        return [pid for pid in living(os.getpid()) if pid != self.pid]

    def send(self, number: int, pid: int, group: bool = False) -> None:
        """A signal, to a process or to the command's group; it may be gone already."""
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(pid, number)

    def gone(self, within: float) -> bool:
        """Waits for the end of all processes; whether it came in time."""
        limit = time.monotonic() + within
        while not self.ended() or living(os.getpid()):
            if time.monotonic() > limit:
                return False
            time.sleep(LOOK)
        return True

    def end(self) -> None:
        """Kills whatever is left."""
        while not self.ended() or living(os.getpid()):
            for pid in living(os.getpid()):
                self.send(signal.SIGKILL, pid)
            time.sleep(LOOK)


def living(ancestor: int) -> list[int]:
    """The processes that descend from one, without those that are dead and not yet reaped."""
    found = []
    for children in Path(f"/proc/{ancestor}/task").glob("*/children"):
        try:
            pids = [int(pid) for pid in children.read_text().split()]
        except OSError:  # the thread has ended
            continue
        for pid in pids:
            found += ([pid] if _state(pid) not in "ZX" else []) + living(pid)
    return found


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def _reap(start: Start) -> None:
    """Takes note of the exit code of the command; orphans are reaped only."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid == start.pid:
            start.code = os.waitstatus_to_exitcode(status)


def _become(scenario: Scenario, words: list[str], log: Path, keeps_often: bool) -> NoReturn:
    """The command, in this new process: as if it had been started by a shell."""
    code = 1
    try:
        os.setsid()
        die_with_parent()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stdout = sys.stderr = open(log, "w", buffering=1)  # noqa: SIM115
        for stream in (1, 2):
            os.dup2(sys.stdout.fileno(), stream)
        os.environ |= scenario.environment
        from piaget.cli import main
        from piaget.lab.keeping import Keeper

        if keeps_often:
            Keeper.SHARE = 1e9  # after every epoch, however short it is: the more moments there are to be hit
        if not scenario.spawned:
            _fork_workers()
        code = main(words)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _fork_workers() -> None:
    """Workers of a sweep as forks, which have imported everything; with a new process' signals."""
    fork = multiprocessing.get_context("fork")
    multiprocessing.get_context = lambda method=None: fork  # type: ignore[assignment]

    os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))
