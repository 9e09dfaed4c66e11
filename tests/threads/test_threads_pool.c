/* The thread pool runs every item once: with many callers at once, when it is stopped, and when threads fail to start. */
#include "support/check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "arithmetic/canon.h"
#include "base/pool.h"
#include "base/system/cores.h"
#include "device/backend.h"
#include "support/data/random.h"
#include "support/memory.h"

enum { WORKERS = 4, ITEMS = 1000, CALLERS = 8 };

typedef struct tally {
    int counts[ITEMS]; /* not atomic: no two workers have the same item, and the caller reads when the job is done */
    int64_t last[WORKERS];
    atomic_int busy[WORKERS];
} tally;

static void count_item(void *context, int64_t item, int32_t worker)
{
    tally *t = context;
    assert_true(worker >= 0 && worker < WORKERS);
    assert_int_equal(atomic_fetch_add(&t->busy[worker], 1), 0);
    assert_true(item >= t->last[worker]);
    t->last[worker] = item + 1;
    t->counts[item]++;
    atomic_fetch_sub(&t->busy[worker], 1);
}

static void run_and_check(pool *p, int64_t items)
{
    tally *t = calloc(1, sizeof *t);
    assert_true(pool_run(p, items, count_item, NULL, t));
    for (int64_t i = 0; i < ITEMS; i++)
        assert_int_equal(t->counts[i], i < items ? 1 : 0);
    free(t);
}

static void every_item_is_done_once_in_increasing_order(void **state)
{
    (void)state;
    pool *p;
    CHECK_OK(pool_create(NULL, WORKERS, &p));
    assert_int_equal(pool_threads(p), WORKERS);
    for (int64_t items = 0; items <= ITEMS; items += items < 10 ? 1 : 99)
        run_and_check(p, items);
    pool_destroy(p);
    pool_destroy(NULL);
}

static void *caller_main(void *argument)
{
    for (int i = 0; i < 20; i++)
        run_and_check(argument, 1 + (i * 37) % ITEMS);
    return NULL;
}

static void many_callers_run_jobs_at_once(void **state)
{
    (void)state;
    pool *p;
    pthread_t callers[CALLERS];
    CHECK_OK(pool_create(NULL, WORKERS, &p));
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, caller_main, p), 0);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    pool_destroy(p);
}

static void do_slowly(void *context, int64_t item, int32_t worker)
{
    (void)item;
    (void)worker;
    atomic_fetch_add((atomic_int *)context, 1);
    const struct timespec longer_than_between_watches = {.tv_nsec = 50 * 1000 * 1000};
    nanosleep(&longer_than_between_watches, NULL);
}

static int watched;

static bool stop_at_once(void *context, int64_t done)
{
    (void)context;
    watched++;
    return done >= 0;
}

static void a_watch_stops_the_job_and_is_not_asked_again(void **state)
{
    (void)state;
    pool *p;
    atomic_int done = 0;
    CHECK_OK(pool_create(NULL, 2, &p));
    assert_false(pool_run(p, 1000000, do_slowly, stop_at_once, &done));
    assert_true(atomic_load(&done) < 1000);
    assert_int_equal(watched, 1);
    const int before = atomic_load(&done);
    assert_true(pool_run(p, 3, do_slowly, NULL, &done));
    assert_int_equal(atomic_load(&done), before + 3);
    pool_destroy(p);
}

/* Done only when two callers are at it at once. */
static void meet(void *context, int64_t item, int32_t worker)
{
    (void)item;
    assert_int_equal(worker, 0);
    atomic_fetch_add((atomic_int *)context, 1);
    while (atomic_load((atomic_int *)context) < 2)
        sched_yield();
}

static atomic_int met;
static pool *pool_of_one;

static void *meet_main(void *argument)
{
    (void)argument;
    assert_true(pool_run(pool_of_one, 1, meet, NULL, &met));
    return NULL;
}

static void callers_of_a_pool_of_one_work_side_by_side(void **state)
{
    (void)state;
    pool_fail_at(1); /* no thread is started */
    CHECK_OK(pool_create(NULL, 1, &pool_of_one));
    pool_fail_at(0);
    assert_int_equal(pool_threads(pool_of_one), 1);
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, meet_main, NULL), 0);
    meet_main(NULL);
    pthread_join(other, NULL);

    atomic_int done = 0;
    watched = 0;
    assert_false(pool_run(pool_of_one, 1000, do_slowly, stop_at_once, &done));
    assert_int_equal(watched, 1);
    assert_int_equal(atomic_load(&done), 1);
    run_and_check(pool_of_one, ITEMS);
    pool_destroy(pool_of_one);
}

/* Done only when both threads are at it: the second item waits for the first to have begun, and the other way round. */
static void meet_in_a_pool(void *context, int64_t item, int32_t worker)
{
    atomic_int *both = context;
    (void)item;
    atomic_fetch_or(both, 1 << worker);
    while (atomic_load(both) != 3)
        sched_yield();
}

static void the_caller_and_a_worker_work_on_one_job(void **state)
{
    (void)state;
    pool *p;
    CHECK_OK(pool_create(NULL, 2, &p));
    for (int i = 0; i < 100; i++) {
        atomic_int both = 0;
        assert_true(pool_run(p, 2, meet_in_a_pool, NULL, &both));
        assert_int_equal(atomic_load(&both), 3);
    }
    pool_destroy(p);
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void workers_sleep_when_no_job_comes(void **state)
{
    (void)state;
    pool *p;
    CHECK_OK(pool_create(NULL, WORKERS, &p));
    run_and_check(p, ITEMS);
    const double before = cpu_seconds();
    const struct timespec much_longer_than_they_wait_awake = {.tv_nsec = 200 * 1000 * 1000};
    nanosleep(&much_longer_than_they_wait_awake, NULL);
    assert_true(cpu_seconds() - before < 0.05);
    run_and_check(p, ITEMS);
    pool_destroy(p);
}

static void note_core(void *context, int64_t item, int32_t worker)
{
    (void)item;
    cpu_set_t set;
    CPU_ZERO(&set);
    assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof set, &set), 0);
    ((int *)context)[worker] = CPU_COUNT(&set) == 1 && CPU_ISSET(sched_getcpu(), &set);
}

static void workers_are_pinned_and_a_core_that_is_not_there_is_no_error(void **state)
{
    (void)state;
    cpu_set_t mine;
    CPU_ZERO(&mine);
    assert_int_equal(sched_getaffinity(0, sizeof mine, &mine), 0);
    int32_t core = 0;
    while (!CPU_ISSET(core, &mine))
        core++;
    pool *p;
    int pinned[3] = {0, 1, 1}; /* of a worker that came too late for an item, too */
    const int32_t same[3] = {core, core, core};
    CHECK_OK(pool_create(same, 3, &p));
    assert_true(pool_run(p, 100, note_core, NULL, pinned));
    assert_true(pinned[1] == 1 && pinned[2] == 1);
    pool_destroy(p);
    cpu_set_t after;
    CPU_ZERO(&after);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&mine, &after)); /* the caller is where it was */

    const int32_t missing[3] = {1000, 1001, 1002};
    CHECK_OK(pool_create(missing, 3, &p));
    run_and_check(p, 100);
    pool_destroy(p);
}

static void a_thread_that_does_not_start_is_a_status_and_leaves_nothing(void **state)
{
    (void)state;
    const int64_t held = blocks_held();
    for (int n = 1; n < WORKERS; n++) { /* the caller is one of them */
        pool *p = NULL;
        pool_fail_at(n);
        CHECK_FAILS(WW_OUT_OF_MEMORY, pool_create(NULL, WORKERS, &p));
        pool_fail_at(0);
        assert_null(p);
        assert_int_equal(blocks_held(), held);
    }
    ww_device *device;
    int32_t cores[CORES_MAX], count = 0;
    CHECK_OK(cores_to_use(cores, CORES_MAX, &count));
    if (count > 1) { /* one core needs no thread */
        pool_fail_at(1);
        CHECK_FAILS(WW_OUT_OF_MEMORY, ww_device_open("cpu", &device));
        pool_fail_at(0);
    }
    fail_allocation_at(1);
    CHECK_FAILS(WW_OUT_OF_MEMORY, ww_device_open("cpu", &device));
    fail_allocation_at(2);
    CHECK_FAILS(WW_OUT_OF_MEMORY, ww_device_open("cpu", &device));
    fail_allocation_at(0);
    assert_int_equal(blocks_held(), held);
}

/* ---- searches from many threads on one device ------------------------------------------------------------------------------
 */

enum { ROWS = 3000, DIM = 70, K = 5 };

typedef struct shared_search {
    ww_device *device;
    segment segment;
    const float *vectors;
} shared_search;

static void *searcher_main(void *argument)
{
    const shared_search *s = argument;
    for (int64_t q = 0; q < 10; q++) {
        int64_t rows[16 * K];
        float scores[16 * K];
        search_job job = {.metric = CANON_L2,
                          .dim = DIM,
                          .segments = &s->segment,
                          .segment_count = 1,
                          .queries = s->vectors + q * 100 * DIM,
                          .query_count = 16,
                          .query_stride = DIM,
                          .k = K,
                          .rows = rows,
                          .scores = scores};
        CHECK_OK(s->device->backend->rows_search(s->device, &job));
        for (int i = 0; i < 16; i++)
            assert_true(rows[i * K] == q * 100 + i && scores[i * K] == 0.0f);
    }
    return NULL;
}

static void many_threads_search_one_device(void **state)
{
    (void)state;
    shared_search s = {.segment = {.count = ROWS, .capacity = 3008}};
    CHECK_OK(ww_device_open("cpu", &s.device));
    const backend *b = s.device->backend;
    float *vectors = malloc(ROWS * DIM * sizeof *vectors);
    test_random random = {1};
    random_normals(&random, vectors, ROWS * DIM);
    s.vectors = vectors;
    int64_t refused;
    CHECK_OK(b->buffer_create(s.device, 3008 * 128 * sizeof(float), &s.segment.rows));
    CHECK_OK(b->buffer_create(s.device, 3008 * sizeof(float), &s.segment.norms));
    CHECK_OK(b->buffer_create(s.device, 3008 / 8, &s.segment.live));
    CHECK_OK(b->fill(s.device, NULL, (buffer_range){&s.segment.live, 0, 3008 / 8}, 0xffffffffu));
    ((uint64_t *)s.segment.live.data)[46] = (UINT64_C(1) << (ROWS - 46 * 64)) - 1;
    CHECK_OK(b->rows_write(s.device, (row_range){&s.segment, 0, ROWS, DIM}, vectors, DIM, &refused));
    pthread_t callers[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, searcher_main, &s), 0);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    b->buffer_destroy(s.device, &s.segment.rows);
    b->buffer_destroy(s.device, &s.segment.norms);
    b->buffer_destroy(s.device, &s.segment.live);
    ww_device_close(s.device);
    free(vectors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_is_done_once_in_increasing_order),
        cmocka_unit_test(many_callers_run_jobs_at_once),
        cmocka_unit_test(a_watch_stops_the_job_and_is_not_asked_again),
        cmocka_unit_test(callers_of_a_pool_of_one_work_side_by_side),
        cmocka_unit_test(the_caller_and_a_worker_work_on_one_job),
        cmocka_unit_test(workers_sleep_when_no_job_comes),
        cmocka_unit_test(workers_are_pinned_and_a_core_that_is_not_there_is_no_error),
        cmocka_unit_test(a_thread_that_does_not_start_is_a_status_and_leaves_nothing),
        cmocka_unit_test(many_threads_search_one_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
