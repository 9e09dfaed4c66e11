#!/usr/bin/env python3
"""Screened search on a GPU beside the plain one and beside PyTorch (matmul and topk in fp32, TF32 and bf16), in one run.

    python3 bench/search/gpu_screen.py LIBRARY [--device cuda:0] [--sizes 1000000x128,...] [--kinds normal,clustered]

Prints markdown: milliseconds of one search through the C interface (results on the host), of PyTorch (results on the host), rows
kept, and which fraction of the neighbours TF32 and bf16 get wrong. The results with and without the screen must be the same
bits, or it ends with an error. k is 10, the metric dot on normalised rows.
"""
import argparse
import ctypes
import pathlib
import statistics
import sys
import time

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/codeobjects"))
from structs import Header  # noqa: E402  the structs of the headers, read from them

api = Header(ROOT / "include/warpwave/vectors.h")
K, DOT, INT8, NONE = 10, 2, 0, 1
# rows, numbers a row, queries, milliseconds wanted
CASES = [(1000000, 128, 1, 0.08), (1000000, 128, 1000, 1.6), (1000000, 128, 10000, 13.0), (1000000, 768, 1, 0.30),
         (1000000, 768, 10000, 40.0), (10000000, 128, 1000, 11.0)]
PEAK_INT8, PEAK_BYTES = 915e12, 4.8e12


class Library:
    def __init__(self, path, device):
        self.c = ctypes.CDLL(path)
        self.c.ww_error_message.restype = ctypes.c_char_p
        self.c.ww_collection_destroy.argtypes = [ctypes.c_void_p]
        self.c.ww_device_close.argtypes = [ctypes.c_void_p]
        self.device = ctypes.c_void_p()
        self.ok(self.c.ww_device_open(device.encode(), ctypes.byref(self.device)))

    def ok(self, status):
        if status != 0:
            raise SystemExit("error: " + self.c.ww_error_message().decode())

    def collection(self, rows, screen):
        made = ctypes.c_void_p()
        config = api.ww_collection_config(struct_size=ctypes.sizeof(api.ww_collection_config), dim=rows.shape[1], metric=DOT,
                                          screen=screen)
        self.ok(self.c.ww_collection_create(self.device, ctypes.byref(config), ctypes.byref(made)))
        given = api.ww_rows(struct_size=ctypes.sizeof(api.ww_rows), count=len(rows), dim=rows.shape[1], vectors=rows.ctypes.data)
        began = time.perf_counter()
        self.ok(self.c.ww_collection_add(made, ctypes.byref(given)))
        return made, time.perf_counter() - began

    def both(self, rows):
        """A collection with the screen and one without, and the least seconds of an add to each: the first one of all makes the
        driver load kernels and take memory."""
        least = {INT8: float("inf"), NONE: float("inf")}
        for last in (False, True):
            made = {}
            for screen in (NONE, INT8):
                made[screen], seconds = self.collection(rows, screen)
                least[screen] = min(least[screen], seconds)
                if not last:
                    self.c.ww_collection_destroy(made[screen])
        return made[INT8], made[NONE], least[INT8], least[NONE]

    def search(self, collection, queries):
        rows, scores = np.empty((len(queries), K), np.int64), np.empty((len(queries), K), np.float32)
        stats = api.ww_search_stats(struct_size=ctypes.sizeof(api.ww_search_stats))
        asked = api.ww_query(struct_size=ctypes.sizeof(api.ww_query), queries=queries.ctypes.data, query_count=len(queries),
                             dim=queries.shape[1], k=K, stats=ctypes.addressof(stats))

        def once():
            self.ok(self.c.ww_collection_search(collection, ctypes.byref(asked), rows.ctypes.data_as(ctypes.c_void_p),
                                                scores.ctypes.data_as(ctypes.c_void_p)))
        return once, rows, scores, stats


def milliseconds(once, least=5, budget=1.5):
    """The median of some runs, after two that do not count."""
    once()
    once()
    times, began = [], time.perf_counter()
    while len(times) < least or (time.perf_counter() - began < budget and len(times) < 300):
        start = time.perf_counter()
        once()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def make_rows(kind, count, dim, generator):
    if kind == "normal":
        rows = torch.randn(count, dim, generator=generator, device="cuda")
    else:
        centres = torch.randn(1000, dim, generator=generator, device="cuda")
        chosen = torch.randint(0, 1000, (count,), generator=generator, device="cuda")
        rows = centres[chosen]
        rows *= 1 + 0.01 * torch.randn(count, dim, generator=generator, device="cuda")
    rows /= rows.norm(dim=1, keepdim=True)
    return rows


def torch_search(rows, queries, found):
    """In pieces of queries whose scores fit; as a person would write it."""
    piece = max(1, min(len(queries), int(8e9) // (len(rows) * 4)))

    def once():
        given = torch.from_numpy(queries).cuda().to(rows.dtype)
        for first in range(0, len(given), piece):
            scores, at = (given[first:first + piece] @ rows.T).topk(K, dim=1)
            found[first:first + piece] = at.cpu().numpy()
            scores.cpu()
    return once


def wrong(found, truth):
    return 1 - np.mean([len(set(a) & set(b)) / K for a, b in zip(found.tolist(), truth.tolist())])


def peers(rows, queries, truth):
    """Milliseconds and wrong neighbours by precision."""
    result = {}
    for name, tf32, dtype in (("fp32", False, torch.float32), ("TF32", True, torch.float32), ("bf16", False, torch.bfloat16)):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        found = np.empty((len(queries), K), np.int64)
        kept = rows.to(dtype)
        result[name] = milliseconds(torch_search(kept, queries, found), least=3, budget=0.5), wrong(found, truth)
        del kept
    return result


def floor_ms(count, dim, queries):
    return max(2.0 * count * dim * queries / PEAK_INT8, count * (dim + 12.0) / PEAK_BYTES) * 1e3


def run_case(library, kind, rows, count, dim, query_counts):
    generator = torch.Generator(device="cuda").manual_seed(1234)
    host = rows.cpu().numpy()
    screened, plain, add_screened, add_plain = library.both(host)
    del host
    for queries_count, wanted in query_counts:
        queries = make_rows("normal", queries_count, dim, generator)
        if kind == "clustered":
            chosen = torch.randint(0, count, (queries_count,), generator=generator, device="cuda")
            queries = rows[chosen] * (1 + 0.01 * torch.randn(queries_count, dim, generator=generator, device="cuda"))
        queries = queries.cpu().numpy()
        once, found, scores, stats = library.search(screened, queries)
        once_plain, truth, truth_scores, _ = library.search(plain, queries)
        ours, without = milliseconds(once), milliseconds(once_plain, least=3, budget=0.5)
        if not (np.array_equal(found, truth) and np.array_equal(scores.view(np.uint32), truth_scores.view(np.uint32))):
            raise SystemExit(f"error: {kind} {count} x {dim}, {queries_count} queries: the screen changes the results")
        torch_ms = peers(rows, queries, truth)
        floor = floor_ms(count, dim, queries_count)
        print(f"| {kind} | {count} x {dim} | {queries_count} | {ours:.3f} | {wanted} | {floor:.3f} | {ours / floor:.1f} | {without:.3f} | "
              + " | ".join(f"{torch_ms[n][0]:.3f}" for n in ("fp32", "TF32", "bf16"))
              + f" | {torch_ms['TF32'][1]:.2%} | {torch_ms['bf16'][1]:.2%} | {stats.rows_kept / queries_count:.0f} | "
              f"{stats.fallback_queries} | {stats.certificate:.3g} | {add_screened / add_plain:.2f} |", flush=True)
    for collection in (screened, plain):
        library.c.ww_collection_destroy(collection)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--sizes", default="", help="only these, as ROWSxDIM,ROWSxDIM")
    parser.add_argument("--kinds", default="normal,clustered")
    options = parser.parse_args()
    library = Library(options.library, options.device)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, k = {K}, milliseconds\n")
    print("| data | rows | queries | screened | wanted | floor | to floor | plain | torch fp32 | TF32 | bf16 | TF32 wrong | bf16 wrong | "
          "kept a query | fallbacks | certificate | add, to plain |")
    print("|" + "---|" * 17)
    sizes = sorted({(count, dim) for count, dim, _, _ in CASES}, key=lambda size: size[0] * size[1])
    for count, dim in sizes:
        if options.sizes and f"{count}x{dim}" not in options.sizes.split(","):
            continue
        for kind in options.kinds.split(","):
            generator = torch.Generator(device="cuda").manual_seed(count + dim)
            rows = make_rows(kind, count, dim, generator)
            run_case(library, kind, rows, count, dim, [(q, w) for c, d, q, w in CASES if (c, d) == (count, dim)])
            del rows
            torch.cuda.empty_cache()
    library.c.ww_device_close(library.device)


if __name__ == "__main__":
    main()
