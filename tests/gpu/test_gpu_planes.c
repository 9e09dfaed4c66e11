/* High planes of codes on GPUs: their bits are as arithmetic/screen.h defines them, a query that reads them finds the same rows
 * as without, they follow every change of the rows, and other allocations can take their memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/row_types.h"
#include "arithmetic/screen.h"
#include "gpu/device.h"
#include "gpu/search/planes/planes.h"
#include "support/collections.h"
#include "support/data/datasets.h"
#include "support/devices.h"
#include "support/pretend/pretend.h"
#include "vectors/collection.h"

enum { K = 10 };

static ww_collection *filled(ww_device *device, int32_t dim, ww_metric metric, const float *vectors, int64_t count)
{
    ww_collection *c = collection_make(device, dim, metric);
    ww_rows rows = ww_rows_default();
    rows.count = count;
    rows.dim = dim;
    rows.vectors = vectors;
    CHECK_OK(ww_collection_add(c, &rows));
    return c;
}

/* The result of a search for one query. */
typedef struct answer {
    int64_t rows[K];
    float scores[K];
    ww_search_stats stats;
} answer;

static answer ask(ww_collection *c, const float *query, int32_t k, tuning_choice planes, const uint64_t *mask)
{
    answer found;
    memset(&found, 0, sizeof found);
    found.stats = ww_search_stats_default();
    ww_query search = ww_query_default();
    search.queries = query;
    search.query_count = 1;
    search.dim = c->dim;
    search.k = k;
    search.stats = &found.stats;
    search.mask = mask;
    search.mask_rows = mask ? c->store.rows_count : 0;
    c->device->tuning.planes = planes;
    CHECK_OK(ww_collection_search(c, &search, found.rows, found.scores));
    c->device->tuning.planes = TUNING_ALWAYS;
    return found;
}

static void check_same(const answer *a, const answer *b, const char *name, int32_t dim)
{
    if (memcmp(a->rows, b->rows, sizeof a->rows) != 0 || memcmp(a->scores, b->scores, sizeof a->scores) != 0)
        fail_msg("%s, dim %d: another answer by planes", name, dim);
    assert_true(a->stats.certificate >= 0 && b->stats.certificate >= 0);
    assert_int_equal(a->stats.repeated_queries + b->stats.repeated_queries, 0);
}

/* ---- answers ------------------------------------------------------------------------------------------------------------- */

/* A zero row among those of a dataset; with and without a mask. */
static void check_dataset(ww_device *device, const dataset *d, int32_t dim, ww_metric metric)
{
    enum { QUERIES = 3 };
    const int64_t count = device_is_slow(device) ? 700 : 5000;
    test_random random = {(uint64_t)dim};
    float *rows = malloc((size_t)(count + QUERIES) * (size_t)dim * sizeof *rows), *queries = rows + count * dim;
    uint64_t *mask = malloc((size_t)(count + 63) / 64 * sizeof *mask);
    d->make(&random, dim, rows, count, queries, QUERIES);
    memset(rows + 5 * (size_t)dim, 0, (size_t)dim * sizeof *rows);
    for (int64_t w = 0; w < (count + 63) / 64; w++)
        mask[w] = random_bits(&random);
    ww_collection *c = filled(device, dim, metric, rows, count);
    for (int64_t q = 0; q < QUERIES; q++) {
        const uint64_t *of_query = q == 1 ? mask : NULL;
        const answer without = ask(c, queries + q * dim, K, TUNING_NEVER, of_query);
        const answer with = ask(c, queries + q * dim, K, TUNING_ALWAYS, of_query);
        check_same(&without, &with, d->name, dim);
    }
    ww_collection_destroy(c);
    free(mask);
    free(rows);
}

static void one_query_by_planes_gives_the_bits_of_whole_codes(void **state)
{
    static const int32_t dims[] = {65, 128, 190, 200, 300, 1100};
    static const dataset *const all[] = {datasets, extreme_datasets};
    enum { CASES = 6 * 3 };
    ww_device *device = *state;
    const size_t share = device_is_quick_gpu(device) ? 1 : 7;
    size_t number = 0;
    pretend_screen(device, true);
    for (int some = 0; some < 2; some++)
        for (const dataset *d = all[some]; d->name; d++, number++)
            for (size_t i = number % share; i < CASES; i += share)
                check_dataset(device, d, dims[i / 3], (ww_metric)(i % 3));
    pretend_screen(device, false);
}

/* Waves that process many rows each: rows that their planes do not exclude wait until there is one per lane, or another segment
 * starts, and planes that exclude too little are skipped for a while. */
static void waves_that_take_many_rows_give_the_same_bits(void **state)
{
    enum { DIM = 128, PART = 1100, PARTS = 5, ROWS = PART * PARTS };
    static const char *const kinds[] = {"random normal", "clustered", "near-duplicates", "all equal", "integers"};
    ww_device *device = *state;
    const int32_t units = device->info.compute_units;
    pretend_screen(device, true);
    device->info.compute_units = 1;
    for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++) {
        test_random random = {n};
        float *rows = malloc((size_t)(ROWS + 1) * DIM * sizeof *rows);
        dataset_named(kinds[n])->make(&random, DIM, rows, ROWS, rows + (size_t)ROWS * DIM, 1);
        ww_collection *c = filled(device, DIM, (ww_metric)(n % 3), rows, PART);
        for (int64_t part = 1; part < PARTS; part++) {
            ww_rows more = ww_rows_default();
            more.count = PART;
            more.dim = DIM;
            more.vectors = rows + (size_t)part * PART * DIM;
            CHECK_OK(ww_collection_add(c, &more));
        }
        assert_true(c->store.segment_count > 1);
        for (int turn = 0; turn < 2; turn++) { /* from the first row to the last, and back */
            const answer without = ask(c, rows + (size_t)ROWS * DIM, K, TUNING_NEVER, NULL);
            const answer with = ask(c, rows + (size_t)ROWS * DIM, K, TUNING_ALWAYS, NULL);
            check_same(&without, &with, kinds[n], DIM);
        }
        ww_collection_destroy(c);
        free(rows);
    }
    device->info.compute_units = units;
    pretend_screen(device, false);
}

/* ---- the planes themselves ----------------------------------------------------------------------------------------------- */

/* A search that has taken the planes of a collection. */
typedef struct taken {
    gpu_stream *stream;
    segment_table table;
    bool planes;
} taken;

static taken take(ww_collection *c)
{
    const search_job job = {.dim = c->dim,
                            .type = ROW_F32,
                            .segments = c->store.segments,
                            .segment_count = c->store.segment_count,
                            .query_count = 1};
    taken t = {0};
    kernel_rows rows;
    CHECK_OK(segment_table_make(&job, false, &t.table, &rows));
    CHECK_OK(gpu_stream_borrow(gpu_of(c->device), &t.stream));
    CHECK_OK(gpu_planes_take(t.stream, &job, &t.table, &t.planes));
    return t;
}

static void give_back(taken *t)
{
    gpu_device *device = t->stream->device;
    if (t->planes)
        gpu_planes_return(device);
    CHECK_OK(gpu_stream_return(t->stream, WW_OK));
    free(t->table.segments);
}

/* Bytes of the device, which belong to the test until it frees them. */
static void *copied(const taken *t, const void *from, size_t bytes)
{
    void *to = malloc(bytes);
    CHECK_OK(gpu_copy_out(t->stream, to, from, bytes));
    return to;
}

static int32_t signed_byte(uint8_t byte)
{
    return (byte ^ 0x80) - 0x80;
}

/* Compares the planes of a segment with its codes. */
static void check_planes(const taken *t, const segment *part, const kernel_segment *entry, int32_t dim)
{
    const int32_t chunks = canon_padded(dim) / CANON_LANES, halves = screen_plane_chunks(chunks);
    const size_t capacity = (size_t)part->capacity;
    uint8_t *codes = copied(t, part->codes.data, capacity * (size_t)chunks * CANON_LANES);
    uint8_t *highs = copied(t, entry->highs, capacity * (size_t)halves * CANON_LANES);
    float *scales = copied(t, part->scales.data, capacity * sizeof(float));
    float *residuals = copied(t, part->residuals.data, capacity * sizeof(float));
    float *made = copied(t, entry->high_residuals, capacity * sizeof(float));
    for (uint64_t r = 0; r < (uint64_t)part->count; r++) {
        int32_t squares = 0;
        for (int32_t i = 0; i < chunks * CANON_LANES; i++) {
            const int32_t chunk = i / CANON_LANES, piece = i % CANON_LANES / 16;
            const int32_t code = signed_byte(codes[screen_code_at(chunks, r, chunk, (uint32_t)piece) * 4 + (uint64_t)(i % 16)]);
            const uint8_t both = highs[screen_code_at(halves, r, chunk / 2, (uint32_t)piece) * 4 + (uint64_t)(i % 16)];
            const int32_t high = signed_byte((uint8_t)(chunk % 2 ? both << 4 & 0xf0 : both & 0xf0));
            if (high != 16 * screen_high(code))
                fail_msg("row %d, code %d: %d is in the plane for %d", (int)r, i, high, code);
            squares += (code - high) * (code - high);
        }
        const float bound = screen_high_residual(scales[r], residuals[r], squares);
        assert_memory_equal(&made[r], &bound, sizeof bound);
    }
    free(made);
    free(residuals);
    free(scales);
    free(highs);
    free(codes);
}

static void check_all_planes(ww_collection *c)
{
    taken t = take(c);
    size_t filled_entries = 0;
    assert_true(t.planes);
    for (int64_t i = 0; i < c->store.segment_count; i++)
        if (c->store.segments[i].count > 0)
            check_planes(&t, &c->store.segments[i], &t.table.segments[filled_entries++], c->dim);
    give_back(&t);
}

static bool is_gpu(const ww_device *device)
{
    return !device->backend->on_host && strchr(device->info.id, '+') == NULL;
}

static void planes_follow_every_change_of_the_rows(void **state)
{
    enum { ROWS = 300, DIM = 150 };
    ww_device *device = *state;
    if (!is_gpu(device))
        return;
    pretend_screen(device, true);
    test_random random = {3};
    ww_collection *c = collection_make(device, DIM, WW_L2);
    for (int step = 0; step < 6; step++) {
        float query[DIM];
        if (step == 2) {
            test_rows rows = test_rows_make(&random, 70, DIM, "row", 20);
            CHECK_OK(ww_collection_upsert(c, &rows.rows));
            test_rows_free(&rows);
        } else if (step == 3) {
            static const char *const ids[] = {"row3", "row77", "row129"};
            CHECK_OK(ww_collection_remove(c, ids, 3));
        } else if (step == 4) {
            CHECK_OK(ww_collection_compact(c, NULL, NULL));
        } else {
            collection_fill(c, &random, ROWS, DIM, "row", step * ROWS);
        }
        random_normals(&random, query, DIM);
        const answer with = ask(c, query, K, TUNING_ALWAYS, NULL), without = ask(c, query, K, TUNING_NEVER, NULL);
        check_same(&without, &with, "rows that change", DIM);
        check_all_planes(c);
    }
    ww_collection_destroy(c);
    pretend_screen(device, false);
}

/* Planes that exclude every row lose all results, so the search is repeated: that shows that planes are read. */
static void planes_are_read_only_for_one_query(void **state)
{
    enum { ROWS = 1000, DIM = 128 };
    ww_device *device = *state;
    if (!is_gpu(device))
        return;
    pretend_screen(device, true);
    float *rows = malloc((size_t)ROWS * DIM * sizeof *rows);
    random_normals(&(test_random){8}, rows, (int64_t)ROWS * DIM);
    ww_collection *c = filled(device, DIM, WW_DOT, rows, ROWS);
    taken t = take(c);
    assert_true(t.planes);
    for (size_t i = 0; i < t.table.bytes / sizeof *t.table.segments; i++) /* -inf */
        CHECK_OK(gpu_fill(t.stream, (void *)(uintptr_t)t.table.segments[i].high_residuals, 0xff800000u, ROWS));
    give_back(&t);
    const answer spoilt = ask(c, rows, K, TUNING_ALWAYS, NULL), whole = ask(c, rows, K, TUNING_NEVER, NULL);
    assert_int_equal(spoilt.stats.repeated_queries, 1);
    assert_int_equal(whole.stats.repeated_queries, 0);
    assert_memory_equal(spoilt.rows, whole.rows, sizeof whole.rows);
    ww_collection_destroy(c);
    free(rows);
    pretend_screen(device, false);
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

static bool has_planes(ww_collection *c)
{
    taken t = take(c);
    const bool has = t.planes;
    give_back(&t);
    return has;
}

static void planes_are_made_for_searches_that_come_again_in_memory_that_is_free(void **state)
{
    enum { ROWS = 1000, DIM = 128, BYTES = ROWS * (DIM / 2 + 4) };
    ww_device *device = *state;
    if (!is_gpu(device))
        return;
    float *rows = malloc((size_t)ROWS * DIM * sizeof *rows);
    random_normals(&(test_random){9}, rows, (int64_t)ROWS * DIM);
    ww_collection *c = filled(device, DIM, WW_COSINE, rows, ROWS);
    CHECK_OK(ww_device_trim(device));
    ww_memory_info before = ww_memory_info_default(), with = before, after = before;
    CHECK_OK(ww_device_memory(device, &before));
    for (int i = 0; i < 3; i++)
        assert_false(has_planes(c));
    assert_true(has_planes(c));
    assert_true(has_planes(c));
    CHECK_OK(ww_device_memory(device, &with));
    assert_int_equal(with.ours_bytes, before.ours_bytes);
    assert_true(with.pooled_bytes >= before.pooled_bytes + BYTES);
    taken t = take(c); /* planes that a search reads stay, */
    CHECK_OK(ww_device_trim(device));
    check_planes(&t, &c->store.segments[0], &t.table.segments[0], DIM);
    give_back(&t);
    CHECK_OK(ww_device_trim(device)); /* which frees others */
    CHECK_OK(ww_device_memory(device, &after));
    assert_true(after.pooled_bytes < with.pooled_bytes);
    assert_false(has_planes(c));
    ww_collection_destroy(c);
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planes_are_made_for_searches_that_come_again_in_memory_that_is_free),
        cmocka_unit_test(planes_follow_every_change_of_the_rows),
        cmocka_unit_test(planes_are_read_only_for_one_query),
        cmocka_unit_test(waves_that_take_many_rows_give_the_same_bits),
        cmocka_unit_test(one_query_by_planes_gives_the_bits_of_whole_codes),
    };
    if (test_is_short())
        setenv("WARPWAVE_TEST_DEVICES", "cpu,emulator:32", 0);
    return RUN_ON_EVERY_DEVICE("planes", tests);
}
