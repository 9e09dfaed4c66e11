/* Collections for tests: create, fill, and compare them. */
#include "support/collections.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/canon.h"

ww_collection *collection_make(ww_device *device, int32_t dim, ww_metric metric)
{
    ww_collection_config config = ww_collection_config_default();
    config.name = "test";
    config.dim = dim;
    config.metric = metric;
    ww_collection *collection = NULL;
    CHECK_OK(ww_collection_create(device, &config, &collection));
    return collection;
}

test_rows test_rows_make(test_random *random, int64_t count, int32_t dim, const char *prefix, int64_t first)
{
    test_rows made = {.rows = ww_rows_default()};
    made.vectors = malloc(sizeof(float) * (size_t)(count * dim) + 1);
    made.ids = calloc((size_t)count + 1, sizeof *made.ids);
    made.payloads = calloc((size_t)count + 1, sizeof *made.payloads);
    random_normals(random, made.vectors, count * dim);
    for (int64_t i = 0; i < count; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s%lld", prefix, (long long)(first + i));
        made.ids[i] = strdup(text);
        snprintf(text, sizeof text, "{\"n\": %lld}", (long long)(first + i));
        if (i % 3 == 0)
            made.payloads[i] = strdup(text);
    }
    made.rows.count = count;
    made.rows.dim = dim;
    made.rows.vectors = made.vectors;
    made.rows.ids = (const char *const *)made.ids;
    made.rows.payloads = (const char *const *)made.payloads;
    return made;
}

void test_rows_free(test_rows *rows)
{
    for (int64_t i = 0; rows->ids && rows->ids[i]; i++) {
        free(rows->ids[i]);
        free(rows->payloads[i]);
    }
    free(rows->ids);
    free(rows->payloads);
    free(rows->vectors);
    *rows = (test_rows){0};
}

void collection_fill(ww_collection *collection, test_random *random, int64_t count, int32_t dim, const char *prefix,
                     int64_t first)
{
    test_rows rows = test_rows_make(random, count, dim, prefix, first);
    CHECK_OK(ww_collection_add(collection, &rows.rows));
    test_rows_free(&rows);
}

static void put_row(FILE *out, ww_collection *collection, int64_t row, int32_t dim)
{
    char id[WW_ID_BYTES_MAX + 1];
    size_t length = 0;
    int64_t found = -1, handle = -1;
    float *vector = malloc((size_t)dim * sizeof *vector);
    CHECK_OK(ww_collection_id(collection, row, id, sizeof id, NULL));
    CHECK_OK(ww_collection_find(collection, id, &found));
    assert_int_equal(found, row);
    CHECK_OK(ww_collection_handle(collection, row, &handle));
    CHECK_OK(ww_collection_find_handle(collection, handle, &found));
    assert_int_equal(found, row);
    CHECK_OK(ww_collection_vector(collection, row, vector));
    CHECK_OK(ww_collection_payload(collection, row, NULL, 0, &length));
    char *payload = malloc(length + 1);
    CHECK_OK(ww_collection_payload(collection, row, payload, length + 1, NULL));
    fwrite(&row, sizeof row, 1, out);
    fwrite(&handle, sizeof handle, 1, out);
    fwrite(id, strlen(id) + 1, 1, out);
    fwrite(vector, sizeof *vector, (size_t)dim, out);
    fwrite(payload, length + 1, 1, out);
    free(payload);
    free(vector);
}

static void put_searches(FILE *out, ww_collection *collection, int32_t dim)
{
    enum { QUERIES = 3, K = 17 };
    test_random random = {99};
    int64_t rows[QUERIES * K];
    float scores[QUERIES * K];
    ww_query search = ww_query_default();
    float *queries = malloc(QUERIES * (size_t)dim * sizeof *queries);
    random_normals(&random, queries, QUERIES * (int64_t)dim);
    search.queries = queries;
    search.query_count = QUERIES;
    search.dim = dim;
    search.k = K;
    CHECK_OK(ww_collection_search(collection, &search, rows, scores));
    fwrite(rows, sizeof rows, 1, out);
    fwrite(scores, sizeof scores, 1, out);
    free(queries);
}

snapshot snapshot_take(ww_collection *collection)
{
    snapshot taken = {0};
    FILE *out = open_memstream(&taken.bytes, &taken.size);
    ww_collection_info info = ww_collection_info_default();
    CHECK_OK(ww_collection_describe(collection, &info));
    fwrite(&info, sizeof info, 1, out);
    int64_t live = 0;
    for (int64_t row = ww_collection_next(collection, -1); row >= 0; row = ww_collection_next(collection, row), live++)
        put_row(out, collection, row, info.dim);
    assert_int_equal(live, info.rows_live);
    assert_int_equal(live, ww_collection_count(collection));
    put_searches(out, collection, info.dim);
    fclose(out);
    return taken;
}

bool snapshot_equal(const snapshot *a, const snapshot *b)
{
    return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

bool snapshot_equal_but_figures(const snapshot *a, const snapshot *b)
{
    const size_t figures = sizeof(ww_collection_info);
    return a->size == b->size && memcmp(a->bytes + figures, b->bytes + figures, a->size - figures) == 0;
}

void snapshot_free(snapshot *taken)
{
    free(taken->bytes);
    taken->bytes = NULL;
}

void check_unchanged(ww_collection *collection, snapshot *before)
{
    snapshot now = snapshot_take(collection);
    assert_true(snapshot_equal(before, &now));
    snapshot_free(&now);
    snapshot_free(before);
}

static int compare_keys(const void *a, const void *b)
{
    const canon_key x = *(const canon_key *)a, y = *(const canon_key *)b;
    return (x > y) - (x < y);
}

static int64_t keys_of(ww_collection *collection, const ww_collection_info *info, const float *query, const uint64_t *mask,
                       int64_t mask_rows, canon_key *keys)
{
    int64_t count = 0;
    float *vector = malloc((size_t)info->dim * sizeof *vector);
    for (int64_t row = ww_collection_next(collection, -1); row >= 0; row = ww_collection_next(collection, row)) {
        if (mask && (row >= mask_rows || !(mask[row / 64] >> (row % 64) & 1)))
            continue;
        float score;
        CHECK_OK(ww_collection_vector(collection, row, vector));
        CHECK_OK(ww_score(info->metric, query, vector, info->dim, &score));
        keys[count++] = canon_make_key((int32_t)info->metric, score, (uint32_t)row);
    }
    free(vector);
    qsort(keys, (size_t)count, sizeof *keys, compare_keys);
    return count;
}

void check_search(ww_collection *collection, const float *queries, int64_t query_count, int64_t query_stride, int32_t k,
                  const uint64_t *mask, int64_t mask_rows)
{
    ww_collection_info info = ww_collection_info_default();
    CHECK_OK(ww_collection_describe(collection, &info));
    const int32_t metric = (int32_t)info.metric;
    int64_t *rows = malloc((size_t)(query_count * k + 1) * sizeof *rows);
    float *scores = malloc((size_t)(query_count * k + 1) * sizeof *scores);
    canon_key *keys = malloc((size_t)(info.rows_live + 1) * sizeof *keys);
    ww_query search = ww_query_default();
    search.queries = queries;
    search.query_count = query_count;
    search.query_stride = query_stride;
    search.dim = info.dim;
    search.k = k;
    search.mask = mask;
    search.mask_rows = mask_rows;
    CHECK_OK(ww_collection_search(collection, &search, rows, scores));
    for (int64_t q = 0; q < query_count; q++) {
        const int64_t stride = query_stride ? query_stride : info.dim;
        const int64_t found = keys_of(collection, &info, queries + q * stride, mask, mask_rows, keys);
        for (int32_t i = 0; i < k; i++) {
            const float worst = metric == CANON_L2 ? INFINITY : -INFINITY;
            const int64_t row = i < found ? (int64_t)canon_key_row(keys[i]) : -1;
            const float score = i < found ? canon_key_score(metric, keys[i]) : worst;
            if (rows[q * k + i] != row || canon_float_bits(scores[q * k + i]) != canon_float_bits(score))
                fail_msg("%s, dim %d, query %lld, result %d: row %lld with %a, not row %lld with %a",
                         ww_metric_name(info.metric), info.dim, (long long)q, i, (long long)rows[q * k + i], scores[q * k + i],
                         (long long)row, score);
        }
    }
    free(keys);
    free(scores);
    free(rows);
}
