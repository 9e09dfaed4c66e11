/* The driver table: everything the GPU backend asks of a vendor, as functions that all vendors have in the same shape.
 *
 * CUDA's driver API and HIP differ in names, numbers and a few structs; those differences end here. cuda.c fills the table
 * from libcuda.so.1, hip.c from libamdhip64.so, and in builds with tests emulated.c fills it with the emulator, so that every
 * line above this table runs on a machine without a GPU. A driver is one table for all of its devices.
 *
 * Rules for every function that returns int: 0 is success, anything else is the vendor's own number, and nothing was changed.
 * error_name() and error_class() say what a number means; failure() says, for the calling thread, which vendor function gave
 * the last non-zero number. gpu/error.h makes a status of the three.
 *
 * Unless it says otherwise a function works in the context that is current on the calling thread. Functions may be called
 * from any thread at any time. Work on one stream happens in order; "queued" means the call does not wait for it.
 */
#ifndef WW_GPU_DRIVER_DRIVER_H
#define WW_GPU_DRIVER_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/device.h>

#include "base/system/process.h"

/* The vendor's own handles. A device address is a plain pointer that the host must not follow. */
typedef struct driver_context_opaque *driver_context;
typedef struct driver_stream_opaque *driver_stream;
typedef struct driver_event_opaque *driver_event;
typedef struct driver_module_opaque *driver_module;
typedef struct driver_function_opaque *driver_function;
typedef struct driver_graph_opaque *driver_graph;

typedef enum driver_error {
    DRIVER_ERROR_OTHER = 0,
    DRIVER_ERROR_MEMORY,    /* the device (or pinned host memory) is full; freeing may help */
    DRIVER_ERROR_IMAGE,     /* the module's code is not for this chip, or not valid */
    DRIVER_ERROR_TOO_OLD,   /* the module's code is newer than this driver; code for an older chip may do */
    DRIVER_ERROR_NOT_FOUND, /* a module has no function of that name */
    DRIVER_ERROR_LOST       /* the context is broken for good: a kernel faulted, or the hardware did */
} driver_error;

/* Code that was compiled on this machine. */
typedef struct driver_compiled {
    void *image; /* for module_load, to be given back with memory_free() */
    size_t bytes;
    char cached[4096]; /* the file it was read from; "" if it was compiled now */
} driver_compiled;

/* What a function needs and allows, for the check before a launch. */
typedef struct driver_function_limits {
    int32_t threads_per_block_max;
    int32_t registers;                /* a thread; 0 where the driver does not say */
    int64_t shared_static_bytes;      /* a block */
    int64_t shared_dynamic_bytes_max; /* a block, what function_find made possible */
    int64_t local_bytes;              /* a thread: spills and stack */
    int64_t arguments_bytes;          /* of the one struct the kernel takes, or -1 where the driver cannot say */
    bool early;                       /* can be launched so */
} driver_function_limits;

enum { DRIVER_DETAIL_BYTES = 1024 }; /* that a driver keeps of what its vendor had to say */

/* Which vendor function failed last on this thread, and what the vendor had to say beyond its number: the log of the compiler
 * for a module, the fault the emulator found. Both are "" rather than NULL; valid until the thread's next call. */
typedef struct driver_failure {
    const char *call;
    const char *detail;
} driver_failure;

/* How large a launch may be along x, y and z: the blocks of a grid, the threads of a block, and the threads of a grid. */
typedef struct driver_launch_limits {
    int64_t grid[3];
    int64_t block[3];
    int64_t threads[3]; /* blocks times threads a block: HIP counts them in 32 bits; INT64_MAX where there is no such limit */
} driver_launch_limits;

typedef struct driver_launch {
    uint32_t grid_x, grid_y, grid_z;
    uint32_t block_x, block_y, block_z;
    uint32_t shared_bytes; /* dynamic */
    const void *arguments; /* the one struct the kernel takes; read during the call */
    size_t arguments_bytes;
    bool packed; /* several arguments, laid out one behind the other, in place of the one struct */
    bool early;  /* may begin while kernels in front of it still run: it waits for them itself (simt.h: launches_wait) */
} driver_launch;

/* Whose code a driver loads. */
typedef enum driver_code { DRIVER_CODE_UNKNOWN, DRIVER_CODE_AMD, DRIVER_CODE_NVIDIA, DRIVER_CODE_HOST } driver_code;

typedef struct gpu_driver {
    driver_code code;          /* that it loads, */
    const char *code_in_words; /* for messages */
    bool stream_1_is_null;     /* 1, the number that callers have for the default stream, is written as NULL here */
    const char *backend;       /* "cuda", "rocm", "emulator": begins the names of its devices */
    const char *vendor;        /* "NVIDIA", "AMD" */
    const char *api;           /* "CUDA", "HIP": whose calls they are */
    const char *library;       /* what load() opens, for messages; "" where there is nothing to open */
    bool
        loads_code; /* module_load takes embedded code; false where kernels are part of the program: it takes a module's name */
    _Atomic process_mark
        *started_in;           /* the process in which load() has started the vendor's library; 0 as long as it has not */
    bool kernels_run_unwaited; /* what was queued is done though nobody waits for it: not so in the emulator */

    /* ---- the driver itself ---------------------------------------------------------------------------------------------- */

    /* Opens the vendor's library and starts it, once for the process; later calls give the first answer. On failure `why`
     * says in words what is missing, and nothing else of the table may be called but the three error functions. */
    int (*load)(char *why, size_t why_capacity);
    int (*device_count)(int32_t *count);
    /* Fills in all but backend, vendor, index, kernels and the memory that is free and used; id only if it is not
     * "backend:index". Needs no context. */
    int (*device_describe)(int32_t index, ww_device_info *info);
    int (*launch_limits)(int32_t index, driver_launch_limits *out); /* needs no context either */

    /* ---- contexts ------------------------------------------------------------------------------------------------------- */

    /* The process's context on a device; each create needs a destroy. Needs no current context. May take a second. */
    int (*context_create)(int32_t index, driver_context *out);
    int (*context_destroy)(int32_t index, driver_context context);
    /* Makes `context` current on this thread (NULL: none) and gives what was current before, so that a caller's own use of
     * the vendor's API on the same thread finds what it left. */
    int (*context_swap)(driver_context context, driver_context *previous);

    /* ---- memory --------------------------------------------------------------------------------------------------------- */

    int (*memory_info)(size_t *free_bytes, size_t *total_bytes);
    int (*memory_alloc)(size_t bytes, void **out); /* on the device, aligned to 256 bytes at least; bytes > 0 */
    int (*memory_free)(void *address);             /* may wait for work in flight */
    /* On the host, reachable at this address by the copy engine and by kernels from every context. */
    int (*pinned_alloc)(size_t bytes, void **out);
    int (*pinned_free)(void *host);

    /* Queued. The host side is pinned memory, and stays as it is until the work is done. */
    int (*copy_in)(driver_stream stream, void *to, const void *from_host, size_t bytes);
    int (*copy_out)(driver_stream stream, void *to_host, const void *from, size_t bytes);
    int (*copy)(driver_stream stream, void *to, const void *from, size_t bytes); /* no overlap */
    int (*fill32)(driver_stream stream, void *to, uint32_t pattern, size_t words);

    /* ---- streams and events --------------------------------------------------------------------------------------------- */

    int (*stream_create)(driver_stream *out); /* independent of the vendor's default stream */
    int (*stream_destroy)(driver_stream stream);
    int (*stream_synchronize)(driver_stream stream); /* waits; also gives the error of a kernel that failed on the way */

    int (*event_create)(bool timed, driver_event *out);
    int (*event_destroy)(driver_event event);
    int (*event_record)(driver_event event, driver_stream stream); /* queued */
    int (*stream_wait)(driver_stream stream, driver_event event);  /* queued: the stream waits, the host does not */
    int (*event_synchronize)(driver_event event);                  /* waits; at once for one never recorded */
    int (*event_elapsed)(driver_event from, driver_event to, float *milliseconds); /* both timed and done */

    /* ---- recorded work --------------------------------------------------------------------------------------------------- */

    /* From begin to end, launches, fills and copies on the device that are queued on the stream are recorded and not done; what
     * waits for it fails, and so does the end then. The graph is what was recorded, ready to be launched as often as wanted; it
     * holds the arguments of launches, not the memory that they name. A vendor's library that is too old refuses the begin. */
    int (*capture_begin)(driver_stream stream);
    int (*capture_end)(driver_stream stream, driver_graph *out);   /* the stream works as before, whatever this answers */
    int (*graph_launch)(driver_graph graph, driver_stream stream); /* queued */
    int (*graph_destroy)(driver_graph graph);                      /* its work may be queued still */

    /* ---- code ----------------------------------------------------------------------------------------------------------- */

    /* Loads a code object, a cubin or PTX into the current context; the image stays as it is while loaded and PTX ends with a
     * NUL. */
    int (*module_load)(const void *image, size_t bytes, driver_module *out);
    int (*module_unload)(driver_module module);
    /* Compiles the embedded source of a module for the chip `arch`, or finds what was compiled before. `anew`: what was found
     * the last time is no good, and is replaced. NULL for a vendor whose driver does it by itself. Takes seconds the first
     * time on a machine. */
    int (*module_compile)(const char *module, const char *arch, bool anew, driver_compiled *out);
    /* Finds a kernel and lets it use all the shared memory that a block may have. */
    int (*function_find)(driver_module module, const char *name, driver_function *out);
    int (*function_limits)(driver_function function, driver_function_limits *out);
    /* The bytes of all arguments, for a kernel that may take several. NULL where the driver cannot say. */
    int (*function_arguments)(driver_function function, int64_t *bytes);
    /* Queued. The function's limits were checked. */
    int (*launch)(driver_function function, driver_stream stream, const driver_launch *launch);

    /* ---- what a number means (these never fail) ------------------------------------------------------------------------- */

    const char *(*error_name)(int number); /* "CUDA_ERROR_OUT_OF_MEMORY"; never NULL */
    driver_error (*error_class)(int number);
    void (*failure)(driver_failure *out);
} gpu_driver;

/* CUDA, from libcuda.so.1 or the file that WARPWAVE_CUDA_LIBRARY names. The table is whole from the start; load() comes
 * first. */
extern const gpu_driver cuda_driver;

/* ROCm, from libamdhip64.so.7, .6 or .5, or the file that WARPWAVE_HIP_LIBRARY names. */
extern const gpu_driver hip_driver;

#endif
