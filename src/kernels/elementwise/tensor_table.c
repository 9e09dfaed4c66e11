/* Functions of 16-bit types by lookup: a block copies all 65536 results into shared memory, and each element is one lookup.
 * That needs 128 KiB, which NVIDIA's chips from sm_80 on have; the others compute (tensor_unary.c). */
#include "kernels/elementwise/elements.h"

DEVICE uint32_t table_pair(const uint16_t *table, uint32_t pair)
{
    return (uint32_t)AT(table, pair & 0xffffu) | (uint32_t)AT(table, pair >> 16) << 16;
}

typedef struct table_units {
    quad_bits unit[TABLE_SLOTS];
} table_units;

DEVICE table_units table_load(const table_args *args, int64_t first, int64_t step)
{
    const int64_t units = args->count / 8;
    const quad_bits none = {{0, 0, 0, 0}};
    table_units x;
    UNROLL for (int32_t t = 0; t < TABLE_SLOTS; t++) x.unit[t] =
        first + t * step < units ? quad_load(args->x + 8 * (first + t * step), 0, 4) : none;
    return x;
}

/* The next units are loaded while results are looked up, and the first ones while the table is copied. */
KERNEL(tensor_unary_table, table_args, TABLE_THREADS)
{
    SHARED_DYNAMIC(uint16_t, table);
    launches_wait();
    launches_next();
    const int64_t units = args.count / 8;
    const int64_t step = (int64_t)block_count() * TABLE_THREADS;
    int64_t first = (int64_t)block_index() * TABLE_THREADS + thread_index();
    for (uint32_t part = 0; part < TABLE_PARTS; part++) { /* so blocks do not all read the same part at the same time */
        const uint32_t i = 8 * ((part + block_index()) % TABLE_PARTS * TABLE_THREADS + thread_index());
        copy_16((uint32_t *)AT_RANGE(table, i, 8), (const uint32_t *)(args.table + i));
    }
    copies_commit();
    table_units x = table_load(&args, first, step);
    copies_wait(0);
    barrier();
    UNROLL_BY(1) for (; first < units; first += TABLE_SLOTS * step)
    {
        const table_units next = table_load(&args, first + TABLE_SLOTS * step, step);
        UNROLL for (int32_t t = 0; t < TABLE_SLOTS; t++) if (first + t * step < units)
        {
            quad_bits y;
            UNROLL for (int32_t w = 0; w < 4; w++) y.word[w] = table_pair(table, x.unit[t].word[w]);
            quad_store(args.out + 8 * (first + t * step), 0, 4, y);
        }
        x = next;
    }
    for (int64_t i = 8 * units + thread_index(); block_index() == 0 && i < args.count; i += TABLE_THREADS)
        args.out[i] = AT(table, args.x[i]);
}
