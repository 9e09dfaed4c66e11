/* Reading and writing by ids on the CPU.
 *
 * If all elements of a span along the last dimension have the same id, as when rows are selected, the whole span is moved. Each
 * place receives its sources in their order: lines along the indexed dimension are independent, and if there are fewer lines
 * than threads, each thread owns a slice of the places of a line.
 */
#include <stdatomic.h>

#include "arithmetic/convert.h"
#include "base/integers.h"
#include "cpu/tensor/strided_iterator.h"
#include "cpu/tensor/tensor.h"

enum { RANGE_ELEMENTS = 16384 };

static int64_t skip_of(int32_t type)
{
    return type == TYPE_U8 ? UINT8_MAX : type == TYPE_U32 ? (int64_t)UINT32_MAX : INT64_MAX;
}

static int64_t id_at(int32_t type, const void *data, int64_t at)
{
    if (type == TYPE_U8)
        return ((const uint8_t *)data)[at];
    return type == TYPE_U32 ? (int64_t)((const uint32_t *)data)[at] : ((const int64_t *)data)[at];
}

/* The stride along the last dimension; 0 for a job of one element. */
static int64_t last_stride(const elementwise_job *job, const tensor_operand *operand)
{
    return job->rank > 0 ? operand->strides[job->rank - 1] : 0;
}

/* Returns how many of the `left` elements are in the same line of the last dimension. */
static int64_t next_span(const elementwise_job *job, const iterator *it, int64_t left)
{
    return job->rank > 0 ? iterator_span(job, it, left) : left;
}

static void advance(const elementwise_job *job, iterator *it, int64_t span)
{
    if (job->rank > 0)
        iterator_advance(job, it, span);
}

/* ---- ids that are out of range ------------------------------------------------------------------------------------------- */

typedef struct check_work {
    const elementwise_job *job;
    int64_t extent;
    atomic_int_least64_t bad;
} check_work;

static void check_range(void *context, int64_t begin, int64_t end)
{
    check_work *w = context;
    const elementwise_job *job = w->job;
    const tensor_operand *ids = &job->in[0];
    const int64_t stride = last_stride(job, ids), skip = skip_of(ids->type);
    iterator it = iterator_at(job, begin);
    for (int64_t first = begin, count; first < end; first += count) {
        count = next_span(job, &it, end - first);
        const int64_t at = iterator_offset(job, ids, &it);
        for (int64_t i = 0; i < count; i++) {
            const int64_t id = id_at(ids->type, ids->data, at + i * stride);
            if ((id >= 0 && id < w->extent) || id == skip)
                continue;
            int64_t first_bad = atomic_load(&w->bad);
            while (first + i < first_bad && !atomic_compare_exchange_weak(&w->bad, &first_bad, first + i))
                continue;
            return; /* only the first is reported */
        }
        advance(job, &it, count);
    }
}

ww_status cpu_check_ids(ww_device *device, const elementwise_job *ids, int64_t extent, int64_t *bad, int64_t *value)
{
    check_work work = {.job = ids, .extent = extent};
    atomic_init(&work.bad, INT64_MAX);
    cpu_run_ranges(device, ids->count, RANGE_ELEMENTS, check_range, &work);
    *bad = atomic_load(&work.bad);
    *value = 0;
    if (*bad == INT64_MAX) {
        *bad = -1;
    } else {
        const iterator it = iterator_at(ids, *bad);
        *value = id_at(ids->in[0].type, ids->in[0].data, iterator_offset(ids, &ids->in[0], &it));
    }
    return WW_OK;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

/* Neighbours along the last dimension, each with its own id. */
typedef struct gather_span {
    void *to;
    const void *from;
    int64_t from_stride;
    int64_t step; /* elements from one id to the next */
    const tensor_operand *ids;
    int64_t ids_at, ids_stride;
    int64_t count;
} gather_span;

#define GATHER_SPAN(bits)                                                                                                      \
    {                                                                                                                          \
        uint##bits##_t *y = s.to;                                                                                              \
        const uint##bits##_t *x = s.from;                                                                                      \
        for (int64_t i = 0; i < s.count; i++) {                                                                                \
            const int64_t id = id_at(s.ids->type, s.ids->data, s.ids_at + i * s.ids_stride);                                   \
            y[i] = id == skip ? 0 : x[i * s.from_stride + id * s.step];                                                        \
        }                                                                                                                      \
        break;                                                                                                                 \
    }

static void gather_each(int32_t bytes, const gather_span *span)
{
    const gather_span s = *span; /* a copy, which no write can change */
    const int64_t skip = skip_of(s.ids->type);
    switch (bytes) {
    case 1:
        GATHER_SPAN(8)
    case 2:
        GATHER_SPAN(16)
    case 4:
        GATHER_SPAN(32)
    default:
        GATHER_SPAN(64)
    }
}

static void gather_range(void *context, int64_t begin, int64_t end)
{
    const elementwise_job *job = context;
    const tensor_operand *x = &job->in[0], *ids = &job->in[1];
    const int32_t bytes = type_size(x->type);
    gather_span s = {.from_stride = last_stride(job, x), .step = job->ia, .ids = ids, .ids_stride = last_stride(job, ids)};
    iterator it = iterator_at(job, begin);
    for (int64_t first = begin; first < end; first += s.count) {
        s.count = next_span(job, &it, end - first);
        s.to = (char *)job->out.data + first * bytes;
        s.from = (const char *)x->data + iterator_offset(job, x, &it) * bytes;
        s.ids_at = iterator_offset(job, ids, &it);
        const int64_t id = id_at(ids->type, ids->data, s.ids_at);
        if (s.ids_stride != 0)
            gather_each(bytes, &s);
        else if (id == skip_of(ids->type))
            memset(s.to, 0, (size_t)(s.count * bytes));
        else
            copy_strided(bytes, (strided_to){s.to, 1},
                         (strided_from){(const char *)s.from + id * job->ia * bytes, s.from_stride}, s.count);
        advance(job, &it, s.count);
    }
}

ww_status cpu_gather(ww_device *device, const elementwise_job *job, const elementwise_job *ids, int64_t *bad, int64_t *value)
{
    const ww_status status = cpu_check_ids(device, ids, job->ib, bad, value);
    if (status == WW_OK && *bad < 0)
        cpu_run_ranges(device, job->count, RANGE_ELEMENTS, gather_range, (void *)job);
    return status;
}

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

/* NOLINTBEGIN(bugprone-macro-parentheses): a type cannot be in parentheses */
#define ADD_STRIDED(NAME, name, bits, kind)                                                                                    \
    case TYPE_##NAME: {                                                                                                        \
        bits *y = to.data;                                                                                                     \
        const bits *x = from.data;                                                                                             \
        for (int64_t i = 0; i < count; i++)                                                                                    \
            y[i * to.stride] = ADD_##kind(name, y[i * to.stride], x[i * from.stride]);                                         \
        break;                                                                                                                 \
    }
/* NOLINTEND(bugprone-macro-parentheses) */
#define ADD_F32(name, a, b) name##_of_f32(kind_of_##name(a) + kind_of_##name(b))
#define ADD_F64(name, a, b) name##_of_f64(kind_of_##name(a) + kind_of_##name(b))
#define ADD_I64(name, a, b) name##_of_i64((int64_t)((uint64_t)kind_of_##name(a) + (uint64_t)kind_of_##name(b)))

static void add_strided(int32_t type, strided_to to, strided_from from, int64_t count)
{
    switch (type) {
        TYPES(ADD_STRIDED)
    default:
        break;
    }
}

typedef struct scatter_work {
    const scatter_job *job;
    int64_t slices, share; /* the places along a line are divided into `slices` slices of `share` places */
    int64_t line_ranges, lines_a_range;
} scatter_work;

/* Adds sources of `count` lines, adjacent along the last dimension, to the places [begin, end). */
static void scatter_lines(const scatter_job *job, const iterator *it, int64_t count, int64_t begin, int64_t end)
{
    const elementwise_job *lines = &job->lines;
    const tensor_operand *x = &lines->out, *ids = &lines->in[0], *src = &lines->in[1];
    const int32_t bytes = type_size(x->type);
    const int64_t ids_at = iterator_offset(lines, ids, it), ids_stride = last_stride(lines, ids);
    const int64_t x_stride = last_stride(lines, x), src_stride = last_stride(lines, src);
    const int64_t together = ids_stride == 0 ? count : 1; /* lines with the same ids */
    char *to = (char *)x->data + iterator_offset(lines, x, it) * bytes;
    const char *from = (const char *)src->data + iterator_offset(lines, src, it) * bytes;
    for (int64_t line = 0; line < count; line += together) {
        for (int64_t i = 0; i < job->length; i++) {
            const int64_t id = id_at(ids->type, ids->data, ids_at + line * ids_stride + i * job->ids_step);
            if (id < begin || id >= end)
                continue;
            const strided_to target = {to + (line * x_stride + id * job->x_step) * bytes, x_stride};
            const strided_from source = {from + (line * src_stride + i * job->src_step) * bytes, src_stride};
            if (job->what == INDEX_ADD)
                add_strided(x->type, target, source, together);
            else
                copy_strided(bytes, target, source, together);
        }
    }
}

static void scatter_piece(void *context, int64_t piece, int64_t end_piece)
{
    const scatter_work *w = context;
    const scatter_job *job = w->job;
    for (; piece < end_piece; piece++) {
        const int64_t slice = piece / w->line_ranges, range = piece % w->line_ranges;
        const int64_t begin = slice * w->share;
        const int64_t end = min_i64(begin + w->share, job->extent);
        const int64_t first = range * w->lines_a_range;
        const int64_t last = min_i64(first + w->lines_a_range, job->lines.count);
        iterator it = iterator_at(&job->lines, first);
        for (int64_t line = first, count; line < last; line += count) {
            count = next_span(&job->lines, &it, last - line);
            scatter_lines(job, &it, count, begin, end);
            advance(&job->lines, &it, count);
        }
    }
}

ww_status cpu_scatter(ww_device *device, const scatter_job *job)
{
    const int64_t threads = pool_threads(((cpu_device *)device)->pool);
    const int64_t lines = job->lines.count;
    const bool small = job->length * lines < RANGE_ELEMENTS; /* too short to wake threads */
    const int64_t wanted = small ? 1 : 4 * threads;
    scatter_work work = {.job = job, .slices = 1};
    if (lines < wanted)
        work.slices = min_i64(wanted / lines, job->extent);
    work.share = divide_up_i64(job->extent, work.slices);
    work.lines_a_range = divide_up_i64(lines, wanted);
    work.line_ranges = divide_up_i64(lines, work.lines_a_range);
    cpu_run_ranges(device, work.slices * work.line_ranges, small ? work.slices * work.line_ranges : 1, scatter_piece, &work);
    return WW_OK;
}
