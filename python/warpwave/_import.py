"""`warpwave import`: move a collection of Chroma, LanceDB, Qdrant, pgvector or FAISS into a store, and compare what arrived.

Each source is a function that opens a place and yields rows in batches; SOURCES names them all. The rows go into a collection with another name,
which gets its own when the store has been opened again and has the same number of rows with the same checksum. So a collection with the name that
was asked for is a complete one, even if the process was killed.
"""
from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from decimal import Decimal
from typing import Any, Callable, Iterable, Iterator, NamedTuple, Optional, Sequence

import numpy as np

from . import _native as c
from ._arrays import id_text, _plain
from ._errors import Error
from ._optional import needed
from ._records import arrow_matrix
from .results import FETCH_IDS, FETCH_PAYLOADS, FETCH_VECTORS
from .store import Store

__all__ = ["main"]

_BATCH = 5000  # rows read and added at a time
_MOVING = " (being imported)"  # behind the name of a collection that is not complete
_METRICS = {"cosine": "cosine", "l2": "l2", "euclid": "l2", "euclidean": "l2", "ip": "dot", "dot": "dot", "inner_product": "dot"}


class Batch(NamedTuple):
    """Rows that are added together; None for what the source does not have."""

    vectors: Any
    ids: Optional[Sequence[Any]] = None
    payloads: Optional[Sequence[Any]] = None
    texts: Optional[Sequence[Optional[str]]] = None


class Found(NamedTuple):
    """A collection of a source. `metric` is what it is called there or, if the source keeps none, empty."""

    name: str
    rows: int
    metric: str
    batches: Iterator[Batch]
    note: str = ""


class Failed(Exception):
    """Why a collection cannot be imported, in a sentence."""


# ---- sources -----------------------------------------------------------------------------------------------------------------------


def _named(names: Iterable[str], name: Optional[str], place: str, kind: str) -> str:
    """Return the name that was asked for, or the only one there is."""
    listed = sorted(names)
    if name is None and len(listed) == 1:
        return listed[0]
    if name in listed:
        return name
    there = f"it has {', '.join(listed)}" if listed else f"it has no {kind}"
    raise Failed(f"{place}: there is no {kind} {name!r}; {there}" if name else f"{place}: name the {kind}; {there}")


def _chroma(asked: argparse.Namespace) -> Found:
    place = os.path.join(asked.place, "chroma.sqlite3")
    if not os.path.exists(place):  # Chroma would make an empty database
        raise Failed(f"{place} does not exist; DIR is the path of a PersistentClient")
    chromadb = needed("chromadb", "import chroma")
    client = chromadb.PersistentClient(path=asked.place, settings=chromadb.Settings(anonymized_telemetry=False))
    name = _named((getattr(each, "name", each) for each in client.list_collections()), asked.name, asked.place, "collection")
    theirs = client.get_collection(name, embedding_function=None)
    told = theirs.metadata or {}
    metric = told.get("hnsw:space") or next((kind["space"] for key in ("hnsw", "spann") if (kind := theirs.configuration.get(key))), "l2")

    def batches() -> Iterator[Batch]:
        for first in range(0, rows, _BATCH):
            page = theirs.get(limit=_BATCH, offset=first, include=["embeddings", "metadatas", "documents"])
            yield Batch(page["embeddings"], page["ids"], page["metadatas"], page["documents"])

    rows = theirs.count()
    return Found(name, rows, metric, batches())


def _lancedb(asked: argparse.Namespace) -> Found:
    if "://" not in asked.place and not os.path.isdir(asked.place):  # LanceDB would make the folder
        raise Failed(f"{asked.place} is not a folder")
    database = needed("lancedb", "import lancedb").connect(asked.place)
    name = _named(_lance_tables(database), asked.name, asked.place, "table")
    theirs = database.open_table(name)
    vectors = {field.name: _is_vector(field.type) for field in theirs.schema}
    vector = _vector_column(vectors, asked.vector, name)
    indexes = (theirs.index_stats(index.name) for index in theirs.list_indices() if index.columns == [vector])
    metric = next((str(index.distance_type) for index in indexes if index and index.distance_type), "")
    rounded = str(theirs.schema.field(vector).type.value_type) == "double"
    note = "; ".join((["vectors of 64 bits are rounded to 32"] if rounded else []) + _other_vectors(vectors, vector))

    def batches() -> Iterator[Batch]:
        for batch in theirs.to_arrow().to_batches(_BATCH):
            records = batch.drop_columns([column for column, holds in vectors.items() if holds]).to_pylist()
            ids = [record.pop(asked.id or "id") for record in records] if (asked.id or "id") in batch.schema.names else None
            yield Batch(arrow_matrix(batch.column(vector)), ids, records if records and records[0] else None)

    if asked.id and asked.id not in theirs.schema.names:
        raise Failed(f"{name} has no column {asked.id!r}; it has {', '.join(theirs.schema.names)}")
    return Found(name, theirs.count_rows(), metric, batches(), note)


def _lance_tables(database: Any) -> Iterator[str]:
    token = None
    while True:
        page = list(database.table_names(page_token=token, limit=1000))
        yield from page
        if len(page) < 1000:
            return
        token = page[-1]


def _is_vector(type_: Any) -> bool:
    return str(type_).startswith("fixed_size_list") and str(type_.value_type) in ("halffloat", "float", "double")


def _vector_column(columns: dict[str, bool], asked: Optional[str], table: str) -> str:
    vectors = [name for name, holds in columns.items() if holds]
    if asked is None and len(vectors) == 1:
        return vectors[0]
    if asked in vectors:
        return asked
    there = f"its columns of vectors are {', '.join(vectors)}" if vectors else f"it has no column of vectors, but {', '.join(columns)}"
    raise Failed(f"{table} has no column of vectors {asked!r}; {there}" if asked else f"{table}: choose one with --vector; {there}" if vectors else f"{table}: {there}")


def _other_vectors(columns: dict[str, bool], taken: str) -> list[str]:
    others = [name for name, holds in columns.items() if holds and name != taken]
    return [f"other columns of vectors are left out: {', '.join(others)}"] if others else []


def _qdrant(asked: argparse.Namespace) -> Found:
    if not asked.place.startswith(("http://", "https://")):
        raise Failed(f"{asked.place} is no URL of a server, such as http://localhost:6333")
    names = _ask(asked.place, "/collections")["collections"]
    name = _named((each["name"] for each in names), asked.name, asked.place, "collection")
    path = "/collections/" + urllib.parse.quote(name, safe="")
    sizes = _ask(asked.place, path)["config"]["params"].get("vectors") or {}
    vector: Optional[str] = None
    note = ""
    if "size" not in sizes:  # named vectors
        vector = _vector_column({key: True for key in sizes}, asked.vector, name)
        note = "; ".join(_other_vectors({key: True for key in sizes}, vector)).replace("columns of ", "")
        sizes = sizes[vector]
    elif asked.vector:
        raise Failed(f"{name} has one vector per point, without a name; leave --vector out")
    if "multivector_config" in sizes and sizes["multivector_config"]:
        raise Failed(f"{name} has several vectors per point (a multivector), which cannot be imported")

    def batches() -> Iterator[Batch]:
        offset = None
        while True:
            page = _ask(asked.place, path + "/points/scroll",
                        {"limit": 1000, "offset": offset, "with_payload": True, "with_vector": [vector] if vector else True})
            points, offset = page["points"], page.get("next_page_offset")
            vectors = [point["vector"][vector] if vector else point["vector"] for point in points if not vector or vector in point["vector"]]
            if len(vectors) < len(points):
                raise Failed(f"{name}: there are points without the vector {vector!r}")
            if points:
                yield Batch(np.array(vectors, np.float32), [point["id"] for point in points], [point.get("payload") or None for point in points])
            if offset is None:
                return

    rows = _ask(asked.place, path + "/points/count", {"exact": True})["count"]
    return Found(name, rows, sizes["distance"], batches(), note)


def _ask(url: str, path: str, body: Any = None) -> Any:
    """Return the result of a request to Qdrant's API."""
    headers = {"Content-Type": "application/json"}
    if os.environ.get("QDRANT_API_KEY"):
        headers["api-key"] = os.environ["QDRANT_API_KEY"]
    request = urllib.request.Request(url.rstrip("/") + path, None if body is None else json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["result"]
    except urllib.error.HTTPError as error:
        with error:
            said = error.read(500).decode("utf-8", "replace").strip()
        raise Failed(f"{url}{path}: {error.code} {error.reason}{': ' + said if said else ''}") from None
    except urllib.error.URLError as error:
        raise Failed(f"{url}: {error.reason}") from None
    except (json.JSONDecodeError, KeyError, TypeError):
        raise Failed(f"{url}{path}: the answer is not one of Qdrant's") from None


# The columns of a table: name, type, whether it is the primary key, and the operators of its index.
_COLUMNS = """SELECT a.attname, format_type(a.atttypid, NULL), count(k.indexrelid) > 0, max(o.opcname)
FROM pg_attribute a
LEFT JOIN pg_index k ON k.indrelid = a.attrelid AND k.indisprimary AND k.indnkeyatts = 1 AND k.indkey[0] = a.attnum
LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indkey[0] = a.attnum
LEFT JOIN pg_opclass o ON o.oid = i.indclass[0] AND o.opcname LIKE ANY (ARRAY['%%cosine_ops', '%%l2_ops', '%%ip_ops'])
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped GROUP BY a.attnum, a.attname, a.atttypid ORDER BY a.attnum"""


def _pgvector(asked: argparse.Namespace) -> Found:
    if asked.name is None:
        raise Failed("name the table, or schema.table")
    psycopg = needed("psycopg", "import pgvector")
    sql, connection = psycopg.sql, psycopg.connect(asked.place)
    connection.isolation_level, connection.read_only = psycopg.IsolationLevel.REPEATABLE_READ, True  # one snapshot
    found = connection.execute("SELECT c.oid, c.relname, c.oid::regclass::text FROM pg_class c WHERE c.oid = to_regclass(%s)", [asked.name]).fetchone()
    if found is None:
        raise Failed(f"there is no table {asked.name!r}")
    oid, relation, table = found
    columns = connection.execute(_COLUMNS, [oid]).fetchall()
    vectors = {name: kind in ("vector", "halfvec", "real[]", "double precision[]") for name, kind, *_ in columns}
    vector = _vector_column(vectors, asked.vector, asked.name)
    names = [name for name, *_ in columns]
    key = asked.id or next((name for name, _, primary, _ in columns if primary), None)
    if key is not None and key not in names:
        raise Failed(f"{asked.name} has no column {key!r}; it has {', '.join(names)}")
    operators = next(operators for name, _, _, operators in columns if name == vector) or ""
    rounded = next(kind for name, kind, *_ in columns if name == vector) == "double precision[]"
    table = sql.SQL(table)
    parts = [sql.SQL("{}::real[]").format(sql.Identifier(vector)), sql.SQL("{}::text").format(sql.Identifier(key)) if key else sql.SQL("NULL"),
             sql.SQL("(to_jsonb(t) - {}::text[])::text").format(sql.Literal([name for name in names if vectors[name] or name == key]))]
    where = sql.SQL(" WHERE {} IS NOT NULL").format(sql.Identifier(vector))
    rows, total = connection.execute(sql.SQL("SELECT count({}), count(*) FROM {}").format(sql.Identifier(vector), table)).fetchone()

    def batches() -> Iterator[Batch]:
        with connection, connection.cursor(name="warpwave_import", binary=True) as cursor:  # binary: every bit of the vectors
            cursor.execute(sql.SQL("SELECT {} FROM {} t").format(sql.SQL(", ").join(parts), table) + where)
            while page := cursor.fetchmany(_BATCH):
                vectors, ids, payloads = zip(*page)
                yield Batch(np.array(vectors, np.float32), ids if key else None, [json.loads(text) or None for text in payloads])

    notes = [f"left out without a vector: {_count(total - rows)}"] if total > rows else []
    notes += ["vectors of 64 bits are rounded to 32"] if rounded else []
    notes += _other_vectors(vectors, vector)
    return Found(relation, rows, next((metric for metric in ("cosine", "l2", "ip") if f"{metric}_ops" in operators), ""), batches(), "; ".join(notes))


def _faiss(asked: argparse.Namespace) -> Found:
    if not os.path.isfile(asked.place):
        raise Failed(f"{asked.place} is not a file")
    faiss = needed("faiss", "import faiss")
    index = whole = faiss.read_index(asked.place)
    ids: Any = None
    while hasattr(index, "id_map"):
        ids, index = faiss.vector_to_array(index.id_map), faiss.downcast_index(index.index)
    inverted = faiss.try_extract_index_ivf(index)
    if inverted is not None:  # its ids are the caller's, in the order of the lists
        lists = inverted.invlists
        kept = [faiss.rev_swig_ptr(lists.get_ids(i), lists.list_size(i)).copy() for i in range(lists.nlist) if lists.list_size(i)]
        places = np.sort(np.concatenate(kept)) if kept else np.empty(0, np.int64)
        ids = places if ids is None else ids[places]
        inverted.set_direct_map_type(faiss.DirectMap.Hashtable)
    else:
        places = np.arange(index.ntotal)
    metric = {faiss.METRIC_INNER_PRODUCT: "dot", faiss.METRIC_L2: "l2"}.get(index.metric_type, f"number {index.metric_type}")
    exact = isinstance(index, (faiss.IndexFlat, faiss.IndexIVFFlat, faiss.IndexHNSWFlat))
    ids = places if ids is None else ids
    name = os.path.splitext(os.path.basename(asked.place))[0]

    def batches(owner: Any = whole) -> Iterator[Batch]:  # which frees the indexes inside it at its end
        for first in range(0, len(places), _BATCH):
            part = slice(first, first + _BATCH)
            yield Batch(index.reconstruct_batch(places[part]), ids[part].tolist())

    return Found(name, len(places), metric, batches(), "" if exact else f"{type(index).__name__} gives approximations of its vectors; better import the original ones")


class Source(NamedTuple):
    """A source as the command line has it."""

    read: Callable[[argparse.Namespace], Found]
    place: str  # its first argument
    about: str
    name: str = ""  # its second argument, if any
    options: tuple[str, ...] = ()


SOURCES = {
    "chroma": Source(_chroma, "DIR", "the folder of a chromadb.PersistentClient", "COLLECTION"),
    "lancedb": Source(_lancedb, "DIR", "the folder, or the address, of a LanceDB database", "TABLE", ("vector", "id")),
    "qdrant": Source(_qdrant, "URL", "the address of a Qdrant server; $QDRANT_API_KEY is its key", "COLLECTION", ("vector",)),
    "pgvector": Source(_pgvector, "DSN", "how to connect to PostgreSQL, such as postgresql://user@host/database", "TABLE", ("vector", "id")),
    "faiss": Source(_faiss, "FILE", "a file that faiss.write_index() wrote"),
}


# ---- moving ------------------------------------------------------------------------------------------------------------------------


class Checksum:
    """SHA-256 of rows: id, vector to the bit, payload, text."""

    def __init__(self) -> None:
        self._sum, self.rows = hashlib.sha256(), 0

    def add(self, id_: str, vector: Any, payload: Any, text: Optional[str]) -> None:
        """Add a row."""
        parts = id_.encode(), np.ascontiguousarray(vector, "<f4").tobytes(), _json(payload).encode(), b"\0" if text is None else text.encode()
        for part in parts:
            self._sum.update(len(part).to_bytes(8, "little"))
            self._sum.update(part)
        self.rows += 1

    @property
    def text(self) -> str:
        """The first 16 digits."""
        return self._sum.hexdigest()[:16]


def _json(payload: Any) -> str:
    """Return a payload as JSON with sorted keys, so that equal payloads are equal texts."""
    return json.dumps(payload, ensure_ascii=False, sort_keys=True, allow_nan=False, default=lambda value: float(value) if isinstance(value, Decimal) else _plain(value))


def _rows_of(batch: Batch, first: int) -> tuple[Any, list[str], list[Any], list[Optional[str]]]:
    """Return the rows of a batch as they will be stored."""
    with np.errstate(over="ignore"):  # the store refuses infinite values
        vectors = np.ascontiguousarray(batch.vectors, np.float32)
    count = len(vectors)
    ids = [id_text(one) for one in batch.ids] if batch.ids is not None else [str(first + i) for i in range(count)]
    try:
        payloads = [None if one is None else json.loads(_json(one)) for one in batch.payloads or itertools.repeat(None, count)]
    except (TypeError, ValueError) as error:
        raise Failed(f"a payload among rows {first} to {first + count - 1} cannot be JSON: {error}") from None
    return vectors, ids, payloads, list(batch.texts or itertools.repeat(None, count))


def _stored(path: str, name: str) -> Checksum:
    """Return the checksum of a collection that is read from its file."""
    found = Checksum()
    with Store(path, device="cpu", must_exist=True) as store:
        for page in store[name]._live(FETCH_IDS | FETCH_PAYLOADS | FETCH_VECTORS | c.WW_FETCH_TEXTS):
            vectors = page._vectors if page._vectors is not None else ()
            for id_, vector, payload, text in zip(page._all_ids(), vectors, page._all_payloads(), page._row_texts()):
                if id_ is not None:
                    found.add(id_, vector, payload, text)
    return found


def _move(found: Found, path: str, name: str, metric: str) -> Checksum:
    """Write all rows under a name for the time being, and return their checksum."""
    read, moving = Checksum(), name + _MOVING
    with Store(path, device="cpu") as store:
        if moving in store:  # of a process that was killed
            store.drop(moving)
        ours = None
        while (batch := _reading(next, found.batches, None)) is not None:
            vectors, ids, payloads, texts = _rows_of(batch, read.rows)
            if ours is None:
                ours = store.create(moving, dim=vectors.shape[1], metric=metric)
            ours.add(vectors, ids=ids, payloads=payloads, texts=texts if any(text is not None for text in texts) else None)
            for row in zip(ids, vectors, payloads, texts):
                read.add(*row)
            if sys.stderr.isatty():
                print(f"\r{read.rows:,} of {found.rows:,} rows", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return read


def _count(rows: int) -> str:
    return f"{rows} {'row' if rows == 1 else 'rows'}"


def _reading(read: Callable[..., Any], *arguments: Any) -> Any:
    """Call what reads a source. Packages of others have exceptions of their own, which become one sentence."""
    try:
        return read(*arguments)
    except (Failed, ImportError, OSError):
        raise
    except Exception as error:
        raise Failed(f"{' '.join(str(error).split())} ({type(error).__name__})") from error


def _import(asked: argparse.Namespace) -> str:
    """Import what was asked for; return the report."""
    found = _reading(SOURCES[asked.source].read, asked)
    name = asked.as_name or found.name
    metric = asked.metric or _METRICS.get(found.metric.lower(), "" if found.metric else "l2")
    if not metric:
        raise Failed(f"the metric {found.metric} has no counterpart here; give --metric cosine, l2 or dot")
    if found.rows == 0:
        raise Failed(f"{found.name}: there are no rows to import")
    if os.path.exists(asked.store):
        with Store(asked.store, device="cpu") as store:
            if name in store:
                raise Failed(f"{asked.store} already has a collection {name!r}; choose another name with --as")
    complete = False
    try:
        read = _move(found, asked.store, name, metric)
        if read.rows != found.rows:
            raise Failed(f"{_count(found.rows)} announced, {read.rows} came; is somebody writing? Nothing was imported")
        stored = _stored(asked.store, name + _MOVING)
        if (stored.rows, stored.text) != (read.rows, read.text):
            raise Failed(f"read: {_count(read.rows)} with checksum {read.text}; in {asked.store}: {_count(stored.rows)} with {stored.text}; nothing was imported")
        with Store(asked.store, device="cpu") as store:
            dim = store.rename(name + _MOVING, name).dim
        complete = True
    finally:
        if not complete and os.path.exists(asked.store):
            with Store(asked.store, device="cpu") as store:
                if name + _MOVING in store:
                    store.drop(name + _MOVING)
    note = f"note: {found.note}\n" if found.note else ""
    chosen = "" if found.metric or asked.metric else f"; the source names no metric, --metric chooses another than {metric}"
    return (f"{note}{asked.store}: collection {name!r}, {_count(stored.rows)} x {dim}, {metric}{chosen}\n"
            f"checksum of ids, vectors, payloads and texts: {read.text} read, {stored.text} stored")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("warpwave import", description="Move a collection from another store into a store of Warpwave, and compare what arrived.")
    sources = parser.add_subparsers(dest="source", required=True, metavar="SOURCE")
    for name, source in SOURCES.items():
        one = sources.add_parser(name, help=source.about, description=f"Import from {name}. {source.place} is {source.about}.")
        one.add_argument("place", metavar=source.place)
        if source.name:
            one.add_argument("name", metavar=source.name, nargs="?", help="may be left out if there is only one" if name != "pgvector" else "table, or schema.table")
        else:
            one.set_defaults(name=None)
        one.add_argument("--store", required=True, metavar="STORE", help="the file to import into; it is made if it does not exist")
        one.add_argument("--as", dest="as_name", metavar="NAME", help="the name of the new collection, by default that of the old one")
        one.add_argument("--metric", choices=["cosine", "l2", "dot"], help="by default that of the source")
        one.set_defaults(vector=None, id=None)
        if "vector" in source.options:
            one.add_argument("--vector", metavar="NAME", help="the vector to import, if there are several")
        if "id" in source.options:
            one.add_argument("--id", metavar="COLUMN", help="the column of ids, by default the primary key or 'id'; rows without one are numbered")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    asked = _parser().parse_args(arguments)
    try:
        print(_import(asked))
        return 0
    except KeyboardInterrupt:
        print("warpwave import: interrupted; nothing was imported", file=sys.stderr)
        return 130
    except (Failed, ImportError, OSError, Error) as error:
        print(f"warpwave import: {error}", file=sys.stderr)
        return 5 if isinstance(error, MemoryError) else 1 if isinstance(error, ImportError) else 3
