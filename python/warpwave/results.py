"""The results of a search, as arrays copied from the library: they never change and can be pickled."""
from __future__ import annotations

import html
import json
from ctypes import c_char_p, c_int64, string_at
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterator, NamedTuple, Optional

import numpy as np

from . import _native as c
from ._calls import Handle
from ._errors import CorruptFile
from ._multi import multi_of
from ._optional import needed
from ._numpy import FloatArray, IntArray
from ._sparse import SparseVector, sparse_of

if TYPE_CHECKING:
    import numpy.typing as npt

    ObjectArray = npt.NDArray[np.object_]
else:
    ObjectArray = np.ndarray
_I64, _F32 = np.dtype(np.int64), np.dtype(np.float32)
_PART = np.dtype([("vector_rank", np.int64), ("text_rank", np.int64), ("vector_score", np.float32), ("text_score", np.float32)])  # ww_hit_parts
_FEW = 32  # up to this many texts, copying one by one is faster
_SHOWN = 10  # maximum of hits and queries shown in a notebook


class _NotFetched:
    """Placeholder for a vector or payload that was not requested."""

    def __repr__(self) -> str:
        return "<not fetched>"

    def __reduce__(self) -> str:
        return "NOT_FETCHED"


NOT_FETCHED = _NotFetched()


def _fetched(value: Any, what: str, option: str) -> Any:
    if value is NOT_FETCHED:
        raise ValueError(f"the {what} was not fetched; ask for it with {option}=True")
    return value


class _RowFields(NamedTuple):
    id: str
    vector: Any
    payload: Any


class Row(_RowFields):
    """A row of a collection: id, vector, payload; its sparse vector and multivector, too, if they were requested."""

    _sparse: Any = NOT_FETCHED
    _multi: Any = NOT_FETCHED

    def __repr__(self) -> str:
        shown = super().__repr__()[:-1]
        more = "".join(f", {name}={value!r}" for name, value in (("sparse", self._sparse), ("multi", self._multi)) if value is not NOT_FETCHED)
        return f"{shown}{more})"

    @property
    def vector(self) -> FloatArray:
        """The vector; raises ValueError if it was not requested."""
        return _fetched(self[1], "vector", "vectors")  # type: ignore[no-any-return]

    @property
    def payload(self) -> Any:
        """The payload or None; raises ValueError if it was not requested."""
        return _fetched(self[2], "payload", "payloads")

    @property
    def sparse(self) -> Optional[SparseVector]:
        """The sparse vector or None; raises ValueError if it was not requested."""
        return _fetched(self._sparse, "sparse vector", "sparse")  # type: ignore[no-any-return]

    @property
    def multi(self) -> Optional[FloatArray]:
        """The multivector, a matrix, or None; raises ValueError if it was not requested."""
        return _fetched(self._multi, "multivector", "multi")  # type: ignore[no-any-return]


class _HitFields(NamedTuple):
    id: Optional[str]
    score: float
    row: int
    payload: Any = NOT_FETCHED


class Hit(_HitFields):
    """A row that a query found: id, score, row, payload; its vector, sparse vector and multivector, too, if they were requested."""

    _vector: Any = NOT_FETCHED
    _sparse: Any = NOT_FETCHED
    _multi: Any = NOT_FETCHED
    _read = False

    def __repr__(self) -> str:
        """A row that was read, and not searched, has no score."""
        if not self._read:
            return super().__repr__()
        shown = {"id": self.id, "row": self.row, "vector": self._vector, "payload": self[3], "text": getattr(self, "text", NOT_FETCHED),
                 "sparse": self._sparse, "multi": self._multi}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown.items() if value is not NOT_FETCHED)})"

    @property
    def vector(self) -> FloatArray:
        """The vector; raises ValueError if the search was not called with `vectors=True`."""
        return _fetched(self._vector, "vector", "vectors")  # type: ignore[no-any-return]

    @property
    def sparse(self) -> Optional[SparseVector]:
        """The sparse vector or None; raises ValueError if the search was not called with `sparse=True`."""
        return _fetched(self._sparse, "sparse vector", "sparse")  # type: ignore[no-any-return]

    @property
    def multi(self) -> Optional[FloatArray]:
        """The multivector, a matrix, or None; raises ValueError if the search was not called with `multi=True`."""
        return _fetched(self._multi, "multivector", "multi")  # type: ignore[no-any-return]

    @property
    def payload(self) -> Any:
        """The payload or None; raises ValueError if the search was not called with `payloads=True`."""
        return _fetched(self[3], "payload", "payloads")


class TextHit(Hit):
    """A hit with its text."""

    text: Optional[str]


@dataclass(frozen=True)
class SearchStats:
    """Statistics of a search over all its queries; a row counts once per query."""

    rows_screened: int
    rows_kept: int
    rows_scored: int
    fallback_queries: int
    certificate: float
    repeated_queries: int
    lists_read: int = 0
    list_rows_read: int = 0
    list_bytes_read: int = 0


def _copied(pointer: Optional[int], count: int, kind: Any) -> Any:
    """Return a copy of `count` elements at an address."""
    if not pointer or count == 0:
        return np.empty(0, kind)
    return np.frombuffer(bytearray(string_at(pointer, count * kind.itemsize)), kind)


def _decoded(block: bytes) -> str:
    """Return text of the library, which is UTF-8 unless a file was damaged."""
    try:
        return block.decode()
    except UnicodeDecodeError as error:
        raise CorruptFile(f"a row's id, text or payload is not UTF-8 (byte 0x{block[error.start]:02x}); the file is damaged: check it") from None


def _texts(block: bytes, places: IntArray) -> ObjectArray:
    """Return the NUL-terminated texts at these offsets of a block, without a loop; offset -1 gives None."""
    parts = _decoded(block).split("\0")
    parts[-1] = None  # type: ignore[call-overload]  # behind the last NUL there is nothing
    texts = np.empty(len(parts), object)
    texts[:] = parts
    begins = np.empty(len(parts), np.int64)
    begins[0] = 0
    begins[1:] = np.flatnonzero(np.frombuffer(block, np.uint8) == 0) + 1
    return texts[np.where(places >= 0, np.searchsorted(begins, places), len(parts) - 1)]


def _few_texts(text: int, places: int, count: int) -> ObjectArray:
    """Return a few texts, read directly from their addresses."""
    few = np.empty(count, object)
    few[:] = [_decoded(c_char_p(text + place).value or b"") if place >= 0 else None for place in (c_int64 * count).from_address(places)]
    return few


def _vectors(columns: Any) -> Optional[FloatArray]:
    if not columns.vectors:
        return None
    found: FloatArray = _copied(columns.vectors, columns.hit_count * columns.dim, _F32).reshape(columns.hit_count, columns.dim)
    return found


# The source of each column.
_COLUMNS: dict[str, Callable[[Any], Any]] = {
    "_starts": lambda c: _copied(c.starts, c.query_count + 1, _I64),
    "_rows": lambda c: _copied(c.rows, c.hit_count, _I64),
    "_handles": lambda c: _copied(c.handles, c.hit_count, _I64),
    "_scores": lambda c: _copied(c.scores, c.hit_count, _F32),
    "_totals": lambda c: _copied(c.totals, c.query_count, _I64) if c.totals else None,
    "_proven": lambda c: _copied(c.proven, c.query_count, _I64) if c.proven else None,
    "_id_places": lambda c: _copied(c.ids, c.hit_count, _I64) if c.ids else None,
    "_payload_places": lambda c: _copied(c.payloads, c.hit_count, _I64) if c.payloads else None,
    "_text": lambda c: string_at(c.text, c.text_bytes) if c.text else b"",
    "_vectors": _vectors,
    "_parts": lambda c: _copied(c.parts, c.hit_count, _PART) if c.parts else None,
    "_texts": lambda c: _texts(string_at(c.text, c.text_bytes) if c.text else b"", _copied(c.texts, c.hit_count, _I64)) if c.texts else None,
}


def parse_payloads(texts: ObjectArray) -> list[Any]:
    """Parse all JSON texts at once; None means no payload."""
    try:
        return json.loads("[" + ",".join("null" if text is None else text for text in texts) + "]")  # type: ignore[no-any-return]
    except json.JSONDecodeError as error:
        raise CorruptFile(f"a payload is not JSON ({error.msg}); the file is damaged: check it") from None


class Results:
    """The hits of queries, best first.

    For a single query (a vector) the attributes are arrays of its hits. For several queries they are matrices with one line per query,
    since each query has the same number of hits; for a search by radius they are lists of arrays. Indexing and iteration go by query for
    several queries, and by hit for a single one.

    >>> c = warpwave.Collection(2, device="cpu")
    >>> c.add([[1, 0], [0, 1], [0.8, 0.6]], ids=["east", "north", "northeast"])
    >>> found = c.search([0.9, 0.1], k=2)
    >>> found.ids
    array(['east', 'northeast'], dtype=object)
    >>> found.scores.round(4)
    array([0.9939, 0.8614], dtype=float32)
    """

    __slots__ = ("_found", "_columns", "_single", "_shape", "_starts", "_rows", "_handles", "_scores", "_totals", "_proven", "_id_places", "_payload_places", "_text", "_vectors", "_parts", "_texts", "_sparse", "_multi",
                 "_ids", "_payload_texts", "_payloads", "_fetch", "stats")

    _found: Handle
    _columns: Any
    _single: bool
    _shape: Optional[tuple[int, int]]
    _starts: IntArray
    _rows: IntArray
    _handles: IntArray
    _scores: FloatArray
    _totals: Optional[IntArray]
    _proven: Optional[IntArray]
    _id_places: Optional[IntArray]
    _payload_places: Optional[IntArray]
    _text: bytes
    _vectors: Optional[FloatArray]
    _ids: Optional[ObjectArray]
    _payload_texts: Optional[ObjectArray]
    _payloads: Optional[list[Any]]
    _parts: Any
    _texts: Optional[ObjectArray]
    _sparse: Optional[list[Optional[SparseVector]]]
    _multi: Optional[list[Optional[FloatArray]]]
    _fetch: int
    stats: Optional[SearchStats]

    def __init__(self) -> None:
        self._columns = self.stats = self._ids = self._payload_texts = self._payloads = None
        self._fetch = 0

    @classmethod
    def _of(cls, found: Handle, columns: Any, single: bool, width: Optional[int], fetch: int = 0) -> Results:
        """Create results; columns are copied on first access.

        `width` is the k of a search whose queries all have the same number of hits, or None if the numbers differ. `fetch` is what was
        requested, and READ if rows were read and not searched.
        """
        self = cls()
        self._fetch = fetch
        self._found = found
        self._columns = columns
        self._single = single
        queries = columns.query_count
        self._shape = None if width is None else (queries, columns.hit_count // queries if queries else width)
        return self

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            """Copy a column on first access."""
            load = _COLUMNS.get(name)
            if name == "_sparse":
                value = sparse_of(self._found.pointer, self._starts) if self._fetch & FETCH_SPARSE else None
            elif name == "_multi":
                value = multi_of(self._found.pointer, self._starts) if self._fetch & FETCH_MULTI else None
            elif load is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            else:
                value = load(self._columns)
            setattr(self, name, value)
            return value

    def _by_query(self, flat: Any) -> Any:
        """Shape an array of hits by query."""
        if self._single:
            return flat
        if self._shape is not None:
            return flat.reshape(self._shape + flat.shape[1:])
        return np.split(flat, self._starts[1:-1]) if len(self._starts) > 1 else []

    def _all_ids(self) -> ObjectArray:
        if self._ids is None:
            columns = self._columns
            if columns is not None and columns.ids and columns.hit_count <= _FEW:
                self._ids = _few_texts(columns.text, columns.ids, columns.hit_count)
            elif self._id_places is None:
                self._ids = np.empty(len(self._rows), object)
            else:
                self._ids = _texts(self._text, self._id_places)
        return self._ids

    def _all_payload_texts(self) -> ObjectArray:
        if self._payload_texts is None:
            if self._payload_places is None:
                self._payload_texts = np.empty(len(self._rows), object)
            else:
                self._payload_texts = _texts(self._text, self._payload_places)
        return self._payload_texts

    def _row_texts(self) -> ObjectArray:
        """Return the texts of a store's rows; None for rows without one."""
        return np.empty(len(self._rows), object) if self._texts is None else self._texts

    def _all_payloads(self) -> list[Any]:
        if self._payloads is None:
            self._payloads = parse_payloads(self._all_payload_texts()) if self._payload_places is not None else [None] * len(self._rows)
        return self._payloads

    @property
    def ids(self) -> Any:
        """The ids, an array of `str`."""
        return self._by_query(self._all_ids())

    @property
    def scores(self) -> Any:
        """The scores: larger is nearer for cosine and dot, smaller for l2."""
        return self._by_query(self._scores)

    @property
    def rows(self) -> Any:
        """The row numbers at the time of the search, as used by masks; compact() renumbers rows."""
        return self._by_query(self._rows)

    @property
    def handles(self) -> Any:
        """The handles, which identify rows permanently."""
        return self._by_query(self._handles)

    @property
    def vectors(self) -> Any:
        """The vectors, if requested with `vectors=True`."""
        if self._vectors is None:
            if len(self._rows) == 0:
                return self._by_query(np.empty((0, 0), np.float32))
            raise ValueError("the search was not asked for vectors: search(..., vectors=True)")
        return self._by_query(self._vectors)

    @property
    def payloads(self) -> list[Any]:
        """The payloads as Python objects, if requested with `payloads=True`: a list, or one list per query."""
        if self._payload_places is None and len(self._rows):
            raise ValueError("the search was not asked for payloads: search(..., payloads=True)")
        found = self._all_payloads()
        if self._single:
            return found
        return [found[first:end] for first, end in zip(self._starts[:-1], self._starts[1:])]

    @property
    def texts(self) -> Any:
        """The texts of the rows, an array of `str` or None, if requested with `texts=True`."""
        if self._texts is None:
            if len(self._rows) == 0:
                return self._by_query(np.empty(0, object))
            raise ValueError("the search was not asked for texts: search(..., texts=True)")
        return self._by_query(self._texts)

    @property
    def sparse(self) -> list[Any]:
        """The sparse vectors, None for rows without one, if requested with `sparse=True`: a list, or one list per query."""
        if self._sparse is None:
            raise ValueError("sparse vectors were not fetched; ask for them with sparse=True")
        found = self._sparse
        return found if self._single else [found[first:end] for first, end in zip(self._starts[:-1], self._starts[1:])]

    @property
    def multi(self) -> list[Any]:
        """The multivectors, None for rows without one, if requested with `multi=True`: a list, or one list per query."""
        if self._multi is None:
            raise ValueError("multivectors were not fetched; ask for them with multi=True")
        found = self._multi
        return found if self._single else [found[first:end] for first, end in zip(self._starts[:-1], self._starts[1:])]

    @property
    def vector_ranks(self) -> Any:
        """For searches by words: each hit's rank in the vector search, from 1; 0 if that search did not find it."""
        return self._by_query(self._part("vector_rank"))

    @property
    def text_ranks(self) -> Any:
        """For searches by words: each hit's rank in the word search, from 1; 0 if that search did not find it."""
        return self._by_query(self._part("text_rank"))

    def _part(self, name: str) -> IntArray:
        if self._parts is None:
            if len(self._rows) == 0:
                return np.empty(0, np.int64)
            raise ValueError("the search was by vectors only; mode='hybrid' and mode='text' have ranks of their parts")
        return np.ascontiguousarray(self._parts[name])

    @property
    def counts(self) -> Any:
        """The number of hits of each query."""
        return len(self._rows) if self._single else np.diff(self._starts)

    @property
    def totals(self) -> Any:
        """The number of rows that each query found; more than `counts` if a limit cut off a search by radius."""
        found = np.diff(self._starts) if self._totals is None else self._totals
        return int(found[0]) if self._single else found

    @property
    def proven(self) -> Any:
        """How many of each query's first hits are proven to be the nearest rows: all of them in an exact search."""
        found = np.diff(self._starts) if self._proven is None else self._proven
        return int(found[0]) if self._single else found

    @property
    def starts(self) -> IntArray:
        """Where each query's hits start in the list of all hits, followed by the end: FAISS's lims."""
        return self._starts

    def hits(self) -> Iterator[Hit]:
        """Iterate over the hits of all queries."""
        for i in range(len(self._rows)):
            yield self._hit(i)

    def _hit(self, i: int) -> Hit:
        payload = self._all_payloads()[i] if self._payload_places is not None else NOT_FETCHED
        kind = Hit if self._texts is None else TextHit
        hit = kind(self._all_ids()[i], float(self._scores[i]), int(self._rows[i]), payload)
        if isinstance(hit, TextHit) and self._texts is not None:
            hit.text = self._texts[i]
        if self._vectors is not None:
            hit._vector = self._vectors[i]
        if self._sparse is not None:
            hit._sparse = self._sparse[i]
        if self._multi is not None:
            hit._multi = self._multi[i]
        hit._read = bool(self._fetch & READ)
        return hit

    def __len__(self) -> int:
        return len(self._rows) if self._single else len(self._starts) - 1

    def __getitem__(self, index: Any) -> Any:
        """Return a hit of a single query, or one query of several; a slice (`found[:3]`) returns a `Results`."""
        if isinstance(index, slice):
            return self._slice(index)
        try:
            index = range(len(self))[index]
        except TypeError:
            raise TypeError(f"results are indexed by {index!r}; it must be an int or a slice") from None
        return self._hit(index) if self._single else self._taken(np.arange(self._starts[index], self._starts[index + 1]), [index], True)

    def _slice(self, index: slice) -> Results:
        chosen = range(len(self))[index]
        if self._single:
            return self._taken(np.array(chosen, np.int64), [], True)
        hits = [np.arange(self._starts[i], self._starts[i + 1]) for i in chosen]
        return self._taken(np.concatenate(hits) if hits else np.empty(0, np.int64), list(chosen), False)

    def _taken(self, hits: IntArray, queries: list[int], single: bool) -> Results:
        """Return some queries with their hits or, for a single query, some of its hits."""
        some = Results()
        some._fetch = self._fetch
        counts = [len(hits)] if single else np.diff(self._starts)[queries]
        some._single, some._starts = single, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        some._shape = None if single or self._shape is None else (len(queries), self._shape[1])
        some._rows, some._handles, some._scores = self._rows[hits], self._handles[hits], self._scores[hits]
        some._totals = None if self._totals is None or not queries else self._totals[queries]
        some._proven = None if self._proven is None or not queries else self._proven[queries]
        some._id_places = None if self._id_places is None else self._id_places[hits]
        some._payload_places = None if self._payload_places is None else self._payload_places[hits]
        some._text = self._text
        some._ids = self._all_ids()[hits]
        some._payload_texts = None if self._payload_places is None else self._all_payload_texts()[hits]
        some._vectors = None if self._vectors is None else self._vectors[hits]
        some._parts = None if self._parts is None else self._parts[hits]
        some._texts = None if self._texts is None else self._texts[hits]
        some._sparse = None if self._sparse is None else [self._sparse[hit] for hit in hits]
        some._multi = None if self._multi is None else [self._multi[hit] for hit in hits]
        return some

    def _has(self, what: int, column: Any) -> bool:
        """Was a column requested? Results that were loaded from a pickle of an older version only know what they have."""
        return bool(self._fetch & what) or column is not None

    def _base_columns(self, scores: bool) -> dict[str, Any]:
        """Return the columns of a table: query (if several), id, score, text, vector, sparse vector and multivector."""
        columns: dict[str, Any] = {} if self._single else {"query": np.repeat(np.arange(len(self)), np.diff(self._starts))}
        if self._has(FETCH_IDS, self._id_places):
            columns["id"] = self._all_ids()
        if scores:
            columns["score"] = self._scores
        texts = self._row_texts()
        if any(text is not None for text in texts):
            columns["text"] = texts
        if self._has(FETCH_VECTORS, self._vectors):
            columns["vector"] = [] if self._vectors is None else list(self._vectors)
        if self._sparse is not None:
            columns["sparse"] = [None if one is None else {name: array.tolist() for name, array in one._asdict().items()} for one in self._sparse]
        if self._multi is not None:
            columns["multi"] = [None if one is None else one.tolist() for one in self._multi]
        return columns

    def _columns_of(self, scores: bool) -> dict[str, list[Any]]:
        """Return all columns as lists, a column for each field of the payloads if no name is taken."""
        columns: dict[str, list[Any]] = {name: [one.tolist() for one in values] if name == "vector" else list(values)
                                         for name, values in self._base_columns(scores).items()}
        if self._payload_places is None:
            return columns
        payloads = self._all_payloads()
        names = list(dict.fromkeys(name for payload in payloads if isinstance(payload, dict) for name in payload))
        if set(names) & set(columns) or not all(payload is None or isinstance(payload, dict) for payload in payloads):
            return {**columns, "payload": payloads}
        return {**columns, **{name: [(payload or {}).get(name) for payload in payloads] for name in names}}

    def _records(self, scores: bool) -> list[dict[str, Any]]:
        columns = self._base_columns(scores)
        if self._has(FETCH_PAYLOADS, self._payload_places):
            columns["payload"] = self._all_payloads()
        return [dict(zip(columns, (value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value for value in values)))
                for values in zip(*columns.values())]

    def to_list(self) -> list[Any]:
        """Return the hits as dicts that fit into JSON: id, score, and everything that was fetched. For several queries a list for each."""
        records = self._records(not self._fetch & READ)
        if self._single:
            return records
        for record in records:
            del record["query"]
        return [records[first:end] for first, end in zip(self._starts[:-1].tolist(), self._starts[1:].tolist())]

    def to_pandas(self) -> Any:
        """Return a data frame with one line per hit: query (if several), id, score, and everything that was fetched."""
        return self._frame(needed("pandas", "to_pandas()"), not self._fetch & READ)

    def _frame(self, pandas: Any, scores: bool) -> Any:
        columns = self._base_columns(scores)
        frame = pandas.DataFrame(columns)
        if self._payload_places is None:
            return frame
        return frame.join(_payload_frame(pandas, self._all_payloads(), set(frame.columns)))

    def to_polars(self) -> Any:
        """Return the same as a data frame of polars."""
        return needed("polars", "to_polars()").DataFrame(self._columns_of(not self._fetch & READ), strict=False)

    def to_arrow(self) -> Any:
        """Return the hits as a pyarrow.Table: query (if several), id, score, text, vector, sparse vector, multivector, and payloads as JSON texts."""
        pyarrow = needed("pyarrow", "to_arrow()")
        columns = self._base_columns(not self._fetch & READ)
        for name in {"id", "text"} & set(columns):
            columns[name] = pyarrow.array(columns[name], pyarrow.string())
        if self._vectors is not None:
            columns["vector"] = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(self._vectors.ravel()), self._vectors.shape[1])
        if self._sparse is not None:
            kind = pyarrow.struct([("indices", pyarrow.list_(pyarrow.uint32())), ("values", pyarrow.list_(pyarrow.float32()))])
            columns["sparse"] = pyarrow.array(columns["sparse"], kind)
        if self._multi is not None:
            columns["multi"] = pyarrow.array(columns["multi"], pyarrow.list_(pyarrow.list_(pyarrow.float32())))
        if self._has(FETCH_PAYLOADS, self._payload_places):
            columns["payload"] = pyarrow.array(self._all_payload_texts(), pyarrow.string())
        return pyarrow.table(columns)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the table as a stream of Arrow, for polars, DuckDB and others."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[Any]:
        if self._single:
            return self.hits()
        return (self[i] for i in range(len(self)))

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__ if name not in ("_found", "_columns")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._columns = self._sparse = self._multi = None  # pickles of older versions have no sparse vectors and multivectors
        for name, value in state.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        if self._fetch & READ:
            first = ", ".join(str(row) if one is None else str(one) for one, row in zip(self._all_ids()[:3], self._rows))
            return f"<warpwave.Results: {len(self._rows)} row{'' if len(self._rows) == 1 else 's'}{': ' + first if first else ''}{', ...' if len(self._rows) > 3 else ''}>"
        if self._single:
            best = ", ".join(f"{hit.id if hit.id is not None else hit.row}: {hit.score:.4g}" for hit, _ in zip(self.hits(), range(3)))
            return f"<warpwave.Results of one query, {len(self._rows)} hits{': ' + best if best else ''}{', ...' if len(self._rows) > 3 else ''}>"
        return f"<warpwave.Results of {len(self)} queries, {len(self._rows)} hits>"

    def _repr_html_(self) -> str:
        """Return a table for notebooks: the first hits of the first queries."""
        lines = []
        has_payloads = self._payload_places is not None
        queries = 1 if self._single else min(len(self), _SHOWN)
        for q in range(queries):
            one = self if self._single else self[q]
            for i, hit in zip(range(_SHOWN), one.hits()):
                payload = f"<td>{html.escape(json.dumps(hit.payload, ensure_ascii=False))}</td>" if has_payloads else ""
                query = "" if self._single else f"<td>{q}</td>"
                score = "" if self._fetch & READ else f"<td>{hit.score:.6g}</td>"
                lines.append(f"<tr>{query}<td>{i + 1}</td><td>{html.escape(str(hit.id))}</td>{score}{payload}</tr>")
        head = ("" if self._single else "<th>query</th>") + "<th>rank</th><th>id</th>" + ("" if self._fetch & READ else "<th>score</th>") + ("<th>payload</th>" if has_payloads else "")
        return f"<table><caption>{html.escape(repr(self).strip('<>'))}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _payload_frame(pandas: Any, payloads: list[Any], taken: set[str]) -> Any:
    """Return one column per field if all payloads are objects and no field name is taken; otherwise one column `payload`."""
    names = {name for payload in payloads if isinstance(payload, dict) for name in payload}
    if names & taken or not all(payload is None or isinstance(payload, dict) for payload in payloads):
        return pandas.DataFrame({"payload": pandas.Series(payloads, dtype=object)})
    return pandas.DataFrame.from_records([payload or {} for payload in payloads], index=range(len(payloads)))


def stats_of(value: Any) -> SearchStats:
    """Convert the struct."""
    return SearchStats(value.rows_screened, value.rows_kept, value.rows_scored, value.fallback_queries, value.certificate,
                       value.repeated_queries, value.lists_read, value.list_rows_read, value.list_bytes_read)


FETCH_IDS, FETCH_PAYLOADS, FETCH_VECTORS, FETCH_SPARSE, FETCH_MULTI = c.WW_FETCH_IDS, c.WW_FETCH_PAYLOADS, c.WW_FETCH_VECTORS, c.WW_FETCH_SPARSE, c.WW_FETCH_MULTI
READ = 1 << 30  # beside what was fetched: rows were read, and have no scores
