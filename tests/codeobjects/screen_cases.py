"""Tests of the screen's kernels, as cases.py has them for the others: codes and keys to the bit; lists of kept rows as sets that hold
every row that could be a result, and none that the bound excludes beyond rounding."""
import numpy as np

from canonical import COSINE, DOT, KEY_WORST, L2, key_scores, make_keys, pack, runs_of
from screening import Coded, sample_keys, values

POISON = np.uint32(0x7fc0dead)
METRICS = (DOT, COSINE, L2)


def poisoned(*shape):
    return np.full(shape, POISON, np.uint32)


def normals(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def sized_rows(seed, count, dim):
    """Rows of very different size, some below what is coded at all, some with one element that swallows the scale."""
    rows = normals(seed, count, dim)
    factors = np.array([1, 0, 2.0**-101, 2.0**-100, 2.0**-140, 2.0**40, 2.0**-60], np.float32)
    rows *= factors[np.arange(count) % 7][:, None]
    rows[0, 0] = 1000
    return rows


def alike_rows(seed, count, dim):
    """Clusters with near-duplicates and ties, so that thresholds are close to many scores."""
    rng = np.random.default_rng(seed)
    centres = rng.integers(-3, 4, (5, dim)).astype(np.float32)
    rows = centres[np.arange(count) % 5] + np.where(np.arange(count) % 3 > 0, 0.01, 0)[:, None] * rng.standard_normal((count, dim))
    rows[count // 2] = 0
    return rows.astype(np.float32)


# ---- coding ------------------------------------------------------------------------------------------------------------------

def screen_code(bench):
    for n, (count, dim) in enumerate([(1, 1), (37, 65), (16, 64), (33, 200), (5, 130)]):
        rows, runs = sized_rows(n, count, dim), runs_of(dim)
        codes = bench.memory(poisoned(count, runs * 16))
        scales, residuals = bench.memory(poisoned(count)), bench.memory(poisoned(count))
        bench.launch(-(-count // 16), bench.headers.SCREEN_THREADS, rows=bench.memory(pack(rows, count)), codes=codes, scales=scales,
                     residuals=residuals, count=count, runs=runs)
        expected = Coded(bench.library, rows)
        bench.equal("codes", codes.array().view(np.int8), expected.stored)
        bench.equal("scales", scales.array(), expected.scales.view(np.uint32))
        bench.equal("residuals", residuals.array(), expected.residuals.view(np.uint32))


def screen_gather(bench):
    for n, (count, runs, sources) in enumerate([(1, 1, 3), (19, 3, 40), (33, 2, 64)]):
        rng = np.random.default_rng(n)
        codes = rng.integers(0, 2**32, (sources, runs * 16), np.uint32)
        scales, residuals = rng.integers(0, 2**32, (2, sources), np.uint32)
        chosen = np.sort(rng.choice(sources, count, replace=False)).astype(np.int64)
        to = bench.memory(poisoned(count, runs * 16)), bench.memory(poisoned(count)), bench.memory(poisoned(count))
        bench.launch(-(-count // 16), bench.headers.SCREEN_THREADS, from_codes=bench.memory(codes), from_scales=bench.memory(scales),
                     from_residuals=bench.memory(residuals), to_codes=to[0], to_scales=to[1], to_residuals=to[2],
                     sources=bench.memory(chosen), count=count, runs=runs)
        for what, found, whole in zip(("codes", "scales", "residuals"), to, (codes, scales, residuals)):
            bench.equal(what, found.array(), whole[chosen])


def screen_prepare(bench):
    for n, (count, slots, dim) in enumerate([(1, 1, 5), (3, 4, 64), (8, 8, 130), (20, 128, 63)]):
        given, runs = sized_rows(n + 5, count, dim), runs_of(dim)
        known = np.random.default_rng(n).integers(0, 2**63, count, np.uint64) if n % 2 else None
        packed, codes = bench.memory(poisoned(slots, runs * 64)), bench.memory(poisoned(slots, runs * 16))
        numbers, counts, ready = (bench.memory(poisoned(*shape)) for shape in ((slots, 4), (slots,), (slots,)))
        thresholds = bench.memory(np.zeros(slots, np.uint64))
        into = bench.headers.screen_queries(packed=packed, codes=codes, numbers=numbers, thresholds=thresholds, counts=counts,
                                            blocks_ready=ready, count=count, slots=slots)
        bench.launch(-(-slots // 16), bench.headers.SCREEN_THREADS, **{
            "from": bench.memory(given), "known": bench.memory(known) if known is not None else 0, "queries": into, "dim": dim})
        whole = np.zeros((slots, dim), np.float32)
        whole[:count] = given
        expected = Coded(bench.library, whole)
        bench.equal("packed", packed.array().reshape(-1), pack(whole, slots).view(np.uint32))
        bench.equal("codes", codes.array().view(np.int8), expected.stored)
        bench.equal("numbers", numbers.array(), np.stack([expected.scales, expected.residuals, expected.norms, np.zeros(slots, np.float32)], 1).view(np.uint32))
        bench.equal("thresholds", thresholds.array()[:count], known if known is not None else np.full(count, KEY_WORST))
        bench.equal("thresholds of slots", thresholds.array()[count:], np.full(slots - count, KEY_WORST))
        bench.equal("counts", counts.array(), np.zeros(slots))
        bench.equal("blocks that are ready", ready.array(), np.zeros(slots))


# ---- what is searched --------------------------------------------------------------------------------------------------------

class Scene:
    """Rows in segments with a gap of row numbers between them, queries, masks; and what the CPU makes of them. Rows are known by
    position (a word's number times 64 plus the row in it) or by row number, which the gaps make different."""

    def __init__(self, bench, metric, rows, counts, queries, slots, mask_seed):
        self.bench, self.metric, self.rows, self.queries, self.slots = bench, metric, rows, queries, slots
        self.dim, self.count = rows.shape[1], len(queries)
        self.live = np.random.default_rng(len(rows)).random(len(rows)) < 0.9
        self.numbers = np.concatenate([np.arange(n) + sum(counts[:i]) + 64 * i for i, n in enumerate(counts)])
        self.coded = Coded(bench.library, rows)
        self.coded_queries = Coded(bench.library, queries)
        self.admitted = self.live.copy()
        self.mask, self.mask_words = 0, 0
        if mask_seed:
            self.mask_words = int(self.numbers[-1]) // 64  # the last word is past the mask, and so not admitted
            let_in = np.random.default_rng(mask_seed).random(self.mask_words * 64 + 64) < 0.6
            let_in[self.mask_words * 64:] = False
            self.admitted &= let_in[self.numbers]
            self.mask = bench.memory(np.packbits(let_in[:self.mask_words * 64], bitorder="little").view(np.uint64))
        self.scores = bench.library.scores(metric, queries, rows)
        self.keys = make_keys(metric, self.scores, self.numbers[None, :])
        self._place(counts)

    def _place(self, counts):
        bench, structs, first, end = self.bench, [], 0, 0
        for i, count in enumerate(counts):
            capacity, mine = -(-count // 64) * 64, slice(first, first + count)  # whole words are read, and the masks say what counts
            whole = [poisoned(capacity, runs_of(self.dim) * 64), poisoned(capacity, runs_of(self.dim) * 16)] + [poisoned(capacity) for _ in range(3)]
            whole[0][:count] = pack(self.rows[mine], count).reshape(count, -1).view(np.uint32)
            whole[1][:count] = self.coded.stored[mine].view(np.uint32)
            for there, numbers in zip(whole[2:], (self.coded.scales, self.coded.residuals, self.coded.norms)):
                there[:count] = numbers[mine].view(np.uint32)
            bits = np.zeros(capacity, bool)
            bits[:count] = self.live[mine]
            end += capacity // 64
            memory = [bench.memory(part) for part in whole]
            structs.append(bench.headers.screen_segment(
                rows=memory[0], codes=memory[1], scales=memory[2], residuals=memory[3], norms=memory[4],
                live=bench.memory(np.packbits(bits, bitorder="little").view(np.uint64)), first_row=first + 64 * i, word_end=end))
            first += count
        self.words = end
        self.struct = bench.headers.screen_rows(segments=bench.memory_of(structs), mask=self.mask, mask_words=self.mask_words,
                                                segment_count=len(counts), word_count=end, runs=runs_of(self.dim), metric=self.metric)

    def queries_struct(self, thresholds, counts=None):
        bench, slots, runs = self.bench, self.slots, runs_of(self.dim)
        whole = np.zeros((slots, self.dim), np.float32)
        whole[:self.count] = self.queries
        coded = Coded(bench.library, whole)
        numbers = np.stack([coded.scales, coded.residuals, coded.norms, np.zeros(slots, np.float32)], 1)
        self.thresholds = bench.memory(np.concatenate([thresholds, np.full(slots - self.count, KEY_WORST)]))
        self.kept = bench.memory(np.zeros(slots, np.uint32) if counts is None else counts)
        return bench.headers.screen_queries(
            packed=bench.memory(pack(whole, slots)), codes=bench.memory(coded.stored.view(np.uint32).reshape(slots, runs * 16)),
            numbers=bench.memory(numbers), thresholds=self.thresholds, counts=self.kept,
            blocks_ready=bench.memory(np.zeros(slots, np.uint32)), count=self.count, slots=slots)

    def threshold_keys(self, k):
        """The k-th best key of each query; the worst where there are fewer rows."""
        keys = np.sort(np.where(self.admitted[None, :], self.keys, KEY_WORST), axis=1)
        return keys[:, k - 1] if k <= keys.shape[1] else np.full(self.count, KEY_WORST)


def scenes(bench, slot_queries):
    """All but the last segment have whole words."""
    #          queries                       dim  rows in segments     mask
    table = [(1, 1, (40,), 0), (slot_queries, 70, (128, 64, 192, 91), 0), (max(slot_queries - 1, 1), 200, (64, 320), 3), (slot_queries, 64, (256,), 0)]
    if slot_queries == bench.headers.SCREEN_TILE_QUERIES:
        table = [(9, 1, (140,), 0), (130, 70, (128, 64, 192, 91), 0), (127, 260, (64, 320), 3)]
    for n, (count, dim, counts, mask_seed) in enumerate(table):
        for metric in METRICS if n < 2 else METRICS[n % 3:][:1]:
            total = sum(counts)
            rows = alike_rows(n + 30, total, dim) if n % 2 else normals(n + 30, total, dim)
            queries = np.concatenate([rows[:count // 2] + normals(n + 60, count // 2, dim) * 0.1, normals(n + 40, count - count // 2, dim)])
            yield Scene(bench, metric, rows, counts, queries.astype(np.float32), -(-count // slot_queries) * slot_queries, mask_seed)


# ---- looking at codes --------------------------------------------------------------------------------------------------------

def launch_scan(bench, scene, grid, thresholds, **fields):
    queries = scene.queries_struct(thresholds)
    columns = scene.slots // bench.headers.SCREEN_TILE_QUERIES
    shared = bench.headers.SCREEN_STAGES * bench.headers.SCREEN_STAGE_WORDS * 4 if columns else 0
    arguments = {"samples": 0, "sample_stride": 1, "sample_tiles": 0, "lists": 0, "capacity": 0, "trust": 1.0, **fields}
    bench.launch((grid, columns) if columns else grid, bench.headers.SCREEN_THREADS, shared=shared, rows=scene.struct, queries=queries, **arguments)


def screen_sample(slot_queries):
    def test(bench):
        for n, scene in enumerate(scenes(bench, slot_queries or bench.headers.SCREEN_TILE_QUERIES)):
            tiles_all = scene.words // bench.headers.SCREEN_TILE_WORDS
            if tiles_all == 0:
                continue
            stride = 1 + n % 2
            tiles = -(-tiles_all // stride)
            words = [tile * stride * 2 + w for tile in range(tiles) for w in range(2)]
            samples = bench.memory(np.full((scene.count, tiles * 4), 7, np.uint64))
            launch_scan(bench, scene, 1 + n % 3, np.full(scene.count, KEY_WORST), samples=samples, sample_stride=stride, sample_tiles=tiles)
            bench.equal("samples", samples.array(), sample_keys(scene.metric, scene.coded, scene.coded_queries, scene.admitted, words))
    return test


def check_kept(bench, scene, lists, thresholds, capacity):
    scores = np.where(thresholds == KEY_WORST, np.inf if scene.metric == L2 else -np.inf, key_scores(scene.metric, thresholds)).astype(np.float32)
    distance, rounding = values(scene.metric, scene.dim, scene.coded, scene.coded_queries, scores)
    for q in range(scene.count):
        must = scene.admitted & ((scene.keys[q] <= thresholds[q]) | np.isnan(distance[q]) | (distance[q] > rounding[q]))
        may = scene.admitted & (must | ~(distance[q] < -rounding[q]))
        count = int(scene.kept.array()[q])
        listed = lists[q, :min(count, capacity)].astype(np.int64)
        if not must.sum() <= count <= may.sum():
            bench.fail(f"query {q}: {count} rows kept, between {must.sum()} and {may.sum()} wanted")
        if len(set(listed)) != len(listed) or (len(listed) and (listed.max() >= len(may) or not may[listed].all())):
            bench.fail(f"query {q}: a row is listed twice, or one that the bound excludes")
        if count <= capacity and not must[np.setdiff1d(np.arange(len(must)), listed)].sum() == 0:
            bench.fail(f"query {q}: a row is missing that the bound does not exclude")
        bench.checks += 1


def screen_keep(slot_queries):
    def test(bench):
        for n, scene in enumerate(scenes(bench, slot_queries or bench.headers.SCREEN_TILE_QUERIES)):
            thresholds = scene.threshold_keys((1, 5, 20)[n % 3]).copy()
            if n % 4 == 3:
                thresholds[0] = KEY_WORST  # keeps all
            capacity = 17 if n == 2 else 512
            lists = bench.memory(np.full((scene.count, capacity), 2**40, np.uint64))
            launch_scan(bench, scene, 1 + n % 3, thresholds, lists=lists, capacity=capacity)
            check_kept(bench, scene, lists.array(), thresholds, capacity)
            bench.equal("thresholds", scene.thresholds.array()[:scene.count], thresholds)
    return test


def screen_keep_brakes(bench):
    """Many tiles for one block, and lists that are full long before the end: the rest of the rows may be left out, none is listed
    that is not there, and queries that have room keep all theirs."""
    screen_keep(0)(bench)
    rows = normals(5, 64 * 42 + 3, 3)
    scene = Scene(bench, DOT, rows, (64 * 30, 64 * 12 + 3), normals(6, 9, 3), bench.headers.SCREEN_TILE_QUERIES, 0)
    thresholds = scene.threshold_keys(3).copy()
    thresholds[4] = KEY_WORST
    capacity = 256
    lists = bench.memory(np.full((9, capacity), 2**40, np.uint64))
    launch_scan(bench, scene, 1, thresholds, lists=lists, capacity=capacity)
    counts = scene.kept.array()
    listed = lists.array()[4].astype(np.int64)
    if not capacity < counts[4] < scene.admitted.sum() or len(set(listed)) != capacity or not scene.admitted[listed].all():
        bench.fail(f"a full list of {capacity} says that {counts[4]} rows of {scene.admitted.sum()} were kept")
    others = [q for q in range(9) if q != 4]
    check_kept(bench, Part(scene, others), lists.array()[others], thresholds[others], capacity)


class Part:
    """Some queries of a scene, as check_kept wants them."""

    def __init__(self, scene, numbers):
        self.metric, self.dim, self.coded, self.admitted = scene.metric, scene.dim, scene.coded, scene.admitted
        self.coded_queries = Coded(scene.bench.library, scene.queries[numbers])
        self.keys, self.count = scene.keys[numbers], len(numbers)
        self.kept = scene.bench.memory(scene.kept.array()[numbers])


# ---- exact scores --------------------------------------------------------------------------------------------------------------

def screen_pick(bench):
    for n, metric in enumerate(METRICS + (DOT,)):
        rows, k = normals(n, 64 * 5 + 7, 70 if n % 2 else 64), (1, 7, 16, 20)[n]
        if metric == COSINE:
            rows[::9] = 0
        scene = Scene(bench, metric, rows, (128, 64, 64, 71), normals(n + 9, 3, rows.shape[1]), 4, 0)
        buckets = (4, 24, 64, 40)[n]
        rng = np.random.default_rng(n)
        samples, expected = np.full((3, buckets), KEY_WORST), np.full(3, KEY_WORST)
        for q in range(3):
            filled = buckets if q < 2 else k - 1  # too few for a threshold
            places = rng.choice(len(rows), filled, replace=False)
            samples[q, rng.choice(buckets, filled, replace=False)] = make_keys(DOT, normals(n + q, filled), places)
            chosen = np.sort(samples[q])[:k]
            if filled >= k:
                expected[q] = scene.keys[q, (chosen & np.uint64(0xffffffff)).astype(np.int64)].max()
        queries = scene.queries_struct(np.full(3, KEY_WORST))
        bench.launch(3, bench.headers.SCREEN_THREADS, rows=scene.struct, queries=queries, samples=bench.memory(samples), buckets=buckets, k=k)
        bench.equal("thresholds", scene.thresholds.array()[:3], expected)


def screen_score(bench):
    """Lists of all lengths; one that is cut in between, because it does not fit into shared memory."""
    for n, (metric, counts, dim, k, blocks, capacity) in enumerate([
            (DOT, (64, 192, 75), 70, 9, 3, 300), (L2, (128, 75), 64, 250, 2, 256), (COSINE, (256, 64, 1), 130, 1, 1, 321), (L2, (3600,), 3, 100, 2, 3600)]):
        rows = normals(n + 3, sum(counts), dim)
        rows[1::5] = rows[0]
        scene = Scene(bench, metric, rows, counts, normals(n + 12, 3, dim), 4, 0)
        rng = np.random.default_rng(n)
        kept = np.array([capacity + 5, 0 if n else 16, rng.integers(1, capacity), 99], np.uint32)
        lists = np.full((3, capacity), 2**40, np.uint64)
        expected, best = np.full((3, k), KEY_WORST), bench.memory(np.zeros((3, k), np.uint64))
        for q in range(3):
            length = min(int(kept[q]), capacity, len(rows))
            kept[q] = length if kept[q] <= capacity or length < capacity else kept[q]
            places = rng.permutation(len(rows))[:length]
            lists[q, :length] = places
            found = np.sort(scene.keys[q, places])[:k]
            expected[q, :len(found)] = found
        queries = scene.queries_struct(np.full(3, KEY_WORST), kept)
        bench.launch((blocks, 3), bench.headers.SCREEN_THREADS, rows=scene.struct, queries=queries, lists=bench.memory(lists), best=best,
                     capacity=capacity, k=k)
        bench.equal("best", best.array(), expected)


TESTS = {
    "screen_code": screen_code,
    "screen_gather": screen_gather,
    "screen_prepare": screen_prepare,
    "screen_few_1_sample": screen_sample(1),
    "screen_few_4_sample": screen_sample(4),
    "screen_few_8_sample": screen_sample(8),
    "screen_few_1_keep": screen_keep(1),
    "screen_few_4_keep": screen_keep(4),
    "screen_few_8_keep": screen_keep(8),
    "screen_batch_sample": screen_sample(0),
    "screen_batch_keep": screen_keep_brakes,
    "screen_pick": screen_pick,
    "screen_score": screen_score,
}
