"""One test a kernel: its launches at odd sizes, and what must come out, to the bit. A test takes a Bench (check.py), which has
the code object, the CPU's answers and memory that faults one byte past its end."""
import ctypes

import numpy as np

import quant_cases
import screen_cases
import tensor_cases
from canonical import COSINE, DOT, KEY_WORST, L2, pack, runs_of

POISON = np.uint32(0x7fc0dead)  # a NaN: what nobody may read, or must overwrite


def poisoned(*shape):
    return np.full(shape, POISON, np.uint32).view(np.float32)


def normals(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def hard_rows(seed, count, dim):
    """Rows with ties, duplicates, small integers, zeros of both signs, denormals, and elements of very different size."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, (count, dim)).astype(np.float32)
    kind = np.arange(count) % 7
    rows[kind == 1] = rows[0]
    rows[kind == 2] = -0.0
    rows[kind == 3] *= np.float32(1e18 / np.sqrt(dim))
    rows[kind == 4] = (rng.integers(-99, 100, rows[kind == 4].shape) * 1e-44).astype(np.float32)
    rows[kind == 5] = (rng.standard_normal(rows[kind == 5].shape) * 10.0 ** rng.integers(-20, 17, rows[kind == 5].shape)).astype(np.float32)
    return rows


# ---- rows ------------------------------------------------------------------------------------------------------------------

def rows_pack(bench):
    sizes = [(1, 1, 0), (21, 70, 5), (16, 64, 0), (33, 129, 2**40), (5, 200, 1)]
    for n, (count, dim, number) in enumerate(sizes):
        rows = hard_rows(n, count, dim) if n % 2 else normals(n, count, dim)
        refused = 2**64 - 1
        if n == 3:
            rows[7, 128], rows[20, 0], refused = np.inf, np.nan, number + 7
        if n == 4:
            rows[4, 3], refused = 1e20, number + 4
        runs = runs_of(dim)
        to, norms = bench.memory(poisoned(count, runs * 64)), bench.memory(poisoned(count))
        flag = bench.memory(np.array([2**64 - 1], np.uint64))
        bench.launch(-(-count // bench.headers.ROWS_PER_BLOCK), bench.headers.ROWS_THREADS, **{
            "from": bench.memory(rows), "to": to, "norms": norms, "refused": flag, "number": number, "count": count, "dim": dim})
        bench.equal("refused", flag.array(), [refused])
        kept = np.isfinite(bench.library.norms(rows))
        bench.equal("rows", to.array()[kept], pack(rows, count).reshape(count, -1)[kept])
        bench.equal("norms", norms.array()[kept], bench.library.norms(rows[kept]))


def rows_gather(bench):
    for n, (count, runs, sources) in enumerate([(1, 1, 3), (19, 3, 40), (33, 2, 64)]):
        rows, norms = normals(n, sources, runs * 64), normals(n + 50, sources)
        rows[1, :3] = np.array([POISON, 1, 0x80000000], np.uint32).view(np.float32)  # bits are carried, whatever they mean
        chosen = np.sort(np.random.default_rng(n).choice(sources, count, replace=False)).astype(np.int64)
        to_rows, to_norms = bench.memory(poisoned(count, runs * 64)), bench.memory(poisoned(count))
        bench.launch(-(-count // bench.headers.ROWS_PER_BLOCK), bench.headers.ROWS_THREADS, from_rows=bench.memory(rows),
                     from_norms=bench.memory(norms), to_rows=to_rows, to_norms=to_norms, sources=bench.memory(chosen), count=count, runs=runs)
        bench.equal("rows", to_rows.array(), rows[chosen])
        bench.equal("norms", to_norms.array(), norms[chosen])


# ---- searching ---------------------------------------------------------------------------------------------------------------

def make_queries(bench, queries, slots):
    """Queries as search_prepare must leave them."""
    norms = np.zeros(slots, np.float32)
    norms[:len(queries)] = bench.library.norms(queries)
    return bench.headers.search_queries(packed=bench.memory(pack(queries, slots)), norms=bench.memory(norms),
                                        worst=bench.memory(np.full(slots, KEY_WORST)), count=len(queries), slots=slots)


def search_prepare(bench):
    for n, (count, slots, dim) in enumerate([(1, 16, 5), (16, 16, 64), (5, 16, 200), (10, 16, 130), (20, 64, 63)]):
        queries = hard_rows(n, count, dim) if n % 2 else normals(n, count, dim)
        runs = runs_of(dim)
        packed, norms = bench.memory(poisoned(slots * runs * 64)), bench.memory(poisoned(slots))
        worst, taken = bench.memory(np.zeros(slots, np.uint64)), bench.memory(np.full(slots, POISON))
        into = bench.headers.search_queries(packed=packed, norms=norms, worst=worst, count=count, slots=slots)
        bench.launch(-(-slots // 16), bench.headers.SEARCH_THREADS, **{
            "from": bench.memory(queries), "queries": into, "taken": taken, "dim": dim})
        expected = make_queries(bench, queries, slots)
        bench.equal("packed", packed.array(), bench.at(expected.packed))
        bench.equal("norms", norms.array(), bench.at(expected.norms))
        bench.equal("worst", worst.array(), np.full(slots, KEY_WORST))
        bench.equal("taken", taken.array(), np.zeros(slots))


def make_lists(bench, slots, parts, k, tile_rows):
    """Empty lists with the sizes that src/gpu/search_plan.c gives them."""
    kept_max, trigger = k + k // 4 + 16, 2 * k + 32
    capacity = -(-(trigger + tile_rows) // 16) * 16
    return bench.headers.search_lists(
        keys=bench.memory(np.full(parts * slots * capacity, KEY_WORST)), found=bench.memory(np.full(parts * slots * trigger, KEY_WORST)),
        taken=bench.memory(np.zeros(slots, np.uint32)), capacity=capacity, trigger=trigger, kept_max=kept_max, parts=parts, k=k)


def make_segments(bench, rows, counts, live):
    """Cuts the rows into segments of these many, each with room for whole words and for 64 rows more, which is poison."""
    structs, first, end = [], 0, 0
    for count in counts:
        capacity = -(-count // 64) * 64 + 64
        mine = rows[first:first + count]
        there = poisoned(capacity, runs_of(rows.shape[1]) * 64)
        there[:count] = pack(mine, count).reshape(count, -1)
        norms = poisoned(capacity)
        norms[:count] = bench.library.norms(mine)
        bits = np.zeros(capacity, bool)
        bits[:count] = live[first:first + count]
        end += -(-count // 64)
        structs.append(bench.headers.search_segment(
            rows=bench.memory(there), norms=bench.memory(norms), live=bench.memory(np.packbits(bits, bitorder="little").view(np.uint64)),
            first_row=first, word_end=end))
        first += count
    return bench.memory_of(structs), end


def kept_keys(bench, lists, query):
    """The candidates that all parts kept for one query."""
    count, most = bench.at(lists.taken)[query], lists.parts * lists.trigger
    if count > most:
        bench.fail(f"query {query}: {count} keys, more than {most}")
    return bench.at(lists.found).reshape(-1, most)[query, :count]


def some_rows(bench, metric, rows, counts, masked, live):
    """Rows in segments (all but the last of whole words), some removed, perhaps under a mask; and which of them are admitted."""
    table, word_count = make_segments(bench, rows, counts, live)
    admitted, mask, mask_words = live.copy(), 0, 0
    if masked:
        let_in = np.random.default_rng(masked).random(len(rows)) < 0.6
        mask_words = max(word_count - 1, 1)  # rows past the mask are not admitted
        let_in[mask_words * 64:] = False
        admitted &= let_in
        mask = bench.memory(np.packbits(np.pad(let_in, (0, mask_words * 64))[:mask_words * 64], bitorder="little").view(np.uint64))
    return bench.headers.search_rows(segments=table, mask=mask, mask_words=mask_words, word_count=word_count,
                                     runs=runs_of(rows.shape[1]), metric=metric), admitted


def some_data(n, metric, total, count, dim):
    rows = hard_rows(n + 10, total, dim) if n % 2 else normals(n + 10, total, dim)
    queries = normals(n + 20, count, dim) if n % 2 == 0 else np.rint(normals(n + 20, count, dim))
    if metric == COSINE:  # division with denormal operands is beyond the emulator
        rows = np.where(np.abs(rows) < 1e-15, np.float32(0), rows)
    return rows, queries, np.random.default_rng(n).random(total) < (1.1 if n == 0 else 0.9)


def search_batch(metric, shared_floats, table):
    """A kernel for several queries. `table`: queries, of a block, dim, rows in segments, rows of a tile, threads, k, parts, stages, whole;
    `shared_floats` takes the headers and all of these."""
    def test(bench):
        for n, case in enumerate(table):
            count, each, dim, counts, tile_rows, threads, k, parts, stages, whole = case
            rows, queries, live = some_data(n, metric, sum(counts), count, dim)
            slots = -(-count // each) * each
            searched, admitted = some_rows(bench, metric, rows, counts, n == 2, live)
            lists = make_lists(bench, slots, parts, k, tile_rows)
            bench.launch((parts, slots // each), threads, 4 * shared_floats(bench.headers, *case), rows=searched,
                         queries=make_queries(bench, queries, slots), lists=lists, stages=stages, whole=whole)
            expected = bench.library.search(metric, rows, queries, k, admitted)
            for q in range(count):
                best = np.sort(kept_keys(bench, lists, q))[:k]
                bench.equal(f"query {q}, metric {metric}", np.pad(best, (0, k - len(best)), constant_values=KEY_WORST), expected[q])
    return test


def search_held(runs, metric):
    def shared(headers, *case):
        return case[8] * headers.SEARCH_HELD_STAGE_FLOATS
    return search_batch(metric, shared, [(3, 8, 64 * runs - 63, (40,), 32, 256, 1, 1, 2, 0), (19, 16, 64 * runs - 5, (128, 64, 91), 32, 256, 5, 3, 3, 0),
                                         (33, 64, 64 * runs, (64, 320), 32, 256, 9, 2, 2, 0)])


def search_tile(metric):
    def shared(headers, count, each, dim, counts, tile_rows, threads, k, parts, stages, whole):
        queries = each // 8 * headers.SEARCH_TILE_QUERIES_FLOATS * (-(-dim // 128) if whole else stages)
        return queries + stages * tile_rows // 8 * headers.SEARCH_TILE_ROWS_FLOATS
    return search_batch(metric, shared, [(3, 16, 1, (40,), 32, 256, 1, 1, 2, 0), (19, 16, 200, (128, 64, 91), 32, 256, 5, 3, 2, 1),
                                         (16, 16, 130, (64, 192), 16, 128, 9, 2, 3, 0), (9, 32, 170, (192, 37), 8, 128, 20, 2, 4, 1)])


def search_one(metric):
    def test(bench):
        for n, (dim, counts, k, parts) in enumerate([(1, (40,), 1, 1), (70, (128, 64, 291), 5, 3), (200, (64, 320), 9, 2), (300, (100,), 20, 1)]):
            rows, queries, live = some_data(n, metric, sum(counts), 1, dim)
            searched, admitted = some_rows(bench, metric, rows, counts, n == 2, live)
            lists = make_lists(bench, 1, parts, k, bench.headers.SEARCH_ONE_ROWS)
            state = bench.memory_of([bench.headers.search_one_state(worst=int(KEY_WORST))])
            lists.taken = state.guarded.addr + 8
            best = bench.memory(np.zeros(k, np.uint64))
            along = dim <= bench.headers.SEARCH_ONE_DIM_MAX
            fields = {"query": (ctypes.c_float * bench.headers.SEARCH_ONE_DIM_MAX)(*queries[0])} if along else {}
            bench.launch(parts, bench.headers.SEARCH_THREADS, max(bench.headers.SEARCH_MERGE_KEYS // 2 * 8, runs_of(dim) * 256),
                         rows=searched, lists=lists, state=state, best=best, elsewhere=0 if along else bench.memory(queries), dim=dim, **fields)
            bench.equal("state", state.array().view(np.uint64), [KEY_WORST, 0])
            bench.equal(f"metric {metric}", best.array(), bench.library.search(metric, rows, queries, k, admitted)[0])
    return test


def search_merge(bench):
    """Lists made up here: short ones, empty ones, and for the largest k so many keys that the buffer is cut several times."""
    for n, (queries, parts, k) in enumerate([(1, 1, 1), (3, 5, 7), (2, 3, 300), (1, 5, 2048)]):
        rng = np.random.default_rng(n)
        lists = make_lists(bench, queries, parts, k, 64)
        found, taken = bench.at(lists.found).reshape(queries, -1), bench.at(lists.taken)
        unique = rng.choice(2**62, found.size, replace=False) if found.size < 5000 else rng.permutation(found.size) * 977
        found[:] = unique.astype(np.uint64).reshape(found.shape)
        taken[:] = rng.integers(0, found.shape[1] + 1, taken.size) if n < 3 else found.shape[1]
        taken[-1] = 0 if n == 1 else taken[-1]
        expected, worst = np.full((queries, k), KEY_WORST), np.full(queries, KEY_WORST)
        for q in range(queries):
            mine = np.sort(found[q, :taken[q]])
            expected[q, :min(k, len(mine))] = mine[:k]
            if len(mine) > k:
                worst[q] = mine[k]
        best = bench.memory(np.zeros((queries, k), np.uint64))
        bench.launch(queries, bench.headers.SEARCH_THREADS, lists=lists, worst=bench.memory(worst), best=best)
        bench.equal("best", best.array(), expected)


TESTS = {
    "rows_pack": rows_pack,
    "rows_gather": rows_gather,
    "search_prepare": search_prepare,
    "search_merge": search_merge,
    "search_one_cosine": search_one(COSINE),
    "search_one_l2": search_one(L2),
    "search_one_dot": search_one(DOT),
    "search_held_1_cosine": search_held(1, COSINE),
    "search_held_1_l2": search_held(1, L2),
    "search_held_1_dot": search_held(1, DOT),
    "search_held_2_cosine": search_held(2, COSINE),
    "search_held_2_l2": search_held(2, L2),
    "search_held_2_dot": search_held(2, DOT),
    "search_tile_cosine": search_tile(COSINE),
    "search_tile_l2": search_tile(L2),
    "search_tile_dot": search_tile(DOT),
    **screen_cases.TESTS,
    **tensor_cases.TESTS,
    **quant_cases.TESTS,
}

# Kernels that AMD's chips have no code for, and why.
LEFT_OUT = {
    "screen_wide_": "for sm_90a alone: it is written around that chip's copy engine and matrix units",
}


def left_out(kernel, chip):
    """Why there is no code of the kernel for the chip, or None."""
    return next((why for prefix, why in LEFT_OUT.items() if kernel.startswith(prefix) and chip.startswith("gfx")), None)
