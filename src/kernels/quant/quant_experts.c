/* Finds the rows of weights for each column from expert ids on the device (quant.h), so that the host need not know the ids.
 *
 * One thread block makes the groups. A column's rank is the number of earlier columns with the same expert; columns whose rank
 * is a multiple of eight start a group, and groups are numbered in that order. Looking through all earlier columns takes n * n
 * / 2 steps of 256 threads, which is nothing compared with the product of as many columns with a matrix.
 */
#include "kernels/quant/quant.h"
#include "kernels/simt/simt.h"

/* The largest id of a type means that the column has no expert. */
DEVICE bool expert_is_skipped(const quant_experts_args *args, uint64_t id)
{
    return id == (args->id_bytes == 8 ? (uint64_t)INT64_MAX : args->id_bytes == 4 ? UINT32_MAX : 255u);
}

DEVICE uint64_t expert_first_row(const quant_experts_args *args, uint32_t column)
{
    const uint64_t id = quant_id(args->ids, args->id_bytes, column);
    return expert_is_skipped(args, id) ? QUANT_SKIPPED : id < args->experts ? id * args->rows : QUANT_NO_ROW;
}

KERNEL(quant_expert_rows, quant_experts_args, QUANT_THREADS)
{
    const uint64_t column = (uint64_t)block_index() * QUANT_THREADS + thread_index();
    if (column < args.columns)
        args.first_rows[column] = expert_first_row(&args, (uint32_t)column);
}

/* Values in place of an expert's number, for columns without one. */
enum { EXPERT_SKIPPED = 0xfffffffe, EXPERT_NONE = 0xffffffff };

DEVICE uint32_t expert_number(const quant_experts_args *args, uint32_t column)
{
    const uint64_t id = quant_id(args->ids, args->id_bytes, column);
    return expert_is_skipped(args, id) ? EXPERT_SKIPPED : id < args->experts ? (uint32_t)id : EXPERT_NONE;
}

/* Writes zeros or NaN for columns without an expert. All threads call it. */
DEVICE void experts_put_none(const quant_experts_args *args, const uint32_t *numbers)
{
    for (uint32_t c = 0; c < args->columns; c++) {
        const uint32_t number = AT(numbers, c);
        if (number < EXPERT_SKIPPED)
            continue;
        const float value = number == EXPERT_NONE ? __builtin_nanf("") : 0.0f;
        for (uint64_t row = thread_index(); row < args->rows; row += QUANT_THREADS)
            args->y[c * args->rows + row] = value;
    }
}

DEVICE void experts_rank(const quant_experts_args *args, const uint32_t *numbers, uint16_t *ranks)
{
    for (uint32_t c = thread_index(); c < args->columns; c += QUANT_THREADS) {
        const uint32_t number = AT(numbers, c);
        uint32_t rank = 0;
        for (uint32_t before = 0; before < c; before++)
            rank += AT(numbers, before) == number ? 1 : 0;
        AT(ranks, c) = (uint16_t)(number < EXPERT_SKIPPED ? rank : 1); /* 1: starts no group */
    }
    barrier();
}

/* The group of a column: the number of groups that start before its own. */
DEVICE uint32_t experts_group(uint32_t column, const uint32_t *numbers, const uint16_t *ranks)
{
    const uint32_t number = AT(numbers, column), begin = AT(ranks, column) / QUANT_GEMV_COLUMNS * QUANT_GEMV_COLUMNS;
    uint32_t group = 0;
    for (uint32_t c = 0; c < column; c++) {
        if (AT(ranks, c) % QUANT_GEMV_COLUMNS != 0)
            continue;
        if (AT(numbers, c) == number && AT(ranks, c) == begin)
            break;
        group++;
    }
    return group;
}

KERNEL(quant_expert_groups, quant_experts_args, QUANT_THREADS)
{
    SHARED(uint32_t, numbers, QUANT_EXPERT_COLUMNS);
    SHARED(uint16_t, ranks, QUANT_EXPERT_COLUMNS);
    for (uint32_t c = thread_index(); c < args.columns; c += QUANT_THREADS)
        AT(numbers, c) = expert_number(&args, c);
    for (uint32_t i = thread_index(); i < args.groups * QUANT_GEMV_COLUMNS; i += QUANT_THREADS)
        args.source[i] = UINT32_MAX;
    for (uint32_t i = thread_index(); i < args.groups; i += QUANT_THREADS)
        args.first_rows[i] = 0;
    barrier();
    experts_rank(&args, numbers, ranks);
    for (uint32_t c = thread_index(); c < args.columns; c += QUANT_THREADS) {
        const uint32_t number = AT(numbers, c), rank = AT(ranks, c);
        if (number >= EXPERT_SKIPPED)
            continue;
        const uint32_t group = experts_group(c, numbers, ranks);
        args.source[group * QUANT_GEMV_COLUMNS + rank % QUANT_GEMV_COLUMNS] = c;
        if (rank % QUANT_GEMV_COLUMNS == 0)
            args.first_rows[group] = number * args.rows;
    }
    experts_put_none(&args, numbers);
}
