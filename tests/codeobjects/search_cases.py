"""Tests of the kernels of collections: rows are added, removed, compacted and searched on the executed device and on the CPU. Ids, scores and rows
that are read back must have the same bits, with and without the screen."""
import ctypes

import numpy as np

from machine import ROOT, both
from structs import Header

api = Header(ROOT / "include/warpwave/vectors.h")
ivf = Header(ROOT / "include/warpwave/ivf.h")
METRICS = {"cosine": api.WW_COSINE, "l2": api.WW_L2, "dot": api.WW_DOT}
TYPES = {name: getattr(api, f"WW_VECTOR_{name.upper()}") for name in ("f32", "f16", "bf16", "i8", "u8")}


def normals(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def hard_rows(seed, count, dim, metric):
    """Rows with ties, duplicates, small integers, zeros of both signs, denormals, and elements of very different size. None is denormal for
    cosine: divisions with denormal operands are beyond the emulator."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, (count, dim)).astype(np.float32)
    kind = np.arange(count) % 7
    rows[kind == 1] = rows[0]
    rows[kind == 2] = -0.0
    rows[kind == 3] *= np.float32(1e17 / np.sqrt(dim))
    rows[kind == 4] = (rng.integers(-99, 100, rows[kind == 4].shape) * 1e-44).astype(np.float32)
    rows[kind == 5] = (rng.standard_normal(rows[kind == 5].shape) * 10.0 ** rng.integers(-20, 17, rows[kind == 5].shape)).astype(np.float32)
    return np.where(np.abs(rows) < 1e-15, np.float32(0), rows) if metric == "cosine" else rows


def alike_rows(seed, count, dim):
    """Clusters with near-duplicates and ties, so that thresholds are close to many scores."""
    rng = np.random.default_rng(seed)
    centres = rng.integers(-3, 4, (5, dim)).astype(np.float32)
    rows = centres[np.arange(count) % 5] + np.where(np.arange(count) % 3 > 0, 0.01, 0)[:, None] * rng.standard_normal((count, dim))
    rows[count // 2] = 0
    return rows.astype(np.float32)


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def sized(struct, **fields):
    return struct(struct_size=ctypes.sizeof(struct), **fields)


class Collection:
    """A collection on a device. Rows are added in two steps, so that there are at least two segments."""

    def __init__(self, on, metric, rows, screen, type="f32"):
        self.on, self.dim, self.handle = on, rows.shape[1], ctypes.c_void_p()
        config = sized(api.ww_collection_config, dim=self.dim, metric=METRICS[metric], screen=api.WW_SCREEN_INT8 if screen else api.WW_SCREEN_NONE,
                       type=TYPES[type])
        on.ok(on.c.ww_collection_create(on.handle, ctypes.byref(config), ctypes.byref(self.handle)))
        half = len(rows) // 2 // 64 * 64
        for some in (rows[:half], rows[half:]):
            if len(some):
                some = np.ascontiguousarray(some)
                on.ok(on.c.ww_collection_add(self.handle, ctypes.byref(sized(api.ww_rows, count=len(some), dim=self.dim, vectors=some.ctypes.data))))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.on.c.ww_collection_destroy(self.handle)

    def index(self, nlist):
        config = sized(ivf.ww_ivf_config, nlist=nlist, iterations=2)
        self.on.ok(self.on.c.ww_collection_build_ivf(self.handle, ctypes.byref(config)))

    def search(self, queries, k, admitted=None, nprobe=0):
        found, scores = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
        asked = sized(api.ww_query, queries=queries.ctypes.data, query_count=len(queries), dim=self.dim, k=k, nprobe=nprobe)
        if admitted is not None:
            mask = np.packbits(np.resize(admitted, -(-len(admitted) // 64) * 64), bitorder="little").view(np.uint64)
            asked.mask, asked.mask_rows = mask.ctypes.data, len(admitted)
        self.on.ok(self.on.c.ww_collection_search(self.handle, ctypes.byref(asked), pointer(found), pointer(scores)))
        return [found, scores]

    def range(self, queries, bound, limit, admitted=None):
        """Rows, scores and totals of all queries, concatenated."""
        asked = sized(api.ww_query, queries=queries.ctypes.data, query_count=len(queries), dim=self.dim, mode=api.WW_QUERY_RANGE, bound=bound, limit=limit)
        if admitted is not None:
            mask = np.packbits(np.resize(admitted, -(-len(admitted) // 64) * 64), bitorder="little").view(np.uint64)
            asked.mask, asked.mask_rows = mask.ctypes.data, len(admitted)
        results, c = ctypes.c_void_p(), self.on.c
        self.on.ok(c.ww_collection_query(self.handle, ctypes.byref(asked), ctypes.byref(results)))
        for name, kind in (("rows", ctypes.c_int64), ("scores", ctypes.c_float)):
            getattr(c, f"ww_results_{name}").restype = ctypes.POINTER(kind)
        c.ww_results_count.restype = c.ww_results_total.restype = ctypes.c_int64
        found, scores, totals = [], [], []
        for query in range(len(queries)):
            number = ctypes.c_int64(query)
            count = c.ww_results_count(results, number)
            totals.append(c.ww_results_total(results, number))
            found += c.ww_results_rows(results, number)[:count]
            scores += c.ww_results_scores(results, number)[:count]
        c.ww_results_destroy(results)
        return [np.array(found, np.int64), np.array(scores, np.float32), np.array(totals, np.int64)]

    def remove(self, rows):
        ids = (ctypes.c_char_p * len(rows))(*(str(row).encode() for row in rows))
        self.on.ok(self.on.c.ww_collection_remove(self.handle, ids, ctypes.c_int64(len(rows))))

    def compact(self):
        self.on.ok(self.on.c.ww_collection_compact(self.handle, None, None))

    def read(self, rows):
        vector, found = np.empty(self.dim, np.float32), []
        for row in rows:
            self.on.ok(self.on.c.ww_collection_vector(self.handle, ctypes.c_int64(row), pointer(vector)))
            found.append(vector.copy())
        return np.array(found)


def searched(metric, table):
    """table: queries, dim, rows, k, whether rows are hard. In the first order also long lists and, with enough compute units for many parts, many
    lists."""
    def test(bench):
        cases = [(*each, 0) for each in table]
        if bench.first:
            cases += [(count, dim, 2500, k, hard, 0) for count, dim, _, _, hard in table[-2:] for k in (30, 100, 700)]
            cases += [(*table[0][:2], 40000 if table[0][1] == 1 else 8000, 32, False, 0)]
            cases += [(*table[0][:2], 8000, 30, False, 60), (*table[0][:2], 9000, 1100, False, 60)] if table[0][1] == 1 else []
        for n, (count, dim, total, k, hard, units) in enumerate(cases):
            rows = hard_rows(n, total, dim, metric) if hard else normals(n, total, dim)
            queries = np.ascontiguousarray(np.rint(normals(n + 20, count, dim)) if hard else normals(n + 20, count, dim))
            admitted = np.random.default_rng(n).random(max(total - 70, 1)) < 0.6

            def make(on):
                with on.units(units), Collection(on, metric, rows, False) as c:
                    answers = c.search(queries, k)
                    c.remove(range(3, total, 9))
                    return answers + c.search(queries, k, admitted if n % 2 else None)
            bench.same(f"{count} queries by {metric}, {total} x {dim}", make)
    return test


ONE = [(1, 1, 40, 1, False), (1, 70, 483, 5, True), (1, 200, 384, 9, False), (1, 300, 100, 20, True)]
REGISTERS_1 = [(3, 1, 40, 1, False), (19, 59, 283, 5, True), (33, 64, 384, 9, False)]
REGISTERS_2 = [(3, 65, 40, 1, False), (19, 123, 283, 5, True), (33, 128, 384, 9, False)]
TILE = [(3, 129, 40, 1, False), (19, 200, 283, 5, True), (16, 130, 256, 300, False), (9, 170, 229, 20, True)]


LONG_LISTS = [(24, 9600, 70, 0), (24, 6000, 20, 0), (24, 9700, 300, 0), (330, 1500, 9, 0)]


def screened(queries, mfma=True, longer=(), planes=False):
    """All metrics, masks, rows with equal codes, lists that are too short; in the first order also long lists, which are processed differently."""
    def test(bench):
        for n, (dim, total, k, capacity) in enumerate([(24, 700, 5, 0), (70, 483, 3, 0), (130, 400, 7, 12), *longer, *(LONG_LISTS if bench.first else ())]):
            metric = list(METRICS)[n % len(METRICS)]
            rows = alike_rows(n, total, dim) if n else normals(n, total, dim)
            asked = np.ascontiguousarray(np.concatenate([rows[:queries // 2] + normals(n + 60, queries // 2, dim) * np.float32(0.1),
                                                         normals(n + 40, queries - queries // 2, dim)]))
            admitted = np.random.default_rng(n).random(total - 70) < 0.6

            def make(on):
                on.c.codeobjects_screen(on.handle, True, capacity)
                on.c.codeobjects_planes(on.handle, planes)
                on.c.codeobjects_mfma(on.handle, mfma)
                try:
                    with Collection(on, metric, rows, True) as c:
                        answers = c.search(asked, k)
                        c.remove(range(3, total, 9))
                        return answers + c.search(asked, k, admitted if n == 1 else None)
                finally:
                    on.c.codeobjects_screen(on.handle, False, 0)
                    on.c.codeobjects_mfma(on.handle, True)
            bench.same(f"{queries} queries by {metric} with the screen, {total} x {dim}", make)
    return test


def listed(bench):
    """Queries that read some lists of an index: one query and more than eight, removed rows, masks, lists of kept rows that are too short."""
    for n, (metric, type, dim, total, queries, capacity) in enumerate([("l2", "f32", 24, 300, 11, 0), ("cosine", "f16", 70, 283, 1, 0),
                                                                      ("dot", "u8", 130, 229, 3, 12)]):
        rows = rows_of_type(n, total, dim, type)
        asked = np.ascontiguousarray(rows[1:queries + 1] + normals(n + 60, queries, dim))
        admitted = np.random.default_rng(n).random(total) < 0.6

        def make(on):
            on.c.codeobjects_screen(on.handle, True, capacity)
            try:
                with Collection(on, metric, rows, True, type) as c:
                    c.index(5)
                    answers = c.search(asked, 4, nprobe=2)
                    c.remove(range(3, total, 9))
                    return answers + c.search(asked, 4, admitted, nprobe=2) + c.search(asked, 4, nprobe=4)
            finally:
                on.c.codeobjects_screen(on.handle, False, 0)
        bench.same(f"{queries} queries by {metric} that read lists, {total} x {dim} of {type}", make)


BOUNDS = {"cosine": 0.1, "l2": 12.0, "dot": 2.0}


def ranged(metric, screen):
    """All rows within a bound, with and without a limit and a mask; lists that are too short."""
    def test(bench):
        for n, (count, dim, total) in enumerate([(1, 24, 300), (3, 130, 229), (19, 70, 283)] + ([(9, 330, 700), (2, 700, 200)] if bench.first else [])):
            rows = alike_rows(n, total, dim) if n == 1 else normals(n, total, dim)
            queries = np.ascontiguousarray(rows[:count] + normals(n + 60, count, dim) * np.float32(0.5))
            admitted = np.random.default_rng(n).random(total - 70) < 0.6

            def make(on):
                on.c.codeobjects_screen(on.handle, screen, 12 if n == 1 else 0)
                try:
                    with Collection(on, metric, rows, screen) as c:
                        answers = c.range(queries, BOUNDS[metric], 2000)
                        c.remove(range(3, total, 9))
                        return answers + c.range(queries, BOUNDS[metric], 7, admitted)
                finally:
                    on.c.codeobjects_screen(on.handle, False, 0)
            bench.same(f"{count} ranges by {metric}, {total} x {dim}{' with the screen' if screen else ''}", make)
    return test


def kept(bench):
    """Rows of very different magnitudes are added, read back and compacted; some are refused."""
    for n, (total, dim) in enumerate([(1, 1), (37, 65), (150, 200), (133, 130)]):
        rows = hard_rows(n, total, dim, "dot") if n % 2 else normals(n, total, dim)
        if n == 2:
            rows *= np.array([1, 0, 2.0**-101, 2.0**-100, 2.0**40, 2.0**-60, 2.0**-30], np.float32)[np.arange(total) % 7][:, None]

        def make(on):
            with Collection(on, "dot", rows, True) as c:
                answers = [c.read(range(0, total, 5))]
                if total > 1:
                    c.remove(range(1, total, 3))
                    c.compact()
                    answers.append(c.read(range(0, total * 2 // 3 - 1, 5)))
                return answers + c.search(rows[:1].copy(), 3)
        bench.same(f"rows, {total} x {dim}", make)
        bad = rows.copy()
        bad[total // 2, dim - 1] = np.nan
        bench.same("a row that is no vector", lambda on: Collection(on, "dot", bad, True))


def rows_of_type(seed, count, dim, type):
    """Numbers that the type holds exactly or, for halves, rounds, including its extremes, and rows that are equal."""
    rng = np.random.default_rng(seed)
    if type in ("i8", "u8"):
        rows = rng.integers(-128, 128, (count, dim)) + (128 if type == "u8" else 0)
        rows[count // 3] = 255 if type == "u8" else -128
    else:
        rows = rng.standard_normal((count, dim)) * 10.0 ** rng.integers(-5, 3, (count, 1))
    rows[np.arange(count) % 4 == 3] = rows[0]
    return rows.astype(np.float32)


def of_types(metric, types, queries, screen=False, bound=None):
    """Rows of a type: added, read, searched, also by range, removed, compacted, searched again. In the first order also long rows and lists."""
    def test(bench):
        cases = [(type, (70, 130)[n % 2], 300 if screen else 100, 5, 0) for n, type in enumerate(types)]
        if bench.first:
            cases += [(type, *more) for type in dict.fromkeys(types) for more in MORE_SCREENED if screen] + [
                (type, *more) for type in dict.fromkeys(types) for more in MORE_LISTS[:1 if bound is not None else 5 if queries > 1 else None] if not screen]
        for n, (type, dim, total, k, units) in enumerate(cases):
            rows = rows_of_type(n, total, dim, type)
            asked = np.ascontiguousarray(rows[1:queries + 1] + normals(n + 60, queries, dim))
            admitted = np.random.default_rng(n).random(total) < 0.08 if units == FEW_ADMITTED else None

            def make(on):
                on.c.codeobjects_screen(on.handle, screen, 0)
                try:
                    with on.units(units), Collection(on, metric, rows, screen, type) as c:
                        ask = (lambda: c.range(asked, bound, 30)) if bound is not None else lambda: c.search(asked, k)
                        answers = ask() if admitted is None else c.search(asked, k, admitted)
                        c.remove(range(3, total, 9))
                        c.compact()
                        return answers + ask() + [c.read(range(0, 80, 9))]
                finally:
                    on.c.codeobjects_screen(on.handle, False, 0)
            bench.same(f"{queries} queries by {metric}, {total} x {dim} of {type}{' with the screen' if screen else ''}", make)
    return test


# type's rows beyond those of every order: dim, rows, k, compute units
FEW_ADMITTED = 101  # of them, and a mask: many lists, none of which is cut before they meet
MORE_LISTS = [(330, 700, 9, 0), (70, 2500, 30, 0), (20, 2500, 700, 0), (2100, 90, 5, 0), (8, 6000, 300, 1), (8, 20000, 32, 100), (8, 9000, 1100, 60), (580, 300, 7, 0),
              (8, 20000, 32, FEW_ADMITTED), (8, 11000, 30, FEW_ADMITTED)]
MORE_SCREENED = [(8, 9700, 70, 0), (200, 2500, 20, 0)]

HALVES, BYTES = ("f16", "bf16"), ("i8", "u8")

few_of_bytes = of_types("dot", ("u8",), 3, True)  # of a small batch; for screen_prepare

RANGES = {"cosine": 0.1, "l2": 900.0, "dot": 2.0}  # bounds that some rows of every type are within


def of_metrics(case, *about):
    """The case for every metric: each has its own loop in the kernels of plain searches."""
    return both(*(case(metric, *about) for metric in METRICS))


TESTS = {
    **dict.fromkeys(("rows_pack", "rows_gather"), both(kept, of_types("dot", HALVES + BYTES, 1, True))),
    **dict.fromkeys(("screen_code", "screen_gather"), kept),
    **dict.fromkeys(("search_one", "search_one_l2"), of_metrics(searched, ONE)),
    **dict.fromkeys(("search_one_half", "search_one_half_l2"), of_metrics(of_types, HALVES, 1)),
    **dict.fromkeys(("search_one_bytes", "search_one_bytes_l2"), of_metrics(of_types, BYTES, 1)),
    "search_registers_1": of_metrics(searched, REGISTERS_1),
    **dict.fromkeys(("search_prepare", "search_merge"), searched("dot", REGISTERS_1)),
    "search_registers_2": of_metrics(searched, REGISTERS_2),
    **dict.fromkeys(("search_tile", "search_tile_l2"), both(of_metrics(searched, TILE), of_metrics(of_types, HALVES + BYTES, 3))),
    "range_tile": both(of_metrics(ranged, False), *(of_types(metric, HALVES + BYTES, 3, bound=bound) for metric, bound in RANGES.items())),
    "screen_range": both(ranged("l2", True), of_types("l2", HALVES + ("i8",), 3, True, 900.0)),
    **dict.fromkeys(("screen_small_batch_1_sample", "screen_small_batch_1_keep"), screened(1, longer=[(24, 2000, 40, 0)])),
    **dict.fromkeys(("screen_plane", "screen_small_batch_1_planes"), screened(1, longer=[(130, 2000, 40, 0)], planes=True)),
    **dict.fromkeys(("screen_small_batch_4_sample", "screen_small_batch_4_keep"), screened(3)),
    **dict.fromkeys(("screen_small_batch_8_sample", "screen_small_batch_8_keep"), screened(7)),
    **dict.fromkeys(("screen_pick", "screen_score"), both(screened(20, mfma=False), of_types("l2", HALVES + ("i8",), 5, True))),
    **dict.fromkeys(("screen_prepare", "screen_batch_sample", "screen_batch_keep"),
                    both(screened(20, mfma=False), of_types("dot", ("u8",), 20, True), few_of_bytes)),
    **dict.fromkeys(("rows_unpack", "screen_lists_gather", "screen_lists_sample", "screen_lists_keep"), listed),
    "screen_mfma_keep": screened(20, longer=[(260, 333, 4, 0)]),
}
