/* The driver table: everything that the GPU backend needs from a vendor, as functions with the same signatures for all vendors.
 *
 * CUDA's driver API and HIP differ in names, numbers and a few structs; the table hides that. cuda.c fills it from
 * libcuda.so.1, hip.c from libamdhip64.so, and in builds with tests emulated.c fills it with the emulator, so that all code
 * above this table runs on a machine without a GPU. A driver is one table for all of its devices.
 *
 * Rules for every function that returns int: 0 is success; anything else is the vendor's own number, and nothing was changed.
 * error_name() and error_class() say what a number means. failure() says, for the calling thread, which vendor function
 * returned the last non-zero number. gpu/error.h makes a status of the three.
 *
 * Unless stated otherwise, a function works in the context that is current on the calling thread. Functions may be called from
 * any thread at any time. Work on one stream happens in order; "queued" means that the call does not wait for it.
 */
#ifndef WW_GPU_DRIVER_DRIVER_H
#define WW_GPU_DRIVER_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/device.h>

#include "base/system/process.h"
#include "gpu/chip.h"

/* The vendor's own handles. A device address is a plain pointer that the host must not dereference. */
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
    DRIVER_ERROR_TOO_OLD,   /* the module's code is too new for this driver; code for an older chip may work */
    DRIVER_ERROR_NOT_FOUND, /* a module has no function of that name */
    DRIVER_ERROR_LOST       /* the context is broken for good: a kernel faulted, or the hardware did */
} driver_error;

/* Code that was compiled on this machine. */
typedef struct driver_compiled {
    void *image; /* for module_load; memory_free() */
    size_t bytes;
    char cached[4096]; /* the file it was read from; "" if it was compiled now */
} driver_compiled;

/* A source of the caller for the vendor's compiler. */
typedef struct driver_source {
    const char *text;
    const char *name; /* for the compiler's messages */
    const char *arch; /* the chip */
    const char *const *options;
    size_t option_count;
    bool anew; /* the cached code is bad and must be replaced */
} driver_source;

/* What a function needs and allows, for the check before a launch. */
typedef struct driver_function_limits {
    int32_t threads_per_block_max;
    int32_t registers;                /* per thread; 0 if the driver does not say */
    int64_t shared_static_bytes;      /* per block */
    int64_t shared_dynamic_bytes_max; /* per block, as allowed by function_find */
    int64_t local_bytes;              /* per thread: spills and stack */
    int64_t arguments_bytes;          /* of the struct that the kernel takes, or -1 if the driver cannot say */
    bool early;                       /* can be launched early */
} driver_function_limits;

enum { DRIVER_DETAIL_BYTES = 1024 }; /* bytes kept of a vendor's explanation */

/* Which vendor function failed last on this thread, and the vendor's explanation: the compiler's log for a module, or the fault
 * that the emulator found. Both are "" rather than NULL and valid until the thread's next call. */
typedef struct driver_failure {
    const char *call;
    const char *detail;
} driver_failure;

/* How large a launch may be along x, y and z: the blocks of a grid, the threads of a block, and the threads of a grid. */
typedef struct driver_launch_limits {
    int64_t grid[3];
    int64_t block[3];
    int64_t threads[3]; /* blocks times threads per block: HIP counts them in 32 bits; INT64_MAX if there is no such limit */
} driver_launch_limits;

typedef struct driver_launch {
    uint32_t grid_x, grid_y, grid_z;
    uint32_t block_x, block_y, block_z;
    uint32_t shared_bytes; /* dynamic */
    const void *arguments; /* the struct that the kernel takes; read during the call */
    size_t arguments_bytes;
    bool packed; /* several arguments, one after the other, instead of one struct */
    bool early;  /* may start while earlier kernels still run; it waits for them itself (simt.h: launches_wait) */
} driver_launch;

/* Whose code a driver loads. */
typedef enum driver_code { DRIVER_CODE_UNKNOWN, DRIVER_CODE_AMD, DRIVER_CODE_NVIDIA, DRIVER_CODE_HOST } driver_code;

typedef struct gpu_driver {
    driver_code code;          /* the code that it loads */
    const char *code_in_words; /* the same in words, for messages */
    bool stream_1_is_null;     /* 1, the callers' number for the default stream, is passed as NULL here */
    const char *backend;       /* "cuda", "rocm": begins the names of its devices */
    const char *vendor;        /* "NVIDIA", "AMD" */
    const char *api;           /* "CUDA", "HIP": whose calls they are */
    const char *library;       /* what load() opens, for messages; "" if there is nothing to open */
    bool loads_code;           /* module_load takes embedded code; false: it takes the name of a module of this program */
    _Atomic process_mark *started_in; /* the process in which load() started the vendor's library; 0 before that */
    bool kernels_run_unwaited;        /* queued work is done even if nothing waits for it; not in software */
    /* Returns what a device with waves of this size has. NULL, as in the drivers of vendors: the table of chips says it. */
    const chip_capabilities *(*capabilities)(int32_t wave_size);

    /* ---- the driver itself ---------------------------------------------------------------------------------------------- */

    /* Opens and starts the vendor's library once per process; later calls return the first answer. On failure `why` says what
     * is missing, and only the three error functions of the table may be called. */
    int (*load)(char *why, size_t why_capacity);
    int (*device_count)(int32_t *count);
    /* Fills in everything except backend, vendor, index, kernels, and free and used memory; id only if it is not
     * "backend:index". Needs no context. */
    int (*device_describe)(int32_t index, ww_device_info *info);
    int (*launch_limits)(int32_t index, driver_launch_limits *out); /* needs no context either */

    /* ---- contexts ------------------------------------------------------------------------------------------------------- */

    /* The process's context on a device; every create needs a destroy. Needs no current context. May take a second. */
    int (*context_create)(int32_t index, driver_context *out);
    int (*context_destroy)(int32_t index, driver_context context);
    /* Makes `context` (or none, if NULL) current on this thread and returns the previous one, so that the caller's own use of
     * the vendor's API on this thread is not disturbed. */
    int (*context_swap)(driver_context context, driver_context *previous);

    /* ---- memory --------------------------------------------------------------------------------------------------------- */

    int (*memory_info)(size_t *free_bytes, size_t *total_bytes);
    int (*memory_alloc)(size_t bytes, void **out); /* on the device, aligned to at least 256 bytes; bytes > 0 */
    int (*memory_free)(void *address);             /* may wait for work in flight */
    /* Host memory that the copy engine and kernels of every context reach at this address. */
    int (*pinned_alloc)(size_t bytes, void **out);
    int (*pinned_free)(void *host);

    /* Queued. The host memory is pinned and must not change until the work is done. */
    int (*copy_in)(driver_stream stream, void *to, const void *from_host, size_t bytes);
    int (*copy_out)(driver_stream stream, void *to_host, const void *from, size_t bytes);
    int (*copy)(driver_stream stream, void *to, const void *from, size_t bytes); /* no overlap */
    int (*fill32)(driver_stream stream, void *to, uint32_t pattern, size_t words);

    /* ---- streams and events --------------------------------------------------------------------------------------------- */

    int (*stream_create)(driver_stream *out); /* independent of the vendor's default stream */
    int (*stream_destroy)(driver_stream stream);
    int (*stream_synchronize)(driver_stream stream); /* waits; also returns the error of a kernel that failed before */

    int (*event_create)(bool timed, driver_event *out);
    int (*event_destroy)(driver_event event);
    int (*event_record)(driver_event event, driver_stream stream); /* queued */
    int (*stream_wait)(driver_stream stream, driver_event event);  /* queued: the stream waits, the host does not */
    int (*event_synchronize)(driver_event event);                  /* waits; returns at once if it was never recorded */
    int (*event_elapsed)(driver_event from, driver_event to, float *milliseconds); /* both timed and done */

    /* ---- recorded work --------------------------------------------------------------------------------------------------- */

    /* Between begin and end, launches, fills and device copies on the stream are recorded and not run. Anything that waits for
     * them fails, and then the end fails too. The graph can be launched any number of times; it holds the arguments of
     * launches, not the memory they point to. A vendor's library that is too old refuses the begin. */
    int (*capture_begin)(driver_stream stream);
    int (*capture_end)(driver_stream stream, driver_graph *out);   /* the stream works normally again, even after a failure */
    int (*graph_launch)(driver_graph graph, driver_stream stream); /* queued */
    int (*graph_destroy)(driver_graph graph);                      /* its work may still be queued */

    /* ---- code ----------------------------------------------------------------------------------------------------------- */

    /* Loads a code object, a cubin or PTX into the current context. The image must not change while it is loaded; PTX ends with
     * a NUL. */
    int (*module_load)(const void *image, size_t bytes, driver_module *out);
    int (*module_unload)(driver_module module);
    /* Compiles the embedded source of a module for the chip `arch`, or finds it in the cache. `anew`: the cached code is bad
     * and must be replaced. NULL for a vendor whose driver compiles by itself. Takes seconds the first time on a machine. */
    int (*module_compile)(const char *module, const char *arch, bool anew, driver_compiled *out);
    /* Compiles a source of the caller, or finds its code in the cache. `log` gets all that the compiler wrote, to
     * memory_free(), or NULL. NULL for a driver without a compiler. */
    int (*source_compile)(const driver_source *source, driver_compiled *out, char **log);
    /* Finds a kernel and lets it use all the shared memory that a block may have. */
    int (*function_find)(driver_module module, const char *name, driver_function *out);
    int (*function_limits)(driver_function function, driver_function_limits *out);
    /* The bytes of all arguments, for a kernel with several. NULL if the driver cannot say. */
    int (*function_arguments)(driver_function function, int64_t *bytes);
    /* Queued. The function's limits were checked. */
    int (*launch)(driver_function function, driver_stream stream, const driver_launch *launch);

    /* ---- what a number means (these never fail) ------------------------------------------------------------------------- */

    const char *(*error_name)(int number); /* "CUDA_ERROR_OUT_OF_MEMORY"; never NULL */
    driver_error (*error_class)(int number);
    void (*failure)(driver_failure *out);
} gpu_driver;

/* CUDA, from libcuda.so.1 or the file that WARPWAVE_CUDA_LIBRARY names. The table is always complete; call load() first. */
extern const gpu_driver cuda_driver;

/* ROCm, from libamdhip64.so.7, .6 or .5, or the file that WARPWAVE_HIP_LIBRARY names. */
extern const gpu_driver hip_driver;

#endif
