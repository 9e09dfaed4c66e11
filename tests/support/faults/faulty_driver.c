/* A driver table that fails on demand. */
#include "support/faults/faulty_driver.h"

#include "emulated/emulated.h"
#include "support/faults/fault_counts.h"
#include <stdatomic.h>
#include <string.h>

static const gpu_driver *inner;
static atomic_int_least64_t countdown;
static int answer;
static const char *only;
static _Atomic(const char *) victim;
static atomic_bool lost;
static _Thread_local const char *failed_here;

void faulty_arm(const gpu_driver *table, int64_t n, int number, const char *function)
{
    inner = table;
    answer = number;
    only = function;
    atomic_store(&victim, NULL);
    atomic_store(&lost, false);
    atomic_store(&countdown, n);
}

const char *faulty_victim(void)
{
    return atomic_load(&victim);
}

/* The number that this call must answer with, or 0. */
static int judge(const char *name)
{
    bool fails = atomic_load(&lost);
    if (!fails && atomic_load(&countdown) > 0 && (only == NULL || strcmp(only, name) == 0))
        fails = atomic_fetch_sub(&countdown, 1) == 1;
    if (!fails)
        return 0;
    failed_here = name;
    fault_count("call of a GPU's driver", 1);
    if (atomic_load(&victim) == NULL)
        atomic_store(&victim, name);
    if (inner->error_class(answer) == DRIVER_ERROR_LOST && !atomic_exchange(&lost, true))
        emulated_lose(); /* a lost device does not do its queued work */
    return answer;
}

/* A failure of the table below takes the place of ours as the last one. */
static int relay(int number)
{
    if (number != 0)
        failed_here = NULL;
    return number;
}

/* TAKE fails instead of the call, GIVE after it. */
#define FUNCTIONS(TAKE, GIVE)                                                                                                  \
    TAKE(device_count, (int32_t *count), (count))                                                                              \
    TAKE(device_describe, (int32_t index, ww_device_info *info), (index, info))                                                \
    TAKE(launch_limits, (int32_t index, driver_launch_limits *out), (index, out))                                              \
    TAKE(context_create, (int32_t index, driver_context *out), (index, out))                                                   \
    GIVE(context_destroy, (int32_t index, driver_context context), (index, context))                                           \
    TAKE(context_swap, (driver_context context, driver_context * previous), (context, previous))                               \
    TAKE(memory_info, (size_t *free_bytes, size_t *total_bytes), (free_bytes, total_bytes))                                    \
    TAKE(memory_alloc, (size_t bytes, void **out), (bytes, out))                                                               \
    GIVE(memory_free, (void *address), (address))                                                                              \
    TAKE(pinned_alloc, (size_t bytes, void **out), (bytes, out))                                                               \
    GIVE(pinned_free, (void *host), (host))                                                                                    \
    TAKE(copy_in, (driver_stream stream, void *to, const void *from, size_t bytes), (stream, to, from, bytes))                 \
    TAKE(copy_out, (driver_stream stream, void *to, const void *from, size_t bytes), (stream, to, from, bytes))                \
    TAKE(copy, (driver_stream stream, void *to, const void *from, size_t bytes), (stream, to, from, bytes))                    \
    TAKE(fill32, (driver_stream stream, void *to, uint32_t pattern, size_t words), (stream, to, pattern, words))               \
    TAKE(stream_create, (driver_stream * out), (out))                                                                          \
    GIVE(stream_destroy, (driver_stream stream), (stream))                                                                     \
    TAKE(stream_synchronize, (driver_stream stream), (stream))                                                                 \
    TAKE(event_create, (bool timed, driver_event *out), (timed, out))                                                          \
    GIVE(event_destroy, (driver_event event), (event))                                                                         \
    TAKE(event_record, (driver_event event, driver_stream stream), (event, stream))                                            \
    TAKE(stream_wait, (driver_stream stream, driver_event event), (stream, event))                                             \
    TAKE(event_synchronize, (driver_event event), (event))                                                                     \
    TAKE(event_elapsed, (driver_event from, driver_event to, float *milliseconds), (from, to, milliseconds))                   \
    TAKE(capture_begin, (driver_stream stream), (stream))                                                                      \
    GIVE(graph_destroy, (driver_graph graph), (graph))                                                                         \
    TAKE(graph_launch, (driver_graph graph, driver_stream stream), (graph, stream))                                            \
    TAKE(module_load, (const void *image, size_t bytes, driver_module *out), (image, bytes, out))                              \
    GIVE(module_unload, (driver_module module), (module))                                                                      \
    TAKE(function_find, (driver_module module, const char *name, driver_function *out), (module, name, out))                   \
    TAKE(function_limits, (driver_function function, driver_function_limits * out), (function, out))                           \
    TAKE(function_arguments, (driver_function function, int64_t *bytes), (function, bytes))                                    \
    TAKE(launch, (driver_function function, driver_stream stream, const driver_launch *launch), (function, stream, launch))

#define TAKE(name, parameters, arguments)                                                                                      \
    static int faulty_##name parameters                                                                                        \
    {                                                                                                                          \
        const int number = judge(#name);                                                                                       \
        return number != 0 ? number : relay(inner->name arguments);                                                            \
    }
#define GIVE(name, parameters, arguments)                                                                                      \
    static int faulty_##name parameters                                                                                        \
    {                                                                                                                          \
        const int done = relay(inner->name arguments);                                                                         \
        const int number = judge(#name);                                                                                       \
        return number != 0 ? number : done;                                                                                    \
    }
FUNCTIONS(TAKE, GIVE)
#undef TAKE
#undef GIVE

/* The stream works as before, also where this fails. */
static int faulty_capture_end(driver_stream stream, driver_graph *out)
{
    const int done = relay(inner->capture_end(stream, out));
    const int number = judge("capture_end");
    if (number != 0 && done == 0) {
        (void)inner->graph_destroy(*out);
        *out = NULL;
    }
    return number != 0 ? number : done;
}

const char *faulty_function(int32_t index)
{
#define NAME(name, parameters, arguments) #name,
    static const char *const names[] = {FUNCTIONS(NAME, NAME) NULL};
#undef NAME
    return names[index];
}

static int faulty_load(char *why, size_t why_capacity)
{
    return inner->load(why, why_capacity);
}

static const char *faulty_error_name(int number)
{
    return inner->error_name(number);
}

static driver_error faulty_error_class(int number)
{
    return inner->error_class(number);
}

static void faulty_failure(driver_failure *out)
{
    if (failed_here != NULL)
        *out = (driver_failure){.call = failed_here, .detail = "made to fail"};
    else
        inner->failure(out);
}

static _Atomic process_mark faulty_started_in; /* never set, because the inner table handles it */

const gpu_driver faulty_driver = {
    .code = DRIVER_CODE_HOST,
    .code_in_words = "a shared object of the host's compiler",
    .backend = "emulator",
    .vendor = "emulated",
    .api = "emulator",
    .library = "",
    .started_in = &faulty_started_in,
    .load = faulty_load,
#define ENTRY(name, parameters, arguments) .name = faulty_##name,
    FUNCTIONS(ENTRY, ENTRY)
#undef ENTRY
        .capture_end = faulty_capture_end,
    .error_name = faulty_error_name,
    .error_class = faulty_error_class,
    .failure = faulty_failure,
};
