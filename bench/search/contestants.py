"""The contestants of the search benchmark, each in a process of its own so that their threads do not meet.

A process reads one request a line from its standard input and answers with one line, both JSON. All make the same rows and
queries from the same seed.
"""
import ctypes
import json
import os
import pathlib
import resource
import sys
import time

import numpy as np

import datasets

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/codeobjects"))
from structs import Header  # noqa: E402  the structs of the headers, read from them

api = Header(ROOT / "include/warpwave/vectors.h")

K = 10
QUERIES = 1000
WARMED_QUERIES = 16  # larger batches take so long that the first repetition counts as well
METRICS = {"dot": 2, "l2": 1}  # ww_metric
SCREEN_INT8, SCREEN_NONE = 0, 1  # ww_screen


def pointer(array, kind=ctypes.c_float):
    return array.ctypes.data_as(ctypes.POINTER(kind))


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def sized(kind, **fields):
    return kind(struct_size=ctypes.sizeof(kind), **fields)


class Warpwave:
    """The library through its C API, on the CPU: every row is scored."""

    screen = SCREEN_NONE
    way = "full scan"

    def __init__(self, build):
        self.library = ctypes.CDLL(os.path.join(build, "libwarpwave.so"))
        self.library.ww_error_message.restype = ctypes.c_char_p
        self.floor = ctypes.CDLL(os.path.join(build, "libbench_floor.so"))
        self.floor.bench_read_seconds.restype = ctypes.c_double
        self.floor.bench_read_seconds.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self.floor.bench_multiply_rate.restype = ctypes.c_double
        self.floor.bench_int8_rate.restype = ctypes.c_double
        self.floor.bench_int8_name.restype = ctypes.c_char_p
        self.device = ctypes.c_void_p()
        self.collection = ctypes.c_void_p()
        self.check(self.library.ww_device_open(b"cpu", ctypes.byref(self.device)))
        self.rows = None
        self.stats = sized(api.ww_search_stats)

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.library.ww_error_message().decode())

    def name(self):
        self.library.ww_version.restype = ctypes.c_char_p
        return f"Warpwave {self.library.ww_version().decode()}, {self.way}"

    def add(self, metric, rows):
        """Makes the collection anew; returns the seconds that adding the rows took."""
        config = sized(api.ww_collection_config, dim=rows.shape[1], metric=METRICS[metric], screen=self.screen)
        batch = sized(api.ww_rows, count=rows.shape[0], dim=rows.shape[1], vectors=rows.ctypes.data)
        self.check(self.library.ww_collection_create(self.device, ctypes.byref(config), ctypes.byref(self.collection)))
        start = time.perf_counter()
        self.check(self.library.ww_collection_add(self.collection, ctypes.byref(batch)))
        return time.perf_counter() - start

    def load(self, metric, rows):
        self.rows = rows
        self.library.ww_collection_destroy(self.collection)
        before = resident_bytes()
        seconds = self.add(metric, rows)
        info = sized(api.ww_collection_info)
        self.check(self.library.ww_collection_describe(self.collection, ctypes.byref(info)))
        return {"add_seconds": [seconds], "resident_bytes": resident_bytes() - before, "bytes_rows": info.bytes_rows,
                "bytes_ids": info.bytes_ids}

    def search(self, queries, ids, scores):
        search = sized(api.ww_query, queries=queries.ctypes.data, query_count=queries.shape[0], dim=queries.shape[1], k=K,
                       stats=ctypes.addressof(self.stats))
        self.check(self.library.ww_collection_search(self.collection, ctypes.byref(search), pointer(ids, ctypes.c_int64),
                                                     pointer(scores)))

    def floors(self, request):
        """A plain read of as many bytes as the stored rows have, and the rates of multiply-adds of floats and of bytes."""
        padded = (self.rows.shape[1] + 63) // 64 * 64
        data = np.ones(self.rows.shape[0] * padded + 16, dtype=np.float32)
        address = (data.ctypes.data + 63) // 64 * 64
        bytes_ = self.rows.shape[0] * padded * 4
        threads = request["threads"]
        return {"read_seconds": [self.floor.bench_read_seconds(address, bytes_, threads) for _ in range(request["repeat"])],
                "multiply_rate": self.floor.bench_multiply_rate(threads), "int8_rate": self.floor.bench_int8_rate(threads),
                "int8_name": self.floor.bench_int8_name().decode()}

    def statistics(self, request):
        """What the screen left of a set of rows: shares of all pairs of a row and a query."""
        count, dim, queries = request["rows"], request["dim"], request["queries"]
        self.library.ww_collection_destroy(self.collection)
        self.add(request["metric"], datasets.make_rows(request["kind"], count, dim))
        asked = datasets.make_queries(request["kind"], queries, dim)
        self.search(asked, np.empty((queries, K), dtype=np.int64), np.empty((queries, K), dtype=np.float32))
        return {"kept": self.stats.rows_kept / (count * queries), "scored": self.stats.rows_scored / (count * queries),
                "fallback": self.stats.fallback_queries / queries, "certificate": self.stats.certificate}


class Screened(Warpwave):
    """The same with the int8 screen, which is how a collection is made unless it is told otherwise."""

    screen = SCREEN_INT8
    way = "int8 screen"


class Registry:
    """FAISS as the Python registry has it."""

    def __init__(self, build):
        import faiss
        self.faiss = faiss
        self.index = None

    def name(self):
        return f"FAISS {self.faiss.__version__} (faiss-cpu)"

    def load(self, metric, rows):
        kind = self.faiss.IndexFlatIP if metric == "dot" else self.faiss.IndexFlatL2
        self.index = None
        self.index = kind(rows.shape[1])
        self.index.add(rows)
        return {}

    def search(self, queries, ids, scores):
        self.index.search(queries, K, D=scores, I=ids)


class Debian:
    """FAISS as Debian packages it."""

    def __init__(self, build):
        self.library = ctypes.CDLL(os.path.join(build, "libbench_faiss.so"))
        self.library.peer_create.restype = ctypes.c_void_p
        self.library.peer_create.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_void_p]
        self.library.peer_search.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64,
                                             ctypes.c_void_p, ctypes.c_void_p]
        self.library.peer_destroy.argtypes = [ctypes.c_void_p]
        self.index = None

    def name(self):
        return "FAISS of Debian (libfaiss, OpenBLAS)"

    def load(self, metric, rows):
        self.library.peer_destroy(self.index)
        self.index = self.library.peer_create(rows.shape[1], metric == "l2", rows.shape[0], rows.ctypes.data)
        return {}

    def search(self, queries, ids, scores):
        self.library.peer_search(self.index, queries.shape[0], queries.ctypes.data, K, scores.ctypes.data, ids.ctypes.data)


CONTESTANTS = {"warpwave": Warpwave, "screened": Screened, "registry": Registry, "debian": Debian}


def time_searches(contestant, queries, request):
    """The seconds of each repetition, small batches after one that is not counted; the ids go to a file."""
    queries = queries[:request["queries"]]
    ids = np.empty((len(queries), K), dtype=np.int64)
    scores = np.empty((len(queries), K), dtype=np.float32)
    first = 1 if len(queries) <= WARMED_QUERIES else 0
    seconds = []
    for _ in range(request["repeat"] + first):
        start = time.perf_counter()
        contestant.search(queries, ids, scores)
        seconds.append(time.perf_counter() - start)
    np.save(request["ids"], ids)
    return {"seconds": seconds[first:]}


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    contestant = CONTESTANTS[sys.argv[1]](sys.argv[2])
    made = queries = None  # of which set, and its queries
    rows = None
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "name":
            answer = {"name": contestant.name()}
        elif request["do"] == "load":
            wanted = (request["kind"], request["rows"], request["dim"])
            if wanted != made:
                rows = None  # before the next ones are made
                rows, queries, made = datasets.make_rows(*wanted), datasets.make_queries(wanted[0], QUERIES, wanted[2]), wanted
            answer = contestant.load(request["metric"], rows)
        elif request["do"] == "floors":
            answer = contestant.floors(request)
        elif request["do"] == "statistics":
            answer = contestant.statistics(request)
        else:
            answer = time_searches(contestant, queries, request)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
