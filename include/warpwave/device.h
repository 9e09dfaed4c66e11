/* Devices: listing them and opening one.
 *
 * A device is named by text: "cpu", "cuda:0", "rocm:1", or "auto", which takes the first of these that opens: the CUDA
 * devices, the ROCm devices, the CPU. The environment variable WARPWAVE_DEVICE says what "auto" means instead.
 *
 * Several devices work as one: "cuda:0+cuda:1", "cuda:0+cpu", "rocm:*" (all of a backend), "all" (every GPU). Such a group
 * holds collections like any device, and answers with the same bits as one device. It has no tensors and no quantized
 * matrices. It has at most 64 members; one that is named twice gets two shares of the rows.
 *
 * After fork() a child has its parent's handles, but neither its threads nor its GPUs: every call on them returns
 * WW_OTHER_PROCESS at once, and closing or destroying them does nothing. The child opens its own devices: the CPU always, a GPU
 * if the parent had not started its driver (ww_devices() starts it, too).
 */
#ifndef WARPWAVE_DEVICE_H
#define WARPWAVE_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ww_device ww_device;

typedef struct ww_device_info {
    size_t struct_size;            /* set by ww_device_info_default() */
    char id[32];                   /* what ww_device_open() takes: "cpu", "cuda:0" */
    char name[128];                /* "NVIDIA H200", "Intel(R) Xeon(R) Processor" */
    char vendor[32];               /* "NVIDIA", "AMD", "Intel", "ARM" */
    char backend[16];              /* "cpu", "cuda", "rocm", "emulator" */
    char arch[32];                 /* "sm_90", "gfx90a", "neoverse-v1", "x86-64" */
    char instruction_sets[128];    /* of a CPU: the ones in use, "avx512"; empty for a GPU */
    char kernels[128];             /* where the device's code came from: "built in", "embedded sm_90a cubin" */
    char driver_version[48];       /* "13.0", "6.2.41133, ROCm 6.2.4"; empty for a CPU */
    char pci_address[16];          /* "0000:c1:00.0", or empty */
    int32_t index;                 /* number among the devices of its backend */
    int32_t wave_size;             /* lanes that run in step; 1 for a CPU */
    int32_t compute_units;         /* cores, multiprocessors or compute units in use */
    int32_t max_threads_per_block; /* 1 for a CPU */
    int64_t shared_bytes_per_block;
    int64_t memory_total_bytes;
    int64_t memory_free_bytes;
    int64_t memory_used_bytes; /* total minus free: used by all processes */
    int32_t member_count;      /* of a group: the members it works with; 0 for a single device */
    char members[512];         /* of a group: each member's share of the rows, "cuda:0 75.0%, cpu 25.0%"; else empty */
    char passed_over[512];     /* of a device opened as "auto": why each device before it did not open; else empty */
} ww_device_info;

/* A member of a group. */
typedef struct ww_member_info {
    size_t struct_size; /* set by ww_member_info_default() */
    char id[32];
    double share;          /* of new rows, from 0 to 1, by its measured speed */
    int64_t rows_capacity; /* rows of all collections on the group that it has room for */
    int64_t bytes;         /* that these rows take: its memory, and host memory for rows that are kept there */
    int32_t dropped;       /* not 0: the group works without it */
} ww_member_info;

/* The memory of a device, as the library counts it. */
typedef struct ww_memory_info {
    size_t struct_size; /* set by ww_memory_info_default() */
    int64_t total_bytes;
    int64_t free_bytes;   /* as the driver or the operating system says now */
    int64_t ours_bytes;   /* in buffers that this device has handed out */
    int64_t pooled_bytes; /* held for reuse, in no buffer */
    int64_t peak_bytes;   /* the largest that ours_bytes has been */
} ww_memory_info;

/* Every struct of this library that may grow starts with its own size: the library reads and writes no more than that, so a
 * program works with a later library, too. ..._default() returns one that is ready to use. For languages without C headers,
 * ..._init() does the same at `value`, where the caller has `struct_size` bytes: it sets struct_size, gives the fields that
 * fit their defaults, and zeroes the bytes it does not know. Refuses NULL and a size below that of a size_t. */
WW_API ww_status ww_device_info_init(void *value, size_t struct_size);
WW_API ww_status ww_memory_info_init(void *value, size_t struct_size);
WW_API ww_status ww_member_info_init(void *value, size_t struct_size);

static inline ww_device_info ww_device_info_default(void)
{
    ww_device_info value;
    ww_device_info_init(&value, sizeof value);
    return value;
}
static inline ww_memory_info ww_memory_info_default(void)
{
    ww_memory_info value;
    ww_memory_info_init(&value, sizeof value);
    return value;
}

static inline ww_member_info ww_member_info_default(void)
{
    ww_member_info value;
    ww_member_info_init(&value, sizeof value);
    return value;
}

/* Describes up to `capacity` devices in `infos` and returns their number in `count`; infos may be NULL if capacity is 0.
 * Refuses a NULL count. May load driver libraries; a missing or broken driver is not an error: it has no devices. */
WW_API ww_status ww_devices(ww_device_info *infos, size_t capacity, size_t *count);

/* Returns why a backend ("cuda", "rocm", "emulator") has no device, in words, or "" if it has one. Never NULL; same lifetime
 * as ww_error_message(). */
WW_API const char *ww_backend_absence(const char *backend);

/* Opens the device called `name` (NULL means "auto") and returns it in `device`; every open needs a ww_device_close().
 * Refuses an unknown name with WW_NO_DEVICE and the list of devices. May load drivers and start threads. */
WW_API ww_status ww_device_open(const char *name, ww_device **device);

/* Closes the device. It is freed with its last user (collections keep it open, too). Accepts NULL. */
WW_API void ww_device_close(ww_device *device);

/* Describe an open device into `info`/`memory`, which come from ..._default(). Refuse NULL. Do not block. */
WW_API ww_status ww_device_describe(ww_device *device, ww_device_info *info);
WW_API ww_status ww_device_memory(ww_device *device, ww_memory_info *memory);

/* Gives pooled memory back to the driver or the operating system. Refuses NULL. May wait for work in flight. */
WW_API ww_status ww_device_trim(ww_device *device);

/* Describes up to `capacity` members of a group in `infos`, each from ww_member_info_default(), and returns their number in
 * `count`, dropped ones included; a single device is its own only member. Measures their speed the first time, which takes some
 * milliseconds. Refuses NULL, except for infos with capacity 0. */
WW_API ww_status ww_device_members(ww_device *device, ww_member_info *infos, size_t capacity, size_t *count);

/* Removes the member called `member`, which is lost or needed elsewhere, from a group. Searches of collections that had rows
 * there fail until ww_collection_move() to the same group has brought these rows to the other members, from the host copy
 * (keep_host_copy) or the store. Refuses a single device with WW_UNSUPPORTED, an unknown member with WW_NOT_FOUND, and the last
 * member. */
WW_API ww_status ww_device_drop(ww_device *device, const char *member);

/* How many chips the kernels in this library were compiled for, and the names ("gfx90a", "sm_90a") by number; NULL past the
 * end. None in a library without GPU kernels; ww_backend_absence() says why it has none. */
WW_API size_t ww_kernel_chip_count(void);
WW_API const char *ww_kernel_chip(size_t index);

#ifdef __cplusplus
}
#endif

#endif
