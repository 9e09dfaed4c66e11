/* kill -9 at random moments of a random workload: the store is always consistent, in the state before or after the interrupted
 * write. WARPWAVE_KILLS says how often (50; make check-kill has 1,000). */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/store_support.h"
#include "support/process.h"
#include "support/scratch.h"

/* Works until it is killed; reports every acknowledged operation to the parent. */
static void work_until_killed(const char *path, uint64_t seed, int64_t next, int acknowledged)
{
    ww_device *device = NULL;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    if (ww_device_open("cpu", &device) != WW_OK || work_open(path, device, &store, &collection) != WW_OK)
        _exit(1);
    const int64_t opened = -1;
    if (write(acknowledged, &opened, sizeof opened) != sizeof opened)
        _exit(4);
    for (;; next++) {
        ww_results *found = NULL;
        ww_query query = ww_query_default();
        const float zeros[WORK_DIM] = {0};
        query.queries = zeros, query.query_count = 1, query.dim = WORK_DIM, query.k = 3;
        if (next % 3 == 0 && ww_collection_query(collection, &query, &found) != WW_OK)
            _exit(2);
        ww_results_destroy(found);
        if (work_do(collection, seed, next) != WW_OK || write(acknowledged, &next, sizeof next) != sizeof next)
            _exit(3);
    }
}

/* Reads the next acknowledged operation and does it on the model, too. Returns false at the end. */
static bool hear(int acknowledged, ww_collection *model, uint64_t seed, int64_t *next)
{
    int64_t done;
    if (read(acknowledged, &done, sizeof done) != sizeof done)
        return false;
    if (done >= 0) { /* not of the opening */
        assert_int_equal(done, *next);
        CHECK_OK(work_do(model, seed, (*next)++));
    }
    return true;
}

static void kill_again_and_again(int kills)
{
    char *path = strdup(scratch_path("kill.db"));
    const uint64_t seed = 11;
    test_random random = {12};
    int64_t next = 0;
    ww_device *device = NULL;
    CHECK_OK(ww_device_open("cpu", &device));
    ww_collection *model = collection_make(device, WORK_DIM, WW_L2);
    for (int i = 0; i < kills; i++) {
        int pipes[2];
        assert_int_equal(pipe(pipes), 0);
        const pid_t child = fork_when_idle();
        if (child == 0) {
            close(pipes[0]);
            work_until_killed(path, seed, next, pipes[1]);
        }
        close(pipes[1]);
        /* The opening and up to two operations are waited for, so that something is done on a busy machine, too; every fifth
         * may be killed while it opens the file. */
        for (int64_t wanted = random_below(&random, 5) > 0 ? 1 + (int64_t)random_below(&random, 3) : 0; wanted > 0; wanted--)
            assert_true(hear(pipes[0], model, seed, &next));
        const struct timespec moment = {.tv_nsec = (long)random_below(&random, 30 * 1000 * 1000)};
        nanosleep(&moment, NULL);
        kill(child, SIGKILL);
        int ended = 0;
        waitpid(child, &ended, 0);
        if (!WIFSIGNALED(ended))
            fail_msg("the child ended by itself with %d", WEXITSTATUS(ended));
        while (hear(pipes[0], model, seed, &next))
            continue;
        close(pipes[0]);
        next = work_verify(path, device, model, seed, next);
    }
    assert_true(next > kills / 2); /* something was done */
    ww_collection_destroy(model);
    ww_device_close(device);
    free(path);
}

static int kills_asked(int usual)
{
    const char *asked = getenv("WARPWAVE_KILLS");
    return asked ? atoi(asked) : usual;
}

static void nothing_acknowledged_is_lost_and_nothing_is_half(void **state)
{
    (void)state;
    kill_again_and_again(kills_asked(50));
}

static void an_index_is_never_half_built_half_split_or_out_of_step(void **state)
{
    (void)state;
    work_indexed = true;
    kill_again_and_again(kills_asked(25));
    work_indexed = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_acknowledged_is_lost_and_nothing_is_half, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(an_index_is_never_half_built_half_split_or_out_of_step, scratch_setup,
                                        scratch_teardown)};
    return cmocka_run_group_tests_name("store: kill", tests, NULL, NULL);
}
