"""Packages that are optional extras."""

from __future__ import annotations

import importlib
from typing import Any

from piaget.errors import PackageError

# In which extra a package is; all others are in `data`.
EXTRAS = {
    "ray": "ray",
    "tensorboard": "tensorboard",
    "mlflow": "mlflow",
    "sqlalchemy": "mlflow",
    "alembic": "mlflow",
    "datasets": "huggingface",
}


def need(module: str, what: str, extra: str | None = None) -> Any:
    """Imports a library that is an optional extra (by default: of which one, by its name)."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.split(".")[0]
        package = {"PIL": "pillow"}.get(name, name)
        extra = extra or EXTRAS.get(name, "data")
        raise PackageError(
            f"{what} need the package {package}, which is not installed: pip install 'piaget[{extra}]'"
        ) from error
