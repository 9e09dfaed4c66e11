"""Find and load the C libraries: from the wheel, from where WARPWAVE_LIBRARY says, or from the system.

They are loaded with RTLD_LOCAL, so their symbols and those of other modules do not mix.
"""
from __future__ import annotations

import ctypes
import os
import pathlib
import threading
from typing import Any

from ._checked import checked

PACKAGE = pathlib.Path(__file__).resolve().parent


def _candidates(name: str) -> list[str]:
    """Return the paths to try for lib<name>.so, best first."""
    told = os.environ.get("WARPWAVE_LIBRARY", "")
    if told:
        return [told]
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


def store_path() -> str:
    """Return the path of the store's library, which is also the SQLite extension: in a wheel, the only library."""
    core = _libraries["warpwave"]
    if hasattr(core, "ww_store_open"):
        return str(pathlib.Path(core._name).resolve())
    path = pathlib.Path(os.environ.get("WARPWAVE_LIBRARY", "")).resolve().parent / "python" / "libwarpwave_store.so"
    if not path.is_file():
        raise ImportError(f"{path} does not exist: this package was built without the store, which needs the headers of SQLite 3.38 or later")
    return str(path)


def _load_store() -> ctypes.CDLL:
    """Load the store with Python's own SQLite: two copies in one process would drop each other's locks on a file.

    If that is impossible, the wheel's own copy is used. It refuses files that the process has opened otherwise.
    """
    core, path = _libraries["warpwave"], store_path()
    try:
        _use_pythons_sqlite(path)
    except ImportError as why:
        if not hasattr(core, "ww_sqlite_use_bundled"):
            raise
        if core.ww_sqlite_use_bundled() != 0:
            core.ww_error_message.restype = ctypes.c_char_p
            raise ImportError(f"{why}; {core.ww_error_message().decode()}") from None
    return ctypes.CDLL(path)


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


def _load_model() -> ctypes.CDLL:
    """Load the models, a separate library because it needs Unicode libraries; a wheel has everything in one library."""
    core = _libraries["warpwave"]
    if hasattr(core, "ww_model_open"):
        return core
    told = os.environ.get("WARPWAVE_LIBRARY", "")
    path = str(pathlib.Path(told).resolve().parent / "libwarpwave_model.so") if told else "libwarpwave_model.so.0"
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"{path} cannot be loaded: {error}; models need a library that was built with PCRE2 and utf8proc") from None


def _load_text() -> ctypes.CDLL:
    """Load the text collections, after the store and the models that they need; a wheel has everything in one library."""
    core = _libraries["warpwave"]
    for name in ("warpwave_store", "warpwave_model"):
        if name not in _libraries:
            _libraries[name] = _LATER[name]()
    if hasattr(core, "ww_text_config_init"):
        return core
    path = pathlib.Path(os.environ.get("WARPWAVE_LIBRARY", "")).resolve().parent / "python" / "libwarpwave_text.so"
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"{path} cannot be loaded: {error}; collections of text need a library that was built with stores and models") from None


_LATER = {"warpwave_store": _load_store, "warpwave_model": _load_model, "warpwave_text": _load_text}
_libraries: dict[str, ctypes.CDLL] = {"warpwave": _load("warpwave")}
_loading = threading.Lock()


def function(library: str, name: str, result: Any, *arguments: Any) -> Any:
    """Return a library's function with its types; Python checks parameters given as (name, type).

    Functions of stores and models are loaded on first call.
    """
    if library in _LATER and library not in _libraries:

        def first(*values: Any) -> Any:
            with _loading:
                if library not in _libraries:
                    _libraries[library] = _LATER[library]()
            return function(library, name, result, *arguments)(*values)

        return first
    try:
        found = getattr(_libraries[library], name)
    except AttributeError:
        raise ImportError(f"{_libraries[library]._name} has no {name}(): it is another version than this Python package") from None
    found.restype = result
    found.argtypes = [argument[1] if isinstance(argument, tuple) else argument for argument in arguments]
    return checked(found, arguments)
