"""Rows of files into collections: Parquet, Arrow, vectors with ids and payloads beside them, and JSON lines."""
from __future__ import annotations

import csv
import itertools
import json
import os
import re
from ctypes import byref, c_void_p, create_string_buffer
from typing import TYPE_CHECKING, Any, Callable, Iterator, NamedTuple, Optional

import numpy as np

from . import _native as c
from ._arrow import ids_of, row_texts_of
from ._calls import Handle, Progress, bar
from ._errors import check
from ._frames import batch_rows, payload_texts
from ._optional import needed
from ._records import arrow_matrix, split_records
from .device import made

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS = {"": None, "true": True, "false": False}


class _Part(NamedTuple):
    """Rows that are added together."""

    rows: int
    vectors: Any
    ids: Any = None
    payloads: Any = None
    texts: Any = None
    sparse: Any = None


class _Source(NamedTuple):
    """A file: its number of rows, 0 if that is not known, and a function that gives its parts from a row on."""

    rows: int
    parts: Callable[[int], Iterator[_Part]]


class Files:
    """`add_file` of `Collection`."""

    if TYPE_CHECKING:
        dim: int
        name: str
        _stored: bool
        _file_handle: Optional[Handle]

        def _write(self, write: Any, what: str, vectors: Any, ids: Any, payloads: Any, progress: Any, texts: Any = None, sparse: Any = None) -> None: ...

    def add_file(self, path: Any, *, vector: str = "vector", id: Optional[str] = "id", payload: str = "payload", ids: Any = None, payloads: Any = None,
                 upsert: bool = False, resume: bool = False, progress: Progress = None) -> int:
        """Add the rows of a file; return how many this call has added.

        Parquet and Arrow files (.parquet, .arrow, .feather, .ipc) need pyarrow; `vector`, `id` and `payload` name their columns as in
        `add_table`. Lines of JSON (.jsonl) are records. Files of vectors are .npy, .fbin, .fvecs and the others that the command reads;
        `ids` is a file with an id per line, and `payloads` a file with a payload in JSON per line, or a CSV file (.csv) whose first line names
        the fields. Rows are added in batches, each of them completely or not at all. With `resume`, a call on a store's collection goes on
        after the last batch that an earlier one has added, even if the process was killed then.
        """
        file = os.fspath(path)
        source = _opened(file, self.dim, vector, id, payload, ids, payloads)
        mark = _Mark(self, file) if self._stored else None
        if resume and mark is None:
            raise ValueError("add_file: resume is for collections of a store; one in memory ends with its process")
        begin = mark.read() if resume and mark else 0
        tell = bar("add_file") if progress is True else progress if callable(progress) else None
        done, write = begin, c.ww_collection_upsert if upsert else c.ww_collection_add
        for part in source.parts(begin):
            if upsert and part.ids is None:
                raise ValueError(f"upsert needs ids, and {file} has none")
            done += part.rows
            self._write(mark.marking(write, done) if mark else write, "add_file", part.vectors, part.ids, part.payloads, None, part.texts,
                        part.sparse)
            if tell is not None:
                tell(done, max(source.rows, done))
        return done - begin


class _Mark:
    """How far a file has come: a note of the collection, which is committed with each batch."""

    def __init__(self, collection: Any, file: str) -> None:
        found = os.stat(file)
        self._store, self._name = collection._file_handle, collection.name.encode()
        self._key = ("add_file " + os.path.realpath(file)).encode()
        self._file, self._is = file, {"bytes": found.st_size, "changed": found.st_mtime_ns}
        if len(self._key) >= 256:
            raise ValueError(f"add_file: the path of {file} is longer than 240 bytes")

    def read(self) -> int:
        """Return the number of rows that are in the collection; 0 if there is no note."""
        text = create_string_buffer(4096)
        with self._store as store:
            status = c.ww_store_get_note(store, self._name, self._key, text)
        if status == c.WW_NOT_FOUND:
            return 0
        check(status)
        kept = json.loads(text.value)
        if {key: kept.get(key) for key in self._is} != self._is:
            raise ValueError(f"add_file: {self._file} has changed since {kept.get('done')} of its rows were added; leave resume out to add all of it, "
                             "with upsert=True to replace rows by their ids")
        return int(kept["done"])

    def marking(self, write: Any, done: int) -> Callable[[int, Any], int]:
        """Return a write that commits the note with the rows. It runs on one thread, which a transaction needs."""
        note = json.dumps({**self._is, "done": done}).encode()

        def write_both(pointer: int, rows: Any) -> int:
            with self._store as store:
                status: int = c.ww_store_begin(store)
                if status != c.WW_OK:
                    return status
                status = write(pointer, rows) or c.ww_store_set_note(store, self._name, self._key, note)
                if status == c.WW_OK:
                    return int(c.ww_store_commit(store))
                c.ww_store_rollback(store)
                return status

        return write_both


def _opened(file: str, dim: int, vector: str, id: Optional[str], payload: str, ids: Any, payloads: Any) -> _Source:
    ending = os.path.splitext(file)[1].lower()
    if ending in (".parquet", ".arrow", ".feather", ".ipc", ".jsonl"):
        if ids is not None or payloads is not None:
            raise ValueError(f"add_file: {file} has its own ids and payloads; ids= and payloads= go with files of vectors")
        if ending == ".jsonl":
            return _Source(0, lambda first: _record_parts(file, dim, first))
        rows, batches = (_parquet if ending == ".parquet" else _arrow)(file, batch_rows(dim))
        return _Source(rows, lambda first: (_part_of(batch, file, vector, id, payload) for batch in _after(batches, first)))
    return _matrix_source(file, dim, ids, payloads)


# ---- tables --------------------------------------------------------------------------------------------------------------------------


def _parquet(file: str, rows_max: int) -> tuple[int, Iterator[Any]]:
    opened = needed("pyarrow.parquet", "add_file() of Parquet").ParquetFile(file)
    return opened.metadata.num_rows, opened.iter_batches(rows_max)


def _arrow(file: str, rows_max: int) -> tuple[int, Iterator[Any]]:
    pyarrow, ipc = needed("pyarrow", "add_file() of Arrow"), needed("pyarrow.ipc", "add_file() of Arrow")
    try:
        opened = ipc.open_file(pyarrow.memory_map(file))
    except pyarrow.ArrowInvalid:  # a stream
        return 0, (piece for batch in ipc.open_stream(pyarrow.memory_map(file)) for piece in _pieces(batch, rows_max))
    count = opened.num_record_batches
    rows = sum(opened.get_batch(i).num_rows for i in range(count))
    return rows, (piece for i in range(count) for piece in _pieces(opened.get_batch(i), rows_max))


def _pieces(batch: Any, rows: int) -> Iterator[Any]:
    return (batch.slice(at, rows) for at in range(0, batch.num_rows, rows))


def _after(batches: Iterator[Any], first: int) -> Iterator[Any]:
    """Pass over the first rows."""
    for batch in batches:
        left_out = min(first, batch.num_rows)
        first -= left_out
        if left_out < batch.num_rows:
            yield batch.slice(left_out)


def _part_of(batch: Any, file: str, vector: str, id: Optional[str], payload: str) -> _Part:
    names = batch.schema.names
    if vector not in names:
        raise ValueError(f"{file} has no column {vector!r}; it has {', '.join(names)}")
    texts = row_texts_of(batch.column("text")) if payload in names and "text" in names else None
    return _Part(batch.num_rows, arrow_matrix(batch.column(vector)), ids_of(batch.column(id)) if id in names else None,
                 payload_texts(batch, vector, id, payload), texts)


# ---- lines and vectors ---------------------------------------------------------------------------------------------------------------


def _record_parts(file: str, dim: int, first: int) -> Iterator[_Part]:
    with open(file, encoding="utf-8") as lines:
        records = itertools.islice((json.loads(line) for line in lines if line.strip()), first, None)
        while part := list(itertools.islice(records, min(8192, batch_rows(dim)))):
            yield _Part(len(part), *split_records(part))


def _csv_value(text: str) -> Any:
    return _WORDS[text] if text in _WORDS else json.loads(text) if _NUMBER.fullmatch(text) else text


def _payloads_of(file: str) -> Iterator[Any]:
    with open(file, encoding="utf-8", newline="") as lines:
        if not file.lower().endswith(".csv"):
            for line in lines:
                yield json.loads(line) if line.strip() else None
            return
        records = csv.reader(lines, strict=True)
        names = next(records, [])
        for values in records:
            if values and len(values) != len(names):
                raise ValueError(f"{file}, line {records.line_num}: the record has {len(values)} values; the first line names {len(names)} fields")
            if values:
                yield dict(zip(names, map(_csv_value, values)))


def _matrix_source(file: str, dim: int, ids: Any, payloads: Any) -> _Source:
    opened, info = c_void_p(), made(c.ww_matrix_info)
    check(c.ww_matrix_open(os.fsencode(file), byref(opened)), file)
    matrix = Handle(opened.value or 0, c.ww_matrix_close, f"the file {file}")
    with matrix as pointer:
        check(c.ww_matrix_describe(pointer, byref(info)))
    return _Source(info.rows, lambda first: _matrix_parts(matrix, info, _Beside(file, info.rows, ids, payloads), first))


class _Beside:
    """The files beside a file of vectors."""

    def __init__(self, file: str, rows: int, ids: Any, payloads: Any) -> None:
        self._rows, self._ids, self._file = rows, None, payloads
        self._payloads = None if payloads is None else _payloads_of(os.fspath(payloads))
        if ids is not None:
            with open(ids, encoding="utf-8") as lines:
                self._ids = lines.read().splitlines()
            if len(self._ids) != rows:
                raise ValueError(f"{ids} has {len(self._ids)} ids, {file} has {rows} rows; there must be one id per row")

    def ids(self, first: int, count: int) -> Any:
        return None if self._ids is None else self._ids[first:first + count]

    def next_payloads(self, count: int) -> Any:
        if self._payloads is None:
            return None
        found = list(itertools.islice(self._payloads, count))
        if len(found) < count:
            raise ValueError(f"{self._file} has too few payloads; there must be one for each of the {self._rows} rows")
        return found

    def check_end(self) -> None:
        if self._payloads is not None and next(self._payloads, self) is not self:
            raise ValueError(f"{self._file} has more payloads than there are rows; all {self._rows} rows are in the collection")


def _matrix_parts(matrix: Handle, info: Any, beside: _Beside, first: int) -> Iterator[_Part]:
    batch = batch_rows(info.dim)
    for at in range(0, first, batch):
        beside.next_payloads(min(batch, first - at))
    for at in range(first, info.rows, batch):
        count = min(batch, info.rows - at)
        vectors = np.empty((count, info.dim), np.float32)
        with matrix as pointer:
            check(c.ww_matrix_read_f32(pointer, at, count, vectors.ctypes.data))
        yield _Part(count, vectors, beside.ids(at, count), beside.next_payloads(count))
    beside.check_end()
