/* Progress callbacks: which thread they run on, that a callback can cancel cleanly at any point, and that a C++ exception that
 * would leave one ends in std::terminate instead of leaving a lock held. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/collections.h"
#include "support/command.h"
#include "support/devices.h"

enum { ROWS = 20000, DIM = 64, QUERIES = 40 };

typedef struct listener {
    pthread_t caller;
    int calls, elsewhere; /* elsewhere: on another thread than the caller's */
    int stop_at;          /* the call that asks to stop; 0: none */
} listener;

static int listen_to(int64_t done, int64_t total, void *user)
{
    listener *l = user;
    assert_true(done >= 0 && done <= total);
    l->calls++;
    l->elsewhere += !pthread_equal(l->caller, pthread_self());
    return l->calls == l->stop_at;
}

static listener listener_make(int stop_at)
{
    return (listener){.caller = pthread_self(), .stop_at = stop_at};
}

static void check_told(const char *what, const listener *l)
{
    if (l->calls == 0 || l->elsewhere > 0)
        fail_msg("%s: told %d times, %d of them on another thread", what, l->calls, l->elsewhere);
}

/* A collection, a batch for it and queries; each call is made with the listener. */
static void callbacks_run_on_the_callers_thread_and_cancel_cleanly(void **state)
{
    ww_device *device = *state;
    const int64_t count = device_is_slow(device) ? 500 : ROWS;
    test_random random = {11};
    ww_collection *c = collection_make(device, DIM, WW_L2);
    test_rows more = test_rows_make(&random, count, DIM, "r", 0);
    static int64_t rows[QUERIES * 5];
    static float scores[QUERIES * 5];
    CHECK_OK(ww_collection_upsert(c, &more.rows)); /* so that there are always replaced rows for compact */
    for (int stop = 0; stop < 2; stop++) {
        listener l = listener_make(stop);
        more.rows.progress = listen_to;
        more.rows.progress_user = &l;
        CHECK_FAILS(stop ? WW_CANCELLED : WW_OK, ww_collection_upsert(c, &more.rows));
        check_told("upsert", &l);
        l = listener_make(stop);
        CHECK_FAILS(stop ? WW_CANCELLED : WW_OK, ww_collection_compact(c, listen_to, &l));
        check_told("compact", &l);
        ww_query search = ww_query_default();
        search.queries = more.vectors;
        search.query_count = QUERIES;
        search.dim = DIM;
        search.k = 5;
        search.progress = listen_to;
        l = listener_make(stop);
        search.progress_user = &l;
        CHECK_FAILS(stop ? WW_CANCELLED : WW_OK, ww_collection_search(c, &search, rows, scores));
        check_told("search", &l);
        search.progress = NULL; /* no lock is held, and the workers are free */
        CHECK_OK(ww_collection_search(c, &search, rows, scores));
        more.rows.progress = NULL;
        CHECK_OK(ww_collection_upsert(c, &more.rows));
    }
    assert_int_equal(ww_collection_count(c), count);
    test_rows_free(&more);
    ww_collection_destroy(c);
}

static const char thrower[] =
    "#include <warpwave.h>\n#include <cstdio>\n#include <stdexcept>\n#include <vector>\n"
    "static int thrown(int64_t, int64_t, void *) { throw std::runtime_error(\"from a callback\"); }\n"
    "int main() {\n"
    "    ww_device *device = nullptr; ww_collection *c = nullptr;\n"
    "    ww_device_open(\"cpu\", &device);\n"
    "    ww_collection_config config = ww_collection_config_default(); config.name = \"c\"; config.dim = 4;\n"
    "    ww_collection_create(device, &config, &c);\n"
    "    std::vector<float> x(40, 1.0f);\n"
    "    ww_rows rows = ww_rows_default(); rows.count = 10; rows.dim = 4; rows.vectors = x.data(); rows.progress = thrown;\n"
    "    try { ww_collection_add(c, &rows); } catch (const std::exception &) { std::puts(\"the lock is still held\"); }\n"
    "    return 0;\n"
    "}\n";

static void an_exception_that_would_leave_a_callback_ends_the_program(void **state)
{
    (void)state;
    if (TEST_INSTRUMENTED) {
        print_message("SKIP: a program that the sanitizers know nothing of cannot be linked with a library that has them\n");
        skip();
    }
    if (access("/usr/bin/g++", X_OK) != 0) {
        print_message("SKIP: there is no g++\n");
        skip();
    }
    char source[SCRATCH_PATH_BYTES], program[SCRATCH_PATH_BYTES];
    snprintf(source, sizeof source, "%s", scratch_write("thrower.cpp", thrower, strlen(thrower)));
    snprintf(program, sizeof program, "%s", scratch_path("thrower"));
    static const char headers[] = SOURCE_DIR "/include";
    static const char run_path[] = "-Wl,-rpath," BUILD_DIR;
    const char *const compile[] = {"g++", source, "-o", program, "-I", headers, "-L", BUILD_DIR, "-lwarpwave", run_path, NULL};
    command_result made = program_run("/usr/bin/g++", compile);
    if (made.code != 0)
        fail_msg("the program cannot be compiled: %s", made.err);
    command_free(&made);
    command_result ended = program_run(program, (const char *const[]){program, NULL});
    assert_int_equal(ended.code, 128 + SIGABRT);
    assert_non_null(strstr(ended.err, "terminate called after throwing"));
    assert_non_null(strstr(ended.err, "from a callback"));
    assert_null(strstr(ended.out, "the lock is still held"));
    command_free(&ended);
}

int main(void)
{
    const struct CMUnitTest on_devices[] = {
        cmocka_unit_test(callbacks_run_on_the_callers_thread_and_cancel_cleanly),
    };
    const struct CMUnitTest once[] = {
        cmocka_unit_test_setup_teardown(an_exception_that_would_leave_a_callback_ends_the_program, scratch_setup,
                                        scratch_teardown),
    };
    const int failed = RUN_ON_EVERY_DEVICE("callbacks", on_devices);
    return failed + cmocka_run_group_tests(once, NULL, NULL);
}
