/* One query over rows of every type, beside f32 without a screen: time and memory, k = 10.
 *
 *   row_types [DEVICE [ROWS [DIM [SECONDS]]]]     DEVICE is cpu by default, ROWS 200000, DIM 128, SECONDS of each kind 2
 *
 * Rows are integers that i8 holds, for u8 128 more, so that every type has the same answers. The kinds take turns, a search
 * each; the figures are the best and the median of each kind, in microseconds. Where other work shares the machine the best is
 * the steadier.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <warpwave.h>

#include "measure.h"

enum { K = 10, KINDS = 9, ROUNDS_MAX = 20000, QUERIES = 100 };

static const struct kind {
    ww_vector_type type;
    ww_screen screen;
} kinds[KINDS] = {
    {WW_VECTOR_F32, WW_SCREEN_NONE}, {WW_VECTOR_F16, WW_SCREEN_NONE}, {WW_VECTOR_BF16, WW_SCREEN_NONE},
    {WW_VECTOR_I8, WW_SCREEN_NONE},  {WW_VECTOR_U8, WW_SCREEN_NONE},  {WW_VECTOR_F32, WW_SCREEN_INT8},
    {WW_VECTOR_F16, WW_SCREEN_INT8}, {WW_VECTOR_I8, WW_SCREEN_INT8},  {WW_VECTOR_U8, WW_SCREEN_INT8},
};

/* About normal, as wide as a byte allows. */
static float number(uint32_t *random)
{
    int32_t sum = 0;
    for (int i = 0; i < 4; i++) {
        *random = *random * 1664525u + 1013904223u;
        sum += (int32_t)(*random >> 24);
    }
    const int32_t n = (sum - 510) / 4;
    return (float)(n < -128 ? -128 : n > 127 ? 127 : n);
}

static ww_collection *make(ww_device *device, struct kind kind, const float *rows, int64_t count, int32_t dim)
{
    ww_collection_config config = ww_collection_config_default();
    config.dim = dim;
    config.metric = WW_DOT;
    config.type = kind.type;
    config.screen = kind.screen;
    ww_collection *made = NULL;
    check(ww_collection_create(device, &config, &made), "the collection");
    ww_rows given = ww_rows_default();
    given.count = count, given.dim = dim, given.vectors = rows;
    check(ww_collection_add(made, &given), "adding");
    return made;
}

static double search(ww_collection *collection, const float *query, int32_t dim)
{
    int64_t rows[K];
    float scores[K];
    ww_query asked = ww_query_default();
    asked.queries = query, asked.query_count = 1, asked.dim = dim, asked.k = K;
    const double begin = seconds_now() * 1e6;
    check(ww_collection_search(collection, &asked, rows, scores), "a search");
    return seconds_now() * 1e6 - begin;
}

int main(int count, char **words)
{
    const int64_t rows = count > 2 ? atoll(words[2]) : 200000;
    const int32_t dim = count > 3 ? atoi(words[3]) : 128;
    const double seconds = count > 4 ? atof(words[4]) : 2.0;
    ww_device *device = NULL;
    check(ww_device_open(count > 1 ? words[1] : "cpu", &device), "the device");
    float *vectors = malloc((size_t)rows * (size_t)dim * sizeof *vectors);
    double *times = malloc((size_t)KINDS * ROUNDS_MAX * sizeof *times);
    if (!vectors || !times || rows < QUERIES)
        return 1;
    uint32_t random = 1;
    for (int64_t i = 0; i < rows * dim; i++)
        vectors[i] = number(&random);
    ww_collection *collections[KINDS];
    bool raised = false;
    for (int i = 0; i < KINDS; i++) {
        const float more = kinds[i].type == WW_VECTOR_U8 && !raised  ? 128.0f
                           : kinds[i].type != WW_VECTOR_U8 && raised ? -128.0f
                                                                     : 0;
        for (int64_t j = 0; more != 0.0f && j < rows * dim; j++)
            vectors[j] += more;
        raised = kinds[i].type == WW_VECTOR_U8;
        collections[i] = make(device, kinds[i], vectors, rows, dim);
    }
    int rounds = 0;
    for (const double end = seconds_now() * 1e6 + 1e6 * seconds * KINDS;
         rounds < ROUNDS_MAX && (rounds < 3 || seconds_now() * 1e6 < end); rounds++)
        for (int i = 0; i < KINDS; i++)
            times[(size_t)i * ROUNDS_MAX + (size_t)rounds] =
                search(collections[i], vectors + (size_t)(rounds % QUERIES) * (size_t)dim, dim);
    printf("%lld x %d, %d rounds\n%-5s %-6s %14s %12s %12s %10s\n", (long long)rows, dim, rounds, "type", "screen",
           "bytes a row", "best us", "median us", "to f32");
    double f32 = 0;
    for (int i = 0; i < KINDS; i++) {
        double *own = times + (size_t)i * ROUNDS_MAX;
        qsort(own, (size_t)rounds, sizeof *own, by_value);
        f32 = i == 0 ? own[0] : f32;
        ww_collection_info info = ww_collection_info_default();
        check(ww_collection_describe(collections[i], &info), "the collection");
        printf("%-5s %-6s %14.1f %12.1f %12.1f %9.2fx\n", ww_vector_type_name(kinds[i].type), ww_screen_name(kinds[i].screen),
               (double)(info.bytes_rows + info.bytes_screen) / (double)info.rows_capacity, own[0], own[rounds / 2],
               f32 / own[0]);
        ww_collection_destroy(collections[i]);
    }
    free(times);
    free(vectors);
    ww_device_close(device);
    return 0;
}
