"""How a benchmark ends as a command does: errors of the library in one line."""

from __future__ import annotations

import sys
from collections.abc import Callable

from piaget.errors import PiagetError


def ended(name: str, work: Callable[[], None]) -> int:
    """The exit code of a benchmark, when its work has been done, or was refused."""
    try:
        work()
    except (PiagetError, OSError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    return 0
