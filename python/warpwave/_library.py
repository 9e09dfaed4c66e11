"""Find and load the C library: from the wheel, from where WARPWAVE_LIBRARY says, or from the system.

It is loaded with RTLD_LOCAL, so its symbols and those of other modules do not mix.
"""
from __future__ import annotations

import ctypes
import os
import pathlib
import shutil
import threading
from typing import Any, Optional

from ._checked import checked

PACKAGE = pathlib.Path(__file__).resolve().parent


def command_path() -> Optional[str]:
    """Return the path of the `warpwave` command: what WARPWAVE_COMMAND says, the wheel's, or the one that a shell finds."""
    inside = PACKAGE / "bin" / "warpwave"
    return os.environ.get("WARPWAVE_COMMAND", "") or (str(inside) if inside.is_file() else shutil.which("warpwave"))


def _candidates() -> list[str]:
    """Return the paths to try for the library, best first."""
    told = os.environ.get("WARPWAVE_LIBRARY", "")
    if told:
        return [told]
    inside = sorted(str(path) for path in (PACKAGE / "lib").glob("libwarpwave.so*"))
    return [*inside, "libwarpwave.so.0.2"]


def _load() -> ctypes.CDLL:
    tried = []
    for candidate in _candidates():
        try:
            return ctypes.CDLL(candidate)
        except OSError as error:
            tried.append(f"  {candidate}: {error}")
    raise ImportError("the C library libwarpwave.so was not found; install the wheel, or set WARPWAVE_LIBRARY to its path. Tried:\n"
                      + "\n".join(tried))


def store_path() -> str:
    """Return the path of the library, which is also the SQLite extension."""
    if not hasattr(_library, "ww_store_open"):
        raise ImportError(f"{_library._name} was built without stores, which need SQLite 3.38 or later")
    return _path_of(_library)


def _path_of(library: ctypes.CDLL) -> str:
    """Return the file of a library that may have been found by its name alone."""

    class Found(ctypes.Structure):
        _fields_ = [("path", ctypes.c_char_p), ("base", ctypes.c_void_p), ("symbol", ctypes.c_char_p), ("address", ctypes.c_void_p)]

    found = Found()
    if ctypes.CDLL(None).dladdr(library.ww_version, ctypes.byref(found)) == 0 or not found.path:
        return str(pathlib.Path(library._name).resolve())
    return str(pathlib.Path(os.fsdecode(found.path)).resolve())


def _prepare_store() -> None:
    """Have stores use Python's own SQLite: two copies in one process would drop each other's locks on a file.

    If that is impossible, the wheel's own copy is used. It refuses files that the process has opened otherwise.
    """
    path = store_path()
    try:
        _use_pythons_sqlite(path)
    except ImportError as why:
        if not hasattr(_library, "ww_sqlite_use_bundled"):
            raise
        if _library.ww_sqlite_use_bundled() != 0:
            _library.ww_error_message.restype = ctypes.c_char_p
            raise ImportError(f"{why}; {_library.ww_error_message().decode()}") from None


def _use_pythons_sqlite(path: str) -> None:
    """Have Python's SQLite load the library as an extension of an in-memory connection, which passes on SQLite's functions."""
    import sqlite3

    if sqlite3.sqlite_version_info < (3, 38):
        raise ImportError(f"a store needs SQLite 3.38 or later, and this Python has {sqlite3.sqlite_version}")
    connection = sqlite3.connect(":memory:")
    try:
        if hasattr(connection, "enable_load_extension"):
            connection.enable_load_extension(True)
            connection.execute("SELECT load_extension(?, 'sqlite3_warpwave_init')", (path,)).fetchall()
        else:
            _load_through_library(path, connection.execute("SELECT sqlite_source_id()").fetchone()[0])
    except sqlite3.Error as error:
        raise ImportError(f"a store works with Python's own SQLite, which cannot load it here: {error}") from None
    finally:
        connection.close()


def _load_through_library(path: str, source_id: str) -> None:
    """Load the extension if Python's module was built without load_extension().

    This uses the SQLite that the module uses: it is found among the libraries of this process by its source id.
    """
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        loaded = sorted({line.split(None, 5)[5].strip() for line in maps if "libsqlite3" in line})
    for name in loaded:
        library = ctypes.CDLL(name)
        library.sqlite3_sourceid.restype = ctypes.c_char_p
        if library.sqlite3_sourceid().decode() != source_id:
            continue
        db, message = ctypes.c_void_p(), ctypes.c_char_p()
        try:
            if library.sqlite3_open(b":memory:", ctypes.byref(db)) == 0 and library.sqlite3_enable_load_extension(db, 1) == 0 and library.sqlite3_load_extension(
                    db, path.encode(), b"sqlite3_warpwave_init", ctypes.byref(message)) == 0:
                return
            raise ImportError(f"a store works with Python's own SQLite, which cannot load it here: {(message.value or b'').decode()}")
        finally:
            library.sqlite3_close(db)
    raise ImportError("a store works with Python's own SQLite; this Python was built without load_extension(), and its SQLite "
                      "is part of the interpreter, where it cannot be found. Use a Python with load_extension(), such as the distribution's")


# Rooms that a library can be built without, and that may have to be prepared: their functions are looked for when one is first called.
_ROOMS = {"store": "stores", "model": "models", "text": "collections of text"}
_prepared: set[str] = set()
_library = _load()
_preparing = threading.Lock()


def _prepare(room: str) -> None:
    with _preparing:
        if room != "model" and "store" not in _prepared:
            _prepare_store()
            _prepared.add("store")
        _prepared.add(room)


def function(room: str, name: str, result: Any, *arguments: Any) -> Any:
    """Return a library's function with its types; Python checks parameters given as (name, type).

    `room` is "store", "model" or "text" for functions of theirs.
    """
    if room and room not in _prepared:

        def first(*values: Any) -> Any:
            if room not in _prepared:
                _prepare(room)
            return function(room, name, result, *arguments)(*values)

        return first
    try:
        found = getattr(_library, name)
    except AttributeError:
        why = f"built without {_ROOMS[room]}, or " if room else ""
        raise ImportError(f"{_library._name} has no {name}(): it is {why}another version than this Python package") from None
    found.restype = result
    found.argtypes = [argument[1] if isinstance(argument, tuple) else argument for argument in arguments]
    return checked(found, arguments)
