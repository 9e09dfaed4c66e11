/* Attacks on a store's files while no process has them open: damaged databases and damaged logs. For any damage, calls return a
 * status that describes it, and the remaining part of a log is complete. */
#include <sys/wait.h>

#include "store/damage/attack.h"
#include "support/process.h"

/* ---- damaged databases --------------------------------------------------------------------------------------------------- */

static void check_status(ww_status status, const char *what, int64_t number)
{
    if (!tells_of_damage(status) || (status != WW_OK && ww_error_message()[0] == '\0'))
        fail_msg("case %lld: %s: %s: %s", (long long)number, what, ww_status_name(status), ww_error_message());
}

/* All calls on a damaged store. */
static int use_damaged(int64_t number)
{
    static const char *const names[] = {"work", "calm"};
    ww_store *store = NULL;
    ww_results *list = NULL;
    ww_store_info info = ww_store_info_default();
    ww_store_config how = ww_store_config_default();
    int failures = 0;
    how.synchronous = WW_SYNCHRONOUS_OFF;
    ww_status status = ww_store_open(path, cpu, &how, &store);
    check_status(status, "opening", number);
    if (status != WW_OK)
        return 1;
    check_status(ww_store_list(store, &list), "listing", number);
    check_status(ww_store_describe(store, &info), "describing", number);
    status = ww_store_check(store, NULL, NULL);
    check_status(status, "checking", number);
    failures += status != WW_OK;
    for (int i = 0; i < 2; i++) {
        ww_collection *collection = NULL;
        status = ww_store_collection(store, names[i], &collection);
        check_status(status, "opening a collection", number);
        if (status == WW_OK)
            check_status(use(collection), names[i], number);
        ww_collection_destroy(collection);
    }
    check_status(ww_store_drop(store, "work"), "dropping", number);
    ww_results_destroy(list);
    ww_store_close(store);
    return failures;
}

enum { PAGE = 4096 };

static void damage(test_random *random, char *bytes, size_t size)
{
    const size_t at = random_below(random, size), pages = size / PAGE;
    const size_t page = random_below(random, pages) * PAGE, other = random_below(random, pages) * PAGE;
    switch (random_below(random, 7)) {
    case 0:
        bytes[at] = (char)random_below(random, 256);
        break;
    case 1:
        bytes[at] ^= (char)(1 << random_below(random, 8));
        break;
    case 2:
        for (size_t i = 0; i < 16 && at + i < size; i++)
            bytes[at + i] = (char)~bytes[at + i];
        break;
    case 3:
        memset(bytes + page, 0, PAGE);
        break;
    case 4:
        memcpy(bytes + page, bytes + other, PAGE);
        break;
    case 5:
        bytes[page + random_below(random, 100)] ^= (char)(1 + random_below(random, 255));
        break; /* a page's head */
    default:
        for (int i = 0; i < 40; i++)
            bytes[random_below(random, size)] = (char)random_below(random, 256);
    }
}

static void damaged_databases_are_reported_as_damaged(void **state)
{
    (void)state;
    test_random random = seeded(1);
    int64_t number = 0, found = 0;
    size_t size = 0;
    make_two();
    char *bytes = scratch_content(path, &size), *copy = malloc(size);
    assert_non_null(copy);
    for (; number < 20 || now() < until; number++) {
        remove_files();
        memcpy(copy, bytes, size);
        damage(&random, copy, size);
        write_file(path, copy, random_below(&random, 12) == 0 ? random_below(&random, size) : size);
        found += use_damaged(number) > 0;
    }
    print_message("%lld files, %lld seen to be damaged\n", (long long)number, (long long)found);
    assert_true(found > number / 20);
    free(bytes);
    free(copy);
}

/* ---- damaged logs -------------------------------------------------------------------------------------------------------- */

enum { LOGGED = 10 };

/* A process that ends without closing the store: its last writes are in the -wal. */
static void leave_a_log(void)
{
    int ended = 0;
    remove_files();
    const pid_t child = fork_when_idle();
    if (child == 0) {
        ww_device *device = NULL;
        ww_store *store = NULL;
        ww_collection *collection = NULL;
        bool works = ww_device_open("cpu", &device) == WW_OK && work_open(path, device, &store, &collection) == WW_OK;
        for (int64_t i = 0; works && i < LOGGED; i++)
            works = work_do(collection, 5, i) == WW_OK;
        _exit(!works);
    }
    waitpid(child, &ended, 0);
    assert_int_equal(ended, 0);
}

/* The remaining state must be that after some number of operations, without a partial or missing one. */
static int64_t check_prefix(ww_collection *const *models, int64_t number)
{
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    int64_t done = LOGGED;
    CHECK_OK(work_open(path, cpu, &store, &collection));
    CHECK_OK(ww_store_check(store, NULL, NULL));
    while (done >= 0 && !collections_equal(collection, models[done]))
        done--;
    if (done < 0)
        fail_msg("case %lld: what is left of the log is not a whole number of writes", (long long)number);
    CHECK_OK(work_do(collection, 6, 0));
    work_close(store, collection);
    return done;
}

static void the_rest_of_a_damaged_log_is_consistent(void **state)
{
    (void)state;
    test_random random = seeded(2);
    ww_collection *models[LOGGED + 1];
    int64_t number = 0, shortened = 0;
    size_t sizes[2];
    for (int64_t i = 0; i <= LOGGED; i++) {
        models[i] = collection_make(cpu, WORK_DIM, WW_L2);
        for (int64_t k = 0; k < i; k++)
            CHECK_OK(work_do(models[i], 5, k));
    }
    leave_a_log();
    char *database = scratch_content(path, &sizes[0]), *log = scratch_content(beside("-wal"), &sizes[1]);
    char *copy = malloc(sizes[1] + PAGE);
    assert_true(copy && sizes[1] > 0);
    for (; number < 6 || now() < until; number++) {
        size_t size = sizes[1];
        remove_files();
        memcpy(copy, log, size);
        memset(copy + size, 0x5a, PAGE);
        switch (random_below(&random, 4)) {
        case 0:
            size = random_below(&random, size + 1);
            break;
        case 1:
            copy[random_below(&random, size)] ^= (char)(1 << random_below(&random, 8));
            break;
        case 2:
            size += random_below(&random, PAGE);
            break; /* another file, after it */
        default:
            memset(copy + random_below(&random, size), 0, PAGE / 2);
        }
        write_file(path, database, sizes[0]);
        write_file(beside("-wal"), copy, size);
        if (random_below(&random, 2) == 0) { /* an index that belongs to nothing */
            char index[3 * PAGE];
            for (size_t i = 0; i < sizeof index; i++)
                index[i] = (char)random_below(&random, 256);
            write_file(beside("-shm"), index, random_below(&random, sizeof index));
        }
        shortened += check_prefix(models, number) < LOGGED;
    }
    print_message("%lld logs, %lld shortened\n", (long long)number, (long long)shortened);
    assert_true(shortened > 0);
    for (int64_t i = 0; i <= LOGGED; i++)
        ww_collection_destroy(models[i]);
    free(copy);
    free(database);
    free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(damaged_databases_are_reported_as_damaged, setup, teardown),
        cmocka_unit_test_setup_teardown(the_rest_of_a_damaged_log_is_consistent, setup, teardown),
    };
    attack_count = sizeof tests / sizeof *tests;
    return cmocka_run_group_tests_name("store: damaged files", tests, NULL, NULL);
}
