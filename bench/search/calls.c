/* One call of the library many times, to count its instructions with callgrind: what a guard or a check adds to every call.
 *
 *   calls search|add TIMES ROWS DIM QUERIES
 *
 * A collection of ROWS random rows on the CPU, by l2, is searched for QUERIES of them, or they are added again. The difference
 * between TIMES and 0 times, divided by TIMES, is a call. bench/results/notes.csv says how it was run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warpwave.h>

enum { K = 10 };

static float *random_rows(int64_t count)
{
    float *numbers = malloc((size_t)count * sizeof *numbers);
    uint32_t state = 1;
    for (int64_t i = 0; numbers && i < count; i++) {
        state = state * 1664525u + 1013904223u;
        numbers[i] = (float)(state >> 8) / (1 << 24) - 0.5f;
    }
    return numbers;
}

static ww_status call_many_times(ww_collection *collection, const char *what, int64_t times, const ww_rows *rows)
{
    ww_query search = ww_query_default();
    search.queries = rows->vectors;
    search.query_count = rows->count;
    search.dim = rows->dim;
    search.k = K;
    int64_t *found = malloc((size_t)rows->count * K * sizeof *found);
    float *scores = malloc((size_t)rows->count * K * sizeof *scores);
    ww_status status = found && scores ? WW_OK : WW_OUT_OF_MEMORY;
    for (int64_t i = 0; status == WW_OK && i < times; i++)
        status = strcmp(what, "add") == 0 ? ww_collection_add(collection, rows)
                                          : ww_collection_search(collection, &search, found, scores);
    free(found);
    free(scores);
    return status;
}

int main(int count, char **arguments)
{
    if (count != 6) {
        fprintf(stderr, "calls search|add TIMES ROWS DIM QUERIES\n");
        return 2;
    }
    const int64_t times = atoll(arguments[2]);
    ww_device *device = NULL;
    ww_collection *collection = NULL;
    ww_collection_config config = ww_collection_config_default();
    ww_rows rows = ww_rows_default();
    rows.count = atoll(arguments[3]);
    rows.dim = config.dim = atoi(arguments[4]);
    config.metric = WW_L2;
    float *vectors = random_rows(rows.count * rows.dim);
    rows.vectors = vectors;
    ww_status status = vectors ? ww_device_open("cpu", &device) : WW_OUT_OF_MEMORY;
    if (status == WW_OK)
        status = ww_collection_create(device, &config, &collection);
    if (status == WW_OK)
        status = ww_collection_add(collection, &rows);
    rows.count = atoll(arguments[5]);
    if (status == WW_OK)
        status = call_many_times(collection, arguments[1], times, &rows);
    if (status != WW_OK)
        fprintf(stderr, "calls: %s\n", ww_error_message());
    ww_collection_destroy(collection);
    ww_device_close(device);
    free(vectors);
    return status != WW_OK;
}
