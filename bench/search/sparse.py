"""Times searches by sparse vectors: an index in memory and a store beside scipy, bm25s, SQLite's FTS5 and qdrant-client's local mode, in one run.

    sparse.py FOLDER [--rows 1000000] [--queries 50] [--rounds 3] [--local-rows 10000]

The rows are shaped like the passages of MS MARCO, from a seed: about 40 different words each, of 500,000 that are distributed by Zipf's law, with
BM25's weights (k 1.2, b 0.75). A query has 3 to 8 words: one or two frequent ones and words of a passage. Contestants take turns, one
query at a time, on one thread each. The scores of ours and of scipy's product are compared. qdrant-client's local mode computes in Python,
so it gets fewer rows, and its line says how many.
"""
import argparse
import ctypes
import os
import pathlib
import sqlite3
import statistics
import sys
import time

import numpy as np

import warpwave
from warpwave import _native as c

WORDS, K, K1, B = 500_000, 10, 1.2, 0.75


def passages(rows, seed=7):
    """Rows as (starts, words, values): the different words of each, ascending, with BM25's weight."""
    rng = np.random.default_rng(seed)
    lengths = np.clip(rng.lognormal(3.75, 0.4, rows), 8, 250).astype(np.int64)
    edges = np.cumsum(1.0 / (np.arange(WORDS) + 2.7))
    row = np.repeat(np.arange(rows), lengths)
    word = np.searchsorted(edges, rng.random(len(row)) * edges[-1]).astype(np.int64)
    keys, counts = np.unique(row * WORDS + word, return_counts=True)
    row, word = keys // WORDS, (keys % WORDS).astype(np.uint32)
    norm = K1 * (1 - B + B * lengths / lengths.mean())
    values = (counts * (K1 + 1) / (counts + norm[row])).astype(np.float32)
    starts = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=rows), out=starts[1:])
    return starts, word, values, counts


def questions(count, starts, words, seed=11):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        row = rng.integers(len(starts) - 1)
        own = rng.choice(words[starts[row]: starts[row + 1]], rng.integers(2, 7))
        found.append(np.unique(np.concatenate([own, rng.integers(0, 30, rng.integers(1, 3))]).astype(np.uint32)))
    return found


def structs(starts, words, values):
    made = np.zeros(len(starts) - 1, np.dtype([("count", np.int64), ("indices", np.int64), ("values", np.int64)]))
    made["count"] = np.diff(starts)
    made["indices"] = words.ctypes.data + starts[:-1] * 4
    made["values"] = values.ctypes.data + starts[:-1] * 4
    return made


def vectors(made):
    return made.ctypes.data_as(ctypes.POINTER(c.ww_sparse_vector))


class Memory:
    """ww_sparse_index."""

    name = "Warpwave, in memory"

    def __init__(self, starts, words, values, *_):
        self.index, made = ctypes.c_void_p(), structs(starts, words, values)
        if c.ww_sparse_create(ctypes.byref(self.index)) or c.ww_sparse_add(self.index, vectors(made), len(made)):
            raise RuntimeError(c.ww_error_message())

    def ask(self, query):
        ones, found = np.ones(len(query), np.float32), ctypes.c_void_p()
        made = structs(np.array([0, len(query)]), query, ones)
        sparse = c.ww_sparse_query(ctypes.sizeof(c.ww_sparse_query), made.ctypes.data, c.WW_SPARSE_IDF)
        asked = c.ww_query()
        c.ww_query_init(ctypes.byref(asked), ctypes.sizeof(asked))
        asked.query_count, asked.k, asked.sparse = 1, K, ctypes.addressof(sparse)
        if c.ww_sparse_search(self.index, ctypes.byref(asked), ctypes.byref(found)):
            raise RuntimeError(c.ww_error_message())
        count = c.ww_results_count(found, 0)
        scores = [ctypes.cast(c.ww_results_scores(found, 0), ctypes.POINTER(ctypes.c_float))[i] for i in range(count)]
        c.ww_results_destroy(found)
        return np.array(scores)


class Store:
    """A collection of a store, with dense vectors of one number."""

    name = "Warpwave, in a store"
    BATCH = 20_000

    def __init__(self, starts, words, values, folder, _):
        path = folder / f"sparse-{len(starts) - 1}.db"
        if not path.exists():
            new = path.with_suffix(".new")
            new.unlink(missing_ok=True)
            rows = warpwave.Store(str(new)).create("docs", dim=1, metric="dot")
            for at in range(0, len(starts) - 1, self.BATCH):
                cut = starts[at: at + self.BATCH + 1]
                batch = [(words[a:b], values[a:b]) for a, b in zip(cut, cut[1:])]
                rows.add(np.zeros((len(batch), 1), np.float32), sparse=batch)
            del rows
            for suffix in ("-wal", "-shm"):
                pathlib.Path(str(new) + suffix).unlink(missing_ok=True)
            new.rename(path)
        self.store = warpwave.Store(str(path))
        self.rows = self.store["docs"]

    def ask(self, query):
        return np.asarray(self.rows.search(sparse=(query, np.ones(len(query), np.float32)), k=K, modifier="idf").scores)


class Scipy:
    name = "scipy, CSC product"

    def __init__(self, starts, words, values, *_):
        from scipy import sparse
        rows = len(starts) - 1
        self.matrix = sparse.csr_matrix((values, words.astype(np.int32), starts), shape=(rows, WORDS)).tocsc()
        with_word = np.diff(self.matrix.indptr)
        self.idf = np.log1p((rows - with_word + 0.5) / (with_word + 0.5)).astype(np.float32)

    def ask(self, query):
        scores = self.matrix[:, query.astype(np.int64)] @ self.idf[query]
        best = np.argpartition(scores, -K)[-K:]
        return np.sort(scores[best])[::-1]


class Bm25s:
    name = "bm25s"

    def __init__(self, starts, words, _, __, counts):
        import bm25s
        tokens = np.repeat(words, counts)
        each = np.add.reduceat(counts, starts[:-1])
        ids = np.split(tokens.astype(np.int64), np.cumsum(each)[:-1])
        self.found = bm25s.BM25(k1=K1, b=B)
        self.found.index((ids, {str(i): i for i in range(WORDS)}), show_progress=False)

    def ask(self, query):
        scores = self.found.get_scores_from_ids(query.tolist())
        best = np.argpartition(scores, -K)[-K:]
        return np.sort(scores[best])[::-1]


class Fts5:
    name = "SQLite FTS5"

    def __init__(self, starts, words, _, folder, counts):
        path = folder / f"sparse-fts-{len(starts) - 1}.db"
        new = not path.exists()
        self.db = sqlite3.connect(str(path) + (".new" if new else ""))
        if new:
            self.db.execute("CREATE VIRTUAL TABLE docs USING fts5(text, content='', detail=none)")
            for at in range(len(starts) - 1):
                a, b = starts[at], starts[at + 1]
                self.db.execute("INSERT INTO docs(text) VALUES (?)", (" ".join(f"w{w}" for w in np.repeat(words[a:b], counts[a:b])),))
            self.db.commit()
            os.rename(str(path) + ".new", path)

    def ask(self, query):
        words = " OR ".join(f"w{w}" for w in query)
        found = self.db.execute("SELECT rank FROM docs WHERE docs MATCH ? ORDER BY rank LIMIT ?", (words, K)).fetchall()
        return -np.array([rank for rank, in found])


class Local:
    """qdrant-client without a server."""

    def __init__(self, starts, words, values, rows):
        import qdrant_client
        self.models = qdrant_client.models
        self.name, self.client = f"qdrant-client, local, {rows} rows", qdrant_client.QdrantClient(":memory:")
        idf = self.models.SparseVectorParams(modifier=self.models.Modifier.IDF)
        self.client.create_collection("docs", vectors_config={}, sparse_vectors_config={"words": idf})
        for at in range(0, rows, 1000):
            self.client.upsert("docs", [self.models.PointStruct(id=i, vector={"words": self.vector(words[starts[i]: starts[i + 1]], values[starts[i]: starts[i + 1]])}) for i in range(at, min(at + 1000, rows))])

    def vector(self, indices, values):
        return self.models.SparseVector(indices=indices.tolist(), values=values.tolist())

    def ask(self, query):
        found = self.client.query_points("docs", query=self.vector(query, np.ones(len(query))), using="words", limit=K).points
        return np.array([point.score for point in found])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--local-rows", type=int, default=10_000)
    parser.add_argument("--only", default="", help="contestants whose names have this text")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    starts, words, values, counts = passages(asked.rows)
    queries = questions(asked.queries, starts, words)
    print(f"{asked.rows} rows, {len(words) / asked.rows:.1f} words each; {asked.queries} queries of {statistics.mean(map(len, queries)):.1f} words")
    contestants = []
    for kind in (Memory, Store, Scipy, Bm25s, Fts5, Local):
        if asked.only not in kind.__name__:
            continue
        begin = time.perf_counter()
        try:
            made = kind(starts, words, values, min(asked.local_rows, asked.rows)) if kind is Local else kind(starts, words, values, asked.folder, counts)
        except ImportError as missing:
            print(f"bench: {missing}: left out", file=sys.stderr)
            continue
        contestants.append(made)
        print(f"{made.name}: loaded in {time.perf_counter() - begin:.1f} s", flush=True)
    times = {one.name: [] for one in contestants}
    for turn in range(asked.rounds + 1):
        for query in queries:
            answers = {}
            for one in contestants:
                if isinstance(one, Local) and turn != 1:
                    continue
                begin = time.perf_counter()
                answers[type(one)] = one.ask(query)
                if turn > 0:  # the first round warms up
                    times[one.name].append(time.perf_counter() - begin)
            for ours in (Memory, Store):
                if ours in answers and Scipy in answers and not np.allclose(answers[ours], answers[Scipy], rtol=1e-5):
                    sys.exit(f"{ours.name} and scipy differ: {answers[ours]} {answers[Scipy]}")
    table = [("contestant", "rows", "median ms", "90% ms")]
    for one in contestants:
        rows = min(asked.local_rows, asked.rows) if isinstance(one, Local) else asked.rows
        taken = 1e3 * np.array(times[one.name])
        table.append((one.name, rows, f"{np.median(taken):.2f}", f"{np.percentile(taken, 90):.2f}"))
    for line in table:
        print("{:40} {:>10} {:>10} {:>10}".format(*line))


if __name__ == "__main__":
    main()
