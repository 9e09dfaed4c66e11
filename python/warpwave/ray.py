"""Batches over Ray: the nearest rows of every row of a data set, and its duplicates, over more rows than one machine holds.

    import ray
    from warpwave.ray import Shards

    shards = Shards.from_parquet("s3://bucket/docs/", vector="embedding", id="id", payload=["year"], shards=8)
    hits = shards.search(ray.data.read_parquet("queries.parquet"), vector="embedding", k=10)   # a data set with two more columns
    hits.write_parquet("hits/")

Each shard is an actor with a collection of its own on its worker's device. It holds a contiguous part of the rows, in the order of the files,
so the merged hits, ties included, have the same bits as those of one collection with all rows, for any number of shards. Scheduling, retries
and lost workers are Ray's: an actor that dies is started again elsewhere and reads its part of the files again.

Needs the extra: pip install 'warpwave[ray]'.
"""
from __future__ import annotations

from typing import Any, NamedTuple, Optional, Sequence, Union

import numpy as np

try:
    import pyarrow.dataset as arrow_dataset
    import ray
except ImportError as missing:
    raise ImportError(f"{missing}; batches over Ray need the extra: pip install 'warpwave[ray]'") from missing

from .vectors import Collection

__all__ = ["Shards"]

_BATCH_ROWS = 65536  # read from files at a time


class _Part(NamedTuple):
    """What a shard answers to a batch of queries: matrices of hits, best first, padded with row -1."""

    scores: np.ndarray
    rows: np.ndarray  # over all shards
    ids: np.ndarray


def _vectors(column: Any) -> np.ndarray:
    """A column of lists of numbers as a matrix of f32."""
    column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if column.null_count:
        raise ValueError("the column of vectors has missing values")
    flat = np.asarray(column.flatten(), dtype=np.float32)
    if len(column) == 0 or len(flat) % len(column):
        raise ValueError("the vectors of a column must have one dimension")
    return flat.reshape(len(column), -1)


def _stacked(column: Any) -> np.ndarray:
    """A column of a batch of a data set as a matrix of f32."""
    return np.stack([np.asarray(row, dtype=np.float32) for row in column]) if len(column) else np.empty((0, 0), np.float32)


class _Shard:
    """The actor: rows `first` to `end` of the files."""

    def __init__(self, source: Any, first: int, end: int, device: str) -> None:
        self._first = first
        self._collection: Optional[Collection] = None
        self._larger_is_nearer = source["metric"] != "l2"
        columns = [source["vector"]] + [name for name in [source["id"]] if name] + list(source["payload"])
        at = 0
        for file in arrow_dataset.dataset(source["paths"], format="parquet").get_fragments():
            rows = file.count_rows()
            if at < end and at + rows > first:
                self._read(file.scanner(columns=columns, batch_size=_BATCH_ROWS, use_threads=False), (at, first, end), source, device)
            at += rows

    def _read(self, scanner: Any, rows: tuple[int, int, int], source: Any, device: str) -> None:
        """Add the rows of a file that are this shard's; the file begins with row `at` of all."""
        at, first, end = rows
        for batch in scanner.to_batches():
            begin, stop = max(first - at, 0), min(end - at, batch.num_rows)
            if begin < stop:
                self._add(batch.slice(begin, stop - begin), at + begin, source, device)
            at += batch.num_rows
            if at >= end:
                break

    def _add(self, batch: Any, row: int, source: Any, device: str) -> None:
        vectors = _vectors(batch.column(source["vector"]))
        ids = [str(v) for v in batch.column(source["id"]).to_pylist()] if source["id"] else [str(row + i) for i in range(len(vectors))]
        payloads = batch.select(list(source["payload"])).to_pylist() if source["payload"] else None
        if self._collection is None:
            self._collection = Collection(vectors.shape[1], source["metric"], source["type"], device)
        self._collection.add(vectors, ids, payloads)

    def count(self) -> int:
        """How many rows the shard has; answers when they are loaded."""
        return len(self._collection) if self._collection is not None else 0

    def search(self, queries: np.ndarray, k: int, where: Any) -> _Part:
        """The k nearest rows of each query."""
        if self._collection is None:
            return _Part(*(np.empty((len(queries), 0), kind) for kind in (np.float32, np.int64, object)))
        found = self._collection.search(queries, k, where=where)
        return _Part(found.scores, found.rows + self._first, found.ids)

    def first_within(self, queries: np.ndarray, ids: Sequence[str], radius: float, where: Any) -> _Part:
        """For each query two columns: the first row within the radius, and the row with the query's own id. -1: none."""
        rows, names = np.full((len(queries), 2), -1, np.int64), np.full((len(queries), 2), None, object)
        if self._collection is not None:
            found = self._collection.search(queries, radius=radius, where=where)
            for i, (hits, texts) in enumerate(zip(found.rows, found.ids)):
                if len(hits):
                    nearest = int(np.argmin(hits))
                    rows[i, 0], names[i, 0] = hits[nearest] + self._first, texts[nearest]
            known = [i for i, name in enumerate(ids) if name in self._collection]
            if known:
                rows[known, 1] = self._collection[[ids[i] for i in known]].rows + self._first
        return _Part(np.zeros(rows.shape, np.float32), rows, names)


def _merged(parts: Sequence[_Part], k: int, larger_is_nearer: bool) -> _Part:
    """The best k of all parts: by score, equal scores by row, as in one collection."""
    scores, rows, ids = (np.concatenate([part[column] for part in parts], axis=1) for column in range(3))
    order = np.lexsort((rows, -scores if larger_is_nearer else scores), axis=1)[:, :k]
    return _Part(*(np.take_along_axis(column, order, axis=1) for column in (scores, rows, ids)))


class _Search:
    """Searches a batch of a data set; Ray sends it to its workers."""

    def __init__(self, actors: Sequence[Any], vector: str, k: int, where: Any, larger_is_nearer: bool) -> None:
        self._actors, self._vector, self._k, self._where, self._larger_is_nearer = actors, vector, k, where, larger_is_nearer

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        queries = _stacked(batch[self._vector])
        if len(queries) == 0:
            return batch
        shared = ray.put(queries)
        hits = _merged(ray.get([actor.search.remote(shared, self._k, self._where) for actor in self._actors]), self._k, self._larger_is_nearer)
        return {**batch, "hit_ids": hits.ids, "hit_scores": hits.scores}


class _Dedup:
    """Finds the duplicates in a batch of a data set."""

    def __init__(self, actors: Sequence[Any], vector: str, identifier: str, radius: float, where: Any) -> None:
        self._actors, self._vector, self._id, self._radius, self._where = actors, vector, identifier, radius, where

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        queries, ids = _stacked(batch[self._vector]), [str(value) for value in batch[self._id]]
        if len(queries) == 0:
            return batch
        shared = ray.put(queries)
        parts = ray.get([actor.first_within.remote(shared, ids, self._radius, self._where) for actor in self._actors])
        first_of, own = [None] * len(ids), [-1] * len(ids)
        first = [-1] * len(ids)
        for part in parts:  # in the order of the rows
            for i in range(len(ids)):
                if first[i] < 0 <= part.rows[i, 0]:
                    first[i], first_of[i] = int(part.rows[i, 0]), part.ids[i, 0]
                own[i] = max(own[i], int(part.rows[i, 1]))
        duplicates = [first_of[i] if first[i] >= 0 and (own[i] < 0 or first[i] < own[i]) else None for i in range(len(ids))]
        return {**batch, "duplicate_of": np.array(duplicates, dtype=object)}


class Shards:
    """Rows of Parquet files, spread over actors that search them. Make one with `from_parquet`."""

    def __init__(self, actors: Sequence[Any], source: Any) -> None:
        self._actors, self._source = list(actors), source

    @classmethod
    def from_parquet(cls, paths: Union[str, Sequence[str]], *, vector: str, id: Optional[str] = None, payload: Sequence[str] = (), shards: int = 8,
                     device: str = "auto", metric: str = "cosine", type: str = "f32", resources: Optional[dict[str, Any]] = None) -> Shards:
        """Start `shards` actors, each with an equal part of the rows, and wait until all are loaded.

        `vector` and `id` name columns; without `id` a row's id is its number over all files. `payload` names columns that `where` may ask for.
        `resources` are Ray's options for each actor, as in {"num_gpus": 1}; otherwise each takes one CPU. Refuses a column that does not
        exist, missing vectors and equal ids within a shard.
        """
        if shards < 1:
            raise ValueError(f"shards is {shards}; it must be at least 1")
        source = {"paths": paths, "vector": vector, "id": id, "payload": tuple(payload), "metric": metric, "type": type}
        files = arrow_dataset.dataset(paths, format="parquet")
        for name in [vector, *([id] if id else []), *payload]:
            if name not in files.schema.names:
                raise KeyError(f"the files have no column '{name}'; they have {', '.join(files.schema.names)}")
        rows = files.count_rows()
        actor = ray.remote(_Shard).options(max_restarts=-1, max_task_retries=-1, **({"num_cpus": 1} if resources is None else resources))
        actors = [actor.remote(source, rows * i // shards, rows * (i + 1) // shards, device) for i in range(shards)]
        made = cls(actors, source)
        if len(made) != rows:
            raise RuntimeError(f"the shards have {len(made)} rows and the files {rows}; did they change meanwhile?")
        return made

    def __len__(self) -> int:
        return sum(ray.get([actor.count.remote() for actor in self._actors]))

    def search(self, dataset: Any, k: int = 10, *, vector: Optional[str] = None, where: Any = None, batch_rows: int = 1024) -> Any:
        """Return the data set with two more columns: `hit_ids` and `hit_scores`, the k nearest rows of each of its rows, best first.

        `vector` names its column of queries; by default the name that the files use. `where` is a dict of conditions on the payload. The
        result is lazy, as all of Ray's data sets: it is computed when it is read or written, and in a stream.
        """
        larger = self._source["metric"] != "l2"
        return dataset.map_batches(_Search(self._actors, vector or self._source["vector"], k, where, larger), batch_size=batch_rows, batch_format="numpy")

    def dedup(self, dataset: Any, radius: float, *, vector: Optional[str] = None, id: Optional[str] = None, where: Any = None, batch_rows: int = 1024) -> Any:
        """Return the data set with one more column, `duplicate_of`: the id of the first row of the shards within `radius`.

        It is None for a row that is itself this first row, or has none, so filtering by `duplicate_of is None` keeps one row of each group of
        equal rows. `radius` is a distance for l2 and a least score for cosine and dot, as in `Collection.search`. `id` names the column that
        tells which row of the shards a row is; by default the name that the files use.
        """
        identifier = id or self._source["id"]
        if not identifier:
            raise ValueError("dedup needs ids: give from_parquet(id=...), or id= here")
        return dataset.map_batches(_Dedup(self._actors, vector or self._source["vector"], identifier, radius, where), batch_size=batch_rows, batch_format="numpy")

    def close(self) -> None:
        """End the actors."""
        for actor in self._actors:
            ray.kill(actor)
        self._actors = []

    def __enter__(self) -> Shards:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
