#!/usr/bin/env python3
"""Recall of an IVF index with filters, and after growth.

    bench/search/ivf_recall.py [--file ROWS.npy] [--rows N] [--dim D] [--nlist L] [--queries Q]

Filters admit rows at random: a half, 1%, 0.1%, 0.01%. The truth is the exact search with the same filter. Growth: the index is built of an eleventh
of the rows and the others are added in ten batches, so that there are ten times as many new rows. Rows and queries are those of ivf.py.
"""
import argparse

import numpy as np
from ivf import clustered, drawn, recall

import warpwave

SHARES = (0.5, 0.01, 0.001, 0.0001)
PROBES = (4, 16, 64)
K = 10


def filters(c, queries):
    random = np.random.default_rng(2)
    print("| rows admitted | " + " | ".join(f"nprobe {p}" for p in PROBES) + " |\n|---" + "|---" * len(PROBES) + "|")
    for share in SHARES:
        mask = random.random(len(c)) < share
        truth = c.search(queries, K, ids=False, mask=mask).rows
        cells = []
        for nprobe in PROBES:
            found = c.search(queries, K, ids=False, mask=mask, nprobe=nprobe).rows
            assert found.shape == truth.shape and mask[found].all()
            cells.append(f"{recall(truth, found):.4f}")
        print(f"| {100 * share:g}%, {int(mask.sum()):,} | " + " | ".join(cells) + " |", flush=True)


def growth(rows, queries, nlist):
    first = len(rows) // 11
    c = warpwave.Collection(rows.shape[1], metric="l2", device="cpu")
    for number, begin in enumerate(range(0, len(rows), first)):
        if number == 0 or len(rows) - begin >= first:
            c.add(rows[begin:begin + first])
        if number == 0:
            c.build_ivf(nlist)
        if number in (0, 1, 5, 10):
            info = c.ivf
            truth = c.search(queries, K, ids=False).rows
            cells = [f"{recall(truth, c.search(queries, K, ids=False, nprobe=p).rows):.4f}" for p in PROBES]
            print(f"| {info.rows:,} | {info.nlist} | {info.rows_largest / info.rows_mean:.2f} | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--dim", type=int, default=50)
    parser.add_argument("--nlist", type=int, default=1024)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--file")
    asked = parser.parse_args()
    rows = drawn(asked.file) if asked.file else clustered(asked.rows + 2000, asked.dim)
    rows, queries = np.ascontiguousarray(rows[:-2000]), np.ascontiguousarray(rows[-2000:][:asked.queries])
    print(f"{len(rows):,} rows of {rows.shape[1]}, {asked.nlist} lists, l2, {len(queries)} queries, recall@{K}")
    c = warpwave.Collection(rows.shape[1], metric="l2", device="cpu")
    c.add(rows)
    c.build_ivf(asked.nlist)
    filters(c, queries)
    print("| rows | lists | largest / mean | " + " | ".join(f"nprobe {p}" for p in PROBES) + " |\n|---|---|---" + "|---" * len(PROBES) + "|")
    growth(rows, queries, asked.nlist)


if __name__ == "__main__":
    main()
