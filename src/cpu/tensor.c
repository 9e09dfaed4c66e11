/* Tensors on the CPU: memory as the backend has it, and the table of operations. */
#include "cpu/tensor.h"

#include <string.h>

static void zero_range(void *context, int64_t begin, int64_t end)
{
    const buffer *to = context;
    memset((char *)to->data + begin, 0, (size_t)(end - begin));
}

enum { BYTES_GRAIN = 4 << 20 };

static ww_status cpu_zero(ww_device *device, const buffer *to)
{
    cpu_run_ranges(device, (int64_t)to->bytes, BYTES_GRAIN, zero_range, (void *)to);
    return WW_OK;
}

static ww_status cpu_write(ww_device *device, const buffer *to, const void *from)
{
    return device->backend->copy_in(device, NULL, to, 0, from, to->bytes);
}

static ww_status cpu_read(ww_device *device, void *to, const buffer *from)
{
    return device->backend->copy_out(device, NULL, to, from, 0, from->bytes);
}

static ww_status cpu_synchronize(ww_device *device)
{
    (void)device;
    return WW_OK;
}

typedef struct ranges {
    int64_t count, grain;
    cpu_range_work work;
    void *context;
} ranges;

static void run_range(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    const ranges *all = context;
    const int64_t begin = item * all->grain;
    const int64_t end = begin + all->grain < all->count ? begin + all->grain : all->count;
    all->work(all->context, begin, end);
}

void cpu_run_ranges(ww_device *device, int64_t count, int64_t grain, cpu_range_work work, void *context)
{
    ranges all = {.count = count, .grain = grain, .work = work, .context = context};
    const int64_t items = (count + grain - 1) / grain;
    if (items > 1)
        pool_run(((cpu_device *)device)->pool, items, run_range, NULL, &all);
    else
        pool_run_here(items, run_range, &all);
}

const tensor_backend tensors_cpu = {
    .take = cpu_tensor_take,
    .give = cpu_tensor_give,
    .zero = cpu_zero,
    .write = cpu_write,
    .read = cpu_read,
    .synchronize = cpu_synchronize,
    .elementwise = cpu_elementwise,
    .random = cpu_random,
    .check_ids = cpu_check_ids,
    .gather = cpu_gather,
    .scatter = cpu_scatter,
    .reduce = cpu_reduce,
    .rows = cpu_rows,
    .softmax_columns = cpu_softmax_columns,
    .rope = cpu_rope,
    .sort = cpu_sort,
    .matmul = cpu_matmul,
    .resample = cpu_resample,
};
