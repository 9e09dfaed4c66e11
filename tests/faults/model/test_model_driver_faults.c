/* Models on drivers whose every call fails in turn: opening, feeding, steps that are recorded and replayed, many sessions at
 * once, saving, loading, embedding. A status whose message names the call, nothing left in the driver or on the host, and the
 * models go on with the same bits; or the device was lost, and then every later call says so.
 *
 * On the emulated driver, and on the stand-ins for ROCm's runtime and CUDA's driver where the build has kernels for them. The
 * one for CUDA runs no kernels: there the bits are zeros.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "emulated/emulated.h"
#include "emulated/parts.h"
#include "gpu/backend.h"
#include "gpu/driver/cuda_api.h"
#include "gpu/driver/hip_api.h"
#include "model/model_calls.h"
#include "support/devices.h"
#include "support/embedded_find.h"
#include "support/faults/fault_counts.h"
#include "support/faults/faulty_driver.h"
#include "support/memory.h"
#include "support/scratch.h"
#include "support/standin.h"

enum { CALLS_MAX = 3000 };

/* A driver that can be made to fail. */
typedef struct faulty_device {
    const char *name;
    ww_status (*open)(ww_device **device);
    void (*arm)(long n, int number); /* 0: nothing fails */
    const char *(*victim)(void);
    const char *(*left)(void); /* describes objects that are alive, or returns NULL */
    int out_of_memory, invalid, lost;
    long every; /* the device is lost at every n-th call */
} faulty_device;

static const faulty_device *on;

/* ---- the emulated driver ------------------------------------------------------------------------------------------------- */

static ww_status emulated_open(ww_device **device)
{
    static int32_t turn;
    return gpu_open(&backend_emulator, &faulty_driver, turn++ % 2, device);
}

static void emulated_arm(long n, int number)
{
    faulty_arm(&emulated_driver, n, number, NULL);
}

static const char *emulated_left(void)
{
    static char text[160];
    emulated_counts c;
    emulated_count(&c);
    if (c.contexts + c.blocks + c.pinned + c.streams + c.events + c.modules + c.graphs == 0)
        return NULL;
    snprintf(text, sizeof text, "%d contexts, %d blocks, %d pinned, %d streams, %d events, %d modules, %d graphs",
             (int)c.contexts, (int)c.blocks, (int)c.pinned, (int)c.streams, (int)c.events, (int)c.modules, (int)c.graphs);
    return text;
}

static const faulty_device emulated = {.name = "the emulated driver",
                                       .open = emulated_open,
                                       .arm = emulated_arm,
                                       .victim = faulty_victim,
                                       .left = emulated_left,
                                       .out_of_memory = EMULATED_OUT_OF_MEMORY,
                                       .invalid = EMULATED_INVALID_VALUE,
                                       .lost = EMULATED_LAUNCH_FAILED,
                                       .every = 17};

/* ---- the stand-in for ROCm ----------------------------------------------------------------------------------------------- */

static standin rocm;

static ww_status rocm_open(ww_device **device)
{
    static int turn;
    return ww_device_open(turn++ % 2 ? "rocm:1" : "rocm:0", device);
}

static void rocm_arm(long n, int number)
{
    char settings[64];
    snprintf(settings, sizeof settings, "fail=any:%ld:%d", n, number);
    rocm.configure(n > 0 ? settings : "");
}

static const char *rocm_victim(void)
{
    return rocm.victim();
}

static const char *rocm_left(void)
{
    if (rocm.misuse())
        return rocm.misuse();
    return standin_alive(&rocm) != 0 ? standin_alive_text(&rocm) : NULL;
}

static const faulty_device on_rocm = {.name = "the stand-in for ROCm",
                                      .open = rocm_open,
                                      .arm = rocm_arm,
                                      .victim = rocm_victim,
                                      .left = rocm_left,
                                      .out_of_memory = AMD_ERROR_OUT_OF_MEMORY,
                                      .invalid = AMD_ERROR_INVALID_VALUE,
                                      .lost = AMD_ERROR_LAUNCH_FAILURE,
                                      .every = 37};

/* ---- the stand-in for CUDA ----------------------------------------------------------------------------------------------- */

#define CUDA_STANDIN BUILD_DIR "/standin/libcuda.so.1"

static struct {
    void (*fail_at)(const char *call, long n, int number);
    const char *(*victim)(void);
    long (*alive)(void);
    int (*set_current)(void *context);
} cuda;

static ww_status cuda_open(ww_device **device)
{
    return ww_device_open("cuda:0", device);
}

static void cuda_arm(long n, int number)
{
    cuda.fail_at(NULL, 0, 0);
    /* A failed call may have left another context current, and then the next one would make different calls. */
    (void)cuda.set_current(NULL);
    cuda.fail_at(NULL, n, number);
}

static const char *cuda_victim(void)
{
    return cuda.victim();
}

static const char *cuda_left(void)
{
    static char text[64];
    snprintf(text, sizeof text, "%ld things", cuda.alive());
    return cuda.alive() != 0 ? text : NULL;
}

static const faulty_device on_cuda = {.name = "the stand-in for CUDA",
                                      .open = cuda_open,
                                      .arm = cuda_arm,
                                      .victim = cuda_victim,
                                      .left = cuda_left,
                                      .out_of_memory = NV_ERROR_OUT_OF_MEMORY,
                                      .invalid = 1,
                                      .lost = NV_ERROR_LAUNCH_FAILED,
                                      .every = 7};

static bool cuda_setup(void)
{
    if (!embedded_find("rows", "sm_75") || !embedded_find("rows", "sm_90a"))
        return false;
    setenv("WARPWAVE_CUDA_LIBRARY", CUDA_STANDIN, 1);
    void *library = dlopen(CUDA_STANDIN, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    *(void **)&cuda.fail_at = dlsym(library, "standin_fail");
    *(void **)&cuda.victim = dlsym(library, "standin_victim");
    *(void **)&cuda.alive = dlsym(library, "standin_alive");
    *(void **)&cuda.set_current = dlsym(library, "cuCtxSetCurrent");
    return cuda.fail_at && cuda.victim && cuda.alive && cuda.set_current;
}

/* ---- failing it ---------------------------------------------------------------------------------------------------------- */

static void check_nothing_left(int64_t host_blocks, const char *when)
{
    if (on->left())
        fail_msg("%s, %s: left in the driver: %s", on->name, when, on->left());
    if (blocks_held() != host_blocks)
        fail_msg("%s, %s: %d blocks of host memory left", on->name, when, (int)(blocks_held() - host_blocks));
}

static void check_message(const model_call *c, long n, ww_status status, bool lost)
{
    const char *word = lost ? "device lost" : on->victim();
    if (status != WW_OK && (!on->victim() || !strstr(ww_error_message(), word)))
        fail_msg("%s: %s, call %ld (%s): %s: %s", on->name, c->name, n, on->victim() ? on->victim() : "none",
                 ww_status_name(status), ww_error_message());
}

static char seen[64][48]; /* the functions that were made to fail */

static void note_victim(void)
{
    size_t i = 0;
    while (i < 63 && seen[i][0] && strcmp(seen[i], on->victim()) != 0)
        i++;
    snprintf(seen[i], sizeof seen[i], "%s", on->victim());
}

static bool was_seen(const char *function)
{
    for (size_t i = 0; i < 64; i++)
        if (strcmp(seen[i], function) == 0)
            return true;
    return false;
}

/* The call to fail after the n-th: the next in the long form; else few of those that open a model, which are hundreds, and ever
 * fewer of the others, but each of those that record a step or replay it. */
static long next_call(const model_call *c, long n)
{
    if (test_is_long() || n < (test_is_short() ? 4 : 16) || (c->before && !c->opens))
        return n + 1;
    return c->opens ? n + (test_is_short() ? 191 : 47) : fault_next(n);
}

/* Each call of an operation fails in turn, with errors after which the device still works: not enough memory, or an invalid
 * argument. */
static void fail_each(const model_call *c)
{
    long n = 1;
    for (;; n = next_call(c, n)) {
        if (c->before)
            c->before();
        on->arm(n, n % 2 ? on->out_of_memory : on->invalid);
        const ww_status status = c->call();
        const bool failed = on->victim() != NULL;
        check_message(c, n, status, false);
        if (failed)
            note_victim();
        on->arm(0, 0);
        if (!failed) {
            CHECK_OK(status);
            break;
        }
        fault_count("call of a GPU's driver", 1);
        if (!c->opens || n % 16 == 1) /* opening does not affect existing models */
            model_calls_check(c->name, n % 16 == 1);
        assert_true(n < CALLS_MAX);
    }
    if (strcmp(c->name, "sample") != 0) /* is done on the host */
        assert_true(n > 2);
    model_calls_check(c->name, true);
}

static void each_call_may_fail_and_models_go_on(void **state)
{
    (void)state;
    ww_device *device = NULL;
    const int64_t host_blocks = blocks_held();
    on->arm(0, 0);
    CHECK_OK(on->open(&device));
    model_calls_begin(device);
    model_calls_warm();
    for (const model_call *c = model_calls; c->name; c++)
        fail_each(c);
    model_calls_end();
    ww_device_close(device);
    check_nothing_left(host_blocks, "after closing");
}

/* Loses the device at the n-th driver call of an operation; false if it makes fewer. */
static bool lose_at(const model_call *c, long n)
{
    ww_device *device = NULL;
    const int64_t host_blocks = blocks_held();
    on->arm(0, 0);
    CHECK_OK(on->open(&device));
    model_calls_begin(device);
    if (c->before)
        c->before();
    on->arm(n, on->lost);
    const ww_status status = c->call();
    const bool lost = on->victim() != NULL;
    check_message(c, n, status, lost);
    if (lost) {
        fault_count("call of a GPU's driver", 1);
        CHECK_FAILS(WW_DRIVER_ERROR, model_calls[1].call()); /* every later call reports it again */
        assert_non_null(strstr(ww_error_message(), "device lost"));
    } else {
        on->arm(0, 0);
    }
    model_calls_end();
    ww_device_close(device);
    check_nothing_left(host_blocks, c->name);
    return lost;
}

static void the_device_may_be_lost_at_any_call(void **state)
{
    (void)state;
    const long every = TEST_INSTRUMENTED ? 5 * on->every : on->every * (test_is_long() ? 1 : test_is_short() ? 9 : 3);
    long lost = 0;
    for (const model_call *c = model_calls; c->name; c++)
        for (long n = 1 + lost % on->every; lose_at(c, n); n += every)
            lost++;
    assert_true(lost > 5);
}

static void every_function_of_graphs_was_made_to_fail(void **state)
{
    (void)state;
    static const char *const names[3][6] = {
        {"capture_begin", "capture_end", "graph_launch", "graph_destroy"},
        {"hipStreamBeginCapture", "hipStreamEndCapture", "hipGraphInstantiate", "hipGraphLaunch", "hipGraphDestroy",
         "hipGraphExecDestroy"},
        {"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuGraphDestroy",
         "cuGraphExecDestroy"},
    };
    const char *const *wanted = names[on == &emulated ? 0 : on == &on_rocm ? 1 : 2];
    for (int i = 0; i < 6 && wanted[i]; i++)
        if (!was_seen(wanted[i]))
            fail_msg("%s: %s was never made to fail", on->name, wanted[i]);
}

static int run(const faulty_device *driver)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_may_fail_and_models_go_on),
        cmocka_unit_test(the_device_may_be_lost_at_any_call),
        cmocka_unit_test(every_function_of_graphs_was_made_to_fail),
    };
    on = driver;
    memset(seen, 0, sizeof seen);
    printf("models on %s\n", on->name);
    return cmocka_run_group_tests_name(on->name, tests, NULL, NULL);
}

int main(void)
{
    void *scratch;
    const bool has_cuda = cuda_setup();
    if (scratch_setup(&scratch) != 0)
        return 1;
    model_calls_write_files();
    int failed = run(&emulated);
    if (standin_open(6, "", &rocm)) /* prints SKIP if it is not possible */
        failed += run(&on_rocm);
    if (has_cuda)
        failed += run(&on_cuda);
    else
        printf("SKIP: this build has no kernels for sm_75 and sm_90a, which the stand-in for CUDA is given\n");
    return scratch_teardown(&scratch) != 0 || failed;
}
