"""Packages that are imported on first use."""
from __future__ import annotations

import importlib
from typing import Any


def needed(name: str, what: str) -> Any:
    """Return a module, or raise ImportError with the command that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(f"{what} needs {name.split('.')[0]}: pip install {name.split('.')[0]}") from None
