#!/usr/bin/env python3
"""Searching through SQL beside other vector stores in a file, in one run.

    python3 bench/store/store_sql.py EXTENSION FOLDER ROWS.npy [--rows N] [--queries 21] [--only warpwave,sqlite-vec,...]

Needs a Python whose sqlite3 loads extensions, numpy, and whichever of the packages sqlite-vec, sqliteai-vector, duckdb, lancedb and
faiss-cpu shall be compared; one that is missing is said to be. Rows are l2, k is 10, a filter admits 1% of the rows by a number in the
payload or its column. Prints markdown: rows inserted in a second, in one transaction, durable; milliseconds of one query, medians; the
same with the filter, kept from the query before where a store can keep one, and new. Ours are exact, and so is every peer here: DuckDB
and LanceDB search without an index, which would not be.
"""
import argparse
import importlib
import importlib.metadata
import json
import os
import pathlib
import shutil
import sqlite3
import statistics
import time

import numpy as np

K, BUCKETS = 10, 100


def median_ms(call, inputs):
    times = []
    for value in inputs:
        start = time.perf_counter()
        call(value)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def connect(path):
    db = sqlite3.connect(path)
    db.enable_load_extension(True)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    return db


class Warpwave:
    name = "Warpwave"

    def __init__(self, options, folder, dim):
        self.db = connect(folder / "warpwave.db")
        self.db.load_extension(str(pathlib.Path(options.extension).resolve().with_suffix("")))
        self.db.execute(f"CREATE VIRTUAL TABLE docs USING warpwave(dim={dim}, metric=l2, device=cpu)")
        self.db.execute("CREATE INDEX buckets ON docs_rows(payload->>'$.bucket')")

    def insert(self, rows):
        values = ((f"row-{i}", row.tobytes(), json.dumps({"bucket": i % BUCKETS})) for i, row in enumerate(rows))
        with self.db:
            self.db.executemany("INSERT INTO docs(id, vector, payload) VALUES (?, ?, ?)", values)

    def query(self, query):
        return [int(i[4:]) for i, _ in self.db.execute("SELECT id, distance FROM docs WHERE vector MATCH ? AND k = ?", (query.tobytes(), K))]

    def filtered(self, query, bucket):
        where = f"payload->>'$.bucket' = {bucket}"
        return [int(i[4:]) for i, _ in self.db.execute("SELECT id, distance FROM docs WHERE vector MATCH ? AND k = ? AND filter = ?",
                                                       (query.tobytes(), K, where))]


class SqliteVec:
    name = "sqlite-vec"

    def __init__(self, _options, folder, dim):
        peer = importlib.import_module("sqlite_vec")
        self.name += " " + importlib.metadata.version("sqlite-vec")
        self.db = connect(folder / "sqlite-vec.db")
        peer.load(self.db)
        self.db.execute(f"CREATE VIRTUAL TABLE docs USING vec0(vector float[{dim}], bucket integer)")

    def insert(self, rows):
        with self.db:
            self.db.executemany("INSERT INTO docs(rowid, vector, bucket) VALUES (?, ?, ?)",
                                ((i, row.tobytes(), i % BUCKETS) for i, row in enumerate(rows)))

    def query(self, query):
        return [i for i, _ in self.db.execute("SELECT rowid, distance FROM docs WHERE vector MATCH ? AND k = ?", (query.tobytes(), K))]

    def filtered(self, query, bucket):
        return [i for i, _ in self.db.execute("SELECT rowid, distance FROM docs WHERE vector MATCH ? AND k = ? AND bucket = ?",
                                              (query.tobytes(), K, bucket))]


class SqliteAi:
    name = "sqliteai-vector"

    def __init__(self, _options, folder, dim):
        distribution = importlib.metadata.distribution("sqliteai-vector")
        self.name += " " + distribution.version
        library = next(p for p in distribution.files if p.name == "vector.so")
        self.db = connect(folder / "sqliteai.db")
        self.db.load_extension(str(distribution.locate_file(library).with_suffix("")))
        self.db.execute("CREATE TABLE docs(id INTEGER PRIMARY KEY, vector BLOB, bucket INTEGER)")
        self.db.execute("SELECT vector_init('docs', 'vector', ?)", (f"type=FLOAT32,dimension={dim},distance=L2",))

    def insert(self, rows):
        with self.db:
            self.db.executemany("INSERT INTO docs VALUES (?, ?, ?)", ((i, row.tobytes(), i % BUCKETS) for i, row in enumerate(rows)))

    def query(self, query):
        return [i for i, _ in self.db.execute("SELECT rowid, distance FROM vector_full_scan('docs', 'vector', ?, ?)", (query.tobytes(), K))]


class DuckDb:
    name = "DuckDB"

    def __init__(self, _options, folder, dim):
        duckdb = importlib.import_module("duckdb")
        self.name += f" {duckdb.__version__}, no index"
        self.dim = dim
        self.db = duckdb.connect(str(folder / "duck.db"))
        self.db.execute(f"CREATE TABLE docs(id INTEGER, vector FLOAT[{dim}], bucket INTEGER)")

    def insert(self, rows):
        arrow = importlib.import_module("pyarrow")
        numbers = np.arange(len(rows), dtype=np.int32)
        vectors = arrow.FixedSizeListArray.from_arrays(arrow.array(rows.reshape(-1)), self.dim)
        self.db.register("given", arrow.table({"id": arrow.array(numbers), "vector": vectors, "bucket": arrow.array(numbers % BUCKETS)}))
        self.db.execute(f"INSERT INTO docs SELECT id, vector::FLOAT[{self.dim}], bucket FROM given")

    def query(self, query, term=""):
        return [i for i, in self.db.execute(f"SELECT id FROM docs {term} ORDER BY array_distance(vector, ?::FLOAT[{self.dim}]) LIMIT {K}",
                                            [query.tolist()]).fetchall()]

    def filtered(self, query, bucket):
        return self.query(query, f"WHERE bucket = {bucket}")


class LanceDb:
    name = "LanceDB"

    def __init__(self, _options, folder, dim):
        lancedb = importlib.import_module("lancedb")
        self.arrow = importlib.import_module("pyarrow")
        self.name += f" {lancedb.__version__}, no index"
        self.db, self.dim = lancedb.connect(str(folder / "lance")), dim

    def insert(self, rows):
        vectors = self.arrow.FixedSizeListArray.from_arrays(self.arrow.array(rows.reshape(-1)), self.dim)
        numbers = self.arrow.array(np.arange(len(rows)))
        self.table = self.db.create_table("docs", self.arrow.table(
            {"id": numbers, "vector": vectors, "bucket": self.arrow.array(np.arange(len(rows)) % BUCKETS)}))

    def query(self, query, term=None):
        search = self.table.search(query).distance_type("l2").limit(K).select(["id", "_distance"])
        search = search.where(term, prefilter=True) if term else search
        return search.to_arrow()["id"].to_pylist()

    def filtered(self, query, bucket):
        return self.query(query, f"bucket = {bucket}")


class Faiss:
    name = "FAISS flat, in memory"

    def __init__(self, _options, _folder, dim):
        self.faiss = importlib.import_module("faiss")
        self.name += " " + self.faiss.__version__
        self.index = self.faiss.IndexFlatL2(dim)

    def insert(self, rows):
        self.index.add(rows)
        self.buckets = [np.arange(b, len(rows), BUCKETS) for b in range(BUCKETS)]

    def query(self, query):
        return self.index.search(query[None], K)[1][0].tolist()

    def filtered(self, query, bucket):
        parameters = self.faiss.SearchParameters(sel=self.faiss.IDSelectorBatch(self.buckets[bucket]))
        return self.index.search(query[None], K, params=parameters)[1][0].tolist()


STORES = {"warpwave": Warpwave, "sqlite-vec": SqliteVec, "sqliteai": SqliteAi, "duckdb": DuckDb, "lancedb": LanceDb, "faiss": Faiss}


def right(found, rows, query, bucket=None):
    """As near as the true ten, whatever the order of equals."""
    numbers = np.arange(len(rows)) if bucket is None else np.arange(bucket, len(rows), BUCKETS)
    distances = ((rows[numbers].astype(np.float64) - query) ** 2).sum(axis=1)
    worst = np.sort(distances)[K - 1]
    of = dict(zip(numbers.tolist(), distances.tolist()))
    return len(found) == K and all(i in of and of[i] <= worst * (1 + 1e-6) + 1e-9 for i in found)


def measure(kind, options, folder, rows, queries):
    store = kind(options, folder, rows.shape[1])
    start = time.perf_counter()
    store.insert(rows)
    speed = len(rows) / (time.perf_counter() - start)
    good = right(store.query(queries[0]), rows, queries[0])
    plain = median_ms(store.query, queries)
    kept = new = None
    if hasattr(store, "filtered"):
        good = good and right(store.filtered(queries[0], 1), rows, queries[0], 1)
        kept = median_ms(lambda q: store.filtered(q, 1), queries)
        new = median_ms(lambda pair: store.filtered(*pair), [(q, 2 + i % (BUCKETS - 2)) for i, q in enumerate(queries)])

    def cell(value):
        return "" if value is None else f"{value:.2f}"
    print(f"| {store.name} | {speed:,.0f} | {plain:.2f} | {cell(kept)} | {cell(new)} | {'yes' if good else '**no**'} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("extension")
    parser.add_argument("folder")
    parser.add_argument("rows")
    parser.add_argument("--rows", dest="most", type=int, default=1 << 40)
    parser.add_argument("--queries", type=int, default=21)
    parser.add_argument("--only", default=",".join(STORES))
    options = parser.parse_args()
    rows = np.ascontiguousarray(np.load(options.rows)[:options.most], dtype=np.float32)
    random = np.random.default_rng(1)
    queries = rows[random.integers(0, len(rows), options.queries)] + random.normal(0, 0.01, (options.queries, rows.shape[1])).astype(np.float32)
    print(f"{rows.shape[0]} x {rows.shape[1]}, l2, k = {K}, {os.cpu_count()} cores\n")
    print("| store | rows inserted a second | query, ms | filter of 1%, kept | filter of 1%, new | right |\n|---|--:|--:|--:|--:|---|")
    for name in options.only.split(","):
        folder = pathlib.Path(options.folder) / "store_sql"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            measure(STORES[name], options, folder, rows, queries)
        except Exception as problem:  # noqa: BLE001  a peer that fails is said to, and the others go on
            print(f"| {STORES[name].name} | {type(problem).__name__}: {str(problem).splitlines()[0][:80] if str(problem) else ''} | | | | |", flush=True)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
