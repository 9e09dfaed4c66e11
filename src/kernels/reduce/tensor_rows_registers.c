/* softmax and norms of rows that fit in registers: memory is read once and written once (row_pairs.h). */
#define PAIR_PART ROW_PART
#include "kernels/reduce/row_pairs.h"

DEVICE void softmax_registers(const row_args *args, const pair_shared *shared)
{
    const pair_place place = pair_place_of(args, block_index() * pair_rows(args));
    float v[2 * LANE_PAIRS];
    bool met = args->apart;
    launches_meet(&met);
    BY_TYPE(pairs_load, args, place.begin, place.count, -MATH_INF_F32, v)
    const float scale = softmax_values(&place, shared, values_largest(v), v);
    met = !args->apart;
    launches_meet(&met);
    BY_TYPE(pairs_store, args, &place, false, scale, v)
}

DEVICE void norm_registers(const row_args *args, const pair_shared *shared)
{
    const pair_place place = pair_place_of(args, block_index() * pair_rows(args));
    float v[2 * LANE_PAIRS];
    launches_wait(); /* at the start: no register is left to remember it for later */
    launches_next();
    BY_TYPE(pairs_load, args, place.begin, place.count, 0.0f, v)
    const float scale = norm_values(args, &place, shared, false, v);
    BY_TYPE(pairs_store, args, &place, true, scale, v)
}

KERNEL_RESIDENT(tensor_rows_registers, row_args, ROW_PAIR_THREADS, 2)
{
    PAIR_ROOM(ROW_PAIR_THREADS);
    if (args.op == ROW_SOFTMAX)
        softmax_registers(&args, &shared);
    else
        norm_registers(&args, &shared);
}
