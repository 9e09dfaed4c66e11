/* The CPU as a device: what its files share. */
#ifndef WW_CPU_CPU_H
#define WW_CPU_CPU_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/pool.h"
#include "cpu/isa/isa.h"
#include "device/backend.h"

/* Freed buffers of tensors that are kept for reuse, oldest first (cpu/tensor/memory.c). */
enum { SPARE_BUFFERS = 8 };
typedef struct cpu_spare {
    pthread_mutex_t lock;
    buffer kept[SPARE_BUFFERS];
    int32_t count;
    size_t bytes;
} cpu_spare;

typedef struct cpu_device {
    ww_device base;             /* first: a ww_device * of this backend is a cpu_device * */
    const instruction_set *isa; /* always `chosen`, except in tests */
    instruction_set chosen;
    pool *pool;
    atomic_int_least64_t ours_bytes;
    atomic_int_least64_t peak_bytes;
    int64_t cache_bytes; /* of the last-level cache; 0: unknown */
    cpu_spare spare;
} cpu_device;

/* Counts bytes that the device has taken or freed. */
void cpu_count_bytes(cpu_device *cpu, int64_t bytes);

/* Buffers, as device/backend.h describes them. */
ww_status cpu_buffer_create(ww_device *device, size_t bytes, buffer *out);
void cpu_buffer_destroy(ww_device *device, buffer *b);

/* Frees all spare buffers. */
void cpu_spare_release(ww_device *device);

extern const backend backend_cpu;

/* The operations on rows (backend.h). */
ww_status cpu_rows_write(ww_device *device, row_range to, const void *rows, int64_t row_stride, int64_t *refused);
ww_status cpu_rows_read(ww_device *device, row_range from, void *out);
ww_status cpu_rows_gather(ww_device *device, row_range to, const segment *from, const int64_t *sources);
ww_status cpu_rows_search(ww_device *device, const search_job *job);
ww_status cpu_rows_search_lists(ww_device *device, const list_job *job);
ww_status cpu_lists_push(ww_device *device, const list_push *job, device_lists **lists);
void cpu_lists_destroy(ww_device *device, device_lists *lists);
int64_t cpu_lists_bytes(const device_lists *lists);
ww_status cpu_rows_range(ww_device *device, const range_job *job);

/* Describes this machine's CPU: name, vendor, arch, memory. The device fills in id, cores and instruction sets. */
void cpu_describe_machine(ww_device_info *info);

/* Returns the size of the last-level cache in bytes, or 0 if the machine does not tell. */
int64_t cpu_cache_bytes(void);

#endif
