/* Streams and events of the emulated driver: work is queued, and done when a call waits for it.
 *
 * That is the latest moment that a real driver may choose, so a missing wait always shows: memory freed too early, staging
 * overwritten, a result read before it is written. Work is done on the thread that waits, under the stream's lock.
 */
#include "base/clock.h"
#include "emulated/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"
#include "emulator/object.h"

typedef struct emulated_event {
    struct emulated_stream *stream; /* where it was last recorded */
    atomic_bool pending;            /* recorded but not reached */
    bool recorded;
    bool timed;
    double milliseconds; /* when it was reached */
} emulated_event;

typedef enum work_kind { WORK_COPY_IN, WORK_COPY_OUT, WORK_COPY, WORK_FILL, WORK_RECORD, WORK_LAUNCH, WORK_CALL } work_kind;

typedef struct work {
    struct work *next;
    work_kind kind;
    void *to;
    const void *from;
    size_t bytes; /* of `arguments` for a launch and a call */
    uint32_t pattern;
    emulated_event *event;
    const emulated_kernel *kernel;
    void *object; /* that contains the kernel, retained for it; NULL for the library's own kernels */
    emulator_shape shape;
    void (*call)(const void *arguments);
    _Alignas(16) char arguments[];
} work;

/* Work that was recorded. */
typedef struct emulated_graph {
    emulated_context *context;
    work *first, **last;
    bool spoiled; /* something was queued that cannot be recorded */
} emulated_graph;

typedef struct emulated_stream {
    pthread_mutex_t lock;
    emulated_context *context;
    int losses; /* of the context, when the stream was created */
    work *first, **last;
    emulated_graph *captured; /* while the stream records */
} emulated_stream;

atomic_int_least64_t emulated_streams_alive, emulated_events_alive, emulated_graphs_alive;

static emulated_stream *stream_of(driver_stream handle)
{
    return (emulated_stream *)handle;
}

static emulated_event *event_of(driver_event handle)
{
    return (emulated_event *)handle;
}

/* ---- doing it ------------------------------------------------------------------------------------------------------------ */

static int do_launch(emulated_context *context, const work *item)
{
    char fault[EMULATOR_FAULT_BYTES] = "";
    char detail[EMULATED_DETAIL_BYTES];
    if (emulator_launch(item->kernel, item->arguments, item->bytes, &item->shape, fault))
        return EMULATED_OK;
    if (strstr(fault, "no memory") != NULL) { /* the host's, not the kernel's fault */
        snprintf(detail, sizeof detail, "%s, asked of the host", fault);
        return emulated_answer("emulatedLaunch", EMULATED_OUT_OF_MEMORY, detail);
    }
    atomic_store(&context->broken, EMULATED_LAUNCH_FAILED);
    return emulated_answer("emulatedLaunch", EMULATED_LAUNCH_FAILED, fault);
}

static int do_copy(emulated_context *context, const work *item)
{
    const int32_t index = context->index;
    const bool good =
        emulated_lies_inside(item->kind == WORK_COPY_OUT ? -1 : index, item->to, item->bytes) &&
        (item->kind == WORK_FILL || emulated_lies_inside(item->kind == WORK_COPY_IN ? -1 : index, item->from, item->bytes));
    if (!good) {
        atomic_store(&context->broken, EMULATED_ILLEGAL_ADDRESS);
        return emulated_answer("emulatedCopy", EMULATED_ILLEGAL_ADDRESS, "a copy or fill reaches outside of live memory");
    }
    if (item->kind == WORK_FILL)
        for (size_t i = 0; i < item->bytes; i += sizeof item->pattern)
            memcpy((char *)item->to + i, &item->pattern, sizeof item->pattern);
    else
        memcpy(item->to, item->from, item->bytes);
    return EMULATED_OK;
}

static int do_work(emulated_context *context, const work *item)
{
    switch (item->kind) {
    case WORK_RECORD:
        item->event->milliseconds = clock_seconds() * 1e3;
        atomic_store(&item->event->pending, false);
        return EMULATED_OK;
    case WORK_LAUNCH:
        return do_launch(context, item);
    case WORK_CALL:
        item->call(item->arguments);
        return EMULATED_OK;
    default:
        return do_copy(context, item);
    }
}

/* Runs queued work up to and including the record of `until` (NULL: all). After a failure, or in a lost context, the rest is
 * dropped, but its events count as reached, so that nothing waits forever. The lock is held. */
static int advance(emulated_stream *queue, const emulated_event *until)
{
    int number = atomic_load(&queue->context->losses) == queue->losses ? EMULATED_OK : EMULATED_LAUNCH_FAILED;
    while (queue->first != NULL && (until == NULL || atomic_load(&until->pending) || number != EMULATED_OK)) {
        work *item = queue->first;
        queue->first = item->next;
        if (queue->first == NULL)
            queue->last = &queue->first;
        if (number == EMULATED_OK)
            number = do_work(queue->context, item);
        else if (item->kind == WORK_RECORD)
            atomic_store(&item->event->pending, false);
        emulator_object_unload(item->object);
        free(item);
    }
    return number;
}

static int wait_for(emulated_stream *queue, const emulated_event *until)
{
    pthread_mutex_lock(&queue->lock);
    if (queue->captured != NULL) {
        queue->captured->spoiled = true;
        pthread_mutex_unlock(&queue->lock);
        return emulated_answer("emulatedWait", EMULATED_INVALID_VALUE, "the stream records; nothing can be waited for");
    }
    int number = advance(queue, until);
    if (number == EMULATED_OK && atomic_load(&queue->context->broken) != 0)
        number = emulated_answer("emulatedWait", atomic_load(&queue->context->broken), "the context is broken");
    pthread_mutex_unlock(&queue->lock);
    return number;
}

/* ---- queueing it --------------------------------------------------------------------------------------------------------- */

static int enqueue(const char *call, driver_stream handle, const work *item, const void *arguments)
{
    emulated_stream *queue = stream_of(handle);
    int number = EMULATED_OK;
    const emulated_context *here = emulated_here_or(call, &number);
    if (here == NULL)
        return number;
    if (here != queue->context)
        return emulated_answer(call, EMULATED_INVALID_HANDLE, "the stream is of another context than the current one");
    const size_t arguments_bytes = arguments != NULL ? item->bytes : 0;
    work *queued = malloc(sizeof *queued + arguments_bytes);
    if (queued == NULL)
        return emulated_answer(call, EMULATED_OUT_OF_MEMORY, "");
    memcpy(queued, item, sizeof *queued);
    if (arguments != NULL)
        memcpy(queued->arguments, arguments, arguments_bytes);
    queued->next = NULL;
    pthread_mutex_lock(&queue->lock);
    emulated_graph *captured = queue->captured;
    const bool refused = captured != NULL && item->kind != WORK_LAUNCH && item->kind != WORK_COPY && item->kind != WORK_FILL &&
                         item->kind != WORK_CALL;
    if (refused) {
        captured->spoiled = true;
    } else {
        work ***last = captured != NULL ? &captured->last : &queue->last;
        **last = queued;
        *last = &queued->next;
    }
    pthread_mutex_unlock(&queue->lock);
    if (refused) {
        free(queued);
        return emulated_answer(call, EMULATED_INVALID_VALUE, "the stream records; this cannot be recorded");
    }
    return EMULATED_OK;
}

int emulated_copy_in(driver_stream stream, void *to, const void *from_host, size_t bytes)
{
    const work item = {.kind = WORK_COPY_IN, .to = to, .from = from_host, .bytes = bytes};
    return enqueue("emulatedCopyIn", stream, &item, NULL);
}

int emulated_copy_out(driver_stream stream, void *to_host, const void *from, size_t bytes)
{
    const work item = {.kind = WORK_COPY_OUT, .to = to_host, .from = from, .bytes = bytes};
    return enqueue("emulatedCopyOut", stream, &item, NULL);
}

int emulated_copy(driver_stream stream, void *to, const void *from, size_t bytes)
{
    const work item = {.kind = WORK_COPY, .to = to, .from = from, .bytes = bytes};
    return enqueue("emulatedCopy", stream, &item, NULL);
}

int emulated_fill32(driver_stream stream, void *to, uint32_t pattern, size_t words)
{
    const work item = {.kind = WORK_FILL, .to = to, .bytes = words * sizeof pattern, .pattern = pattern};
    return enqueue("emulatedFill", stream, &item, NULL);
}

int emulated_launch(driver_function function, driver_stream stream, const driver_launch *launch)
{
    const emulated_context *context = stream_of(stream)->context;
    const driver_launch_limits *limits = &context->limits;
    if (launch->grid_x > limits->grid[0] || launch->grid_y > limits->grid[1] || launch->grid_z > 1 || launch->block_y > 1 ||
        launch->block_z > 1 || (int64_t)launch->grid_x * launch->block_x > limits->threads[0])
        return emulated_answer("emulatedLaunch", EMULATED_INVALID_VALUE, "more blocks or threads than a launch may have");
    const work item = {.kind = WORK_LAUNCH,
                       .kernel = (const emulated_kernel *)function,
                       .object = emulator_object_hold((const emulated_kernel *)function),
                       .bytes = launch->arguments_bytes,
                       .shape = {.grid_x = launch->grid_x,
                                 .grid_y = launch->grid_y,
                                 .block = launch->block_x,
                                 .wave_size = context->wave_size,
                                 .shared_bytes = launch->shared_bytes,
                                 .seed = context->seed}};
    const int number = enqueue("emulatedLaunch", stream, &item, launch->arguments);
    if (number != EMULATED_OK)
        emulator_object_unload(item.object);
    return number;
}

int emulated_call(driver_stream stream, void (*call)(const void *arguments), const void *arguments, size_t bytes)
{
    const work item = {.kind = WORK_CALL, .call = call, .bytes = bytes};
    return enqueue("emulatedCall", stream, &item, arguments);
}

/* ---- recorded work ---------------------------------------------------------------------------------------------------------
 */

static void free_work(work *first)
{
    while (first != NULL) {
        work *item = first;
        first = item->next;
        emulator_object_unload(item->object);
        free(item);
    }
}

int emulated_capture_begin(driver_stream stream)
{
    emulated_stream *queue = stream_of(stream);
    int number = EMULATED_OK;
    if (emulated_here_or("emulatedCaptureBegin", &number) == NULL)
        return number;
    emulated_graph *made = calloc(1, sizeof *made);
    if (made == NULL)
        return emulated_answer("emulatedCaptureBegin", EMULATED_OUT_OF_MEMORY, "");
    made->context = queue->context;
    made->last = &made->first;
    pthread_mutex_lock(&queue->lock);
    const bool already = queue->captured != NULL;
    if (!already)
        queue->captured = made;
    pthread_mutex_unlock(&queue->lock);
    if (already) {
        free(made);
        return emulated_answer("emulatedCaptureBegin", EMULATED_INVALID_VALUE, "the stream records already");
    }
    return EMULATED_OK;
}

int emulated_capture_end(driver_stream stream, driver_graph *out)
{
    emulated_stream *queue = stream_of(stream);
    pthread_mutex_lock(&queue->lock);
    emulated_graph *made = queue->captured;
    queue->captured = NULL;
    pthread_mutex_unlock(&queue->lock);
    if (made == NULL)
        return emulated_answer("emulatedCaptureEnd", EMULATED_INVALID_VALUE, "the stream does not record");
    if (made->spoiled) {
        free_work(made->first);
        free(made);
        return emulated_answer("emulatedCaptureEnd", EMULATED_INVALID_VALUE, "something was asked that cannot be recorded");
    }
    atomic_fetch_add(&emulated_graphs_alive, 1);
    *out = (driver_graph)made;
    return EMULATED_OK;
}

/* Returns a copy of one item, or NULL without memory. */
static work *copy_work(const work *item)
{
    const size_t bytes = sizeof *item + (item->kind == WORK_LAUNCH || item->kind == WORK_CALL ? item->bytes : 0);
    work *copy = malloc(bytes);
    if (copy == NULL)
        return NULL;
    memcpy(copy, item, bytes);
    copy->next = NULL;
    copy->object = item->object != NULL ? emulator_object_hold(item->kernel) : NULL;
    return copy;
}

/* Copies of all work are queued, or none. */
int emulated_graph_launch(driver_graph graph, driver_stream stream)
{
    const emulated_graph *recorded = (const emulated_graph *)graph;
    emulated_stream *queue = stream_of(stream);
    int number = EMULATED_OK;
    if (emulated_here_or("emulatedGraphLaunch", &number) == NULL)
        return number;
    if (recorded->context != queue->context)
        return emulated_answer("emulatedGraphLaunch", EMULATED_INVALID_HANDLE, "the graph is of another context");
    work *first = NULL, *last = NULL;
    for (const work *item = recorded->first; item != NULL; item = item->next) {
        work *copy = copy_work(item);
        if (copy == NULL) {
            free_work(first);
            return emulated_answer("emulatedGraphLaunch", EMULATED_OUT_OF_MEMORY, "");
        }
        if (last != NULL)
            last->next = copy;
        else
            first = copy;
        last = copy;
    }
    if (first == NULL)
        return EMULATED_OK;
    pthread_mutex_lock(&queue->lock);
    *queue->last = first;
    queue->last = &last->next;
    pthread_mutex_unlock(&queue->lock);
    return EMULATED_OK;
}

int emulated_graph_destroy(driver_graph graph)
{
    emulated_graph *recorded = (emulated_graph *)graph;
    free_work(recorded->first);
    free(recorded);
    atomic_fetch_sub(&emulated_graphs_alive, 1);
    return EMULATED_OK;
}

/* ---- streams ------------------------------------------------------------------------------------------------------------- */

int emulated_stream_create(driver_stream *out)
{
    int number = EMULATED_OK;
    emulated_context *here = emulated_here_or("emulatedStreamCreate", &number);
    if (here == NULL)
        return number;
    emulated_stream *made = calloc(1, sizeof *made);
    if (made == NULL)
        return emulated_answer("emulatedStreamCreate", EMULATED_OUT_OF_MEMORY, "");
    pthread_mutex_init(&made->lock, NULL);
    made->context = here;
    made->losses = atomic_load(&here->losses);
    made->last = &made->first;
    atomic_fetch_add(&emulated_streams_alive, 1);
    *out = (driver_stream)made;
    return EMULATED_OK;
}

int emulated_stream_destroy(driver_stream stream)
{
    emulated_stream *queue = stream_of(stream);
    const int number = wait_for(queue, NULL);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
    atomic_fetch_sub(&emulated_streams_alive, 1);
    return number;
}

int emulated_stream_synchronize(driver_stream stream)
{
    return wait_for(stream_of(stream), NULL);
}

/* ---- events -------------------------------------------------------------------------------------------------------------- */

int emulated_event_create(bool timed, driver_event *out)
{
    int number = EMULATED_OK;
    if (emulated_here_or("emulatedEventCreate", &number) == NULL)
        return number;
    emulated_event *made = calloc(1, sizeof *made);
    if (made == NULL)
        return emulated_answer("emulatedEventCreate", EMULATED_OUT_OF_MEMORY, "");
    made->timed = timed;
    atomic_fetch_add(&emulated_events_alive, 1);
    *out = (driver_event)made;
    return EMULATED_OK;
}

int emulated_event_synchronize(driver_event handle)
{
    const emulated_event *event = event_of(handle);
    return atomic_load(&event->pending) ? wait_for(event->stream, event) : EMULATED_OK;
}

int emulated_event_destroy(driver_event handle)
{
    const int number = emulated_event_synchronize(handle);
    free(event_of(handle));
    atomic_fetch_sub(&emulated_events_alive, 1);
    return number;
}

int emulated_event_record(driver_event handle, driver_stream stream)
{
    emulated_event *event = event_of(handle);
    int number = emulated_event_synchronize(handle); /* a record that is still queued is reached first */
    if (number != EMULATED_OK)
        return number;
    const work item = {.kind = WORK_RECORD, .event = event};
    event->stream = stream_of(stream);
    atomic_store(&event->pending, true);
    number = enqueue("emulatedEventRecord", stream, &item, NULL);
    if (number == EMULATED_OK)
        event->recorded = true;
    else
        atomic_store(&event->pending, false);
    return number;
}

/* Runs the other stream up to the event at once, so that this one need not wait. */
int emulated_stream_wait(driver_stream stream, driver_event handle)
{
    const emulated_event *event = event_of(handle);
    return atomic_load(&event->pending) && event->stream != stream_of(stream) ? wait_for(event->stream, event) : EMULATED_OK;
}

int emulated_event_elapsed(driver_event from, driver_event to, float *milliseconds)
{
    const emulated_event *begin = event_of(from);
    const emulated_event *end = event_of(to);
    if (!begin->timed || !end->timed || !begin->recorded || !end->recorded)
        return emulated_answer("emulatedEventElapsed", EMULATED_INVALID_HANDLE, "both events must be timed and recorded");
    if (atomic_load(&begin->pending) || atomic_load(&end->pending))
        return emulated_answer("emulatedEventElapsed", EMULATED_NOT_READY, "");
    *milliseconds = (float)(end->milliseconds - begin->milliseconds);
    return EMULATED_OK;
}
