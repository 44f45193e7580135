"""Experiments: many runs of many methods, kept on disk, and their table.

Names are loaded when they are first used: the command line need not wait for PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from piaget.lab.comparison import compare as compare
    from piaget.paper.names import Method as Method

__all__ = ["Method", "compare"]


def __getattr__(name: str) -> Any:
    if name == "compare":
        from piaget.lab.comparison import compare

        return compare
    if name == "Method":
        from piaget.paper.names import Method

        return Method
    raise AttributeError(f"module 'piaget.lab' has no attribute {name!r}")
