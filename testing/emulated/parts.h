/* Shared by the files of the emulated driver. */
#ifndef WW_EMULATED_PARTS_H
#define WW_EMULATED_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "emulated/emulated.h"

/* The emulator's error numbers. They are CUDA's if there is a similar one, so that messages are easy to compare. */
enum {
    EMULATED_OK = 0,
    EMULATED_INVALID_VALUE = 1,
    EMULATED_OUT_OF_MEMORY = 2,
    EMULATED_INVALID_DEVICE = 101,
    EMULATED_INVALID_IMAGE = 200,
    EMULATED_NO_CONTEXT = 201,
    EMULATED_INVALID_HANDLE = 400,
    EMULATED_NOT_FOUND = 500,
    EMULATED_NOT_READY = 600,
    EMULATED_ILLEGAL_ADDRESS = 700,
    EMULATED_LAUNCH_FAILED = 719
};

enum { EMULATED_DEVICES = 2, EMULATED_CONTEXTS = 8, EMULATED_DETAIL_BYTES = 640 };

typedef struct emulated_context {
    atomic_int users;
    atomic_int broken; /* the number that every call returns after a kernel has faulted */
    atomic_int losses; /* how often it was lost; older streams do no work */
    int32_t index;
    uint32_t wave_size;
    uint64_t seed;
    driver_launch_limits limits;
} emulated_context;

/* ---- contexts (emulated_context.c) --------------------------------------------------------------------------------------- */

/* Sets the wave size of context `index`, below EMULATED_CONTEXTS: a stand-in may have other devices than the two of the table.
 * Not while the context is in use. */
void emulated_set_wave_size(int32_t index, uint32_t wave_size);

/* Records for failure() which function of the table returned a number, and why. Returns the number. */
int emulated_answer(const char *call, int number, const char *detail);

/* Returns the context that is current on this thread, if it is alive and not broken; otherwise NULL, and `number` is what the
 * call returns. */
emulated_context *emulated_here_or(const char *call, int *number);

int emulated_context_create(int32_t index, driver_context *out);
int emulated_context_destroy(int32_t index, driver_context context);
int emulated_context_swap(driver_context context, driver_context *previous);
void emulated_failure(driver_failure *out);
int64_t emulated_contexts_alive(void);
uint32_t emulated_wave_size(int32_t index);

extern atomic_int_least64_t emulated_streams_alive, emulated_events_alive, emulated_graphs_alive;

/* ---- memory (emulated_memory.c) ------------------------------------------------------------------------------------------ */

int emulated_memory_info(size_t *free_bytes, size_t *total_bytes);
int emulated_memory_alloc(size_t bytes, void **out);
int emulated_memory_free(void *address);
int emulated_pinned_alloc(size_t bytes, void **out);
int emulated_pinned_free(void *host);
int64_t emulated_memory_total(void);
void emulated_count_memory(emulated_counts *out);

/* Returns true if these bytes are in one live piece of memory of that device, or of pinned host memory (index -1). */
bool emulated_lies_inside(int32_t index, const void *address, size_t bytes);

/* ---- streams and events (emulated_stream.c) ------------------------------------------------------------------------------ */

int emulated_copy_in(driver_stream stream, void *to, const void *from_host, size_t bytes);
int emulated_copy_out(driver_stream stream, void *to_host, const void *from, size_t bytes);
int emulated_copy(driver_stream stream, void *to, const void *from, size_t bytes);
int emulated_fill32(driver_stream stream, void *to, uint32_t pattern, size_t words);
int emulated_stream_create(driver_stream *out);
int emulated_stream_destroy(driver_stream stream);
int emulated_stream_synchronize(driver_stream stream);
int emulated_event_create(bool timed, driver_event *out);
int emulated_event_destroy(driver_event handle);
int emulated_event_record(driver_event handle, driver_stream stream);
int emulated_stream_wait(driver_stream stream, driver_event handle);
int emulated_event_synchronize(driver_event handle);
int emulated_event_elapsed(driver_event from, driver_event to, float *milliseconds);
int emulated_capture_begin(driver_stream stream);
int emulated_capture_end(driver_stream stream, driver_graph *out);
int emulated_graph_launch(driver_graph graph, driver_stream stream);
int emulated_graph_destroy(driver_graph graph);
/* How large a launch may be. */
int emulated_launch_limits(int32_t index, driver_launch_limits *out);
int emulated_launch(driver_function function, driver_stream stream, const driver_launch *launch);
/* Queues a call on the host with a copy of its arguments, for stand-ins of vendors' libraries. */
int emulated_call(driver_stream stream, void (*call)(const void *arguments), const void *arguments, size_t bytes);

#endif
