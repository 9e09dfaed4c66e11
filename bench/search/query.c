/* What a results object costs beside a plain search: one query, k = 10, with ids and payloads, with vectors as well.
 *
 *   query [DEVICE [ROWS [DIM]]]     DEVICE is cpu by default, ROWS 10000, DIM 128
 *
 * The calls take turns, and the figures are medians of each, in microseconds: on a machine with other work the difference of
 * two medians is steadier than that of two means.
 */
#include <stdio.h>
#include <stdlib.h>

#include <warpwave.h>

#include "measure.h"

enum { ROUNDS = 2000, K = 10, WAYS = 4 };

/* Rows with ids of 16 bytes and payloads of 40. */
static void fill(ww_collection *collection, int64_t count, int32_t dim)
{
    float *vectors = malloc((size_t)count * (size_t)dim * sizeof *vectors);
    char(*texts)[64] = malloc((size_t)count * sizeof *texts);
    char(*jsons)[64] = malloc((size_t)count * sizeof *jsons);
    const char **ids = malloc((size_t)count * sizeof *ids), **payloads = malloc((size_t)count * sizeof *payloads);
    if (!vectors || !texts || !jsons || !ids || !payloads)
        exit(1);
    uint32_t random = 1;
    for (int64_t i = 0; i < count * dim; i++) {
        random = random * 1664525u + 1013904223u;
        vectors[i] = (float)(random >> 8) / 16777216.0f - 0.5f;
    }
    for (int64_t i = 0; i < count; i++) {
        snprintf(texts[i], sizeof texts[i], "document-%07lld", (long long)i);
        snprintf(jsons[i], sizeof jsons[i], "{\"title\": \"page %07lld\", \"year\": 2026}", (long long)i);
        ids[i] = texts[i];
        payloads[i] = jsons[i];
    }
    ww_rows rows = ww_rows_default();
    rows.count = count, rows.dim = dim, rows.vectors = vectors, rows.ids = ids, rows.payloads = payloads;
    check(ww_collection_add(collection, &rows), "adding");
    free(payloads);
    free(ids);
    free(jsons);
    free(texts);
    free(vectors);
}

static double time_search(ww_collection *collection, const ww_query *query)
{
    int64_t rows[K];
    float scores[K];
    ww_query search = ww_query_default();
    search.queries = query->queries, search.query_count = 1, search.dim = query->dim, search.k = K;
    const double begin = seconds_now() * 1e6;
    check(ww_collection_search(collection, &search, rows, scores), "a search");
    return seconds_now() * 1e6 - begin;
}

static double time_query(ww_collection *collection, const ww_query *query)
{
    ww_results *results = NULL;
    const double begin = seconds_now() * 1e6;
    check(ww_collection_query(collection, query, &results), "a query");
    ww_results_destroy(results);
    return seconds_now() * 1e6 - begin;
}

int main(int argc, char **argv)
{
    static double times[WAYS][ROUNDS];
    static const char *const names[WAYS] = {"search", "query, nothing fetched", "query with ids and payloads",
                                            "query with vectors as well"};
    static const uint32_t fetches[WAYS] = {0, 0, WW_FETCH_IDS | WW_FETCH_PAYLOADS,
                                           WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS};
    const int64_t rows = argc > 2 ? atoll(argv[2]) : 10000;
    ww_collection_config config = ww_collection_config_default();
    config.dim = argc > 3 ? (int32_t)atoi(argv[3]) : 128;
    ww_device *device = NULL;
    ww_collection *collection = NULL;
    check(ww_device_open(argc > 1 ? argv[1] : "cpu", &device), "the device");
    check(ww_collection_create(device, &config, &collection), "the collection");
    fill(collection, rows, config.dim);
    float *vector = malloc((size_t)config.dim * sizeof *vector);
    ww_query query = ww_query_default();
    query.queries = vector, query.query_count = 1, query.dim = config.dim, query.k = K;
    for (int round = 0; round < ROUNDS; round++) {
        check(ww_collection_vector(collection, (int64_t)round * 7919 % rows, vector), "a vector");
        for (int turn = 0; turn < WAYS; turn++) {
            const int way = (turn + round) % WAYS; /* the first finds the query's rows out of the cache */
            query.fetch = fetches[way];
            times[way][round] = way == 0 ? time_search(collection, &query) : time_query(collection, &query);
        }
    }
    for (int way = 0; way < WAYS; way++) {
        qsort(times[way], ROUNDS, sizeof **times, by_value);
        printf("%-28s %9.2f us, %+.2f\n", names[way], times[way][ROUNDS / 2], times[way][ROUNDS / 2] - times[0][ROUNDS / 2]);
    }
    free(vector);
    ww_collection_destroy(collection);
    ww_device_close(device);
    return 0;
}
