/* Columns of activations by groups that share rows of weights: sorted by their first row, so that a group reads them once. */
#include "gpu/quant/quant_plan.h"

#include <stdlib.h>

#include "arithmetic/blocks/blocks.h"
#include "base/memory.h"
#include "kernels/quant/quant.h"

static int64_t up(int64_t count, int64_t unit)
{
    return (count + unit - 1) / unit * unit;
}

uint32_t quant_width(int64_t most)
{
    return most > 4 ? 8 : most > 2 ? 4 : most > 1 ? 2 : 1;
}

quant_coded quant_coded_few(int32_t type, int64_t cols, int64_t columns)
{
    const int64_t blocks = cols / block_length(type);
    return (quant_coded){.places = (uint32_t)up(columns, QUANT_FEW_COLUMNS),
                         .width = quant_width(columns),
                         .blocks = (uint32_t)blocks,
                         .blocks_kept = (uint32_t)up(blocks, 4)};
}

uint32_t quant_gemv_parts(int64_t tiles, int64_t units)
{
    uint32_t parts = 1;
    while (parts < QUANT_CLASSES && tiles * parts * 2 <= units)
        parts *= 2;
    return parts;
}

/* A stage has 64 codes of one class: two small blocks, or a quarter of a large one; wide tiles take two stages at a time. */
quant_coded quant_coded_tiles(int32_t type, int64_t cols, int64_t columns, int32_t tiles)
{
    const int64_t blocks = cols / block_length(type), together = block_length(type) == BLOCK_LARGE ? 1 : 4;
    return (quant_coded){.places = (uint32_t)up(columns, QUANT_TILE),
                         .blocks = (uint32_t)blocks,
                         .blocks_kept = (uint32_t)up(blocks, QUANT_CLASSES * together),
                         .tiles = tiles};
}

int64_t quant_code_bytes(int32_t type)
{
    const int64_t length = block_length(type);
    return length == BLOCK_LARGE ? 2 * length : length;
}

quant_coded_bytes quant_coded_size(int32_t type, const quant_coded *coded)
{
    const size_t blocks = (size_t)coded->places * coded->blocks_kept, elements = (size_t)block_length(type);
    const bool records = coded->tiles && elements == BLOCK_LARGE;
    return (quant_coded_bytes){.codes = blocks * elements,
                               .sums = blocks * (records ? QUANT_RECORD : elements / BLOCK_SMALL) * sizeof(uint32_t),
                               .factors = blocks * sizeof(float),
                               .partial = (size_t)coded->shared * QUANT_CLASSES * QUANT_FEW_RESULTS * sizeof(float)};
}

typedef struct wanted {
    int64_t first_row;
    uint32_t column;
} wanted;

static int by_row(const void *a, const void *b)
{
    const wanted *x = a, *y = b;
    if (x->first_row != y->first_row)
        return x->first_row < y->first_row ? -1 : 1;
    return x->column < y->column ? -1 : 1;
}

/* Is column i of the sorted ones the first of a group? `there` are in the group before it. */
static bool begins_group(const wanted *all, int64_t i, int64_t there)
{
    return i == 0 || there == QUANT_FEW_COLUMNS || all[i].first_row != all[i - 1].first_row;
}

static int64_t count_groups(const wanted *all, int64_t columns)
{
    int64_t count = 0, there = 0;
    for (int64_t i = 0; i < columns; i++) {
        const bool begins = begins_group(all, i, there);
        count += begins;
        there = begins ? 1 : there + 1;
    }
    return count;
}

static void fill_groups(const wanted *all, int64_t columns, quant_groups *groups)
{
    int64_t group = -1, there = 0;
    for (int64_t i = 0; i < columns; i++) {
        if (begins_group(all, i, there)) {
            group++;
            there = 0;
            groups->first_rows[group] = (uint64_t)all[i].first_row;
            for (int64_t c = 0; c < QUANT_FEW_COLUMNS; c++)
                groups->source[group * QUANT_FEW_COLUMNS + c] = UINT32_MAX;
        }
        groups->source[group * QUANT_FEW_COLUMNS + there++] = all[i].column;
        groups->most = there > groups->most ? there : groups->most;
    }
}

ww_status quant_groups_make(const int64_t *first_rows, int64_t columns, quant_groups *out)
{
    wanted *all = memory_alloc((size_t)columns * sizeof *all);
    if (!all)
        return memory_failed("columns of a product", (size_t)columns * sizeof *all);
    for (int64_t i = 0; i < columns; i++)
        all[i] = (wanted){first_rows[i], (uint32_t)i};
    qsort(all, (size_t)columns, sizeof *all, by_row);
    out->most = 0;
    out->count = count_groups(all, columns);
    out->bytes = (size_t)out->count * (sizeof *out->first_rows + QUANT_FEW_COLUMNS * sizeof *out->source);
    out->first_rows = memory_alloc(out->bytes);
    if (out->first_rows) {
        out->source = (uint32_t *)(out->first_rows + out->count);
        fill_groups(all, columns, out);
    }
    memory_free(all);
    return out->first_rows ? WW_OK : memory_failed("groups of a product", out->bytes);
}

void quant_groups_release(quant_groups *groups)
{
    memory_free(groups->first_rows);
    *groups = (quant_groups){0};
}
