/* Groups of columns that share rows: the columns are sorted by their first row, and cut after each eight. */
#include "gpu/quant/quant_groups.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "kernels/quant/quant.h"

typedef struct expert_column {
    int64_t first_row;
    uint32_t column;
} expert_column;

static int by_first_row(const void *a, const void *b)
{
    const expert_column *x = a, *y = b;
    if (x->first_row != y->first_row)
        return x->first_row < y->first_row ? -1 : 1;
    return x->column < y->column ? -1 : 1;
}

/* Whether sorted column i begins a group; the group before it has `size` columns. */
static bool begins_group(const expert_column *sorted, int64_t i, int64_t size)
{
    return i == 0 || size == QUANT_GEMV_COLUMNS || sorted[i].first_row != sorted[i - 1].first_row;
}

static int64_t count_groups(const expert_column *sorted, int64_t columns)
{
    int64_t count = 0, size = 0;
    for (int64_t i = 0; i < columns; i++) {
        const bool begins = begins_group(sorted, i, size);
        count += begins;
        size = begins ? 1 : size + 1;
    }
    return count;
}

static void fill_groups(const expert_column *sorted, int64_t columns, quant_groups *groups)
{
    int64_t group = -1, size = 0;
    for (int64_t i = 0; i < columns; i++) {
        if (begins_group(sorted, i, size)) {
            group++;
            size = 0;
            groups->first_rows[group] = (uint64_t)sorted[i].first_row;
            for (int64_t c = 0; c < QUANT_GEMV_COLUMNS; c++)
                groups->source[group * QUANT_GEMV_COLUMNS + c] = UINT32_MAX;
        }
        groups->source[group * QUANT_GEMV_COLUMNS + size++] = sorted[i].column;
        groups->largest = size > groups->largest ? size : groups->largest;
    }
}

ww_status quant_groups_make(const int64_t *first_rows, int64_t columns, quant_groups *out)
{
    expert_column *sorted = memory_alloc((size_t)columns * sizeof *sorted);
    if (!sorted)
        return memory_failed("columns of a product", (size_t)columns * sizeof *sorted);
    for (int64_t i = 0; i < columns; i++)
        sorted[i] = (expert_column){first_rows[i], (uint32_t)i};
    qsort(sorted, (size_t)columns, sizeof *sorted, by_first_row);
    out->largest = 0;
    out->count = count_groups(sorted, columns);
    out->bytes = (size_t)out->count * (sizeof *out->first_rows + QUANT_GEMV_COLUMNS * sizeof *out->source);
    out->first_rows = memory_alloc(out->bytes);
    if (out->first_rows) {
        out->source = (uint32_t *)(out->first_rows + out->count);
        fill_groups(sorted, columns, out);
    }
    memory_free(sorted);
    return out->first_rows ? WW_OK : memory_failed("groups of a product", out->bytes);
}

void quant_groups_release(quant_groups *groups)
{
    memory_free(groups->first_rows);
    *groups = (quant_groups){0};
}
