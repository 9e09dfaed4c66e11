"""Conversion between collections and pandas, Arrow and Parquet. These packages are imported on first use."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Iterator, Optional

import numpy as np

from . import _native as c
from ._arrow import ids_of, payloads_of, row_texts_of
from ._optional import needed
from ._records import arrow_matrix
from ._select import Where
from .results import FETCH_IDS, FETCH_PAYLOADS, FETCH_VECTORS, Results

_BATCH_BYTES, _BATCH_ROWS = 64 << 20, 65536  # of a commit, at most


def batch_rows(dim: int) -> int:
    """Return how many rows are added in one commit."""
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES // (4 * dim)))


class Frames:
    """Table methods of `Collection`."""

    if TYPE_CHECKING:
        dim: int
        metric: str
        type: str
        name: str
        _stored: bool

        def _write(self, write: Any, what: str, vectors: Any, ids: Any, payloads: Any, progress: None, texts: Any) -> None: ...
        def _get(self, texts: Any = None, fetch: int = 0) -> Results: ...
        def _select(self, where: Optional[Where], parameters: Any, fetch: int) -> Results: ...
        def _live(self, fetch: int, where: Optional[Where] = None, parameters: Any = None) -> Iterator[Results]: ...

    def to_pandas(self, where: Optional[Where] = None, *, parameters: Any = None, vectors: bool = True) -> Any:
        """Return the rows that match `where`, or all, as a data frame.

        The columns are id, text if any row has one, vector, and one column for each payload field.
        """
        return self._found(where, parameters, vectors)._frame(needed("pandas", "to_pandas()"), False)

    def _everything(self, vectors: bool) -> int:
        return FETCH_IDS | FETCH_PAYLOADS | (FETCH_VECTORS if vectors else 0) | (c.WW_FETCH_TEXTS if self._stored else 0)

    def to_polars(self, where: Optional[Where] = None, *, parameters: Any = None, vectors: bool = True) -> Any:
        """Return the rows that match `where`, or all, as a data frame of polars with the columns of `to_pandas`."""
        polars = needed("polars", "to_polars()")
        return polars.DataFrame(self._found(where, parameters, vectors)._columns_of(False), strict=False)

    def to_list(self, where: Optional[Where] = None, *, parameters: Any = None, vectors: bool = True) -> list[dict[str, Any]]:
        """Return the rows that match `where`, or all, as records: dicts with id, vector, payload and, in a store, text."""
        return self._found(where, parameters, vectors)._records(False)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return all rows as a stream of Arrow, for polars, DuckDB and others."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _found(self, where: Optional[Where], parameters: Any, vectors: bool) -> Results:
        fetch = self._everything(vectors)
        return self._get(None, fetch) if where is None and parameters is None else self._select(where, parameters, fetch)

    def _schema(self, pyarrow: Any, vectors: bool) -> Any:
        columns = [("id", pyarrow.string()), ("vector", pyarrow.list_(pyarrow.float32(), self.dim)), ("payload", pyarrow.string()), ("text", pyarrow.string())]
        left_out = [name for name, there in (("vector", vectors), ("text", self._stored)) if not there]
        return pyarrow.schema([column for column in columns if column[0] not in left_out])

    def _arrow_batches(self, pyarrow: Any, where: Optional[Where], parameters: Any, vectors: bool) -> Iterator[Any]:
        schema = self._schema(pyarrow, vectors)
        for page in self._live(self._everything(vectors), where, parameters):
            there = np.flatnonzero(page._rows >= 0)
            columns = [pyarrow.array(page._all_ids()[there], pyarrow.string()), pyarrow.array(page._all_payload_texts()[there], pyarrow.string())]
            if vectors:
                numbers = page._vectors[there].ravel() if page._vectors is not None else np.empty(0, np.float32)
                columns.insert(1, pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(numbers), self.dim))
            if self._stored:
                columns.append(pyarrow.array(page._row_texts()[there], pyarrow.string()))
            yield pyarrow.record_batch(columns, schema=schema)

    def to_arrow(self, where: Optional[Where] = None, *, parameters: Any = None, vectors: bool = True) -> Any:
        """Return the rows that match `where`, or all, as a pyarrow.Table.

        The columns are id, vector (a list of `dim` f32), payload as JSON text and, for collections of a store, the rows' texts.
        """
        pyarrow = needed("pyarrow", "to_arrow()")
        return pyarrow.Table.from_batches(self._arrow_batches(pyarrow, where, parameters, vectors), self._schema(pyarrow, vectors))

    def to_parquet(self, path: Any, where: Optional[Where] = None, *, parameters: Any = None) -> None:
        """Write the rows that match `where`, or all, to a Parquet file, page by page."""
        pyarrow, parquet = needed("pyarrow", "to_parquet()"), needed("pyarrow.parquet", "to_parquet()")
        with parquet.ParquetWriter(os.fspath(path), self._schema(pyarrow, True)) as writer:
            for batch in self._arrow_batches(pyarrow, where, parameters, True):
                writer.write_batch(batch)

    def add_table(self, table: Any, *, vector: str = "vector", id: Optional[str] = "id", payload: str = "payload", upsert: bool = False) -> int:
        """Add a pyarrow.Table, a DataFrame, a Parquet file (its path) or any `__arrow_c_stream__` (polars, DuckDB).

        `vector` names the column of vectors and `id` the column of ids; with None, or if there is no such column, rows are numbered. The
        column that `payload` names has payloads as JSON texts or structs, and a column "text" beside it has the rows' texts, for
        collections of a store. Without a payload column, all other columns become payload fields. Rows are added in batches, each of them
        completely or not at all. Returns the number of rows added.
        """
        added = 0
        for batch in _batches(table, batch_rows(self.dim)):
            names = batch.schema.names
            if vector not in names:
                raise ValueError(f"the table has no column {vector!r}; it has {', '.join(names)}")
            ids = ids_of(batch.column(id)) if id in names else None
            if upsert and ids is None:
                raise ValueError(f"upsert needs ids, and the table has no column {id!r}; it has {', '.join(names)}")
            texts = row_texts_of(batch.column("text")) if payload in names and "text" in names else None
            self._write(c.ww_collection_upsert if upsert else c.ww_collection_add, "add_table", arrow_matrix(batch.column(vector)), ids,
                        payload_texts(batch, vector, id, payload), None, texts)
            added += batch.num_rows
        return added


def _batches(table: Any, rows: int) -> Iterator[Any]:
    pyarrow = needed("pyarrow", "add_table()")
    if isinstance(table, (str, os.PathLike)):
        return needed("pyarrow.parquet", "add_table()").ParquetFile(os.fspath(table)).iter_batches(rows)  # type: ignore[no-any-return]
    if type(table).__module__.startswith("pandas"):
        table = pyarrow.Table.from_pandas(table, preserve_index=False)
    elif type(table).__module__.startswith("polars"):
        table = table.to_arrow()
    if isinstance(table, list):  # of records
        table = pyarrow.Table.from_pylist(table)
    if hasattr(table, "__arrow_c_stream__"):
        table = pyarrow.table(table)
    if isinstance(table, pyarrow.RecordBatch):
        return iter([table])
    if not hasattr(table, "to_batches"):
        raise TypeError(f"the table is {type(table).__name__}; it must be a pyarrow.Table, a pandas.DataFrame, the path of a Parquet file or have "
                        "__arrow_c_stream__")
    return iter(table.to_batches(max_chunksize=rows))


def payload_texts(batch: Any, vector: str, id: Optional[str], payload: str) -> Any:
    """Return the payloads of a table's rows: those of a column, or all other columns."""
    names = [name for name in batch.schema.names if name not in (vector, id)]
    if payload in names:
        return payloads_of(batch.column(payload))
    return payloads_of(batch.select(names)) if names else None
