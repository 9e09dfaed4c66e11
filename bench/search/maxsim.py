#!/usr/bin/env python3
"""Search of multivectors by MaxSim beside PyTorch's einsum (fp32, and on a GPU TF32) and NumPy's matmul, in one run.

    python3 bench/search/maxsim.py [--device cpu] [--documents 10000] [--tokens 128] [--dim 96] [--query 32] [--k 10] [--repeat 7]

Prints markdown: the median of the milliseconds of one search, results on the host, and the processor seconds of a search on the CPU. Vectors are random,
of length 1. All must find the same documents with nearly the same scores, except TF32, whose wrong ones are counted.
"""
import argparse
import ctypes
import os
import statistics
import time

import numpy as np

import warpwave
from warpwave import _native as c
from warpwave._errors import check
from warpwave._multi import as_multi, multi_query
from warpwave.device import resolve

try:
    import torch
except ImportError:
    torch = None
BATCH = 10000  # documents added at a time


def timed(once, repeat):
    """The median of the milliseconds and of the processor seconds."""
    once()
    wall, processor = [], []
    for _ in range(repeat):
        before = os.times()
        began = time.perf_counter()
        once()
        wall.append(time.perf_counter() - began)
        after = os.times()
        processor.append(after.user + after.system - before.user - before.system)
    return statistics.median(wall) * 1e3, statistics.median(processor)


def unit(random, *shape):
    vectors = random.standard_normal(shape, dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


class Ours:
    def __init__(self, device, dim):
        self.index = ctypes.c_void_p()
        self.device = resolve(device)._open()
        check(c.ww_multi_create(self.device.pointer, dim, c.WW_DOT, ctypes.byref(self.index)))

    def add(self, documents):
        for first in range(0, len(documents), BATCH):
            some = as_multi(documents[first:first + BATCH])
            check(c.ww_multi_add(self.index, ctypes.cast(some.pointer, ctypes.POINTER(c.ww_multivector)), some.count))

    def search(self, query, k):
        given = as_multi(query)
        multi = multi_query(given)
        asked = c.ww_query(ctypes.sizeof(c.ww_query), query_count=1, k=k, multi=ctypes.addressof(multi))
        found = ctypes.c_void_p()
        check(c.ww_multi_search(self.index, ctypes.byref(asked), ctypes.byref(found)))
        rows = np.ctypeslib.as_array(ctypes.cast(c.ww_results_rows(found, 0), ctypes.POINTER(ctypes.c_int64)), (k,)).copy()
        scores = np.ctypeslib.as_array(ctypes.cast(c.ww_results_scores(found, 0), ctypes.POINTER(ctypes.c_float)), (k,)).copy()
        c.ww_results_destroy(found)
        return rows, scores


def by_torch(documents, query, k, tf32):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    best = torch.einsum("qd,ntd->nqt", query, documents).amax(2).sum(1).topk(k)
    return best.indices.cpu().numpy(), best.values.cpu().numpy()


def by_numpy(documents, query, k):
    scores = np.concatenate([(some @ query.T).max(1).sum(1) for some in np.array_split(documents, max(1, len(documents) // 64))])
    best = np.argsort(-scores, kind="stable")[:k]
    return best, scores[best]


def main():
    parser = argparse.ArgumentParser()
    for name, default in (("documents", 10000), ("tokens", 128), ("dim", 96), ("query", 32), ("k", 10), ("repeat", 7)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--device", default="cpu")
    wanted = parser.parse_args()
    on_gpu = wanted.device != "cpu"
    random = np.random.default_rng(1)
    documents = np.empty((wanted.documents, wanted.tokens, wanted.dim), np.float32)
    for first in range(0, wanted.documents, BATCH):
        documents[first:first + BATCH] = unit(random, *documents[first:first + BATCH].shape)
    query = unit(random, wanted.query, wanted.dim)
    ours = Ours(wanted.device, wanted.dim)
    began = time.perf_counter()
    ours.add(documents)
    print(f"{wanted.documents:,} documents x {wanted.tokens} vectors x {wanted.dim} numbers, a query of {wanted.query} vectors, k {wanted.k}, on {wanted.device}; added in "
          f"{time.perf_counter() - began:.1f} s\n\n| by | ms | CPU s | wrong |\n|---|---|---|---|")
    ways = {"Warpwave, exact": lambda: ours.search(query, wanted.k)}
    if torch is not None:
        place = "cuda" if on_gpu else "cpu"
        there, asked = torch.from_numpy(documents).to(place), torch.from_numpy(query).to(place)
        ways["PyTorch einsum, fp32"] = lambda: by_torch(there, asked, wanted.k, False)
        if on_gpu:
            ways["PyTorch einsum, TF32"] = lambda: by_torch(there, asked, wanted.k, True)
    if not on_gpu:
        ways["NumPy matmul"] = lambda: by_numpy(documents, query, wanted.k)
    rows, scores = ways["Warpwave, exact"]()
    for name, once in ways.items():
        found, values = once()
        wrong = len(set(rows.tolist()) - set(found.tolist()))
        if "TF32" not in name and (wrong or not np.allclose(scores, values, rtol=1e-5)):
            raise SystemExit(f"error: {name} found {found} with {values}, and Warpwave {rows} with {scores}")
        spent, processor = timed(once, wanted.repeat)
        print(f"| {name} | {spent:.2f} | {processor:.3f} | {wrong} |", flush=True)


main()
