/* One query with and without high planes of codes (docs/design/exactness.md), in one run.
 *
 *   planes [DEVICE [ROWS [DIM]]]     DEVICE is cpu by default, ROWS 1000000, DIM 128
 *
 * Rows are windows over one long sequence of random numbers, about normal, so that very many are made in no time; k = 10,
 * cosine. Both ways take turns for each query. It prints the median over the queries of the shortest of TURNS times, in
 * milliseconds. The results must be the same bits.
 */
#include <string.h>

#include <warpwave.h>

#include "device/backend.h"
#include "measure.h"

enum { QUERIES = 40, TURNS = 12, K = 10, PIECE = 1 << 20 };

static float random_normal(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t bits = *state >> 8;
    return (float)((bits & 0x3fff) + (bits >> 14 & 0x3fff) + (bits >> 28 & 0x3fff) + (bits >> 42 & 0x3fff)) / 16384.0f - 2.0f;
}

static ww_collection *filled(ww_device *device, int64_t count, int32_t dim, const float *numbers)
{
    ww_collection_config config = ww_collection_config_default();
    ww_collection *collection = NULL;
    config.dim = dim;
    check(ww_collection_create(device, &config, &collection), "the collection");
    for (int64_t first = 0; first < count; first += PIECE) {
        ww_rows rows = ww_rows_default();
        rows.count = count - first < PIECE ? count - first : PIECE, rows.dim = dim;
        rows.vectors = numbers + first / PIECE; /* the next piece starts one number later */
        check(ww_collection_add(collection, &rows), "adding");
    }
    return collection;
}

/* Milliseconds of a search. */
static double search(ww_collection *collection, const float *query, int32_t dim, int64_t found[K], float scores[K])
{
    ww_query asked = ww_query_default();
    asked.queries = query, asked.query_count = 1, asked.dim = dim, asked.k = K;
    const double begin = seconds_now();
    check(ww_collection_search(collection, &asked, found, scores), "a search");
    return (seconds_now() - begin) * 1e3;
}

static bool same_bytes(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

int main(int argc, char **argv)
{
    static const tuning_choice ways[2] = {TUNING_NEVER, TUNING_ALWAYS};
    const int64_t count = argc > 2 ? atoll(argv[2]) : 1000000;
    const int32_t dim = argc > 3 ? (int32_t)atoi(argv[3]) : 128;
    const size_t numbers_count = ((size_t)PIECE + QUERIES + 1) * (size_t)dim + (size_t)(count / PIECE);
    float *numbers = malloc(numbers_count * sizeof *numbers);
    ww_device *device = NULL;
    uint64_t random = 1;
    double shortest[2][QUERIES];
    if (!numbers)
        return 1;
    for (size_t i = 0; i < numbers_count; i++)
        numbers[i] = random_normal(&random);
    check(ww_device_open(argc > 1 ? argv[1] : "cpu", &device), "the device");
    ww_collection *collection = filled(device, count, dim, numbers);
    for (int q = 0; q < QUERIES; q++) {
        const float *query = numbers + numbers_count - (size_t)(q + 1) * (size_t)dim;
        int64_t found[2][K];
        float scores[2][K];
        for (int turn = 0; turn < TURNS; turn++)
            for (int way = 0; way < 2; way++) {
                device->tuning.planes = ways[way];
                const double took = search(collection, query, dim, found[way], scores[way]);
                shortest[way][q] = turn == 0 || took < shortest[way][q] ? took : shortest[way][q];
            }
        if (!same_bytes(found[0], found[1], sizeof found[0]) || !same_bytes(scores[0], scores[1], sizeof scores[0])) {
            fprintf(stderr, "query %d: other results with planes than without\n", q);
            return 1;
        }
    }
    const double without = median_of(shortest[0], QUERIES), with = median_of(shortest[1], QUERIES);
    printf("%lld x %d on %s: %.4f ms without planes, %.4f with, %.2f\n", (long long)count, dim, device->info.id, without, with,
           with / without);
    ww_collection_destroy(collection);
    ww_device_close(device);
    free(numbers);
    return 0;
}
