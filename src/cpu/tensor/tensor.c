/* Tensors on the CPU: their memory, and the table of operations. */
#include "cpu/tensor/tensor.h"

#include <string.h>

#include "base/integers.h"
#include "base/memory.h"

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
    return device->backend->copy_in(device, NULL, (buffer_range){to, 0, to->bytes}, from);
}

static ww_status cpu_read(ww_device *device, void *to, const buffer *from)
{
    return device->backend->copy_out(device, NULL, to, (buffer_range){from, 0, from->bytes});
}

static ww_status cpu_synchronize(ww_device *device)
{
    (void)device;
    return WW_OK;
}

/* Every thread has its own share of the ranges, so that it reads the same memory as in the last operation. When its share is
 * done, it takes ranges of others. */
enum { SHARES_MAX = 64 };

typedef struct share {
    _Alignas(CACHE_LINE_BYTES) atomic_int_least64_t next;
    int64_t end;
} share;

typedef struct ranges {
    int64_t count, grain;
    cpu_range_work work;
    void *context;
    int32_t shares;
    share share[SHARES_MAX];
} ranges;

/* Returns the next range for a thread. It is called once per range, so there is always one left. */
static int64_t take_range(ranges *all, int32_t worker)
{
    int64_t taken = 0;
    for (int32_t i = 0; i < all->shares; i++) {
        share *s = &all->share[(worker + i) % all->shares];
        taken = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
        if (taken < s->end)
            break;
    }
    return taken;
}

static void run_range(void *context, int64_t item, int32_t worker)
{
    (void)item;
    ranges *all = context;
    const int64_t begin = take_range(all, worker) * all->grain;
    const int64_t end = min_i64(begin + all->grain, all->count);
    all->work(all->context, begin, end);
}

void cpu_run_ranges(ww_device *device, int64_t count, int64_t grain, cpu_range_work work, void *context)
{
    pool *threads = ((cpu_device *)device)->pool;
    grain = max_i64(grain, 1);
    const int64_t items = divide_up_i64(count, grain);
    ranges all; /* usually only a few shares are used */
    all.count = count;
    all.grain = grain;
    all.work = work;
    all.context = context;
    all.shares = items <= 1 ? 1 : pool_threads(threads) < SHARES_MAX ? pool_threads(threads) : SHARES_MAX;
    for (int32_t i = 0; i < all.shares; i++) {
        atomic_init(&all.share[i].next, items * i / all.shares);
        all.share[i].end = items * (i + 1) / all.shares;
    }
    if (items > 1)
        pool_run(threads, items, run_range, NULL, &all);
    else
        pool_run_here(items, run_range, &all);
}

/* Work on a CPU is done when a call returns: other streams need not wait for it, and the caller waits for them itself. */
static ww_status cpu_stream(ww_device *device, void **stream)
{
    (void)device;
    *stream = NULL;
    return WW_OK;
}

static ww_status cpu_meet_stream(ww_device *device, void *stream)
{
    (void)device;
    (void)stream;
    return WW_OK;
}

const tensor_backend tensors_cpu = {
    .alloc = cpu_tensor_alloc,
    .release = cpu_tensor_free,
    .release_shared = cpu_tensor_free,
    .stream = cpu_stream,
    .wait_stream = cpu_meet_stream,
    .signal_stream = cpu_meet_stream,
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
    .cumsum = cpu_cumsum,
    .conv_integer = cpu_conv_integer,
    .attention_store = cpu_attention_store,
    .attention = cpu_attention,
};
