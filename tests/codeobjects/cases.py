"""One test a kernel: its launches at odd sizes, and what must come out, to the bit. A test takes a Bench (check.py), which has
the code object, the CPU's answers and memory that faults one byte past its end."""
import numpy as np

import screen_cases
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

def make_queries(bench, queries, slots, together):
    """Queries as search_prepare must leave them; for search_few_* a bundle of `together`, without what those kernels do not read."""
    norms = np.zeros(slots, np.float32)
    norms[:len(queries)] = bench.library.norms(queries)
    return bench.headers.search_queries(
        packed=bench.memory(pack(queries, slots, together or 1)), zeros=0 if together else bench.memory(np.zeros(4, np.float32)),
        norms=0 if together else bench.memory(norms), worst=bench.memory(np.full(slots, KEY_WORST)), count=len(queries), slots=slots)


def search_prepare(bench):
    for n, (count, slots, dim) in enumerate([(1, 16, 5), (16, 16, 64), (5, 16, 200), (10, 16, 130), (20, 64, 63)]):
        queries = hard_rows(n, count, dim) if n % 2 else normals(n, count, dim)
        runs = runs_of(dim)
        packed, norms = bench.memory(poisoned(slots * runs * 64)), bench.memory(poisoned(slots))
        worst, zeros = bench.memory(np.zeros(slots, np.uint64)), bench.memory(poisoned(4))
        into = bench.headers.search_queries(packed=packed, zeros=zeros, norms=norms, worst=worst, count=count, slots=slots)
        bench.launch(-(-slots // 16), bench.headers.SEARCH_THREADS, **{"from": bench.memory(queries), "queries": into, "dim": dim})
        expected = make_queries(bench, queries, slots, 0)
        bench.equal("packed", packed.array(), bench.at(expected.packed))
        bench.equal("norms", norms.array(), bench.at(expected.norms))
        bench.equal("worst", worst.array(), np.full(slots, KEY_WORST))
        bench.equal("zeros", zeros.array(), np.zeros(4))


def make_lists(bench, slots, parts, k, words):
    """Empty lists with the sizes that src/gpu/search_plan.c gives them."""
    kept_max, trigger = k + k // 4 + 16, 2 * k + 32
    capacity = -(-(trigger + words * 64) // 16) * 16
    return bench.headers.search_lists(keys=bench.memory(np.full(parts * slots * capacity, KEY_WORST)), counts=bench.memory(np.full(parts * slots, POISON)),
                                      capacity=capacity, trigger=trigger, kept_max=kept_max, parts=parts, k=k)


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


def kept_keys(bench, lists, query, slots):
    """The candidates that all parts kept for one query."""
    keys, counts = bench.at(lists.keys).reshape(-1, lists.capacity), bench.at(lists.counts)
    for part in range(lists.parts):
        if counts[part * slots + query] > lists.kept_max:
            bench.fail(f"list of query {query}, part {part}: {counts[part * slots + query]} keys, more than {lists.kept_max}")
    return np.concatenate([keys[p * slots + query, :counts[p * slots + query]] for p in range(lists.parts)])


def search_scenario(bench, metric, rows, counts, queries, slots, together, words, columns, parts, k, masked, live):
    """Launches a search kernel on rows in segments (all but the last of whole words) and compares the best of what it kept."""
    table, word_count = make_segments(bench, rows, counts, live)
    admitted, mask, mask_words = live.copy(), 0, 0
    if masked:
        let_in = np.random.default_rng(masked).random(len(rows)) < 0.6
        mask_words = max(word_count - 1, 1)  # rows past the mask are not admitted
        let_in[mask_words * 64:] = False
        admitted &= let_in
        mask = bench.memory(np.packbits(np.pad(let_in, (0, mask_words * 64))[:mask_words * 64], bitorder="little").view(np.uint64))
    lists = make_lists(bench, slots, parts, k, words)
    into = make_queries(bench, queries, slots, together)
    searched = bench.headers.search_rows(segments=table, mask=mask, mask_words=mask_words, word_count=word_count,
                                         runs=runs_of(rows.shape[1]), metric=metric)
    bench.launch((parts, columns), bench.headers.SEARCH_THREADS, rows=searched, queries=into, lists=lists)
    expected = bench.library.search(metric, rows, queries, k, admitted)
    for q in range(len(queries)):
        best = np.sort(kept_keys(bench, lists, q, slots))[:k]
        bench.equal(f"query {q}, metric {metric}", np.pad(best, (0, k - len(best)), constant_values=KEY_WORST), expected[q])


def search_kernel(bench, metrics, slot_queries, together, words):
    """`slot_queries` queries a block, rows by `words` words at a time: one list or many, masks, removed rows, ties."""
    #     queries              dim  rows in segments  k   parts
    table = [(1, 1, (40,), 1, 1), (slot_queries, 70, (128, 64, 91), 5, 3), (max(slot_queries - 1, 1), 200, (64, 320), 9, 2)]
    if not together:
        table.append((slot_queries + 3, 64, (192, 37), 20, 2))
    for n, (count, dim, counts, k, parts) in enumerate(table):
        for metric in metrics:
            total = sum(counts)
            rows = hard_rows(n + 10, total, dim) if n % 2 else normals(n + 10, total, dim)
            queries = normals(n + 20, count, dim) if n % 2 == 0 else np.rint(normals(n + 20, count, dim))
            if metric == COSINE:  # division with denormal operands is beyond the emulator
                rows = np.where(np.abs(rows) < 1e-15, np.float32(0), rows)
            live = np.random.default_rng(n).random(total) < (1.1 if n == 0 else 0.9)
            slots = -(-count // slot_queries) * slot_queries
            search_scenario(bench, metric, rows, counts, queries, slots, together, words, slots // slot_queries, parts, k, n == 2, live)


def search_held(runs, metric):
    """Rows of one or two runs, by tiles of 32, and as many queries a block as it is given."""
    def test(bench):
        first = 64 * (runs - 1)
        #        queries, of a block, dim   rows in segments  k   parts
        table = [(1, 8, first + 1, (40,), 1, 1), (19, 16, first + 33, (128, 64, 91), 5, 3), (70, 128, first + 64, (64, 320), 9, 2),
                 (37, 32, first + 64, (192, 37), 20, 1)]
        for n, (count, each, dim, counts, k, parts) in enumerate(table):
            total = sum(counts)
            rows = hard_rows(n + 10, total, dim) if n % 2 else normals(n + 10, total, dim)
            if metric == COSINE:
                rows = np.where(np.abs(rows) < 1e-15, np.float32(0), rows)
            queries = normals(n + 20, count, dim) if n % 2 == 0 else np.rint(normals(n + 20, count, dim))
            live = np.random.default_rng(n).random(total) < (1.1 if n == 0 else 0.9)
            slots = -(-count // each) * each
            search_scenario(bench, metric, rows, counts, queries, slots, 0, 1, slots // each, parts, k, n == 2, live)
    return test


def search_few(queries, metrics):
    return lambda bench: search_kernel(bench, metrics, queries, queries, bench.headers.SEARCH_FEW_WORDS)


def search_tall(metrics):
    return lambda bench: search_kernel(bench, metrics, bench.headers.SEARCH_TALL_QUERIES, 0, bench.headers.SEARCH_TALL_WORDS)


def search_wide(metrics):
    return lambda bench: search_kernel(bench, metrics, bench.headers.SEARCH_WIDE_QUERIES, 0, bench.headers.SEARCH_WIDE_WORDS)


def search_merge(bench):
    """Lists made up here: short ones, empty ones, and for the largest k so many keys that the buffer is cut several times."""
    for n, (queries, slots, parts, k, most) in enumerate([(1, 1, 1, 1, 10), (3, 4, 5, 7, 20), (2, 64, 3, 300, 391), (1, 1, 5, 2048, 2576)]):
        rng = np.random.default_rng(n)
        lists = make_lists(bench, slots, parts, k, 1)
        keys, counts = bench.at(lists.keys).reshape(-1, lists.capacity), bench.at(lists.counts)
        unique = rng.choice(2**62, keys.size, replace=False) if keys.size < 5000 else rng.permutation(keys.size) * 977
        keys[:] = unique.astype(np.uint64).reshape(keys.shape)
        counts[:] = rng.integers(0, min(most, lists.kept_max) + 1, counts.size) if n < 3 else lists.kept_max
        counts[-1] = 0 if n == 1 else counts[-1]
        expected = np.full((queries, k), KEY_WORST)
        worst = np.full(slots, KEY_WORST)
        for q in range(queries):
            mine = np.sort(np.concatenate([keys[p * slots + q, :counts[p * slots + q]] for p in range(parts)]))
            expected[q, :min(k, len(mine))] = mine[:k]
            if len(mine) > k:
                worst[q] = mine[k]
        best = bench.memory(np.zeros((queries, k), np.uint64))
        bench.launch(queries, bench.headers.SEARCH_THREADS, lists=lists, worst=bench.memory(worst), best=best, slots=slots)
        bench.equal("best", best.array(), expected)


TESTS = {
    "rows_pack": rows_pack,
    "rows_gather": rows_gather,
    "search_prepare": search_prepare,
    "search_merge": search_merge,
    "search_few_1_dot": search_few(1, (DOT, COSINE)),
    "search_few_4_dot": search_few(4, (DOT, COSINE)),
    "search_few_8_dot": search_few(8, (DOT, COSINE)),
    "search_few_1_l2": search_few(1, (L2,)),
    "search_few_4_l2": search_few(4, (L2,)),
    "search_few_8_l2": search_few(8, (L2,)),
    "search_tall_dot": search_tall((DOT, COSINE)),
    "search_tall_l2": search_tall((L2,)),
    "search_wide_dot": search_wide((DOT, COSINE)),
    "search_wide_l2": search_wide((L2,)),
    **{f"search_held_{runs}_{name}": search_held(runs, metric) for runs in (1, 2) for name, metric in (("cosine", COSINE), ("l2", L2), ("dot", DOT))},
    **screen_cases.TESTS,
}
