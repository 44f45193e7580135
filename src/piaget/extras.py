"""Packages that are optional extras."""

from __future__ import annotations

import importlib
from typing import Any

from piaget.errors import PackageError


def need(module: str, what: str) -> Any:
    """Imports a library that is an optional extra."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = {"PIL": "pillow"}.get(module.split(".")[0], module.split(".")[0])
        raise PackageError(
            f"{what} need the package {package}, which is not installed: pip install 'piaget[data]'"
        ) from error
