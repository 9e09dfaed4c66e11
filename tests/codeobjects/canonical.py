"""What the kernels must give, from the library's own CPU: scores and results through its C interface, and in numpy the order
of numbers inside a row (src/kernels/packed.h) and the keys (src/kernels/canon.h), which the library keeps to itself."""
import ctypes
import pathlib

import numpy as np

from structs import Header

ROOT = pathlib.Path(__file__).resolve().parents[2]
COSINE, L2, DOT = 0, 1, 2
KEY_WORST = np.uint64(2**64 - 1)

api = Header(ROOT / "include/warpwave/vectors.h")


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(str(path))
        self.c.ww_error_message.restype = ctypes.c_char_p
        self.c.ww_collection_destroy.argtypes = [ctypes.c_void_p]
        self.c.ww_score.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p]
        self.device = ctypes.c_void_p()
        self._ok(self.c.ww_device_open(b"cpu", ctypes.byref(self.device)))

    def _ok(self, status):
        if status != 0:
            raise RuntimeError(self.c.ww_error_message().decode())

    def norms(self, rows):
        """sqrt(dot(x,x)) of each row; infinite where the squared norm is not finite, as refused rows have it."""
        squares = np.zeros(len(rows), np.float32)
        for i, row in enumerate(rows):
            status = self.c.ww_score(DOT, row.ctypes.data, row.ctypes.data, row.size, squares[i:].ctypes.data)
            squares[i] = np.inf if status != 0 else squares[i]
        return np.sqrt(squares)

    def scores(self, metric, queries, rows):
        """The canonical score of every row for every query, [query, row]."""
        queries, rows = np.ascontiguousarray(queries), np.ascontiguousarray(rows)
        found, score = np.empty((len(queries), len(rows)), np.float32), ctypes.c_float()
        for q, query in enumerate(queries):
            for i, row in enumerate(rows):
                self._ok(self.c.ww_score(metric, query.ctypes.data, row.ctypes.data, row.size, ctypes.byref(score)))
                found[q, i] = score.value
        return found

    def search(self, metric, rows, queries, k, admitted):
        """Keys of the k best rows of each query, best first, with CANON_KEY_WORST where there are fewer. `admitted`: truth a row."""
        rows, queries = np.ascontiguousarray(rows), np.ascontiguousarray(queries)
        collection = ctypes.c_void_p()
        config = api.ww_collection_config(struct_size=ctypes.sizeof(api.ww_collection_config), dim=rows.shape[1], metric=metric)
        self._ok(self.c.ww_collection_create(self.device, ctypes.byref(config), ctypes.byref(collection)))
        added = api.ww_rows(struct_size=ctypes.sizeof(api.ww_rows), count=len(rows), dim=rows.shape[1], vectors=rows.ctypes.data)
        self._ok(self.c.ww_collection_add(collection, ctypes.byref(added)))
        mask = np.packbits(np.resize(admitted, -(-len(rows) // 64) * 64), bitorder="little").view(np.uint64)
        asked = api.ww_search(struct_size=ctypes.sizeof(api.ww_search), queries=queries.ctypes.data, query_count=len(queries),
                              dim=rows.shape[1], k=k, mask=mask.ctypes.data, mask_rows=len(rows))
        found, scores = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
        self._ok(self.c.ww_collection_search(collection, ctypes.byref(asked), found.ctypes.data_as(ctypes.c_void_p),
                                             scores.ctypes.data_as(ctypes.c_void_p)))
        self.c.ww_collection_destroy(collection)
        return np.where(found < 0, KEY_WORST, make_keys(metric, scores, found.astype(np.uint64)))


def make_keys(metric, scores, rows):
    bits = np.ascontiguousarray(scores).view(np.uint32)
    ascending = bits ^ np.where(bits >> 31 != 0, np.uint32(0xffffffff), np.uint32(0x80000000))
    return (ascending if metric == L2 else ~ascending).astype(np.uint64) << np.uint64(32) | rows.astype(np.uint64)


def key_scores(metric, keys):
    high = (keys >> np.uint64(32)).astype(np.uint32)
    ascending = high if metric == L2 else ~high
    return (ascending ^ np.where(ascending >> 31 != 0, np.uint32(0x80000000), np.uint32(0xffffffff))).view(np.float32)


def runs_of(dim):
    return -(-dim // 64)


def packed_at(runs, run, group):
    pair = run // 2 * 128
    return pair + group * 8 + (run & 1) * 4 if run | 1 < runs else pair + group * 4


def packed_first(group):
    return (group & 1) << 3 | (group & 2) << 1 | (group & 4) >> 1 | (group & 8) >> 3


def packed_order(runs):
    """The place of each element of a row."""
    order = np.empty(runs * 64, np.int64)
    for run in range(runs):
        for group in range(16):
            for i, behind in enumerate((0, 32, 16, 48)):
                order[run * 64 + packed_first(group) + behind] = packed_at(runs, run, group) + i
    return order


def pack(rows, slots):
    """`rows` padded with zeros to `slots` rows of whole runs, flat."""
    runs = runs_of(rows.shape[1])
    padded = np.zeros((slots, runs * 64), np.float32)
    padded[:len(rows), :rows.shape[1]] = rows
    packed = np.empty_like(padded)
    packed[:, packed_order(runs)] = padded
    return packed.reshape(-1)
