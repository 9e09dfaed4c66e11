/* The CPU behind the backend interface. Its memory is the host's, so copies are plain copies, and a stream has no state: work
 * is done when a call returns. */
#include <string.h>

#include "arithmetic/canon.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/system/cores.h"
#include "base/text.h"
#include "cpu/cpu.h"
#include "cpu/quant/quant.h"
#include "cpu/tensor/tensor.h"
#include "device/segment_buffers.h"

static ww_status cpu_count(int32_t *count)
{
    *count = 1;
    return WW_OK;
}

static ww_status describe_with(const instruction_set *isa, int32_t cores, ww_device_info *info)
{
    text_copy(info->id, sizeof info->id, "cpu");
    text_copy(info->backend, sizeof info->backend, "cpu");
    text_copy(info->kernels, sizeof info->kernels, "built in");
    text_copy(info->instruction_sets, sizeof info->instruction_sets, isa->name);
    cpu_describe_machine(info);
    info->wave_size = 1;
    info->max_threads_per_block = 1;
    info->compute_units = cores;
    info->memory_total_bytes = memory_total_bytes();
    info->memory_free_bytes = memory_available_bytes();
    info->memory_used_bytes = info->memory_total_bytes - info->memory_free_bytes;
    return WW_OK;
}

static ww_status cpu_describe(int32_t index, ww_device_info *info)
{
    (void)index;
    instruction_set isa;
    int32_t cores[CORES_MAX], count = 0;
    ww_status status = instruction_set_choose(&isa);
    if (status == WW_OK)
        status = cores_to_use(cores, CORES_MAX, &count);
    return status == WW_OK ? describe_with(&isa, count, info) : status;
}

static ww_status cpu_open(int32_t index, ww_device **device)
{
    (void)index;
    int32_t cores[CORES_MAX], count = 0;
    cpu_device *cpu = memory_alloc_zeroed(1, sizeof *cpu);
    if (!cpu)
        return memory_failed("device cpu", sizeof *cpu);
    cpu->base.backend = &backend_cpu;
    cpu->base.opened_in = process_here();
    cpu->base.info = ww_device_info_default();
    atomic_init(&cpu->base.users, 1);
    pthread_mutex_init(&cpu->spare.lock, NULL); /* cannot fail with default attributes */
    ww_status status = instruction_set_choose(&cpu->chosen);
    cpu->isa = &cpu->chosen;
    cpu->cache_bytes = cpu_cache_bytes();
    if (status == WW_OK)
        status = cores_to_use(cores, CORES_MAX, &count);
    if (status == WW_OK)
        status = pool_create(NULL, count, &cpu->pool); /* not pinned: a caller may run on any core, even a worker's */
    if (status == WW_OK)
        status = describe_with(cpu->isa, count, &cpu->base.info);
    if (status == WW_OK) {
        *device = &cpu->base;
    } else {
        pthread_mutex_destroy(&cpu->spare.lock);
        memory_free(cpu);
    }
    return status;
}

static void cpu_close(ww_device *device)
{
    cpu_device *cpu = (cpu_device *)device;
    cpu_spare_release(device);
    pthread_mutex_destroy(&cpu->spare.lock);
    pool_destroy(cpu->pool);
    memory_free(cpu);
}

static ww_status cpu_memory(ww_device *device, ww_memory_info *memory)
{
    cpu_device *cpu = (cpu_device *)device;
    memory->total_bytes = memory_total_bytes();
    memory->free_bytes = memory_available_bytes();
    memory->ours_bytes = atomic_load(&cpu->ours_bytes);
    pthread_mutex_lock(&cpu->spare.lock);
    memory->pooled_bytes = (int64_t)cpu->spare.bytes;
    pthread_mutex_unlock(&cpu->spare.lock);
    memory->peak_bytes = atomic_load(&cpu->peak_bytes);
    return WW_OK;
}

static ww_status cpu_trim(ww_device *device)
{
    cpu_spare_release(device);
    return WW_OK;
}

static ww_status cpu_stream_create(ww_device *device, device_stream **out)
{
    *out = (device_stream *)device; /* any pointer that is not NULL: a stream has no state */
    return WW_OK;
}

static void cpu_stream_destroy(ww_device *device, device_stream *s)
{
    (void)device;
    (void)s;
}

static ww_status cpu_stream_synchronize(ww_device *device, device_stream *s)
{
    (void)device;
    (void)s;
    return WW_OK;
}

static pool *cpu_threads(ww_device *device)
{
    return ((cpu_device *)device)->pool;
}

static ww_status cpu_fill(ww_device *device, device_stream *s, buffer_range to, uint32_t pattern)
{
    (void)device;
    (void)s;
    char *at = (char *)to.buffer->data + to.offset;
    for (size_t i = 0; i < to.bytes; i += sizeof pattern)
        memcpy(at + i, &pattern, sizeof pattern);
    return WW_OK;
}

static ww_status cpu_copy_in(ww_device *device, device_stream *s, buffer_range to, const void *from)
{
    (void)device;
    (void)s;
    if (to.bytes > 0)
        memcpy((char *)to.buffer->data + to.offset, from, to.bytes);
    return WW_OK;
}

static ww_status cpu_copy_out(ww_device *device, device_stream *s, void *to, buffer_range from)
{
    (void)device;
    (void)s;
    if (from.bytes > 0)
        memcpy(to, (const char *)from.buffer->data + from.offset, from.bytes);
    return WW_OK;
}

static ww_status cpu_copy(ww_device *device, device_stream *s, buffer_range to, const buffer *from, size_t from_offset)
{
    return cpu_copy_in(device, s, to, (const char *)from->data + from_offset);
}

const backend backend_cpu = {
    .name = "cpu",
    .on_host = true,
    .count = cpu_count,
    .describe = cpu_describe,
    .open = cpu_open,
    .close = cpu_close,
    .memory = cpu_memory,
    .trim = cpu_trim,
    .buffer_create = cpu_buffer_create,
    .buffer_destroy = cpu_buffer_destroy,
    .segment_create = segment_buffers_create,
    .segment_destroy = segment_buffers_destroy,
    .stream_create = cpu_stream_create,
    .stream_destroy = cpu_stream_destroy,
    .stream_synchronize = cpu_stream_synchronize,
    .fill = cpu_fill,
    .copy_in = cpu_copy_in,
    .copy_out = cpu_copy_out,
    .copy = cpu_copy,
    .rows_write = cpu_rows_write,
    .rows_read = cpu_rows_read,
    .rows_gather = cpu_rows_gather,
    .rows_search = cpu_rows_search,
    .rows_search_lists = cpu_rows_search_lists,
    .lists_push = cpu_lists_push,
    .lists_destroy = cpu_lists_destroy,
    .lists_bytes = cpu_lists_bytes,
    .rows_range = cpu_rows_range,
    .threads = cpu_threads,
    .tensors = &tensors_cpu,
    .quants = &cpu_quants,
};
