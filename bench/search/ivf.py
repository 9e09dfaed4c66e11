#!/usr/bin/env python3
"""An IVF index beside FAISS's IndexIVFFlat on the CPU: time to build, then time and recall by nprobe, one query and many.

    OMP_PROC_BIND=close OMP_PLACES=cores bench/search/ivf.py [--rows N] [--dim D] [--nlist L] [--separated | --file ROWS.npy]

Without a file the rows are clustered: mixtures of 1,000 centers with 12 directions of their own each, so that neighbours are not only a
matter of the nearest center; with --separated each is near one of 1,000 centers. 2,000 rows are the queries and are not in the index: of a file ones that are drawn by a seed. Both libraries take
turns, nprobe by nprobe, so that other work on the machine slows both. FAISS is left out where it is not installed.
"""
import argparse
import os
import time

import numpy as np


def clustered(rows, dim):
    random = np.random.default_rng(1)
    centers = random.normal(size=(1000, dim)).astype(np.float32)
    directions = random.normal(size=(1000, 12, dim)).astype(np.float32) * 0.35
    of_row = random.integers(0, 1000, rows)
    made = np.empty((rows, dim), np.float32)
    for first in range(0, rows, 50_000):
        some = of_row[first:first + 50_000]
        weights = random.normal(size=(len(some), 12)).astype(np.float32)
        made[first:first + 50_000] = centers[some] + np.einsum("rk,rkd->rd", weights, directions[some]) + random.normal(size=(len(some), dim)) * 0.15
    return made


def recall(truth, found):
    return np.mean([len(set(a) & set(b)) / len(a) for a, b in zip(truth.tolist(), found.tolist())])


def median_ms(call, queries):
    call(queries[0])
    times = []
    for query in queries:
        begun = time.perf_counter()
        call(query)
        times.append(time.perf_counter() - begun)
    return 1e3 * float(np.median(times))


def best_ms(call, queries):
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        call(queries)
        times.append(time.perf_counter() - begun)
    return 1e3 * min(times)


def separated(rows, dim):
    """Each row near one of 1,000 centers that are far from each other."""
    random = np.random.default_rng(3)
    centers = random.normal(size=(1000, dim)).astype(np.float32)
    return (centers[random.integers(0, 1000, rows)] + 0.15 * random.normal(size=(rows, dim))).astype(np.float32)


def drawn(path):
    """The rows of a file, those that will be queries last."""
    rows = np.load(path).astype(np.float32)
    return rows[np.random.default_rng(1).permutation(len(rows))[::-1]]


def build_theirs(rows, nlist):
    try:
        import faiss
    except ImportError:
        print("faiss     is not installed")
        return None
    begun = time.perf_counter()
    theirs = faiss.IndexIVFFlat(faiss.IndexFlatL2(rows.shape[1]), rows.shape[1], nlist)
    theirs.train(rows)
    theirs.add(rows)
    print(f"faiss     build {time.perf_counter() - begun:.1f} s", flush=True)
    return theirs


def line(name, nprobe, one, many, found, truth, more=""):
    print(f"{name:9} nprobe {nprobe:5}  one query {one:7.3f} ms  2,000 queries {many:8.1f} ms  recall@10 {recall(truth, found):.4f}  {more}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--dim", type=int, default=50)
    parser.add_argument("--nlist", type=int, default=1024)
    parser.add_argument("--separated", action="store_true")
    parser.add_argument("--file")
    asked = parser.parse_args()
    import warpwave

    rows = drawn(asked.file) if asked.file else (separated if asked.separated else clustered)(asked.rows + 2000, asked.dim)
    rows, queries = np.ascontiguousarray(rows[:-2000]), np.ascontiguousarray(rows[-2000:])
    print(f"{len(rows):,} rows of {rows.shape[1]}, {asked.nlist} lists, l2, {os.cpu_count()} cores")
    ours = warpwave.Collection(rows.shape[1], metric="l2", device="cpu")
    ours.add(rows)
    truth = ours.search(queries, 10, ids=False).rows
    line("warpwave", 0, median_ms(lambda q: ours.search(q, 10, ids=False), queries[:200]), best_ms(lambda q: ours.search(q, 10, ids=False), queries), truth, truth, "exact")
    begun = time.perf_counter()
    info = ours.build_ivf(asked.nlist)
    print(f"warpwave  build {time.perf_counter() - begun:.1f} s, {info.nlist} lists, largest {info.rows_largest}, loss {info.loss:.4f}", flush=True)
    line("warpwave", 0, median_ms(lambda q: ours.search(q, 10, ids=False), queries[:200]), best_ms(lambda q: ours.search(q, 10, ids=False), queries), truth, truth, "exact, with the index")
    theirs = build_theirs(rows, asked.nlist)
    for nprobe in (1, 4, 16, 32, 64, 128, 256):
        call = lambda q: ours.search(q, 10, ids=False, nprobe=nprobe)  # noqa: B023, E731
        found = call(queries)
        line("warpwave", nprobe, median_ms(call, queries[:200]), best_ms(call, queries), found.rows, truth, f"proven {found.proven.mean():.2f} of 10")
        if theirs:
            theirs.nprobe = nprobe
            found = theirs.search(queries, 10)[1]
            line("faiss", nprobe, median_ms(lambda q: theirs.search(q[None], 10), queries[:200]), best_ms(lambda q: theirs.search(q, 10), queries), found, truth)


if __name__ == "__main__":
    main()
