/* Reading and writing by ids. */
#include "arithmetic/integers.h"
#include "kernels/elementwise/elements.h"
#include "kernels/elementwise/index.h"

/* The id that means "skip": the largest value of its type. */
DEVICE int64_t skip_of(int32_t type)
{
    return type == TYPE_U8 ? UINT8_MAX : type == TYPE_U32 ? (int64_t)UINT32_MAX : INT64_MAX;
}

KERNEL(tensor_index_check, index_check_args, ELEMENTWISE_THREADS)
{
    const int32_t type = args.ids.in[0].type;
    if (!args.apart)
        launches_wait();
    UNROLL_BY(1)
    for (int64_t i = tile_begin() + thread_index(); i < tile_end(&args.ids); i += ELEMENTWISE_THREADS) {
        const int64_t id = bits_to_i64(element_bits(&args.ids, &args.ids.in[0], i), type);
        const bool bad = (id < 0 || id >= args.extent) && id != skip_of(type);
        if (bad && args.bad != NULL)
            atomic_min_u64(args.bad, (uint64_t)i);
        else if (bad)
            store_host_u64(args.any, 1);
    }
    if (args.apart)
        launches_wait(); /* so the next kernel need not also wait for that */
}

/* Where a gather reads its element i, or -1 to write 0. */
DEVICE int64_t gather_place(const elementwise_args *args, int64_t i, int64_t id)
{
    const bool skip = id == skip_of(args->in[1].type) || id < 0 || id >= args->ib; /* another kernel reports invalid ids */
    return skip ? -1 : place_of(args, &args->in[0], i) + id * args->ia;
}

DEVICE int64_t gather_id(const elementwise_args *args, int64_t i)
{
    return bits_to_i64(element_bits(args, &args->in[1], i), args->in[1].type);
}

/* Moves units, four per thread in flight: first their ids are loaded, then the units. */
DEVICE void gather_units(const elementwise_args *args)
{
    enum { PREFETCH = 4 };
    const int64_t end = tile_end(args);
    UNROLL_BY(1)
    for (int64_t i = tile_begin() + thread_index(); i < end; i += PREFETCH * ELEMENTWISE_THREADS) {
        int64_t at[PREFETCH];
        u32x4 units[PREFETCH];
        UNROLL for (int32_t a = 0; a < PREFETCH; a++) at[a] =
            i + a * ELEMENTWISE_THREADS < end ? gather_id(args, i + a * ELEMENTWISE_THREADS) : -1;
        UNROLL for (int32_t a = 0; a < PREFETCH; a++)
        {
            const u32x4 none = {0, 0, 0, 0};
            at[a] = gather_place(args, i + a * ELEMENTWISE_THREADS, at[a]);
            units[a] = at[a] < 0 ? none : load_u32x4((const uint32_t *)args->in[0].data + at[a] * 4);
        }
        UNROLL for (int32_t a = 0; a < PREFETCH; a++) if (i + a * ELEMENTWISE_THREADS < end) *
            ((u32x4 *)args->out.data + i + a * ELEMENTWISE_THREADS) = units[a];
    }
}

KERNEL(tensor_gather, elementwise_args, ELEMENTWISE_THREADS)
{
    launches_wait();
    launches_next();
    const int32_t bytes = type_bytes(args.in[0].type);
    if (args.quads == QUADS_UNITS) {
        gather_units(&args);
        return;
    }
    UNROLL_BY(1) for (int64_t i = tile_begin() + thread_index(); i < tile_end(&args); i += ELEMENTWISE_THREADS)
    {
        const int64_t at = gather_place(&args, i, gather_id(&args, i));
        element_put(&args, &args.out, i, at < 0 ? 0 : bits_at(args.in[0].data, at, bytes));
    }
}

/* Processes one source element. */
DEVICE void scatter_one(const scatter_args *args, int64_t x_at, int64_t src_at)
{
    const elementwise_operand *x = &args->lines.out;
    const elementwise_operand *src = &args->lines.in[1];
    const int32_t type = x->type;
    const int32_t bytes = type_bytes(type);
    const uint64_t given = bits_at(src->data, src_at, bytes);
    uint64_t result = given;
    if (args->what == INDEX_ADD) {
        const uint64_t before = bits_at(x->data, x_at, bytes);
        if (type == TYPE_F64)
            result = f64_to_bits(bits_to_f64(before, type) + bits_to_f64(given, type), type);
        else if (type == TYPE_F32 || type == TYPE_F16 || type == TYPE_BF16 || type == TYPE_F8E4M3)
            result = f32_to_bits(bits_to_f32(before, type) + bits_to_f32(given, type), type);
        else
            result = before + given; /* the low bits are stored */
    }
    bits_put(x->data, x_at, bytes, result);
}

/* Each line has its own ids: a thread reads them itself. */
KERNEL(tensor_scatter, scatter_args, SCATTER_THREADS)
{
    const int64_t thread = (int64_t)block_index() * SCATTER_THREADS + thread_index();
    const int64_t line = thread % args.lines.count;
    const int64_t part = thread / args.lines.count;
    if (part >= args.parts)
        return;
    const int32_t type = args.lines.in[0].type;
    const int64_t share = (args.extent + args.parts - 1) / args.parts;
    const int64_t begin = part * share;
    const int64_t x_at = place_of(&args.lines, &args.lines.out, line);
    int64_t ids_at = place_of(&args.lines, &args.lines.in[0], line);
    const int64_t src_at = place_of(&args.lines, &args.lines.in[1], line);
    UNROLL_BY(1) for (int64_t i = 0; i < args.length; i++)
    {
        const int64_t id = bits_to_i64(bits_at(args.lines.in[0].data, ids_at, type_bytes(type)), type);
        ids_at += args.ids_step;
        if (id >= begin && id < begin + share && id < args.extent)
            scatter_one(&args, x_at + id * args.x_step, src_at + i * args.src_step);
    }
}
