"""Packages that are imported on first use."""
from __future__ import annotations

import importlib
from typing import Any


def installed(name: str, module: str, extra: str) -> None:
    """Raise ImportError with the command that installs it if a package that a module of this one is for is missing."""
    try:
        importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{module} needs {error.name or name}: pip install 'warpwave[{extra}]'") from error


def needed(name: str, what: str) -> Any:
    """Return a module, or raise ImportError with the command that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(f"{what} needs {name.split('.')[0]}: pip install {name.split('.')[0]}") from None
