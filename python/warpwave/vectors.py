"""Collections: vectors with ids and payloads, with exact search."""
from __future__ import annotations

import html
import json
import threading
import uuid
from ctypes import addressof, byref, c_char_p, c_float, c_int32, c_int64, c_void_p, sizeof
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Optional, Union, overload

import numpy as np

from . import _native as c
from ._arrays import as_mask, as_payloads, as_row_texts, as_rows, as_texts, device_tensor, id_text, is_one_id, name_text
from ._calls import Handle, NotPicklable, Progress, Token, interruptible
from ._checked import integer
from ._errors import NotFound, check
from ._file import created, opened_file
from .device import Device, DeviceLike, from_struct, made, resolve
from ._files import Files
from ._frames import Frames
from ._ranking import Ranking
from ._ivf import Indexed
from ._map import Mapped
from ._multi import Multi, as_multi, multi_query
from ._names import METRIC_NAMES, METRICS, PLACES, SCREENS, TYPE_NAMES, TYPES, chosen
from ._numpy import FloatArray, IntArray, address
from ._records import are_records, split_records
from ._select import Where, selected
from ._sparse import Sparse, as_sparse, sparse_query
from .results import FETCH_IDS, FETCH_MULTI, FETCH_PAYLOADS, FETCH_SPARSE, FETCH_VECTORS, NOT_FETCHED, READ, Results, Row, SearchStats, stats_of

__all__ = ["Collection", "CollectionInfo", "score"]

Embed = Callable[["list[str]"], Any]  # from texts to their vectors
K_DEFAULT = 10
# Calls that read at least this many numbers (some ten milliseconds) are made interruptible.
_LONG_SEARCH = 100_000_000
_LONG_ADD = 4_000_000
_MANY_ROWS = 10_000
_QUERY_TYPES = ("f32", "f16", "bf16", "i8", "u8")
_BATCH = 1024  # rows fetched per call while iterating
_SHOWN = 5
_NUMPY_TYPES = {"f16": "float16", "bf16": "bfloat16", "i8": "int8", "u8": "uint8"}


@dataclass(frozen=True)
class CollectionInfo:
    """Description of a collection; the fields are those of the C struct ww_collection_info."""

    dim: int
    rows_live: int
    rows_removed: int
    rows_capacity: int
    segments: int
    bytes_rows: int
    bytes_ids: int
    bytes_payloads: int
    device: str
    bytes_host_copy: int
    bytes_screen: int
    bytes_handles: int
    mask_rows: int


class Collection(Files, Frames, Indexed, Mapped, NotPicklable):
    """Vectors of one length on a device, with ids and JSON payloads.

    `metric` is "cosine", "l2" or "dot". `type` is how rows are stored: "f32", "f16", "bf16", "i8" or "u8". `device` is a name ("auto",
    "cpu", "cuda:0") or a `Device`. Any number of threads may use a collection at once, and every call that computes or waits releases the
    GIL.

    >>> c = warpwave.Collection(3, metric="l2", device="cpu")
    >>> c.add(np.eye(3), ids=["x", "y", "z"], payloads=[{"axis": 0}, {"axis": 1}, None])
    >>> len(c), "y" in c, list(c)
    (3, True, ['x', 'y', 'z'])
    >>> c.search([0, 1, 0.5], k=1, payloads=True).payloads
    [{'axis': 1}]
    """

    def __init__(self, dim: int, metric: str = "cosine", type: str = "f32", device: DeviceLike = "auto", *, name: str = "",
                 screen: str = "int8", keep_host_copy: bool = False, rows: str = "device") -> None:
        config = made(c.ww_collection_config, name=name_text(name, "the name"), dim=dim, metric=chosen(METRICS, metric, "the metric"),
                      screen=chosen(SCREENS, screen, "the screen"), keep_host_copy=int(keep_host_copy), type=chosen(TYPES, type, "the type"),
                      rows=chosen(PLACES, rows, "the place of rows"))
        opened = resolve(device)
        handle = opened._open()
        pointer = c_void_p()
        check(c.ww_collection_create(handle.pointer, byref(config), byref(pointer)))
        self._attach(pointer, name)

    @classmethod
    def _of_store(cls, pointer: c_void_p, name: str) -> Collection:
        """Create a collection of a store; the C library keeps the file open until the collection is closed."""
        self = cls.__new__(cls)
        self._attach(pointer, name)
        self._stored = self._cold = self._cold_multi = True
        return self

    _stored = False
    _cold = False  # the first search of a store's collection loads the vectors, which takes long
    _cold_multi = False  # the same for multivectors
    _file: Any = None
    _file_handle: Optional[Handle] = None

    def _attach(self, pointer: c_void_p, name: str) -> None:
        self._handle = Handle(pointer.value or 0, c.ww_collection_destroy, f"the collection {name!r}" if name else "the collection")
        self._writing = threading.RLock()  # an update reads and then writes
        self.name = name
        info = made(c.ww_collection_info)
        check(c.ww_collection_describe(pointer, byref(info)))
        self.dim: int = info.dim
        self.metric: str = METRIC_NAMES[info.metric]
        self.type: str = TYPE_NAMES[info.type]
        self._native = _NUMPY_TYPES.get(self.type)
        self._type = info.type

    def _reattach(self, pointer: c_void_p, name: str) -> None:
        """Take the same collection under a new name; calls of other threads on the old handle still finish."""
        old = self._handle
        self._attach(pointer, name)
        old.close()

    # ---- writing ------------------------------------------------------------------------------------------------------------------

    def _write(self, write: Any, what: str, vectors: Any, ids: Any, payloads: Any, progress: Progress, texts: Any = None, sparse: Any = None,
               multi: Any = None) -> None:
        """Write rows; `texts` has the texts of a store's rows, None for no text. Ids, payloads and texts may be those of a table (_arrow.py)."""
        tensor = device_tensor(vectors, ("f32", self.type))
        if tensor is not None:
            count, dim = tensor.shape[0] if tensor.ndim == 2 else 1, self.dim
            rows = c.ww_rows(sizeof(c.ww_rows), tensor=addressof(tensor._tensor))
        else:
            array, stride, _ = as_rows(vectors, self.dim, "vectors", self._native)
            count, dim = array.shape
            if count == 0 and dim == 0:
                dim = self.dim
            rows = c.ww_rows(sizeof(c.ww_rows), count, dim, None, stride)
            if array.dtype == _F32:
                rows.vectors = address(array)
            else:
                rows.elements, rows.type = address(array), self._type
        id_texts = payload_texts = row_texts = None
        if texts is not None:
            row_texts = texts if hasattr(texts, "pointers") else as_row_texts(texts)
            rows.texts = row_texts.pointers
        if ids is not None:
            id_texts = ids if hasattr(ids, "pointers") else as_texts(ids, count)
            rows.ids = id_texts.pointers
        if payloads is not None:
            payload_texts = payloads if hasattr(payloads, "pointers") else as_payloads(payloads, count)
            rows.payloads = payload_texts.pointers
        if sparse is not None:
            sparse = as_sparse(sparse)
            if sparse.count != count:
                raise ValueError(f"there {'is' if sparse.count == 1 else 'are'} {sparse.count} sparse vector{'' if sparse.count == 1 else 's'} for {count} vectors")
            rows.sparse = sparse.pointer
        if multi is not None:
            multi = as_multi(multi)
            if multi.count != count:
                raise ValueError(f"there {'is' if multi.count == 1 else 'are'} {multi.count} multivector{'' if multi.count == 1 else 's'} for {count} vectors")
            rows.multi = multi.pointer
        with self._handle as pointer, self._writing:
            if count * dim < _LONG_ADD and not progress:
                check(write(pointer, byref(rows)))
                return

            def call(told: Any) -> int:
                rows.progress = told
                return write(pointer, byref(rows))  # type: ignore[no-any-return]

            interruptible(call, progress, what)

    def add(self, vectors: Any = None, ids: Any = None, payloads: Any = None, *, texts: Any = None, sparse: Any = None, multi: Any = None, progress: Progress = None) -> None:
        """Add all vectors; if one is refused, add none.

        Takes a matrix, a single vector, lists, columns of pandas, polars or Arrow, or anything with `__dlpack__`; data on the collection's GPU
        is added there, without passing through the host. A list of dicts has the rows as records: "vector", and maybe "id", "payload" and
        "text"; without "payload" all other fields are the payload. Ids are texts or integers, which become their decimal digits; without
        ids rows are numbered. Payloads are JSON values, None for no payload, or one dict for one row. `texts` are kept with the rows of a
        store; without vectors the function `embed` makes these of them. `progress` is True for a progress bar (by tqdm), or a function of
        (done, total).

        `sparse` has a sparse vector for each row of a store, which `search(sparse=...)` finds: a list of dicts {index: value}, of pairs
        (indices, values), and of None for none; a dict or a pair for one row; or a matrix of scipy.sparse. Rows that have only a sparse
        vector get a dense one of zeros, in a collection with dim=1 and metric="dot".

        `multi` has a multivector for each row of a store, which `search(multi=...)` finds: a list of matrices with a vector in each row, and
        of None for none; an array of three dimensions; or one matrix for one row.
        """
        self._add(c.ww_collection_add, "add", vectors, ids, payloads, texts, sparse, multi, progress)

    def upsert(self, vectors: Any = None, ids: Any = None, payloads: Any = None, *, texts: Any = None, sparse: Any = None, multi: Any = None, progress: Progress = None) -> None:
        """Add like `add`, but a vector whose id exists replaces that row, including its payload, sparse vector and multivector."""
        self._add(c.ww_collection_upsert, "upsert", vectors, ids, payloads, texts, sparse, multi, progress)

    def _add(self, write: Any, what: str, vectors: Any, ids: Any, payloads: Any, texts: Any, sparse: Any, multi: Any, progress: Progress) -> None:
        if are_records(vectors):
            if any(one is not None for one in (ids, payloads, texts, sparse, multi)):
                raise ValueError(f"{what}: the rows are records, which have their ids, payloads, texts and sparse vectors, and no multivectors")
            vectors, ids, payloads, texts, sparse = split_records(vectors)
        listed = None if texts is None else [texts] if isinstance(texts, str) else list(texts)
        if vectors is None:
            if listed is None:
                more = "; rows that have only a sparse vector or a multivector get dense vectors of zeros" if sparse is not None or multi is not None else ""
                raise ValueError(f"{what}: give vectors, or texts{more}")
            vectors = self._embedded(listed)
            listed = listed if self._stored else None  # a collection in memory keeps no texts
        self._write(write, what, vectors, ids, payloads, progress, listed, sparse, multi)

    embed: Optional[Embed] = None
    """A function that takes a list of texts and returns their vectors, for `add(texts=...)`, `update(texts=...)` and `search(text=...)`. It is
    not kept in a store's file: set it again when you open the collection."""

    def _embedded(self, texts: list[str]) -> Any:
        """Return the vectors of texts, by the function that the caller gave."""
        if self.embed is None:
            raise ValueError("texts need a model: create(name, model=...) in a Store makes a collection with one; or set embed, a function from texts to vectors")
        array, _, _ = as_rows(self.embed(texts), self.dim, "the vectors of embed()")
        if array.shape != (len(texts), self.dim):
            raise ValueError(f"embed() returned vectors of shape {array.shape} for {len(texts)} texts; {(len(texts), self.dim)} is needed")
        return array

    def update(self, ids: Any = None, vectors: Any = None, payloads: Any = None, *, texts: Any = None, sparse: Any = None, multi: Any = None, where: Optional[Where] = None,
               parameters: Any = None, merge: bool = False) -> int:
        """Change vectors, payloads or texts of existing rows; what is not given stays. Return how many rows were changed.

        New texts without vectors get the vectors that the model, or the function `embed`, makes of them. New sparse vectors
        and multivectors need new vectors or texts; None in the list takes a row's away. If one of the ids does not exist, raises `NotFound`, a KeyError, and
        changes nothing. With `merge`, the fields of a payload replace those of the old one, and the others stay. With `where` instead of ids,
        every row that matches gets the one payload.

        >>> c = warpwave.Collection(2, device="cpu")
        >>> c.add([[1, 2], [3, 4]], ids=["a", "b"], payloads=[{"lang": "de", "year": 1999}, {"lang": "en"}])
        >>> c.update("a", payloads={"year": 2000}, merge=True), c["a"].payload
        (1, {'lang': 'de', 'year': 2000})
        >>> c.update(where={"lang": "en"}, payloads={"seen": True}, merge=True), c["b"].payload
        (1, {'lang': 'en', 'seen': True})
        """
        if texts is not None:
            return self._update_texts(ids, vectors, payloads, [texts] if isinstance(texts, str) else list(texts), sparse, multi, where is not None or merge)
        if (sparse is not None or multi is not None) and vectors is None:
            raise ValueError(f"update: {'multivectors' if sparse is None else 'sparse vectors'} are given without vectors; give both")
        if vectors is None and payloads is None:
            raise ValueError("update: neither vectors nor payloads nor texts were given")
        if (ids is None) == (where is None):
            raise ValueError("update: give ids, or a where, and not both")
        if vectors is not None and (where is not None or merge):
            raise ValueError("update: where and merge are for payloads; give vectors by ids")
        if where is not None:
            return self._set_selected(where, parameters, payloads, merge)
        one = is_one_id(ids)
        texts = as_texts(ids)
        with self._handle as pointer, self._writing:
            if vectors is None:
                new = as_payloads([payloads] if one else payloads, texts.count, "ids")
                put = c.ww_collection_merge_payloads if merge else c.ww_collection_set_payloads
                check(put(pointer, texts.pointers, new.pointers, texts.count))
            else:
                self._write(c.ww_collection_update, "update", vectors, [ids] if one else ids, [payloads] if one and payloads is not None else payloads, None, None, sparse,
                            multi)
        return texts.count  # type: ignore[no-any-return]

    def _update_texts(self, ids: Any, vectors: Any, payloads: Any, texts: list[Any], sparse: Any, multi: Any, other: bool) -> int:
        if ids is None or other:
            raise ValueError("update: texts are given with ids, and without where and merge")
        listed = [ids] if is_one_id(ids) else list(ids)
        if len(texts) != len(listed):
            raise ValueError(f"update: there are {len(texts)} texts for {len(listed)} ids")
        self._write(c.ww_collection_update, "update", self._embedded(texts) if vectors is None else vectors, listed, payloads, None,
                    texts if self._stored else None, sparse, multi)
        return len(listed)

    def _set_selected(self, where: Where, parameters: Any, payload: Any, merge: bool) -> int:
        new, changed = as_payloads([payload], 1), c_int64()
        text = c_char_p.from_address(new.pointers).value
        with self._selected(where, parameters) as selection, self._handle as pointer, self._writing:
            check(c.ww_collection_select_payload(pointer, byref(selection), text, c.WW_PAYLOAD_MERGE if merge else c.WW_PAYLOAD_SET, byref(changed)))
        return changed.value

    def remove(self, ids: Any = None, *, where: Optional[Where] = None, parameters: Any = None) -> int:
        """Remove rows by ids (none if one is not found: `NotFound`, a KeyError) or by `where`. Return how many were removed."""
        if (ids is None) == (where is None):
            raise ValueError("remove: give ids, or a where, and not both; clear() removes all rows")
        if where is not None:
            removed = c_int64()
            with self._selected(where, parameters) as selection, self._handle as pointer, self._writing:
                check(c.ww_collection_select_remove(pointer, byref(selection), byref(removed)))
            return removed.value
        texts = as_texts(ids)
        with self._handle as pointer, self._writing:
            check(c.ww_collection_remove(pointer, texts.pointers, texts.count))
        return texts.count

    def __delitem__(self, ids: Any) -> None:
        """Remove rows: `del c["a"]`, `del c[["a", "b"]]`."""
        self.remove(ids)

    def discard(self, ids: Any) -> int:
        """Remove the ids that exist, and return how many do not."""
        texts = as_texts(ids)
        missing = c_int64()
        with self._handle as pointer, self._writing:
            check(c.ww_collection_discard(pointer, texts.pointers, texts.count, byref(missing)))
        return missing.value

    def clear(self) -> None:
        """Remove all rows and free their memory."""
        with self._handle as pointer, self._writing:
            check(c.ww_collection_clear(pointer))

    def compact(self, *, step_bytes: Optional[int] = None, progress: Progress = None) -> int:
        """Reclaim removed rows; the others keep their order and get new row numbers.

        In a store `step_bytes` does one step of about that size instead, while others read and write, and rows keep their numbers. Returns about
        how many bytes are left for further steps; 0 without `step_bytes`.
        """
        if step_bytes is not None:
            if self._file_handle is None:
                raise ValueError("compact: step_bytes is for collections of a store")
            left = c_int64()
            with self._handle, self._file_handle as store:
                check(c.ww_store_shrink(store, name_text(self.name, "the name"), step_bytes, byref(left)))
            return left.value
        with self._handle as pointer, self._writing:
            interruptible(lambda told: c.ww_collection_compact(pointer, told, None), progress, "compact")
        return 0

    def reserve(self, rows: int) -> None:
        """Reserve memory for this many rows in total."""
        with self._handle as pointer:
            check(c.ww_collection_reserve(pointer, rows))

    def move(self, device: DeviceLike) -> None:
        """Move everything to another device; results stay the same to the bit."""
        to = resolve(device)._open()
        with self._handle as pointer, self._writing:
            check(c.ww_collection_move(pointer, to.pointer))

    # ---- searching ----------------------------------------------------------------------------------------------------------------

    def search(self, queries: Any = None, k: Optional[int] = None, *, text: Any = None, radius: Optional[float] = None, where: Optional[Where] = None, parameters: Any = None, mask: Any = None,
               ids: bool = True, payloads: bool = False, vectors: bool = False, stats: bool = False, progress: Progress = None,
               nprobe: int = 0, recall: float = 0.0, mmr: Optional[float] = None, candidates: Optional[int] = None, group_by: Optional[str] = None, groups: int = 10,
               group_size: int = 1, texts: bool = False, sparse: Any = None, modifier: Optional[str] = None, multi: Any = None) -> Results:
        """Find the `k` nearest rows of each query (10 by default), exactly.

        `text`, a text or a list of them, is searched for by the vectors that the function `embed` makes of it.

        With an index (`build_ivf`), `nprobe` reads only that many lists, and `recall`, after `calibrate`, as many lists as that recall
        needs. Rows may then be missed; `proven` of the results says how many hits are certainly right.

        With `radius`, finds all rows within it (l2) or with at least that score (cosine, dot); `k`, if given, keeps the best. `mask` has a
        bool for each row (see `mask_rows`) that says which rows may be found. `where` is a dict of conditions on payload fields, as in
        {"year": {"$gt": 2000}, "lang": {"$in": ["en", "de"]}}, or, for the collections of a `Store`, an SQL expression over id, handle and
        payload, with `parameters` by name (a dict) or by position (a list). `payloads` and `vectors` are fetched on request; `ids=False`
        leaves the ids out. Queries on the collection's GPU (PyTorch, JAX, CuPy) are searched without passing through the host.

        `mmr`, from 0 to 1, prefers hits that differ from each other (maximal marginal relevance): it chooses `k` of the `candidates`
        nearest rows; 1 orders by nearness only. `group_by` names a payload field: the result has the best `group_size` hits for each of the
        best `groups` values, group by group. `texts` fetches the texts of a store's rows.

        `sparse`, in a store, is one sparse vector or several (see `add`) to search by instead of `queries`: rows with a common index, by
        their dot product. Queries may have fewer than `k` hits then, so the results of several are lists of arrays. `modifier="idf"`
        multiplies the values of the query by the inverse document frequency of their indices, as BM25 needs. In a search by vectors,
        `sparse=True` fetches the sparse vectors of the hits.

        `multi`, in a store, is one multivector or several (see `add`) to search by instead of `queries`: the score is the sum of the
        greatest similarities (MaxSim). To rerank the rows of another search, give them as a `mask`. `multi=True` fetches multivectors.
        """
        if modifier is not None and (sparse is None or isinstance(sparse, bool)):
            raise ValueError("modifier is for a search by sparse vectors")
        given = None if sparse is None or isinstance(sparse, bool) else as_sparse(sparse)
        late = None if multi is None or isinstance(multi, bool) else as_multi(multi)
        if sum(one is not None for one in (given, late, queries, text)) > 1 and (given is not None or late is not None):
            raise ValueError("give vectors, a text, sparse vectors or multivectors, and only one of them")
        other = given if late is None else late
        if other is not None and mmr is not None:
            raise ValueError("mmr is for a search by vectors")
        if text is not None:
            if queries is not None:
                raise ValueError("give vectors or a text, and not both")
            found = self._embedded([text] if isinstance(text, str) else list(text))
            queries = found[0] if isinstance(text, str) else found
        tensor = None
        at: Optional[int] = None
        if other is not None:
            count, dim, stride, single = other.count, self.dim, self.dim, other.single
        elif type(queries) is np.ndarray and queries.shape == (self.dim,) and queries.dtype is _F32 and queries.strides == (4,):
            at, count, dim, stride, single = address(queries), 1, self.dim, self.dim, True
        else:
            tensor = device_tensor(queries, _QUERY_TYPES)
            if tensor is not None:
                stride, single = self.dim, tensor.ndim == 1
                count, dim = tensor.shape[0] if tensor.ndim == 2 else 1, self.dim
            else:
                array, stride, single = as_rows(queries, self.dim, "queries")
                at, (count, dim) = address(array), array.shape
        asked = c.ww_query(_QUERY_BYTES, at, count, stride, None, dim)
        width: Optional[int] = None
        if radius is None:
            asked.k = width = K_DEFAULT if k is None else integer(k, "k", c_int32)
        else:
            asked.mode, asked.bound, asked.limit = c.WW_QUERY_RANGE, radius, c.WW_ROWS_MAX if k is None else integer(k, "k")
        asked.fetch = (FETCH_IDS if ids else 0) | (FETCH_PAYLOADS if payloads else 0) | (FETCH_VECTORS if vectors else 0) | (
            c.WW_FETCH_TEXTS if texts else 0) | (FETCH_SPARSE if sparse is True else 0) | (FETCH_MULTI if multi is True else 0)
        ranking = Ranking(mmr, candidates, group_by, groups, group_size) if mmr is not None or group_by is not None else None
        if group_by is not None or other is not None:
            width = None
        if late is not None:
            by_multi = multi_query(late)
            asked.multi = addressof(by_multi)
        if given is not None:
            by_sparse = sparse_query(given, modifier)
            asked.sparse = addressof(by_sparse)
        if nprobe:
            asked.nprobe = integer(nprobe, "nprobe")
        if recall:
            asked.recall = recall
        if tensor is not None:
            asked.query_tensor = addressof(tensor._tensor)
        if where is not None or parameters is not None:
            with self._selected(where, parameters) as selection:
                asked.filter, asked.where, asked.parameters, asked.parameter_count = (selection.filter, selection.where, selection.parameters,
                                                                                       selection.parameter_count)
                return self._ask(asked, single, width, mask, stats, progress, ranking, other)
        return self._ask(asked, single, width, mask, stats, progress, ranking, other)

    def _ask(self, asked: Any, single: bool, width: Optional[int], mask: Any, stats: bool, progress: Progress, ranking: Optional[Ranking],
             other: Optional[Union[Sparse, Multi]]) -> Results:
        """Run the query and return its results."""
        cold = self._cold and not isinstance(other, Sparse)  # a search by sparse vectors does not load the others
        numbers = asked.query_count * asked.dim if other is None else other.entries
        if isinstance(other, Multi):
            numbers *= c.WW_MULTI_MAX  # rows have more numbers than dim
            cold = cold or self._cold_multi
        query = ranking.run if ranking else c.ww_collection_query
        if mask is not None:
            words, asked.mask_rows = self._mask(mask)
            asked.mask = address(words)
        counted = None
        if stats:
            counted = made(c.ww_search_stats)
            asked.stats = addressof(counted)
        found = c_void_p()
        with self._handle as pointer:
            if not progress and not cold and numbers * c.ww_collection_count(pointer) < _LONG_SEARCH:
                status = query(pointer, asked, byref(found))
                if status:
                    check(status)
            else:
                token = Token()
                asked.cancel = token.pointer

                def call(told: Any) -> int:
                    asked.progress = told
                    return int(query(pointer, asked, byref(found)))

                interruptible(call, progress, "search", token=token)
                self._cold = self._cold and not cold
                self._cold_multi = self._cold_multi and not isinstance(other, Multi)
        results = _taken(found, single, width, int(asked.fetch))
        if counted is not None:
            results.stats = stats_of(counted)
        return results

    def _stoppable(self, pointer: int, asked: Any, call: Callable[[], int]) -> None:
        """Make a call that reads the rows, so that Ctrl-C ends it if there are many."""
        if c.ww_collection_count(pointer) < _MANY_ROWS:
            check(call())
            return
        token = Token()
        asked.cancel = token.pointer
        interruptible(lambda _: call(), token=token)

    def _mask(self, mask: Any) -> tuple[Any, int]:
        words, rows = as_mask(mask)
        if rows != (needed := self.mask_rows):
            raise ValueError(f"the mask is for {rows} rows; the collection has {needed} (mask_rows)")
        return words, rows

    def _selected(self, where: Optional[Where], parameters: Any, limit: Optional[int] = None, after: Optional[int] = None) -> Any:
        if isinstance(where, str) and not self._stored:
            raise ValueError("where: this collection is in memory only, and SQL is for the collections of a Store; give a dict of conditions, or mask=")
        return selected(where, parameters, limit, after)

    # ---- reading ------------------------------------------------------------------------------------------------------------------

    def _get(self, texts: Any = None, fetch: int = FETCH_IDS, *, handles: Optional[IntArray] = None) -> Results:
        """Return rows by ids, by handles, or all of them."""
        asked = c.ww_get(sizeof(c.ww_get), c.WW_ROWS_MAX, None, None, fetch)
        if texts is not None:
            asked.count, asked.ids = texts.count, texts.pointers
        elif handles is not None:
            asked.count, asked.handles = len(handles), address(handles)
        found = c_void_p()
        with self._handle as pointer:
            if texts is not None and texts.count < _BATCH:
                check(c.ww_collection_get(pointer, byref(asked), byref(found)))
            else:
                self._stoppable(pointer, asked, lambda: int(c.ww_collection_get(pointer, byref(asked), byref(found))))
        return _taken(found, True, None, fetch | READ)

    def _refuse_missing(self, found: Results, ids: Any) -> None:
        missing = np.flatnonzero(found._rows < 0)
        if len(missing):
            first = ids if is_one_id(ids) else list(ids)[int(missing[0])]
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            raise NotFound(f"id {id_text(first)!r} is not in the collection{more}")

    @overload
    def get(self, ids: Union[str, int, uuid.UUID], *, vectors: bool = ..., payloads: bool = ..., sparse: bool = ..., multi: bool = ...) -> Row:
        ...

    @overload
    def get(self, ids: Any = ..., *, where: Optional[Where] = ..., parameters: Any = ..., limit: Optional[int] = ..., after: Optional[int] = ...,
            vectors: bool = ..., payloads: bool = ..., sparse: bool = ..., multi: bool = ...) -> Results:
        ...

    def get(self, ids: Any = None, *, where: Optional[Where] = None, parameters: Any = None, limit: Optional[int] = None, after: Optional[int] = None,
            vectors: bool = True, payloads: bool = True, sparse: bool = False, multi: bool = False) -> Union[Row, Results]:
        """Return rows by id, or the rows that match `where` (see `search`), or all rows.

        A single id returns a `Row`; a list of ids returns its rows in that order. An unknown id raises `NotFound`, a KeyError. Without ids,
        `limit` is the page size, in order of handles, and `after` is the handle of the last row of the previous page. `sparse` and `multi`
        fetch the sparse vectors and the multivectors of a store's rows, too.

        >>> c = warpwave.Collection(2, device="cpu")
        >>> c.add([[1, 2], [3, 4]], ids=["a", "b"], payloads=[{"lang": "de"}, {"lang": "en"}])
        >>> c.get("b").vector
        array([3., 4.], dtype=float32)
        >>> c.get(["b", "a"]).vectors
        array([[3., 4.],
               [1., 2.]], dtype=float32)
        >>> c.get(where={"lang": "en"}).ids
        array(['b'], dtype=object)
        """
        fetch = _fetch(vectors, payloads, sparse, multi)
        if where is not None or parameters is not None or limit is not None or after is not None:
            if ids is not None:
                raise ValueError("get: ids, and where, limit or after, are given; give one or the other")
            return self._select(where, parameters, fetch, limit, after)
        if ids is None:
            return self._get(None, fetch)
        found = self._get(as_texts(ids), fetch)
        self._refuse_missing(found, ids)
        if is_one_id(ids):
            return _row(found, 0, vectors, payloads)
        return found

    def _select(self, where: Optional[Where], parameters: Any, fetch: int, limit: Optional[int] = None, after: Optional[int] = None) -> Results:
        if limit == 0:
            return self._get(as_texts([]), fetch)
        found = c_void_p()
        with self._selected(where, parameters, limit, after) as selection, self._handle as pointer:
            self._stoppable(pointer, selection, lambda: int(c.ww_collection_select(pointer, byref(selection), fetch, byref(found))))
        return _taken(found, True, None, fetch | READ)

    def count(self, where: Optional[Where] = None, *, parameters: Any = None) -> int:
        """Count the rows that match `where` (see `search`), or all rows."""
        if where is None and parameters is None:
            return len(self)
        counted = c_int64()
        with self._selected(where, parameters) as selection, self._handle as pointer:
            self._stoppable(pointer, selection, lambda: int(c.ww_collection_select_count(pointer, byref(selection), byref(counted))))
        return counted.value

    @overload
    def __getitem__(self, ids: Union[str, int, uuid.UUID]) -> Row:
        ...

    @overload
    def __getitem__(self, ids: Any) -> Results:
        ...

    def __getitem__(self, ids: Any) -> Union[Row, Results]:
        """Return rows: `c["a"]`, `c[["a", "b"]]`, or `c["a":"f"]` from one id to the other, both included, in row order."""
        if not isinstance(ids, slice):
            found: Union[Row, Results] = self.get(ids)
            return found
        if ids.step is not None:
            raise ValueError("a slice by id has no step")
        everything = self._get(None, 0)
        limits = self._get(as_texts([end for end in (ids.start, ids.stop) if end is not None]), 0)
        self._refuse_missing(limits, [end for end in (ids.start, ids.stop) if end is not None])
        first = everything._rows[0] if ids.start is None and len(everything._rows) else limits._rows[0] if ids.start is not None else 0
        last = limits._rows[-1] if ids.stop is not None else np.iinfo(np.int64).max
        wanted = everything._handles[(everything._rows >= first) & (everything._rows <= last)]
        return self._get(None, FETCH_IDS | FETCH_PAYLOADS | FETCH_VECTORS, handles=np.ascontiguousarray(wanted))

    def _live(self, fetch: int, where: Optional[Where] = None, parameters: Any = None) -> Iterator[Results]:
        """Yield the rows that match a where, or all, in batches, as they are when the first batch is asked for."""
        opened, page = c_void_p(), c_void_p()
        with self._handle as pointer:  # until the generator ends, so that the collection outlives the cursor
            if where is None and parameters is None:
                check(c.ww_cursor_create(pointer, None, fetch, byref(opened)))
            else:
                with self._selected(where, parameters) as selection:
                    check(c.ww_cursor_create(pointer, byref(selection), fetch, byref(opened)))
            try:
                while True:
                    check(c.ww_cursor_next(opened, _BATCH, byref(page)))
                    batch = _taken(page, True, None, fetch | READ)
                    if not len(batch._rows):
                        return
                    yield batch
            finally:
                c.ww_cursor_destroy(opened)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the ids, in the order of the rows, as they are when the iteration begins."""
        for batch in self._live(FETCH_IDS):
            yield from (identifier for identifier in batch._all_ids() if identifier is not None)

    def iterate(self, where: Optional[Where] = None, *, parameters: Any = None, vectors: bool = True, payloads: bool = True, sparse: bool = False,
                multi: bool = False) -> Iterator[Row]:
        """Iterate over the rows that match `where`, or all, as they are when the iteration begins, whatever is written meanwhile.

        Only some of them are in memory at a time, but a collection without a store copies the rest when one of its rows is changed. A store
        cannot be compacted until the iteration ends.
        """
        for batch in self._live(_fetch(vectors, payloads, sparse, multi), where, parameters):
            for i, identifier in enumerate(batch._all_ids()):
                if identifier is not None:
                    yield _row(batch, i, vectors, payloads)

    items = iterate

    def peek(self, rows: int = 5) -> Results:
        """Return the first rows, with vectors and payloads."""
        return self.get(limit=integer(rows, "rows"))

    def __len__(self) -> int:
        with self._handle as pointer:
            return int(c.ww_collection_count(pointer))

    def __bool__(self) -> bool:
        return True  # even if it is empty

    def __contains__(self, identifier: object) -> bool:
        if not is_one_id(identifier) or isinstance(identifier, bool):
            return False
        text = id_text(identifier)
        if not text or "\0" in text:
            return False
        row = c_int64()
        with self._handle as pointer:
            status = c.ww_collection_find(pointer, text.encode(), byref(row))
        if status not in (c.WW_OK, c.WW_NOT_FOUND, c.WW_INVALID_ARGUMENT):
            check(status)
        return bool(status == c.WW_OK)

    @property
    def info(self) -> CollectionInfo:
        """The number of rows and the memory they use."""
        info = made(c.ww_collection_info)
        with self._handle as pointer:
            check(c.ww_collection_describe(pointer, byref(info)))
        return from_struct(CollectionInfo, info)  # type: ignore[no-any-return]

    @property
    def mask_rows(self) -> int:
        """The number of rows that a mask needs to cover all rows."""
        return self.info.mask_rows

    @property
    def device(self) -> str:
        """The name of the collection's device."""
        return self.info.device

    def save(self, path: Any, name: Optional[str] = None) -> None:
        """Write the collection to a `Store` file as the collection `name` (by default its own name).

        Writes rows, ids, payloads, texts and the model's description. The file is created if needed. Refuses a name that is taken, and
        leaves nothing behind on failure. `Store(path)[name]` opens it.
        """
        called = name if name is not None else self.name
        if not called:
            raise ValueError("save: the collection has no name; give name=")
        file = opened_file(path, resolve("cpu"))
        try:
            with file as store:
                copied = Collection._of_store(created(store, called, self.dim, chosen(METRICS, self.metric, "the metric"), self._type), called)
                try:
                    self._copy_into(store, copied)
                except BaseException:
                    check(c.ww_store_drop(store, name_text(called, "the name of a collection")))
                    raise
                finally:
                    copied.close()
        finally:
            file.close()

    def _copy_into(self, store: int, copied: Collection) -> None:
        """Copy all rows, and the model's description, to an empty collection of an open file."""
        self._copy_model(store, copied.name)
        for page in self._live(self._everything(True) | (FETCH_SPARSE | FETCH_MULTI if self._stored else 0)):
            there = np.flatnonzero(page._rows >= 0)
            if len(there) and page._vectors is not None:
                payloads, texts = page._all_payloads(), page._row_texts()[there]
                sparse = [page._sparse[i] for i in there] if page._sparse is not None else []
                multi = [page._multi[i] for i in there] if page._multi is not None else []
                copied._write(c.ww_collection_add, "save", page._vectors[there], page._all_ids()[there], [payloads[i] for i in there], None,
                              texts if any(text is not None for text in texts) else None, sparse if any(one is not None for one in sparse) else None,
                              multi if any(one is not None for one in multi) else None)

    def _copy_model(self, store: int, name: str) -> None:
        """Copy the model's description; only collections of texts have one."""

    # ---- life ---------------------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Free the collection now, or when the last call on another thread returns. Closing twice is allowed."""
        self._handle.close()

    def __enter__(self) -> Collection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        place = ", in a store" if self._stored else ""
        name = f" {self.name!r}" if self.name else ""
        if self._handle.closed:
            return f"<warpwave.Collection{name}, closed>"
        info = self.info
        return f"<warpwave.Collection{name}: {info.rows_live:,} rows of {self.dim}{'' if self.type == 'f32' else ' ' + self.type}, {self.metric}, on {info.device}{place}>"

    def _repr_html_(self) -> str:
        """Return a table for notebooks: the first rows."""
        lines = []
        if not self._handle.closed:
            for row, _ in zip(self.items(), range(_SHOWN)):
                start = np.array2string(row.vector[:4], precision=3, separator=", ")
                vector = start[:-1] + (", ...]" if self.dim > 4 else "]")
                payload = "" if row.payload is None else json.dumps(row.payload, ensure_ascii=False)
                lines.append(f"<tr><td>{html.escape(row.id)}</td><td>{vector}</td><td>{html.escape(payload)}</td></tr>")
        return (f"<table><caption>{html.escape(repr(self).strip('<>'))}</caption><thead><tr><th>id</th><th>vector</th><th>payload</th></tr></thead>"
                f"<tbody>{''.join(lines)}</tbody></table>")


def _fetch(vectors: bool, payloads: bool, sparse: bool, multi: bool) -> int:
    return FETCH_IDS | (FETCH_PAYLOADS if payloads else 0) | (FETCH_VECTORS if vectors else 0) | (FETCH_SPARSE if sparse else 0) | (
        FETCH_MULTI if multi else 0)


def _row(found: Results, i: int, vectors: bool, payloads: bool) -> Row:
    """Return a row of results that has what was fetched."""
    row = Row(found._all_ids()[i], found._vectors[i] if vectors and found._vectors is not None else NOT_FETCHED,
              found._all_payloads()[i] if payloads else NOT_FETCHED)
    if found._sparse is not None:
        row._sparse = found._sparse[i]
    if found._multi is not None:
        row._multi = found._multi[i]
    return row


def _taken(found: c_void_p, single: bool, width: Optional[int], fetch: int = 0) -> Results:
    """Take ownership of a call's results; they are freed with the object."""
    held = Handle(found.value or 0, c.ww_results_destroy)
    columns = c.ww_results_columns(_COLUMNS_BYTES)
    status = c.ww_results_describe(found, columns)
    if status:
        check(status)
    return Results._of(held, columns, single, width, fetch)


def score(metric: str, a: Any, b: Any) -> float:
    """Return the canonical score of two vectors: the same bits on every device.

    >>> warpwave.score("l2", [0, 0], [3, 4])
    5.0
    """
    x, _, _ = as_rows(a, 0, "a")
    y, _, _ = as_rows(b, 0, "b")
    if x.shape != y.shape or x.shape[0] != 1:
        raise ValueError(f"the vectors are of shape {x.shape[1:]} and {y.shape[1:]}; two of one length are needed")
    result = c_float()
    check(c.ww_score(chosen(METRICS, metric, "the metric"), address(x), address(y), x.shape[1], byref(result)))
    return float(result.value)


_F32 = np.dtype(np.float32)
_QUERY_BYTES, _COLUMNS_BYTES = sizeof(c.ww_query), sizeof(c.ww_results_columns)
_UNUSED = (Device, FloatArray, SearchStats)
