#!/usr/bin/env python3
"""What Python adds to a call, and Fashion-MNIST beside scikit-learn's brute force and FAISS's flat index.

    PYTHONPATH=python WARPWAVE_LIBRARY=build/libwarpwave.so python3 bench/search/python_search.py [--calls] [--threads] [--peers] [--data FOLDER]

Without a word all three. The data are Debian's dataset-fashion-mnist, or a FOLDER with its four files. All figures of a table are of one run;
times are medians, of the peers' long searches the best of two.
"""
import argparse
import gzip
import pathlib
import statistics
import threading
import time
from ctypes import byref, c_void_p, sizeof

import numpy as np

import warpwave
from warpwave import _native

K = 10


def microseconds(once, number=50, repeats=300):
    """A call's time: the best of some rounds, since what else runs on the machine only adds to it."""
    rounds = []
    for _ in range(repeats):
        began = time.perf_counter()
        for _ in range(number):
            once()
        rounds.append((time.perf_counter() - began) / number * 1e6)
    return min(rounds)


def calls():
    random = np.random.default_rng(1)
    collection = warpwave.Collection(128, device="cpu")
    collection.add(random.standard_normal((1000, 128)))
    query = random.standard_normal(128).astype(np.float32)
    asked, found = _native.ww_query(sizeof(_native.ww_query), query.ctypes.data, 1, 128, 0, K), c_void_p()
    asked.fetch = _native.WW_FETCH_IDS
    pointer, given, taken = collection._handle.pointer, byref(asked), byref(found)

    def plain():
        _native.ww_collection_query(pointer, given, taken)
        _native.ww_results_destroy(found)

    def with_arrays():
        results = collection.search(query, K)
        return results.ids, results.scores

    c = microseconds(plain)
    print(f"one query of 1,000 rows of 128, k = {K}: the C call {c:.1f} us; search() {microseconds(lambda: collection.search(query, K)) - c:.1f} us more; "
          f"with .ids and .scores {microseconds(with_arrays) - c:.1f} us more")
    array = np.ones((10, 10), np.float32)
    print(f"from_dlpack() of a NumPy array: {microseconds(lambda: warpwave.from_dlpack(array)):.1f} us")


def fashion(folder):
    def images(name):
        path = next(path for path in (folder / name, folder / f"{name}.gz") if path.exists())
        data = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
        return np.frombuffer(data, np.uint8, offset=16).reshape(-1, 784).astype(np.float32)

    return images("train-images-idx3-ubyte"), images("t10k-images-idx3-ubyte")


def seconds(once, repeats=3):
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        once()
        times.append(time.perf_counter() - began)
    return statistics.median(times) if repeats > 2 else min(times)


def peers(rows, queries):
    from sklearn.neighbors import NearestNeighbors

    collection = warpwave.Collection(784, metric="l2", device="cpu")
    collection.add(rows)
    collection.search(queries[:100], K)
    ours = seconds(lambda: collection.search(queries, K, ids=False).rows)
    print(f"Warpwave: {ours:.2f} s, {len(queries) / ours:,.0f} queries a second")
    wanted = collection.search(queries, K).rows
    try:
        import faiss
        index = faiss.IndexFlatL2(784)
        index.add(rows)
        index.search(queries[:100], K)
        theirs = seconds(lambda: index.search(queries, K), 2)
        same = (index.search(queries, K)[1] == wanted).mean()
        print(f"FAISS flat: {theirs:.2f} s, {theirs / ours:.1f} times ours; {same:.4f} of its positions are ours")
    except ImportError:
        print("FAISS is not installed")
    neighbors = NearestNeighbors(n_neighbors=K, algorithm="brute", n_jobs=-1).fit(rows)
    theirs = seconds(lambda: neighbors.kneighbors(queries), 2)
    print(f"scikit-learn brute: {theirs:.2f} s, {theirs / ours:.1f} times ours")


def threads(rows, queries):
    """With WARPWAVE_THREADS=1 in the environment: two threads against one, the same queries."""
    collection = warpwave.Collection(784, metric="l2", device="cpu")
    collection.add(rows)
    halves = [queries[: len(queries) // 2], queries[len(queries) // 2:]]

    def both():
        running = [threading.Thread(target=collection.search, args=(half, K)) for half in halves]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()

    one, two = seconds(lambda: [collection.search(half, K) for half in halves]), seconds(both)
    print(f"one thread {one:.2f} s, two threads {two:.2f} s: {one / two:.2f} times")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    for word in ("calls", "threads", "peers"):
        parser.add_argument(f"--{word}", action="store_true")
    parser.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--queries", type=int, default=10000)
    options = parser.parse_args()
    everything = not (options.calls or options.threads or options.peers)
    if options.calls or everything:
        calls()
    if options.threads or options.peers or everything:
        rows, queries = fashion(options.data)
        queries = queries[: options.queries]
        if options.peers or everything:
            peers(rows, queries)
        if options.threads or everything:
            threads(rows, queries)


if __name__ == "__main__":
    main()
