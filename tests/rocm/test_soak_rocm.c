/* A collection on the stand-in for ROCm grows, is searched, shrinks, is compacted, moves to the other device and back, over and
 * over: memory stays flat, on the device and on the host. With WARPWAVE_SOAK_SECONDS (`make check-soak` takes 300) it grows to
 * 10,000 rows of 128 numbers; without it the test runs for three seconds with 450 rows of 70, so that `make test` stays quick.
 *
 * At the end of a cycle everything is given back but what a device keeps while it is open, so the figures of all cycles but the
 * first must be the same, to the byte and the block; so must be those of full collections among cycles of a kind. The resident
 * size is the operating system's and may breathe: it must not have grown by more than a little since the warm-up. */
#include "support/standin.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/collections.h"
#include "support/memory.h"
#include "support/pretend/pretend.h"

enum { DIM_MAX = 128, BATCHES = 5, K = 7, QUERIES = 20, KINDS = 4, WARM_UP_CYCLES = KINDS, RSS_SLACK_BYTES = 8 << 20 };

static standin rocm;
static int64_t dim = 70, batch_rows = 90;

typedef struct figures {
    int64_t resident_bytes; /* of the process */
    int64_t host_blocks;
    standin_counts there;
} figures;

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int64_t resident_bytes(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*s %ld", &pages), 1);
    fclose(file);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static figures figures_now(void)
{
    figures now = {.resident_bytes = resident_bytes(), .host_blocks = blocks_held()};
    rocm.count(&now.there);
    return now;
}

static void search(ww_collection *c, test_random *random)
{
    static float queries[QUERIES * DIM_MAX];
    int64_t rows[QUERIES * K];
    float scores[QUERIES * K];
    ww_query asked = ww_query_default();
    random_normals(random, queries, QUERIES * dim);
    asked.queries = queries;
    asked.query_count = random_below(random, 2) ? QUERIES : 1;
    asked.dim = dim;
    asked.k = K;
    CHECK_OK(ww_collection_search(c, &asked, rows, scores));
    for (int64_t i = 1; i < K; i++)
        assert_true(rows[i - 1] >= 0 && (scores[i - 1] > scores[i] || (scores[i - 1] == scores[i] && rows[i - 1] < rows[i])));
}

static void grow(ww_collection *c, test_random *random)
{
    for (int64_t i = 0; i < BATCHES; i++) {
        collection_fill(c, random, batch_rows, dim, "row", i * batch_rows);
        search(c, random);
    }
}

/* Removes three of every four rows, and adds some again under their old names. */
static void shrink(ww_collection *c, test_random *random)
{
    char text[32];
    for (int64_t i = 0; i < batch_rows * BATCHES; i++) {
        const char *id = text;
        if (i % 4 == 0)
            continue;
        snprintf(text, sizeof text, "row%lld", (long long)i);
        CHECK_OK(ww_collection_remove(c, &id, 1));
    }
    search(c, random);
    CHECK_OK(ww_collection_compact(c, NULL, NULL));
    search(c, random);
    test_rows again = test_rows_make(random, batch_rows, dim, "row", 0);
    CHECK_OK(ww_collection_upsert(c, &again.rows));
    test_rows_free(&again);
    search(c, random);
    CHECK_OK(ww_collection_clear(c));
}

/* Kinds start on different devices, and use the screen or not; without it, small collections are searched directly. Returns the
 * bytes on the devices when the collection was largest. */
static int64_t cycle(ww_device *const *devices, int64_t number)
{
    test_random random = {(uint64_t)(number % KINDS) + 1};
    standin_counts full;
    for (int i = 0; i < 2; i++) {
        /* By default, the first searches try both ways, and later ones make planes; each needs different memory. */
        device_tuning *tuning = pretend_tuning(devices[i]);
        tuning->screen = tuning->planes = TUNING_ALWAYS;
        tuning->screen_list_capacity = (int32_t)(number / 2 % 2);
    }
    ww_collection *c = collection_make(devices[number % 2], dim, WW_DOT);
    grow(c, &random);
    rocm.count(&full);
    CHECK_OK(ww_collection_move(c, devices[1 - number % 2]));
    search(c, &random);
    shrink(c, &random);
    CHECK_OK(ww_collection_move(c, devices[number % 2]));
    grow(c, &random);
    ww_collection_destroy(c);
    for (int i = 0; i < 2; i++)
        CHECK_OK(ww_device_trim(devices[i]));
    return full.bytes;
}

static void check_same(const figures *first, const figures *now, int64_t cycles)
{
    if (now->there.bytes != first->there.bytes || now->there.blocks != first->there.blocks ||
        now->there.pinned != first->there.pinned || now->there.streams != first->there.streams ||
        now->there.events != first->there.events || now->there.modules != first->there.modules ||
        now->there.handles != first->there.handles)
        fail_msg("after %lld cycles: %lld bytes on the devices, %lld at first; alive: %s", (long long)cycles,
                 (long long)now->there.bytes, (long long)first->there.bytes, standin_alive_text(&rocm));
    if (now->host_blocks != first->host_blocks)
        fail_msg("after %lld cycles: %lld blocks of host memory, %lld at first", (long long)cycles, (long long)now->host_blocks,
                 (long long)first->host_blocks);
}

static void memory_stays_flat(void **state)
{
    (void)state;
    const char *asked = getenv("WARPWAVE_SOAK_SECONDS");
    const double seconds = asked != NULL ? strtod(asked, NULL) : 3.0, end = seconds_now() + seconds;
    if (asked != NULL) {
        dim = DIM_MAX;
        batch_rows = 10000 / BATCHES;
    }
    ww_device *devices[2] = {NULL, NULL};
    CHECK_OK(ww_device_open("rocm:0", &devices[0]));
    CHECK_OK(ww_device_open("rocm:1", &devices[1]));
    int64_t cycles = 0, full[KINDS];
    for (; cycles < WARM_UP_CYCLES; cycles++)
        full[cycles] = cycle(devices, cycles);
    const figures first = figures_now();
    figures now = first;
    do {
        assert_int_equal(cycle(devices, cycles), full[cycles % KINDS]);
        cycles++;
        now = figures_now();
        check_same(&first, &now, cycles);
    } while (seconds_now() < end);
    printf("%lld cycles of %lld x %lld rows in %.0f s. Resident: %lld bytes after the warm-up, %lld at the end. On the "
           "devices: %lld bytes with a "
           "full collection, %lld and %lld without. Blocks of host memory: %lld and %lld.\n",
           (long long)cycles, (long long)(batch_rows * BATCHES), (long long)dim, seconds, (long long)first.resident_bytes,
           (long long)now.resident_bytes, (long long)full[0], (long long)first.there.bytes, (long long)now.there.bytes,
           (long long)first.host_blocks, (long long)now.host_blocks);
#if !defined(__SANITIZE_ADDRESS__) /* it keeps freed memory for a while */
    assert_true(now.resident_bytes <= first.resident_bytes + RSS_SLACK_BYTES);
#endif
    ww_device_close(devices[0]);
    ww_device_close(devices[1]);
    if (rocm.misuse() != NULL)
        fail_msg("%s", rocm.misuse());
    if (standin_alive(&rocm) != 0)
        fail_msg("still alive in the end: %s", standin_alive_text(&rocm));
}

int main(void)
{
    if (!standin_open(6, "memory=256MiB", &rocm))
        return 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_stays_flat)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
