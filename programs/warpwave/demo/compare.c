/* The same search everywhere, side by side. The vectors come from a generator of integers, whose multiples of 2^-23 are exact,
 * so every machine searches the same ones, and one digest stands for the answers. */
#include "warpwave/demo/compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warpwave/device.h>
#include <warpwave/vectors.h>

#include "base/checksum.h"
#include "base/memory.h"
#include "base/text.h"
#include "warpwave/command.h"
#include "warpwave/terminal.h"

static const double LONG_SECONDS = 0.2; /* a search that takes this long is not repeated */

enum { ROWS = 5000, DIM = 128, QUERIES = 50, K = 10, TIMES = 5, DEVICES_MAX = 64 };

/* A number of at least -1 and less than 1, by the generator SplitMix64. */
static float next_number(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return (float)((int64_t)((z ^ (z >> 31)) >> 40) - (1 << 23)) * 0x1p-23f;
}

/* The digest of handles and scores, which have the same bytes on every machine that this is built for. */
static uint64_t digest_of(const ww_results *results)
{
    uint64_t digest = 0;
    for (int64_t i = 0; i < QUERIES; i++) {
        const size_t count = (size_t)ww_results_count(results, i);
        const uint64_t parts[3] = {digest, checksum_bytes(ww_results_handles(results, i), count * sizeof(int64_t)),
                                   checksum_bytes(ww_results_scores(results, i), count * sizeof(float))};
        digest = checksum_bytes(parts, sizeof parts);
    }
    return digest;
}

/* `vectors` has the rows and behind them the queries. */
static ww_status search(ww_device *device, const float *vectors, compared *one)
{
    ww_collection *collection = NULL;
    ww_collection_config config = ww_collection_config_default();
    ww_rows rows = ww_rows_default();
    ww_query query = ww_query_default();
    config.name = "comparison";
    config.dim = rows.dim = query.dim = DIM;
    config.metric = WW_COSINE;
    rows.count = ROWS;
    rows.vectors = vectors;
    query.queries = vectors + (size_t)ROWS * DIM;
    query.query_count = QUERIES;
    query.k = K;
    ww_status status = ww_collection_create(device, &config, &collection);
    if (status == WW_OK)
        status = ww_collection_add(collection, &rows);
    for (int i = 0; i < TIMES && status == WW_OK && one->seconds < LONG_SECONDS; i++) {
        ww_results *results = NULL;
        const double start = seconds_now();
        status = ww_collection_query(collection, &query, &results);
        const double seconds = seconds_now() - start;
        if (i == 0 || seconds < one->seconds)
            one->seconds = seconds;
        if (status == WW_OK)
            one->digest = digest_of(results);
        ww_results_destroy(results);
        if (status == WW_OK)
            status = interrupt_check();
    }
    ww_collection_destroy(collection);
    return status;
}

/* Adds a device to the list, with its failure if it fails. */
static ww_status compare_device(comparison *c, const char *device_name, const char *shown, const float *vectors)
{
    if (c->count == COMPARED_MAX)
        return WW_OK;
    compared *one = &c->list[c->count++];
    ww_device *device = NULL;
    text_copy(one->name, sizeof one->name, shown);
    ww_status status = ww_device_open(device_name, &device);
    if (status == WW_OK)
        status = search(device, vectors, one);
    ww_device_close(device);
    if (status != WW_OK)
        text_copy(one->failure, sizeof one->failure, ww_error_message());
    return status;
}

/* This processor does not have the instruction set, or a variable of the environment is wrong, which the demo says when it
 * opens its device. */
static bool is_refused(ww_status status)
{
    return status == WW_UNSUPPORTED || status == WW_INVALID_ARGUMENT;
}

/* The instruction sets of this machine, the simplest first; only the one that WARPWAVE_ISA names, if it names one. */
static ww_status compare_cpu(comparison *c, const float *vectors)
{
    static const char VARIABLE[] = "WARPWAVE_ISA";
    static const char *const SETS[] = {"scalar", "neon", "avx2", "avx512", "amx"};
    const char *asked = getenv(VARIABLE);
    ww_status status = WW_OK;
    if (asked && *asked != '\0') {
        char shown[COMPARED_NAME_BYTES];
        snprintf(shown, sizeof shown, "cpu, %.40s", asked);
        status = compare_device(c, "cpu", shown, vectors);
        return is_refused(status) ? WW_OK : status;
    }
    for (size_t i = 0; i < sizeof SETS / sizeof *SETS && status == WW_OK; i++) {
        char shown[COMPARED_NAME_BYTES];
        ww_device *device = NULL;
        snprintf(shown, sizeof shown, "cpu, %s", SETS[i]);
        if (setenv(VARIABLE, SETS[i], 1) != 0)
            return memory_failed(VARIABLE, sizeof VARIABLE);
        status = ww_device_open("cpu", &device);
        ww_device_close(device);
        if (status == WW_OK)
            status = compare_device(c, "cpu", shown, vectors);
        else if (is_refused(status))
            status = WW_OK;
    }
    unsetenv(VARIABLE);
    return status;
}

static ww_status compare_gpus(comparison *c, const float *vectors)
{
    size_t count = 0;
    ww_device_info *infos = memory_alloc_zeroed(DEVICES_MAX, sizeof *infos);
    if (!infos)
        return memory_failed("the list of devices", DEVICES_MAX * sizeof *infos);
    for (size_t i = 0; i < DEVICES_MAX; i++)
        infos[i] = ww_device_info_default();
    ww_status status = ww_devices(infos, DEVICES_MAX, &count);
    for (size_t i = 0; i < count && i < DEVICES_MAX && status == WW_OK; i++) {
        char shown[COMPARED_NAME_BYTES];
        if (strcmp(infos[i].id, "cpu") == 0)
            continue;
        snprintf(shown, sizeof shown, "%.20s, %.50s", infos[i].id, infos[i].name);
        status = compare_device(c, infos[i].id, shown, vectors);
        if (status != WW_CANCELLED) /* a GPU that does not work is shown as such */
            status = WW_OK;
    }
    memory_free(infos);
    return status;
}

static ww_status check_digests(const comparison *c)
{
    const compared *first = NULL;
    for (int i = 0; i < c->count; i++) {
        const compared *one = &c->list[i];
        if (one->failure[0] != '\0')
            continue;
        first = first ? first : one;
        if (one->digest != first->digest)
            return ww_fail(WW_INTERNAL, "'%s' and '%s' gave different answers, which must not happen: please report it",
                           first->name, one->name);
    }
    return WW_OK;
}

ww_status compare_everywhere(comparison *c)
{
    const size_t numbers = (size_t)(ROWS + QUERIES) * DIM;
    float *vectors = memory_alloc(numbers * sizeof *vectors);
    uint64_t state = 0;
    *c = (comparison){.count = 0};
    if (!vectors)
        return memory_failed("vectors", numbers * sizeof *vectors);
    for (size_t i = 0; i < numbers; i++)
        vectors[i] = next_number(&state);
    ww_status status = compare_cpu(c, vectors); /* first: the drivers of GPUs start threads, which may read the environment */
    if (status == WW_OK)
        status = compare_gpus(c, vectors);
    memory_free(vectors);
    return status == WW_OK ? check_digests(c) : status;
}

void compare_print(const comparison *c)
{
    int width = 0, worked = 0;
    for (int i = 0; i < c->count; i++) {
        const int length = (int)strlen(c->list[i].name);
        width = length > width ? length : width;
        worked += c->list[i].failure[0] == '\0';
    }
    printf(
        "The same answers everywhere: the %d nearest of %d vectors with %d dimensions, for %d queries. The digest covers the\n"
        "row and every bit of the score of each answer; every other machine gets the same one.\n\n",
        K, ROWS, DIM, QUERIES);
    for (int i = 0; i < c->count; i++) {
        const compared *one = &c->list[i];
        printf("  %-*s  ", width, one->name);
        if (one->failure[0] == '\0') {
            printf("%8.1f ms  %016" PRIx64 "%s\n", one->seconds * 1e3, one->digest, worked > 1 ? "  equal" : "");
            continue;
        }
        printf("could not: ");
        print_plain(stdout, one->failure);
        putchar('\n');
    }
    putchar('\n');
}
