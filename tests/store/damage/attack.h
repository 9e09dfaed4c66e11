/* What the attacks on a store's files share: how long they last, their seeds, a store with two collections, and what may be
 * said of damage. WARPWAVE_ATTACK_SECONDS gives a program all its time; without it each attack takes 0.6 seconds. */
#ifndef TESTS_STORE_ATTACK_H
#define TESTS_STORE_ATTACK_H

#include <time.h>
#include <unistd.h>

#include "store/store_support.h"
#include "support/scratch.h"

#define SECONDS_USUALLY 0.6

static ww_device *cpu;
static char *path;
static int attack_count; /* attacks of this program, which share its time */
static double until;     /* the end of this attack */

static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static inline int setup(void **state)
{
    const char *told = getenv("WARPWAVE_ATTACK_SECONDS");
    work_synchronous = WW_SYNCHRONOUS_OFF;
    scratch_setup(state);
    path = strdup(scratch_path("attack.db"));
    until = now() + (told ? atof(told) / attack_count : SECONDS_USUALLY);
    return ww_device_open("cpu", &cpu) == WW_OK ? 0 : -1;
}

static inline int teardown(void **state)
{
    ww_device_close(cpu);
    free(path);
    return scratch_teardown(state);
}

/* The seed of a run: another one each night, if the variable requests it. */
static inline test_random seeded(uint64_t number)
{
    const char *told = getenv("WARPWAVE_ATTACK_SEED");
    return (test_random){number + (told ? strtoull(told, NULL, 10) * 1000 : 0)};
}

static inline const char *beside(const char *suffix)
{
    static char name[4200];
    snprintf(name, sizeof name, "%s%s", path, suffix);
    return name;
}

static inline void remove_files(void)
{
    unlink(path);
    unlink(beside("-wal"));
    unlink(beside("-shm"));
    unlink(beside("-journal"));
}

static inline void write_file(const char *name, const char *bytes, size_t size)
{
    FILE *file = fopen(name, "wbe");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

/* Two collections, "work" and "calm". */
static inline void make_two(void)
{
    ww_store *store = NULL;
    ww_collection *work = NULL, *calm = NULL;
    ww_collection_config config = ww_collection_config_default();
    config.name = "calm", config.dim = WORK_DIM, config.metric = WW_L2;
    CHECK_OK(work_open(path, cpu, &store, &work));
    CHECK_OK(ww_store_create(store, &config, &calm));
    for (int64_t i = 0; i < 12; i++) {
        CHECK_OK(work_do(work, 3, i));
        CHECK_OK(work_do(calm, 4, i));
    }
    CHECK_OK(ww_store_index(store, "work", "$.n"));
    ww_collection_destroy(calm);
    work_close(store, work);
}

/* Statuses that a damaged file may give. A wrong number may be taken for another dimension or a newer version, a changed byte
 * can turn one row's id into another's, and SQLite takes a wrong number in its own pages for a full disk now and then. */
static inline bool tells_of_damage(ww_status status)
{
    return status == WW_OK || status == WW_CORRUPT_FILE || status == WW_UNSUPPORTED || status == WW_DIMENSION_MISMATCH ||
           status == WW_NOT_FOUND || status == WW_INVALID_ARGUMENT || status == WW_IO_ERROR || status == WW_DUPLICATE_ID;
}

static inline ww_status use(ww_collection *collection)
{
    static const float zeros[WORK_DIM] = {0};
    ww_results *found = NULL, *all = NULL;
    ww_query query = ww_query_default();
    ww_get get = ww_get_default();
    query.queries = zeros, query.query_count = 1, query.dim = WORK_DIM, query.k = 200,
    query.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS;
    get.count = WW_ROWS_MAX, get.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS;
    ww_status status = ww_collection_query(collection, &query, &found);
    if (status == WW_OK)
        status = ww_collection_get(collection, &get, &all);
    ww_results_destroy(found);
    ww_results_destroy(all);
    for (int64_t i = 0; status == WW_OK && i < 6; i++)
        status = work_do(collection, 17, i);
    return status;
}

#endif
