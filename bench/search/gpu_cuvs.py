#!/usr/bin/env python3
"""Exact search on a GPU beside cuVS: its brute force, CAGRA and IVF-Flat at several recalls, in one run.

    python3 bench/search/gpu_cuvs.py LIBRARY [--device cuda:0] [--only fashion,glove,1M,10M] [--file NAME=BASE.npy,QUERIES.npy]

Needs the packages cuvs-cu13 (with libcuvs-cu13, pylibraft-cu13, rmm-cu13, nvidia-nvjitlink and what those need), torch and numpy. The
data have the shapes of Fashion-MNIST (60,000 x 784), GloVe (390,000 x 50) and of 1 and 10 million rows of 128 numbers, made from a seed;
--file takes real ones. k is 10, the metric l2, 10,000 queries.

Prints markdown: milliseconds of one search of all queries from the host's memory to the host's memory, medians; how long the index took
to build; and the recall, the share of the true ten nearest that were found. Ours are exact, and what the others are compared with.
"""
import argparse
import ctypes
import importlib.metadata
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
K, L2, INT8, QUERIES = 10, 1, 0, 10000
# name: rows, numbers a row, numbers that they vary by: real data lie near a surface of few dimensions
SHAPES = {"fashion": (60000, 784, 24), "glove": (390000, 50, 40), "1M": (1000000, 128, 64), "10M": (10000000, 128, 64)}


class Library:
    def __init__(self, path, device):
        self.c = ctypes.CDLL(path)
        self.c.ww_error_message.restype = ctypes.c_char_p
        self.c.ww_collection_destroy.argtypes = [ctypes.c_void_p]
        self.device = ctypes.c_void_p()
        self.ok(self.c.ww_device_open(device.encode(), ctypes.byref(self.device)))

    def ok(self, status):
        if status != 0:
            raise SystemExit("error: " + self.c.ww_error_message().decode())

    def collection(self, rows):
        made = ctypes.c_void_p()
        config = api.ww_collection_config(struct_size=ctypes.sizeof(api.ww_collection_config), dim=rows.shape[1], metric=L2, screen=INT8)
        self.ok(self.c.ww_collection_create(self.device, ctypes.byref(config), ctypes.byref(made)))
        given = api.ww_rows(struct_size=ctypes.sizeof(api.ww_rows), count=len(rows), dim=rows.shape[1], vectors=rows.ctypes.data)
        self.ok(self.c.ww_collection_add(made, ctypes.byref(given)))
        return made

    def search(self, collection, queries):
        rows, scores = np.empty((len(queries), K), np.int64), np.empty((len(queries), K), np.float32)
        asked = api.ww_query(struct_size=ctypes.sizeof(api.ww_query), queries=queries.ctypes.data, query_count=len(queries),
                             dim=queries.shape[1], k=K)

        def once():
            self.ok(self.c.ww_collection_search(collection, ctypes.byref(asked), rows.ctypes.data_as(ctypes.c_void_p),
                                                scores.ctypes.data_as(ctypes.c_void_p)))
            return rows
        return once


def milliseconds(once, least=5, budget=1.0):
    """The median of some runs, after eight that do not count: in those our library may try two ways."""
    for _ in range(8):
        found = once()
    times, began = [], time.perf_counter()
    while len(times) < least or (time.perf_counter() - began < budget and len(times) < 100):
        start = time.perf_counter()
        found = once()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times), np.array(found)


def make(rows, dim, rank, seed):
    """Rows around ten centres, spread along `rank` directions, with a little noise; on the host."""
    generator = torch.Generator(device="cuda").manual_seed(7)
    centres = torch.randn(10, dim, generator=generator, device="cuda")
    directions = torch.randn(rank, dim, generator=generator, device="cuda") / rank**0.5
    generator.manual_seed(seed)
    made = np.empty((rows, dim), np.float32)
    for first in range(0, rows, 1 << 20):
        count = min(1 << 20, rows - first)
        chosen = torch.randint(0, 10, (count,), generator=generator, device="cuda")
        some = centres[chosen] + torch.randn(count, rank, generator=generator, device="cuda") @ directions
        some += 0.05 * torch.randn(count, dim, generator=generator, device="cuda")
        made[first:first + count] = some.cpu().numpy()
    return made


def load(name, files):
    if name in files:
        base, queries = (np.ascontiguousarray(np.load(path), dtype=np.float32) for path in files[name].split(","))
        return base, queries[:QUERIES]
    rows, dim, rank = SHAPES[name]
    return make(rows, dim, rank, 1), make(QUERIES, dim, rank, 2)


def aligned(vectors):
    """With zeros behind each vector up to whole 16 bytes, which change no distance: cuVS copies its data set at every search otherwise."""
    return np.pad(vectors, ((0, 0), (0, -vectors.shape[1] % 4)))


def host(neighbors):
    return neighbors.copy_to_host() if hasattr(neighbors, "copy_to_host") else torch.as_tensor(neighbors, device="cuda").cpu().numpy()


def asking(search, queries):
    """From the host to the host, as ours."""
    def once():
        return host(search(torch.from_numpy(queries).cuda())[1])
    return once


def contestants(rows, queries):
    """Name, seconds to build, and what searches once; one after the other, so that each index is gone before the next is built."""
    from cuvs.neighbors import brute_force, cagra, ivf_flat  # noqa: PLC0415  said to be missing where it is

    def timed(build):
        torch.cuda.synchronize()
        start = time.perf_counter()
        index = build()
        torch.cuda.synchronize()
        return index, time.perf_counter() - start

    index, seconds = timed(lambda: brute_force.build(rows, metric="sqeuclidean"))
    yield "cuVS brute force", seconds, asking(lambda q: brute_force.search(index, q, K), queries)
    del index
    graph, seconds = timed(lambda: cagra.build(cagra.IndexParams(metric="sqeuclidean"), rows))
    for size in (32, 64, 128, 256):
        parameters = cagra.SearchParams(itopk_size=size)
        yield f"cuVS CAGRA, itopk {size}", seconds, asking(lambda q, p=parameters: cagra.search(p, graph, q, K), queries)
    del graph
    lists = max(64, int(len(rows) ** 0.5))
    inverted, seconds = timed(lambda: ivf_flat.build(ivf_flat.IndexParams(n_lists=lists, metric="sqeuclidean"), rows))
    for probes in (4, 16, 64):
        parameters = ivf_flat.SearchParams(n_probes=probes)
        yield (f"cuVS IVF-Flat, {probes} of {lists} lists", seconds,
               asking(lambda q, p=parameters: ivf_flat.search(p, inverted, q, K), queries))


def recall(found, truth):
    return np.mean([len(set(a) & set(b)) / K for a, b in zip(found.tolist(), truth.tolist())])


def run(library, name, files):
    base, queries = load(name, files)
    start = time.perf_counter()
    collection = library.collection(base)
    added = time.perf_counter() - start
    ours, truth = milliseconds(library.search(collection, queries))
    shape = f"{name}: {base.shape[0]} x {base.shape[1]}, {len(queries)} queries"
    print(f"| {shape} | Warpwave, exact | {ours:.2f} | 1.00 | {added:.2f} | 1.0000 |", flush=True)
    try:
        for what, seconds, once in contestants(torch.from_numpy(aligned(base)).cuda(), aligned(queries)):
            theirs, found = milliseconds(once, least=3)
            print(f"| {shape} | {what} | {theirs:.2f} | {theirs / ours:.2f} | {seconds:.2f} | {recall(found, truth):.4f} |", flush=True)
    except Exception as problem:  # noqa: BLE001  a peer that fails is said to, and the others go on
        print(f"| {shape} | cuVS failed: {type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''} | | | | |", flush=True)
    library.c.ww_collection_destroy(collection)
    torch.cuda.empty_cache()


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--only", default=",".join(SHAPES))
    parser.add_argument("--file", action="append", default=[], metavar="NAME=BASE.npy,QUERIES.npy")
    options = parser.parse_args()
    files = dict(given.split("=", 1) for given in options.file)
    library = Library(options.library, options.device)
    print(f"{torch.cuda.get_device_name()}, cuVS {version('cuvs-cu13')}, PyTorch {torch.__version__}, k = {K}, l2, host to host\n")
    print("| data | what | ms | times ours | seconds to add or build | recall |\n|---|---|--:|--:|--:|--:|")
    for name in options.only.split(","):
        run(library, name, files)


if __name__ == "__main__":
    main()
