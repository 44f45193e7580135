"""Memory that is free goes back to the system."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable


def give_back() -> None:
    """Gives the system what is free. Linux's C library keeps blocks of up to 32 MB, such as the tasks that
    are over: the next stage, or a compiler, would take more beside them."""
    trim = _trim()
    if trim is not None:
        trim(0)


@functools.cache
def _trim() -> Callable[[int], int] | None:
    """None: another system, or another C library."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
