"""Stores: durable collections in a SQLite file, searched in memory."""
from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from ctypes import byref, c_void_p
from dataclasses import dataclass
from typing import Any, Iterator, Literal, Optional, Union, overload

from . import _native as c
from ._arrays import name_text
from ._calls import Handle, NotPicklable, Progress, interruptible
from ._errors import InvalidArgument, check, warn
from ._file import created, opened_file
from ._names import METRICS, PLACES, SCREENS, TYPES, chosen
from .device import DeviceLike, from_struct, made, resolve
from .text import TextCollection, open_text
from .vectors import Collection, Embed, _taken

__all__ = ["Store", "StoreInfo"]

_LEVELS = {"full": c.WW_SYNCHRONOUS_FULL, "normal": c.WW_SYNCHRONOUS_NORMAL, "off": c.WW_SYNCHRONOUS_OFF}


@dataclass(frozen=True)
class StoreInfo:
    """Description of a store's file; the fields are those of the C struct ww_store_info."""

    format: int
    collections: int
    page_bytes: int
    bytes_file: int
    bytes_wal: int
    bytes_unused: int
    sqlite_version: str
    bytes_memory: int


class Store(NotPicklable):
    """Collections in a file. A write that returns is on disk completely. Other processes and `sqlite3` may use the file too.

    `synchronous` is "full", "normal" or "off": what a power failure may destroy. `busy_ms` is how long a call waits for another's lock
    before it raises `Busy`; `filter_ms` is the time limit of a `where`. `rows` is where existing collections keep their vectors: "device",
    or "host" if they do not fit on the GPU; `create()` has the same option for new ones. `exclusive` keeps other processes out and maps
    nothing of the file into memory. With `memory`, in bytes, collections that were not searched for longest leave memory when another one
    is loaded, and one that needs more alone is read from the file by each search; with "low" all are. `Store(":memory:")` is a temporary store that is deleted when it is closed.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "library.db")
    >>> with warpwave.Store(path, device="cpu") as store:
    ...     docs = store.create("docs", dim=2)
    ...     docs.add([[1, 0], [0, 1]], ids=["a", "b"], payloads=[{"lang": "de"}, {"lang": "en"}])
    >>> with warpwave.Store(path, device="cpu") as store:
    ...     store["docs"].search([1, 0], where="payload->>'$.lang' = :lang", parameters={"lang": "en"}).ids
    array(['b'], dtype=object)
    """

    def __init__(self, path: Any, device: DeviceLike = "auto", *, synchronous: str = "full", busy_ms: int = 5000, filter_ms: int = 60000, page_bytes: int = 0,
                 must_exist: bool = False, read_only: bool = False, exclusive: bool = False, rows: str = "device", memory: Union[int, Literal["low"]] = 0) -> None:
        self.path = os.fspath(path)
        if self.path == ":memory:":
            self._folder, synchronous = _Folder(), "off"
            path = os.path.join(self._folder.path, "store.db")
        if os.path.isfile(path) and os.path.getsize(path) == 0 and not must_exist:
            warn(f"{self.path} has 0 bytes and is opened as a new store; if it had collections, they are lost")
        self._device = resolve(device)
        self._handle = opened_file(path, self._device, self.path, synchronous=chosen(_LEVELS, synchronous, "synchronous"), busy_ms=busy_ms,
                                   filter_ms=filter_ms, page_bytes=page_bytes, must_exist=int(must_exist), read_only=int(read_only),
                                   exclusive=int(exclusive), rows=chosen(PLACES, rows, "the place of rows"), memory_bytes=1 if memory == "low" else memory)
        self._open_collections: dict[str, Collection] = {}
        self._given: weakref.WeakSet[Collection] = weakref.WeakSet()
        self._lock = threading.Lock()

    @overload
    def create(self, name: str, dim: int, metric: str = ..., type: str = ..., *, screen: str = ..., keep_host_copy: bool = ..., rows: str = ...,
               exist_ok: bool = ..., embed: Optional[Embed] = ...) -> Collection:
        ...

    @overload
    def create(self, name: str, dim: Optional[int] = ..., metric: str = ..., type: str = ..., *, model: Any, exist_ok: bool = ...,
               query_prefix: Optional[str] = ..., document_prefix: Optional[str] = ...) -> TextCollection:
        ...

    def create(self, name: str, dim: Optional[int] = None, metric: str = "cosine", type: str = "f32", *, screen: str = "int8", keep_host_copy: bool = False,
               rows: str = "device", exist_ok: bool = False, model: Any = None, query_prefix: Optional[str] = None,
               document_prefix: Optional[str] = None, embed: Optional[Embed] = None) -> Collection:
        """Create an empty collection. Refuse a name that is taken; with `exist_ok`, return that collection if it matches.

        With `model`, the path of an embedding model or an open `Model`, the result is a `TextCollection`: `c.add(texts=[...])` and
        `c.search(text=...)` embed texts with it. Prefixes for documents and queries, which some models need, come first. The store keeps
        the model's description with the collection, so `store[name]` is a `TextCollection` from then on.

        `embed`, a function from a list of texts to their vectors, is for models elsewhere: see `Collection.embed`.
        """
        if model is not None and embed is not None:
            raise ValueError("give a model, or a function embed, and not both")
        if model is not None:
            return self._create_text(name, dim, metric, type, exist_ok, model, query_prefix, document_prefix)
        if query_prefix is not None or document_prefix is not None:
            raise ValueError("prefixes are for a collection with a model")
        if dim is None:
            raise TypeError("dim is missing; give the number of dimensions, or a model")
        if exist_ok and name in self:
            found = self._as_asked(self[name], dim, metric, type)
            found.embed = embed or found.embed
            return found
        with self._handle as store:
            pointer = created(store, name, dim, chosen(METRICS, metric, "the metric"), chosen(TYPES, type, "the type"), keep_host_copy=int(keep_host_copy),
                              screen=chosen(SCREENS, screen, "the screen"), rows=chosen(PLACES, rows, "the place of rows"))
            kept = self._keep(name, Collection._of_store(pointer, name))
        kept.embed = embed
        return kept

    def _create_text(self, name: str, dim: Optional[int], metric: str, type: str, exist_ok: bool, model: Any, query_prefix: Optional[str],
                     document_prefix: Optional[str]) -> TextCollection:
        if not exist_ok and name in self:
            raise InvalidArgument(f"collection {name!r}: it exists already; choose another name, or give exist_ok=True")
        text, held = open_text(self, name, self._device, model, True, chosen(METRICS, metric, "the metric"), chosen(TYPES, type, "the type"), query_prefix,
                               document_prefix)
        found = self[name]
        if not isinstance(found, TextCollection):  # opened before it had a model
            self._forget(name)
            found = self[name]
        assert isinstance(found, TextCollection)
        if (dim is not None and found.dim != dim) or (found.metric, found.type) != (metric, type):
            text.close()
            raise ValueError(f"the collection {name!r} has dim={found.dim}, metric={found.metric!r}, type={found.type!r}; you asked for dim={dim!r}, "
                             f"metric={metric!r}, type={type!r}")
        if found._text is None or found._text.closed:
            found._text, found._held = text, held
        else:
            text.close()
        return found

    def get_or_create(self, name: str, dim: Optional[int] = None, metric: Optional[str] = None, type: Optional[str] = None, **options: Any) -> Collection:
        """Return the collection with this name, or create it; for the options see `create`.

        An existing collection needs no `dim`; what you give must be what it has.
        """
        if dim is None and options.get("model") is None and name in self:
            found = self[name]
            found.embed = options.get("embed") or found.embed
            return self._as_asked(found, found.dim, metric or found.metric, type or found.type)
        metric, type = metric or "cosine", type or "f32"
        try:
            new: Collection = self.create(name, dim, metric, type, exist_ok=True, **options)
            return new
        except InvalidArgument:
            if name not in self or options.get("model") is not None:  # not created by someone else meanwhile, or has another model
                raise
        return self._as_asked(self[name], dim, metric, type)

    def _as_asked(self, found: Collection, dim: Optional[int], metric: str, type: str) -> Collection:
        if (found.dim, found.metric, found.type) != (dim, metric, type):
            raise ValueError(f"the collection {found.name!r} already exists, with dim={found.dim}, metric={found.metric!r}, type={found.type!r}; "
                             f"you asked for dim={dim!r}, metric={metric!r}, type={type!r}")
        return found

    def rename(self, name: str, to: str) -> Collection:
        """Rename a collection and return it; the object that you have of it stays open. Raise `NotFound`, a KeyError, if there is none."""
        with self._handle as store:
            check(c.ww_store_rename(store, name_text(name, "the name"), name_text(to, "the new name")))
            with self._lock:
                held = self._open_collections.pop(name, None)
            if held is None or held._handle.closed:
                return self[to]
            pointer = c_void_p()
            check(c.ww_store_collection(store, name_text(to, "the new name"), byref(pointer)))
            held._reattach(pointer, to)
            return self._keep(to, held)

    def _forget(self, name: str) -> None:
        with self._lock:
            gone = self._open_collections.pop(name, None)
        if gone is not None:
            gone.close()

    def _keep(self, name: str, collection: Collection) -> Collection:
        with self._lock:
            self._open_collections[name] = collection
            self._given.add(collection)
            collection._file_handle = self._handle
            collection._file = self._folder  # the folder lives as long as its last collection
        if self._handle.closed:  # closed by another thread, which may have missed this collection
            collection.close()
        return collection

    def __getitem__(self, name: str) -> Collection:
        """Return a collection by name; raise `NotFound`, a KeyError, if there is none.

        It is the same object as long as it is open.
        """
        with self._handle as store:
            with self._lock:
                kept = self._open_collections.get(name)
            if kept is not None and not kept._handle.closed and name in self:
                return kept
            pointer = c_void_p()
            check(c.ww_store_collection(store, name_text(name, "the name of a collection"), byref(pointer)))
            kept_model = made(c.ww_store_model)
            if c.ww_store_get_model(store, name_text(name, "the name of a collection"), byref(kept_model)) == c.WW_OK:
                return self._keep(name, TextCollection._of_text(pointer, name, self, self._device))
            return self._keep(name, Collection._of_store(pointer, name))

    def drop(self, name: str) -> None:
        """Drop a collection with all its rows; raise `NotFound`, a KeyError, if there is none."""
        with self._handle as store:
            check(c.ww_store_drop(store, name_text(name, "the name of a collection")))
        self._forget(name)

    __delitem__ = drop

    def list(self) -> dict[str, Any]:
        """List the collections by name, with dimension, metric, type and number of rows."""
        found = c_void_p()
        with self._handle as store:
            check(c.ww_store_list(store, byref(found)))
        listed = _taken(found, True, None)
        return dict(zip(listed._all_ids(), listed._all_payloads()))

    def __iter__(self) -> Iterator[str]:
        return iter(self.list())

    def __len__(self) -> int:
        return self.info.collections

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.list()

    def index(self, collection: str, path: str) -> None:
        """Create an index over a field of the payloads ("lang", "author.name", or a path of SQLite, "$.lang"), so that a `where` need not read
        every row."""
        whole = "$." + path if isinstance(path, str) and not path.startswith("$") else path
        with self._handle as store:
            check(c.ww_store_index(store, name_text(collection, "the name of a collection"), name_text(whole, "the path")))

    def backup(self, path: Any, *, replace: bool = False, progress: Progress = None) -> None:
        """Copy a snapshot of the store to another file. A file that exists is refused (FileExistsError) unless `replace` is True."""
        if not replace and os.path.exists(path):
            raise FileExistsError(f"{os.fspath(path)} exists already; backup(..., replace=True) replaces it")
        with self._handle as store:
            interruptible(lambda told: c.ww_store_backup(store, os.fsencode(path), told, None), progress, "backup")

    def check(self, *, progress: Progress = None) -> None:
        """Read and check everything; `CorruptFile` names the first fault."""
        with self._handle as store:
            interruptible(lambda told: c.ww_store_check(store, told, None), progress, "check")

    @property
    def info(self) -> StoreInfo:
        """The file's sizes and counts."""
        info = made(c.ww_store_info)
        with self._handle as store:
            check(c.ww_store_describe(store, byref(info)))
        return from_struct(StoreInfo, info)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close the store, its open collections and the file, and merge the write-ahead log into the file.

        Calls in progress on other threads still finish. Closing twice is allowed.
        """
        self._handle.close()
        with self._lock:
            given = [*self._given]
            self._given.clear()
            self._open_collections.clear()
        for collection in given:
            collection.close()
        if self._folder is not None:
            self._folder.remove()

    _folder: Optional[_Folder] = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._handle.closed:
            return f"<warpwave.Store {self.path!r}, closed>"
        return f"<warpwave.Store {self.path!r}: {', '.join(self) or 'no collections'}>"

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        import html

        listed = {} if self._handle.closed else self.list()
        lines = [f"<tr><td>{html.escape(name)}</td><td>{what['rows']}</td><td>{what['dim']}</td><td>{what['metric']}</td><td>{what['type']}</td></tr>"
                 for name, what in listed.items()]
        return (f"<table><caption>{html.escape(repr(self).strip('<>'))}</caption><thead><tr><th>collection</th><th>rows</th><th>dim</th><th>metric</th>"
                f"<th>type</th></tr></thead><tbody>{''.join(lines)}</tbody></table>")


class _Folder:
    """The file of a store in memory, deleted with the store and its collections.

    It is in /dev/shm, or among the temporary files if that does not exist or, as in many containers, is too small.
    """

    def __init__(self) -> None:
        shared = "/dev/shm"
        fits = os.access(shared, os.W_OK) and os.statvfs(shared).f_bavail * os.statvfs(shared).f_frsize >= _SHARED_BYTES_MIN
        self.path = tempfile.mkdtemp(prefix="warpwave-", dir=shared if fits else None)
        self.remove = weakref.finalize(self, _remove, self.path, os.getpid())


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # not in a child of fork()
        shutil.rmtree(folder, ignore_errors=True)


_SHARED_BYTES_MIN = 1 << 30
