#!/usr/bin/env python3
"""Maps beside umap-learn: seconds, and how many neighbours on the map are neighbours by their vectors (scikit-learn's trustworthiness).

    PYTHONPATH=python WARPWAVE_LIBRARY=build/libwarpwave.so python3 bench/map/map_peers.py [--glosses STORE] [--rows N] [--data FOLDER]

Fashion-MNIST's 10,000 test images are Debian's dataset-fashion-mnist, or in FOLDER; STORE is what scripts/demo/demo-text.sh makes, of which 10,000 rows are
taken at equal distances. Needs umap-learn and scikit-learn. Both maps have 15 neighbours and are made and judged in one run; the peer's first map, which
compiles its code, is of 500 rows and does not count.
"""
import argparse
import gzip
import pathlib
import time

import numpy as np
import umap
from sklearn.manifold import trustworthiness

import warpwave


def timed(work):
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def fashion(folder):
    raw = gzip.open(pathlib.Path(folder) / "t10k-images-idx3-ubyte.gz").read()
    return np.frombuffer(raw[16:], np.uint8).reshape(-1, 784).astype(np.float32)


def glosses(path, count):
    with warpwave.Store(path, device="cpu", read_only=True) as store:
        everything = store["glosses"].get(vectors=True)
        vectors = np.asarray(everything.vectors)
    return np.ascontiguousarray(vectors[np.arange(count) * len(vectors) // count])


def compare(name, rows, metric):
    collection = warpwave.Collection(rows.shape[1], metric="l2" if metric == "euclidean" else metric, device="cpu")
    collection.add(rows)
    umap.UMAP(metric=metric, random_state=1).fit_transform(rows[:500])
    ours, wall, cpu = timed(lambda: collection.map().points)
    theirs, peer_wall, peer_cpu = timed(lambda: umap.UMAP(metric=metric, random_state=1).fit_transform(rows))
    for who, points, seconds, threads in (("Warpwave", ours, wall, cpu), (f"umap-learn {umap.__version__}", theirs, peer_wall, peer_cpu)):
        kept = trustworthiness(rows, points, n_neighbors=15, metric=metric)
        print(f"| {name}, {len(rows):,} x {rows.shape[1]} | {who} | {seconds:.1f} | {threads:.1f} | {kept:.4f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--glosses")
    parser.add_argument("--rows", type=int, default=10000)
    options = parser.parse_args()
    print("| rows | | s | s of threads | trustworthiness, 15 neighbours |\n|---|---|--:|--:|--:|")
    compare("Fashion-MNIST", fashion(options.data)[:options.rows], "euclidean")
    if options.glosses:
        compare("WordNet's glosses by MiniLM", glosses(options.glosses, options.rows), "cosine")


if __name__ == "__main__":
    main()
