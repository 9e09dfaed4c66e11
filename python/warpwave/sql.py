"""The SQL extension of the package, for connections of Python's `sqlite3`."""
from __future__ import annotations

import sqlite3

from ._errors import Unsupported
from ._library import store_path

__all__ = ["load"]


def load(connection: sqlite3.Connection) -> None:
    """Register the virtual table `warpwave` and the vector functions with a connection of `sqlite3`.

        connection = sqlite3.connect("library.db")
        warpwave.load(connection)
        connection.execute("SELECT id FROM docs WHERE vector MATCH '[0.9, 0.1]' AND k = 1")

    Python must have been built with `load_extension()`, as in most distributions; otherwise this raises `Unsupported`.
    """
    if not isinstance(connection, sqlite3.Connection):
        raise TypeError(f"load: the connection is {type(connection).__name__}; it must be a sqlite3.Connection")
    if not hasattr(connection, "enable_load_extension"):
        raise Unsupported("this Python was built without sqlite3.Connection.enable_load_extension(), so a connection cannot load the extension; "
                          "use a Python that has it, as distributions do, or warpwave.Store")
    connection.enable_load_extension(True)
    try:
        connection.execute("SELECT load_extension(?, 'sqlite3_warpwave_init')", (store_path(),)).fetchall()
    finally:
        connection.enable_load_extension(False)
