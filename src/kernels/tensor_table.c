/* Functions of 16-bit types, looked up: where shared memory has room for all 65536 results, a block brings them there and each
 * element is one look. The chips that have so much (128 KiB) are NVIDIA's from sm_80 on; the others compute (tensor_unary.c).
 */
#include "kernels/elements.h"

DEVICE uint32_t table_pair(const uint16_t *table, uint32_t pair)
{
    return (uint32_t)AT(table, pair & 0xffffu) | (uint32_t)AT(table, pair >> 16) << 16;
}

typedef struct table_units {
    chunk_bits unit[TABLE_TURNS];
} table_units;

/* Units of a thread are `step` elements apart; of those from here on `left` are there. */
DEVICE table_units table_load(const uint16_t *x, int64_t step, int32_t left)
{
    const chunk_bits none = {{0, 0, 0, 0}};
    table_units all;
    UNROLL for (int32_t t = 0; t < TABLE_TURNS; t++) all.unit[t] = t < left ? chunk_load(x + t * step, 0, 4) : none;
    return all;
}

/* What comes next is on its way while results are looked up, the first while the table is. */
KERNEL(tensor_unary_table, table_args, TABLE_THREADS)
{
    SHARED_DYNAMIC(uint16_t, table);
    const int64_t units = args.count / 8;
    const int64_t threads = (int64_t)block_count() * TABLE_THREADS;
    const int64_t first = (int64_t)block_index() * TABLE_THREADS + thread_index();
    const int64_t step = 8 * threads;
    const uint16_t *from = args.x + 8 * first;
    uint16_t *to = args.out + 8 * first;
    int32_t left = (int32_t)((units - first + threads - 1) / threads); /* none where first is beyond the last */
    for (uint32_t part = 0; part < TABLE_PARTS; part++) { /* not all blocks ask for the same part at the same time */
        const uint32_t i = 8 * ((part + block_index()) % TABLE_PARTS * TABLE_THREADS + thread_index());
        copy_16((uint32_t *)AT_RANGE(table, i, 8), (const uint32_t *)(args.table + i));
    }
    copies_commit();
    table_units x = table_load(from, step, left);
    copies_wait(0);
    barrier();
    UNROLL_BY(1) for (; left > 0; left -= TABLE_TURNS)
    {
        from += TABLE_TURNS * step;
        const table_units next = table_load(from, step, left - TABLE_TURNS);
        UNROLL for (int32_t t = 0; t < TABLE_TURNS; t++)
        {
            chunk_bits y;
            UNROLL for (int32_t w = 0; w < 4; w++) y.word[w] = table_pair(table, x.unit[t].word[w]);
            if (t < left)
                chunk_store(to + t * step, 0, 4, y);
        }
        to += TABLE_TURNS * step;
        x = next;
    }
    for (int64_t i = 8 * units + thread_index(); block_index() == 0 && i < args.count; i += TABLE_THREADS)
        args.out[i] = AT(table, args.x[i]);
}
