"""Properties of wrong input: whatever is given, what comes out is an answer or a PiagetError.

In `make test` the examples are always the same. `make fuzz` (tools/fuzz.py) sets PIAGET_FUZZ to a folder:
then they are new ones each time, more of them, and what comes out wrong is noted there and does not end the
property.
"""

import contextlib
import json
import os
import reprlib
import resource
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings

import piaget
from piaget.errors import PiagetError

FINDINGS = os.environ.get("PIAGET_FUZZ")
TIMES = int(os.environ.get("PIAGET_FUZZ_TIMES", "1"))
SECONDS, MEMORY = 60, 4 << 30  # that one call may take
HOUSE = str(Path(piaget.__file__).parent)
SHORT = reprlib.Repr()
SHORT.maxstring = SHORT.maxother = 300
SHORT.maxdict = SHORT.maxlist = SHORT.maxtuple = 8


class TooLong(Exception):
    """A call that would not end."""


def fuzz(examples: int) -> Callable[[Any], Any]:
    """A property: so many examples in `make test`."""
    return settings(
        max_examples=examples * TIMES,
        derandomize=FINDINGS is None,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        # Without looking for explanations: an example is small, and its error says where it was raised.
        phases=(Phase.generate, Phase.shrink),
    )


def tried(given: Any, call: Callable[[], Any], also: tuple[type[Exception], ...] = ()) -> Any:
    """The answer of a call, or the PiagetError (or `also` another) that it raised. All else is a finding."""
    allowed: tuple[type[Exception], ...] = (PiagetError, *also)
    try:
        with bounded(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = call()
    except allowed as error:
        answer = error
    except SystemExit as error:  # argparse's
        if error.code not in (0, 2):
            raise
        answer = error
    except Exception as error:
        _wrong(_where(error), f"{type(error).__name__}: {error}", given, error)
        return error
    _note({"property": _property()})
    return answer


def expect(given: Any, holds: bool, what: str, details: str = "") -> None:
    """What must hold of an answer."""
    if not holds:
        _wrong(what, details, given)


def _wrong(what: str, details: str, given: Any, error: Exception | None = None) -> None:
    shown = SHORT.repr(given)
    _note({"property": _property(), "wrong": what, "details": details[-300:], "given": shown})
    if FINDINGS is None:
        raise AssertionError(f"{what}\n{details[-1000:]}\ngiven {shown}") from error


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """A call that takes too long, or too much memory, fails instead of taking the machine with it."""

    def late(*signal_and_frame: Any) -> None:
        raise TooLong(f"more than {SECONDS} s")

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = signal.signal(signal.SIGALRM, late)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _where(error: Exception) -> str:
    """The kind of error, and the innermost of the library's lines on its way."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(HOUSE)
    ]
    place = f"{frames[-1].filename.removeprefix(HOUSE)[1:]}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__} in {place}"


def _property() -> str:
    return os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[2].partition(" ")[0]


def _note(what: dict[str, str]) -> None:
    if FINDINGS is not None:
        with open(Path(FINDINGS) / f"{os.getpid()}.jsonl", "a") as handle:
            handle.write(json.dumps(what) + "\n")
