"""Memory of a process that trains."""

from __future__ import annotations

import contextlib
import ctypes

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # names of mallopt(3)


def keep_memory() -> None:
    """Large tensors come and go in every step: keep their memory instead of returning it to the system
    each time (a chain of three operations on 26 MB takes half the time). For all of the process; where
    the C library is not GNU's, nothing happens."""
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(MMAP_THRESHOLD, 2**30)
        library.mallopt(TRIM_THRESHOLD, 2**31 - 1)
