"""Finds and loads the C libraries: those in the package, as a wheel has them, or where WARPWAVE_LIBRARY says, or the system's.

They are loaded for this package alone (RTLD_LOCAL), so that nothing of them is seen by other modules, nor theirs by them.
"""
from __future__ import annotations

import ctypes
import os
import pathlib
from typing import Any

PACKAGE = pathlib.Path(__file__).resolve().parent


def _candidates(name: str) -> list[str]:
    """Where lib<name>.so may be, best first."""
    told = os.environ.get("WARPWAVE_LIBRARY", "")
    if told:
        return [told if name == "warpwave" else str(pathlib.Path(told).resolve().parent / f"lib{name}.so")]
    inside = sorted(str(path) for path in (PACKAGE / "lib").glob(f"lib{name}.so*"))
    return [*inside, f"lib{name}.so.0"]


def _load(name: str) -> ctypes.CDLL:
    tried = []
    for candidate in _candidates(name):
        try:
            return ctypes.CDLL(candidate)
        except OSError as error:
            tried.append(f"  {candidate}: {error}")
    raise ImportError(f"the C library lib{name}.so was not found; install the wheel, or set WARPWAVE_LIBRARY to its path. Tried:\n"
                      + "\n".join(tried))


_libraries: dict[str, ctypes.CDLL] = {"warpwave": _load("warpwave")}


def function(library: str, name: str, result: Any, *arguments: Any) -> Any:
    """A function of a library, with its types. One of a library that is not there says so when it is called."""
    if library not in _libraries:
        try:
            _libraries[library] = _load(library)
        except ImportError as error:
            reason = str(error)

            def absent(*_: Any) -> Any:
                raise ImportError(f"{name}() is in a library of its own: {reason}")

            return absent
    try:
        found = getattr(_libraries[library], name)
    except AttributeError:
        raise ImportError(f"{_libraries[library]._name} has no {name}(): it is another version than this Python package") from None
    found.restype = result
    found.argtypes = arguments
    return found
